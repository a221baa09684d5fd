#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A long storm of forks, execs, maps and unmaps in a stock guest, under -icount, which ends with a clean audit and no more
page tables than it began with.

  storm.py [--minutes M] [--mode MODE] [--vcpus N] [--real]

--real: real threads instead of -icount."""
import argparse
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from benchlib import console, machine  # noqa: E402

AUDIT_KEY = b"\x14a"
BEGINS = re.compile(r"PTSTORM begins")
TABLES = re.compile(r"audit: (\d+) tables, \d+ frames given back, (\d+) of them still referenced")
SPARE = 64            # tables that the guest's kernel may have come to need for itself


class Storm(machine.Boot):
    """A boot that is audited when the storm begins, and whose storm is ended after @minutes."""

    def __init__(self, cmd, minutes, log):
        super().__init__(cmd, minutes * 60 + 1500, log=log)
        self.minutes, self.began, self.ended = minutes, None, None

    def _new_lines(self, qemu):
        event = super()._new_lines(qemu)
        now = time.monotonic()
        if self.began is None and BEGINS.search(self.text):
            self.began = now
            self._send(qemu, AUDIT_KEY)
        if self.began and not self.ended and now > self.began + self.minutes * 60:
            self.ended = now
            self._send(qemu, b"\n")
        return event


def trouble(boot):
    why = boot.problem() or console.audit(boot.text, least=2)
    if why:
        return why
    if not boot.ended:
        return "the storm was over before its time"
    tables = [(int(n), int(lost)) for n, lost in TABLES.findall(boot.text)]
    if tables[-1][0] > tables[0][0] + SPARE:
        return "%d page tables at the end, %d at the beginning" % (tables[-1][0], tables[0][0])
    if any(lost for _, lost in tables):
        return "frames were given back and are still referenced"
    results = {metric: value for _, metric, _, _, value in console.results(boot.text)}
    if not results.get("forks") or not results.get("maps"):
        return "the storm did nothing: %s" % results
    print("%d forks, %d maps; %d page tables at the beginning, %d at the end" %
          (results["forks"], results["maps"], tables[0][0], tables[-1][0]))
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--minutes", type=float, default=30)
    p.add_argument("--mode", default="emulate", choices=machine.OWN_MODES)
    p.add_argument("--vcpus", type=int, default=4)
    p.add_argument("--real", action="store_true")
    a = p.parse_args()
    name = "storm/%s/%d-vcpus" % (a.mode, a.vcpus)
    log = os.path.join(machine.ROOT, "build", "storm", "%s-%d.log" % (a.mode, a.vcpus))
    cmd = machine.guest(machine.Files(), a.mode, a.vcpus, "ptbench.run=storm", hv_args="check=full", icount=not a.real)
    boot = Storm(cmd, a.minutes, log).run()
    why = trouble(boot)
    print("FAIL %s: %s (log: %s)" % (name, why, log) if why else "PASS %s: %.1f minutes" % (name, (boot.ended - boot.began) / 60))
    print("0 passed, 1 failed" if why else "1 passed, 0 failed")
    return why is not None


if __name__ == "__main__":
    sys.exit(main())
