/* SPDX-License-Identifier: MIT */
/* Grace periods; the protocol is described in rcu.h. */
#include "rcu.h"

#include "base/stats.h"

struct rcu_cpu rcu_cpu[ENV_MAX_CPUS];
u64 rcu_gp_seq __cacheline = 1;
static u64 gp_done __cacheline = 1;

void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
    struct rcu_cpu *r = &rcu_cpu[env_cpu()];

    head->next = NULL;
    head->func = func;
    if (r->next)
        *r->next_tail = head;
    else
        r->next = head;
    r->next_tail = &head->next;
}

/* A period that starts after now: the number to wait for. */
static u64 gp_start(void)
{
    u64 g = load_acquire(&rcu_gp_seq);

    /* If another CPU starts one first, it started after our callbacks were queued: as good. */
    if (atomic_cas64(&rcu_gp_seq, &g, g + 1))                         /* R1 */
        stat_inc(rcu_gp);
    return g + 1;
}

static bool gp_finished(u64 g, bool kick)
{
    bool all = true;

    if (load_acquire(&gp_done) >= g)
        return true;
    for (unsigned c = 0; c < env_nr_cpus(); c++) {
        if (load_acquire(&rcu_cpu[c].qs_seq) >= g)                    /* R2 */
            continue;
        if (!kick)
            return false;
        all = false;
        stat_inc(rcu_kick);
        env_kick(c);
    }
    if (all) {
        u64 d = load_relaxed(&gp_done);

        while (d < g && !atomic_cas64(&gp_done, &d, g))
            ;
    }
    return all;
}

void rcu_work(void)
{
    struct rcu_cpu *r = &rcu_cpu[env_cpu()];

    if (r->wait) {
        u64 now = env_now();
        bool kick = now >= r->kick_ns;

        if (kick)
            r->kick_ns = now + RCU_KICK_NS;
        if (gp_finished(r->wait_seq, kick)) {
            struct rcu_head *h = r->wait;

            r->wait = NULL;
            while (h) {
                struct rcu_head *n = h->next;

                h->func(h);
                stat_inc(rcu_callback);
                h = n;
            }
        }
    }
    if (!r->wait && r->next) {
        r->wait = r->next;
        r->next = NULL;
        r->kick_ns = env_now() + RCU_KICK_NS;
        r->wait_seq = gp_start();
    }
}

void rcu_idle_enter(void)
{
    store_release(&rcu_cpu[env_cpu()].qs_seq, QS_IDLE);               /* R2 */
}

void rcu_idle_exit(void)
{
    atomic_xchg64(&rcu_cpu[env_cpu()].qs_seq, 0);                     /* R3 */
}
