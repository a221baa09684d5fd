#!/bin/sh
# SPDX-License-Identifier: MIT
# With pt_update=emulate the fast functions hold nothing of ptwr but a 5-byte NOP: their straight-line code, up to what the
# NOP would jump to, neither calls nor loads anything of it.
cd "$(dirname "$0")/../.." || exit 1
elf=build/ptarmigan.elf
passed=0 failed=0
for f in hc_mmu_update hc_mmuext_op hc_update_va_mapping emulate_pte_write; do
    objdump -d --no-show-raw-insn "$elf" | awk -v f="<$f>:" '$2 == f { on = 1 } on && /^$/ { exit } on' > build/notrace.txt
    nops=$(grep -c 'nopl *0x0(%rax,%rax,1)' build/notrace.txt)
    # What runs in emulate mode: from the entry to the first return or tail jump.
    awk '/(ret|jmp  *[0-9a-f]+ <[^+>]*>)/ { print; exit } { print }' build/notrace.txt > build/notrace-hot.txt
    if [ "$nops" -ge 1 ] && ! grep -q 'ptwr' build/notrace-hot.txt; then
        echo "PASS notrace/$f"
        passed=$((passed + 1))
    else
        echo "FAIL notrace/$f: $nops NOP sites; $(grep -c ptwr build/notrace-hot.txt) references"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
