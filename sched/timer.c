/* SPDX-License-Identifier: MIT */
/* One-shot timers: one for each entity, on the timer queue of the CPU that set it last.
 *
 * State       queue: a list by time through se.timer_next.  entity: timer_ns is ~0 when it is on no list, else it is on
 *             that of timer_cpu; both change under the lock of timer_cpu's queue.
 * Roles       set: any CPU.  fire, first: own CPU.
 * Commits at  the list operation under the lock.
 * Pairs       M1: taken off the old queue -> timer_cpu changed (release), vs. timer_cpu read (acquire) -> the new
 *             queue's lock -> timer_ns read.  Everything else is under the lock.  A timer only ever enters the queue of
 *             the calling CPU, which arms its own interrupt: no other CPU needs to be told.  One that leaves a queue
 *             costs its CPU at most one interrupt for nothing.
 * Progress    one lock at a time, held for a walk of the list.
 * Tested by   tests/unit/test_sched.c */
#include <ck_spinlock.h>

#include "base/atomic.h"
#include "base/env.h"
#include "sched.h"
#include "sched_internal.h"

struct timerq {
    ck_spinlock_t lock __cacheline;
    struct sched_entity *first;
};
static struct timerq timerq[ENV_MAX_CPUS];

void timer_init(void)
{
    for (unsigned c = 0; c < env_nr_cpus(); c++)
        ck_spinlock_init(&timerq[c].lock);
}

/* The queue that @se's timer is or was on, locked. */
static struct timerq *lock_queue(struct sched_entity *se)
{
    for (;;) {
        u32 c = load_acquire(&se->timer_cpu);                         /* M1 */

        ck_spinlock_lock(&timerq[c].lock);
        if (load_relaxed(&se->timer_cpu) == c)
            return &timerq[c];
        ck_spinlock_unlock(&timerq[c].lock);
    }
}

static void timer_remove(struct timerq *q, struct sched_entity *se)
{
    struct sched_entity **link = &q->first;

    while (*link != se)
        link = &(*link)->timer_next;
    store_relaxed(link, se->timer_next);
    se->timer_ns = ~0ull;
}

/* True: it is the queue's first now. */
static bool timer_insert(struct timerq *q, struct sched_entity *se, u64 ns)
{
    struct sched_entity **link = &q->first;

    while (*link && (*link)->timer_ns <= ns)
        link = &(*link)->timer_next;
    se->timer_ns = ns;
    se->timer_next = *link;
    store_relaxed(link, se);
    return link == &q->first;
}

static void timer_arm(struct sched_entity *se, u64 ns, bool keep_earlier)
{
    struct timerq *own = &timerq[env_cpu()], *q;
    bool first = false;

    /* Two rounds if it was elsewhere: off that queue, and then, unless another CPU set it meanwhile, onto ours. */
    for (;;) {
        q = lock_queue(se);
        if (keep_earlier && se->timer_ns <= ns)
            break;
        if (se->timer_ns != ~0ull)
            timer_remove(q, se);
        if (ns == ~0ull)
            break;
        if (q == own) {
            first = timer_insert(q, se, ns);
            break;
        }
        store_release(&se->timer_cpu, env_cpu());                     /* M1 */
        ck_spinlock_unlock(&q->lock);
    }
    ck_spinlock_unlock(&q->lock);
    if (first)
        sched_arm(sched_next_event());
}

void sched_timer_set(struct sched_entity *se, u64 ns) { timer_arm(se, ns, false); }
void sched_timer_within(struct sched_entity *se, u64 ns) { timer_arm(se, ns, true); }

void timer_fire(u64 now)
{
    struct timerq *q = &timerq[env_cpu()];

    while (load_relaxed(&q->first)) {
        struct sched_entity *se;

        ck_spinlock_lock(&q->lock);
        se = q->first;
        if (!se || se->timer_ns > now) {
            ck_spinlock_unlock(&q->lock);
            return;
        }
        store_relaxed(&q->first, se->timer_next);
        se->timer_ns = ~0ull;
        ck_spinlock_unlock(&q->lock);
        se_timer_fired(se);
    }
}

u64 timer_first(void)
{
    struct timerq *q = &timerq[env_cpu()];
    u64 ns = ~0ull;

    if (!load_relaxed(&q->first))
        return ns;
    ck_spinlock_lock(&q->lock);
    if (q->first)
        ns = q->first->timer_ns;
    ck_spinlock_unlock(&q->lock);
    return ns;
}
