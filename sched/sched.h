/* SPDX-License-Identifier: MIT */
/* The scheduler: schedulable entities on per-CPU run queues, wake-up, time slices, and one-shot timers.
 * It knows nothing of vCPUs: an entity is embedded in one. */
#ifndef PT_SCHED_H
#define PT_SCHED_H

#include "base/types.h"

enum se_state { SE_BLOCKED, SE_QUEUED, SE_RUNNING };

struct sched_entity {
    struct sched_entity *next;    /* run-queue link, under the queue's lock */
    u32 state;                    /* enum se_state, under the lock of @cpu's queue */
    u32 cpu;                      /* home CPU: the queue it is or was last on */
    u32 wake_pending;             /* a wake-up came while it was not blocked */
    u32 parked;                   /* wake-ups do not count until sched_unpark(); under the queue's lock */
    u32 on_cpu;                   /* its registers are still loaded on @cpu; cleared after they are saved */
    u64 queued_ns;                /* when it last became runnable; written before it is queued */
    u64 timer_ns;                 /* armed one-shot time, ~0 = off; under the timer queue's lock */
    u32 timer_cpu;                /* whose timer queue it is on; under that queue's lock */
    struct sched_entity *timer_next;
};

void sched_init(void);                       /* boot CPU, after nr_cpus is known */

/* A new, blocked entity with home CPU @cpu. */
void se_init(struct sched_entity *se, unsigned cpu);

/* Makes @se runnable (or leaves a wake-up pending for its next block); may move it to an idle CPU; sends a
 * kick when the chosen CPU must notice.  Any CPU, interrupts off. */
void sched_wake(struct sched_entity *se);

/* The entity @se of this CPU is about to look whether it may sleep: wake-ups up to now are covered by that look. */
void sched_forget_wakes(struct sched_entity *se);

/* The entity @se of this CPU wants to sleep.  False: a wake-up was pending, do not sleep.  True: it will not be
 * picked again before sched_wake().  The caller then requests rescheduling.  May be called again before that. */
bool sched_block(struct sched_entity *se);

/* The entity @se of this CPU sleeps until sched_unpark(), whatever wake-ups come.  The caller requests rescheduling. */
void sched_park(struct sched_entity *se);
/* Makes a parked entity runnable again.  Any CPU, interrupts off. */
void sched_unpark(struct sched_entity *se);

/* Picks what this CPU runs next.  @prev (may be NULL) is what ran; it is put back at the tail if still
 * runnable.  NULL: nothing to run.  The result may be @prev.  Caller switches registers, then calls
 * sched_switched(prev).  The registers of a picked entity have been saved by the CPU that ran it last. */
struct sched_entity *sched_pick(struct sched_entity *prev, u64 now);
/* The registers of @prev are saved: other CPUs may run it. */
void sched_switched(struct sched_entity *prev);

/* Arms @se's one-shot timer for absolute @ns (~0 cancels) on this CPU's timer queue.  Any CPU. */
void sched_timer_set(struct sched_entity *se, u64 ns);
/* The same, but an earlier time that is armed already stays. */
void sched_timer_within(struct sched_entity *se, u64 ns);

/* Timer interrupt work of this CPU at @now: fires expired timers through se_timer_fired(), sets
 * reschedule when the slice is over.  Returns the next absolute time this CPU needs an interrupt (~0 none). */
u64 sched_tick(u64 now);

/* The running entity of this CPU gives up the rest of its slice. */
void sched_yield_slice(void);

/* True when the running entity should be rescheduled (slice over and somebody waits). */
bool sched_need_resched(void);

/* Bound by the layer above: */
void se_timer_fired(struct sched_entity *se);     /* one-shot timer expired; this CPU, interrupts off, no lock held */
void sched_arm(u64 ns);                           /* this CPU's interrupt timer, absolute ns, ~0 = off; past: at once */
bool sched_cpu_idle(unsigned cpu);                /* hint: that CPU is in its idle loop */

#endif
