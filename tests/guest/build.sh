#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the test guest; CC chooses the compiler, the first argument the output (default build/tests/guest.elf).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$(realpath -m "${1:-$root/build/tests/guest.elf}")
# Tests run in this order: the second vCPU starts in t_vcpu.
tests="t_hypercall.c t_vcpu.c t_trap.c t_privop.c t_iret.c t_user.c t_event.c t_ipi.c t_desc.c t_pt.c t_ptlive.c t_emul.c t_open.c
       t_race.c t_race_tables.c t_work.c t_xsa.c t_xsa_frames.c t_audit.c t_crash.c"
mkdir -p "$(dirname "$out")"
cd "$here"
case $(${CC:-gcc} --version) in
*clang*) order= ;;                      # keeps the order of the source by itself
*) order=-fno-toplevel-reorder ;;
esac
${CC:-gcc} -std=gnu17 -O2 -g -ffreestanding -nostdlib -static -fno-pic -mcmodel=kernel -mno-red-zone -mgeneral-regs-only \
    -fno-stack-protector -fno-asynchronous-unwind-tables -fcf-protection=none -fno-strict-aliasing $order \
    -D__XEN_INTERFACE_VERSION__=0x00040e00 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror \
    -Wl,-T,"$here/guest.lds" -Wl,-z,max-page-size=4096 -Wl,--build-id=none -Wl,-z,noexecstack -Wl,--no-warn-rwx-segments \
    -o "$out" start.S lib.c main.c mm.c traps.c user.c vcpu.c race.c $tests
