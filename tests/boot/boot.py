#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Boot tests: a stock kernel in both modes on many shapes of machine, and (badinput.py) all that a loader can be given wrong.

  boot.py [--quick] [--only PREFIX]... [--jobs N] [--image FILE] [--list] [--selftest]

--quick leaves out the machine's shapes; --selftest tries the harness itself on what needs no hypervisor of ours: the same
guest without one, and boots that must be seen to fail.  JOBS and KERNEL are taken from the environment too."""
import argparse
import os
import re
import sys

import harness
import badinput
from benchlib import console, machine

TIME_OUT = 400                                     # generous: a slow or busy host is no failure
LOAD = "forkexec:dbench"
EXPECTED = {"forkexec": {"fork_exit", "fork_exec", "fork_sh"}, "dbench": None, "micro": {"null_call", "fork_exit"}, "idle": set()}


def results_problem(text, run):
    """Every workload of @run has its results, and each is above zero: a load that did no work is no load."""
    got = {}
    for workload, metric, _, _, value in console.results(text):
        got.setdefault(workload, {})[metric] = value
    for workload in run.split(":"):
        want = EXPECTED[workload]
        have = got.get(workload, {})
        if (want is None and not have) or (want and not want <= set(have)):
            return "%s gave only %s" % (workload, " ".join(have) or "nothing")
        zero = [m for m, v in have.items() if not v > 0]
        if zero:
            return "%s %s is not above zero" % (workload, zero[0])
    return None


def counters_problem(text, mode):
    dumps = console.counters(text)
    if not dumps:
        return "no counters at shutdown"
    opened = dumps[-1].get("ptwr_open")
    if opened is None:
        return "no counter ptwr_open"
    if bool(opened) != (mode == "ptwr"):
        return "%d page tables were made writable in mode %s" % (opened, mode)
    return None


def memory_problem(text):
    """The hypervisor says what it keeps of the machine's memory: at most 2 %."""
    own = re.search(r"^\(PT\) hypervisor: \d+ KiB, (\d+\.\d\d) % of RAM", text, re.M)
    if not own:
        return "no line about the hypervisor's memory"
    return "the hypervisor keeps %s %% of RAM, more than 2" % own.group(1) if float(own.group(1)) > 2 else None


def boots(name, files, mode, vcpus, run=LOAD, clients=None, least_mib=None, complaint=None, hv_args="", **machine_args):
    """A boot to userspace, a short load, no kernel warning, a clean power-off and a clean audit.  @least_mib: memory that
    the guest must see; @complaint: the one option that the hypervisor complains about."""
    own = "check=full " if mode in machine.OWN_MODES else ""
    args = "ptbench.run=%s ptbench.secs=5 ptbench.clients=%d" % (run, clients or vcpus)

    def test():
        boot = machine.Boot(machine.guest(files, mode, vcpus, args, hv_args=own + hv_args, **machine_args), TIME_OUT,
                            log=harness.log_path(name)).run()
        facts = console.begin(boot.text)
        why = boot.problem() or results_problem(boot.text, run)
        if why:
            return why
        if facts.get("cpus") != str(vcpus):
            return "the guest has %s CPUs, not %d" % (facts.get("cpus"), vcpus)
        if least_mib and int(facts["mem"]) < least_mib * 1024:
            return "the guest sees %s KiB of memory, less than %d MiB" % (facts["mem"], least_mib)
        complaints = re.findall(r"ptarmigan: option (\S+): ", boot.text)
        if complaints != ([complaint] if complaint else []):
            return "the hypervisor complained about %s, expected %s" % (" ".join(complaints) or "nothing", complaint or "nothing")
        if mode not in machine.OWN_MODES:
            return None
        return memory_problem(boot.text) or counters_problem(boot.text, mode) or console.audit(boot.text)
    return name, test


def matrix(files, quick):
    t = [boots("boot/%s/%d" % (mode, n), files, mode, n) for n in (1, 2, 4, 8) for mode in machine.OWN_MODES]
    t += [boots("boot/%s/32-on-2" % mode, files, mode, 32, run="idle", cpus=2, mem="3G") for mode in machine.OWN_MODES]
    t.append(boots("boot/emulate/bad-option", files, "emulate", 1, run="idle", hv_args="dom0_mem=lots", complaint="dom0_mem=lots"))
    if quick:
        return t
    for mode in machine.OWN_MODES:
        t += [
            boots("boot/%s/3" % mode, files, mode, 3, clients=2),
            boots("boot/%s/4-on-2" % mode, files, mode, 4, cpus=2, clients=2),
            boots("boot/%s/512M" % mode, files, mode, 1, mem="512M", least_mib=380),
            boots("boot/%s/8G" % mode, files, mode, 2, mem="8G", least_mib=7300),
            boots("boot/%s/dom0-mem" % mode, files, mode, 1, hv_args="dom0_mem=700M", least_mib=600),
            boots("boot/%s/smap-option" % mode, files, mode, 1, hv_args="smap=off smep=off"),
            boots("boot/%s/micro" % mode, files, mode, 1, run="micro"),
        ]
        for model in ("max,smap=off", "qemu64", "EPYC", "Skylake-Server"):
            t.append(boots("boot/%s/cpu-%s" % (mode, model.replace(",", "-").replace("=", "-")), files, mode, 1, cpu=model))
    return t


def fails(name, test, expect):
    """The harness must see @test fail, for a reason that has @expect in it."""
    def check():
        why = test[1]()
        if why is None:
            return "passed, but must fail"
        return None if expect in why else "failed for another reason than %r: %s" % (expect, why)
    return name, check


def selftest(files):
    """The harness on a guest without a hypervisor; with Xen too when its image is there."""
    quick = dict(run="idle")
    t = [boots("self/native/2", files, "native", 2),
         fails("self/no-such-workload", boots("self/run-nothing", files, "native", 1, run="idle:nothing"), "nothing"),
         fails("self/wrong-root", boots("self/panic", machine.Files(kernel=files.kernel, initrd=files.kernel), "native", 1, **quick),
               "Kernel panic"),
         fails("self/memory", boots("self/1G", files, "native", 1, mem="1G", least_mib=2000, **quick), "less than"),
         fails("self/no-image", badinput.stops("self/not-ptarmigan", machine.Files(image=files.kernel), "", [], "x"), "0 fatal lines")]
    if os.path.isfile(files.xen):
        t.append(boots("self/xen/2", files, "xen", 2, **quick))
    return t


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--quick", action="store_true")
    p.add_argument("--only", action="append", default=[], metavar="PREFIX")
    p.add_argument("--jobs", type=int, default=int(os.environ.get("JOBS") or 2))
    p.add_argument("--image")
    p.add_argument("--list", action="store_true")
    p.add_argument("--selftest", action="store_true")
    args = p.parse_args()
    files = machine.Files(image=args.image, kernel=os.environ.get("KERNEL") or None)
    for path, maker in files.needed("native" if args.selftest else "emulate"):
        if not os.path.isfile(path):
            p.error("%s is missing; %s makes it" % (path, maker))
    try:
        tests = harness.select(selftest(files) if args.selftest else badinput.tests(files) + matrix(files, args.quick), args.only)
    except ValueError as bad:
        p.error(str(bad))
    if args.list:
        print("\n".join(name for name, _ in tests))
        return 0
    return harness.run(tests, max(1, args.jobs))


if __name__ == "__main__":
    sys.exit(main())
