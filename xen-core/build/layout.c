/* SPDX-License-Identifier: MIT */
/* Plans a PV domain's initial memory: the linear initial mapping (image, initrd, p2m list, start_info, page
 * tables, stack) and, when the kernel names an address for it, the p2m list in a mapping of its own. */
#include "build/layout.h"

#include <stdint.h>
#include <xen/xen.h>

#include "arch/layout.h"

#define L1_SPAN   (1ull << 21)      /* what one L1 table maps */
#define L2_SPAN   (1ull << 30)
#define L3_SPAN   (1ull << 39)
#define END_ALIGN (4ull << 20)      /* the ABI: the mapping ends on 4 MiB ... */
#define END_SPARE (512ull << 10)    /* ... with at least this much behind the stack */
#define MAX_PAGES (1ull << 40)      /* 52 address bits */

static int fail(struct layout_error *err, const char *rule, u64 value, u64 limit)
{
    *err = (struct layout_error){ rule, value, limit, false };
    return -1;
}

static int too_small(struct layout_error *err, const char *what, u64 need, u64 have)
{
    *err = (struct layout_error){ what, need, have, true };
    return -1;
}

static bool canonical(u64 va) { return va + (1ull << 47) < 1ull << 48; }

static unsigned l4_slot(u64 va) { return va >> 39 & 511; }

/* Tables of @span bytes each that [va, va + len) touches; len > 0 and the range does not wrap. */
static u64 spans(u64 va, u64 len, u64 span) { return (va + len - 1) / span - va / span + 1; }

/* The guest's own part of the address space, without wrapping and inside one table of @span bytes. */
static int check_range(u64 va, u64 len, u64 span, const char *what, struct layout_error *err)
{
    unsigned slot = l4_slot(va);

    if (!canonical(va) || (slot >= HV_L4_FIRST && slot <= HV_L4_LAST))
        return fail(err, what, va, HV_START);
    if (len > span || (va & (span - 1)) + len > span)
        return fail(err, what, (va & (span - 1)) + len, span);
    return 0;
}

static int check_image(const struct layout_request *rq, struct layout_error *err)
{
    u64 lo = rq->image_start, hi = rq->image_end, first, end;

    if (lo < rq->paddr_offset)
        return fail(err, "image starts below its own PADDR_OFFSET", lo, rq->paddr_offset);
    if (hi <= lo)
        return fail(err, "image is empty", hi, lo);
    if (hi - rq->paddr_offset > L2_SPAN)
        return fail(err, "image ends more than 1 GiB above VIRT_BASE", hi - rq->paddr_offset, L2_SPAN);
    if (rq->virt_base & ~PAGE_MASK)
        return fail(err, "VIRT_BASE is not page-aligned", rq->virt_base, PAGE_SIZE);
    if (check_range(rq->virt_base, hi - rq->paddr_offset, L2_SPAN,
                    "image must be in one GiB of guest address space", err))
        return -1;
    first = rq->virt_base + (lo - rq->paddr_offset);
    end = rq->virt_base + (hi - rq->paddr_offset);
    /* By offsets: the end may be 2^64. */
    if (rq->entry - first >= end - first)
        return fail(err, "entry point is outside the image", rq->entry, first);
    if (rq->has_hypercall_page &&
        (rq->hypercall_page & ~PAGE_MASK || rq->hypercall_page - first > end - first - PAGE_SIZE ||
         end - first < PAGE_SIZE))
        return fail(err, "hypercall page is not an aligned page of the image", rq->hypercall_page, first);
    return 0;
}

/* Page tables, stack and the end of the mapping depend on each other: grow until they fit. */
static int plan_tables(struct layout *lo, u64 used, struct layout_error *err)
{
    u64 tables = 4, stack_end, end, need;

    for (;;) {
        stack_end = lo->v_start + used + (tables + 1) * PAGE_SIZE;
        end = ROUND_UP(stack_end, END_ALIGN);
        if (end - stack_end < END_SPARE)
            end += END_ALIGN;
        if (check_range(lo->v_start, end - lo->v_start, L2_SPAN,
                        "initial mapping must be in one GiB of guest address space", err))
            return -1;
        need = 3 + spans(lo->v_start, end - lo->v_start, L1_SPAN);
        if (need == tables)
            break;
        tables = need;
    }
    lo->pt_pfn = used >> PAGE_SHIFT;
    lo->pt_va = lo->v_start + used;
    lo->nr_pt = tables;
    lo->stack_va = stack_end;
    lo->v_end = end;
    lo->init_pages = (end - lo->v_start) >> PAGE_SHIFT;
    return 0;
}

/* The list at the kernel's own address: its pages, then its tables, behind the initial mapping. */
static int plan_own_p2m(const struct layout_request *rq, struct layout *lo, struct layout_error *err)
{
    u64 va = rq->init_p2m, len = lo->list_pages << PAGE_SHIFT;

    if (va & ~PAGE_MASK)
        return fail(err, "INIT_P2M is not page-aligned", va, PAGE_SIZE);
    if (check_range(va, len, L3_SPAN, "p2m list must be in one L4 slot of guest address space", err))
        return -1;
    if (l4_slot(va) == l4_slot(lo->v_start))
        return fail(err, "INIT_P2M is in the L4 slot of the initial mapping", va, lo->v_start);
    lo->list_va = va;
    lo->list_first_pfn = lo->p2m_first_pfn = lo->init_pages;
    lo->p2m_table_pfn = lo->list_first_pfn + lo->list_pages;
    lo->p2m_tables = 1 + spans(va, len, L2_SPAN) + spans(va, len, L1_SPAN);
    lo->p2m_frames = lo->list_pages + lo->p2m_tables;
    return 0;
}

int layout_plan(const struct layout_request *rq, struct layout *lo, struct layout_error *err)
{
    u64 used, need;

    *lo = (struct layout){ .nr_pages = rq->nr_pages, .flags = SIF_PRIVILEGED | SIF_INITDOMAIN };
    if (check_image(rq, err))
        return -1;
    if (rq->nr_pages > MAX_PAGES)
        return fail(err, "memory of the domain in pages", rq->nr_pages, MAX_PAGES);
    if (rq->mod_size > rq->nr_pages << PAGE_SHIFT)
        return too_small(err, "the initrd", (rq->mod_size >> PAGE_SHIFT) + 1, rq->nr_pages);

    lo->v_start = rq->virt_base;
    lo->mod_pages = ROUND_UP(rq->mod_size, PAGE_SIZE) >> PAGE_SHIFT;
    lo->list_pages = ROUND_UP(rq->nr_pages * sizeof(u64), PAGE_SIZE) >> PAGE_SHIFT;

    used = ROUND_UP(rq->image_end - rq->paddr_offset, PAGE_SIZE);
    if (rq->mod_size && !rq->mod_start_pfn) {
        lo->mod_first_pfn = used >> PAGE_SHIFT;
        lo->mod_start = lo->v_start + used;
        used += lo->mod_pages << PAGE_SHIFT;
    }
    if (!rq->has_init_p2m) {
        lo->list_first_pfn = used >> PAGE_SHIFT;
        lo->list_va = lo->v_start + used;
        used += lo->list_pages << PAGE_SHIFT;
    }
    lo->start_info_pfn = used >> PAGE_SHIFT;
    lo->start_info_va = lo->v_start + used;
    used += PAGE_SIZE;
    if (plan_tables(lo, used, err))
        return -1;
    if (rq->has_init_p2m && plan_own_p2m(rq, lo, err))
        return -1;

    need = lo->init_pages + lo->p2m_frames;
    if (rq->mod_size && rq->mod_start_pfn) {
        lo->mod_first_pfn = lo->mod_start = need;
        lo->flags |= SIF_MOD_START_PFN;
        need += lo->mod_pages;
    }
    if (need > rq->nr_pages)
        return too_small(err, "kernel, initrd and first page tables", need, rq->nr_pages);
    return 0;
}
