# SPDX-License-Identifier: MIT
"""Boots a guest under QEMU and returns what it printed: on Ptarmigan, on Xen as dom0, or without a hypervisor."""
import os
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MARKERS = (b"PTEND", )


class Boot:
    """One finished boot: the console text, and why it ended."""

    def __init__(self, text, reason, seconds):
        self.text, self.reason, self.seconds = text, reason, seconds

    def results(self):
        """(workload, metric, unit, better, value) for every result line."""
        out = []
        for line in self.text.splitlines():
            f = line.strip().split()
            if len(f) == 6 and f[0] == "PTRES":
                try:
                    out.append((f[1], f[2], f[3], f[4], float(f[5])))
                except ValueError:
                    pass
        return out

    def lines(self, word):
        return [l.strip() for l in self.text.splitlines() if l.strip().startswith(word)]

    def counters(self):
        """The hypervisor's counters at each dump, in order."""
        import json
        out = []
        for line in self.text.splitlines():
            at = line.find("PTSTATS {")
            if at >= 0:
                try:
                    out.append(json.loads(line[at + 8:]))
                except ValueError:
                    pass
        return out

    def problem(self):
        """Why this boot does not count, or None."""
        if "PTEND" not in self.text:
            return self.reason or "ended early"
        warn = self.lines("PTWARN")
        if not warn or warn[-1] != "PTWARN 0":
            return "kernel warnings: " + "; ".join(self.lines("PTLOG")[:3])
        bad = self.lines("PTFAIL")
        if bad:
            return bad[0]
        if "panic on CPU" in self.text:
            return "hypervisor panic"
        return None


def command(mode, cpus, kernel, initrd, kargs, accel="tcg,thread=multi", mem="2G", vcpus=None, hvargs="", cpu="max",
            image=None, xen=None, extra=()):
    """The QEMU command line.  mode: emulate, ptwr, xen or native."""
    vcpus = vcpus or cpus
    q = ["qemu-system-x86_64", "-accel", accel, "-smp", str(cpus), "-m", mem, "-nographic", "-no-reboot", "-nic", "none"]
    kargs = kargs.replace(",", ",,")
    if mode == "native":
        q += ["-cpu", cpu, "-kernel", kernel, "-initrd", initrd, "-append", "console=ttyS0 quiet " + kargs]
    elif mode == "xen":
        q += ["-cpu", cpu + ",smap=off", "-kernel", xen, "-append",
              "console=com1 com1=115200,8n1 dom0_mem=1536M dom0_max_vcpus=%d watchdog=0 noreboot=0" % vcpus,
              "-initrd", "%s console=hvc0 quiet %s,%s" % (kernel, kargs, initrd)]
    else:
        q += ["-cpu", cpu, "-kernel", image or os.path.join(ROOT, "build", "ptarmigan"), "-append",
              "console=com1 com1=115200,8n1 dom0_max_vcpus=%d pt_update=%s stats=json %s" % (vcpus, mode, hvargs),
              "-initrd", "%s console=hvc0 quiet %s,%s" % (kernel, kargs, initrd)]
    return q + list(extra)


def run(cmd, timeout, log=None, done=None, send=None):
    """Runs until QEMU ends by itself or @timeout seconds passed.  @done: text after which a boot may be ended."""
    start = time.time()
    text = bytearray()
    p = subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    reason = ""
    os.set_blocking(p.stdout.fileno(), False)
    try:
        while True:
            chunk = p.stdout.read()
            if chunk:
                text += chunk
                if send and send[0] in text:
                    p.stdin.write(send[1])
                    p.stdin.flush()
                    send = None
                if done and done in text:
                    time.sleep(0.5)
                    break
                continue
            if p.poll() is not None:
                break
            if time.time() - start > timeout:
                reason = "timed out after %d s" % timeout
                break
            time.sleep(0.05)
    finally:
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGTERM)
        try:
            p.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
        rest = p.stdout.read()
        if rest:
            text += rest
    text = text.decode("utf-8", "replace").replace("\r", "")
    if log:
        os.makedirs(os.path.dirname(log), exist_ok=True)
        with open(log, "w") as f:
            f.write(" ".join(cmd) + "\n" + text)
    return Boot(text, reason, time.time() - start)


def say(*args):
    print(*args, file=sys.stderr, flush=True)
