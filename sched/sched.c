/* SPDX-License-Identifier: MIT */
/* Run queues, wake-up, stealing.  One-shot timers are in timer.c.
 *
 * State       entity: state BLOCKED -> QUEUED (wake) -> RUNNING (pick) -> QUEUED (preempted) or BLOCKED (block), under
 *             the lock of its home queue (se.cpu, which changes only under the old queue's lock).  wake_pending: a
 *             wake-up that found it not blocked.  parked: wake-ups are dropped.  on_cpu: its registers are on se.cpu.
 *             queue: a list through se.next, FIFO; slice_end: when the running one gives way if somebody waits.
 * Roles       wake, unpark: any CPU.  block, park, forget_wakes, switched, pick, yield: the CPU concerned.
 * Commits at  the state change under the queue's lock.
 * Pairs       S1: condition made true (locked) -> sched_wake() takes the queue's lock, vs. forget_wakes (exchange) ->
 *             condition read -> sched_block() takes the lock.  A wake-up before the exchange made its condition true
 *             before that: the reader sees it.  One after it leaves wake_pending, which block finds, or finds BLOCKED
 *             and queues.  So none is lost, and an old one never makes a sleep fail for nothing.
 *             S2: registers saved -> on_cpu cleared (release), vs. on_cpu seen clear (acquire) -> registers loaded by
 *             a thief.  The CPU that cleared it may pick the entity itself without looking.
 *             S3: on_cpu cleared -> idle flags read, vs. idle flag set -> on_cpu read under the queue's lock: a thief
 *             that came too early for an entity is kicked to come again.
 *             S4: state QUEUED -> cpu changed (release), vs. cpu read (acquire) -> the new home's lock -> state read:
 *             an entity on its way from one queue to another is not queued by a second waker.
 * Progress    one queue lock at a time, held for a few list operations (a steal walks the victim's queue).  A queued
 *             entity runs after at most one slice of each one before it.
 * Tested by   tests/unit/test_sched.c */
#include "sched.h"

#include <ck_spinlock.h>

#include "base/atomic.h"
#include "base/bug.h"
#include "base/env.h"
#include "base/stats.h"
#include "sched_internal.h"

#define SLICE_NS      10000000ull    /* how long an entity runs while others wait */
#define WAKE_SLICE_NS 1000000ull     /* what the running one keeps when somebody wakes on its CPU */

struct runq {
    ck_spinlock_t lock __cacheline;
    struct sched_entity *head, **tail;
    struct sched_entity *running;    /* own CPU only */
    u32 len;                         /* queued entities; read without the lock as a hint */
    u32 resched;                     /* own CPU only */
    u64 slice_end;                   /* ns */
};
static struct runq runq[ENV_MAX_CPUS];

void sched_init(void)
{
    for (unsigned c = 0; c < env_nr_cpus(); c++) {
        ck_spinlock_init(&runq[c].lock);
        runq[c].tail = &runq[c].head;
        runq[c].slice_end = ~0ull;
    }
    timer_init();
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
    store_relaxed(&q->len, q->len + 1);
    store_relaxed(&se->state, SE_QUEUED);
}

/* Takes the entity behind @link out of the queue. */
static struct sched_entity *unlink_at(struct runq *q, struct sched_entity **link)
{
    struct sched_entity *se = *link;

    *link = se->next;
    if (!*link)
        q->tail = link;
    store_relaxed(&q->len, q->len - 1);
    return se;
}

static void unlink_entity(struct runq *q, struct sched_entity *se)
{
    struct sched_entity **link = &q->head;

    while (*link != se)
        link = &(*link)->next;
    unlink_at(q, link);
}

/* The entity's home queue, locked. */
static struct runq *lock_home(struct sched_entity *se)
{
    for (;;) {
        u32 c = load_acquire(&se->cpu);                               /* S4 */

        ck_spinlock_lock(&runq[c].lock);
        if (load_relaxed(&se->cpu) == c)
            return &runq[c];
        ck_spinlock_unlock(&runq[c].lock);
    }
}

static bool has_time(unsigned cpu) { return sched_cpu_idle(cpu) && !load_relaxed(&runq[cpu].len); }

/* The next CPU after @home that idles with nothing queued; @home itself if there is none. */
static unsigned find_idle(unsigned home)
{
    unsigned n = env_nr_cpus();

    for (unsigned i = 1; i < n; i++) {
        unsigned c = home + i < n ? home + i : home + i - n;

        if (has_time(c))
            return c;
    }
    return home;
}

/* Makes @cpu look at its queue or timer again. */
static void notice(unsigned cpu)
{
    if (cpu != env_cpu()) {
        stat_inc(sched_kick);
        env_kick(cpu);
    } else {
        sched_arm(sched_next_event());
    }
}

/* Queues a blocked entity where it should run.  @q, its home, is locked and gets unlocked. */
static void make_runnable(struct runq *q, struct sched_entity *se)
{
    unsigned home = (unsigned)(q - runq), to = home;
    u64 now = env_now(), cut = now + WAKE_SLICE_NS;
    bool tell;

    stat_inc(sched_wake);
    se->queued_ns = now;
    /* With its registers still on the old CPU it must stay there: a new one would have to wait for them. */
    if (!has_time(home) && !load_acquire(&se->on_cpu))
        to = find_idle(home);
    if (to != home) {
        store_relaxed(&se->state, SE_QUEUED);    /* nobody else may queue it while it moves */
        store_release(&se->cpu, to);                                  /* S4 */
        ck_spinlock_unlock(&q->lock);
        q = &runq[to];
        ck_spinlock_lock(&q->lock);
    }
    /* A busy CPU has armed its timer for the end of the slice only if somebody waits already. */
    tell = !q->len || q->slice_end > cut || sched_cpu_idle(to);
    if (q->slice_end > cut)
        store_relaxed(&q->slice_end, cut);
    enqueue(q, se);
    ck_spinlock_unlock(&q->lock);
    if (tell)
        notice(to);
}

void sched_wake(struct sched_entity *se)
{
    struct runq *q = lock_home(se);

    if (unlikely(se->parked)) {
        ck_spinlock_unlock(&q->lock);
    } else if (se->state != SE_BLOCKED) {
        store_release(&se->wake_pending, 1);                          /* S1 */
        ck_spinlock_unlock(&q->lock);
    } else {
        make_runnable(q, se);
    }
}

void sched_forget_wakes(struct sched_entity *se) { atomic_xchg32(&se->wake_pending, 0); }   /* S1 */

bool sched_block(struct sched_entity *se)
{
    struct runq *q = lock_home(se);
    bool ok = true;

    if (se->state == SE_QUEUED) {                /* it blocked before, did not leave, and was woken */
        unlink_entity(q, se);
        store_relaxed(&se->state, SE_RUNNING);
        ok = false;
    } else if (se->state == SE_RUNNING) {
        ok = !load_relaxed(&se->wake_pending);
        if (ok)
            store_relaxed(&se->state, SE_BLOCKED);                    /* S1 */
    }
    store_relaxed(&se->wake_pending, 0);
    ck_spinlock_unlock(&q->lock);
    return ok;
}

void sched_park(struct sched_entity *se)
{
    struct runq *q = lock_home(se);

    if (se->state == SE_QUEUED)
        unlink_entity(q, se);
    store_relaxed(&se->state, SE_BLOCKED);
    store_relaxed(&se->wake_pending, 0);
    se->parked = 1;
    ck_spinlock_unlock(&q->lock);
}

void sched_unpark(struct sched_entity *se)
{
    struct runq *q = lock_home(se);

    se->parked = 0;
    if (se->state == SE_BLOCKED)
        make_runnable(q, se);
    else
        ck_spinlock_unlock(&q->lock);
}

/* Takes the first waiting entity that its CPU has let go of, from the longest queue. */
static struct sched_entity *steal(struct runq *to)
{
    unsigned n = env_nr_cpus(), best = n;
    struct sched_entity *se = NULL;
    struct runq *q;
    u32 longest = 0;

    for (unsigned c = 0; c < n; c++) {
        u32 l = load_relaxed(&runq[c].len);

        if (&runq[c] != to && l > longest) {
            longest = l;
            best = c;
        }
    }
    if (best == n)
        return NULL;
    q = &runq[best];
    ck_spinlock_lock(&q->lock);
    for (struct sched_entity **link = &q->head; *link; link = &(*link)->next) {
        if (!load_acquire(&(*link)->on_cpu)) {                        /* S2, S3 */
            se = unlink_at(q, link);
            store_release(&se->cpu, (u32)(to - runq));                /* S4 */
            break;
        }
    }
    ck_spinlock_unlock(&q->lock);
    return se;
}

struct sched_entity *sched_pick(struct sched_entity *prev, u64 now)
{
    struct runq *q = &runq[env_cpu()];
    struct sched_entity *se = NULL;

    ck_spinlock_lock(&q->lock);
    q->resched = 0;
    if (prev && prev->state == SE_RUNNING) {
        if (!q->head || now < q->slice_end) {
            if (!q->head)
                store_relaxed(&q->slice_end, now + SLICE_NS);
            ck_spinlock_unlock(&q->lock);
            return prev;
        }
        prev->queued_ns = now;
        enqueue(q, prev);
    }
    q->running = NULL;
    if (q->head) {
        se = unlink_at(q, &q->head);
    } else {
        ck_spinlock_unlock(&q->lock);
        se = steal(q);
        if (!se)
            return NULL;
        /* Its state is QUEUED: whoever wakes it only leaves a note. */
        ck_spinlock_lock(&q->lock);
    }
    store_relaxed(&se->state, SE_RUNNING);
    store_relaxed(&se->on_cpu, 1);
    q->running = se;
    store_relaxed(&q->slice_end, now + SLICE_NS);
    ck_spinlock_unlock(&q->lock);
    return se;
}

void sched_switched(struct sched_entity *prev)
{
    unsigned self = env_cpu(), idle;

    store_release(&prev->on_cpu, 0);                                  /* S2 */
    if (load_relaxed(&prev->state) != SE_QUEUED)
        return;
    /* It waits here; a CPU that idles can have it now. */
    atomic_fence();                                                   /* S3 */
    idle = find_idle(self);
    if (idle != self)
        notice(idle);
}

void sched_yield_slice(void)
{
    struct runq *q = &runq[env_cpu()];

    ck_spinlock_lock(&q->lock);
    store_relaxed(&q->slice_end, 0);
    ck_spinlock_unlock(&q->lock);
}

bool sched_need_resched(void)
{
    struct runq *q = &runq[env_cpu()];

    return q->resched && load_relaxed(&q->len);
}

/* When the running entity of this CPU must give way; ~0: nobody waits. */
static u64 slice_event(const struct runq *q)
{
    return q->running && load_relaxed(&q->len) ? load_relaxed(&q->slice_end) : ~0ull;
}

u64 sched_next_event(void)
{
    u64 slice = slice_event(&runq[env_cpu()]), timer = timer_first();

    return MIN(slice, timer);
}

u64 sched_tick(u64 now)
{
    struct runq *q = &runq[env_cpu()];
    u64 slice, timer;

    timer_fire(now);
    timer = timer_first();
    slice = slice_event(q);
    if (slice <= now) {
        q->resched = 1;
        return timer;
    }
    return MIN(slice, timer);
}
