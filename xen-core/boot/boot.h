/* SPDX-License-Identifier: MIT */
/* What the boot loader left: memory map, modules, command line, ACPI root. */
#ifndef PT_BOOT_BOOT_H
#define PT_BOOT_BOOT_H

#include "base/types.h"

#define E820_MAX 128
enum { E820_RAM = 1, E820_RESERVED = 2, E820_ACPI = 3, E820_NVS = 4, E820_UNUSABLE = 5 };
struct e820_entry { u64 addr, size; u32 type; } __attribute__((packed));

#define MODULES_MAX 8
struct boot_module { u64 start, size; const char *cmdline; };   /* physical address, bytes */

struct boot_info {
    unsigned nr_e820, nr_modules;
    struct e820_entry e820[E820_MAX];          /* sorted, no overlaps */
    struct boot_module module[MODULES_MAX];
    char cmdline[2048];
    bool cmdline_cut;                           /* the loader's was longer */
    u64 rsdp;                                   /* physical, 0 = none */
    u64 max_mfn;                                /* one more than the highest RAM frame */
};
extern struct boot_info boot_info;

/* Physically contiguous memory from the top of RAM, zeroed, mapped in the direct map; boot CPU only,
 * before boot_alloc_end().  Never fails: boot stops with a message when memory is exhausted. */
void *boot_alloc(u64 size, u64 align);

/* Ends boot_alloc() use and hands every free RAM range (frames [start, end)) to @fn. */
void boot_alloc_end(void (*fn)(u64 start_mfn, u64 end_mfn, void *arg), void *arg);

#endif
