/* SPDX-License-Identifier: MIT */
/* Shared by the files that build a domain: its plan and its pseudo-physical memory.  Boot CPU only. */
#ifndef PT_BUILD_BUILDER_H
#define PT_BUILD_BUILDER_H

#include "base/env.h"
#include "base/types.h"
#include "build/layout.h"

struct boot_module;
struct domain;

struct builder {
    struct domain *d;
    struct layout lo;
    mfn_t list_mfn;            /* the p2m list's frames: one contiguous run, owned by the domain */
    u64 *p2m;                  /* the list itself: mfn by pfn, as the guest will see it */
    u64 populated;             /* pfns [0, populated) have their frame */
};

static inline void *builder_map(const struct builder *b, u64 pfn) { return env_map(MFN(b->p2m[pfn])); }

/* Makes the p2m list for the plan @b->lo of @d: empty but for its own pages. */
void builder_begin(struct builder *b, struct domain *d);

/* Makes the frames of the page-aligned module @m the initrd's pages, and clears the end of the last one. */
void builder_give_initrd(struct builder *b, const struct boot_module *m);

/* Gives every page below pfn @end a frame: those that have none yet a zeroed one. */
void builder_populate(struct builder *b, u64 end);

/* Copies @len bytes to pseudo-physical address @gpa, which is populated. */
void builder_write(struct builder *b, u64 gpa, const void *src, u64 len);

/* Writes the page tables of the initial mapping, and of the p2m list when it has its own; everything is
 * populated.  The L4 is pfn lo.pt_pfn. */
void builder_tables(struct builder *b);

/* Fills the start_info page; @cmdline is cut to what fits. */
void builder_start_info(struct builder *b, const char *cmdline, u64 mod_size);

/* Fills a hypercall page. */
void builder_hypercall_page(u8 page[PAGE_SIZE]);

#endif
