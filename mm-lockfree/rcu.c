/* SPDX-License-Identifier: MIT */
/* Grace periods; the protocol is described in rcu.h. */
#include "rcu.h"

#include "base/stats.h"

#define LEAF_CPUS 8u
#define FANOUT    16u
#define LEVELS    3u
#define SEEN_NEVER (~0ull)                   /* no period has this number */
#define LEAVES    ((ENV_MAX_CPUS + LEAF_CPUS - 1) / LEAF_CPUS)
#define MIDDLES   ((LEAVES + FANOUT - 1) / FANOUT)
_Static_assert(MIDDLES <= FANOUT, "one node at the top");

struct rcu_cpu rcu_cpu[ENV_MAX_CPUS];
u64 rcu_gp_seq __cacheline;
static u64 gp_done __cacheline;

/* Times of period force_seq; force_ns and stall_seq are claimed by CAS and exchange. */
static struct { u64 force_seq, force_ns, start_ns, stall_seq; } gp __cacheline;

static struct rcu_node {
    u64 word;
    u64 kicked;                          /* leaf: period << 8 | CPUs kicked in it */
} __cacheline leaf[LEAVES], middle[MIDDLES], top[1];
static struct rcu_node *const level_nodes[LEVELS] = { leaf, middle, top };

#define WORD_SEQ(w)   ((w) >> 16)
#define LEAF_IDLE(w)  ((w) >> 8 & 0xff)
#define LEAF_WAIT(w)  ((w) & 0xff)

/* Nodes (level 0: leaves) that have CPUs below them. */
static unsigned nodes_at(unsigned level)
{
    unsigned n = (env_nr_cpus() + LEAF_CPUS - 1) / LEAF_CPUS;

    while (level--)
        n = (n + FANOUT - 1) / FANOUT;
    return n;
}

/* All children of node @i. */
static u64 all_of(unsigned level, unsigned i)
{
    unsigned fan = level ? FANOUT : LEAF_CPUS, n = (level ? nodes_at(level - 1) : env_nr_cpus()) - i * fan;

    return (1ull << MIN(n, fan)) - 1;
}

/* The waiting children in @w, which is node (@level, @i)'s word, of period @g: all, if it is not armed yet. */
static u64 waiting(unsigned level, unsigned i, u64 w, u64 g)
{
    if (WORD_SEQ(w) > g)
        return 0;
    if (WORD_SEQ(w) < g)
        return all_of(level, i) & ~(level ? 0 : LEAF_IDLE(w));
    return level ? w & 0xffff : LEAF_WAIT(w);
}

/* Takes @bits out of node (@level, @i) in period @g, arming it if need be, and goes up while nodes become empty. */
static void report(unsigned level, unsigned i, u64 bits, u64 g)
{
    for (;;) {
        struct rcu_node *n = &level_nodes[level][i];
        u64 w = load_relaxed(&n->word), left;

        do {
            bool armed = WORD_SEQ(w) == g;

            left = waiting(level, i, w, g);
            if (WORD_SEQ(w) > g || (armed && !(left & bits)))
                return;
            left &= ~bits;
        } while (!atomic_cas64(&n->word, &w, g << 16 | (level ? 0 : LEAF_IDLE(w) << 8) | left));   /* R2, R3 */
        if (left)
            return;
        if (nodes_at(level) == 1) {
            stat_inc(rcu_gp);
            store_release(&gp_done, g);                               /* R2 */
            return;
        }
        bits = 1ull << (i % FANOUT);
        i /= FANOUT;
        level++;
    }
}

/* Starts the period after @g unless one is running or has started meanwhile. */
static void start(u64 g)
{
    u64 now;

    if (load_acquire(&gp_done) != g || !atomic_cas64(&rcu_gp_seq, &g, g + 1))   /* R1 */
        return;
    now = env_now();
    store_relaxed(&gp.start_ns, now);
    store_relaxed(&gp.force_ns, now + RCU_KICK_NS);
    store_release(&gp.force_seq, g + 1);                              /* R4 */
    for (unsigned i = 0; i < nodes_at(0); i++)
        report(0, i, 0, g + 1);
}

/* Calls @fn for each leaf that keeps period @g from ending. */
static void for_late_leaves(u64 g, void (*fn)(unsigned i, u64 late, u64 g, void *ctx), void *ctx)
{
    unsigned leaves = nodes_at(0);

    for (unsigned i = 0; i < leaves; i++) {
        u64 late;

        if (leaves > 1 && !(i % FANOUT)) {      /* skip what its parent says has passed */
            u64 w = load_acquire(&middle[i / FANOUT].word);

            if (!waiting(1, i / FANOUT, w, g)) {
                i += FANOUT - 1;
                continue;
            }
        }
        late = waiting(0, i, load_acquire(&leaf[i].word), g);
        if (late)
            fn(i, late, g, ctx);
    }
}

static void kick_leaf(unsigned i, u64 late, u64 g, void *ctx)
{
    u64 k = load_relaxed(&leaf[i].kicked), self = env_cpu(), fresh;

    (void)ctx;
    report(0, i, 0, g);                         /* its starter may have been held up */
    if (self / LEAF_CPUS == i)
        late &= ~(1ull << (self % LEAF_CPUS));
    do {
        fresh = k >> 8 == g ? late & ~k : late;
        if (!fresh)
            return;
    } while (!atomic_cas64(&leaf[i].kicked, &k, g << 8 | (k >> 8 == g ? k & 0xff : 0) | fresh));
    for (; fresh; fresh &= fresh - 1) {
        stat_inc(rcu_kick);
        env_kick(i * LEAF_CPUS + (unsigned)__builtin_ctzll(fresh));
    }
}

static void name_leaf(unsigned i, u64 late, u64 g, void *ctx)
{
    u64 *cpus = ctx;

    (void)g;
    cpus[i * LEAF_CPUS / 64] |= late << (i * LEAF_CPUS % 64);
}

/* Period @g is not over: looks whether it is time to hurry somebody up. */
static void force(u64 g)
{
    u64 now = env_now(), due;

    if (load_acquire(&gp.force_seq) != g)                             /* R4 */
        return;
    due = load_relaxed(&gp.force_ns);
    if (now < due || !atomic_cas64(&gp.force_ns, &due, now + RCU_KICK_NS))
        return;
    for_late_leaves(g, kick_leaf, NULL);
    if (now >= load_relaxed(&gp.start_ns) + RCU_STALL_NS && load_relaxed(&gp.stall_seq) != g &&
        atomic_xchg64(&gp.stall_seq, g) != g) {
        u64 cpus[(ENV_MAX_CPUS + 63) / 64] = { 0 };

        for_late_leaves(g, name_leaf, cpus);
        stat_inc(rcu_stall);
        env_rcu_stall(g, now - load_relaxed(&gp.start_ns), cpus);
    }
}

/* Sees to it that period @want comes about. */
static void advance(u64 want)
{
    u64 g = load_acquire(&rcu_gp_seq);

    if (g < want)
        start(g);
    else if (load_acquire(&gp_done) < g)
        force(g);
}

static void run_done(struct rcu_cpu *r)
{
    u32 budget = MAX(RCU_BUDGET_MIN, MIN(r->queued / 8, RCU_BUDGET_MAX));

    while (r->done && budget--) {
        struct rcu_head *h = r->done;

        r->done = h->next;
        r->queued--;
        h->func(h);
        stat_inc(rcu_callback);
    }
}

static void callbacks(struct rcu_cpu *r)
{
    if (r->wait && !r->done && load_acquire(&gp_done) >= r->wait_seq) {   /* R2 */
        r->done = r->wait;
        r->wait = NULL;
    }
    if (!r->wait && r->next) {
        r->wait = r->next;
        r->next = NULL;
        r->wait_seq = get_state_synchronize_rcu();
    }
    if (r->done)
        run_done(r);
    if (r->wait && load_acquire(&gp_done) < r->wait_seq)
        advance(r->wait_seq);
}

/* Reports this CPU, which is at a quiescent point, to the newest period. */
static void pass(struct rcu_cpu *r, unsigned cpu)
{
    u64 g = load_acquire(&rcu_gp_seq);                                /* R1 */

    if (r->passed != g) {
        report(0, cpu / LEAF_CPUS, 1ull << (cpu % LEAF_CPUS), g);
        r->passed = g;
    }
    r->seen = r->queued ? SEEN_NEVER : g;
}

void rcu_work(void)
{
    unsigned cpu = env_cpu();
    struct rcu_cpu *r = &rcu_cpu[cpu];

    pass(r, cpu);
    if (r->queued) {
        callbacks(r);
        pass(r, cpu);                           /* of a period started just now */
    }
}

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
    r->queued++;
    r->seen = SEEN_NEVER;
}

void rcu_idle_enter(void)
{
    unsigned cpu = env_cpu(), i = cpu / LEAF_CPUS;
    u64 bit = 1ull << (cpu % LEAF_CPUS), w = load_relaxed(&leaf[i].word), new;

    do {
        new = (w | bit << 8) & ~bit;
    } while (!atomic_cas64(&leaf[i].word, &w, new));                  /* R2 */
    /* The last one of an armed leaf goes on to the parent, for the period that it was armed for. */
    if (LEAF_WAIT(w) == bit) {
        if (nodes_at(0) == 1) {
            stat_inc(rcu_gp);
            store_release(&gp_done, WORD_SEQ(w));                     /* R2 */
        } else {
            report(1, i / FANOUT, 1ull << (i % FANOUT), WORD_SEQ(w));
        }
    }
}

void rcu_idle_exit(void)
{
    unsigned cpu = env_cpu();

    atomic_and64(&leaf[cpu / LEAF_CPUS].word, ~(0x100ull << (cpu % LEAF_CPUS)));   /* R3 */
}

u64 rcu_next_ns(u64 now)
{
    const struct rcu_cpu *r = &rcu_cpu[env_cpu()];

    if (!r->queued)
        return ~0ull;
    return r->done ? now : now + RCU_KICK_NS;
}

u64 get_state_synchronize_rcu(void)
{
    atomic_fence();                                                   /* R1 */
    return load_acquire(&rcu_gp_seq) + 1;
}

u64 start_poll_synchronize_rcu(void)
{
    u64 state = get_state_synchronize_rcu();

    advance(state);
    return state;
}

bool poll_state_synchronize_rcu(u64 state)
{
    if (load_acquire(&gp_done) >= state)                              /* R2 */
        return true;
    advance(state);
    return load_acquire(&gp_done) >= state;
}
