#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the test guest on the hypervisor in both page-table-update modes, and each way to crash it in its own boot."""
import argparse
import os
import re
import subprocess
import sys
import threading
import time

AUDIT_KEY = b"\x14a"                             # the hypervisor's console key, then one the guest waits for
GO_ON = b"g"

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "stress"))

from benchlib import console  # noqa: E402

# name: what the hypervisor's line about the crash says; modes where it applies
CRASHES = [
    ("iret_no_user", "without a user page table", None),
    ("stack_unmapped", "cannot write a bounce frame", None),
    ("stack_hypervisor", "cannot write a bounce frame", None),
    ("stack_noncanonical", "cannot write a bounce frame", None),
    ("stack_m2p", "cannot write a bounce frame", None),
    ("stack_read_only", "cannot write a bounce frame", None),
    ("stack_page_table", "cannot write a bounce frame", None),
    ("kernel_stack_hypervisor", "cannot write a bounce frame", None),
    ("kernel_stack_noncanonical", "cannot write a bounce frame", None),
    ("kernel_stack_zero", "cannot write a bounce frame", None),
    ("kernel_stack_user_only", "cannot write a bounce frame", None),
    ("no_handler", "no handler for exception 6", None),
    ("no_gp_handler", "no handler for exception 13", None),
    ("iret_unmapped", "iret frame .* cannot be read", None),
    ("iret_hypervisor", "iret frame .* cannot be read", None),
    ("iret_noncanonical", "iret frame .* cannot be read", None),
    ("iret_top", "iret frame .* cannot be read", None),
    ("no_event_callback", "no event callback", None),
    ("say_crash", None, None),
    ("crash_of_two", "vCPU 0: cannot write a bounce frame", None),
    ("crash_of_vcpu1", "vCPU 1: cannot write a bounce frame", None),
    ("crash_while_busy", "vCPU 0: cannot write a bounce frame", None),
    ("ptwr_bad_entry", "entry that is not acceptable", "ptwr"),
    ("ptwr_1a8bbf93_copy_to_bad_entry", "entry that is not acceptable", "ptwr"),
    ("ptwr_1a8bbf93_copy_from_bad_entry", "entry that is not acceptable", "ptwr"),
    ("ptwr_bad_entry_used", "entry that is not acceptable", "ptwr"),
    ("ptwr_bad_entry_other", "entry that is not acceptable", "ptwr"),
]
# What is worth repeating with more than two vCPUs: the tests, and the crashes and ends.
MANY_TESTS = "only=xsa*:race*:ptwr*:open*:audit*:work*"
MANY_ENDS = {"crash_of_two", "crash_of_vcpu1", "crash_while_busy", "end_while_busy", "ptwr_bad_entry_other",
             "ptwr_ed80a0a1_end_while_open"}

# Ways to end well in the middle of something: name; modes where it applies
ENDS = [
    ("end_while_busy", None),
    ("ptwr_ed80a0a1_end_while_open", "ptwr"),
]


class Boot:
    """One boot: the console's text, and why it ended if not by itself."""

    def __init__(self, opt, mode, vcpus, guest_args, log):
        options = "console=com1 com1=115200,8n1 dom0_max_vcpus=%d stats=json check=full pt_update=%s" % (vcpus, mode)
        if getattr(opt, "icount", False):
            options += " pv-l1tf"
        accel = ["tcg,thread=single", "-icount", "shift=0,sleep=off"] if getattr(opt, "icount", False) else ["tcg,thread=multi"]
        cmd = ["qemu-system-x86_64", "-accel", *accel, "-cpu", "max", "-smp", str(opt.cpus or vcpus),
               "-m", "512M", "-nographic", "-no-reboot", "-nic", "none", "-kernel", opt.image, "-append", options,
               "-initrd", "%s %s" % (opt.guest, guest_args)]
        start = time.time()
        self.timed_out = False
        self.keys = 0
        p = subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
        timer = threading.Timer(opt.timeout, self.kill, (p,))
        timer.start()
        out = b"".join(self.watched(p))
        p.wait()
        timer.cancel()
        self.seconds = time.time() - start
        self.text = out.decode("latin-1").replace("\r", "")
        self.lines = self.text.split("\n")
        os.makedirs(os.path.dirname(log), exist_ok=True)
        with open(log, "w", encoding="latin-1") as f:
            f.write(self.text)

    def kill(self, p):
        self.timed_out = True
        p.kill()

    def watched(self, p):
        """The console's lines; presses the audit's key when the guest asks for it."""
        for line in p.stdout:
            if line.startswith(b"KEY audit"):
                self.keys += 1
                p.stdin.write(AUDIT_KEY + GO_ON)
            yield line

    def broken(self):
        """Why this boot is wrong whatever it tested; or None."""
        for i, line in enumerate(self.lines):
            if line.startswith("(PT) panic") or "ptarmigan: fatal" in line:
                return "hypervisor: " + " ".join(l.replace("(PT) ", "") for l in self.lines[i:i + 2])
        if self.timed_out:
            return "no end within %.0f s" % self.seconds
        return console.audit(self.text, 1 + self.keys)


class Results:
    def __init__(self):
        self.passed = self.failed = 0

    def add(self, name, why):
        if why:
            self.failed += 1
        else:
            self.passed += 1
        print("FAIL guest/%s: %s" % (name, why) if why else "PASS guest/%s" % name, flush=True)


def place(mode, vcpus):
    """The first part of a test's name."""
    return mode if vcpus == 2 else "%s-%d-vcpus" % (mode, vcpus)


def run_tests(opt, mode, vcpus, res):
    """Boots until every test was tried: one that takes the machine down costs its own result and a boot."""
    chosen = opt.args or (MANY_TESTS if vcpus > 2 else "")
    args, where = chosen, place(mode, vcpus)
    for n in range(20):
        b = Boot(opt, mode, vcpus, args, os.path.join(opt.logs, "%s-%d.log" % (where, n)))
        running = None
        for line in b.lines:
            m = re.match(r"RUN (\S+)", line)
            if m:
                running = m.group(1)
            m = re.match(r"TEST (\S+) (PASS|FAIL ?)(.*)", line)
            if m:
                res.add("%s/%s" % (where, m.group(1)), m.group(3) or "no reason" if m.group(2) != "PASS" else None)
                running = None
        why = b.broken()
        crash = [l for l in b.lines if "domain 0 crashed" in l]
        if not why and crash:
            why = crash[0].replace("(PT) ", "")
        ended = re.search(r"^\d+ passed, \d+ failed$", b.text, re.M)
        if ended and not why and "domain 0 shut down: poweroff" in b.text:
            if not chosen:
                opened = re.search(r'"ptwr_open": (\d+)', b.text)
                count = int(opened.group(1)) if opened else -1
                res.add("%s/mode_in_effect" % mode, None if (count > 0) == (mode == "ptwr") and count >= 0 else
                        "counter ptwr_open is %d" % count)
            return
        res.add("%s/%s" % (where, running or "boot"), why or "the guest did not end properly")
        if not running:
            return
        args = chosen + " after=" + running


def wanted(opt, mode, vcpus, name, only_mode):
    return only_mode in (None, mode) and opt.only in (None, name) and (vcpus == 2 or name in MANY_ENDS)


def run_crashes(opt, mode, vcpus, res):
    where = place(mode, vcpus)
    for name, expect, only_mode in CRASHES:
        if not wanted(opt, mode, vcpus, name, only_mode):
            continue
        b = Boot(opt, mode, vcpus, "crash=" + name, os.path.join(opt.logs, "%s-crash-%s.log" % (where, name)))
        why = b.broken()
        crashed = [l for l in b.lines if "domain 0 crashed" in l]
        if why:
            pass
        elif "CRASH " + name not in b.lines:
            why = "the guest did not get that far"
        elif "SURVIVED " + name in b.lines:
            why = "the guest survived"
        elif expect and (len(crashed) != 1 or not re.search(expect, crashed[0])):
            why = "expected one line with '%s', got %s" % (expect, crashed)
        elif "domain 0 shut down: crash" not in b.text:
            why = "the domain was not shut down as crashed"
        res.add("%s/crash/%s" % (where, name), why)


def run_ends(opt, mode, vcpus, res):
    where = place(mode, vcpus)
    for name, only_mode in ENDS:
        if not wanted(opt, mode, vcpus, name, only_mode):
            continue
        b = Boot(opt, mode, vcpus, "crash=" + name, os.path.join(opt.logs, "%s-end-%s.log" % (where, name)))
        why = b.broken()
        if not why and ("CRASH " + name not in b.lines or "domain 0 shut down: poweroff" not in b.text):
            why = "the guest did not end properly"
        res.add("%s/end/%s" % (where, name), why)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--image", default=os.path.join(ROOT, "build/ptarmigan"))
    p.add_argument("--guest", default=os.path.join(ROOT, "build/tests/guest.elf"))
    p.add_argument("--logs", default=os.path.join(ROOT, "build/guest-logs"))
    p.add_argument("--modes", default="emulate,ptwr")
    p.add_argument("--cpus", type=int, help="of the machine; default one a vCPU")
    p.add_argument("--vcpus", default="2,4", help="2 runs everything, more only what is about several vCPUs")
    p.add_argument("--timeout", type=float, default=300, help="seconds a boot may take")
    p.add_argument("--args", default="", help="options of the guest: only=<test> or only=<prefix>*:<name>, rounds=<n>")
    p.add_argument("--only", help="one crash")
    p.add_argument("--no-crashes", action="store_true")
    p.add_argument("--no-build", action="store_true")
    opt = p.parse_args()

    if not opt.no_build:
        subprocess.run([os.path.join(HERE, "build.sh"), opt.guest], check=True)
    res = Results()
    if not opt.args and not opt.only:
        opt.icount, opt.args = True, "icount=1 l1tf=1 only=work_interrupted:work_latency:xsa273*"    # an interrupt's delay in instructions
        for mode in opt.modes.split(","):
            run_tests(opt, mode, 1, res)
        opt.icount, opt.args = False, ""
    for vcpus in map(int, opt.vcpus.split(",")):
        for mode in opt.modes.split(","):
            if not opt.only:
                run_tests(opt, mode, vcpus, res)
            if not opt.no_crashes:
                run_crashes(opt, mode, vcpus, res)
                run_ends(opt, mode, vcpus, res)
    print("%d passed, %d failed" % (res.passed, res.failed))
    return 1 if res.failed or not res.passed else 0


if __name__ == "__main__":
    sys.exit(main())
