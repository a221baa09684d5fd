/* SPDX-License-Identifier: MIT */
/* memory_op and grant_table_op (Xen public headers memory.h, grant_table.h). */
#include <ck_spinlock.h>
#include <xen/errno.h>
#include <xen/grant_table.h>
#include <xen/memory.h>

#include "abi/abi.h"
#include "arch/layout.h"
#include "base/env.h"
#include "boot/boot.h"
#include "memory.h"
#include "pt_work.h"

static long memory_map(struct domain *d, u64 arg, bool machine)
{
    struct xen_memory_map m;
    struct e820_entry one = { 0, d->nr_pages << PAGE_SHIFT, E820_RAM };
    const struct e820_entry *src = machine ? boot_info.e820 : &one;
    u32 n = machine ? boot_info.nr_e820 : 1;

    if (machine && !d->is_initial)
        return -XEN_EPERM;
    if (copy_from_guest(&m, arg, sizeof(m)))
        return -XEN_EFAULT;
    if (m.nr_entries < n)
        return -XEN_EINVAL;
    m.nr_entries = n;
    if (copy_to_guest((u64)m.buffer.p, src, n * sizeof(*src)))
        return -XEN_EFAULT;
    return copy_to_guest(arg, &m, sizeof(m));
}

/* The upper bits of @cmd say how many extents were done by earlier parts of the same call. */
#ifndef MEMOP_EXTENT_SHIFT
#define MEMOP_EXTENT_SHIFT 6
#endif

/* The guest returns frames, from extent @first on; the result is how many extents were done. */
static long decrease(struct domain *d, u64 arg, u64 first)
{
    struct xen_memory_reservation r;
    u64 i;

    if (copy_from_guest(&r, arg, sizeof(r)))
        return -XEN_EFAULT;
    if (r.domid != DOMID_SELF && r.domid != d->domid)
        return -XEN_ESRCH;
    if (r.extent_order > 9)
        return -XEN_EPERM;
    for (i = first; i < r.nr_extents; i++) {
        u64 mfn;

        if (copy_from_guest(&mfn, (u64)r.extent_start.p + i * 8, 8))
            break;
        for (u64 k = 0; k < 1ull << r.extent_order; k++)
            if (mm_release_page(d, mfn + k))
                return (long)i;
        tlb_poll();
        pt_charge(500u << r.extent_order);
        if (pt_spent() && i + 1 < r.nr_extents)
            return hypercall_again(XENMEM_decrease_reservation | (i + 1) << MEMOP_EXTENT_SHIFT, arg, 0);
    }
    return (long)i;
}

long hc_memory_op(u64 cmd, u64 arg, u64 a3, u64 a4, u64 a5)
{
    struct domain *d = current_domain();
    u64 first = cmd >> MEMOP_EXTENT_SHIFT;

    (void)a3; (void)a4; (void)a5;
    switch (cmd & ((1u << MEMOP_EXTENT_SHIFT) - 1)) {
    case XENMEM_machine_memory_map:
        return memory_map(d, arg, true);
    case XENMEM_memory_map:
        return memory_map(d, arg, false);
    case XENMEM_machphys_mapping: {
        struct xen_machphys_mapping m = { M2P_RO_VIRT, M2P_RO_VIRT + 0x8000000000 - 1, max_mfn - 1 };

        return copy_to_guest(arg, &m, sizeof(m));
    }
    case XENMEM_maximum_ram_page:
        return (long)max_mfn - 1;
    case XENMEM_current_reservation:
    case XENMEM_maximum_reservation:
        return (long)d->nr_pages;
    case XENMEM_decrease_reservation:
        return decrease(d, arg, first);
    case XENMEM_increase_reservation:
    case XENMEM_populate_physmap:
        return 0;                                /* no extent could be allocated */
    default:
        return -XEN_ENOSYS;
    }
}

#define GRANT_FRAMES_MAX 32

static ck_spinlock_t grant_lock = CK_SPINLOCK_INITIALIZER;

/* The grant table of @d has at least @n frames; false: out of memory. */
static bool grow_table(struct domain *d, u32 n)
{
    bool ok = true;

    ck_spinlock_lock(&grant_lock);
    while (ok && d->nr_grant_frames < n) {
        void *page = hv_zalloc_page();

        ok = page != NULL;
        if (ok) {
            mm_share_hv_page(d, page);
            d->grant_mfn[d->nr_grant_frames++] = env_mfn_of(page).v;
        }
    }
    ck_spinlock_unlock(&grant_lock);
    return ok;
}

static long setup_table(struct domain *d, u64 arg)
{
    struct gnttab_setup_table s;

    if (copy_from_guest(&s, arg, sizeof(s)))
        return -XEN_EFAULT;
    s.status = GNTST_okay;
    if (s.dom != DOMID_SELF && s.dom != d->domid)
        s.status = GNTST_bad_domain;
    else if (s.nr_frames > GRANT_FRAMES_MAX || !grow_table(d, s.nr_frames))
        s.status = GNTST_general_error;
    if (s.status == GNTST_okay && copy_to_guest((u64)s.frame_list.p, d->grant_mfn, s.nr_frames * 8))
        return -XEN_EFAULT;
    return copy_to_guest(arg, &s, sizeof(s));
}

/* There is no other domain: nothing can be mapped, copied or given away.  Each request of an array gets its status. */
static const struct { u8 op, size, at; s16 status; } refused[] = {
#define REFUSE(name, why) { GNTTABOP_##name, sizeof(struct gnttab_##name), offsetof(struct gnttab_##name, status), why }
    REFUSE(map_grant_ref, GNTST_bad_domain),
    REFUSE(unmap_grant_ref, GNTST_bad_handle),
    REFUSE(transfer, GNTST_bad_domain),
    REFUSE(copy, GNTST_bad_domain),
    REFUSE(unmap_and_replace, GNTST_bad_handle),
#undef REFUSE
};

static long refuse(unsigned i, u64 arg, u32 count)
{
    for (u32 k = 0; k < count; k++) {
        if (copy_to_guest(arg + (u64)k * refused[i].size + refused[i].at, &refused[i].status, sizeof(s16)))
            return -XEN_EFAULT;
        tlb_poll();
        pt_charge(500);
        if (pt_spent() && k + 1 < count)
            return hypercall_again(refused[i].op, arg + (k + 1ull) * refused[i].size, count - k - 1);
    }
    return 0;
}

long hc_grant_table_op(u64 cmd, u64 arg, u64 count, u64 a4, u64 a5)
{
    struct domain *d = current_domain();

    (void)a4; (void)a5;
    for (unsigned i = 0; i < ARRAY_SIZE(refused); i++)
        if (cmd == refused[i].op)
            return refuse(i, arg, (u32)count);
    if (count != 1)
        return -XEN_EINVAL;
    switch (cmd) {
    case GNTTABOP_setup_table:
        return setup_table(d, arg);
    case GNTTABOP_query_size: {
        struct gnttab_query_size q;

        if (copy_from_guest(&q, arg, sizeof(q)))
            return -XEN_EFAULT;
        q.status = q.dom == DOMID_SELF || q.dom == d->domid ? GNTST_okay : GNTST_bad_domain;
        q.nr_frames = d->nr_grant_frames;
        q.max_nr_frames = GRANT_FRAMES_MAX;
        return copy_to_guest(arg, &q, sizeof(q));
    }
    case GNTTABOP_set_version: {
        struct gnttab_set_version v;

        if (copy_from_guest(&v, arg, sizeof(v)))
            return -XEN_EFAULT;
        if (v.version != 1)
            return -XEN_EINVAL;
        return copy_to_guest(arg, &v, sizeof(v));
    }
    case GNTTABOP_get_version: {
        struct gnttab_get_version v;

        if (copy_from_guest(&v, arg, sizeof(v)))
            return -XEN_EFAULT;
        if (v.dom != DOMID_SELF && v.dom != d->domid)
            return -XEN_EPERM;
        v.version = 1;
        return copy_to_guest(arg, &v, sizeof(v));
    }
    default:
        return -XEN_ENOSYS;
    }
}
