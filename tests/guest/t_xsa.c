/* SPDX-License-Identifier: MIT */
/* Known ways out of a PV guest, one test each, named after the Xen advisory that told of it: what one call must refuse.
 * docs/hostile-guest.md says which guard each is about. */
#include "guest.h"

#include <xen/grant_table.h>

static u64 e2, keep;                            /* machine address of an L2 entry, and a table for it */
static u64 *l1;

static void l2_entry(void)
{
    l1 = table_page();
    e2 = pte_ma(SCRATCH, 2);
    REQUIRE(EQ(mmu_update(e2, pte(mfn_of(l1), RWE)), 0));
    keep = pte_get(SCRATCH, 2);
}

static void l2_done(void)
{
    EQ(mmu_update(e2, 0), 0);
    EQ(usable(l1), true);
    page_free(l1);
}

/* A change of flags alone must not turn a table into a large page, which would map 2 MiB of anybody's memory. */
TEST(xsa148_pse_through_l2_update)
{
    static const u64 flags[] = { PSE, PSE | G, PSE | PCD, PSE | NX };
    struct multicall_entry e = { .op = __HYPERVISOR_mmu_update };
    struct mmu_update u;

    l2_entry();
    for (unsigned i = 0; i < COUNT(flags); i++) {
        EQ(mmu_update(e2, keep | flags[i]), -EINVAL);
        EQ(mmu_update(e2 | MMU_PT_UPDATE_PRESERVE_AD, keep | flags[i]), -EINVAL);
        EQ(mmu_update(e2, (keep & ~RW) | flags[i]), -EINVAL);
        u = (struct mmu_update){ e2, keep | flags[i] };
        e.args[0] = (u64)&u;
        e.args[1] = 1;
        e.args[3] = DOMID_SELF;
        EQ(HC(multicall, &e, 1), 0);
        EQ(e.result, -EINVAL);
        EQ(pte_get(SCRATCH, 2), keep);
    }
    EQ(mmu_update(e2, keep & ~P & ~MFN_MASK), 0);       /* not present, then present with the bit */
    EQ(mmu_update(e2, keep | PSE), -EINVAL);
    EQ(mmu_update(e2, keep), 0);
    EQ(mmu_update(pte_ma(SCRATCH, 3), pte_get(SCRATCH, 3) | PSE), -EINVAL);
    EQ(mmu_update(pte_ma(SCRATCH, 4), pte_get(SCRATCH, 4) | PSE), -EINVAL);
    l2_done();
}

/* The same for an entry that maps a page: write permission and cacheability are never mere flags. */
TEST(xsa182_rw_through_l1_update)
{
    u64 *t = table_page(), *data = page_alloc(), ro;

    scratch_open();
    EQ(pin(1, mfn_of(t)), 0);
    EQ(map_va(SCRATCH, pte(mfn_of(t), ROE)), 0);        /* a table, seen read-only */
    EQ(map_va(SCRATCH + PAGE, pte(mfn_of(data), ROE)), 0);
    ro = scratch[0];
    for (unsigned i = 0; i < 64; i++) {
        u64 other = (i & 1 ? AC : 0) | (i & 2 ? DI : 0) | (i & 4 ? 0 : US) | (i & 8 ? NX : 0) |
                    (i & 16 ? 1ul << 9 : 0) | (i & 32 ? G : 0);

        EQ(mmu_update(ma(scratch, 0), (ro & (MFN_MASK | P)) | other | RW), -EINVAL);
        EQ(mmu_update(ma(scratch, 0) | MMU_PT_UPDATE_PRESERVE_AD, (ro & (MFN_MASK | P)) | other | RW), -EINVAL);
        EQ(map_va(SCRATCH, (ro & (MFN_MASK | P)) | other | RW), -EINVAL);
        EQ(mmu_update(ma(scratch, 1), pte(mfn_of(data), P | PCD) | other), -EINVAL);
    }
    EQ(scratch[0], ro);
    EQ(mmu_update(ma(scratch, 0), ro & ~DI), 0);        /* these are */
    /* By a store of the guest's own, where it is carried out at once. */
    EQ(map_va(SCRATCH + 5 * PAGE, pte(mfn_of(scratch), ROE)), 0);
    if (!mode_ptwr) {
        CHECK(TRY("lock orb $2, (%[p])", , A([p] "r"(&scratch[0]))));
        CHECK(TRY("lock btsq $1, (%[p])", , A([p] "r"(&scratch[0]))));
        CHECK(TRY("lock btsq $4, (%[p])", , A([p] "r"(&scratch[1]))));
        CHECK(try_write(&scratch[0], ro | RW));
    }
    EQ(scratch[0] & RW, 0);
    EQ(map_va(SCRATCH, 0), 0);
    EQ(unpin(mfn_of(t)), 0);
    scratch_close();
    EQ(usable(data), true);
    page_free(t);
    page_free(data);
}

/* Arrays in the caller's memory are checked to their last byte, also where index times size wraps. */
TEST(xsa212_array_reaches_hypervisor)
{
    static const u64 at[] = { HV_BASE, HV_BASE - 8, 0xffff82d040000000, 0xffff830000000000, HV_END - 8,
                                0x00007ffffffffff8 };
    static u64 in[8];
    u64 m2p = load(M2P);

    for (unsigned i = 0; i < COUNT(at); i++) {
        struct {
            u64 in_list; u64 in_nr; u32 order, flags; u16 dom; u16 pad[3];
            u64 out_list; u64 out_nr; u32 out_order, out_flags; u16 out_dom; u16 out_pad[3];
            u64 done;
        } exchange = { .in_list = (u64)in, .in_nr = 1, .dom = DOMID_SELF, .out_list = at[i], .out_nr = 1,
                       .out_dom = DOMID_SELF };

        CHECK(HC(memory_op, XENMEM_exchange, &exchange) < 0);
        EQ(HC(mmu_update, at[i], 1, 0, DOMID_SELF), -EFAULT);
        EQ(HC(mmu_update, in, 0, at[i], DOMID_SELF), -EFAULT);          /* the count that is written back */
        EQ(HC(mmuext_op, at[i], 1, 0, DOMID_SELF), -EFAULT);
        EQ(HC(mmuext_op, in, 0, at[i], DOMID_SELF), -EFAULT);
        EQ(HC(multicall, at[i], 1), -EFAULT);
        EQ(HC(grant_table_op, GNTTABOP_copy, at[i], 1), -EFAULT);
        /* It begins in our memory and goes on, or comes round, to somebody else's. */
        EQ(HC(mmu_update, at[i] & ~15ul, 1ul << 20, 0, DOMID_SELF), -EFAULT);
        EQ(HC(mmu_update, ~0ul - 31, 3, 0, DOMID_SELF), -EFAULT);
        EQ(HC(multicall, 0xffff7fffffffff80, 1000), -EFAULT);
    }
    EQ(load(M2P), m2p);
}

/* Nothing in a list of calls changes the mode that the rest of the list runs in. */
TEST(xsa213_iret_in_multicall)
{
    static struct multicall_entry e[3];
    u64 *p = page_alloc();
    struct user_space u;

    REQUIRE(user_space_make(&u));
    REQUIRE(EQ(make_ro(p), 0));
    e[0] = (struct multicall_entry){ .op = __HYPERVISOR_iret };
    e[1] = (struct multicall_entry){ .op = __HYPERVISOR_multicall, .args = { (u64)e, 1 } };
    e[2] = (struct multicall_entry){ .op = __HYPERVISOR_update_va_mapping,
                                     .args = { (u64)p, pte(mfn_of(p), RWE), UVMF_INVLPG } };
    EQ(HC(multicall, e, 3), 0);
    EQ(e[0].result, -EINVAL);
    EQ(e[1].result, -EINVAL);
    EQ(e[2].result, 0);
    EQ(try_write(p, 1), false);
    user_space_drop(&u);
    page_free(p);
}

/* An entry is an aligned quadword of one table, whatever door the write comes through. */
TEST(xsa227_misaligned_entry)
{
    struct gnttab_map_grant_ref map = { .flags = GNTMAP_host_map | GNTMAP_contains_pte };
    u64 before[8], *data = page_alloc();

    scratch_open();
    for (unsigned i = 0; i < 8; i++) {
        EQ(mmu_update(ma(scratch, 8 + i), (u64)i << 40 | 0x1230), 0);
        before[i] = scratch[8 + i];
    }
    /* The low bits of an address are a command: none means "at an odd address". */
    for (unsigned low = 3; low < 8; low++)
        EQ(mmu_update(ma(scratch, 9) | low, pte(mfn_of(data), RWE)), -ENOSYS);
    for (unsigned low = 1; low < 8; low++) {
        EQ(HC(update_descriptor, ma(scratch, 9) | low, 0), -EINVAL);
        EQ(HC(update_descriptor, ma(data, 9) | low, 0), -EINVAL);       /* not even in a plain page */
        map.host_addr = ma(scratch, 9) | low;
        map.status = 0;
        HC(grant_table_op, GNTTABOP_map_grant_ref, &map, 1);
        CHECK(map.status < 0);
    }
    EQ(map_va(SCRATCH + 20 * PAGE, pte(mfn_of(scratch), ROE)), 0);
    for (unsigned low = 1; low < 8; low++)      /* across two entries */
        CHECK(try_write((char *)(SCRATCH + 20 * PAGE) + 8 * 9 + low, ~0ul));
    for (unsigned i = 0; i < 8; i++)
        EQ(scratch[8 + i], before[i]);
    EQ(map_va(SCRATCH + 20 * PAGE, 0), 0);
    scratch_close();
    page_free(data);
}

/* No table names another of its level: neither itself nor a stranger, alone or in a chain, by pin or by update. */
TEST(xsa240_linear_tables)
{
    for (int level = 2; level <= 4; level++) {
        u64 *p = page_alloc(), *q = page_alloc(), *r;

        p[3] = pte(mfn_of(p), ROE);
        REQUIRE(EQ(make_ro(p), 0));
        EQ(pin(level, mfn_of(p)), -EINVAL);
        EQ(make_rw(p), 0);
        p[3] = 0;
        REQUIRE(EQ(make_ro(p), 0));
        EQ(pin(level, mfn_of(p)), 0);
        EQ(mmu_update(ma(p, 3), pte(mfn_of(p), ROE)), -EINVAL);
        EQ(mmu_update(ma(p, 3), pte(mfn_of(p), RWE)), -EINVAL);
        /* q names p, both ways round. */
        q[4] = pte(mfn_of(p), ROE);
        REQUIRE(EQ(make_ro(q), 0));
        EQ(pin(level, mfn_of(q)), -EINVAL);
        EQ(make_rw(q), 0);
        q[4] = 0;
        REQUIRE(EQ(make_ro(q), 0));
        EQ(pin(level, mfn_of(q)), 0);
        EQ(mmu_update(ma(q, 4), pte(mfn_of(p), ROE)), -EINVAL);
        EQ(mmu_update(ma(p, 4), pte(mfn_of(q), ROE)), -EINVAL);
        /* A chain through a page that is nothing yet; as an L1 it may map any table read-only. */
        r = page_alloc();
        r[0] = pte(mfn_of(q), ROE);
        REQUIRE(EQ(make_ro(r), 0));
        EQ(mmu_update(ma(p, 5), pte(mfn_of(r), ROE)), level == 2 ? 0 : -EINVAL);
        EQ(mmu_update(ma(p, 5), 0), 0);
        EQ(usable(r), true);
        EQ(unpin(mfn_of(p)), 0);
        EQ(unpin(mfn_of(q)), 0);
        page_free(p);
        page_free(q);
        page_free(r);
    }
    EQ(mmu_update(ma((void *)si->pt_base, 300), pte(root_mfn(), ROE)), -EINVAL);
}

/* A flush belongs to an update that was done; one that failed flushes nothing and says why it failed. */
TEST(xsa279_flush_after_failed_update)
{
    static const u64 va[] = { 1ul << 63, 0x0000800000000000, 0xffff7ffffffff000, HV_BASE, 0xffff82d040000000 };
    void *p = page_alloc();

    for (unsigned i = 0; i < COUNT(va); i++) {
        EQ(HC(update_va_mapping, va[i], 0, UVMF_INVLPG), -EINVAL);
        EQ(HC(update_va_mapping, va[i], 0, UVMF_INVLPG | UVMF_ALL), -EINVAL);
        EQ(HC(update_va_mapping, va[i], 0, UVMF_INVLPG | HV_BASE), -EINVAL);    /* a mask that cannot be read */
        EQ(mmuext(MMUEXT_INVLPG_LOCAL, va[i], 0), 0);
        EQ(mmuext(MMUEXT_INVLPG_ALL, va[i], 0), 0);
    }
    EQ(HC(update_va_mapping, p, pte(root_mfn(), RWE), UVMF_TLB_FLUSH | HV_BASE), -EINVAL);
    EQ(HC(update_va_mapping, p, pte(mfn_of(p), RWE), UVMF_TLB_FLUSH | HV_BASE), -EFAULT);
    page_free(p);
}

/* An entry that is not present but names memory: a CPU with the L1TF flaw reads through it.  Refused where the boot option asks
 * for it, at each way in; else it is the guest's own business. */
TEST(xsa273_non_present_entries)
{
    bool on = option("l1tf") != NULL;
    u64 *p = page_alloc(), bad = mfn_of(p) << 12 | 0x42, far = (1ul << 45) | 0x42;

    scratch_open();
    EQ(mmu_update(ma(scratch, 3), bad), on ? -EINVAL : 0);
    EQ(scratch[3], on ? 0 : bad);
    EQ(mmu_update(ma(scratch, 3), far), 0);
    EQ(mmu_update(ma(scratch, 3), 0x42), 0);    /* names nothing */
    EQ(HC(update_va_mapping, SCRATCH, bad, UVMF_INVLPG), on ? -EINVAL : 0);
    if (!mode_ptwr)
        EQ(try_write(&scratch[5], bad), on);
    scratch_close();
    for (int level = 1; level <= 4; level++) {
        p[7] = bad;
        EQ(make_ro(p), 0);
        EQ(pin(level, mfn_of(p)), on ? -EINVAL : 0);
        if (!on)
            EQ(unpin(mfn_of(p)), 0);
        EQ(make_rw(p), 0);
    }
    p[7] = 0;
    CHECK(usable(p));
    page_free(p);
}

/* The hypervisor's slots of a root: never the guest's, and never left readable in what was one. */
TEST(xsa243_slots_are_not_inherited)
{
    u64 *l4 = page_alloc(), v;

    for (unsigned i = 256; i < 272; i++)
        l4[i] = pte(mfn_of(l4), RWE);           /* the guest's idea of them */
    l4[0] = pte(table_mfn(VIRT_BASE, 3), RWE);
    REQUIRE(EQ(make_ro(l4), 0));
    REQUIRE(EQ(pin(4, mfn_of(l4)), 0));
    for (unsigned i = 257; i < 272; i++) {
        EQ(l4[i], ((u64 *)si->pt_base)[i]);
        EQ(mmu_update(ma(l4, i), pte(mfn_of(l4), ROE)), -EINVAL);
        EQ(mmu_update(ma(l4, i), 0), -EINVAL);
    }
    CHECK(l4[256] == 0 || l4[256] == ((u64 *)si->pt_base)[256]);
    /* They are the hypervisor's alone: nothing below them can be touched by the guest, but its view of the M2P. */
    for (u64 va = HV_BASE + (1ul << 39); va < HV_END; va += 1ul << 37) {
        CHECK(try_read((void *)va, &v));
        CHECK(try_write((void *)va, 0));
    }
    CHECK(try_write((void *)M2P, 0));
    EQ(unpin(mfn_of(l4)), 0);
    for (unsigned i = 256; i < 272; i++)
        EQ(l4[i], 0);
    EQ(usable(l4), true);
    page_free(l4);
}

/* RAM is mapped write-back and in no other way, so that what the hypervisor reads is what the guest wrote. */
TEST(xsa402_uncached_ram)
{
    static const u64 attr[] = { PWT, PCD, PWT | PCD, PSE /* PAT in an L1 */, PSE | PCD };
    u64 *p = page_alloc(), *t = page_alloc();

    scratch_open();
    for (unsigned i = 0; i < COUNT(attr); i++) {
        EQ(map_va(SCRATCH, pte(mfn_of(p), RWE | attr[i])), -EINVAL);
        EQ(map_va(SCRATCH, pte(mfn_of(p), ROE | attr[i])), -EINVAL);
        EQ(map_va(SCRATCH, pte(mfn_of(p), ROE)), 0);
        EQ(map_va(SCRATCH, pte(mfn_of(p), ROE | attr[i])), -EINVAL);
        EQ(mmu_update(ma(scratch, 0) | MMU_PT_UPDATE_PRESERVE_AD, pte(mfn_of(p), ROE | attr[i])), -EINVAL);
        EQ(map_va(SCRATCH, 0), 0);
        t[7] = pte(mfn_of(p), RWE | attr[i]);
        REQUIRE(EQ(make_ro(t), 0));
        EQ(pin(1, mfn_of(t)), -EINVAL);
        EQ(make_rw(t), 0);
        t[7] = 0;
    }
    scratch_close();
    EQ(usable(p), true);
    page_free(p);
    page_free(t);
}
