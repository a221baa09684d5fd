# SPDX-License-Identifier: MIT
"""The tables on standard output."""

# Operations whose hypervisor counters are shown, with what the table is called; the others are in results.json.
SHOWN_OPERATIONS = {
    "fork_exec": "fork+exec+exit, one client a vCPU",
    "fork_exec_1client": "fork+exec+exit, one client alone",
}
SHOWN_FROM = 0.05                   # counters below this many an operation are left out

TITLES = {
    ("forkexec", "ops/s"): "forkexec: operations per second, one client a vCPU",
    ("dbench", "MB/s"): "dbench: MB per second, by number of clients",
    ("micro", "ns"): "micro: nanoseconds per operation, on vCPU 0",
    ("micro", "instructions"): "micro: instructions per operation (-icount, 1 vCPU)",
    ("pte", "instructions/page"): "pte: instructions per page (-icount, 1 vCPU)",
}


def number(v):
    """Four significant digits, never an exponent."""
    if v is None:
        return "-"
    a = abs(v)
    return "%.0f" % v if a >= 1000 else "%.1f" % v if a >= 100 else "%.2f" % v if a >= 10 else "%.3f" % v if a >= 0.001 or not a \
        else "%.5f" % v


def gain(value, reference, better):
    """How many times better @value is than @reference."""
    if not value or not reference or value < 0 or reference < 0:
        return None
    return value / reference if better == "higher" else reference / value


class Tables:
    def __init__(self, store, options, failed):
        """@failed: set of (mode, vcpus, icount) that gave no trustworthy result."""
        self.store, self.options, self.failed = store, options, failed
        self.columns = options.columns
        # (heading, of which column, against which)
        self.ratios = [(head, a, b) for head, a, b in (("ratio", "emulate", "ptwr"), ("emul/xen", "emulate", "xen"),
                                                        ("ptwr/xen", "ptwr", "xen"), ("xen/nat", "xen", "native"))
                       if a in self.columns and b in self.columns]
        if not self.ratios and "emulate" in self.columns and "native" in self.columns:
            self.ratios = [("emul/nat", "emulate", "native")]

    def _row(self, label, vcpus, cells, ratios):
        return "%-26s %5s" % (label, vcpus) + "".join("%12s" % c for c in cells) + "".join("%10s" % r for r in ratios)

    def _metric(self, workload, metric, unit, better, vcpus, label):
        exact = unit.startswith("instructions")
        value = {c: self.store.median(workload, metric, unit, c, vcpus) for c in self.columns}
        cells = ["failed" if value[c] is None and (c, vcpus, exact) in self.failed else number(value[c]) for c in self.columns]
        ratios = []
        for _, a, b in self.ratios:
            g = gain(value[a], value[b], better)
            ratios.append("-" if g is None else "%.2f" % g)
        return self._row(label, vcpus, cells, ratios)

    def _workload(self, workload, unit, rows):
        better = rows[0][1]
        out = ["", "%s (%s is better)" % (TITLES.get((workload, unit), "%s: %s" % (workload, unit)), better),
               self._row("", "vCPUs", self.columns, [head for head, _, _ in self.ratios])]
        for metric, _ in rows:
            label = metric
            for vcpus in ([1] if unit.startswith("instructions") else self.options.vcpus):
                out.append(self._metric(workload, metric, unit, better, vcpus, label))
                label = ""
        return out

    def results(self):
        groups = {}
        for workload, metric, unit, better in self.store.metrics():
            if workload != "counters":
                groups.setdefault((workload, unit), []).append((metric, better))
        out = []
        for (workload, unit), rows in groups.items():
            out += self._workload(workload, unit, rows)
        if self.ratios:
            out += ["", "Ratios say how many times better the first is than the second (above 1: better)%s." %
                    ("; ratio: emulate against ptwr" if self.ratios[0][0] == "ratio" else "")]
        return out

    def counters(self):
        return [line for what, title in SHOWN_OPERATIONS.items() for line in self.counters_of(what, title)]

    def counters_of(self, what, title):
        """Counters an operation, one column a mode and vCPU count."""
        sums = {}                                       # (mode, vcpus) -> [operations, {counter: count}]
        for c in self.store.counters:
            if c["what"] == what and c["operations"]:
                total = sums.setdefault((c["mode"], c["vcpus"]), [0, {}])
                total[0] += c["operations"]
                for name, count in c["counts"].items():
                    total[1][name] = total[1].get(name, 0) + count
        columns = [(m, n) for m in self.columns for n in self.options.vcpus if (m, n) in sums]
        if not columns:
            return []
        names = list(dict.fromkeys(name for c in columns for name in sums[c][1]))
        out = ["", "Hypervisor counters per %s (mode/vCPUs; those under %g everywhere are left out)" % (title, SHOWN_FROM),
               "%-26s" % "" + "".join("%11s" % ("%s/%d" % (m[:7], n)) for m, n in columns)]
        for name in names:
            values = [sums[c][1].get(name, 0) / sums[c][0] for c in columns]
            if max(values) >= SHOWN_FROM:
                out.append("%-26s" % name + "".join("%11.2f" % v for v in values))
        return out
