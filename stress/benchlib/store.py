# SPDX-License-Identifier: MIT
"""What a bench keeps: samples, counters, boots, failures; written as OUT/results.json and OUT/results.csv."""
import csv
import hashlib
import json
import os
import platform
import statistics
import subprocess

SCHEMA = 1
COLUMNS = ("run_id", "workload", "metric", "unit", "better", "mode", "vcpus", "nodes", "iter", "value")


def _sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def file_facts(path):
    """Name, hash, and the Debian package it came from when that is known."""
    facts = {"file": path, "sha256": _sha256(path)}
    if os.path.exists(path + ".package"):
        with open(path + ".package") as f:
            facts["package"] = f.read().strip()
    return facts


def host_facts():
    model = ""
    try:
        with open("/proc/cpuinfo") as f:
            model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), "")
    except OSError:
        pass
    said = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True).stdout.splitlines()
    return {"machine": platform.machine(), "system": platform.system(), "release": platform.release(), "cpu": model,
            "cpus": len(os.sched_getaffinity(0)), "load_at_start": os.getloadavg()[0], "qemu": said[0] if said else "?"}


class Store:
    def __init__(self, run_id, facts):
        """@facts: what is known before the first boot, as a dict for results.json."""
        self.run_id, self.facts = run_id, facts
        self.samples, self.counters, self.boots, self.failures = [], [], [], []

    def sample(self, mode, vcpus, iteration, workload, metric, unit, better, value):
        self.samples.append(dict(run_id=self.run_id, workload=workload, metric=metric, unit=unit, better=better, mode=mode,
                                 vcpus=vcpus, nodes=1, iter=iteration, value=value))

    def counted(self, mode, vcpus, iteration, what, operations, counts):
        """Counters between two marks; each also becomes a sample an operation."""
        self.counters.append(dict(mode=mode, vcpus=vcpus, iter=iteration, what=what, operations=operations, counts=counts))
        if operations:
            for name, count in counts.items():
                self.sample(mode, vcpus, iteration, "counters", "%s.%s" % (what, name), "per operation", "none",
                            count / operations)

    def values(self, workload, metric, unit, mode, vcpus):
        key = (workload, metric, unit, mode, vcpus)
        return [s["value"] for s in self.samples if (s["workload"], s["metric"], s["unit"], s["mode"], s["vcpus"]) == key]

    def median(self, *key):
        values = self.values(*key)
        return statistics.median(values) if values else None

    def metrics(self):
        """Every (workload, metric, unit, better) seen, in the order of measurement."""
        return list(dict.fromkeys((s["workload"], s["metric"], s["unit"], s["better"]) for s in self.samples))

    def write(self, out):
        with open(os.path.join(out, "results.json"), "w") as f:
            json.dump(dict(schema=SCHEMA, run_id=self.run_id, **self.facts, boots=self.boots, failures=self.failures,
                           counters=self.counters, samples=self.samples), f, indent=1)
            f.write("\n")
        with open(os.path.join(out, "results.csv"), "w", newline="") as f:
            rows = csv.DictWriter(f, COLUMNS)
            rows.writeheader()
            rows.writerows(self.samples)
