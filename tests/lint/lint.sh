#!/bin/sh
# SPDX-License-Identifier: MIT
# Lints: headers that compile alone, the direction of includes, licence lines, pair tags at both ends.
cd "$(dirname "$0")/../.." || exit 1
passed=0 failed=0
report() {                             # report NAME: passes when the file build/lint.txt is empty
    if [ -s build/lint.txt ]; then
        failed=$((failed + 1))
        echo "FAIL lint/$1"
        sed 's/^/    /' build/lint.txt | head -20
    else
        passed=$((passed + 1))
        echo "PASS lint/$1"
    fi
}
mkdir -p build
inc="-Imm-lockfree -Ixen-core -Isched -Inuma"

: > build/lint.txt
# stats_list.h is a list for a macro, not a header.
for h in $(find mm-lockfree sched xen-core -name '*.h' ! -name stats_list.h); do
    echo "#include \"$h\"" | gcc -include base/image.h -D__XEN_INTERFACE_VERSION__=0x00040e00 -std=gnu17 -ffreestanding \
        -mgeneral-regs-only -Wall $inc -I. -fsyntax-only -x c - 2> build/lint.err || echo "$h: $(head -n 1 build/lint.err)" >> build/lint.txt
done
report headers-alone

: > build/lint.txt
grep -n '#include "' mm-lockfree/*.[ch] mm-lockfree/*/*.[ch] |
    grep -E '"(arch|abi|boot|build)/|"(domain|vcpu|sched|console|memory|params)\.h"' | grep -v 'base/env.h' >> build/lint.txt
grep -n '#include "' sched/*.[ch] | grep -E '"(arch|abi|boot|build)/|"(domain|vcpu|console|memory|params|frame|pt|tlb)\.h"' >> build/lint.txt
report layers

: > build/lint.txt
for f in $(git ls-files '*.c' '*.h' '*.S' '*.sh' '*.py' Makefile .ci/run); do
    head -n 3 "$f" | grep -q 'SPDX-License-Identifier: MIT' || echo "$f has no SPDX line" >> build/lint.txt
done
report licence-lines

# A tag such as /* T1 */ names one end of an ordering pair: it must stand in the code twice at least (or once there and once
# more with "pairs").
: > build/lint.txt
for tag in $(grep -ohE '/\* ?[A-Z][0-9]+(: pairs[^*]*)? ?\*/|/\* [A-Z][0-9]+[,:;][^*]*\*/' mm-lockfree/*.[ch] sched/*.[ch] xen-core/*.c \
        xen-core/arch/*.c | grep -oE '[A-Z][0-9]+' | sort -u); do
    n=$(cat mm-lockfree/*.[ch] sched/*.[ch] xen-core/*.[ch] xen-core/*/*.[ch] | grep -oE "(/\* ?|head )?\b$tag\b" | wc -l)
    [ "$n" -ge 2 ] || echo "tag $tag stands in $n place" >> build/lint.txt
done
report pair-tags

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
