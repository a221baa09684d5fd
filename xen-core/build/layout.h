/* SPDX-License-Identifier: MIT */
/* Where everything of a new PV domain goes, in pseudo-physical and virtual space, and how much memory it
 * gets.  Calculation only: no memory is touched and nothing of the environment is called. */
#ifndef PT_BUILD_LAYOUT_H
#define PT_BUILD_LAYOUT_H

#include "base/types.h"

/* What the image and the operator ask for. */
struct layout_request {
    u64 virt_base;             /* VA of pfn 0 */
    u64 paddr_offset;          /* p_paddr of pfn 0 */
    u64 image_start, image_end;   /* lowest and one past the highest p_paddr of the image */
    u64 entry;                 /* VA */
    bool has_hypercall_page;
    u64 hypercall_page;        /* VA */
    bool has_init_p2m;
    u64 init_p2m;              /* VA for the p2m list; without it the list is in the initial mapping */
    bool mod_start_pfn;        /* the kernel takes the initrd as a pfn, unmapped */
    u64 mod_size;              /* initrd, bytes; 0 = none */
    u64 nr_pages;              /* of the domain */
};

/* The plan.  The initial mapping is [v_start, v_end) = pfns [0, init_pages). */
struct layout {
    u64 nr_pages;
    u64 v_start, v_end;
    u64 init_pages;
    u64 mod_first_pfn, mod_pages;
    u64 mod_start;             /* start_info.mod_start: a pfn or a VA */
    u64 list_va, list_first_pfn, list_pages;   /* the p2m list; unused entries of its last page are invalid */
    u64 p2m_first_pfn, p2m_frames;   /* the list and its own tables; 0, 0 when it is in the initial mapping */
    u64 p2m_table_pfn, p2m_tables;   /* the own tables: L3, L2s and L1s, behind the list */
    u64 start_info_pfn, start_info_va;
    u64 pt_pfn, pt_va, nr_pt;  /* page tables of the initial mapping, the L4 first */
    u64 stack_va;              /* the end of the one-page stack */
    u32 flags;                 /* start_info.flags */
};

/* Why a request cannot be met: the rule, the offending value, and the limit it broke.  With @memory the rule
 * is what memory is too small for, and the numbers are the pages needed and the pages given. */
struct layout_error { const char *rule; u64 value, limit; bool memory; };

/* Plans the initial domain.  0, or -1 with @err filled. */
int layout_plan(const struct layout_request *rq, struct layout *lo, struct layout_error *err);

/* One size of dom0_mem=: bytes or percent, perhaps to be left to the hypervisor instead (negative). */
struct mem_size { bool set, negative, percent; u64 n; };
struct mem_option { struct mem_size size, min, max; };

/* Reads Xen's dom0_mem= grammar: comma-separated [min:|max:]<size>, <size> = [-]<number>[BKMGT%], KiB
 * without a suffix.  False: malformed (@opt is then all unset). */
bool mem_option_parse(const char *s, struct mem_option *opt);

/* Pages for the domain out of @available pages: the size asked for (everything by default), between min and
 * max, and never more than there are. */
u64 mem_option_pages(const struct mem_option *opt, u64 available);

#endif
