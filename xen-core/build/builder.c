/* SPDX-License-Identifier: MIT */
/* A new domain's pseudo-physical memory: which machine frame each page is, and writing to it. */
#include "build/builder.h"

#include "boot/boot.h"
#include "console.h"
#include "domain.h"
#include "memory.h"
#include "pt_string.h"

#define P2M_NONE (~0ull)            /* no frame; also what the ABI wants in the list's unused entries */

typedef unsigned long long ull;

static void assign(struct builder *b, u64 pfn, u64 mfn)
{
    if (!dom_assign_frame(b->d, MFN(mfn)))
        boot_fatal("dom0: frame %#llx for page %#llx is not free RAM", (ull)mfn, (ull)pfn);
    b->p2m[pfn] = mfn;
}

void builder_begin(struct builder *b, struct domain *d)
{
    const struct layout *lo = &b->lo;

    b->d = d;
    b->populated = 0;
    b->list_mfn = dom_take_range(lo->list_pages);
    if (mfn_eq(b->list_mfn, MFN_INVALID))
        boot_fatal("dom0: too little memory for its p2m list: %llu KiB in one piece needed, "
                   "%llu KiB free in all", (ull)lo->list_pages * 4, (ull)dom_free_frames() * 4);
    b->p2m = env_map(b->list_mfn);
    memset(b->p2m, 0xff, lo->list_pages << PAGE_SHIFT);
    for (u64 i = 0; i < lo->list_pages; i++)
        assign(b, lo->list_first_pfn + i, b->list_mfn.v + i);
}

void builder_give_initrd(struct builder *b, const struct boot_module *m)
{
    const struct layout *lo = &b->lo;
    u64 first = m->start >> PAGE_SHIFT, used = m->size & (PAGE_SIZE - 1);

    for (u64 i = 0; i < lo->mod_pages; i++)
        assign(b, lo->mod_first_pfn + i, first + i);
    if (used)
        memset((u8 *)env_map(MFN(first + lo->mod_pages - 1)) + used, 0, PAGE_SIZE - used);
}

void builder_populate(struct builder *b, u64 end)
{
    for (u64 pfn = b->populated; pfn < end; pfn++) {
        if (b->p2m[pfn] == P2M_NONE) {
            b->p2m[pfn] = dom_alloc_frame(b->d).v;
            if (b->p2m[pfn] == MFN_INVALID.v)
                boot_fatal("dom0: memory ran out at page %llu of %llu", (ull)pfn, (ull)b->lo.nr_pages);
        }
        m2p_set(MFN(b->p2m[pfn]), pfn);
    }
    b->populated = end;
}

void builder_write(struct builder *b, u64 gpa, const void *src, u64 len)
{
    const u8 *s = src;

    while (len) {
        u64 off = gpa & (PAGE_SIZE - 1), n = MIN(len, PAGE_SIZE - off);

        memcpy((u8 *)builder_map(b, gpa >> PAGE_SHIFT) + off, s, n);
        gpa += n;
        s += n;
        len -= n;
    }
}
