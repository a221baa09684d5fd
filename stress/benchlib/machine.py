# SPDX-License-Identifier: MIT
"""QEMU: command lines for a guest on Ptarmigan, on Xen as initial domain and without a hypervisor, and a boot under watch."""
import json
import os
import selectors
import shlex
import socket
import subprocess
import time

from . import console

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OWN_MODES = ("ptwr", "emulate")
PEERS = ("xen", "native")

COUNTER_KEY = b"\x14s"         # Ptarmigan's console: Ctrl-t, then s, dumps the counters
COUNTER_WAIT = 10              # seconds for the dump
LAST_WORDS = 3                 # seconds left to a dying machine, for its register dump
POWER_OFF_WAIT = 60            # seconds from the guest's last line to the end of QEMU


class Files:
    """The files that a boot is made of."""

    def __init__(self, image=None, kernel=None, initrd=None, xen=None):
        build = os.path.join(ROOT, "build")
        self.image = image or os.path.join(build, "ptarmigan")
        self.kernel = kernel or os.path.join(build, "guest", "vmlinuz")
        self.initrd = initrd or os.path.join(build, "initramfs.cpio")
        self.xen = xen or os.path.join(build, "guest", "xen")

    def needed(self, mode):
        """Pairs (path, how it is made)."""
        out = [(self.kernel, "stress/fetch.sh"), (self.initrd, "stress/mkinitramfs.sh")]
        if mode in OWN_MODES:
            out.append((self.image, "make"))
        if mode == "xen":
            out.append((self.xen, "stress/fetch.sh ... xen"))
        return out


def accel_args(accel, icount=False):
    if icount:
        return ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"]
    return ["-accel", "kvm"] if accel == "kvm" else ["-accel", "tcg,thread=multi"]


def base(accel="tcg", cpu=None, cpus=1, mem="2G", icount=False):
    """QEMU with a serial console on stdio and nothing else.  @cpu: a model, or None for all that the host can do."""
    model = cpu or ("host" if accel == "kvm" and not icount else "max")
    return ["qemu-system-x86_64", *accel_args(accel, icount), "-cpu", model, "-smp", str(cpus), "-m", mem, "-display", "none",
            "-vga", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot", "-nic", "none"]


def modules(*strings):
    """-initrd's list of multiboot modules, in which a comma separates."""
    return ",".join(s.replace(",", ",,") for s in strings)


def hypervisor(files, options, module_strings, **machine):
    """Ptarmigan with any modules."""
    cmd = base(**machine) + ["-kernel", files.image, "-append", options]
    return cmd + (["-initrd", modules(*module_strings)] if module_strings else [])


def guest(files, mode, vcpus, guest_args, cpus=None, hv_args="", quiet=True, **machine):
    """The stock guest.  @mode: ptwr, emulate, xen or native; @cpus: the machine's CPUs, by default one a vCPU."""
    args = ("quiet " if quiet else "") + guest_args
    cpus = cpus or vcpus
    if mode == "native":
        if cpus != vcpus:
            raise ValueError("without a hypervisor CPUs are vCPUs")
        return base(cpus=cpus, **machine) + ["-kernel", files.kernel, "-initrd", files.initrd, "-append",
                                             "console=ttyS0,115200 " + args]
    strings = ["%s console=hvc0 %s" % (files.kernel, args), files.initrd]
    if mode == "xen":
        # This TCG's SMAP breaks Xen's guests (it reads the stack of an iretq as supervisor).
        machine["cpu"] = machine.get("cpu") or ("host" if machine.get("accel") == "kvm" else "max,smap=off")
        return base(cpus=cpus, **machine) + ["-kernel", files.xen, "-append", "console=com1 com1=115200,8n1 dom0_mem=1536M "
                                             "dom0_max_vcpus=%d watchdog=0 %s" % (vcpus, hv_args), "-initrd", modules(*strings)]
    return hypervisor(files, ("console=com1 com1=115200,8n1 dom0_max_vcpus=%d pt_update=%s stats=json %s" %
                              (vcpus, mode, hv_args)).strip(), strings, cpus=cpus, **machine)


class Boot:
    """One boot under watch: run() returns when the machine is off, dead, or out of time.

    text       all that the console said
    shutdown   QEMU's word on the machine's end: "guest-shutdown" for a power-off, "guest-reset", ...; None when it was killed
    reason     why it was killed, or None
    counted    [(what, operations, {counter: increase})] between marks
    seconds    host time"""

    def __init__(self, cmd, timeout, log=None, with_counters=False, until=None):
        """@until: a pattern after which the machine may be killed, for boots that are not meant to power off."""
        self.cmd, self.timeout, self.log = cmd, timeout, log
        self.with_counters, self.until = with_counters, until
        self.raw = bytearray()
        self.shutdown = self.reason = None
        self.counted = []
        self.seconds = 0.0
        self._before = None                  # the counters at the last mark
        self._mark = None                    # (what, operations, time) while a dump is awaited
        self._scanned = 0                    # bytes of raw already searched for lines
        self._qmp = b""

    @property
    def text(self):
        return console.decode(bytes(self.raw))

    def problem(self):
        """Why this boot does not count, or None."""
        return console.death(self.text) or self.reason or console.complaint(self.text) or \
            (None if self.shutdown == "guest-shutdown" else "no power-off: %s" % (self.shutdown or "QEMU ended"))

    def run(self):
        ours, theirs = socket.socketpair()
        if self.log:
            os.makedirs(os.path.dirname(self.log), exist_ok=True)
        log = open(self.log or os.devnull, "wb")
        cmd = self.cmd + ["-chardev", "socket,id=qmp,fd=%d" % theirs.fileno(), "-mon", "chardev=qmp,mode=control"]
        log.write(("# " + shlex.join(self.cmd) + "\n").encode())
        start = time.monotonic()
        qemu = subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0,
                                pass_fds=(theirs.fileno(),), start_new_session=True)
        theirs.close()
        try:
            ours.sendall(b'{"execute": "qmp_capabilities"}\n')
            self._watch(qemu, ours, log, start)
        finally:
            if qemu.poll() is None:
                qemu.kill()
            qemu.wait()
            self.seconds = time.monotonic() - start
            rest = qemu.stdout.read()
            self.raw += rest or b""
            log.write(rest or b"")
            if self.reason:
                log.write(("\n# killed: %s\n" % self.reason).encode())
            log.close()
            ours.close()
            qemu.stdin.close()
            qemu.stdout.close()
        return self

    def _watch(self, qemu, qmp, log, start):
        deadline, why = start + self.timeout, "timed out after %d s" % self.timeout
        found = None
        with selectors.DefaultSelector() as sel:
            sel.register(qemu.stdout, selectors.EVENT_READ)
            sel.register(qmp, selectors.EVENT_READ)
            while True:
                for key, _ in sel.select(0.2):
                    if key.fileobj is qmp:
                        data = self._read_qmp(qmp)
                        if not data:
                            sel.unregister(qmp)
                        continue
                    data = os.read(qemu.stdout.fileno(), 65536)
                    if not data:
                        return
                    self.raw += data
                    log.write(data)
                    log.flush()
                now = time.monotonic()
                event = self._new_lines(qemu)
                if event and not found:
                    found = event
                    grace = POWER_OFF_WAIT if event == "end" else LAST_WORDS
                    if now + grace < deadline:
                        deadline = now + grace
                        why = {"end": "no power-off within %d s" % grace, "until": None}.get(event, event)
                if self._mark and now > self._mark[2] + COUNTER_WAIT:
                    self._answer(qemu, None)
                if qemu.poll() is not None:
                    return
                if now > deadline:
                    self.reason = why
                    return

    def _read_qmp(self, qmp):
        try:
            data = qmp.recv(65536)
        except ConnectionError:
            return b""
        self._qmp += data
        *lines, self._qmp = self._qmp.split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if message.get("event") == "SHUTDOWN":
                self.shutdown = message.get("data", {}).get("reason", "unknown")
        return data

    def _new_lines(self, qemu):
        """Looks at complete lines not seen before; answers marks.  Returns "end", "until", a death's line, or None."""
        end = self.raw.rfind(b"\n") + 1
        if end <= self._scanned:
            return None
        text = console.decode(bytes(self.raw[self._scanned:end]))
        self._scanned = end
        dumps = console.counters(text)
        if self._mark and dumps:
            self._answer(qemu, dumps[-1])
        found = console.MARK.search(text)
        if found:
            self._mark = (found.group(1), int(found.group(2)), time.monotonic())
            if self.with_counters:
                self._send(qemu, COUNTER_KEY)
            else:
                self._answer(qemu, None)
        death = console.death(text)
        if death:
            return death
        if self.until and self.until.search(text):
            return "until"
        return "end" if console.END.search(text) else None

    def _answer(self, qemu, now):
        """The counters at a mark are @now (None: unknown): charges the increase, and lets the guest go on."""
        what, operations, _ = self._mark
        self._mark = None
        if now and self._before and what != "-":
            self.counted.append((what, operations, {k: v - self._before.get(k, 0) for k, v in now.items() if k != "cpus"}))
        self._before = now
        self._send(qemu, b"\n")

    def _send(self, qemu, data):
        try:
            qemu.stdin.write(data)
        except OSError:
            pass                             # it has just ended; the main loop notices
