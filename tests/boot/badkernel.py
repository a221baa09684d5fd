# SPDX-License-Identifier: MIT
"""Damaged kernels, made from a good bzImage (offsets as in Linux's documented x86 boot protocol)."""
import os
import struct

SETUP_SECTS, PAYLOAD = 0x1f1, 0x248              # one byte; two 32-bit words: offset and length


class BzImage:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        if self.data[0x202:0x206] != b"HdrS":
            raise ValueError("%s: no bzImage" % path)
        self.offset, self.length = struct.unpack_from("<II", self.data, PAYLOAD)
        self.payload = ((self.data[SETUP_SECTS] or 4) + 1) * 512 + self.offset

    def with_payload(self, offset, length):
        out = bytearray(self.data)
        struct.pack_into("<II", out, PAYLOAD, offset, length)
        return bytes(out)

    def with_bytes(self, at, data):
        out = bytearray(self.data)
        out[at:at + len(data)] = data
        return bytes(out)


def elf_without_notes():
    """A 64-bit x86 ELF of one loadable segment, 0x1000 bytes at 1 MiB, that carries no notes."""
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0x100000, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 7, 0x1000, 0x100000, 0x100000, 0x1000, 0x1000, 0x1000)
    return (ident + header + segment).ljust(0x2000, b"\0")


def make_all(kernel, directory):
    """Writes every damaged kernel; returns [(name, path, what the complaint must say, as a pattern)]."""
    good = BzImage(kernel)
    half = len(good.data) // 2
    cases = [
        ("empty", b"", r"\b0 bytes"),
        ("short", good.data[:100], r"\b100 bytes"),
        ("text", b"this is not a kernel\n" * 100, r"HdrS"),
        ("truncated", good.data[:half], r"exceeds.* %#x" % half),
        ("truncated-by-1", good.data[:good.payload + good.length - 1], r"exceeds"),
        ("corrupt-payload", good.with_bytes(good.payload + good.length // 2, b"\xa5" * 64), r"corrupt"),
        ("corrupt-magic", good.with_bytes(good.payload, b"\0" * 8), r"\d"),
        ("forged-offset", good.with_payload(0xfffffff0, good.length), r"offset 0x[0-9a-f]+.* exceeds"),
        ("forged-length", good.with_payload(good.offset, 0xfffffff0), r"length 0xfffffff0 exceeds"),
        ("forged-short-length", good.with_payload(good.offset, 64), r"\d"),
        ("forged-no-length", good.with_payload(good.offset, 0), r"\b0\b|0x0\b"),
        ("forged-setup", good.with_bytes(SETUP_SECTS, b"\xff"), r"0x[0-9a-f]+|\d"),
        ("forged-size", good.with_bytes(good.payload + good.length - 4, b"\xff\xff\xff\xff"), r"\d"),
        ("elf-without-notes", elf_without_notes(), r"Xen"),
        ("elf-cut", elf_without_notes()[:80], r"\b80\b|0x50\b"),
    ]
    os.makedirs(directory, exist_ok=True)
    out = []
    for name, data, expect in cases:
        path = os.path.join(directory, name)
        with open(path, "wb") as f:
            f.write(data)
        out.append((name, path, expect))
    return out
