/* SPDX-License-Identifier: MIT */
/* Page tables through hypercalls: what is refused, and that a refusal leaves nothing behind. */
#include "guest.h"


/* @mfn must not become writable, by any way that there is. */
static void never_writable(const char *what, u64 mfn)
{
    struct multicall_entry e = { .op = __HYPERVISOR_update_va_mapping, .args = { SCRATCH, pte(mfn, RWE), 0 } };

    if (mmu_update(pte_ma(SCRATCH, 1), pte(mfn, RWE)) != -EINVAL)
        FAIL("%s: mmu_update made it writable", what);
    if (mmu_update(pte_ma(SCRATCH, 1) | MMU_PT_UPDATE_PRESERVE_AD, pte(mfn, RWE)) != -EINVAL)
        FAIL("%s: mmu_update PRESERVE_AD made it writable", what);
    if (map_va(SCRATCH, pte(mfn, RWE)) != -EINVAL)
        FAIL("%s: update_va_mapping made it writable", what);
    if (HC(multicall, &e, 1) != 0 || (long)e.result != -EINVAL)
        FAIL("%s: a multicall made it writable", what);
    EQ(scratch[0], 0);
}

TEST(tables_never_writable)
{
    static const char *const name[] = { "", "L1", "L2", "L3", "L4" };

    scratch_open();
    for (int level = 1; level <= 4; level++)
        never_writable(name[level], table_mfn(VIRT_BASE, level));
    never_writable("scratch table", mfn_of(scratch));
    /* Reading them is the guest's right, and adding the write bit to such a mapping is the same thing again. */
    EQ(map_va(SCRATCH, pte(root_mfn(), ROE)), 0);
    EQ(mmu_update(pte_ma(SCRATCH, 1), pte(root_mfn(), RWE)), -EINVAL);
    EQ(scratch[0] & RW, 0);
    EQ(try_write((void *)SCRATCH, 0), true);
    TRAPPED(14, 3);
    EQ(map_va(SCRATCH, 0), 0);
    /* In the initial mapping. */
    EQ(make_rw((void *)si->pt_base), -EINVAL);
    scratch_close();
}

TEST(foreign_frames)
{
    u64 mfn, bad = 0;
    unsigned n = 0;

    scratch_open();
    never_writable("LAPIC", 0xfee00);
    never_writable("IO-APIC", 0xfec00);
    EQ(map_va(SCRATCH, pte(0xfee00, ROE)), -EINVAL);
    EQ(map_va(SCRATCH, pte(0xfec00, ROE)), -EINVAL);
    never_writable("beyond the address width", 1ul << 39);
    EQ(map_va(SCRATCH, pte(1ul << 39, ROE)), -EINVAL);
    EQ(map_va(SCRATCH, 1ul << 51 | ROE), -EINVAL);
    /* All RAM that is not ours: the hypervisor's text, heap, frame table, M2P, stacks, the other side's page tables. */
    for (; (mfn = foreign_mfn(n)); n++) {
        if (mmu_update(pte_ma(SCRATCH, 1), pte(mfn, ROE)) != -EINVAL ||
            mmu_update(pte_ma(SCRATCH, 1), pte(mfn, RWE)) != -EINVAL) {
            bad++;
            FAIL("foreign frame %#lx could be mapped", mfn);
            EQ(mmu_update(pte_ma(SCRATCH, 1), 0), 0);
        }
        if (bad > 3)
            break;
    }
    CHECK(n > 100);
    EQ(pin(1, foreign_mfn(0)), -EINVAL);
    EQ(pin(4, foreign_mfn(50)), -EINVAL);
    EQ(pin(4, 0xfee00), -EINVAL);
    EQ(pin(1, max_page() + 1), -EINVAL);
    EQ(pin(1, ~0ul), -EINVAL);
    EQ(pin(1, 1ul << 40), -EINVAL);
    EQ(unpin(foreign_mfn(0)), -EINVAL);
    EQ(unpin(~0ul), -EINVAL);
    EQ(mmu_update(foreign_mfn(0) << 12, 0), -EINVAL);
    EQ(mmu_update(0xfee00000, 0), -EINVAL);
    EQ(mmu_update((max_page() + 1) << 12, 0), -EINVAL);
    EQ(mmu_update(~7ul, 0), -EINVAL);
    EQ(mmu_update(ma(scratch, 0) | 5, 0), -ENOSYS);
    EQ(mmuext(MMUEXT_CLEAR_PAGE, foreign_mfn(0), 0), -EINVAL);
    EQ(mmuext(MMUEXT_CLEAR_PAGE, root_mfn(), 0), -EINVAL);
    EQ(mmuext(MMUEXT_CLEAR_PAGE, mfn_of(scratch), 0), -EINVAL);
    scratch_close();
}

/* Pins ------------------------------------------------------------------------------------------------------- */

TEST(pin_writable)
{
    void *p = page_alloc();

    for (int level = 1; level <= 4; level++)
        EQ(pin(level, mfn_of(p)), -EINVAL);
    /* A second mapping counts as much as the first. */
    scratch_open();
    EQ(map_va(SCRATCH, pte(mfn_of(p), RWE)), 0);
    REQUIRE(EQ(make_ro(p), 0));
    EQ(pin(1, mfn_of(p)), -EINVAL);
    EQ(map_va(SCRATCH, pte(mfn_of(p), ROE)), 0);
    EQ(pin(1, mfn_of(p)), 0);
    EQ(map_va(SCRATCH, pte(mfn_of(p), RWE)), -EINVAL);
    EQ(map_va(SCRATCH, 0), 0);
    EQ(unpin(mfn_of(p)), 0);
    scratch_close();
    page_free(p);
}

TEST(pin_rules)
{
    u64 *p = table_page();
    u64 mfn = mfn_of(p);

    EQ(unpin(mfn), -EINVAL);                    /* never pinned */
    EQ(unpin(table_mfn(VIRT_BASE, 1)), -EINVAL);        /* a table, and not pinned */
    for (int level = 1; level <= 4; level++) {
        EQ(pin(level, mfn), 0);
        EQ(pin(level, mfn), -EINVAL);           /* twice */
        EQ(pin(level == 4 ? 1 : level + 1, mfn), -EINVAL);      /* as something else */
        EQ(make_rw(p), -EINVAL);
        EQ(unpin(mfn), 0);
        EQ(unpin(mfn), -EINVAL);
        EQ(make_rw(p), 0);
        EQ(make_ro(p), 0);
    }
    /* The hypervisor's slots in what was an L4 are not left to be read. */
    EQ(pin(4, mfn), 0);
    EQ(unpin(mfn), 0);
    EQ(make_rw(p), 0);
    for (unsigned i = 0; i < 512; i++)
        EQ(p[i], 0);
    page_free(p);
}

/* Pin on what is referenced already, and the other way round. */
TEST(pin_and_hook)
{
    void *p = table_page();
    u64 mfn = mfn_of(p);

    hook(SCRATCH, 2, p);
    EQ(pin(2, mfn), -EINVAL);
    EQ(pin(1, mfn), 0);
    unhook(SCRATCH, 2);
    EQ(make_rw(p), -EINVAL);
    hook(SCRATCH, 2, p);
    EQ(unpin(mfn), 0);
    EQ(make_rw(p), -EINVAL);
    unhook(SCRATCH, 2);
    EQ(usable(p), true);
    page_free(p);
}

/* One bad entry after several good ones: the pin fails, and every reference it took is given back. */
static void bad_table(int level, u64 good, u64 bad, const char *what)
{
    static const unsigned at[] = { 0, 5, 255, 511 };

    for (unsigned i = 0; i < COUNT(at); i++) {
        u64 *t = page_alloc();
        u64 mfn = mfn_of(t);

        for (unsigned k = 0; k < 512; k += 100)
            if (level < 4 || k < 256)
                t[k] = good;
        t[at[i]] = bad;
        REQUIRE(EQ(make_ro(t), 0));
        if (pin(level, mfn) != -EINVAL) {
            FAIL("L%d with entry %u %s (%#lx) was accepted", level, at[i], what, bad);
            unpin(mfn);
        }
        EQ(t[at[i]], bad);
        EQ(usable(t), true);
        page_free(t);
    }
}

TEST(pin_bad_l1)
{
    void *good = page_alloc();
    u64 g = pte(mfn_of(good), RWE);
    u64 *self = page_alloc();

    bad_table(1, g, pte(foreign_mfn(0), ROE), "naming a foreign frame");
    bad_table(1, g, pte(foreign_mfn(0), RWE), "naming a foreign frame");
    bad_table(1, g, pte(root_mfn(), RWE), "with a writable L4");
    bad_table(1, g, pte(0xfee00, RWE), "naming the LAPIC");
    bad_table(1, g, 1ul << 51 | RWE, "with a reserved bit");
    bad_table(1, g, g | PCD, "uncached RAM");
    EQ(usable(good), true);                     /* no writable reference was left behind */
    /* Itself, writable: the pin would have to refuse itself. */
    self[7] = pte(mfn_of(self), RWE);
    REQUIRE(EQ(make_ro(self), 0));
    EQ(pin(1, mfn_of(self)), -EINVAL);
    EQ(make_rw(self), 0);
    self[7] = pte(mfn_of(self), ROE);
    REQUIRE(EQ(make_ro(self), 0));
    EQ(pin(1, mfn_of(self)), 0);
    EQ(unpin(mfn_of(self)), 0);
    EQ(usable(self), true);
    page_free(self);
    page_free(good);
}

TEST(pin_bad_upper)
{
    void *lower[5] = { NULL };
    void *writable = page_alloc();

    for (int level = 1; level <= 3; level++) {
        void *t = table_page();
        u64 g;

        lower[level] = t;
        g = pte(mfn_of(t), RWE);
        bad_table(level + 1, g, g | PSE, "with the large-page bit");
        bad_table(level + 1, g, pte(foreign_mfn(0), RWE), "naming a foreign frame");
        bad_table(level + 1, g, pte(max_page() + 1, RWE), "naming a frame beyond RAM");
        bad_table(level + 1, g, pte(0xfee00, RWE), "naming the LAPIC");
        bad_table(level + 1, g, 1ul << 51 | RWE, "with a reserved bit");
        bad_table(level + 1, g, pte(mfn_of(writable), RWE), "naming a writable page");
        bad_table(level + 1, g, pte(root_mfn(), RWE), "naming the L4");
        if (level < 3)
            bad_table(level + 1, g, pte(table_mfn(VIRT_BASE, 3), RWE), "naming an L3");
        if (level != 1)
            bad_table(level + 1, g, pte(table_mfn(VIRT_BASE, 1), RWE), "naming an L1");
        EQ(usable(t), true);
        REQUIRE(EQ(make_ro(t), 0));
    }
    for (int level = 1; level <= 3; level++)
        page_free(lower[level]);
    EQ(usable(writable), true);
    page_free(writable);
}

/* A tree whose lowest table is bad. */
TEST(pin_bad_tree)
{
    u64 *t[5];
    void *data = page_alloc();

    for (int level = 1; level <= 4; level++) {
        t[level] = page_alloc();
        if (level > 1)
            for (unsigned i = 0; i < 4; i++)
                t[level][i] = pte(mfn_of(t[level - 1]), RWE);
    }
    for (unsigned i = 0; i < 100; i++)
        t[1][i] = pte(mfn_of(data), RWE);
    t[1][100] = pte(mfn_of(t[2]), RWE);         /* the L2 above it, writable */
    for (int level = 1; level <= 4; level++)
        REQUIRE(EQ(make_ro(t[level]), 0));
    for (unsigned i = 0; i < 3; i++)
        EQ(pin(4, mfn_of(t[4])), -EINVAL);
    EQ(make_rw(t[1]), 0);
    t[1][100] = 0;
    EQ(make_ro(t[1]), 0);
    EQ(pin(4, mfn_of(t[4])), 0);
    for (int level = 1; level <= 4; level++)
        EQ(make_rw(t[level]), -EINVAL);
    EQ(mmu_update(ma(t[1], 100), pte(mfn_of(t[2]), RWE)), -EINVAL);
    EQ(mmu_update(ma(t[1], 100), pte(mfn_of(t[1]), RWE)), -EINVAL);
    EQ(mmu_update(ma(t[1], 100), pte(mfn_of(t[2]), ROE)), 0);
    EQ(make_ro(data), 0);
    EQ(pin(1, mfn_of(data)), -EINVAL);          /* 400 writable mappings of it in the tree */
    EQ(unpin(mfn_of(t[4])), 0);
    EQ(pin(1, mfn_of(data)), 0);
    EQ(unpin(mfn_of(data)), 0);
    for (int level = 1; level <= 4; level++) {
        EQ(usable(t[level]), true);
        page_free(t[level]);
    }
    page_free(data);
}
