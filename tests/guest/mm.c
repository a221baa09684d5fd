/* SPDX-License-Identifier: MIT */
/* The guest's memory: a pool of pages, p2m and M2P, and shorthand for the page-table hypercalls. */
#include "guest.h"

#define POOL 400

static char pool[POOL][PAGE] __attribute__((aligned(PAGE)));
static void *free_page[POOL];
static unsigned nr_free, nr_lost;
static u8 own[1 << 17];                         /* by mfn: a bit for each frame of ours; covers 4 GiB */

u64 mfn_of(const void *va) { return ((const u64 *)si->mfn_list)[((u64)va - VIRT_BASE) >> 12]; }
void *va_of(u64 mfn) { return (void *)(VIRT_BASE + (M2P[mfn] << 12)); }
bool own_mfn(u64 mfn) { return mfn < sizeof(own) * 8 && own[mfn / 8] >> (mfn & 7) & 1; }
u64 max_page(void) { return (u64)HC(memory_op, XENMEM_maximum_ram_page, 0); }
unsigned pages_free(void) { return nr_free + nr_lost; }
void page_lose(void *p) { (void)p; nr_lost++; }

void mm_init(void)
{
    const u64 *p2m = (const u64 *)si->mfn_list;

    for (u64 i = 0; i < si->nr_pages; i++)
        if (p2m[i] < sizeof(own) * 8)
            own[p2m[i] / 8] |= (u8)(1u << (p2m[i] & 7));
    own[si->shared_info >> 15] |= (u8)(1u << (si->shared_info >> 12 & 7));
    for (unsigned i = 0; i < POOL; i++)
        free_page[nr_free++] = pool[POOL - 1 - i];
}

void *page_alloc(void)
{
    void *p;

    REQUIRE(nr_free);
    p = free_page[--nr_free];
    memset(p, 0, PAGE);
    return p;
}

void page_free(void *p)
{
    if (EQ(make_rw(p), 0))
        free_page[nr_free++] = p;
}

/* From the machine's memory map; the list is made once. */
u64 foreign_mfn(unsigned n)
{
    static struct { u64 addr, size; u32 type; } __attribute__((packed)) e820[64];
    static u32 list[16384];
    static unsigned known;

    if (!known) {
        struct xen_memory_map m = { .nr_entries = COUNT(e820) };

        set_xen_guest_handle(m.buffer, (void *)e820);
        REQUIRE(EQ(HC(memory_op, XENMEM_machine_memory_map, &m), 0));
        for (u32 i = 0; i < m.nr_entries; i++) {
            u64 mfn = (e820[i].addr + PAGE - 1) >> 12, end = (e820[i].addr + e820[i].size) >> 12;

            for (; e820[i].type == 1 && mfn < end && known < COUNT(list); mfn++)
                if (mfn && !own_mfn(mfn))
                    list[known++] = (u32)mfn;
        }
    }
    return n < known ? list[n] : 0;
}

u64 pte_ma(u64 va, int level)
{
    const u64 *table = (const u64 *)si->pt_base;

    for (int l = 4; ; l--) {
        unsigned i = va >> (12 + 9 * (l - 1)) & 511;

        if (l == level)
            return mfn_of(table) << 12 | i * 8;
        if (!(table[i] & P))
            return 0;
        table = va_of((table[i] & MFN_MASK) >> 12);
    }
}

u64 pte_get(u64 va, int level)
{
    u64 ma = pte_ma(va, level);

    return ma ? load((char *)va_of(ma >> 12) + (ma & 4095)) : 0;
}

long mmu_update(u64 ptr, u64 val)
{
    struct mmu_update u = { ptr, val };

    return HC(mmu_update, &u, 1, 0, DOMID_SELF);
}

long mmuext(u32 cmd, u64 arg1, u64 arg2)
{
    struct mmuext_op op = { .cmd = cmd };

    op.arg1.mfn = arg1;
    memcpy(&op.arg2, &arg2, sizeof(op.arg2));
    return HC(mmuext_op, &op, 1, 0, DOMID_SELF);
}

long map_va(u64 va, u64 entry) { return HC(update_va_mapping, va, entry, UVMF_INVLPG); }
long make_ro(void *p) { return map_va((u64)p, pte(mfn_of(p), P | US | AC | DI)); }
long make_rw(void *p) { return map_va((u64)p, pte(mfn_of(p), P | RW | US | AC | DI)); }

void *table_page(void)
{
    void *p = page_alloc();

    REQUIRE(EQ(make_ro(p), 0));
    return p;
}

void hook(u64 va, int level, void *table)
{
    REQUIRE(EQ(mmu_update(pte_ma(va, level), pte(mfn_of(table), P | RW | US | AC | DI)), 0));
}

void unhook(u64 va, int level) { EQ(mmu_update(pte_ma(va, level), 0), 0); }

bool usable(void *p)
{
    u64 mfn = mfn_of(p);
    bool ok = EQ(make_rw(p), 0);

    memset(p, 0, PAGE);
    ok = ok && EQ(pin(1, mfn), -EINVAL) && EQ(make_ro(p), 0) && EQ(pin(1, mfn), 0) && EQ(make_rw(p), -EINVAL) &&
         EQ(unpin(mfn), 0) && EQ(make_rw(p), 0);
    return ok;
}

u64 *scratch;

void scratch_open(void)
{
    scratch = table_page();
    hook(SCRATCH, 2, scratch);
}

void scratch_close(void)
{
    unhook(SCRATCH, 2);
    page_free(scratch);
}
