#!/bin/sh
# SPDX-License-Identifier: MIT
# The guest with an interactive shell on the serial console (Ctrl-a x ends QEMU; Ctrl-t h lists the hypervisor's keys).
# Environment: MODE=emulate (ptwr, xen, native), VCPUS=2, MEM=2G, KERNEL, IMAGE, HVARGS and GUESTARGS (more options for either).
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
mode=${MODE:-emulate} vcpus=${VCPUS:-2} mem=${MEM:-2G}
kernel=${KERNEL:-}
[ -n "$kernel" ] || kernel=$root/build/guest/vmlinuz
initrd=$root/build/initramfs.cpio
case $vcpus in
'' | *[!0-9]*) echo "run: VCPUS=$vcpus: a number" >&2; exit 2 ;;
esac
for file in "$kernel" "$initrd"; do
    [ -r "$file" ] || { echo "run: $file is missing" >&2; exit 2; }
done
set -- qemu-system-x86_64 -accel tcg,thread=multi -smp "$vcpus" -m "$mem" -nographic -no-reboot -nic none
case $mode in
native)
    exec "$@" -cpu max -kernel "$kernel" -initrd "$initrd" -append "console=ttyS0,115200 ${GUESTARGS:-}"
    ;;
xen)
    exec "$@" -cpu max,smap=off -kernel "$root/build/guest/xen" -initrd "$kernel console=hvc0 ${GUESTARGS:-},$initrd" \
        -append "console=com1 com1=115200,8n1 dom0_mem=1024M dom0_max_vcpus=$vcpus watchdog=0 ${HVARGS:-}"
    ;;
emulate | ptwr)
    exec "$@" -cpu max -kernel "${IMAGE:-$root/build/ptarmigan}" -initrd "$kernel console=hvc0 ${GUESTARGS:-},$initrd" \
        -append "console=com1 com1=115200,8n1 dom0_max_vcpus=$vcpus pt_update=$mode ${HVARGS:-}"
    ;;
*) echo "run: MODE=$mode: one of emulate, ptwr, xen, native" >&2; exit 2 ;;
esac
