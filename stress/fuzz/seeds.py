#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the seed corpora, corpus/TARGET/NAME: one input for each kind of thing a target reads, and for each bug that was
found in it.  Seeds that are not made here (a crash's input) may lie beside them."""
import os
import struct

import seeds_hypercall
import seeds_loader

HERE = os.path.dirname(os.path.abspath(__file__))


def decode():
    """An instruction in 16 bytes, then registers, flags and the entry's value."""
    forms = {
        "mov_store": "48 89 03", "mov_imm": "48 c7 43 08 67 00 00 80", "mov_byte": "c6 07 e7", "mov_32": "44 89 46 04",
        "mov_sib": "4a 89 84 e3 00 01 00 00", "xchg": "48 87 0f", "lock_and": "f0 48 21 07", "and_imm8": "48 83 27 fd",
        "lock_or_imm": "f0 83 0f 02", "xor_16": "66 31 1e", "lock_btr": "f0 48 0f ba 37 01", "btr_reg": "48 0f b3 07",
        "bts_16": "66 0f ab 07", "lock_cmpxchg": "f0 48 0f b1 0f", "xadd": "f0 48 0f c1 17", "stosq": "48 ab",
        "rep_stosq": "f3 48 ab", "add": "48 01 03", "prefixes": "66 66 66 66 66 66 66 66 66 66 66 66 66 66 89 07",
        "rsp_base": "48 89 04 24",
    }
    regs = bytes((17 * i + 3) & 255 for i in range(120))
    return {name: bytes.fromhex(code).ljust(16, b"\x90") + regs for name, code in forms.items()}


AREA = 0x80000


def acpi():
    def put(image, at, data):
        image[at - 8:at - 8 + len(data)] = data

    def table(sig, body, length=None):
        length = 36 + len(body) if length is None else length
        return sig + struct.pack("<I", length) + bytes([2, 0]) + b"PTFUZZ" + b"PTFUZZ  " + bytes(12) + body

    def machine(width=8, madt_len=None, s5=b"\x12\x06\x04\x0a\x05\x0a\x05\x00\x00", flags=2, at_end=None):
        """@at_end: the table whose end is that of the page, seen through its other address."""
        image = bytearray(0x400 if not at_end else 4096 - 8)
        where = {"madt": AREA + 0x100, "dsdt": AREA + 0x300}
        cpus = struct.pack("<II", 0xfee00000, 1)
        cpus += b"".join(struct.pack("<BBBBI", 0, 8, i, i, 1) for i in range(4))
        cpus += struct.pack("<BBHIII", 9, 16, 0, 300, 1, 9) + struct.pack("<BBHQ", 5, 12, 0, 0xfee00000)
        if at_end == "madt":
            cpus += bytes([0, 8])                # an entry of which only the head is there
        tables = {"madt": table(b"APIC", cpus, madt_len), "dsdt": table(b"DSDT", b"\x08_S5_" + s5 + bytes(16 if not at_end else 2))}
        if at_end:
            where[at_end] = (1 << 32) - len(tables[at_end])
        for name, data in tables.items():
            put(image, where[name] % 4096, data)
        roots = where["madt"], AREA + 0x200
        put(image, 8, struct.pack("<B6sBIIQB3x", 0, b"PTFUZZ", 2 if width == 8 else 0, AREA + 0x40, 36, AREA + 0x40, 0))
        put(image, 0x40, table(b"XSDT" if width == 8 else b"RSDT",
                               struct.pack("<QQ" if width == 8 else "<II", *roots)))
        fadt = bytearray(80)
        struct.pack_into("<I", fadt, 4, where["dsdt"])
        struct.pack_into("<II", fadt, 28, 0x604, 0)
        struct.pack_into("<I", fadt, 40, 0x608)
        fadt[55] = 4
        put(image, 0x200, table(b"FACP", bytes(fadt)))
        return bytes([flags, 3]) + bytes(image)
    return {
        "xsdt": machine(), "rsdt": machine(width=4), "one_cpu": machine(flags=0),
        "madt_short": machine(madt_len=40), "madt_long": machine(madt_len=0x8000, flags=0xb0),
        "madt_beyond": machine(madt_len=0x2000, flags=0xb0, at_end="madt"),
        "madt_cut_entry": machine(madt_len=49),
        "s5_long_length": machine(s5=b"\x12\xff\xff\xff\xff\x02\x0a\x05\x0a\x05"),
        "s5_ones": machine(s5=b"\x12\x06\x04\xff\xff\x00\x00"),
        "madt_at_end": machine(at_end="madt"), "dsdt_at_end": machine(at_end="dsdt"), "no_sums": machine(flags=0xb8),
    }


def options():
    lines = {
        "all": "/boot/ptarmigan console=com1 com1=115200,8n1,0x3f8,4 dom0_mem=512M,min:64M,max:1G dom0_max_vcpus=4 "
               "maxcpus=8 numa=off smap=off smep=on loglvl=all noreboot pt_update=ptwr stats=json check=full",
        "no_forms": "ptarmigan no-smap no-smep no-noreboot no-numa no-console no-pt_update",
        "com1_fields": "com1=9600,8n1,0x2f8,3,9 com1=,8n1 com1=115200,7e1 com1=1,8n1,0",
        "dom0_mem_fraction": "dom0_mem=-128M,min:1G,max:-1M", "dom0_mem_bad": "dom0_mem=12Q,min dom0_mem= dom0_mem=99999999999T",
        "dom0_mem_overflow": "dom0_mem=0xffffffffffffffff,max:18446744073709551615T",
        "numbers": "maxcpus=0x400 maxcpus=1025 maxcpus=18446744073709551616 dom0_max_vcpus=0x dom0_max_vcpus=0",
        "long_value": "dom0_mem=" + "9" * 700 + " com1=" + "1" * 64, "tabs": "a/b\t\t=x\t smap=\t=",
        "too_long": ("loglvl=none " * 200)[:2200],
    }
    return {name: line.encode() for name, line in lines.items()}


def main():
    corpora = {"decode": decode(), "acpi": acpi(), "options": options(), "loader": seeds_loader.seeds(),
               "hypercall": seeds_hypercall.seeds()}
    for target, inputs in corpora.items():
        folder = os.path.join(HERE, "corpus", target)
        os.makedirs(folder, exist_ok=True)
        for name, data in inputs.items():
            assert len(data) <= 4096, (target, name, len(data))
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)


if __name__ == "__main__":
    main()
