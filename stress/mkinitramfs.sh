#!/bin/sh
# SPDX-License-Identifier: MIT
# mkinitramfs.sh OUT DIR: makes the guest's initial root OUT (a cpio archive), unpacked in DIR/initramfs on the way: busybox,
# dbench with its load file, our programs, /init.  It is not compressed: QEMU loads it at once, an emulated CPU unpacks slowly.
set -eu
out=$1
root=$2/initramfs
here=$(cd "$(dirname "$0")" && pwd)

rm -rf "$root"
mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/usr/share/dbench"
cp "$(command -v busybox || echo /bin/busybox)" "$root/bin/busybox"
ln -s busybox "$root/bin/sh"
cp /usr/bin/dbench "$root/bin/dbench"
load=$(dpkg -L dbench | grep -E 'client\.txt(\.gz)?$' | head -n 1)
case $load in
*.gz) gunzip -c "$load" > "$root/usr/share/dbench/client.txt" ;;
?*) cp "$load" "$root/usr/share/dbench/client.txt" ;;
*) echo "mkinitramfs: the dbench package has no client.txt" >&2; exit 1 ;;
esac
ldd /usr/bin/dbench | grep -o '/[^ ]*' | while read -r lib; do
    mkdir -p "$root$(dirname "$lib")"
    cp -L "$lib" "$root$lib"
done
for source in "$here"/workloads/*.c; do
    ${CC:-gcc} -std=gnu17 -O2 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -static -s \
        -o "$root/bin/$(basename "$source" .c)" "$source"
done
install -m 755 "$here/workloads/init.sh" "$root/init"
(cd "$root" && find . | LC_ALL=C sort | cpio -o -H newc --quiet -R 0:0) > "$out.part"
mv "$out.part" "$out"
