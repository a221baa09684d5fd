/* SPDX-License-Identifier: MIT */
/* Page tables in use: updates of every level, roots, flushes, batches, and the life of frames. */
#include "guest.h"

/* Updates of upper levels ------------------------------------------------------------------------------------- */

TEST(hypervisor_slots)
{
    u64 *l4 = (u64 *)si->pt_base, *l3 = table_page();

    for (unsigned i = 256; i < 272; i++) {
        u64 before = l4[i];

        EQ(mmu_update(ma(l4, i), 0), -EINVAL);
        EQ(mmu_update(ma(l4, i), pte(mfn_of(l3), RWE)), -EINVAL);
        EQ(mmu_update(ma(l4, i) | MMU_PT_UPDATE_PRESERVE_AD, pte(mfn_of(l3), RWE)), -EINVAL);
        EQ(mmu_update(ma(l4, i), before), -EINVAL);
        EQ(l4[i], before);
    }
    /* The neighbours are free. */
    EQ(mmu_update(ma(l4, 272), pte(mfn_of(l3), RWE)), 0);
    EQ(mmu_update(ma(l4, 272), 0), 0);
    EQ(mmu_update(ma(l4, 255), pte(mfn_of(l3), RWE)), 0);
    EQ(mmu_update(ma(l4, 255), 0), 0);
    EQ(usable(l3), true);
    /* What a guest puts there before the pin does not count. */
    EQ(make_rw(l3), 0);
    l3[256] = pte(foreign_mfn(0), RWE);
    l3[260] = pte(root_mfn(), RWE);
    l3[271] = ~0ul;
    EQ(make_ro(l3), 0);
    EQ(pin(4, mfn_of(l3)), 0);
    EQ(l3[260], l4[260]);
    EQ(unpin(mfn_of(l3)), 0);
    page_free(l3);
    for (u64 va = HV_BASE; va < HV_END; va += 1ul << 39)
        EQ(HC(update_va_mapping, va, 0, UVMF_INVLPG), -EINVAL);
    EQ(HC(update_va_mapping, 0xffff82d040000000, pte(mfn_of(l4), ROE), 0), -EINVAL);
    EQ(HC(update_va_mapping, 1ul << 63, 0, 0), -EINVAL);
    EQ(HC(update_va_mapping, 0x0000800000000000, 0, 0), -EINVAL);
    EQ(HC(update_va_mapping, SCRATCH, 0, 0), -EINVAL);          /* no table there */
}

TEST(upper_updates)
{
    u64 *l1 = table_page();
    u64 e2 = pte_ma(SCRATCH, 2), e3 = pte_ma(SCRATCH, 3);

    EQ(mmu_update(e2, pte(mfn_of(l1), RWE) | PSE), -EINVAL);
    EQ(mmu_update(e2, RWE | PSE), -EINVAL);
    EQ(mmu_update(e2, pte(table_mfn(VIRT_BASE, 2), RWE)), -EINVAL);
    EQ(mmu_update(e2, pte(root_mfn(), ROE)), -EINVAL);
    EQ(mmu_update(e2, pte(foreign_mfn(0), RWE)), -EINVAL);
    EQ(mmu_update(e2, pte(max_page() + 1, RWE)), -EINVAL);
    EQ(mmu_update(e2, 1ul << 51 | RWE), -EINVAL);
    EQ(mmu_update(e3 ^ 8, pte(mfn_of(l1), RWE) | PSE), -EINVAL);
    EQ(mmu_update(ma((void *)si->pt_base, 300), pte(table_mfn(VIRT_BASE, 3), RWE) | G), -EINVAL);
    EQ(mmu_update(ma((void *)si->pt_base, 300), pte(table_mfn(VIRT_BASE, 3), RWE) | PSE), -EINVAL);
    /* A page that is not a table yet becomes one when it is hooked, with all checks. */
    EQ(make_rw(l1), 0);
    EQ(mmu_update(e2, pte(mfn_of(l1), RWE)), -EINVAL);
    l1[4] = pte(root_mfn(), RWE);
    EQ(make_ro(l1), 0);
    EQ(mmu_update(e2, pte(mfn_of(l1), RWE)), -EINVAL);
    EQ(pte_get(SCRATCH, 2), 0);
    EQ(make_rw(l1), 0);
    l1[4] = 0;
    EQ(make_ro(l1), 0);
    EQ(mmu_update(e2, pte(mfn_of(l1), RWE)), 0);
    /* Hooked: flags that grow a large page out of it are an update like any other. */
    EQ(mmu_update(e2, pte(mfn_of(l1), RWE) | PSE), -EINVAL);
    EQ(mmu_update(e2 | MMU_PT_UPDATE_PRESERVE_AD, pte(mfn_of(l1), RWE) | PSE), -EINVAL);
    EQ(mmu_update(e2, pte(mfn_of(l1), ROE)), 0);
    EQ(mmu_update(e2, 0), 0);
    page_free(l1);
}

/* Plain stores reach L1 entries only. */
TEST(upper_plain_store)
{
    static const unsigned idx[] = { 0, 300 };
    u64 *t[5], keep;

    t[4] = (u64 *)si->pt_base;
    t[3] = va_of(table_mfn(VIRT_BASE, 3));
    t[2] = va_of(table_mfn(VIRT_BASE, 2));
    for (int level = 2; level <= 4; level++) {
        for (unsigned i = 0; i < 2; i++) {
            keep = t[level][idx[i]];
            CHECK(try_write(&t[level][idx[i]], keep));
            TRAPPED(14, 3);
            EQ(this_cpu()->trap_cr2, (u64)&t[level][idx[i]]);
            CHECK(try_write(&t[level][idx[i]], 0));
            EQ(t[level][idx[i]], keep);
        }
    }
}

/* Roots ------------------------------------------------------------------------------------------------------- */

TEST(roots)
{
    void *w = page_alloc();
    u64 *l1 = table_page(), *l4 = page_alloc(), v;

    EQ(pin(1, mfn_of(l1)), 0);
    for (unsigned user = 0; user < 2; user++) {
        u32 cmd = user ? MMUEXT_NEW_USER_BASEPTR : MMUEXT_NEW_BASEPTR;

        EQ(mmuext(cmd, mfn_of(w), 0), -EINVAL);
        EQ(mmuext(cmd, mfn_of(l1), 0), -EINVAL);
        EQ(mmuext(cmd, table_mfn(VIRT_BASE, 3), 0), -EINVAL);
        EQ(mmuext(cmd, foreign_mfn(0), 0), -EINVAL);
        EQ(mmuext(cmd, max_page() + 1, 0), -EINVAL);
        EQ(mmuext(cmd, ~0ul - 1, 0), -EINVAL);
        EQ(mmuext(cmd, 0xfee00, 0), -EINVAL);
    }
    EQ(mmuext(MMUEXT_NEW_BASEPTR, ~0ul, 0), -EINVAL);
    EQ(unpin(mfn_of(l1)), 0);
    /* A copy of our root works as well, holds its type while loaded, and lets it go afterwards. */
    memcpy(l4, (void *)si->pt_base, PAGE);
    EQ(make_ro(l4), 0);
    EQ(mmuext(MMUEXT_NEW_BASEPTR, mfn_of(l4), 0), 0);
    __asm__ volatile("mov %%cr3, %0" : "=r"(v));
    EQ(v, mfn_of(l4) << 12);
    EQ(make_rw(l4), -EINVAL);
    EQ(mmuext(MMUEXT_NEW_BASEPTR, mfn_of(l4), 0), 0);
    EQ(mmuext(MMUEXT_NEW_BASEPTR, root_mfn(), 0), 0);
    EQ(usable(l4), true);
    EQ(mmuext(MMUEXT_NEW_USER_BASEPTR, 0, 0), 0);
    page_free(l4);
    page_free(l1);
    page_free(w);
}

TEST(flushes)
{
    static const u64 bad[] = { 0, 0x1000, 0xffff830000000000, 1ul << 63, ~0ul };
    u64 mask = 1, all = ~0ul, x;
    void *p = page_alloc();

    for (unsigned i = 0; i < COUNT(bad); i++) {
        EQ(mmuext(MMUEXT_TLB_FLUSH_MULTI, 0, bad[i]), -EFAULT);
        EQ(mmuext(MMUEXT_INVLPG_MULTI, VIRT_BASE, bad[i]), -EFAULT);
        if (bad[i] & ~7ul && !(bad[i] & 7))
            EQ(HC(update_va_mapping, p, pte(mfn_of(p), RWE), bad[i] | UVMF_INVLPG), -EFAULT);
    }
    EQ(mmuext(MMUEXT_TLB_FLUSH_MULTI, 0, (u64)&mask), 0);
    EQ(mmuext(MMUEXT_TLB_FLUSH_MULTI, 0, (u64)&all), 0);
    EQ(mmuext(MMUEXT_INVLPG_MULTI, 0xffff830000000000, (u64)&all), 0);
    EQ(mmuext(MMUEXT_INVLPG_LOCAL, 0xffff830000000000, 0), 0);
    EQ(mmuext(MMUEXT_INVLPG_LOCAL, 1ul << 63, 0), 0);
    EQ(mmuext(MMUEXT_INVLPG_ALL, 1ul << 63, 0), 0);
    EQ(mmuext(MMUEXT_TLB_FLUSH_ALL, 0, 0), 0);
    EQ(mmuext(MMUEXT_TLB_FLUSH_LOCAL, 0, 0), 0);
    /* The flush that goes with an update happens. */
    scratch_open();
    for (unsigned i = 0; i < 200; i++) {
        EQ(HC(update_va_mapping, SCRATCH, pte(mfn_of(p), RWE), UVMF_INVLPG | UVMF_ALL), 0);
        CHECK(!try_read((void *)SCRATCH, &x));
        EQ(HC(update_va_mapping, SCRATCH, 0, i & 1 ? UVMF_INVLPG | UVMF_ALL : UVMF_TLB_FLUSH), 0);
        CHECK(try_read((void *)SCRATCH, &x));
    }
    scratch_close();
    page_free(p);
}

/* Batches ------------------------------------------------------------------------------------------------------ */

static struct mmuext_op op[8];

static void put_pin(struct multicall_entry *e, unsigned i, u32 cmd, u64 mfn)
{
    op[i] = (struct mmuext_op){ .cmd = cmd };
    op[i].arg1.mfn = mfn;
    *e = (struct multicall_entry){ .op = __HYPERVISOR_mmuext_op, .args = { (u64)&op[i], 1, 0, DOMID_SELF } };
}

static void put_map(struct multicall_entry *e, const void *p, u64 flags)
{
    *e = (struct multicall_entry){ .op = __HYPERVISOR_update_va_mapping,
                                   .args = { (u64)p, pte(mfn_of(p), flags), UVMF_INVLPG } };
}

/* The pin in the middle fails, maybe only when the batch ends: its result must say so, and the others must not. */
TEST(batch_late_failure)
{
    static struct multicall_entry e[6];
    u64 *good = page_alloc(), *bad = page_alloc(), *data = page_alloc();

    bad[0] = pte(mfn_of(data), RWE);
    bad[9] = pte(root_mfn(), RWE);
    good[0] = pte(mfn_of(data), RWE);
    put_map(&e[0], good, ROE);
    put_map(&e[1], bad, ROE);
    put_pin(&e[2], 0, MMUEXT_PIN_L1_TABLE, mfn_of(bad));
    put_pin(&e[3], 1, MMUEXT_PIN_L1_TABLE, mfn_of(good));
    e[4] = (struct multicall_entry){ .op = __HYPERVISOR_xen_version, .args = { XENVER_version } };
    EQ(HC(multicall, e, 5), 0);
    EQ(e[0].result, 0);
    EQ(e[1].result, 0);
    EQ(e[2].result, -EINVAL);
    EQ(e[3].result, 0);
    EQ((long)e[4].result > 0, 1);
    EQ(unpin(mfn_of(bad)), -EINVAL);
    EQ(unpin(mfn_of(good)), 0);
    EQ(usable(bad), true);
    EQ(usable(good), true);
    EQ(usable(data), true);
    /* The last of the batch. */
    bad[9] = pte(foreign_mfn(0), ROE);
    EQ(make_ro(bad), 0);
    put_pin(&e[0], 0, MMUEXT_PIN_L1_TABLE, mfn_of(bad));
    EQ(HC(multicall, e, 1), 0);
    EQ(e[0].result, -EINVAL);
    /* Used again while it is being collected. */
    put_pin(&e[0], 0, MMUEXT_PIN_L1_TABLE, mfn_of(bad));
    put_pin(&e[1], 1, MMUEXT_UNPIN_TABLE, mfn_of(bad));
    put_pin(&e[2], 2, MMUEXT_PIN_L1_TABLE, mfn_of(bad));
    put_map(&e[3], bad, RWE);
    EQ(HC(multicall, e, 4), 0);
    EQ(e[0].result, -EINVAL);
    EQ(e[1].result, -EINVAL);
    EQ(e[2].result, -EINVAL);
    EQ(e[3].result == 0 || (long)e[3].result == -EINVAL, true);
    page_free(bad);
    page_free(good);
    page_free(data);
}

/* A process's life in batches: read-only, pin, use, unpin, writable, the way a kernel forks and exits. */
TEST(batch_life)
{
    static struct multicall_entry e[12];
    u64 *t[4];
    void *data = page_alloc();

    for (unsigned i = 0; i < 4; i++)
        t[i] = page_alloc();
    for (unsigned round = 0; round < 300; round++) {
        for (unsigned i = 1; i < 4; i++)
            t[i][0] = pte(mfn_of(t[i - 1]), RWE);
        t[0][0] = pte(mfn_of(data), RWE);
        for (unsigned i = 0; i < 4; i++)
            put_map(&e[i], t[i], ROE);
        put_pin(&e[4], 0, MMUEXT_PIN_L1_TABLE, mfn_of(t[0]));
        put_pin(&e[5], 1, MMUEXT_PIN_L4_TABLE, mfn_of(t[3]));
        EQ(HC(multicall, e, 6), 0);
        for (unsigned i = 0; i < 6; i++)
            REQUIRE(EQ(e[i].result, 0));
        put_pin(&e[0], 0, MMUEXT_UNPIN_TABLE, mfn_of(t[3]));
        put_pin(&e[1], 1, MMUEXT_UNPIN_TABLE, mfn_of(t[0]));
        for (unsigned i = 0; i < 4; i++)
            put_map(&e[i + 2], t[i], RWE);
        EQ(HC(multicall, e, 6), 0);
        for (unsigned i = 0; i < 6; i++)
            REQUIRE(EQ(e[i].result, 0));
    }
    for (unsigned i = 0; i < 4; i++) {
        EQ(usable(t[i]), true);
        page_free(t[i]);
    }
    EQ(usable(data), true);
    page_free(data);
}

/* From table to writable and back, every type in turn. */
TEST(type_changes)
{
    u64 *p = page_alloc();

    for (unsigned i = 0; i < 500; i++) {
        u64 mfn = mfn_of(p);

        p[i & 511] = i << 1;                    /* not present: fits any table */
        REQUIRE(EQ(make_ro(p), 0));
        REQUIRE(EQ(pin(1 + (int)(i & 3), mfn), 0));
        EQ(try_write(&p[i & 511], 0) || (i & 3) == 0, true);
        REQUIRE(EQ(unpin(mfn), 0));
        REQUIRE(EQ(make_rw(p), 0));
    }
    EQ(usable(p), true);
    page_free(p);
}

/* A frame that was given back while referenced stays what it is until the last reference goes. */
TEST(released_frames)
{
    u64 *p = table_page();
    xen_pfn_t mfn = mfn_of(p);
    struct xen_memory_reservation r = { .nr_extents = 1, .domid = DOMID_SELF };

    set_xen_guest_handle(r.extent_start, &mfn);
    EQ(pin(1, mfn), 0);
    EQ(HC(memory_op, XENMEM_decrease_reservation, &r), 1);
    EQ(HC(memory_op, XENMEM_decrease_reservation, &r), 0);
    EQ(make_rw(p), -EINVAL);
    EQ(mmu_update(ma(p, 3), 0), 0);
    EQ(unpin(mfn), 0);
    EQ(make_rw(p), 0);
    EQ(map_va((u64)p, 0), 0);                   /* the last one */
    EQ(make_rw(p), -EINVAL);
    EQ(map_va((u64)p, pte(mfn, ROE)), -EINVAL);
    EQ(pin(1, mfn), -EINVAL);
    EQ(HC(memory_op, XENMEM_decrease_reservation, &r), 0);
    mfn = foreign_mfn(0);
    EQ(HC(memory_op, XENMEM_decrease_reservation, &r), 0);
    mfn = max_page() + 1;
    EQ(HC(memory_op, XENMEM_decrease_reservation, &r), 0);
    page_lose(p);
}

TEST(preserve_ad)
{
    void *p = page_alloc();

    scratch_open();
    EQ(map_va(SCRATCH, pte(mfn_of(p), P | RW | US)), 0);
    *(volatile u64 *)SCRATCH = 1;
    EQ(scratch[0] & (AC | DI), AC | DI);
    EQ(mmu_update(pte_ma(SCRATCH, 1) | MMU_PT_UPDATE_PRESERVE_AD, pte(mfn_of(p), P | US)), 0);
    EQ(scratch[0], pte(mfn_of(p), P | US | AC | DI));
    EQ(mmu_update(pte_ma(SCRATCH, 1), pte(mfn_of(p), P | US)), 0);
    EQ(scratch[0], pte(mfn_of(p), P | US));
    EQ(mmu_update(ma(p, 1), 0x1234567), 0);  /* a plain page: simply written */
    EQ(((u64 *)p)[1], 0x1234567);
    scratch_close();
    EQ(((u64 *)p)[0], 1);
    page_free(p);
}

/* References: a frame mapped many times, in many tables. */
TEST(many_references)
{
    void *p = page_alloc();
    u64 *t[8];

    for (unsigned i = 0; i < 8; i++) {
        t[i] = page_alloc();
        for (unsigned k = 0; k < 512; k++)
            t[i][k] = pte(mfn_of(p), k & 1 ? RWE : ROE);
        EQ(make_ro(t[i]), 0);
        EQ(pin(1, mfn_of(t[i])), 0);
    }
    EQ(make_ro(p), 0);
    for (unsigned i = 0; i < 8; i++) {
        EQ(pin(1, mfn_of(p)), -EINVAL);
        EQ(unpin(mfn_of(t[i])), 0);
        page_free(t[i]);
    }
    EQ(usable(p), true);
    page_free(p);
}
