/* SPDX-License-Identifier: MIT */
/* mmu_update, update_va_mapping and mmuext_op (Xen public header xen.h). */
#include <xen/errno.h>

#include "abi/abi_mm.h"
#include "base/stats.h"
#include "guest_copy.h"
#include "memory.h"
#include "pt_work.h"
#include "ptwalk.h"
#include "ptwr.h"
#include "vcpu.h"

static int foreign_ok(u64 domid, const struct domain *d)
{
    return domid == DOMID_SELF || domid == d->domid ? 0 : domid == DOMID_IO && d->is_initial ? 0 : -XEN_ESRCH;
}

/* Writes 8 bytes into a page of the guest's that is no page table: it must be (and stay) writable meanwhile. */
static int plain_write(struct domain *d, mfn_t mfn, unsigned idx, u64 val, bool keep_ad)
{
    u64 *slot = (u64 *)env_map(mfn) + idx, old;

    if (unlikely(!frame_get_t_fast(frame_of(mfn), FT_W))) {
        int rc = pt_get_type(d->mm, mfn, FT_W);

        if (rc)
            return rc;
    }
    stat_inc(pte_plain_write);
    old = load_relaxed(slot);
    if (!keep_ad)
        store_relaxed(slot, val);
    else
        while (!atomic_cas64(slot, &old, val | (old & (PTE_A | PTE_D))))
            ;
    if (unlikely(!frame_put_t_fast(frame_of(mfn))))
        pt_put_type(d->mm, mfn);
    return 0;
}

/* The operation is done, but a tree that it dropped is not all taken down: the guest may rely on that, so its hypercall ends
 * only when it is. */
enum { DONE_AGAIN = 1 };

static int update_entry(struct domain *d, u64 ptr, u64 val, bool keep_ad)
{
    mfn_t mfn = MFN((ptr & PTE_MFN_MASK) >> PAGE_SHIFT);
    unsigned idx = (unsigned)(ptr & 4095) / 8;
    struct frame *f;

    if (unlikely(mfn.v >= max_mfn))
        return -XEN_EINVAL;
    f = frame_of(mfn);
    if (unlikely(load_relaxed(&f->owner) != d->mm->owner))
        return -XEN_EINVAL;
    for (unsigned tries = 0; ; tries++) {
        enum frame_type ty = fw_type(load_acquire(&f->fw));
        bool table = (load_relaxed(&f->fw) & (FW_T | FW_BUSY)) && ty >= FT_L1 && ty <= FT_L4;
        int rc = table ? pt_set(d->mm, f, idx, (int)ty - FT_L1 + 1, val, keep_ad ? PT_PRESERVE_AD : PT_NORMAL)
                       : plain_write(d, mfn, idx, val, keep_ad);

        if (likely(rc != -XEN_EAGAIN))
            return unlikely(ty != FT_L1) && !rc && pt_work_attention() ? DONE_AGAIN : rc;
        if (tries == 1000000)
            return -XEN_EBUSY;
        tlb_poll();
        cpu_relax();
    }
}

/* A list that was begun before has this bit in its count and the number of operations done in *@done_ptr. */
#ifndef MMU_UPDATE_PREEMPTED
#define MMU_UPDATE_PREEMPTED (1u << 31)
#endif

static int done_before(u64 *count, u64 done_ptr, u32 *done)
{
    if (likely(!(*count & MMU_UPDATE_PREEMPTED)))
        return 0;
    *count &= ~(u64)MMU_UPDATE_PREEMPTED;
    return done_ptr && copy_from_guest(done, done_ptr, sizeof(*done)) ? -XEN_EFAULT : 0;
}

static long mmu_update(u64 list, u64 count, u64 done_ptr, u64 domid, u64 a5)
{
    struct domain *d = current_domain();
    u32 before = 0;
    u64 i;
    int rc;

    (void)a5;
    stat_inc(hc_mmu_update);
    rc = done_before(&count, done_ptr, &before);
    if (unlikely(rc))
        return rc;
    if (unlikely(foreign_ok(domid & 0xffff, d) || domid >> 16))
        return -XEN_ESRCH;
    if (unlikely(count > 1u << 20 || !guest_range_ok(list, count * 16)))
        return -XEN_EFAULT;
    for (i = 0; i < count; i++) {
        u64 ptr, val;

        if (unlikely(!raw_read_pair(list + i * 16, &ptr, &val))) {
            rc = -XEN_EFAULT;
            break;
        }
        switch (ptr & 7) {
        case MMU_NORMAL_PT_UPDATE:
            rc = update_entry(d, ptr, val, false);
            break;
        case MMU_PT_UPDATE_PRESERVE_AD:
            rc = update_entry(d, ptr & ~7ull, val, true);
            break;
        case MMU_MACHPHYS_UPDATE:
            rc = -XEN_EINVAL;
            if (ptr >> PAGE_SHIFT < max_mfn && frame_of(MFN(ptr >> PAGE_SHIFT))->owner == d->mm->owner) {
                m2p_set(MFN(ptr >> PAGE_SHIFT), val);
                rc = 0;
            }
            break;
        default:
            rc = -XEN_ENOSYS;
        }
        if (unlikely(rc)) {
            if (rc == DONE_AGAIN) {
                i++;
                rc = -XEN_ERESTART;
            }
            break;
        }
        if (unlikely((i & 31) == 31)) {
            tlb_poll();
            pt_charge(32 * 500);
            if (pt_spent() && i + 1 < count) {
                i++;
                rc = -XEN_ERESTART;
                break;
            }
        }
    }
    stat_add(hc_mmu_update_entries, i);
    if (unlikely(done_ptr)) {
        u32 done = before + (u32)i;

        if (copy_to_guest(done_ptr, &done, sizeof(done)) && !rc)
            rc = -XEN_EFAULT;
    }
    return unlikely(rc == -XEN_ERESTART) ? hypercall_again(list + i * 16, (count - i) | MMU_UPDATE_PREEMPTED, done_ptr) : rc;
}

/* TLB flushes that guests ask for ---------------------------------------------------------------- */

/* Adds the CPU on which @v runs.  A vCPU that is not running holds nothing: it loads its root when it comes back. */
static void add_vcpu(struct tlb_set *s, const struct vcpu *v)
{
    if (load_acquire(&v->se.on_cpu))
        tlb_set_add(s, load_relaxed(&v->se.cpu));
}

/* @bitmap: guest address of a vCPU bitmap, 0 = all vCPUs. */
static int flush_vcpus(struct domain *d, u64 bitmap)
{
    struct tlb_set s;
    u64 word = ~0ull;

    tlb_set_clear(&s);
    for (u32 i = 0; i < d->max_vcpus; i++) {
        if (bitmap && i % 64 == 0) {
            u32 bytes = MIN(8u, (d->max_vcpus - i + 7) / 8);

            word = 0;
            if (copy_from_guest(&word, bitmap + i / 8, bytes))
                return -XEN_EFAULT;
        }
        if (word >> (i % 64) & 1)
            add_vcpu(&s, d->vcpu[i]);
    }
    if (s.bits[this_cpu() / 64] >> (this_cpu() % 64) & 1)
        mm_vcpu_flushed(current_vcpu());
    tlb_flush_set(&s);
    return 0;
}

static void flush_self(struct vcpu *v)
{
    tlb_flush_local();
    mm_vcpu_flushed(v);
}

static void invlpg_self(struct vcpu *v, u64 va)
{
    if (!guest_range_ok(va, 1))
        return;
    stat_inc(tlb_invlpg_local);
    invlpg(va);
    mm_vcpu_flushed(v);
}

static long update_va_mapping(u64 va, u64 val, u64 flags, u64 a4, u64 a5)
{
    struct vcpu *v = current_vcpu();
    mfn_t table;
    int rc = -XEN_EINVAL;

    (void)a4; (void)a5;
    stat_inc(hc_update_va_mapping);
    if (guest_range_ok(va, 1) && pt_walk_table(v->domain->mm, v->root_kernel, va, 1, &table))
        rc = pt_set(v->domain->mm, frame_of(table), pt_index(va, 1), 1, val, PT_NORMAL);
    if (rc == -XEN_EAGAIN)
        rc = -XEN_EINVAL;
    if (unlikely(flags & UVMF_FLUSHTYPE_MASK) && !rc) {
        u64 where = flags & ~(u64)UVMF_FLUSHTYPE_MASK;

        if (where == UVMF_LOCAL) {
            if ((flags & UVMF_FLUSHTYPE_MASK) == UVMF_INVLPG)
                invlpg_self(v, va);
            else
                flush_self(v);
        } else {
            rc = flush_vcpus(v->domain, where == UVMF_ALL ? 0 : where);
        }
    }
    return rc;
}

/* mmuext_op ---------------------------------------------------------------------------------------- */

int mm_new_root(struct vcpu *v, mfn_t mfn, bool user)
{
    struct mm_domain *mm = v->domain->mm;
    mfn_t *root = user ? &v->root_user : &v->root_kernel, old = *root;
    int rc;

    if (mfn_eq(old, mfn))
        return 0;
    if (mfn.v != MFN_INVALID.v) {
        rc = pt_get_type(mm, mfn, FT_L4);
        if (rc)
            return rc;
        if (user && pt_mark_user_root(mm, frame_of(mfn)))
            return -XEN_ERESTART;
    }
    *root = mfn;
    if (!user)
        load_root(v);                           /* nothing of the old root is left on this CPU */
    if (old.v != MFN_INVALID.v)
        pt_put_type(mm, old);
    return 0;
}

int mm_initial_root(struct vcpu *v, mfn_t mfn, bool user)
{
    int rc = pt_get_type(v->domain->mm, mfn, FT_L4);

    if (rc)
        return rc;
    if (user && pt_mark_user_root(v->domain->mm, frame_of(mfn)))
        return -XEN_ERESTART;
    *(user ? &v->root_user : &v->root_kernel) = mfn;
    return 0;
}

static int one_op(struct vcpu *v, const struct mmuext_op *op)
{
    struct domain *d = v->domain;
    mfn_t mfn = MFN(op->arg1.mfn);

    switch (op->cmd) {
    case MMUEXT_PIN_L1_TABLE:
        return pt_pin(d->mm, mfn, FT_L1);
    case MMUEXT_PIN_L2_TABLE:
        return pt_pin(d->mm, mfn, FT_L2);
    case MMUEXT_PIN_L3_TABLE:
        return pt_pin(d->mm, mfn, FT_L3);
    case MMUEXT_PIN_L4_TABLE:
        return pt_pin(d->mm, mfn, FT_L4);
    case MMUEXT_UNPIN_TABLE:
        return pt_unpin(d->mm, mfn);
    case MMUEXT_NEW_BASEPTR:
        return mfn.v == MFN_INVALID.v ? -XEN_EINVAL : mm_new_root(v, mfn, false);
    case MMUEXT_NEW_USER_BASEPTR:
        return mfn.v == MFN_INVALID.v ? -XEN_EINVAL : mm_new_root(v, mfn.v ? mfn : MFN_INVALID, true);
    case MMUEXT_TLB_FLUSH_LOCAL:
        flush_self(v);
        return 0;
    case MMUEXT_INVLPG_LOCAL:
        invlpg_self(v, op->arg1.linear_addr);
        return 0;
    case MMUEXT_TLB_FLUSH_MULTI:
    case MMUEXT_INVLPG_MULTI:
        return op->arg2.vcpumask.p ? flush_vcpus(d, (u64)op->arg2.vcpumask.p) : -XEN_EFAULT;
    case MMUEXT_TLB_FLUSH_ALL:
    case MMUEXT_INVLPG_ALL:
        return flush_vcpus(d, 0);
    case MMUEXT_FLUSH_CACHE:
    case MMUEXT_FLUSH_CACHE_GLOBAL:
        if (!d->is_initial)
            return -XEN_EACCES;
        __asm__ volatile("wbinvd" ::: "memory");
        return 0;
    case MMUEXT_SET_LDT:
        return ldt_set(v, op->arg1.linear_addr, op->arg2.nr_ents);
    case MMUEXT_CLEAR_PAGE:
    case MMUEXT_COPY_PAGE: {
        mfn_t src = MFN(op->cmd == MMUEXT_COPY_PAGE ? op->arg2.src_mfn : 0);
        int rc = pt_get_type(d->mm, mfn, FT_W);

        if (rc)
            return rc;
        if (op->cmd == MMUEXT_CLEAR_PAGE) {
            __builtin_memset(env_map(mfn), 0, PAGE_SIZE);
        } else if (src.v < max_mfn && frame_of(src)->owner == d->mm->owner && frame_get_u(frame_of(src))) {
            __builtin_memcpy(env_map(mfn), env_map(src), PAGE_SIZE);
            if (frame_put_u(frame_of(src)))
                env_frame_dead(frame_of(src));
        } else {
            rc = -XEN_EINVAL;
        }
        pt_put_type(d->mm, mfn);
        return rc;
    }
    default:
        return -XEN_ENOSYS;
    }
}

static long mmuext_op(u64 list, u64 count, u64 done_ptr, u64 domid, u64 a5)
{
    struct vcpu *v = current_vcpu();
    u32 before = 0;
    u64 i;
    int rc;

    (void)a5;
    stat_inc(hc_mmuext_op);
    rc = done_before(&count, done_ptr, &before);
    if (unlikely(rc))
        return rc;
    if (unlikely(foreign_ok(domid & 0xffff, v->domain)))
        return -XEN_ESRCH;
    if (unlikely(count > 1u << 20 || !guest_range_ok(list, count * sizeof(struct mmuext_op))))
        return -XEN_EFAULT;
    for (i = 0; i < count; i++) {
        struct mmuext_op op;

        if (raw_copy(&op, (const void *)(list + i * sizeof(op)), sizeof(op))) {
            rc = -XEN_EFAULT;
            break;
        }
        rc = one_op(v, &op);
        if (rc)
            break;
        tlb_poll();
        pt_charge(1000);
        if ((pt_spent() && i + 1 < count) || pt_work_attention()) {
            i++;
            rc = -XEN_ERESTART;
            break;
        }
    }
    if (done_ptr) {
        u32 done = before + (u32)i;

        if (copy_to_guest(done_ptr, &done, sizeof(done)) && !rc)
            rc = -XEN_EFAULT;
    }
    if (unlikely(rc == -XEN_ERESTART))
        return hypercall_again(list + i * sizeof(struct mmuext_op), (count - i) | MMU_UPDATE_PREEMPTED, done_ptr);
    return rc == -XEN_EAGAIN ? -XEN_EINVAL : rc;
}

/* In ptwr mode every operation on page tables is one critical section of the domain. */
#define BRACKET(name, why) \
    static __attribute__((noinline, cold)) long name##_ptwr(u64 a1, u64 a2, u64 a3, u64 a4, u64 a5) \
    { \
        struct mm_domain *mm = current_domain()->mm; \
        long rc; \
        ptwr_enter(mm, STAT_ptwr_flush_##why); \
        rc = name(a1, a2, a3, a4, a5); \
        ptwr_exit(mm); \
        return rc; \
    } \
    long hc_##name(u64 a1, u64 a2, u64 a3, u64 a4, u64 a5) \
    { \
        return ptwr_on() ? name##_ptwr(a1, a2, a3, a4, a5) : name(a1, a2, a3, a4, a5); \
    }
BRACKET(mmu_update, mmu_update)
BRACKET(update_va_mapping, va_mapping)
BRACKET(mmuext_op, mmuext)
