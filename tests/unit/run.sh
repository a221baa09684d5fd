#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds and runs every unit test as a normal process, plainly and with ASan and UBSan.
cd "$(dirname "$0")/../.." || exit 1
out=build/unit
mkdir -p "$out"
passed=0 failed=0
loader="xen-core/build/arena.c xen-core/build/bzimage.c xen-core/build/decompress.c xen-core/build/decompress_gzip.c
        xen-core/build/decompress_lz4.c xen-core/build/decompress_xz.c xen-core/build/decompress_zstd.c
        xen-core/build/elf.c xen-core/build/elf_notes.c xen-core/vsnprintf.c tests/unit/loader_image.c"
# The hosted environment: a CPU is a thread (tests/host).
host="tests/host/env.c tests/host/mmu.c mm-lockfree/frame.c mm-lockfree/stats.c mm-lockfree/tlb.c"
pt="$host tests/host/above.c mm-lockfree/rcu.c mm-lockfree/audit.c mm-lockfree/pt.c mm-lockfree/pt_work.c
    mm-lockfree/pt_type.c mm-lockfree/pt_walk.c mm-lockfree/emulate/decode.c mm-lockfree/emulate/op.c"
sources() {
    case $1 in
    test_loader|test_loader_elf) echo "$loader" ;;
    test_dom0_layout) echo "xen-core/build/layout.c xen-core/build/mem_option.c" ;;
    test_string) ;;
    test_vsnprintf) echo "xen-core/vsnprintf.c" ;;
    test_audit|test_xsa)
        echo "mm-lockfree/audit.c mm-lockfree/frame.c mm-lockfree/pt.c mm-lockfree/pt_work.c mm-lockfree/pt_meta.c
              mm-lockfree/pt_type.c mm-lockfree/pt_walk.c mm-lockfree/rcu.c mm-lockfree/stats.c mm-lockfree/tlb.c
              mm-lockfree/emulate/decode.c mm-lockfree/emulate/op.c tests/host/above.c tests/host/env.c tests/host/mmu.c" ;;
    test_decode) echo "mm-lockfree/emulate/decode.c mm-lockfree/emulate/op.c" ;;
    test_frame|test_tlb|test_rcu) echo "$host" ;;
    test_pt|test_pt_flush|test_work) echo "$pt" ;;
    esac
}
flags="-std=gnu17 -g -O1 -DHV_HOSTED -D__XEN_INTERFACE_VERSION__=0x00040e00 -include stdint.h -Wall -Wextra -Imm-lockfree -Ixen-core -Isched -Itests/host -Itests/unit"
for t in tests/unit/test_*.c; do
    name=$(basename "$t" .c)
    for san in "" "-fsanitize=address,undefined -fno-sanitize-recover=undefined"; do
        label=$name${san:+/sanitized}
        bin=$out/$name${san:+-san}
        if gcc $flags $san -o "$bin" "$t" $(sources "$name") -lcunit -llzma -llz4 -lzstd -lz -lpthread > "$bin.log" 2>&1 &&
            PT_TEST_VMLINUZ=build/guest/vmlinuz timeout 300 "$bin" >> "$bin.log" 2>&1; then
            passed=$((passed + 1))
            echo "PASS unit/$label"
        else
            failed=$((failed + 1))
            echo "FAIL unit/$label"
            tail -n 15 "$bin.log" | sed 's/^/    /'
        fi
    done
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
