#!/bin/sh
# SPDX-License-Identifier: MIT
# Boots the guest to a shell on this terminal.  Ctrl-a x ends QEMU; Ctrl-t s prints the hypervisor's counters.
cd "$(dirname "$0")/.." || exit 1
exec timeout "${TIMEOUT:-86400}" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp "${VCPUS:-2}" -m 2G -nographic \
    -no-reboot -nic none -kernel build/ptarmigan \
    -append "console=com1 com1=115200,8n1 pt_update=${MODE:-emulate}" \
    -initrd "${KERNEL:-build/guest/vmlinuz} console=hvc0 quiet,build/initramfs.cpio"
