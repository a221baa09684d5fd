/* SPDX-License-Identifier: MIT */
/* QSBR RCU: liburcu's names, our own grace periods.  A read section is one stay in the hypervisor.
 *
 * State       gp_seq: number of the newest grace period, +1 by CAS when one starts; gp_done: newest finished one.
 *             Per CPU qs_seq: the newest period this CPU has passed, QS_IDLE while it is idle; own CPU only.
 *             Callback lists (next, wait) are own-CPU only.
 * Roles       call_rcu, rcu_quiescent, rcu_idle_*: own CPU, interrupts off.
 * Commits at  a period starts at the CAS on gp_seq and ends at the store to gp_done.
 * Pairs       R1: pointer unlinked -> gp_seq CAS, vs. gp_seq loaded (acquire) -> qs_seq stored -> later reads: a CPU
 *             that reports period g cannot still see what was unlinked before g started.
 *             R2: reads of a section -> qs_seq stored (release), vs. qs_seq loaded -> callback runs.
 *             R3: leaving idle is an exchange (full barrier) before the first read.
 * Reclaim     one period: a callback queued before the start of g runs after g.
 * Progress    a CPU that stays in guest code is kicked when a period is older than RCU_KICK_NS. */
#ifndef PT_RCU_H
#define PT_RCU_H

#include "base/atomic.h"
#include "base/env.h"

struct rcu_head {
    struct rcu_head *next;
    void (*func)(struct rcu_head *head);
};

#define rcu_dereference(p)       load_acquire(&(p))
#define rcu_assign_pointer(p, v) store_release(&(p), (v))

struct rcu_cpu {
    u64 qs_seq __cacheline;
    u64 wait_seq __cacheline;            /* the period after which @wait may run */
    struct rcu_head *next, **next_tail;  /* not yet assigned to a period */
    struct rcu_head *wait;
    u64 kick_ns;                         /* when to look at laggards again */
};
extern struct rcu_cpu rcu_cpu[];
extern u64 rcu_gp_seq;

#define QS_IDLE      (~0ull)
#define RCU_KICK_NS  1000000ull

/* Runs @func(@head) after every CPU has passed a quiescent point. */
void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head));

/* Advances periods and runs due callbacks of this CPU. */
void rcu_work(void);

/* This CPU holds no RCU-protected pointer: on the way to a guest, and in the idle loop. */
static inline void rcu_quiescent(void)
{
    struct rcu_cpu *r = &rcu_cpu[env_cpu()];
    u64 g = load_acquire(&rcu_gp_seq);                                /* R1 */

    if (unlikely(r->qs_seq != g))
        store_release(&r->qs_seq, g);                                 /* R2 */
    if (unlikely(r->wait || r->next))
        rcu_work();
}

void rcu_idle_enter(void);
void rcu_idle_exit(void);

#endif
