/* SPDX-License-Identifier: MIT */
/* QSBR RCU for up to 1024 CPUs: liburcu's and Linux's names, our own grace periods.  A read section is one stay in the
 * hypervisor.
 *
 * State       rcu_gp_seq: newest period, +1 by CAS when one starts; gp_done: newest finished one, equal to it or one less.
 *             Per CPU (own CPU only): seen = the newest period it has passed, ~0 while it has callbacks, so that one
 *             compare finds work of either kind; callback lists next -> wait (for wait_seq) -> done.
 *             Tree of nodes: a leaf has 8 CPUs, an inner node 16 nodes.  A node is one word, every change one CAS:
 *             63:16 period it is armed for    15:8 idle CPUs (leaf)    7:0 (inner 15:0) who has not passed it yet.
 *             An idle CPU is never waited for: it is left out when its leaf is armed and when it goes idle later.
 * Roles       call_rcu, rcu_quiescent, rcu_work, rcu_idle_*: own CPU, interrupts off.  get_state, start_poll and
 *             poll_state: any CPU that is not idle.  Forcing: whoever waits and claims it by the CAS on force_ns.
 * Commits at  a period starts at the CAS on rcu_gp_seq.  A CPU has passed it at the CAS that clears its bit (or that
 *             arms its leaf without it); the last one of a node, and only it, goes on to the parent; the CPU that
 *             empties the root ends the period with the store to gp_done.
 * Pairs       R1: pointer unlinked -> fence -> rcu_gp_seq loaded: the period after that one starts later.  Its start
 *             (CAS) -> rcu_gp_seq loaded (acquire) -> bit cleared -> later reads see the unlinking.
 *             R2: reads of a section -> bit cleared (CAS) -> ... -> root empty (CAS) -> gp_done stored (release),
 *             vs. gp_done loaded (acquire) -> callback.
 *             R3: leaf armed without an idle CPU (CAS) -> idle bit cleared by it (CAS) -> its first read.
 *             R4: the period's times stored -> force_seq stored (release), vs. force_seq loaded (acquire) -> times loaded.
 * Reclaim     one period: a callback runs after the first period that started after it was queued.
 * Progress    a period waits for every CPU that is not idle.  Who still waits RCU_KICK_NS after its start gets one IPI
 *             in that period; who still waits after RCU_STALL_NS is named to env_rcu_stall(), once a period.  The
 *             tree is armed by the CPU that starts a period, and by each CPU that comes by before it: nobody waits for
 *             the starter.  Callbacks run in order, a bounded number a call.  Sequence numbers have 48 bits: no wrap.
 * Tested by   tests/unit/test_rcu.c, stress/torture/rcu.c */
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
    u64 seen;                            /* equal to rcu_gp_seq: nothing to do */
    u64 passed;                          /* newest period it has passed */
    u64 wait_seq;                        /* the period after which @wait may run */
    struct rcu_head *next, **next_tail;  /* not yet assigned to a period */
    struct rcu_head *wait;
    struct rcu_head *done;               /* may run now */
    u32 queued;                          /* callbacks in the three lists */
} __cacheline;
extern struct rcu_cpu rcu_cpu[];
extern u64 rcu_gp_seq;

#define RCU_KICK_NS     1000000ull
#define RCU_STALL_NS    1000000000ull
/* Callbacks that one call of rcu_work() runs at most: an eighth of what is queued, within these bounds. */
#define RCU_BUDGET_MIN  32u
#define RCU_BUDGET_MAX  1024u

/* Runs @func(@head) on this CPU after every CPU has passed a quiescent point. */
void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head));

/* Passes a quiescent point: reports to a period, advances periods and runs due callbacks of this CPU. */
void rcu_work(void);

/* This CPU holds no RCU-protected pointer: on the way to a guest, and in the idle loop. */
static inline bool rcu_behind(void)     /* true: a quiescent point has something to do */
{
    return rcu_cpu[env_cpu()].seen != load_acquire(&rcu_gp_seq);      /* R1 */
}
static inline void rcu_quiescent(void)
{
    if (unlikely(rcu_behind()))
        rcu_work();
}

/* Brackets a CPU's sleep: between them it holds no RCU-protected pointer and no period waits for it. */
void rcu_idle_enter(void);
void rcu_idle_exit(void);

/* When a CPU that is about to sleep must come back for its callbacks: absolute ns, @now or earlier: it should not sleep;
 * ~0: it has none. */
u64 rcu_next_ns(u64 now);

/* Polled completion.  What was unlinked before get_state... may be reused once poll_state...(its result) says true; that
 * needs somebody to start a period: start_poll... sees to it.  Polling drives the period on, but does not pass it for the
 * polling CPU: a hypercall returns and asks again. */
u64 get_state_synchronize_rcu(void);
u64 start_poll_synchronize_rcu(void);
bool poll_state_synchronize_rcu(u64 state);

#endif
