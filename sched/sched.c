/* SPDX-License-Identifier: MIT */
/* Run queues, wake-up, stealing.
 *
 * State       entity: state BLOCKED -> QUEUED (wake) -> RUNNING (pick) -> QUEUED (preempted) or BLOCKED (block); under the
 *             lock of its home queue (se.cpu, which changes only under the old queue's lock).  wake_pending: a wake-up
 *             that found it not blocked.  on_cpu: registers still on se.cpu; cleared by sched_switched().
 * Roles       wake, timer set: any CPU.  pick, block, switched: the CPU concerned.  All with interrupts off.
 * Commits at  the state change under the queue's lock.
 * Pairs       S1: condition made true -> wake takes the lock, vs. block takes the lock -> caller re-checks nothing: the
 *             wake finds BLOCKED and queues it, or leaves wake_pending, which block consumes.  No wake-up is lost.
 *             S2: registers saved -> on_cpu cleared (release), vs. on_cpu seen clear (acquire) -> registers loaded.
 * Progress    one queue lock at a time, held for a few list operations.
 * Tested by   tests/unit/test_sched.c */
#include "sched.h"

#include <ck_spinlock.h>

#include "base/atomic.h"
#include "base/bug.h"
#include "base/env.h"
#include "base/stats.h"

#define SLICE_NS      10000000ull    /* how long an entity runs while others wait */
#define WAKE_SLICE_NS 1000000ull     /* what the running one keeps when somebody wakes on its CPU */

struct runq {
    ck_spinlock_t lock __cacheline;
    struct sched_entity *head, **tail;
    struct sched_entity *running;
    u32 len;                         /* queued entities; read without the lock as a hint */
    u64 slice_end;
    u32 resched;

    ck_spinlock_t timer_lock __cacheline;
    struct sched_entity *timers;     /* by time */
};
static struct runq runq[ENV_MAX_CPUS];

void sched_init(void)
{
    for (unsigned c = 0; c < env_nr_cpus(); c++) {
        ck_spinlock_init(&runq[c].lock);
        ck_spinlock_init(&runq[c].timer_lock);
        runq[c].tail = &runq[c].head;
        runq[c].slice_end = ~0ull;
    }
}

void se_init(struct sched_entity *se, unsigned cpu)
{
    *se = (struct sched_entity){ .state = SE_BLOCKED, .cpu = cpu, .timer_ns = ~0ull, .timer_cpu = cpu };
}

static void enqueue(struct runq *q, struct sched_entity *se)
{
    se->next = NULL;
    *q->tail = se;
    q->tail = &se->next;
    q->len++;
    se->state = SE_QUEUED;
}

static struct sched_entity *dequeue(struct runq *q)
{
    struct sched_entity *se = q->head;

    if (se) {
        q->head = se->next;
        if (!q->head)
            q->tail = &q->head;
        q->len--;
    }
    return se;
}

/* The entity's home queue, locked. */
static struct runq *lock_home(struct sched_entity *se)
{
    for (;;) {
        u32 c = load_relaxed(&se->cpu);

        ck_spinlock_lock(&runq[c].lock);
        if (load_relaxed(&se->cpu) == c)
            return &runq[c];
        ck_spinlock_unlock(&runq[c].lock);
    }
}

/* Where a woken entity should run: at home if that is idle, else on an idle CPU, else at home. */
static unsigned choose(unsigned home)
{
    unsigned n = env_nr_cpus();

    if (sched_cpu_idle(home))
        return home;
    for (unsigned i = 1; i < n; i++) {
        unsigned c = home + i < n ? home + i : home + i - n;

        if (sched_cpu_idle(c) && !load_relaxed(&runq[c].len))
            return c;
    }
    return home;
}

void sched_wake(struct sched_entity *se)
{
    struct runq *q = lock_home(se);
    unsigned home = (unsigned)(q - runq), to = home;
    bool kick = false;

    if (se->state != SE_BLOCKED) {
        se->wake_pending = 1;                                         /* S1 */
        ck_spinlock_unlock(&q->lock);
        return;
    }
    stat_inc(sched_wake);
    /* Registers still on the old CPU: it must be that CPU's turn first, or the new one would wait for it. */
    if (!load_acquire(&se->on_cpu))
        to = choose(home);
    if (to != home) {
        store_relaxed(&se->cpu, to);
        se->state = SE_QUEUED;       /* nobody else may queue it while it moves */
        ck_spinlock_unlock(&q->lock);
        q = &runq[to];
        ck_spinlock_lock(&q->lock);
    }
    enqueue(q, se);
    if (sched_cpu_idle(to)) {
        kick = true;
    } else {
        u64 now = env_now();

        if (q->slice_end > now + WAKE_SLICE_NS)
            q->slice_end = now + WAKE_SLICE_NS;
        kick = true;                 /* re-arms its timer for the shorter slice */
    }
    ck_spinlock_unlock(&q->lock);
    if (kick && to != env_cpu()) {
        stat_inc(sched_kick);
        env_kick(to);
    } else if (kick) {
        sched_arm(sched_tick(env_now()));
    }
}

bool sched_block(struct sched_entity *se)
{
    struct runq *q = lock_home(se);
    bool ok = !se->wake_pending;

    if (ok)
        se->state = SE_BLOCKED;                                       /* S1 */
    se->wake_pending = 0;
    ck_spinlock_unlock(&q->lock);
    return ok;
}

/* Takes a waiting entity from the longest queue. */
static struct sched_entity *steal(struct runq *to)
{
    unsigned n = env_nr_cpus(), best = n;
    struct sched_entity *se;
    struct runq *q;
    u32 len = 0;

    for (unsigned c = 0; c < n; c++) {
        u32 l = load_relaxed(&runq[c].len);

        if (&runq[c] != to && l > len) {
            len = l;
            best = c;
        }
    }
    if (best == n)
        return NULL;
    q = &runq[best];
    if (!ck_spinlock_trylock(&q->lock))
        return NULL;
    se = q->head;
    if (se && load_acquire(&se->on_cpu)) {
        ck_spinlock_unlock(&q->lock);
        return NULL;                 /* its CPU has not let go of it yet */
    }
    se = dequeue(q);
    if (se)
        store_relaxed(&se->cpu, (u32)(to - runq));
    ck_spinlock_unlock(&q->lock);
    return se;
}

struct sched_entity *sched_pick(struct sched_entity *prev, u64 now)
{
    struct runq *q = &runq[env_cpu()];
    struct sched_entity *se;

    ck_spinlock_lock(&q->lock);
    q->resched = 0;
    if (prev && prev->state == SE_RUNNING) {
        if (!q->head || now < q->slice_end) {
            if (!q->head)
                q->slice_end = now + SLICE_NS;
            ck_spinlock_unlock(&q->lock);
            return prev;
        }
        enqueue(q, prev);
    }
    se = dequeue(q);
    q->running = NULL;
    ck_spinlock_unlock(&q->lock);
    if (!se)
        se = steal(q);
    if (!se)
        return NULL;
    /* Of another CPU: only entities whose on_cpu is clear are moved; of this one: it is ours to clear. */
    ck_spinlock_lock(&q->lock);
    se->state = SE_RUNNING;
    q->running = se;
    q->slice_end = now + SLICE_NS;
    store_relaxed(&se->on_cpu, 1);
    ck_spinlock_unlock(&q->lock);
    return se;
}

void sched_switched(struct sched_entity *prev) { store_release(&prev->on_cpu, 0); }   /* S2 */

void sched_yield_slice(void) { runq[env_cpu()].slice_end = 0; }

bool sched_need_resched(void)
{
    struct runq *q = &runq[env_cpu()];

    return load_relaxed(&q->resched) && load_relaxed(&q->len);
}

/* Timers ------------------------------------------------------------------------------------------- */

static void unlink_timer(struct runq *q, struct sched_entity *se)
{
    for (struct sched_entity **p = &q->timers; *p; p = &(*p)->timer_next) {
        if (*p == se) {
            *p = se->timer_next;
            break;
        }
    }
}

void sched_timer_set(struct sched_entity *se, u64 ns)
{
    unsigned cpu = env_cpu();
    struct runq *old = &runq[load_relaxed(&se->timer_cpu)], *q = &runq[cpu];

    /* The owner sets its own timer, so only one CPU at a time is here for @se; expiry is under the lock. */
    ck_spinlock_lock(&old->timer_lock);
    if (se->timer_ns != ~0ull)
        unlink_timer(old, se);
    se->timer_ns = ~0ull;
    ck_spinlock_unlock(&old->timer_lock);
    if (ns == ~0ull)
        return;
    ck_spinlock_lock(&q->timer_lock);
    store_relaxed(&se->timer_cpu, cpu);
    se->timer_ns = ns;
    struct sched_entity **p = &q->timers;
    while (*p && (*p)->timer_ns <= ns)
        p = &(*p)->timer_next;
    se->timer_next = *p;
    *p = se;
    bool first = q->timers == se;
    ck_spinlock_unlock(&q->timer_lock);
    if (first)
        sched_arm(sched_tick(env_now()));
}

u64 sched_tick(u64 now)
{
    struct runq *q = &runq[env_cpu()];
    u64 next;

    for (;;) {
        struct sched_entity *se;

        if (!load_relaxed(&q->timers))
            break;
        ck_spinlock_lock(&q->timer_lock);
        se = q->timers;
        if (!se || se->timer_ns > now) {
            ck_spinlock_unlock(&q->timer_lock);
            break;
        }
        q->timers = se->timer_next;
        se->timer_ns = ~0ull;
        ck_spinlock_unlock(&q->timer_lock);
        se_timer_fired(se);
    }
    ck_spinlock_lock(&q->timer_lock);
    next = q->timers ? q->timers->timer_ns : ~0ull;
    ck_spinlock_unlock(&q->timer_lock);
    if (q->running && load_relaxed(&q->len)) {
        if (now >= q->slice_end)
            store_relaxed(&q->resched, 1);
        else
            next = MIN(next, q->slice_end);
    }
    return next;
}
