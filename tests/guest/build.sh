#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the test guest; CC chooses the compiler, the first argument the output (default build/tests/guest.elf).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${1:-$root/build/tests/guest.elf}
mkdir -p "$(dirname "$out")"
${CC:-gcc} -std=gnu17 -O2 -g -ffreestanding -nostdlib -static -no-pie -fno-pic -mcmodel=kernel -mno-red-zone -mgeneral-regs-only \
    -fno-stack-protector -fno-asynchronous-unwind-tables -fcf-protection=none -fno-strict-aliasing \
    -D__XEN_INTERFACE_VERSION__=0x00040e00 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror \
    -Wl,-T,"$here/guest.lds" -Wl,-z,max-page-size=4096 -Wl,--build-id=none -Wl,-z,noexecstack -Wl,--no-warn-rwx-segments \
    -o "$out" "$here"/*.S "$here"/*.c
