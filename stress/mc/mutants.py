#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The mutation gate: applies each fault of mutants/*.mut to a copy of mm-lockfree/, builds the checker with it and runs
it until it finds a violation.  Fails when a fault does not apply exactly once or survives."""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))


class Mutant:
    def __init__(self, name, file):
        self.name, self.file, self.why, self.hunks = name, file, "", []

    def apply(self, text):
        """The faulty source, or raises ValueError."""
        for old, new in self.hunks:
            old, new = "\n".join(old), "\n".join(new)
            if text.count(old) != 1:
                raise ValueError("applies %d times: %s" % (text.count(old), old.split("\n")[0].strip()))
            text = text.replace(old, new)
        return text


def load(path):
    found = []
    for line in open(path).read().split("\n"):
        if line.startswith("@ "):
            found.append(Mutant(*line[2:].split()))
        elif line.startswith("#") and found:
            found[-1].why += line[1:].strip()
        elif line.startswith("-"):
            if not found[-1].hunks or found[-1].hunks[-1][1]:
                found[-1].hunks.append(([], []))
            found[-1].hunks[-1][0].append(line[1:])
        elif line.startswith("+"):
            found[-1].hunks[-1][1].append(line[1:])
    return found


def build(m, out):
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    shutil.copytree(os.path.join(TOP, "mm-lockfree"), os.path.join(out, "mm-lockfree"))
    path = os.path.join(out, "mm-lockfree", m.file)
    text = m.apply(open(path).read())
    open(path, "w").write(text)
    env = dict(os.environ, MC_ONLY="" if m.file.endswith(".h") else m.file, MC_BASE=os.path.join(TOP, "build/mc"),
               MC_CFLAGS="-Wno-error -w")
    p = subprocess.run([os.path.join(HERE, "build.sh"), out, os.path.join(out, "mc")], env=env, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True)
    if p.returncode:
        raise ValueError("does not compile:\n" + p.stdout)


def kill(m, steps):
    """(killed, text)"""
    out = os.path.join(TOP, "build/mc/mutants", m.name)
    try:
        build(m, out)
    except ValueError as e:
        return False, "%s: %s" % (m.file, e)
    p = subprocess.run([os.path.join(out, "mc"), "--first", "--steps", str(steps)], stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True)
    shutil.rmtree(out, ignore_errors=True)
    found = re.search(r"VIOLATION in (\S+) after (\d+) steps: (.*)", p.stdout)
    if found:
        return True, "killed by %s after %s steps: %s" % found.groups()
    if "while building the world" in p.stdout or p.returncode < 0:
        return True, "killed at once: " + (p.stdout.strip().split("\n")[-1] or "signal %d" % -p.returncode)
    return False, "%s: SURVIVED %s (%s)" % (m.file, m.why, p.stdout.strip().split("\n")[-1])


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--steps", type=int, default=300000000, help="at most, for each")
    a.add_argument("--every", type=int, default=1, help="only each n-th, for a short run")
    a.add_argument("--jobs", type=int, default=2)
    a.add_argument("names", nargs="*")
    a = a.parse_args()
    all_of_them = []
    for f in sorted(os.listdir(os.path.join(HERE, "mutants"))):
        all_of_them += load(os.path.join(HERE, "mutants", f))
    chosen = [m for m in all_of_them if m.name in a.names] if a.names else all_of_them[::a.every]
    names = [m.name for m in all_of_them]
    for n in set(names):
        if names.count(n) > 1:
            sys.exit("mutants: %s appears twice" % n)
    killed = 0
    # What is not run is at least applied: a fault that no longer fits is an error even in a short run.
    for m in all_of_them:
        if m not in chosen and not a.names:
            try:
                m.apply(open(os.path.join(TOP, "mm-lockfree", m.file)).read())
            except ValueError as e:
                sys.exit("FAIL %s: %s: %s" % (m.name, m.file, e))
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for m, (ok, text) in zip(chosen, pool.map(lambda m: kill(m, a.steps), chosen)):
            killed += ok
            print("%s %-22s %s" % ("PASS" if ok else "FAIL", m.name, text), flush=True)
    print("mutants killed: %d/%d" % (killed, len(chosen)))
    print("%d passed, %d failed" % (killed, len(chosen) - killed))
    sys.exit(killed != len(chosen))


main()
