# SPDX-License-Identifier: MIT
"""Chooses KVM or TCG.  A /dev/kvm that opens, and even makes a virtual machine, may still be unable to run ring-0 code at
a useful speed, so that KVM is trusted only after it really ran some (stress/kvmtest.S), in time."""
import os
import subprocess
import tempfile
import time

from .machine import ROOT

DEVICE = "/dev/kvm"
TIME_OUT = 5
GOOD_STATUS = 2 * 0x10 + 1


def build_test(directory):
    image = os.path.join(directory, "kvmtest")
    subprocess.run(["gcc", "-m32", "-nostdlib", "-static", "-no-pie", "-Wl,-Ttext-segment=0x100000", "-Wl,--build-id=none",
                    "-Wl,-z,noexecstack", "-o", image, os.path.join(ROOT, "stress", "kvmtest.S")], check=True)
    return image


def ring0_test(accel, time_out=TIME_OUT):
    """Runs the test image; returns (worked, what happened)."""
    with tempfile.TemporaryDirectory() as directory:
        cmd = ["qemu-system-x86_64", "-accel", accel, "-cpu", "host" if accel == "kvm" else "max", "-m", "64M", "-display",
               "none", "-vga", "none", "-nic", "none", "-monitor", "none", "-serial", "none", "-no-reboot", "-device",
               "isa-debug-exit,iobase=0xf4,iosize=1", "-kernel", build_test(directory)]
        start = time.monotonic()
        try:
            done = subprocess.run(cmd, stdin=subprocess.DEVNULL, capture_output=True, timeout=time_out)
        except subprocess.TimeoutExpired:
            return False, "the ring-0 boot test did not end within %d s" % time_out
        if done.returncode != GOOD_STATUS:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            return False, "the ring-0 boot test ended with status %d%s" % (done.returncode, ": " + said[-1] if said else "")
        return True, "the ring-0 boot test took %.1f s" % (time.monotonic() - start)


def choose(wanted):
    """@wanted: auto, kvm or tcg.  Returns ("kvm" or "tcg", why)."""
    if wanted != "auto":
        return wanted, "ACCEL=" + wanted
    if not os.path.exists(DEVICE):
        return "tcg", "there is no " + DEVICE
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return "tcg", DEVICE + " is not ours to open"
    worked, what = ring0_test("kvm")
    return ("kvm" if worked else "tcg"), "KVM: " + what
