#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks every Spin model here.  A model names its cases in its first comment:

  run: clean -DX=1 ...               this configuration must complete its search without an error
  fault: BUG_X KIND [-DX=1 ...] text this seeded fault must be found; KIND is 'assertion' or 'end state' (somebody waits for ever);
                                     without options it runs in the first clean configuration

usage: run.py [MODEL ...]   (names without .pml; default: all)"""
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "..", "build", "model")
DEPTH, HASH_BITS, FAULT_HASH_BITS, MEMORY_MB, LIMIT_S = 4000000, 24, 20, 3000, 900


class Failure(Exception):
    pass


def command(argv, cwd):
    p = subprocess.run(argv, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S)
    if p.returncode:
        raise Failure("%s: status %d\n%s" % (argv[0], p.returncode, p.stdout[-1500:]))
    return p.stdout


def check(model, label, flags, stop_early):
    """Builds and runs one verifier, which stops at its first error.  Returns its output."""
    work = os.path.join(OUT, model, label)
    os.makedirs(work, exist_ok=True)
    for old in os.listdir(work):
        os.unlink(os.path.join(work, old))
    command(["spin"] + flags + ["-a", os.path.join(HERE, model + ".pml")], work)
    command(["gcc", "-O2" if not stop_early else "-O0", "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=%d" % MEMORY_MB, "-o", "pan", "pan.c"], work)
    return command(["./pan", "-m%d" % DEPTH, "-w%d" % (FAULT_HASH_BITS if stop_early else HASH_BITS)], work)


def number(pattern, out):
    m = re.search(pattern, out, re.M)
    if not m:
        raise Failure("the verifier printed no '%s'\n%s" % (pattern, out[-1500:]))
    return int(float(m.group(1)))


def complete(out):
    """Fails unless the whole state space was searched."""
    for bad in ("Search not completed", "max search depth too small", "out of memory", "reached -DMEMLIM", "Bit statespace"):
        if bad in out:
            raise Failure("search not complete: " + bad)
    if "Full statespace search for" not in out:
        raise Failure("not a full search\n" + out[-1500:])


def clean_case(model, label, flags):
    out = check(model, label, flags, False)
    if number(r"errors: (\d+)", out):
        raise Failure(out.split("\n")[0] + "  (trail in build/model/%s/%s)" % (model, label))
    complete(out)
    return "%d states" % number(r"^\s*([\d.e+]+) states, stored", out)


def fault_case(model, label, flags, kind):
    out = check(model, label, flags, True)
    if not number(r"errors: (\d+)", out):
        raise Failure("not found")
    said = "assertion violated" if kind == "assertion" else "invalid end state"
    if said not in out:
        raise Failure("expected '%s', got: %s" % (said, out.split("\n")[0]))
    return "found at depth %d" % number(r"\(at depth (\d+)\)", out)


def cases(model):
    head = open(os.path.join(HERE, model + ".pml")).read().split("*/")
    text = head[0] + head[1]
    clean = [m.split() for m in re.findall(r"^ \* run: clean(.*?)(?:\s*\*/)?$", text, re.M)]
    faults = re.findall(r"^ \* fault: (\w+)\s+(assertion|end state)((?:\s+-D\S+)*)", text, re.M)
    if not clean or len(faults) < 2:
        raise SystemExit("%s.pml names no cases" % model)
    for flags in clean:
        label = "clean" + "".join(f.replace("-D", "_").replace("=", "") for f in flags)
        yield label, lambda l=label, f=flags: clean_case(model, l, f)
    for name, kind, own in faults:
        flags = own.split() or clean[0]
        yield name, lambda l=name, f=flags + ["-D" + name], k=kind: fault_case(model, l, f, k)


def main():
    models = sys.argv[1:] or sorted(f[:-4] for f in os.listdir(HERE) if f.endswith(".pml"))
    passed = failed = 0
    for model in models:
        for label, run in cases(model):
            began = time.time()
            try:
                note, ok = run(), True
            except (Failure, subprocess.TimeoutExpired) as e:
                note, ok = str(e), False
            passed, failed = passed + ok, failed + (not ok)
            print("%s model/%s/%s: %s (%.1f s)" % ("PASS" if ok else "FAIL", model, label, note, time.time() - began), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
