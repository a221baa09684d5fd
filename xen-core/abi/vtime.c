/* SPDX-License-Identifier: MIT */
/* What a guest knows of time: vcpu_time_info, wall clock, run-state accounting, one-shot timers. */
#include "arch/time.h"

#include "abi/abi.h"
#include "arch/apic.h"

#define XEN_PVCLOCK_TSC_STABLE 1

/* One scale for all CPUs and all time: the tuple never changes after boot. */
static void fill(struct vcpu_time_info *t)
{
    u32 ver = t->version;

    store_release(&t->version, ver | 1);
    compiler_barrier();
    t->tsc_timestamp = time_scale.tsc_base;
    t->system_time = 0;
    t->tsc_to_system_mul = time_scale.mul;
    t->tsc_shift = time_scale.shift;
    t->flags = XEN_PVCLOCK_TSC_STABLE;
    store_release(&t->version, (ver | 1) + 1);
}

void vtime_init_vcpu(struct vcpu *v) { fill(&v->info->time); }

void vtime_init_domain(struct domain *d)
{
    shared_info_t *s = d->shared;
    u64 sec = wallclock_base_ns / 1000000000;

    store_release(&s->wc_version, s->wc_version | 1);
    s->wc_sec = (u32)sec;
    s->wc_sec_hi = (u32)(sec >> 32);
    s->wc_nsec = (u32)(wallclock_base_ns % 1000000000);
    store_release(&s->wc_version, s->wc_version + 1);
}

void runstate_update(struct vcpu *v, int state, u64 now)
{
    struct vcpu_runstate_info *r = &v->runstate;

    if (v->down && state != RUNSTATE_running)
        state = RUNSTATE_offline;
    /* Since it was woken it was ready to run, which nobody noted then. */
    if (state == RUNSTATE_running && r->state != RUNSTATE_runnable && v->se.queued_ns > r->state_entry_time) {
        u64 woken = MIN(v->se.queued_ns, now);

        r->time[r->state] += woken - r->state_entry_time;
        r->state_entry_time = woken;
        r->state = RUNSTATE_runnable;
    }
    r->time[r->state] += now - r->state_entry_time;
    r->state_entry_time = now;
    r->state = state;
}

void runstate_publish(struct vcpu *v)
{
    if (v->runstate_guest && copy_to_guest(v->runstate_guest, &v->runstate, sizeof(v->runstate)))
        v->runstate_guest = 0;                   /* unmapped by now: stop trying */
}

void se_timer_fired(struct sched_entity *se)
{
    struct vcpu *v = container_of(se, struct vcpu, se);
    u64 due = load_relaxed(&v->singleshot_ns);

    /* The vCPU may be setting it anew meanwhile: then that one counts, and has armed itself. */
    if (due > now_ns())
        sched_timer_within(se, due);             /* it was the time-out of a poll */
    else if (atomic_cas64(&v->singleshot_ns, &due, ~0ull))
        send_vcpu_virq(v, VIRQ_TIMER);
    if (load_relaxed(&v->poll_nr))
        sched_wake(se);                          /* the time-out of SCHEDOP_poll */
}

/* Beyond this (36 years) a guest's time-out is never; well within what ns_to_tsc() can express. */
#define NEVER_NS (1ull << 60)

void sched_arm(u64 ns) { apic_timer_arm(ns < NEVER_NS ? ns_to_tsc(ns) : ~0ull); }

long hc_set_timer_op(u64 ns, u64 a2, u64 a3, u64 a4, u64 a5)
{
    struct vcpu *v = current_vcpu();

    (void)a2; (void)a3; (void)a4; (void)a5;
    store_relaxed(&v->singleshot_ns, ns ? ns : ~0ull);
    sched_timer_set(&v->se, v->singleshot_ns);
    return 0;
}
