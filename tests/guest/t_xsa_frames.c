/* SPDX-License-Identifier: MIT */
/* Known ways out of a PV guest, named after the Xen advisory that told of them: the life of frames and tables. */
#include "guest.h"

/* A frame that its owner let go keeps the type it has while anybody holds it so, and after the last reference is out of
 * reach for good: what was validated for one owner is never used for another. */
TEST(xsa214_released_frame_keeps_type)
{
    u64 *p = table_page();
    xen_pfn_t mfn = mfn_of(p);
    struct xen_memory_reservation r = { .nr_extents = 1, .domid = DOMID_SELF };

    set_xen_guest_handle(r.extent_start, &mfn);
    hook(SCRATCH, 2, p);
    EQ(HC(memory_op, XENMEM_decrease_reservation, &r), 1);
    EQ(make_rw(p), -EINVAL);                    /* still an L1 */
    EQ(pin(2, mfn), -EINVAL);
    EQ(mmu_update(ma(p, 5), pte(table_mfn(VIRT_BASE, 4), RWE)), -EINVAL);
    unhook(SCRATCH, 2);
    EQ(map_va((u64)p, 0), 0);                   /* the last reference */
    EQ(map_va((u64)p, pte(mfn, RWE)), -EINVAL);
    EQ(map_va((u64)p, pte(mfn, ROE)), -EINVAL);
    for (int level = 1; level <= 4; level++)
        EQ(pin(level, mfn), -EINVAL);
    EQ(mmu_update(mfn << 12, 0), -EINVAL);
    EQ(mmuext(MMUEXT_CLEAR_PAGE, mfn, 0), -EINVAL);
    EQ(mmuext(MMUEXT_NEW_USER_BASEPTR, mfn, 0), -EINVAL);
    EQ(HC(memory_op, XENMEM_decrease_reservation, &r), 0);
    page_lose(p);
}

/* Giving a frame back takes away the owner's hold and nothing else: above all not the pin. */
TEST(xsa252_release_keeps_pin)
{
    u64 *p = table_page();
    xen_pfn_t mfn = mfn_of(p);
    struct xen_memory_reservation r = { .nr_extents = 1, .domid = DOMID_SELF };

    set_xen_guest_handle(r.extent_start, &mfn);
    EQ(pin(1, mfn), 0);
    EQ(HC(memory_op, XENMEM_decrease_reservation, &r), 1);
    EQ(HC(memory_op, XENMEM_decrease_reservation, &r), 0);
    EQ(make_rw(p), -EINVAL);
    EQ(mmu_update(ma(p, 3), 0), 0);             /* a table like before */
    hook(SCRATCH, 2, p);
    EQ(unpin(mfn), 0);
    EQ(unpin(mfn), -EINVAL);
    EQ(make_rw(p), -EINVAL);
    unhook(SCRATCH, 2);
    EQ(make_rw(p), 0);
    EQ(map_va((u64)p, 0), 0);
    EQ(pin(1, mfn), -EINVAL);
    page_lose(p);
}

/* Ours are the tables as they are now, not as some cache of ours or the CPU's remembers them. */
TEST(xsa286_stale_walks)
{
    u64 *t = table_page(), *data = page_alloc(), *view = (u64 *)(SCRATCH + 0x200000 + 5 * PAGE), e;

    scratch_open();
    hook(SCRATCH + 0x200000, 2, t);
    EQ(mmu_update(ma(t, 5), pte(mfn_of(scratch), ROE)), 0);
    e = pte(mfn_of(data), RWE);
    for (unsigned i = 0; i < 20; i++) {
        /* The view is cached by all that caches; then the table above it goes, without any flush. */
        CHECK(!try_write(&view[9], e));
        EQ(scratch[9], e);
        unhook(SCRATCH + 0x200000, 2);
        EQ(HC(update_va_mapping, SCRATCH + 0x200000 + 5 * PAGE, 0, 0), -EINVAL);
        EQ(HC(update_va_mapping, SCRATCH + 0x200000 + 6 * PAGE, pte(mfn_of(data), ROE), 0), -EINVAL);
        EQ(t[6], 0);
        hook(SCRATCH + 0x200000, 2, t);
        CHECK(!try_write(&view[9], 0));
    }
    /* What was a table and is a plain page now takes no entries through an old view. */
    CHECK(!try_write(&view[10], e));
    EQ(mmu_update(pte_ma(SCRATCH, 2), 0), 0);
    EQ(HC(update_va_mapping, scratch, pte(mfn_of(scratch), RWE), 0), 0);         /* no flush asked for */
    try_write(&view[11], 0x41414141);           /* the CPU may refuse or still map it read-only */
    EQ(scratch[11], 0);
    EQ(mmu_update(ma(t, 5), 0), 0);
    unhook(SCRATCH + 0x200000, 2);
    memset(scratch, 0, PAGE);
    EQ(usable(t), true);
    EQ(usable(data), true);
    page_free(scratch);
    page_free(t);
    page_free(data);
}

/* A validation that fails half way gives back what it took: each page is free of types afterwards. */
TEST(xsa299_failed_validation_gives_back)
{
    u64 *t[4], *data = page_alloc();

    for (unsigned i = 0; i < 4; i++)
        t[i] = page_alloc();
    for (unsigned i = 0; i < 200; i++)
        t[0][i] = pte(mfn_of(data), i & 1 ? RWE : ROE);
    for (unsigned i = 1; i < 4; i++)
        for (unsigned k = 0; k < 20; k++)
            t[i][k] = pte(mfn_of(t[i - 1]), RWE);
    for (unsigned i = 0; i < 4; i++) {
        /* The level @i has the bad entry: everything before it was taken. */
        u64 bad = i ? pte(mfn_of(data), RWE) : pte(mfn_of(t[3]), RWE);

        t[i][250] = bad;
        for (unsigned k = 0; k < 4; k++)
            REQUIRE(EQ(make_ro(t[k]), 0));
        for (unsigned n = 0; n < 10; n++)
            EQ(pin(4, mfn_of(t[3])), -EINVAL);
        for (unsigned k = 0; k < 4; k++)
            REQUIRE(EQ(make_rw(t[k]), 0));      /* no typed reference is left anywhere in the tree */
        EQ(make_ro(data), 0);
        EQ(pin(1, mfn_of(data)), 0);
        EQ(unpin(mfn_of(data)), 0);
        EQ(make_rw(data), 0);
        t[i][250] = 0;
    }
    for (unsigned k = 0; k < 4; k++)
        REQUIRE(EQ(make_ro(t[k]), 0));
    EQ(pin(4, mfn_of(t[3])), 0);
    EQ(unpin(mfn_of(t[3])), 0);
    for (unsigned k = 0; k < 4; k++) {
        EQ(usable(t[k]), true);
        page_free(t[k]);
    }
    EQ(usable(data), true);
    page_free(data);
}

/* A root in use stays a table, whoever unpins or replaces it. */
TEST(xsa438_loaded_root)
{
    u64 *a = page_alloc(), *b = page_alloc();

    memcpy(a, (void *)si->pt_base, PAGE);
    memcpy(b, (void *)si->pt_base, PAGE);
    EQ(make_ro(a), 0);
    EQ(make_ro(b), 0);
    EQ(pin(4, mfn_of(a)), 0);
    EQ(mmuext(MMUEXT_NEW_BASEPTR, mfn_of(a), 0), 0);
    EQ(mmuext(MMUEXT_NEW_USER_BASEPTR, mfn_of(b), 0), 0);
    EQ(unpin(mfn_of(a)), 0);
    for (unsigned i = 0; i < 3; i++) {
        EQ(make_rw(a), -EINVAL);
        EQ(make_rw(b), -EINVAL);
        EQ(pin(3, mfn_of(a)), -EINVAL);
        EQ(unpin(mfn_of(a)), -EINVAL);
    }
    EQ(mmuext(MMUEXT_NEW_BASEPTR, root_mfn(), 0), 0);
    EQ(make_rw(a), 0);
    EQ(make_rw(b), -EINVAL);
    EQ(mmuext(MMUEXT_NEW_USER_BASEPTR, 0, 0), 0);
    EQ(usable(a), true);
    EQ(usable(b), true);
    page_free(a);
    page_free(b);
}
