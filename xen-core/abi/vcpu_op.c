/* SPDX-License-Identifier: MIT */
/* vcpu_op (Xen public header vcpu.h). */
#include <xen/errno.h>

#include "abi/abi.h"
#include "arch/time.h"
#include "base/env.h"
#include "memory.h"
#include "pt_string.h"

static long initialise(struct vcpu *v, u64 arg)
{
    struct vcpu_guest_context *ctx;
    long rc;

    if (v->initialised)
        return -XEN_EEXIST;
    _Static_assert(sizeof(*ctx) <= 2 * PAGE_SIZE, "copied in two parts");
    /* Larger than a page: read into the two halves of the vCPU's save area, which is unused until it runs. */
    ctx = (struct vcpu_guest_context *)(void *)v->scratch_context;
    if (copy_from_guest(ctx, arg, sizeof(*ctx)))
        return -XEN_EFAULT;
    rc = vcpu_set_context(v, ctx);
    if (!rc)
        v->initialised = true;
    return rc;
}

static long register_info(struct vcpu *v, u64 arg)
{
    struct vcpu_register_vcpu_info r;
    vcpu_info_t *new, *old = v->info;
    int rc;

    if (copy_from_guest(&r, arg, sizeof(r)))
        return -XEN_EFAULT;
    if (r.offset > PAGE_SIZE - sizeof(vcpu_info_t) || (r.offset & 7))
        return -XEN_EINVAL;
    if (v->info_mfn.v != MFN_INVALID.v)
        return -XEN_EINVAL;
    if (v != current_vcpu() && !v->down)
        return -XEN_EINVAL;
    rc = mm_get_rw_page(v->domain, r.mfn);
    if (rc)
        return -XEN_EINVAL;
    new = (vcpu_info_t *)((char *)env_map(MFN(r.mfn)) + r.offset);
    memcpy(new, old, sizeof(*new));
    new->time.version = 0;
    v->info_mfn = MFN(r.mfn);
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
    v->singleshot_ns = t.timeout_abs_ns;
    sched_timer_set(&v->se, t.timeout_abs_ns);
    return 0;
}

static long up(struct vcpu *v)
{
    if (!v->initialised)
        return -XEN_EINVAL;
    if (v->down) {
        store_release(&v->down, false);
        sched_wake(&v->se);
    }
    return 0;
}

static long down(struct vcpu *v)
{
    if (v == current_vcpu()) {
        store_release(&v->down, true);
        while (!sched_block(&v->se))
            ;
        cpu_info()->work |= WORK_RESCHED;
        return 0;
    }
    return v->down ? 0 : -XEN_EBUSY;             /* a running vCPU stops itself, as Linux does */
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

        r.time[r.state] += now_ns() - r.state_entry_time;
        r.state_entry_time = now_ns();
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
        v->singleshot_ns = ~0ull;
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
