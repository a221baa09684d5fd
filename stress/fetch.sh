#!/bin/sh
# SPDX-License-Identifier: MIT
# fetch.sh DIR [xen]: downloads Debian's stock kernel as DIR/vmlinuz, and with "xen" its hypervisor as DIR/xen (the 32-bit
# ELF that multiboot loaders take), each with the package's name and version in DIR/*.package.  Nothing is installed, and
# what is there already stays.  KERNEL=FILE takes that kernel (a bzImage) instead of downloading one.
set -eu
dir=$1
what=${2:-}
kernel=${KERNEL:-}
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
updated=

die() {
    echo "fetch: $1" >&2
    exit 1
}

update() {    # refreshes the package lists, once
    [ -z "$updated" ] || return 1
    updated=1
    echo "fetch: apt-get update" >&2
    $sudo apt-get update -qq >&2
}

download() {    # download PACKAGE TEMP: unpacks it in TEMP; the name and version go to TEMP/package
    mkdir -p "$2"
    echo "fetch: downloading $1" >&2
    (cd "$2" && apt-get -o APT::Sandbox::User=root download -qq "$1" >&2) || return 1
    dpkg-deb -W "$2"/*.deb | tr '\t' ' ' > "$2/package"
    dpkg-deb -x "$2"/*.deb "$2"
}

get() {    # get PACKAGE TEMP: the same; when it fails, again with fresh lists, since the mirror may have moved on
    download "$1" "$2" || { update && download "$1" "$2"; } || die "cannot download $1"
}

mkdir -p "$dir"
temp=$dir/unpack.$$
trap 'rm -rf "$temp"' EXIT

if [ -n "$kernel" ]; then
    [ -r "$kernel" ] || die "KERNEL=$kernel: no such file"
elif [ ! -s "$dir/vmlinuz" ]; then
    real() { apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/.*Depends: \(linux-image-[0-9][^ ]*\).*/\1/p' | head -n 1; }
    package=$(real)
    [ -n "$package" ] || { update && package=$(real); } || true
    [ -n "$package" ] || die "the package lists have no linux-image-amd64 (is this Debian on amd64?)"
    # The kernel's name changes with each security update, so look again if its download fails.
    download "$package" "$temp" || { update && package=$(real) && download "$package" "$temp"; } || die "cannot download $package"
    mv "$temp/package" "$dir/vmlinuz.package"
    mv "$temp"/boot/vmlinuz-* "$dir/vmlinuz"
    rm -rf "$temp"
fi

case $what in
'') ;;
xen)
    if [ ! -s "$dir/xen" ]; then
        get xen-hypervisor-4.17-amd64 "$temp"
        gunzip -c "$temp/boot/xen-4.17-amd64.gz" > "$temp/xen"
        mv "$temp/package" "$dir/xen.package"
        mv "$temp/xen" "$dir/xen"
    fi
    ;;
*) die "unknown argument $what: xen, or nothing" ;;
esac
