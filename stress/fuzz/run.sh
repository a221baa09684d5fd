#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the fuzz targets with clang and runs each for its share of SECONDS, at least 2.  run.sh OUT [SECONDS]
# CLANG: the compiler.  TARGETS: some of them.  What is found stays in OUT, and is gone on with by the next run.
cd "$(dirname "$0")/../.." || exit 1
out=$1 seconds=${2:-30} passed=0 failed=0
targets=${TARGETS:-decode hypercall loader acpi options}
share=$(echo "$targets" | awk -v s="$seconds" '{ n = int(s / NF); print n < 2 ? 2 : n }')
mkdir -p "$out/crash" || exit 1
flags="-std=gnu17 -g -O1 -DHV_HOSTED -D__XEN_INTERFACE_VERSION__=0x00040e00 -include stdint.h -Wall -Wextra -Werror
    -fno-strict-aliasing -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
    -Imm-lockfree -Ixen-core -Isched -Itests/unit -Istress/fuzz"
sources() {
    case $1 in
    decode)    echo stress/fuzz/decode.c mm-lockfree/emulate/*.c ;;
    hypercall) echo -include stress/fuzz/shim_hv.h stress/fuzz/hypercall.c stress/fuzz/world*.c xen-core/abi/*.c \
                   xen-core/arch/bounce.c mm-lockfree/*.c mm-lockfree/emulate/*.c sched/*.c ;;
    loader)    echo stress/fuzz/loader.c xen-core/build/arena.c xen-core/build/bzimage.c xen-core/build/decompress*.c \
                   xen-core/build/elf.c xen-core/build/elf_notes.c xen-core/vsnprintf.c -llzma -llz4 -lzstd -lz ;;
    acpi)      echo -include stress/fuzz/shim_acpi.h stress/fuzz/acpi.c xen-core/arch/acpi.c ;;
    options)   echo stress/fuzz/options.c xen-core/params.c xen-core/build/mem_option.c xen-core/vsnprintf.c ;;
    esac
}
# Where magic numbers are in the way; it makes the other two much slower.
profile() { case $1 in decode|hypercall) echo 0 ;; *) echo 1 ;; esac; }
fail() {                               # fail NAME WHAT FILTER
    failed=$((failed + 1))
    echo "FAIL fuzz/$1: $2"
    grep -E "$3" "$out/$1.log" | head -n 20 | sed 's/^/    /'
}
# Leaks are none: the hypervisor's memory is the world's.
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
for name in $targets; do
    bin=$out/$name log=$out/$name.log
    mkdir -p "$out/corpus/$name"
    if ! ${CLANG:-clang} $flags $(sources "$name") -o "$bin" > "$log" 2>&1; then
        fail "$name" "does not build, see $log" .
        continue
    fi
    if "$bin" -max_total_time="$share" -max_len=4096 -timeout=10 -rss_limit_mb=2048 -use_value_profile="$(profile "$name")" \
            -artifact_prefix="$out/crash/$name-" "$out/corpus/$name" "stress/fuzz/corpus/$name" > "$log" 2>&1; then
        passed=$((passed + 1))
        runs=$(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$log")
        echo "PASS fuzz/$name: ${runs:-0} runs, $((${runs:-0} / share)) a second," \
            "$(sed -n 's/.*DONE *cov: \([0-9]*\).*corp: \([0-9]*\).*/\1 edges, \2 inputs/p' "$log")"
    else
        input=$(sed -n "s/.*Test unit written to //p" "$log" | tail -n 1)
        fail "$name" "${input:-no input, see $log}; repeat with: $bin ${input:-}" \
            '^BUG|^audit|runtime error|ERROR|SUMMARY|^ *#[0-9]+ 0x.*(xen-core|mm-lockfree|sched|stress/fuzz)/'
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
