/* SPDX-License-Identifier: MIT */
/* vcpu_op (Xen public header vcpu.h). */
#include <xen/errno.h>

#include "abi/abi.h"
#include "arch/time.h"
#include "base/env.h"
#include "memory.h"
#include "pt_string.h"
#include "tlb.h"

/* Setting up a vCPU and moving its vcpu_info: one CPU at a time, so that what was checked is what is used. */
static u32 setup_lock;

static void lock(void)
{
    while (atomic_xchg32(&setup_lock, 1)) {
        tlb_poll();                              /* the holder may wait for a flush here */
        cpu_relax();
    }
}
static void unlock(void) { store_release(&setup_lock, 0); }

static long initialise(struct vcpu *v, u64 arg)
{
    struct vcpu_guest_context *ctx = (void *)v->scratch_context;
    long rc;

    _Static_assert(sizeof(*ctx) <= 2 * PAGE_SIZE, "scratch_context is two pages");
    lock();
    if (v->initialised)
        rc = -XEN_EEXIST;
    else if (copy_from_guest(ctx, arg, sizeof(*ctx)))
        rc = -XEN_EFAULT;
    else
        rc = vcpu_set_context(v, ctx);
    if (!rc) {
        v->runstate.state = RUNSTATE_offline;
        store_release(&v->initialised, true);
    }
    unlock();
    return rc;
}

static long register_info(struct vcpu *v, u64 arg)
{
    struct vcpu_register_vcpu_info r;
    vcpu_info_t *new, *old;
    int rc;

    if (copy_from_guest(&r, arg, sizeof(r)))
        return -XEN_EFAULT;
    if (r.offset > PAGE_SIZE - sizeof(vcpu_info_t) || (r.offset & 7))
        return -XEN_EINVAL;
    if (v != current_vcpu() && !v->down)
        return -XEN_EINVAL;
    lock();
    rc = v->info_mfn.v != MFN_INVALID.v ? -XEN_EINVAL : mm_get_rw_page(v->domain, r.mfn);
    if (!rc)
        v->info_mfn = MFN(r.mfn);
    unlock();
    if (rc)
        return rc == -XEN_ERESTART ? rc : -XEN_EINVAL;
    new = (vcpu_info_t *)((char *)env_map(MFN(r.mfn)) + r.offset);
    old = v->info;
    memcpy(new, old, sizeof(*new));
    new->time.version = 0;
    store_release(&v->info, new);
    vtime_init_vcpu(v);
    /* An event that was sent to the old place meanwhile must not be lost: look at everything. */
    store_release(&new->evtchn_pending_sel, ~0ul);
    store_release(&new->evtchn_upcall_pending, 1);
    return 0;
}

static long set_singleshot(struct vcpu *v, u64 arg)
{
    struct vcpu_set_singleshot_timer t;

    if (v != current_vcpu())
        return -XEN_EINVAL;
    if (copy_from_guest(&t, arg, sizeof(t)))
        return -XEN_EFAULT;
    if (t.timeout_abs_ns < now_ns() && (t.flags & VCPU_SSHOTTMR_future))
        return -XEN_ETIME;
    store_relaxed(&v->singleshot_ns, t.timeout_abs_ns);
    sched_timer_set(&v->se, t.timeout_abs_ns);
    return 0;
}

static long up(struct vcpu *v)
{
    if (!load_acquire(&v->initialised))
        return -XEN_EINVAL;
    if (v->down) {
        store_release(&v->down, false);
        sched_unpark(&v->se);
    }
    return 0;
}

static long down(struct vcpu *v)
{
    struct domain *d = v->domain;

    if (v != current_vcpu())
        return v->down ? 0 : -XEN_EBUSY;         /* a running vCPU stops itself, as Linux does */
    store_release(&v->down, true);
    sched_park(&v->se);                          /* events that are on their way do not bring it back */
    cpu_info()->work |= WORK_RESCHED;
    for (u32 i = 0; i < d->max_vcpus; i++)
        if (!load_relaxed(&d->vcpu[i]->down))
            return 0;
    domain_shutdown(d, SHUTDOWN_poweroff);       /* the last one: nothing could bring any back */
    return 0;
}

long hc_vcpu_op(u64 cmd, u64 id, u64 arg, u64 a4, u64 a5)
{
    struct domain *d = current_domain();
    struct vcpu *v;

    (void)a4; (void)a5;
    if (id >= d->max_vcpus)
        return -XEN_ENOENT;
    v = d->vcpu[id];
    switch (cmd) {
    case VCPUOP_initialise:
        return initialise(v, arg);
    case VCPUOP_up:
        return up(v);
    case VCPUOP_down:
        return down(v);
    case VCPUOP_is_up:
        return !v->down;
    case VCPUOP_get_runstate_info: {
        struct vcpu_runstate_info r = v->runstate;
        u64 now = now_ns();

        /* Of another vCPU it may be changing just now. */
        if (now > r.state_entry_time)
            r.time[r.state] += now - r.state_entry_time;
        r.state_entry_time = now;
        return copy_to_guest(arg, &r, sizeof(r));
    }
    case VCPUOP_register_runstate_memory_area: {
        u64 p;

        if (copy_from_guest(&p, arg, 8))
            return -XEN_EFAULT;
        v->runstate_guest = p;
        if (v == current_vcpu())
            runstate_publish(v);
        return 0;
    }
    case VCPUOP_set_periodic_timer:
        return -XEN_ENOSYS;
    case VCPUOP_stop_periodic_timer:
        return 0;
    case VCPUOP_set_singleshot_timer:
        return set_singleshot(v, arg);
    case VCPUOP_stop_singleshot_timer:
        if (v != current_vcpu())
            return -XEN_EINVAL;
        store_relaxed(&v->singleshot_ns, ~0ull);
        sched_timer_set(&v->se, ~0ull);
        return 0;
    case VCPUOP_register_vcpu_info:
        return register_info(v, arg);
    case VCPUOP_register_vcpu_time_memory_area: {
        u64 p;

        if (copy_from_guest(&p, arg, 8))
            return -XEN_EFAULT;
        /* The scale never changes: written once, and never again behind the guest's back. */
        return p ? copy_to_guest(p, &v->info->time, sizeof(v->info->time)) : 0;
    }
    default:
        return -XEN_ENOSYS;
    }
}
