#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""With pt_update=emulate the fast functions hold nothing of ptwr but 5-byte NOPs: no instruction that can be reached from
their entry by direct jumps and calls, through either side of each branch, names anything of it.  Only the jumps that take
the NOPs' place in ptwr mode lead to such code."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FUNCTIONS = "hc_mmu_update", "hc_mmuext_op", "hc_update_va_mapping", "emulate_pte_write"
INSN = re.compile(r"^([0-9a-f]+):\s+(\S+)\s*(.*)$")
SITE = "nopl", "0x0(%rax,%rax,1)"


def disassembly():
    """[(address, mnemonic, operands)] of the whole image, and {name: index of its first instruction}"""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", os.path.join(ROOT, "build/ptarmigan.elf")],
                          check=True, capture_output=True, text=True).stdout
    code, names = [], {}
    for line in text.splitlines():
        head = re.match(r"^[0-9a-f]+ <(.+)>:$", line)
        insn = INSN.match(line.strip())
        if head:
            names[head.group(1)] = len(code)
        elif insn:
            code.append((int(insn.group(1), 16), insn.group(2), insn.group(3).strip()))
    return code, names


def reachable(code, index, start):
    """Indices of all instructions that @start leads to by direct jumps and calls, while the patch sites are NOPs."""
    todo, seen = [start], set()
    while todo:
        i = todo.pop()
        if i in seen or i >= len(code):
            continue
        seen.add(i)
        _, op, args = code[i]
        target = re.match(r"^([0-9a-f]+) <", args)
        if op.startswith(("j", "call")) and target and int(target.group(1), 16) in index:
            todo.append(index[int(target.group(1), 16)])
        if op.startswith(("jmp", "ret", "ud2", "iret", "sysret")):
            continue
        todo.append(i + 1)
    return seen


def main():
    code, names = disassembly()
    index = {address: i for i, (address, _, _) in enumerate(code)}
    failed = 0
    for name in FUNCTIONS:
        live = reachable(code, index, names[name])
        sites = [i for i in live if code[i][1:] == SITE]
        traces = sorted(i for i in live if "ptwr" in code[i][2])
        if sites and not traces:
            print(f"PASS notrace/{name}")
        else:
            print(f"FAIL notrace/{name}: {len(sites)} patch sites; ptwr named by: " +
                  "; ".join(f"{code[i][0]:x} {code[i][1]} {code[i][2]}" for i in traces[:5]))
            failed += 1
    # The search must see ptwr where it is: behind the site, that is from the code that the site jumps to.
    seen = any("ptwr" in code[i][2] for i in reachable(code, index, names["hc_mmu_update.cold"]))
    print("PASS notrace/control" if seen else "FAIL notrace/control: nothing of ptwr behind the site of hc_mmu_update")
    failed += not seen
    print(f"{len(FUNCTIONS) + 1 - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
