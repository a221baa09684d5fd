/* SPDX-License-Identifier: MIT */
/* sched_op (Xen public header sched.h). */
#include <xen/errno.h>

#include "abi/abi.h"
#include "arch/time.h"

static void resched(void) { cpu_info()->work |= WORK_RESCHED; }

static long block(struct vcpu *v)
{
    sched_forget_wakes(&v->se);
    atomic_xchg8(&v->info->evtchn_upcall_mask, 0);
    if (!load_acquire(&v->info->evtchn_upcall_pending) && sched_block(&v->se))    /* E1, see evtchn.c */
        resched();
    return 0;
}

/* The vCPU resumes from a poll on its way back to the guest. */
static long poll(struct vcpu *v, u64 arg)
{
    struct domain *d = v->domain;
    struct sched_poll p;
    u32 port[ARRAY_SIZE(v->poll_port)];
    bool pending = false;

    if (copy_from_guest(&p, arg, sizeof(p)))
        return -XEN_EFAULT;
    if (p.nr_ports > ARRAY_SIZE(port))
        return -XEN_EINVAL;
    if (copy_from_guest(port, (u64)p.ports.p, p.nr_ports * sizeof(port[0])))
        return -XEN_EFAULT;
    for (u32 i = 0; i < p.nr_ports; i++)
        if (port[i] >= NR_EVTCHN)
            return -XEN_EINVAL;
    if (p.timeout && p.timeout <= now_ns())
        return 0;
    if (v->poll_nr)                              /* a second poll in one multicall */
        poll_done(v);
    for (u32 i = 0; i < p.nr_ports; i++)
        v->poll_port[i] = port[i];
    sched_forget_wakes(&v->se);
    atomic_faa32(&d->nr_polling, 1);
    store_release(&v->poll_nr, p.nr_ports ? p.nr_ports : 1);
    if (!p.nr_ports)
        v->poll_port[0] = 0;
    atomic_fence();                              /* announced before looking; senders set pending before they look */
    for (u32 i = 0; i < p.nr_ports; i++)
        pending |= test_bit((u64 *)d->shared->evtchn_pending, port[i]);
    if (!pending && !(load_acquire(&v->info->evtchn_upcall_pending) && !v->info->evtchn_upcall_mask)) {
        if (p.timeout)
            sched_timer_within(&v->se, p.timeout);   /* the singleshot timer may come first */
        if (sched_block(&v->se)) {
            resched();
            return 0;
        }
    }
    poll_done(v);
    return 0;
}

void poll_done(struct vcpu *v)
{
    store_release(&v->poll_nr, 0);
    atomic_faa32(&v->domain->nr_polling, -1u);
}

long hc_sched_op(u64 cmd, u64 arg, u64 a3, u64 a4, u64 a5)
{
    struct vcpu *v = current_vcpu();

    (void)a3; (void)a4; (void)a5;
    switch (cmd) {
    case SCHEDOP_yield:
        sched_yield_slice();
        resched();
        return 0;
    case SCHEDOP_block:
        return block(v);
    case SCHEDOP_poll:
        return poll(v, arg);
    case SCHEDOP_shutdown: {
        struct sched_shutdown s;

        if (copy_from_guest(&s, arg, sizeof(s)))
            return -XEN_EFAULT;
        domain_shutdown(v->domain, s.reason);
        return 0;
    }
    case SCHEDOP_shutdown_code: {
        struct sched_shutdown s;

        if (copy_from_guest(&s, arg, sizeof(s)))
            return -XEN_EFAULT;
        v->domain->shutdown_code = s.reason;
        return 0;
    }
    case SCHEDOP_remote_shutdown:
        return -XEN_ESRCH;
    default:
        return -XEN_ENOSYS;
    }
}
