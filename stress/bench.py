#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The bench: the same kernel, root and loads in both page-table-update modes (and under Xen or without a hypervisor).

Environment (each with its default):
  MODES="ptwr emulate"  VCPUS="1 2 4 8"  WORKLOADS="dbench forkexec micro pte"  RUNS=1  OUT=out
  PEERS=""       any of xen, native: the same guest there, in the same alternation
  KERNEL=""      a bzImage; empty: the Debian kernel that stress/fetch.sh got
  ACCEL=auto     kvm, tcg, or auto: KVM only after a ring-0 boot test
  CLIENTS="1 2 4 8"  dbench's clients     SECS=2  seconds of each timed part     TIMEOUT=300  seconds a boot may take
  IMAGE=""       a hypervisor image; empty: build/ptarmigan

The tables go to standard output, progress to standard error, results.json, results.csv and logs/ to OUT.
Exit status: 0, 1 when a boot failed, 2 for a bad variable or a missing file."""
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from benchlib import accel, console, machine, plot, report, store
from benchlib.options import BadOption, Options

TIMED = ("forkexec", "dbench", "micro")      # by the clock, at each vCPU count
EXACT = ("pte", "micro")                     # by instructions, with one vCPU
# TCG counts each byte of a REP STOSB as an instruction; without ERMS the kernel clears pages by 8 bytes.
EXACT_CPU = "max,-erms,-fsrm"


def say(*args):
    print(*args, file=sys.stderr, flush=True)


class Bench:
    def __init__(self, options, files, accelerator, keep):
        self.options, self.files, self.accel, self.store = options, files, accelerator, keep
        self.failed = set()
        self.start = time.monotonic()

    def boot(self, mode, vcpus, iteration, icount):
        """One boot; its results go to the store only when all of it went well."""
        work = [w for w in (EXACT if icount else TIMED) if w in self.options.workloads]
        own = mode in machine.OWN_MODES
        args = "ptbench.run=%s ptbench.secs=%d ptbench.clients=%s ptbench.marks=1%s" % (
            ":".join(work), self.options.secs, ":".join(map(str, self.options.clients)), " ptbench.icount=1" if icount else "")
        cpu = None
        if icount:
            cpu = EXACT_CPU + (",smap=off" if mode == "xen" else "")
        name = "%s-%s-%d" % (mode, "icount" if icount else "%dvcpus" % vcpus, iteration)
        log = os.path.join(self.options.out, "logs", name + ".log")
        # The peers are slow where it hurts, and -icount runs one thread only.
        limit = self.options.timeout * (1 if own and not icount else 4)
        boot = machine.Boot(machine.guest(self.files, mode, vcpus, args, accel=self.accel, icount=icount, cpu=cpu), limit,
                            log=log, with_counters=own).run()
        problem = boot.problem() or self.missing(boot, work)
        say("%5d s  %-8s %s %s" % (time.monotonic() - self.start, mode, "icount " if icount else "%2d vCPUs" % vcpus,
                                   "FAILED: %s (%s)" % (problem, log) if problem else "%.0f s" % boot.seconds))
        facts = console.begin(boot.text)
        self.store.boots.append(dict(mode=mode, vcpus=vcpus, iter=iteration, icount=icount, seconds=round(boot.seconds, 2),
                                     guest=facts, command=boot.cmd, log=log, failed=problem))
        if problem:
            self.failed.add((mode, vcpus, icount))
            self.store.failures.append(dict(mode=mode, vcpus=vcpus, iter=iteration, icount=icount, reason=problem, log=log))
            return
        for result in console.results(boot.text):
            self.store.sample(mode, vcpus, iteration, *result)
        if not icount:
            self.store.sample(mode, vcpus, iteration, "boot", "kernel_to_userspace", "s", "lower", float(facts["uptime"]))
            for what, operations, counts in boot.counted:
                self.store.counted(mode, vcpus, iteration, what, operations, counts)

    @staticmethod
    def missing(boot, work):
        seen = {r[0] for r in console.results(boot.text)}
        gone = [w for w in work if w not in seen]
        return "no results of " + ", ".join(gone) if gone else None

    def run(self):
        columns, workloads = self.options.columns, self.options.workloads
        if any(w in workloads for w in TIMED):
            for iteration in range(self.options.runs):
                for vcpus in self.options.vcpus:
                    for mode in columns:
                        self.boot(mode, vcpus, iteration, False)
        if any(w in workloads for w in EXACT):
            # Instructions do not hang on what else the host does: these may run beside each other.
            with ThreadPoolExecutor(max(1, min(len(columns), len(os.sched_getaffinity(0))))) as pool:
                for done in [pool.submit(self.boot, mode, 1, 0, True) for mode in columns]:
                    done.result()


def main():
    try:
        options = Options(os.environ)
    except BadOption as bad:
        say("bench: %s" % bad)
        return 2
    files = machine.Files(image=options.image, kernel=options.kernel)
    for mode in options.columns:
        for path, maker in files.needed(mode):
            if not os.path.isfile(path):
                say("bench: %s is missing; %s makes it" % (path, maker))
                return 2
    accelerator, why = accel.choose(options.accel)
    headline = "KVM" if accelerator == "kvm" else "emulated: compare ratios, not times"
    say("%s (%s)" % (headline, why))
    load = os.getloadavg()[0]
    if load > 0.3 * len(os.sched_getaffinity(0)):
        say("the host is busy (load %.1f): results by the clock will not be worth much" % load)
    os.makedirs(options.out, exist_ok=True)
    facts = dict(started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), host=store.host_facts(), options=options.as_dict(),
                 accel=dict(kind=accelerator, why=why), guest=store.file_facts(files.kernel),
                 hypervisor=store.file_facts(files.image) if options.modes else None)
    keep = store.Store(time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()), facts)
    bench = Bench(options, files, accelerator, keep)
    try:
        bench.run()
    finally:
        keep.facts["seconds"] = round(time.monotonic() - bench.start, 1)
        keep.write(options.out)
    kernel = next((b["guest"]["kernel"] for b in keep.boots if "kernel" in b["guest"]), os.path.basename(files.kernel))
    host = facts["host"]
    print("Guest Linux %s; %s on %d CPUs; %s; %d run%s" %
          (kernel, host["qemu"].split(" (")[0], host["cpus"], headline, options.runs, "" if options.runs == 1 else "s, medians"))
    tables = report.Tables(keep, options, bench.failed)
    print("\n".join(tables.results() + tables.counters()))
    for failure in keep.failures:
        print("failed: %s, %d vCPUs%s: %s (%s)" % (failure["mode"], failure["vcpus"], ", icount" if failure["icount"] else "",
                                                   failure["reason"], failure["log"]))
    sys.stdout.flush()
    picture = plot.plot(keep, options, options.out)
    say("%.0f s; results in %s%s" % (keep.facts["seconds"], options.out, " (and " + os.path.basename(picture) + ")" if picture else ""))
    return 1 if keep.failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("bench: interrupted")
        sys.exit(130)
