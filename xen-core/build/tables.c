/* SPDX-License-Identifier: MIT */
/* Writes a new domain's first page tables: 4 KiB leaves, everything writable and executable except the
 * tables themselves, which the ABI wants read-only. */
#include "base/bug.h"
#include "build/builder.h"

#define PTE_P   (1ull << 0)
#define PTE_RW  (1ull << 1)
#define PTE_US  (1ull << 2)
#define PTE_A   (1ull << 5)
#define PTE_D   (1ull << 6)
#define PTE_MFN 0x000ffffffffff000ull

#define TABLE_BITS (PTE_P | PTE_RW | PTE_US | PTE_A | PTE_D)
#define LEAF_BITS  (PTE_P | PTE_RW | PTE_US | PTE_A | PTE_D)

/* The table below @entry; made from pfn @next, which moves on, when there is none. */
static u64 *lower_table(const struct builder *b, u64 *entry, u64 *next)
{
    if (!(*entry & PTE_P))
        *entry = b->p2m[(*next)++] << PAGE_SHIFT | TABLE_BITS;
    return env_map(MFN((*entry & PTE_MFN) >> PAGE_SHIFT));
}

/* Maps @nr pages from pfn @pfn at @va; tables come from pfn @next on.  Returns the first pfn not used. */
static u64 map_pages(const struct builder *b, u64 *l4, u64 va, u64 pfn, u64 nr, u64 next)
{
    const struct layout *lo = &b->lo;
    u64 *table = NULL;

    for (u64 i = 0; i < nr; i++, pfn++, va += PAGE_SIZE) {
        unsigned slot = va >> PAGE_SHIFT & 511;
        bool is_table = pfn - lo->pt_pfn < lo->nr_pt;

        if (!table || slot == 0) {
            table = lower_table(b, &l4[va >> 39 & 511], &next);
            table = lower_table(b, &table[va >> 30 & 511], &next);
            table = lower_table(b, &table[va >> 21 & 511], &next);
        }
        table[slot] = b->p2m[pfn] << PAGE_SHIFT | (is_table ? LEAF_BITS & ~PTE_RW : LEAF_BITS);
    }
    return next;
}

void builder_tables(struct builder *b)
{
    const struct layout *lo = &b->lo;
    u64 *l4 = builder_map(b, lo->pt_pfn);
    u64 end;

    end = map_pages(b, l4, lo->v_start, 0, lo->init_pages, lo->pt_pfn + 1);
    BUG_ON(end != lo->pt_pfn + lo->nr_pt);
    if (lo->p2m_tables) {
        end = map_pages(b, l4, lo->list_va, lo->list_first_pfn, lo->list_pages, lo->p2m_table_pfn);
        BUG_ON(end != lo->p2m_table_pfn + lo->p2m_tables);
    }
}
