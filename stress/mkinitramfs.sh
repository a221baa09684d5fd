#!/bin/sh
# SPDX-License-Identifier: MIT
# mkinitramfs.sh OUT BUILD: the guest's root: busybox, dbench with its load file, our programs, and /init.
set -eu
out=$1
build=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$build/initramfs
rm -rf "$root"
mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/lib64" "$root/usr/share/dbench"
cp /bin/busybox "$root/bin/busybox"
ln -s busybox "$root/bin/sh"
cp /usr/bin/dbench "$root/bin/dbench"
load=$(dpkg -L dbench | grep -E 'client\.txt(\.gz)?$' | head -n 1)
case $load in
*.gz) gunzip -c "$load" > "$root/usr/share/dbench/client.txt" ;;
*) cp "$load" "$root/usr/share/dbench/client.txt" ;;
esac
ldd /usr/bin/dbench | grep -o '/[^ ]*' | while read -r lib; do
    mkdir -p "$root$(dirname "$lib")"
    cp -L "$lib" "$root$lib"
done
for c in "$here"/workloads/*.c; do
    name=$(basename "$c" .c)
    gcc -std=gnu17 -O2 -Wall -Wextra -static -o "$root/bin/$name" "$c"
    strip "$root/bin/$name"
done
cp "$here/workloads/init.sh" "$root/init"
chmod 755 "$root/init"
(cd "$root" && find . | LC_ALL=C sort | cpio -o -H newc --quiet) > "$out.part"
mv "$out.part" "$out"
