/* SPDX-License-Identifier: MIT */
/* Reads an ELF64 PV kernel: what to load where, and what its Xen notes ask for.  Nothing is copied and no
 * memory is allocated; the file is untrusted. */
#ifndef PT_BUILD_ELF_H
#define PT_BUILD_ELF_H

#include "base/types.h"

#define ELF_MAX_SEGMENTS 16
#define ELF_TEXT_MAX     64         /* bytes of a short string note, with its NUL */
#define ELF_FEATURES_MAX 256

/* One non-empty PT_LOAD.  @filesz bytes at @offset go to pseudo-physical address @gpa, followed by zeros up
 * to @memsz.  The VA is virt_base + gpa; p_vaddr means nothing (Linux has one segment where it is 0). */
struct elf_segment { u64 gpa, offset, filesz, memsz; };

struct elf_image {
    u32 nr_segments;
    struct elf_segment segment[ELF_MAX_SEGMENTS];     /* in file order, without overlap */

    u64 paddr_start, paddr_end;    /* lowest and one past the highest p_paddr */
    u64 va_start, va_end;          /* the same as VAs; va_end is 0 when it is 2^64 */

    /* From the notes, or the default where the note is absent. */
    u64 entry;                     /* VA; default e_entry */
    u64 virt_base;                 /* VA of pfn 0; default 0 */
    u64 paddr_offset;              /* p_paddr of pfn 0; default 0 */
    bool has_hypercall_page;
    u64 hypercall_page;            /* VA of a page in the image */
    bool has_init_p2m;
    u64 init_p2m;                  /* VA for the p2m list */
    bool mod_start_pfn;            /* takes the initrd unmapped, as a pfn; default no */
    bool has_supported_features;
    u32 supported_features;        /* bit n: XENFEAT n */
    bool has_hv_start_low;
    u64 hv_start_low;
    bool has_l1_mfn_valid;
    u64 l1_mfn_mask, l1_mfn_value;
    bool suspend_cancel;
    char features[ELF_FEATURES_MAX];      /* the strings are empty without their note */
    char xen_version[ELF_TEXT_MAX];       /* "xen-3.0" if present */
    char loader[ELF_TEXT_MAX];            /* "generic" if present */
    char guest_os[ELF_TEXT_MAX];
    char guest_version[ELF_TEXT_MAX];
    char pae_mode[ELF_TEXT_MAX];
};

/* Reads and checks the @size bytes of ELF file at @file.  0 with @out filled, or -1 with one line in @err
 * that names the broken rule and the value.  Any context. */
int elf_parse(const void *file, u64 size, struct elf_image *out, char *err, size_t errlen);

#endif
