#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the checker around a copy of mm-lockfree/: build.sh SOURCES OUTPUT, where SOURCES holds mm-lockfree/.
# The sources' variables go into one section of their own, so that each run can start from the same state.
# MC_ONLY: the one source that differs from the build in MC_BASE, whose other objects are used.
set -e
src=$1/mm-lockfree
out=$2
here=$(dirname "$0")
CC=${CC:-gcc}
flags="-std=gnu17 -O2 -g1 -DHV_HOSTED -DHV_MC -DPT_DEBUG -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Werror -fno-strict-aliasing -fno-common $MC_CFLAGS"
sources="frame tlb rcu pt pt_type pt_meta pt_work pt_walk ptwr stats emulate/op"
obj=$out.obj

rm -rf "$obj"
mkdir -p "$obj"
if [ -n "$MC_ONLY" ]; then
    cp "$MC_BASE"/mc.obj/*.o "$obj"
    sources=${MC_ONLY%.c}
fi
for f in $sources; do
    o=$obj/$(basename "$f").o
    $CC $flags -I"$src" -c "$src/$f.c" -o "$o"
    redefine="--redefine-sym call_rcu=mc_call_rcu --redefine-sym pt_meta_alloc=mc_meta_alloc"
    case $f in
    rcu)     redefine= ;;
    pt_meta) redefine="--redefine-sym call_rcu=mc_call_rcu" ;;
    esac
    objcopy $redefine --set-section-flags .bss=alloc,load,contents,data \
        --rename-section .bss=mcstate,alloc,load,data,contents \
        --rename-section .data=mcstate,alloc,load,data,contents "$o"
done
if [ -z "$MC_ONLY" ]; then
    for f in "$here"/*.c; do
        $CC $flags -I"$src" -I"$here" -c "$f" -o "$obj/mc_$(basename "$f" .c).o"
    done
fi
$CC -o "$out" "$obj"/*.o
