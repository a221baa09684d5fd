/* SPDX-License-Identifier: MIT */
/* Descriptor tables: what a guest may put in them, and what it may not. */
#include "guest.h"

#define CODE64   0x00af9b000000fffful           /* DPL 0; becomes 3 */
#define DATA     0x00cf93000000fffful
#define DPL3     (3ul << 45)
#define PRESENT  (1ul << 47)
#define GATE(type) (PRESENT | (u64)(type) << 40 | 0xe0330000ul)

static long set_gdt(u64 mfn, u64 entries)
{
    static u64 list[14];

    list[0] = mfn;
    return HC(set_gdt, list, entries);
}

static u16 load_es(u16 sel) { return TRY("mov %w[s], %%es", , A([s] "r"(sel))); }

TEST(gdt)
{
    u64 *t = page_alloc();

    t[2] = CODE64;
    t[3] = DATA;
    t[4] = DATA & ~PRESENT;
    EQ(set_gdt(mfn_of(t), 16), -EINVAL);        /* it is writable */
    REQUIRE(EQ(make_ro(t), 0));
    EQ(set_gdt(mfn_of(t), 16), 0);
    EQ(t[2], CODE64 | DPL3);
    EQ(t[3], DATA | DPL3);
    EQ(t[4], DATA & ~PRESENT);
    EQ(load_es(0x18), 0);
    EQ(load_es(0x1b), 0);
    EQ(load_es(0x23), 1);
    EQ(this_cpu()->trap.err, 0x20);
    EQ(load_es(0x2b), 1);
    EQ(load_es(0xe02b), 0);                     /* the reserved part is still there */
    EQ(load_es(0), 0);
    /* While it is in use it is neither writable nor a page table. */
    EQ(make_rw(t), -EINVAL);
    EQ(pin(1, mfn_of(t)), -EINVAL);
    EQ(pin(4, mfn_of(t)), -EINVAL);
    EQ(try_write(&t[5], DATA), true);
    EQ(t[5], 0);
    EQ(set_gdt(mfn_of(t), 512), 0);
    EQ(set_gdt(0, 0), 0);
    EQ(load_es(0x18), 1);
    EQ(make_rw(t), 0);
    EQ(usable(t), true);
    page_free(t);
}

TEST(gdt_bad_entries)
{
    static const u8 bad[] = { 1, 2, 3, 5, 6, 7, 9, 11, 14, 15 };  /* TSS, LDT, gates */
    u64 *t = page_alloc();

    for (unsigned i = 0; i < COUNT(bad); i++) {
        unsigned slot = i & 1 ? 511 : 20;       /* the whole page counts, not only the entries asked for */

        t[slot] = GATE(bad[i]);
        REQUIRE(EQ(make_ro(t), 0));
        if (set_gdt(mfn_of(t), 16) != -EINVAL)
            FAIL("descriptor type %d was accepted in a GDT", bad[i]);
        if (HC(update_descriptor, ma(t, 0), GATE(bad[i])) != -EINVAL)
            FAIL("descriptor type %d was accepted by update_descriptor", bad[i]);
        EQ(make_rw(t), 0);
        t[slot] = 0;
    }
    EQ(usable(t), true);
    EQ(set_gdt(foreign_mfn(0), 16), -EINVAL);
    EQ(set_gdt(max_page() + 1, 16), -EINVAL);
    EQ(set_gdt(0xfee00, 16), -EINVAL);
    EQ(set_gdt(~0ul, 16), -EINVAL);
    EQ(set_gdt(mfn_of((void *)si->pt_base), 16), -EINVAL);
    page_free(t);
}

/* The second of two frames is bad: the first must not stay typed. */
TEST(gdt_undone)
{
    static u64 list[14];
    u64 *a = table_page(), *b = page_alloc();

    list[0] = mfn_of(a);
    list[1] = mfn_of(b);
    EQ(HC(set_gdt, list, 600), -EINVAL);
    EQ(usable(a), true);
    page_free(a);
    page_free(b);
}

TEST(update_descriptor)
{
    u64 *t = table_page(), *plain = page_alloc(), *l1 = table_page();

    REQUIRE(EQ(set_gdt(mfn_of(t), 16), 0));
    EQ(HC(update_descriptor, ma(t, 0) + 8 * 5, DATA), 0);
    EQ(t[5], DATA | DPL3);
    EQ(load_es(0x2b), 0);
    EQ(load_es(0), 0);
    EQ(HC(update_descriptor, ma(t, 0) + 8 * 5, 0), 0);
    EQ(load_es(0x2b), 1);
    EQ(HC(update_descriptor, ma(t, 0) + 8 * 5, GATE(9)), -EINVAL);
    EQ(HC(update_descriptor, ma(t, 0) + 8 * 5, GATE(2)), -EINVAL);
    EQ(HC(update_descriptor, ma(t, 0) + 8 * 5, GATE(14)), -EINVAL);
    EQ(t[5], 0);
    EQ(HC(update_descriptor, ma(t, 0) + 8 * 5 + 4, DATA), -EINVAL);
    EQ(HC(update_descriptor, ma(t, 0) + 1, 0), -EINVAL);
    EQ(HC(update_descriptor, ma(plain, 0), CODE64), 0);
    EQ(plain[0], CODE64 | DPL3);
    EQ(pin(1, mfn_of(l1)), 0);
    EQ(HC(update_descriptor, ma(l1, 0), DATA), -EINVAL);
    EQ(HC(update_descriptor, ma(l1, 0), 0), -EINVAL);
    EQ(l1[0], 0);
    EQ(unpin(mfn_of(l1)), 0);
    EQ(HC(update_descriptor, ma((void *)si->pt_base, 0), 0), -EINVAL);
    EQ(HC(update_descriptor, foreign_mfn(0) << 12, 0), -EINVAL);
    EQ(HC(update_descriptor, foreign_mfn(100) << 12, 0), -EINVAL);
    EQ(HC(update_descriptor, (max_page() + 1) << 12, 0), -EINVAL);
    EQ(HC(update_descriptor, ~7ul, 0), -EINVAL);
    EQ(set_gdt(0, 0), 0);
    page_free(t);
    page_free(plain);
    page_free(l1);
}

TEST(ldt)
{
    u64 *t = page_alloc();

    t[0] = DATA;
    t[511] = DATA;
    EQ(mmuext(MMUEXT_SET_LDT, (u64)t, 512), -EINVAL);           /* writable */
    REQUIRE(EQ(make_ro(t), 0));
    EQ(mmuext(MMUEXT_SET_LDT, (u64)t + 8, 16), -EINVAL);
    EQ(mmuext(MMUEXT_SET_LDT, (u64)t, 8193), -EINVAL);
    EQ(mmuext(MMUEXT_SET_LDT, (u64)t, ~0ul), -EINVAL);
    EQ(mmuext(MMUEXT_SET_LDT, SCRATCH, 16), -EINVAL);
    EQ(mmuext(MMUEXT_SET_LDT, HV_BASE, 16), -EINVAL);
    EQ(mmuext(MMUEXT_SET_LDT, 0xffff828000000000, 16), -EINVAL);
    EQ(mmuext(MMUEXT_SET_LDT, 1ul << 63, 16), -EINVAL);
    EQ(load_es(0x07), 1);
    EQ(mmuext(MMUEXT_SET_LDT, (u64)t, 512), 0);
    EQ(t[0], DATA | DPL3);
    EQ(load_es(0x07), 0);
    EQ(load_es(511 * 8 + 7), 0);
    EQ(load_es(512 * 8 + 7), 1);
    EQ(load_es(0x0f), 1);
    EQ(load_es(0), 0);
    EQ(HC(update_descriptor, ma(t, 0) + 8, DATA), 0);
    EQ(load_es(0x0f), 0);
    EQ(load_es(0), 0);
    EQ(make_rw(t), -EINVAL);
    {
        struct sched_poll p = { .timeout = now_ns() + 1000000 };

        HC(sched_op, SCHEDOP_poll, &p);         /* it is loaded again after a sleep */
    }
    EQ(load_es(0x0f), 0);
    EQ(load_es(0), 0);
    EQ(mmuext(MMUEXT_SET_LDT, 0, 0), 0);
    EQ(load_es(0x0f), 1);
    EQ(make_rw(t), 0);
    /* Gates have no place in it. */
    t[3] = GATE(14);
    EQ(make_ro(t), 0);
    EQ(mmuext(MMUEXT_SET_LDT, (u64)t, 16), -EINVAL);
    EQ(make_rw(t), 0);
    EQ(usable(t), true);
    page_free(t);
}

/* The reserved page is not the guest's to see or to name. */
TEST(reserved_descriptors)
{
    struct { u16 limit; u64 base; } __attribute__((packed)) gdtr = { 0, 0 };
    u64 v;

    if (TRY("sgdt (%[p])", , A([p] "r"(&gdtr))))
        return;                                 /* UMIP keeps it a secret */
    CHECK(gdtr.base >= HV_BASE && gdtr.base < HV_END);
    for (unsigned page = 0; page < 15; page++) {
        CHECK(try_read((void *)(gdtr.base + page * PAGE), &v));
        CHECK(try_write((void *)(gdtr.base + page * PAGE), 0));
    }
    EQ(HC(update_va_mapping, gdtr.base, 0, 0), -EINVAL);
    EQ(HC(update_va_mapping, gdtr.base + 14 * PAGE, pte(mfn_of((void *)si->pt_base), P | US), 0), -EINVAL);
}
