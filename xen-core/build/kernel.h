/* SPDX-License-Identifier: MIT */
/* The guest kernel of boot module 0: unpacked, understood, and copied to where it runs. */
#ifndef PT_BUILD_KERNEL_H
#define PT_BUILD_KERNEL_H

#include "base/types.h"
#include "build/builder.h"
#include "build/elf.h"

struct boot_module;

struct kernel {
    const u8 *file;            /* the ELF file: in the module, or in @scratch */
    u64 size;
    struct elf_image elf;
    mfn_t scratch;             /* frames taken from the domain pool for the unpacked file */
    u64 scratch_frames;        /* 0: the module itself is the ELF file */
};

/* Unpacks and parses module @m.  Boot CPU, interrupts off; the FS base is lost.  A module that is not a
 * kernel for an initial domain stops the boot with one line. */
void kernel_open(struct kernel *k, const struct boot_module *m);

/* Copies the segments to pseudo-physical memory, which is populated and zero there, and fills the hypercall
 * page if the kernel wants one. */
void kernel_load(const struct kernel *k, struct builder *b);

/* Gives the scratch frames back to the domain pool; @k->file is gone. */
void kernel_close(struct kernel *k);

#endif
