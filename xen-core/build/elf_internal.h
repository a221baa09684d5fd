/* SPDX-License-Identifier: MIT */
/* Between elf.c and elf_notes.c: the file being read and where complaints go. */
#ifndef PT_BUILD_ELF_INTERNAL_H
#define PT_BUILD_ELF_INTERNAL_H

#include "build/elf.h"

typedef unsigned long long ull;     /* for formats */

struct elf_file {
    const u8 *bytes;
    u64 size;
    struct elf_image *out;
    u32 nr_notes;              /* Xen notes seen */
    char *err;
    size_t errlen;
};

/* Formats the message; returns -1. */
int elf_fail(struct elf_file *f, const char *fmt, ...) __printf(2, 3);

/* Are [offset, offset + length) bytes of the file? */
static inline bool elf_holds(const struct elf_file *f, u64 offset, u64 length)
{
    return offset <= f->size && length <= f->size - offset;
}

/* Reads the notes in [offset, offset + length), which the file holds; @align is 4 or 8.  0 or -1. */
int elf_read_notes(struct elf_file *f, u64 offset, u64 length, u64 align);

#endif
