# SPDX-License-Identifier: MIT
"""What a serial console said: the lines that guest programs and hypervisors print for programs to read.

Other text may stand before a line's first word (a terminal's control codes, a half-written line), so lines are searched."""
import json
import re

RESULT = re.compile(r"PTRES (\S+) (\S+) (\S+) (higher|lower) (\S+)\s*$", re.M)
BEGIN = re.compile(r"PTBEGIN (.*)")
FAIL = re.compile(r"PTFAIL (.*)")
WARN = re.compile(r"PTWARN (\d+)")
LOG = re.compile(r"PTLOG (.*)")
MARK = re.compile(r"PTMARK (\S+) (\d+)")
STATS = re.compile(r"PTSTATS (\{[^{}]*\})")
END = re.compile(r"PTEND\s")
AUDIT_LINE = re.compile(r"audit: (?!\d+ frames)(.*)")
AUDIT_CLEAN = re.compile(r"audit: \d+ frames, clean")

# The end of a guest or of a hypervisor: (pattern, what to say).
DEADLY = [
    (re.compile(r"ptarmigan: fatal: .*"), "{}"),
    (re.compile(r"panic on CPU \d+:\s*(?:\(PT\) )?.*"), "hypervisor {}"),
    (re.compile(r"Panic on CPU \d+:.*"), "Xen {}"),
    (re.compile(r"\bdomain \d+ crashed.*"), "{}"),
    (re.compile(r"Kernel panic - not syncing.*"), "guest: {}"),
    (re.compile(r"Hardware Dom0 crashed.*"), "Xen: {}"),
]

# What a guest kernel must not print, also looked for in the console's text: dmesg is not reached in every boot.
WARNING = re.compile(
    r"^.*(?:WARNING: CPU|BUG: |kernel BUG|Oops|multicall\(s\) failed|detected stall|self-detected stall|soft lockup|"
    r"general protection|blocked for more than|Out of memory).*$", re.M)


def decode(raw):
    return raw.decode("utf-8", "replace").replace("\r", "")


def results(text):
    """[(workload, metric, unit, better, value)]"""
    out = []
    for workload, metric, unit, better, value in RESULT.findall(text):
        try:
            out.append((workload, metric, unit, better, float(value)))
        except ValueError:
            pass                                    # torn by another writer; the missing metric is noticed later
    return out


def begin(text):
    """The guest's facts, as a dict of strings; empty when userspace was not reached."""
    found = BEGIN.search(text)
    return dict(w.split("=", 1) for w in found.group(1).split() if "=" in w) if found else {}


def counters(text):
    """All complete counter dumps, in order."""
    out = []
    for found in STATS.findall(text):
        try:
            out.append(json.loads(found))
        except ValueError:
            pass
    return out


def audit(text, least=1):
    """Why not every audit of the hypervisor's frames was clean, or fewer than @least of them ran; or None."""
    if "audit: FAILED" in text:
        found = AUDIT_LINE.search(text)
        return "audit: %s" % (found.group(1) if found else "?")
    ran = len(AUDIT_CLEAN.findall(text))
    return None if ran >= least else "%d clean audits, expected %d" % (ran, least)


def death(text):
    """One line about what killed the guest or the hypervisor, or None."""
    for pattern, say in DEADLY:
        found = pattern.search(text)
        if found:
            return say.format(" ".join(found.group(0).split()))
    return None


def complaint(text):
    """The first reason not to trust what the guest did, or None: a failed workload, a kernel warning, a missing end."""
    failed = FAIL.search(text)
    if failed:
        return "workload " + failed.group(1).strip()
    warning = WARNING.search(text)
    if warning:
        return "kernel warning: " + " ".join(warning.group(0).split())
    count = WARN.search(text)
    if count and int(count.group(1)):
        logged = LOG.search(text)
        return "%s kernel warnings, first: %s" % (count.group(1), logged.group(1).strip() if logged else "?")
    if not begin(text):
        return "userspace was not reached"
    if not count or not END.search(text):
        return "the guest's work did not end"
    return None
