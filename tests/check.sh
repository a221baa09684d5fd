#!/bin/sh
# SPDX-License-Identifier: MIT
# All checks, one after the other; the last line sums up.  The image and the guest are built already.
cd "$(dirname "$0")/.." || exit 1
passed=0 failed=0
part() {                               # part NAME COMMAND...: runs it, shows its lines, adds its closing line up
    echo "== $1"
    shift
    "$@" > build/part.log 2>&1
    status=$?
    grep -v -E '^[0-9]+ passed, [0-9]+ failed$' build/part.log
    p=$(sed -n 's/^\([0-9]*\) passed, [0-9]* failed$/\1/p' build/part.log | tail -n 1)
    f=$(sed -n 's/^[0-9]* passed, \([0-9]*\) failed$/\1/p' build/part.log | tail -n 1)
    if [ -z "$p" ]; then
        echo "FAIL $1: no closing line (status $status)"
        failed=$((failed + 1))
    else
        passed=$((passed + p)) failed=$((failed + f))
    fi
}
part "unit tests" tests/unit/run.sh
[ ! -x tests/lint/lint.sh ] || part "lints" tests/lint/lint.sh
part "the inactive mode leaves no trace" python3 tests/boot/notrace.py
part "models" make -s --no-print-directory model
part "controlled interleaving, short" make -s --no-print-directory mc QUICK=1
part "mutants, some" make -s --no-print-directory mutants QUICK=1
part "torture, short" make -s --no-print-directory stress SECONDS=12
part "fuzzing, short" make -s --no-print-directory fuzz SECONDS=10
part "test guest" python3 tests/guest/run.py
part "boots" python3 tests/boot/boot.py
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
