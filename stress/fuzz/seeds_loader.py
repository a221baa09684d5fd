# SPDX-License-Identifier: MIT
"""Seeds of the loader target: a small Xen kernel as ELF, and in a bzImage in every compression."""
import gzip
import lzma
import struct

VIRT = 0xffffffff80000000
TEXT_AT = 0x200
TEXT = bytes(range(64)) * 8


def note(kind, value, name=b"Xen\0"):
    pad = -len(value) % 4
    return struct.pack("<III", len(name), len(value), kind) + name + value + bytes(pad)


NOTES = (note(1, struct.pack("<Q", VIRT + 0x1000000)) + note(3, struct.pack("<Q", VIRT)) + note(4, struct.pack("<Q", 0)) +
         note(2, struct.pack("<Q", VIRT + 0x1001000)) + note(5, b"xen-3.0\0") + note(6, b"linux\0") + note(8, b"generic\0") + note(9, b"yes\0") +
         note(10, b"!writable_page_tables|pae_pgdir_above_4gb\0") + note(15, struct.pack("<Q", 1 << 46)) +
         note(13, struct.pack("<QQ", 1, 1)))


def elf(notes=NOTES, filesz=len(TEXT), memsz=0x3000, offset=TEXT_AT + 0x200, phnum=2, phentsize=56):
    head = struct.pack("<4sBBBB8xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 2, 62, 1, VIRT + 0x1000000, 64, 0, 0, 64, phentsize,
                       phnum, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, offset, VIRT + 0x1000000, 0x1000000, filesz, memsz, 0x200000)
    notes_at = struct.pack("<IIQQQQQQ", 4, 4, 64 + 112, 0, 0, len(notes), len(notes), 4)
    return (head + load + notes_at + notes).ljust(TEXT_AT + 0x200, b"\0") + TEXT


def lz4_legacy(data):
    """One block of literals only."""
    n, length = len(data) - 15, b""
    while n >= 255:
        length, n = length + b"\xff", n - 255
    block = b"\xf0" + length + bytes([n]) + data
    return struct.pack("<II", 0x184c2102, len(block)) + block


def zstd_raw(data):
    """One frame with its content size, of one raw block."""
    return struct.pack("<IBI", 0xfd2fb528, 0xa0, len(data)) + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def xz(data, check=lzma.CHECK_CRC32):
    return lzma.compress(data, lzma.FORMAT_XZ, check,
                         filters=[{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 16}])


def bzimage(payload, sectors=1, protocol=0x20f, offset=0, length=None):
    head = bytearray((sectors + 1) * 512)
    head[0x1f1] = sectors
    struct.pack_into("<H", head, 0x1fe, 0xaa55)
    struct.pack_into("<IH", head, 0x202, 0x53726448, protocol)
    struct.pack_into("<II", head, 0x248, offset, len(payload) if length is None else length)
    return bytes(head) + payload


def trailer(data, size):
    return data + struct.pack("<I", size)


def seeds():
    e = elf()
    n = len(e)
    return {
        "elf": e, "gzip": gzip.compress(e, mtime=0), "bz_gzip": bzimage(gzip.compress(e, mtime=0)), "bz_elf": bzimage(e),
        "bz_xz": bzimage(trailer(xz(e), n)), "bz_xz_nocheck": bzimage(trailer(xz(e, lzma.CHECK_NONE), n)),
        "bz_lz4": bzimage(trailer(lz4_legacy(e), n)), "bz_zstd": bzimage(trailer(zstd_raw(e), n)),
        "size_less": bzimage(trailer(lz4_legacy(e), n - 1)), "size_more": bzimage(trailer(zstd_raw(e), n + 1)),
        "size_zero": bzimage(trailer(xz(e), 0)), "size_huge": bzimage(trailer(xz(e), 0xffffffff)),
        "payload_beyond": bzimage(e, length=0xffffffff), "offset_beyond": bzimage(e, offset=0xffffffff),
        "elf_filesz": elf(filesz=1 << 40), "elf_offset_wrap": elf(offset=0xffffffffffffff00),
        "elf_memsz_wrap": elf(memsz=0xffffffffffffffff), "elf_phnum": elf(phnum=0xffff),
        "notes_cut": elf(NOTES[:-9]), "notes_none": elf(note(1, b"x", b"GNU\0")),
    }
