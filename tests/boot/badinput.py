# SPDX-License-Identifier: MIT
"""Boots that must not get far: each ends with one line that names the module, the rule and the value, and a clean stop.
Bad options do not end a boot: each is listed once, and defaults are used."""
import os
import re

import badkernel
import harness
from benchlib import machine

FATAL = re.compile(r"ptarmigan: fatal: .*")
TIME_OUT = 120
CONSOLE = "console=com1 com1=115200,8n1 "


def stops(name, files, options, strings, expect, mem="512M"):
    """A boot with module @strings whose only fatal line matches @expect."""
    def test():
        boot = machine.Boot(machine.hypervisor(files, (CONSOLE + options).strip(), strings, mem=mem), TIME_OUT,
                            log=harness.log_path(name)).run()
        lines = FATAL.findall(boot.text)
        if len(lines) != 1:
            return "%d fatal lines, expected one (%s)" % (len(lines), boot.reason or boot.shutdown or "QEMU ended")
        if not re.search(expect, lines[0]):
            return "%r does not match %r" % (lines[0], expect)
        if "panic" in boot.text:
            return "panic besides: " + lines[0]
        if boot.reason:
            return "the machine went on after: " + lines[0]
        if boot.shutdown != "guest-reset":         # the stop is a reboot, which -no-reboot turns into QEMU's end
            return "ended by %s, expected a reset" % boot.shutdown
        return None
    return name, test


def halts(name, files, expect):
    """With noreboot the machine stays, so that the line can be read."""
    def test():
        boot = machine.Boot(machine.hypervisor(files, CONSOLE + "noreboot", []), 20, log=harness.log_path(name)).run()
        lines = FATAL.findall(boot.text)
        if len(lines) != 1 or not re.search(expect, lines[0]):
            return "fatal lines: %r, expected one that matches %r" % (lines, expect)
        return "ended by %s in spite of noreboot" % boot.shutdown if boot.shutdown else None
    return name, test


def options(name, files, given, bad):
    """Boots with the options @given; every one in @bad is complained about once, nothing else is, and boot goes on (it
    ends for want of a module)."""
    def test():
        boot = machine.Boot(machine.hypervisor(files, CONSOLE + given, []), TIME_OUT, log=harness.log_path(name)).run()
        lines = re.findall(r"ptarmigan: option (\S+): (.*)", boot.text)
        words = [word for word, _ in lines]
        wrong = ["%s: listed %d times" % (w, words.count(w)) for w in dict.fromkeys(bad + words)
                 if words.count(w) != (w in bad)]
        if wrong:
            return "%d of %d options wrong, first %s" % (len(wrong), len(given.split()), wrong[0])
        empty = [word for word, rule in lines if not rule.strip()]
        if empty:
            return "no rule is named for " + " ".join(empty)
        return None if "ptarmigan: fatal: no module" in boot.text else "boot did not go on"
    return name, test


def tests(files):
    t = [stops("bad/no-module", files, "", [], r"no module"),
         halts("bad/no-module-noreboot", files, r"no module"),
         stops("bad/little-memory", files, "", [files.kernel, files.initrd], r"memory.*\d", mem="96M"),
         stops("bad/dom0-mem-too-small", files, "dom0_mem=8M", [files.kernel, files.initrd], r"dom0.*\d", mem="1G")]
    for name, path, expect in badkernel.make_all(files.kernel, os.path.join(harness.ROOT, "build", "bad")):
        t.append(stops("bad/" + name, files, "", [path], r"module 0 \(kernel\): .*(%s)" % expect))
    bad = ["frobnicate=7", "frobnicate", "smap=maybe", "pt_update=fast", "pt_update", "maxcpus=0", "maxcpus=1x", "com1=115201",
           "dom0_max_vcpus=99999999999999999999", "stats=xml", "loglvl=chatty", "numa=fake:0", "check=some", "check",
           "sched=best"]
    t.append(options("bad/options", files, " ".join(bad), bad))
    t.append(options("bad/options-good", files, "smap=off smep=off maxcpus=1 dom0_max_vcpus=2 dom0_mem=256M pt_update=ptwr "
                     "stats=json loglvl=all numa=on check=full placeholder", []))
    many = ["unknown-option-%02d=%d" % (i, i) for i in range(60)]
    t.append(options("bad/options-many", files, " ".join(many), many))
    t.append(options("bad/option-long", files, "y" * 300 + "=1", ["y" * 300 + "=1"]))
    return t
