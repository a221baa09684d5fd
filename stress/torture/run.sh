#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the torture programs plainly, with ASan and UBSan, and with TSan, and runs each for its share of SECONDS.
# run.sh OUT [SECONDS [CPUS]]; PT_SEED repeats a run.
cd "$(dirname "$0")/../.." || exit 1
out=$1 seconds=${2:-30} cpus=${3:-4}
mkdir -p "$out"
passed=0 failed=0
flags="-std=gnu17 -g -O2 -DHV_HOSTED -D__XEN_INTERFACE_VERSION__=0x00040e00 -include stdint.h -Wall -Wextra -Werror
    -Imm-lockfree -Ixen-core -Itests/host -Istress/torture"
host="stress/torture/torture.c tests/host/env.c tests/host/mmu.c mm-lockfree/frame.c mm-lockfree/stats.c mm-lockfree/tlb.c
    mm-lockfree/rcu.c"
pt="tests/host/above.c mm-lockfree/audit.c mm-lockfree/pt.c mm-lockfree/pt_meta.c mm-lockfree/pt_type.c mm-lockfree/pt_work.c
    mm-lockfree/pt_walk.c mm-lockfree/emulate/decode.c mm-lockfree/emulate/op.c"
share=$(awk "BEGIN { s = $seconds / 12; print s < 0.5 ? 0.5 : s }")
for program in frame rcu heap pt; do
    case $program in
    pt)   more=$pt ;;
    *)    more= ;;
    esac
    for san in "" address,undefined thread; do
        # The heap is Concurrency Kit's assembly, which TSan does not see.
        [ "$program-$san" != heap-thread ] || continue
        name=$program${san:+-${san%%,*}}
        bin=$out/$name
        if ${CC:-gcc} $flags ${san:+-fsanitize=$san -fno-sanitize-recover=all} -o "$bin" "stress/torture/$program.c" $host $more \
                -lpthread > "$bin.log" 2>&1 &&
           TSAN_OPTIONS=halt_on_error=1 timeout ${STRESS_TIMEOUT:-600} "$bin" "$share" "$cpus" >> "$bin.log" 2>&1; then
            passed=$((passed + 1))
            echo "PASS stress/$name: $(tail -n 1 "$bin.log" | sed 's/^[^:]*: //')"
        else
            failed=$((failed + 1))
            echo "FAIL stress/$name"
            head -n 40 "$bin.log" | sed 's/^/    /'
        fi
    done
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
