#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Boot tests: a stock kernel in both modes and on many shapes of machine, and everything that a loader can get wrong."""
import os
import re
import struct
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "stress"))
import qemu                                                   # noqa: E402

KERNEL = os.environ.get("KERNEL", os.path.join(ROOT, "build/guest/vmlinuz"))
INITRD = os.path.join(ROOT, "build/initramfs.cpio")
IMAGE = os.path.join(ROOT, "build/ptarmigan")
LOGS = os.path.join(ROOT, "build/boot-logs")
TIMEOUT = 400                                                 # generous: slow machines must not fail


def linux(name, mode="emulate", cpus=1, run="forkexec:dbench", **kw):
    """A boot to userspace with a short load and a clean power-off."""
    cmd = qemu.command(mode, cpus, KERNEL, INITRD, "ptbench.run=%s ptbench.clients=%d ptbench.secs=1" % (run, cpus), **kw)

    def test():
        b = qemu.run(cmd, TIMEOUT, log=os.path.join(LOGS, name.replace("/", "-") + ".log"))
        why = b.problem()
        if why:
            return why
        begin = b.lines("PTBEGIN")[0]
        want = "cpus=%d " % (kw.get("vcpus") or cpus)
        if want not in begin + " ":
            return "guest says %s, expected %s" % (begin, want)
        if run != "idle" and not b.results():
            return "no result line"
        if not b.counters():
            return "no counters at shutdown"
        if mode == "ptwr" and not b.counters()[-1]["ptwr_open"]:
            return "no page table was ever opened"
        if mode == "emulate" and b.counters()[-1]["ptwr_open"]:
            return "a page table was opened in mode emulate"
        if "shut down: poweroff" not in b.text or b.reason:
            return b.reason or "no power-off"
        return None
    return name, test


def stops(name, hvargs, initrd, expect, mem="512M"):
    """A boot that must end with one clear line."""
    def test():
        cmd = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", mem, "-nographic", "-no-reboot", "-nic", "none",
               "-kernel", IMAGE, "-append", "console=com1 com1=115200,8n1 " + hvargs]
        if initrd:
            cmd += ["-initrd", initrd]
        b = qemu.run(cmd, 90, log=os.path.join(LOGS, name.replace("/", "-") + ".log"))
        fatal = [l for l in b.text.splitlines() if "ptarmigan: fatal: " in l]
        if len(fatal) != 1:
            return "%d fatal lines (%s)" % (len(fatal), b.reason or "ended")
        if not re.search(expect, fatal[0]):
            return "line was: " + fatal[0]
        if "panic" in b.text:
            return "panic"
        if b.reason:
            return "the machine did not stop: " + b.reason
        return None
    return name, test


def options(name, hvargs, expect):
    """Bad options are listed, and boot goes on (to the missing module)."""
    def test():
        b = qemu.run(["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "256M", "-nographic", "-no-reboot", "-nic",
                      "none", "-kernel", IMAGE, "-append", "console=com1 " + hvargs], 60)
        for e in expect:
            if b.text.count(e) != 1:
                return "%d times: %s" % (b.text.count(e), e)
        return None if "ptarmigan: fatal: no module" in b.text else "boot did not go on"
    return name, test


def bad_images():
    """Damaged kernels made from the real one."""
    d = os.path.join(ROOT, "build", "bad")
    os.makedirs(d, exist_ok=True)
    good = open(KERNEL, "rb").read()
    off, length = struct.unpack_from("<II", good, 0x248)
    setup = (good[0x1f1] or 4) + 1
    payload = setup * 512 + off

    def put(name, data):
        path = os.path.join(d, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def header(o, l):
        b = bytearray(good)
        struct.pack_into("<II", b, 0x248, o, l)
        return bytes(b)

    corrupt = bytearray(good)
    for i in range(64):
        corrupt[payload + length // 2 + i] ^= 0xa5
    elf = bytearray(120)
    elf[0:16] = b"\x7fELF\x02\x01\x01" + bytes(9)
    struct.pack_into("<HHIQQQIHHHHHH", elf, 16, 2, 62, 1, 0x1000, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    struct.pack_into("<IIQQQQQQ", elf, 64, 1, 7, 0, 0x1000, 0x1000, 120, 4096, 4096)
    yield "truncated", put("truncated", good[:len(good) // 2])
    yield "tiny", put("tiny", good[:100])
    yield "corrupt-payload", put("corrupt", bytes(corrupt))
    yield "forged-offset", put("offset", header(0xfffffff0, length))
    yield "forged-length", put("length", header(off, 0xfffffff0))
    yield "not-a-kernel", put("text", b"this is not a kernel\n" * 100)
    yield "elf-without-notes", put("elf", bytes(elf))


def matrix(quick):
    t = []
    for n in (1, 2, 4, 8):
        t.append(linux("boot/emulate/%d" % n, "emulate", n))
    # The old mode's domain lock and shootdowns make it crawl with several vCPUs on an emulated machine: no load there.
    t.append(linux("boot/ptwr/1", "ptwr", 1))
    t.append(linux("boot/ptwr/2", "ptwr", 2, run="idle"))
    t.append(linux("boot/32-on-2", "emulate", 2, vcpus=32, run="idle", mem="3G"))
    if quick:
        return t
    t += [linux("boot/mem-512M", mem="512M"), linux("boot/mem-8G", mem="8G", cpus=2),
          linux("boot/smap-off", cpu="max,smap=off"), linux("boot/smap-option", hvargs="smap=off smep=off"),
          linux("boot/qemu64", cpu="qemu64"), linux("boot/EPYC", cpu="EPYC"), linux("boot/Skylake", cpu="Skylake-Server"),
          linux("boot/odd-3", "emulate", 3), linux("boot/dom0-mem", hvargs="dom0_mem=700M")]
    return t


def bad_input():
    t = [stops("bad/no-module", "", None, r"no module"),
         stops("bad/little-memory", "", "%s,%s" % (KERNEL, INITRD), r"too little memory to unpack it: \d+ KiB", mem="96M")]
    for name, path in bad_images():
        t.append(stops("bad/" + name, "", path, r"module 0 \(kernel\): "))
    t.append(options("bad/options", "frobnicate=7 smap=maybe pt_update=fast maxcpus=0 com1=115201 loglvl dom0_max_vcpus=9999",
                     ["ptarmigan: option frobnicate=7: ", "ptarmigan: option smap=maybe: ", "ptarmigan: option pt_update=fast: ",
                      "ptarmigan: option maxcpus=0: ", "ptarmigan: option com1=115201: ", "ptarmigan: option loglvl: ",
                      "ptarmigan: option dom0_max_vcpus=9999: "]))
    return t


def main():
    args = sys.argv[1:]
    tests = bad_input() + matrix("--quick" in args)
    only = [a for a in args if not a.startswith("--")]
    if only:
        tests = [t for t in tests if any(t[0].startswith(o) for o in only)]
    passed = failed = 0

    def go(t):
        try:
            return t[0], t[1]()
        except Exception as e:                                # a broken test is a failed test
            return t[0], "%s: %s" % (type(e).__name__, e)

    with ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        for name, why in pool.map(go, tests):
            if why:
                failed += 1
                print("FAIL %s: %s" % (name, why), flush=True)
            else:
                passed += 1
                print("PASS %s" % name, flush=True)
    print("%d passed, %d failed" % (passed, failed))
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
