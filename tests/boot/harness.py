# SPDX-License-Identifier: MIT
"""Runs boot tests, a few at a time: a test is a name and a function that returns why it failed, or None."""
import os
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOGS = os.path.join(ROOT, "build", "boot-logs")
sys.path.insert(0, os.path.join(ROOT, "stress"))


def log_path(name):
    return os.path.join(LOGS, name.replace("/", "-") + ".log")


def select(tests, only):
    """The tests whose name starts with one of @only (all, when that is empty).  A prefix that selects none is an error."""
    for prefix in only:
        if not any(name.startswith(prefix) for name, _ in tests):
            raise ValueError("--only %s: no test's name starts so; there are: %s" %
                             (prefix, " ".join(name for name, _ in tests)))
    return [t for t in tests if not only or any(t[0].startswith(p) for p in only)]


def _run_one(test):
    name, function = test
    try:
        return name, function()
    except Exception as error:                     # a broken test is a failed test
        return name, "%s: %s" % (type(error).__name__, error)


def run(tests, jobs):
    """Prints one line a test and the sum; returns the exit status."""
    failed = 0
    with ThreadPoolExecutor(jobs) as pool:
        for name, why in pool.map(_run_one, tests):
            failed += why is not None
            print("PASS %s" % name if why is None else "FAIL %s: %s (log: %s)" % (name, why, log_path(name)), flush=True)
    print("%d passed, %d failed" % (len(tests) - failed, failed))
    return 1 if failed else 0
