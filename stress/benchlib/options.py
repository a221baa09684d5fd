# SPDX-License-Identifier: MIT
"""The bench's variables, from the environment, each checked."""
import os

from .machine import OWN_MODES, PEERS, ROOT

WORKLOADS = ("dbench", "forkexec", "micro", "pte")
DEFAULTS = {
    "MODES": "ptwr emulate", "PEERS": "", "VCPUS": "1 2 4 8", "WORKLOADS": " ".join(WORKLOADS), "CLIENTS": "1 2 4 8",
    "RUNS": "1", "SECS": "2", "TIMEOUT": "300", "ACCEL": "auto", "OUT": "", "KERNEL": "", "IMAGE": "",
}


class BadOption(ValueError):
    """One line: the variable, its value, the rule."""


def _words(name, text, allowed, may_be_empty=False):
    words = text.replace(",", " ").split()
    for w in words:
        if w not in allowed:
            raise BadOption("%s=%s: %s is not one of %s" % (name, text, w, ", ".join(allowed)))
    if len(set(words)) < len(words):
        raise BadOption("%s=%s: a word stands twice" % (name, text))
    if not words and not may_be_empty:
        raise BadOption("%s is empty: give one or more of %s" % (name, ", ".join(allowed)))
    return words


def _numbers(name, text, low, high):
    out = []
    for w in text.replace(",", " ").split():
        if not (w.isascii() and w.isdigit()) or not low <= int(w) <= high:
            raise BadOption("%s=%s: %s is not a whole number from %d to %d" % (name, text, w, low, high))
        out.append(int(w))
    if not out:
        raise BadOption("%s is empty: give one or more numbers from %d to %d" % (name, low, high))
    if len(set(out)) < len(out):
        raise BadOption("%s=%s: a number stands twice" % (name, text))
    return out


def _number(name, text, low, high):
    out = _numbers(name, text, low, high)
    if len(out) > 1:
        raise BadOption("%s=%s: one number only" % (name, text))
    return out[0]


def _path(text):
    return os.path.abspath(text) if text else ""


class Options:
    """modes, peers, vcpus, workloads, clients, runs, secs, timeout, accel, out, kernel, image."""

    def __init__(self, env):
        get = {k: env.get(k, v).strip() for k, v in DEFAULTS.items()}
        self.modes = _words("MODES", get["MODES"], OWN_MODES, may_be_empty=True)
        self.peers = _words("PEERS", get["PEERS"], PEERS, may_be_empty=True)
        if not self.modes and not self.peers:
            raise BadOption("MODES and PEERS are both empty: nothing to run")
        self.vcpus = _numbers("VCPUS", get["VCPUS"], 1, 255)
        self.workloads = _words("WORKLOADS", get["WORKLOADS"], WORKLOADS)
        self.clients = _numbers("CLIENTS", get["CLIENTS"], 1, 512)
        self.runs = _number("RUNS", get["RUNS"], 1, 1000)
        self.secs = _number("SECS", get["SECS"], 1, 1000)
        self.timeout = _number("TIMEOUT", get["TIMEOUT"], 10, 100000)
        self.accel = _words("ACCEL", get["ACCEL"], ("auto", "kvm", "tcg"))[0]
        self.out = _path(get["OUT"]) or os.path.join(ROOT, "out")
        if os.path.exists(self.out) and not os.path.isdir(self.out):
            raise BadOption("OUT=%s: is there and is no directory" % self.out)
        self.kernel = _path(get["KERNEL"])
        self.image = _path(get["IMAGE"])
        for name, path in (("KERNEL", self.kernel), ("IMAGE", self.image)):
            if path and not os.path.isfile(path):
                raise BadOption("%s=%s: no such file" % (name, path))

    @property
    def columns(self):
        """The modes in the order in which they alternate."""
        return self.modes + self.peers

    def as_dict(self):
        return dict(vars(self))
