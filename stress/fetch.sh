#!/bin/sh
# SPDX-License-Identifier: MIT
# fetch.sh DIR [xen]: downloads Debian's stock kernel (DIR/vmlinuz), and with "xen" its hypervisor (DIR/xen), as they are.
# Nothing is installed.  What is there already stays.
set -eu
dir=$1
mkdir -p "$dir"
cd "$dir"
updated=
get() {    # get PACKAGE: leaves it unpacked in ./PACKAGE.d
    if ! apt-cache show "$1" >/dev/null 2>&1 && [ -z "$updated" ]; then
        ${SUDO:-} apt-get update -qq >&2 || true
        updated=1
    fi
    mkdir -p "$1.d"
    (cd "$1.d" && apt-get download -qq "$1" >&2 && dpkg-deb -x ./*.deb . && rm -f ./*.deb)
}
if [ ! -s vmlinuz ]; then
    apt-cache show linux-image-amd64 >/dev/null 2>&1 || { ${SUDO:-} apt-get update -qq >&2 || true; updated=1; }
    real=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9][^ ]*\).*/\1/p' | head -n 1)
    [ -n "$real" ] || { echo "fetch: linux-image-amd64 names no kernel package" >&2; exit 1; }
    get "$real"
    cp "$real".d/boot/vmlinuz-* vmlinuz.part
    echo "$real" > vmlinuz.package
    mv vmlinuz.part vmlinuz
    rm -rf "$real".d
fi
if [ "${2:-}" = xen ] && [ ! -s xen ]; then
    get xen-hypervisor-4.17-amd64
    gunzip -c "$(ls xen-hypervisor-4.17-amd64.d/boot/xen-4.17-amd64.gz)" > xen.part
    mv xen.part xen
    rm -rf xen-hypervisor-4.17-amd64.d
fi
