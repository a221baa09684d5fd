#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the test guest; CC chooses the compiler, the first argument the output (default build/tests/guest.elf).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$(realpath -m "${1:-$root/build/tests/guest.elf}")
# Tests run in this order: the second vCPU starts in t_vcpu.
tests="t_hypercall.c t_vcpu.c t_trap.c t_user.c t_event.c t_desc.c t_pt.c t_emul.c t_race.c t_crash.c"
mkdir -p "$(dirname "$out")"
cd "$here"
${CC:-gcc} -std=gnu17 -O2 -g -ffreestanding -nostdlib -static -no-pie -fno-pic -mcmodel=kernel -mno-red-zone -mgeneral-regs-only \
    -fno-stack-protector -fno-asynchronous-unwind-tables -fcf-protection=none -fno-strict-aliasing -fno-toplevel-reorder \
    -D__XEN_INTERFACE_VERSION__=0x00040e00 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror \
    -Wl,-T,"$here/guest.lds" -Wl,-z,max-page-size=4096 -Wl,--build-id=none -Wl,-z,noexecstack -Wl,--no-warn-rwx-segments \
    -o "$out" start.S lib.c main.c mm.c traps.c user.c vcpu.c $tests
