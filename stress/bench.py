#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The comparison: every mode runs the same kernel, root and loads; modes alternate; raw samples are kept.

Environment: MODES, VCPUS, WORKLOADS, RUNS, OUT, KERNEL, ACCEL, PEERS (see docs/benchmarks.md)."""
import csv
import json
import os
import platform
import statistics
import subprocess
import sys
import time

import qemu
from qemu import ROOT, say

OWN = ("ptwr", "emulate")
PEERS = ("xen", "native")
WORKLOADS = ("dbench", "forkexec", "micro", "pte")
COUNTERS = ("tlb_shootdown", "tlb_ipi", "emul_and", "emul_xchg", "hc_mmu_update_entries", "pin", "type_up", "batch_commit",
            "ptwr_open", "ptwr_close", "ptwr_changed", "rcu_gp")


def fail(msg):
    say("bench: " + msg)
    sys.exit(2)


def words(name, default, allowed):
    value = os.environ.get(name, default).replace(",", " ").split()
    for w in value:
        if w not in allowed:
            fail("%s=%s: one of %s" % (name, w, " ".join(allowed)))
    return value


def numbers(name, default, low, high):
    out = []
    for w in os.environ.get(name, default).replace(",", " ").split():
        if not w.isdigit() or not low <= int(w) <= high:
            fail("%s=%s: a number from %d to %d" % (name, w, low, high))
        out.append(int(w))
    if not out:
        fail("%s: at least one number" % name)
    return out


def pick_accel():
    """KVM only when a ring-0 guest really boots with it; else TCG."""
    want = os.environ.get("ACCEL", "auto")
    if want not in ("auto", "tcg", "kvm"):
        fail("ACCEL=%s: one of auto tcg kvm" % want)
    if want == "kvm":
        return "kvm"
    if want == "auto" and os.path.exists("/dev/kvm"):
        b = qemu.run(["qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-m", "256M", "-nographic", "-no-reboot",
                      "-nic", "none", "-kernel", os.path.join(ROOT, "build", "ptarmigan"), "-append", "console=com1"], 20,
                     done=b"ptarmigan: fatal")
        if "ptarmigan: fatal: no module" in b.text:
            return "kvm"
    say("emulated: compare ratios, not times")
    return "tcg"


class Bench:
    def __init__(self):
        self.modes = words("MODES", "ptwr emulate", OWN)
        self.peers = words("PEERS", "", PEERS)
        self.vcpus = numbers("VCPUS", "1 2 4 8", 1, 64)
        self.work = words("WORKLOADS", " ".join(WORKLOADS), WORKLOADS)
        self.runs = numbers("RUNS", "1", 1, 100)[0]
        self.secs = numbers("SECS", "2", 1, 600)[0]
        self.out = os.path.abspath(os.environ.get("OUT", os.path.join(ROOT, "out")))
        self.accel = pick_accel()
        self.kernel = os.environ.get("KERNEL", os.path.join(ROOT, "build/guest/vmlinuz"))
        self.initrd = os.path.join(ROOT, "build/initramfs.cpio")
        self.xen = os.path.join(ROOT, "build/guest/xen")
        if not os.path.isfile(self.kernel):
            fail("KERNEL=%s: no such file" % self.kernel)
        if not self.modes and not self.peers:
            fail("MODES and PEERS are both empty: nothing to run")
        self.samples, self.counters, self.failed = [], {}, {}
        self.run_id = time.strftime("%Y%m%d-%H%M%S")

    def boot(self, mode, vcpus, work, icount, it):
        kargs = "ptbench.run=%s ptbench.clients=%d ptbench.secs=%d" % (":".join(work), vcpus, self.secs)
        accel = self.accel
        extra = []
        if icount:
            accel = "tcg"
            extra = ["-icount", "shift=0,sleep=off"]
        elif accel == "tcg":
            accel = "tcg,thread=multi"
        cmd = qemu.command(mode, vcpus, self.kernel, self.initrd, kargs, accel=accel, xen=self.xen, extra=extra)
        key = "%s-%s%d-%d" % (mode, "icount-" if icount else "", vcpus, it)
        say("  %s ..." % key)
        b = qemu.run(cmd, 900 if mode in PEERS or icount else 300, log=os.path.join(self.out, "logs", key + ".log"))
        why = b.problem()
        if why:
            self.failed[key] = why
            say("  %s FAILED: %s" % (key, why))
        for workload, metric, unit, better, value in b.results():
            if icount and workload == "pte":
                unit = "instructions/page"
            elif icount:
                unit, metric = "instructions", metric
            self.samples.append(dict(run_id=self.run_id, workload=workload, metric=metric, unit=unit, better=better, mode=mode,
                                     vcpus=vcpus, nodes=1, iter=it, value=value))
        stats = b.counters()
        if stats and "count" in work and len(stats) >= 1:
            ops = [l for l in b.lines("PTCOUNT end")]
            if ops:
                self.counters[key] = dict(stats[-1], ops=float(ops[0].split()[2]))
        elif stats:
            self.counters[key] = stats[-1]

    def all(self):
        timed = [w for w in self.work if w in ("dbench", "forkexec")]
        exact = [w for w in self.work if w in ("pte", "micro")]
        for it in range(self.runs):
            for n in self.vcpus:
                if timed:
                    for mode in self.modes + self.peers:
                        self.boot(mode, n, timed, False, it)
            if exact:
                for mode in self.modes + self.peers:
                    self.boot(mode, 1, exact, True, it)

    def median(self, workload, metric, mode, vcpus):
        v = [s["value"] for s in self.samples if (s["workload"], s["metric"], s["mode"], s["vcpus"]) ==
             (workload, metric, mode, vcpus)]
        return statistics.median(v) if v else None

    def table(self):
        cols = self.modes + self.peers
        out = ["guest %s, %s%s" % (os.path.basename(self.kernel), self.accel,
                                   ", emulated: compare ratios, not times" if self.accel == "tcg" else "")]

        def row(name, values, ratio):
            cells = ["%12s" % ("-" if v is None else "%.4g" % v if v < 1000 else "%.0f" % v) for v in values]
            r = "%8s" % ("-" if ratio is None else "%.2f" % ratio)
            out.append("%-22s%s%s" % (name, "".join(cells), r))

        metrics = []
        for s in self.samples:
            m = (s["workload"], s["metric"], s["unit"], s["better"])
            if m not in metrics:
                metrics.append(m)
        last = None
        for workload, metric, unit, better in metrics:
            exact = workload in ("pte", "micro")
            head = (workload,) if exact else (workload, metric)
            if head != last:
                title = "%s, %s" % (workload, unit) if exact else "%s %s, %s" % (workload, metric, unit)
                out.append("")
                out.append("%s (%s is better)" % (title, better))
                out.append("%-22s%s%8s" % ("operation" if exact else "vCPUs", "".join("%12s" % c for c in cols), "ratio"))
                last = head
            for n in ([1] if exact else self.vcpus):
                v = [self.median(workload, metric, c, n) for c in cols]
                a = self.median(workload, metric, "emulate", n)
                b = self.median(workload, metric, "ptwr", n)
                row(metric if exact else str(n), v, a / b if a and b else None)
        out.append("")
        out.append("ratio: emulate / ptwr")
        if self.counters:
            out.append("")
            out.append("hypervisor counters, whole boot")
            keys = list(self.counters)
            for k in keys:
                c = self.counters[k]
                out.append("%-16s " % k + "  ".join("%s %d" % (n, c[n]) for n in COUNTERS if c.get(n)))
        for k, why in self.failed.items():
            out.append("FAILED %s: %s" % (k, why))
        return "\n".join(out)

    def save(self):
        os.makedirs(self.out, exist_ok=True)
        qv = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True).stdout.splitlines()
        with open(os.path.join(self.out, "results.json"), "w") as f:
            json.dump(dict(schema=1, run_id=self.run_id, host=dict(machine=platform.machine(), kernel=platform.release(),
                           cpus=os.cpu_count(), qemu=qv[0] if qv else ""), accel=self.accel,
                           options=dict(modes=self.modes, peers=self.peers, vcpus=self.vcpus, workloads=self.work,
                                        runs=self.runs, secs=self.secs), guest_kernel=self.kernel, samples=self.samples,
                           counters=self.counters, failed=self.failed), f, indent=1)
        with open(os.path.join(self.out, "results.csv"), "w", newline="") as f:
            w = csv.DictWriter(f, "run_id workload metric unit better mode vcpus nodes iter value".split())
            w.writeheader()
            w.writerows(self.samples)


def main():
    b = Bench()
    b.all()
    b.save()
    print(b.table(), flush=True)
    say("results in " + b.out)
    sys.exit(1 if b.failed else 0)


if __name__ == "__main__":
    main()
