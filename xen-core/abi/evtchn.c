/* SPDX-License-Identifier: MIT */
/* Event channels, 2-level ABI (Xen public header event_channel.h).
 *
 * State       evtchn[port].state goes FREE -> bound -> FREE under evtchn_lock; pending and mask bits, the selector word
 *             and upcall_pending live in memory shared with the guest and are changed by locked instructions.
 * Roles       bind, close: any CPU under the lock.  send: any CPU, no lock.
 * Commits at  the locked set of the pending bit.
 * Pairs       E1: pending, selector, upcall_pending set -> wake (queue lock), vs. block: mask cleared -> upcall_pending read.
 * Progress    send is wait-free but for the wake-up's queue lock. */
#include <ck_spinlock.h>
#include <xen/errno.h>

#include "abi/abi.h"
#include "base/env.h"
#include "base/stats.h"

static void lock(struct domain *d)
{
    while (atomic_xchg32(&d->evtchn_lock, 1))
        cpu_relax();
}
static void unlock(struct domain *d) { store_release(&d->evtchn_lock, 0); }

/* @v has an event it may take: sees that it notices. */
static void notify(struct vcpu *v)
{
    vcpu_info_t *i = v->info;

    if (atomic_xchg8(&i->evtchn_upcall_pending, 1) && !load_relaxed(&v->poll_nr))
        return;                                  /* already on its way */
    if (load_relaxed(&v->down))
        return;
    sched_wake(&v->se);
    /* Whatever the mask says: guests unmask by a plain store and then look at the pending byte without a fence between,
     * so a mask seen set here may be one that the guest cleared before it looked. */
    if (load_acquire(&v->se.on_cpu) && load_relaxed(&v->se.cpu) != this_cpu())
        env_kick(load_relaxed(&v->se.cpu));
}

void evtchn_set_pending(struct domain *d, u32 port)
{
    shared_info_t *s = d->shared;
    struct vcpu *v = d->vcpu[d->evtchn[port].vcpu];

    if (atomic_test_and_set_bit((u64 *)s->evtchn_pending, port))
        goto polls;
    if (!test_bit((u64 *)s->evtchn_mask, port) &&
        !atomic_test_and_set_bit((u64 *)&v->info->evtchn_pending_sel, port / 64))
        notify(v);
polls:
    /* Whoever polls this port wakes even if it is masked. */
    if (likely(!load_acquire(&d->nr_polling)))
        return;
    for (u32 i = 0; i < d->max_vcpus; i++) {
        struct vcpu *p = d->vcpu[i];

        for (u32 k = 0; k < load_acquire(&p->poll_nr); k++)
            if (p->poll_port[k] == port)
                sched_wake(&p->se);
    }
}

void send_vcpu_virq(struct vcpu *v, u32 virq)
{
    u32 port = load_acquire(&v->virq_port[virq]);

    if (port)
        evtchn_set_pending(v->domain, port);
}

void send_global_virq(struct domain *d, u32 virq)
{
    u32 port = load_acquire(&d->global_virq_port[virq]);

    if (port)
        evtchn_set_pending(d, port);
}

static bool virq_is_global(u32 virq)
{
    return virq != VIRQ_TIMER && virq != VIRQ_DEBUG && virq != VIRQ_XENOPROF && virq != VIRQ_XENPMU;
}

/* A free port, reserved; 0: none.  Locked. */
static u32 get_port(struct domain *d)
{
    for (u32 p = 1; p < NR_EVTCHN; p++)
        if (d->evtchn[p].state == ECS_FREE)
            return p;
    return 0;
}

static long bind_virq(struct domain *d, struct evtchn_bind_virq *b)
{
    struct vcpu *v;
    u16 *slot;
    u32 port;
    long rc = 0;

    if (b->virq >= NR_VIRQS || (virq_is_global(b->virq) && b->vcpu))
        return -XEN_EINVAL;
    if (b->vcpu >= d->max_vcpus)
        return -XEN_ENOENT;
    v = d->vcpu[b->vcpu];
    lock(d);
    slot = virq_is_global(b->virq) ? &d->global_virq_port[b->virq] : &v->virq_port[b->virq];
    port = get_port(d);
    if (*slot) {
        rc = -XEN_EEXIST;
    } else if (!port) {
        rc = -XEN_ENOSPC;
    } else {
        d->evtchn[port] = (struct evtchn){ .state = ECS_VIRQ, .virq = (u16)b->virq, .vcpu = b->vcpu };
        store_release(slot, (u16)port);
        b->port = port;
    }
    unlock(d);
    return rc;
}

static long bind_simple(struct domain *d, struct evtchn e, u32 *port)
{
    lock(d);
    *port = get_port(d);
    if (*port)
        d->evtchn[*port] = e;
    unlock(d);
    return *port ? 0 : -XEN_ENOSPC;
}

static long bind_interdomain(struct domain *d, struct evtchn_bind_interdomain *b)
{
    long rc = -XEN_EINVAL;

    if (b->remote_dom != DOMID_SELF && b->remote_dom != d->domid)
        return -XEN_ESRCH;
    lock(d);
    if (b->remote_port && b->remote_port < NR_EVTCHN && d->evtchn[b->remote_port].state == ECS_UNBOUND &&
        d->evtchn[b->remote_port].remote_dom == d->domid) {
        u32 port = get_port(d);

        if (port) {
            d->evtchn[port] = (struct evtchn){ .state = ECS_INTERDOMAIN, .remote_dom = d->domid, .remote_port = b->remote_port };
            d->evtchn[b->remote_port].remote_port = port;
            d->evtchn[b->remote_port].state = ECS_INTERDOMAIN;
            b->local_port = port;
            rc = 0;
        } else {
            rc = -XEN_ENOSPC;
        }
    }
    unlock(d);
    if (!rc)
        evtchn_set_pending(d, b->local_port);
    return rc;
}

static long close_port(struct domain *d, u32 port)
{
    struct evtchn *e;

    if (!port || port >= NR_EVTCHN)
        return -XEN_EINVAL;
    lock(d);
    e = &d->evtchn[port];
    if (e->state == ECS_FREE) {
        unlock(d);
        return -XEN_EINVAL;
    }
    if (e->state == ECS_VIRQ) {
        if (virq_is_global(e->virq))
            store_release(&d->global_virq_port[e->virq], 0);
        else
            store_release(&d->vcpu[e->vcpu]->virq_port[e->virq], 0);
    }
    if (e->state == ECS_INTERDOMAIN) {
        d->evtchn[e->remote_port].state = ECS_UNBOUND;
        d->evtchn[e->remote_port].remote_dom = d->domid;
    }
    atomic_clear_bit((u64 *)d->shared->evtchn_pending, port);
    e->vcpu = 0;
    e->state = ECS_FREE;
    unlock(d);
    return 0;
}

static long send(struct domain *d, u32 port)
{
    struct evtchn e;

    if (!port || port >= NR_EVTCHN)
        return -XEN_EINVAL;
    e = d->evtchn[port];
    switch (e.state) {
    case ECS_IPI:
        evtchn_set_pending(d, port);
        return 0;
    case ECS_INTERDOMAIN:
        evtchn_set_pending(d, e.remote_port);
        return 0;
    case ECS_UNBOUND:
        return 0;                                /* the other end is not there yet */
    default:
        return -XEN_EINVAL;
    }
}

static long status(struct domain *d, struct evtchn_status *s)
{
    const struct evtchn *e;

    if (s->dom != DOMID_SELF && s->dom != d->domid)
        return -XEN_ESRCH;
    if (s->port >= NR_EVTCHN)
        return -XEN_EINVAL;
    lock(d);
    e = &d->evtchn[s->port];
    s->vcpu = e->vcpu;
    switch (e->state) {
    case ECS_UNBOUND:
        s->status = EVTCHNSTAT_unbound;
        s->u.unbound.dom = e->remote_dom;
        break;
    case ECS_INTERDOMAIN:
        s->status = EVTCHNSTAT_interdomain;
        s->u.interdomain.dom = e->remote_dom;
        s->u.interdomain.port = e->remote_port;
        break;
    case ECS_VIRQ:
        s->status = EVTCHNSTAT_virq;
        s->u.virq = e->virq;
        break;
    case ECS_IPI:
        s->status = EVTCHNSTAT_ipi;
        break;
    default:
        s->status = EVTCHNSTAT_closed;
    }
    unlock(d);
    return 0;
}

static long bind_vcpu(struct domain *d, const struct evtchn_bind_vcpu *b)
{
    long rc = 0;

    if (!b->port || b->port >= NR_EVTCHN)
        return -XEN_EINVAL;
    if (b->vcpu >= d->max_vcpus)
        return -XEN_ENOENT;
    lock(d);
    switch (d->evtchn[b->port].state) {
    case ECS_VIRQ:
        if (!virq_is_global(d->evtchn[b->port].virq)) {
            rc = -XEN_EINVAL;
            break;
        }
        __attribute__((fallthrough));
    case ECS_UNBOUND:
    case ECS_INTERDOMAIN:
        d->evtchn[b->port].vcpu = b->vcpu;
        break;
    default:
        rc = -XEN_EINVAL;
    }
    unlock(d);
    return rc;
}

static long unmask(struct domain *d, u32 port)
{
    shared_info_t *s = d->shared;
    struct vcpu *v;

    if (!port || port >= NR_EVTCHN)
        return -XEN_EINVAL;
    v = d->vcpu[d->evtchn[port].vcpu];
    if (atomic_test_and_clear_bit((u64 *)s->evtchn_mask, port) && test_bit((u64 *)s->evtchn_pending, port) &&
        !atomic_test_and_set_bit((u64 *)&v->info->evtchn_pending_sel, port / 64))
        notify(v);
    return 0;
}

/* Reads the argument once, works on the copy, writes it back. */
#define WITH_ARG(type, call, back) \
    do { \
        struct type a_; \
        if (copy_from_guest(&a_, arg, sizeof(a_))) \
            return -XEN_EFAULT; \
        rc = (call); \
        if (!rc && (back) && copy_to_guest(arg, &a_, sizeof(a_))) \
            rc = -XEN_EFAULT; \
        return rc; \
    } while (0)

long hc_event_channel_op(u64 cmd, u64 arg, u64 a3, u64 a4, u64 a5)
{
    struct domain *d = current_domain();
    long rc;

    (void)a3; (void)a4; (void)a5;
    switch (cmd) {
    case EVTCHNOP_send:
        stat_inc(evtchn_send);
        WITH_ARG(evtchn_send, send(d, a_.port), false);
    case EVTCHNOP_bind_virq:
        WITH_ARG(evtchn_bind_virq, bind_virq(d, &a_), true);
    case EVTCHNOP_bind_ipi:
        WITH_ARG(evtchn_bind_ipi, a_.vcpu >= d->max_vcpus ? -XEN_ENOENT :
                 bind_simple(d, (struct evtchn){ .state = ECS_IPI, .vcpu = a_.vcpu }, &a_.port), true);
    case EVTCHNOP_alloc_unbound:
        WITH_ARG(evtchn_alloc_unbound, a_.dom != DOMID_SELF && a_.dom != d->domid ? -XEN_ESRCH :
                 bind_simple(d, (struct evtchn){ .state = ECS_UNBOUND,
                                                 .remote_dom = a_.remote_dom == DOMID_SELF ? d->domid : a_.remote_dom },
                             &a_.port), true);
    case EVTCHNOP_bind_interdomain:
        WITH_ARG(evtchn_bind_interdomain, bind_interdomain(d, &a_), true);
    case EVTCHNOP_close:
        WITH_ARG(evtchn_close, close_port(d, a_.port), false);
    case EVTCHNOP_status:
        WITH_ARG(evtchn_status, status(d, &a_), true);
    case EVTCHNOP_bind_vcpu:
        WITH_ARG(evtchn_bind_vcpu, bind_vcpu(d, &a_), false);
    case EVTCHNOP_unmask:
        WITH_ARG(evtchn_unmask, unmask(d, a_.port), false);
    default:
        return -XEN_ENOSYS;                      /* pirqs, FIFO ABI, reset */
    }
}
