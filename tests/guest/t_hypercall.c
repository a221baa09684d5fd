/* SPDX-License-Identifier: MIT */
/* Hypercalls as such: numbers, pointers, sizes, results. */
#include "guest.h"

#include <xen/features.h>
#include <xen/physdev.h>

TEST(unknown_hypercall)
{
    static const u64 nr[] = {
        6, 11, 16, 27, 39, 41, 47, 63, 64, 127, 128, 255, 0x7fffffff, 0xffffffff, 1ul << 32, 1ul << 63, ~0ul,
    };

    for (unsigned i = 0; i < COUNT(nr); i++)
        EQ(hypercall(nr[i], 0, 0, 0, 0, 0), -ENOSYS);
    EQ(HC(xen_version, 999, 0), -ENOSYS);
    EQ(HC(memory_op, 999, 0), -ENOSYS);
    EQ(HC(sched_op, 999, 0), -ENOSYS);
    EQ(HC(event_channel_op, 999, 0), -ENOSYS);
    EQ(HC(vcpu_op, 999, 0, 0), -ENOSYS);
    EQ(HC(console_io, 999, 1, "x"), -ENOSYS);
    EQ(mmuext(999, 0, 0), -ENOSYS);
}

TEST(version)
{
    static struct xen_feature_info f;
    static char extra[PAGE];
    const u32 want = 1u << XENFEAT_mmu_pt_update_preserve_ad | 1u << XENFEAT_gnttab_map_avail_bits | 1u << XENFEAT_dom0;
    const u32 never = 1u << XENFEAT_writable_page_tables | 1u << XENFEAT_auto_translated_physmap;
    long v = HC(xen_version, XENVER_version, 0);

    EQ(v >> 16, 4);
    EQ(HC(xen_version, XENVER_pagesize, 0), PAGE);
    memset(extra, 'x', sizeof(extra));
    EQ(HC(xen_version, XENVER_extraversion, extra), 0);
    CHECK(strlen(extra) < sizeof(xen_extraversion_t));
    EQ(extra[sizeof(xen_extraversion_t)], 'x');
    EQ(HC(xen_version, XENVER_get_features, &f), 0);
    EQ(f.submap & want, want);
    EQ(f.submap & never, 0);
    f.submap_idx = 1;
    f.submap = 0x1234;
    EQ(HC(xen_version, XENVER_get_features, &f), 0);
    EQ(f.submap, 0);
    /* The hypercall page does what the instruction does. */
    EQ(((long (*)(u64, u64))(void *)(hypercall_page + 17 * 32))(XENVER_version, 0), v);
}

/* Each call with a pointer argument; X stands for it. */
#define X 0x5858585858585858ul
static const struct { const char *name; u64 nr, a[5]; } with_pointer[] = {
    { "set_trap_table", __HYPERVISOR_set_trap_table, { X } },
    { "mmu_update", __HYPERVISOR_mmu_update, { X, 1, 0, DOMID_SELF } },
    { "mmu_update done", __HYPERVISOR_mmu_update, { 0, 0, X, DOMID_SELF } },
    { "set_gdt", __HYPERVISOR_set_gdt, { X, 16 } },
    { "platform_op", __HYPERVISOR_platform_op, { X } },
    { "memory_map", __HYPERVISOR_memory_op, { XENMEM_memory_map, X } },
    { "machine_memory_map", __HYPERVISOR_memory_op, { XENMEM_machine_memory_map, X } },
    { "machphys_mapping", __HYPERVISOR_memory_op, { XENMEM_machphys_mapping, X } },
    { "decrease_reservation", __HYPERVISOR_memory_op, { XENMEM_decrease_reservation, X } },
    { "multicall", __HYPERVISOR_multicall, { X, 1 } },
    { "features", __HYPERVISOR_xen_version, { XENVER_get_features, X } },
    { "extraversion", __HYPERVISOR_xen_version, { XENVER_extraversion, X } },
    { "commandline", __HYPERVISOR_xen_version, { XENVER_commandline, X } },
    { "compile_info", __HYPERVISOR_xen_version, { XENVER_compile_info, X } },
    { "console write", __HYPERVISOR_console_io, { CONSOLEIO_write, 300, X } },
    { "setup_table", __HYPERVISOR_grant_table_op, { 2, X, 1 } },
    { "vcpu initialise", __HYPERVISOR_vcpu_op, { VCPUOP_initialise, 1, X } },
    { "runstate", __HYPERVISOR_vcpu_op, { VCPUOP_get_runstate_info, 0, X } },
    { "register runstate", __HYPERVISOR_vcpu_op, { VCPUOP_register_runstate_memory_area, 0, X } },
    { "singleshot", __HYPERVISOR_vcpu_op, { VCPUOP_set_singleshot_timer, 0, X } },
    { "register vcpu_info", __HYPERVISOR_vcpu_op, { VCPUOP_register_vcpu_info, 0, X } },
    { "mmuext_op", __HYPERVISOR_mmuext_op, { X, 1, 0, DOMID_SELF } },
    { "mmuext_op done", __HYPERVISOR_mmuext_op, { 0, 0, X, DOMID_SELF } },
    { "shutdown", __HYPERVISOR_sched_op, { SCHEDOP_shutdown, X } },
    { "poll", __HYPERVISOR_sched_op, { SCHEDOP_poll, X } },
    { "callback register", __HYPERVISOR_callback_op, { CALLBACKOP_register, X } },
    { "callback unregister", __HYPERVISOR_callback_op, { CALLBACKOP_unregister, X } },
    { "bind_ipi", __HYPERVISOR_event_channel_op, { EVTCHNOP_bind_ipi, X } },
    { "send", __HYPERVISOR_event_channel_op, { EVTCHNOP_send, X } },
    { "evtchn status", __HYPERVISOR_event_channel_op, { EVTCHNOP_status, X } },
    { "set_iopl", __HYPERVISOR_physdev_op, { PHYSDEVOP_set_iopl, X } },
    { "set_iobitmap", __HYPERVISOR_physdev_op, { PHYSDEVOP_set_iobitmap, X } },
};

TEST(bad_pointers)
{
    /* Unmapped, hypervisor text, frame table, direct map, last byte below and first above the hole, top of memory. */
    static const u64 bad[] = {
        0x1000, SCRATCH, 0xffff82d040000000, 0xffff82e000000000, 0xffff830000000000, 0xffff828000000000,
        0x00007ffffffffffc, 0x0000800000000000, 0x8000000000000000, 0xffff7ffffffff000, HV_END - 8, ~0ul - 3,
    };

    for (unsigned i = 0; i < COUNT(with_pointer); i++) {
        for (unsigned b = 0; b < COUNT(bad); b++) {
            u64 a[5];
            long rc;

            for (unsigned k = 0; k < 5; k++)
                a[k] = with_pointer[i].a[k] == X ? bad[b] : with_pointer[i].a[k];
            rc = hypercall(with_pointer[i].nr, a[0], a[1], a[2], a[3], a[4]);
            if (rc != -EFAULT)
                FAIL("%s with pointer %#lx: %ld, expected %d", with_pointer[i].name, bad[b], rc, -EFAULT);
        }
    }
}

/* Results must not be written where the guest itself may only read. */
TEST(read_only_results)
{
    char *p = page_alloc();
    static const u8 before[PAGE];
    u64 m2p = load(M2P);

    REQUIRE(EQ(make_ro(p), 0));
    EQ(HC(xen_version, XENVER_extraversion, p), -EFAULT);
    EQ(HC(memory_op, XENMEM_machphys_mapping, p), -EFAULT);
    EQ(HC(xen_version, XENVER_extraversion, M2P), -EFAULT);
    EQ(HC(memory_op, XENMEM_machphys_mapping, M2P), -EFAULT);
    EQ(load(M2P), m2p);
    EQ(memcmp(p, before, PAGE), 0);
    /* Across the end of a writable page. */
    EQ(HC(xen_version, XENVER_extraversion, p - 8), -EFAULT);
    page_free(p);
}

TEST(sizes)
{
    static u64 buf[8];
    static struct mmu_update u[2];
    struct sched_poll poll = { .nr_ports = 100000 };
    static const u64 huge[] = { (1ul << 20) + 1, 1ul << 27, 1ul << 60, (1ul << 60) + 1, 0x7fffffff };

    for (unsigned i = 0; i < COUNT(huge); i++) {
        EQ(HC(mmuext_op, buf, huge[i], 0, DOMID_SELF) < 0, 1);
        EQ(HC(mmu_update, u, huge[i], 0, DOMID_SELF) < 0, 1);
        EQ(HC(multicall, buf, huge[i]) < 0, 1);
    }
    /* A list that claims to have been begun: nothing but the number that the guest itself gave is believed. */
    u32 done = 5;

    EQ(HC(mmu_update, u, 1ul << 31, 0, DOMID_SELF), 0);
    EQ(HC(mmu_update, u, 1ul << 31, &done, DOMID_SELF), 0);
    EQ(done, 5);
    EQ(HC(mmu_update, u, 1ul << 31 | 1, 8, DOMID_SELF), -EFAULT);
    EQ(HC(mmu_update, u, 1ul << 31 | (1ul << 20) | 1, &done, DOMID_SELF), -EFAULT);
    EQ(HC(console_io, CONSOLEIO_write, ~0u, buf), -EINVAL);
    EQ(HC(set_gdt, buf, 14 * 512 + 1), -EINVAL);
    EQ(HC(set_gdt, buf, ~0ul), -EINVAL);
    EQ(HC(sched_op, SCHEDOP_poll, &poll), -EINVAL);
    EQ(HC(mmu_update, u, 0, 0, 5), -ESRCH);
    EQ(HC(mmuext_op, buf, 0, 0, 5), -ESRCH);
    EQ(HC(multicall, buf, 0), 0);
    EQ(HC(console_io, CONSOLEIO_write, 0, 0), 0);
}

/* The huge count with a good start: what was done before the fault is reported. */
TEST(partial_list)
{
    /* The last page of the initial mapping is followed by nothing. */
    u64 *p = page_alloc();
    u64 va = SCRATCH + 511 * PAGE;
    void *l1 = table_page();
    struct mmu_update *u = (struct mmu_update *)(va + PAGE - 16);
    struct mmuext_op *op = (struct mmuext_op *)(va + PAGE - 24);
    u32 done = 77;

    hook(SCRATCH, 2, l1);
    REQUIRE(EQ(map_va(va, pte(mfn_of(p), P | RW | US)), 0));
    u->ptr = pte_ma(SCRATCH, 1);
    u->val = 0;
    EQ(HC(mmu_update, u, 1ul << 20, &done, DOMID_SELF), -EFAULT);
    EQ(done, 1);
    op->cmd = MMUEXT_TLB_FLUSH_LOCAL;
    done = 77;
    EQ(HC(mmuext_op, op, 1000, &done, DOMID_SELF), -EFAULT);
    EQ(done, 1);
    unhook(SCRATCH, 2);
    page_free(l1);
    page_free(p);
}

TEST(registers_kept)
{
    u64 r[14], want[14];

    for (unsigned i = 0; i < 14; i++)
        r[i] = 0x1111111111111111ul * (i + 1);
    r[0] = __HYPERVISOR_xen_version;
    r[4] = XENVER_version;
    r[3] = 0;
    r[13] = 0x246 | 0x800 | 1;                  /* IF, PF, ZF, OF, CF */
    memcpy(want, r, sizeof(r));
    call_preserving(r);
    EQ(r[0] >> 16, 4);
    for (unsigned i = 1; i < 14; i++)
        EQ(r[i], want[i]);
}

TEST(multicall)
{
    static struct multicall_entry e[5];

    memset(e, 0x55, sizeof(e));
    e[0].op = __HYPERVISOR_xen_version;
    e[0].args[0] = XENVER_version;
    e[1].op = 999;
    e[2].op = __HYPERVISOR_multicall;
    e[2].args[0] = (u64)e;
    e[2].args[1] = 1;
    e[3].op = __HYPERVISOR_iret;
    e[4].op = __HYPERVISOR_update_va_mapping;
    e[4].args[0] = HV_BASE;
    e[4].args[1] = 0;
    e[4].args[2] = 0;
    EQ(HC(multicall, e, 5), 0);
    EQ(e[0].result, HC(xen_version, XENVER_version, 0));
    EQ(e[1].result, -ENOSYS);
    EQ((long)e[2].result < 0, 1);
    EQ((long)e[3].result < 0, 1);
    EQ(e[4].result, -EINVAL);
}

/* The list itself becomes a page table in the middle of the batch. */
TEST(multicall_list_pinned)
{
    struct multicall_entry *e = page_alloc();
    static struct mmuext_op op;
    long rc;

    op.cmd = MMUEXT_PIN_L1_TABLE;
    op.arg1.mfn = mfn_of(e);
    e[0].op = __HYPERVISOR_update_va_mapping;
    e[0].args[0] = (u64)e;
    e[0].args[1] = pte(mfn_of(e), P | US | AC);
    e[0].args[2] = UVMF_INVLPG;
    e[1].op = __HYPERVISOR_mmuext_op;
    e[1].args[0] = (u64)&op;
    e[1].args[1] = 1;
    e[1].args[3] = DOMID_SELF;
    e[0].result = e[1].result = 0x5000;         /* not present, should it be read as an entry */
    rc = HC(multicall, e, 2);
    EQ(rc, -EFAULT);
    EQ(e[1].result, 0x5000);
    CHECK(make_rw(e) == 0 || unpin(mfn_of(e)) == 0);
    EQ(make_rw(e), 0);
    usable(e);
    page_free(e);
}

TEST(memory_op)
{
    struct xen_machphys_mapping m;
    static struct { u64 addr, size; u32 type; } __attribute__((packed)) e820[64];
    struct xen_memory_map map = { .nr_entries = 0 };

    EQ(HC(memory_op, XENMEM_machphys_mapping, &m), 0);
    EQ(m.v_start, (u64)M2P);
    CHECK(m.max_mfn >= max_page());
    set_xen_guest_handle(map.buffer, (void *)e820);
    EQ(HC(memory_op, XENMEM_memory_map, &map), -EINVAL);
    map.nr_entries = 64;
    EQ(HC(memory_op, XENMEM_memory_map, &map), 0);
    EQ(map.nr_entries, 1);
    EQ(e820[0].size, si->nr_pages << 12);
    EQ(HC(memory_op, XENMEM_current_reservation, 0), si->nr_pages);
}

TEST(m2p)
{
    const u64 *p2m = (const u64 *)si->mfn_list;
    unsigned bad = 0;
    u64 v;

    for (u64 i = 0; i < si->nr_pages; i++)
        bad += M2P[p2m[i]] != i;
    EQ(bad, 0);
    CHECK(!try_read(M2P, &v));
    v = load(&M2P[p2m[5]]);
    CHECK(try_write((void *)&M2P[p2m[5]], 0));
    TRAPPED(14, 3);
    EQ(this_cpu()->trap_cr2, (u64)&M2P[p2m[5]]);
    EQ(load(&M2P[p2m[5]]), v);
    /* Its writable twin, and the rest of the hypervisor, are out of reach. */
    CHECK(try_read((void *)0xffff808000000000, NULL));
    CHECK(try_write((void *)0xffff808000000000, 0));
    for (u64 slot = 257; slot < 272; slot++)
        CHECK(try_read((void *)(0xffff000000000000 | slot << 39), NULL));
    CHECK(try_read((void *)0xffff82d040200000, NULL));
    CHECK(try_read((void *)0xffff828000000000, NULL));
    EQ(mmu_update(p2m[5] << 12 | MMU_MACHPHYS_UPDATE, 1234), 0);
    EQ(load(&M2P[p2m[5]]), 1234);
    EQ(mmu_update(p2m[5] << 12 | MMU_MACHPHYS_UPDATE, 5), 0);
    EQ(mmu_update(foreign_mfn(0) << 12 | MMU_MACHPHYS_UPDATE, 1234), -EINVAL);
    EQ(mmu_update((max_page() + 1000) << 12 | MMU_MACHPHYS_UPDATE, 1234), -EINVAL);
}
