/* SPDX-License-Identifier: MIT */
/* Tests grace periods on 1, 2, 64 and 1024 simulated CPUs: rules one by one, a random simulation with a clock of our own,
 * and a few real threads. */
#include <CUnit/Basic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcu.c"

#include "env.h"

#define MS 1000000ull

static const unsigned sizes[] = { 1, 2, 64, 1024 };

static void fresh(unsigned cpus)
{
    host_start(cpus, 1, 0);
    memset(rcu_cpu, 0, sizeof(rcu_cpu));
    memset(leaf, 0, sizeof(leaf));
    memset(middle, 0, sizeof(middle));
    memset(top, 0, sizeof(top));
    memset(&gp, 0, sizeof(gp));
    rcu_gp_seq = gp_done = 0;
    host_own_clock = true;
    host_ns = 5 * MS;
}

static void quiescent(unsigned cpu)
{
    host_be_cpu(cpu);
    rcu_quiescent();
}

static unsigned ran;
static void count_run(struct rcu_head *h)
{
    h->next = h;
    ran++;
}

/* One callback: it runs after the last CPU passed, not before, and needs two rounds at most. */
static void test_last_cpu(void)
{
    for (unsigned s = 0; s < ARRAY_SIZE(sizes); s++) {
        unsigned n = sizes[s];
        struct rcu_head h;

        fresh(n);
        ran = 0;
        host_be_cpu(0);
        call_rcu(&h, count_run);
        CU_ASSERT_EQUAL(ran, 0);
        for (unsigned c = 0; c + 1 < n; c++)
            quiescent(c);
        for (unsigned i = 0; i < 3 && n > 1; i++)
            quiescent(0);                                         /* the last CPU has still to pass */
        CU_ASSERT_EQUAL(ran, 0);
        quiescent(n - 1);
        quiescent(0);
        quiescent(0);
        CU_ASSERT_EQUAL(ran, 1);
        CU_ASSERT_EQUAL(stat_sum(STAT_rcu_gp), 1);
        CU_ASSERT_EQUAL(stat_sum(STAT_rcu_kick), 0);
        host_stop();
    }
}

/* A CPU that has not been heard of at all keeps the period open, whichever it is. */
static void test_each_cpu_counts(void)
{
    for (unsigned s = 1; s < ARRAY_SIZE(sizes); s++) {
        unsigned n = sizes[s];

        for (unsigned missing = 1; missing < n; missing += n > 64 ? 37 : 1) {
            struct rcu_head h;

            fresh(n);
            ran = 0;
            host_be_cpu(0);
            call_rcu(&h, count_run);
            for (unsigned round = 0; round < 3; round++)
                for (unsigned c = 0; c < n; c++)
                    if (c != missing)
                        quiescent(c);
            CU_ASSERT_EQUAL(ran, 0);
            quiescent(missing);
            quiescent(0);
            CU_ASSERT_EQUAL(ran, 1);
            host_stop();
        }
    }
}

/* Only the last CPU of a node touches its parent. */
static void test_tree(void)
{
    struct rcu_head h;

    fresh(1024);
    host_be_cpu(0);
    call_rcu(&h, count_run);
    quiescent(0);                                                 /* starts period 1 */
    for (unsigned c = 8; c < 128; c++) {
        u64 above = middle[0].word;

        quiescent(c);
        CU_ASSERT_EQUAL(middle[0].word != above, c % 8 == 7);
        CU_ASSERT_EQUAL(top[0].word, 0);
    }
    for (unsigned c = 1; c < 7; c++)
        quiescent(c);
    CU_ASSERT_EQUAL(top[0].word, 0);
    quiescent(7);
    CU_ASSERT_EQUAL(top[0].word, 1ull << 16 | 0xfe);
    host_stop();
}

/* With nothing going on the way to the guest writes nothing and calls nothing. */
static void test_quiet(void)
{
    struct rcu_head h;
    struct rcu_cpu before;

    fresh(2);
    host_be_cpu(0);
    call_rcu(&h, count_run);
    for (unsigned i = 0; i < 8; i++)
        quiescent(i % 2);
    for (unsigned c = 0; c < 2; c++) {
        before = rcu_cpu[c];
        CU_ASSERT_EQUAL(before.seen, rcu_gp_seq);                 /* the one compare finds nothing to do */
        quiescent(c);
        CU_ASSERT_EQUAL(memcmp(&before, &rcu_cpu[c], sizeof(before)), 0);
    }
    CU_ASSERT_EQUAL(stat_sum(STAT_rcu_gp), 1);
    host_stop();
}

/* All others idle: they are not waited for, and nobody wakes them. */
static void test_idle_is_quiescent(void)
{
    for (unsigned s = 0; s < ARRAY_SIZE(sizes); s++) {
        unsigned n = sizes[s], kicks = 0;
        struct rcu_head h;

        fresh(n);
        ran = 0;
        for (unsigned c = 1; c < n; c++) {
            host_be_cpu(c);
            rcu_idle_enter();
        }
        host_be_cpu(0);
        call_rcu(&h, count_run);
        for (unsigned i = 0; i < 3; i++) {
            host_ns += 10 * RCU_KICK_NS;
            quiescent(0);
        }
        CU_ASSERT_EQUAL(ran, 1);
        for (unsigned c = 0; c < n; c++)
            kicks += (unsigned)host_kicks(c);
        CU_ASSERT_EQUAL(kicks, 0);
        host_stop();
    }
}

/* A CPU that goes idle in the middle of a period has passed it; one that wakes up in it was never waited for, but must
 * pass the next one. */
static void test_idle_in_period(void)
{
    struct rcu_head h, h2;

    fresh(64);
    ran = 0;
    host_be_cpu(63);
    rcu_idle_enter();
    host_be_cpu(0);
    call_rcu(&h, count_run);
    for (unsigned c = 0; c < 62; c++)
        quiescent(c);
    host_be_cpu(63);
    rcu_idle_exit();
    quiescent(0);
    CU_ASSERT_EQUAL(ran, 0);                                      /* 62 is missing */
    host_be_cpu(62);
    rcu_idle_enter();
    quiescent(0);
    CU_ASSERT_EQUAL(ran, 1);
    host_be_cpu(0);
    call_rcu(&h2, count_run);
    for (unsigned i = 0; i < 2; i++)
        for (unsigned c = 0; c < 62; c++)
            quiescent(c);
    CU_ASSERT_EQUAL(ran, 1);                                      /* 63 is awake now */
    quiescent(63);
    quiescent(0);
    CU_ASSERT_EQUAL(ran, 2);
    host_stop();
}

/* A callback queued while a period runs waits for the whole next one. */
static void test_queued_in_period(void)
{
    struct rcu_head a, b;

    fresh(2);
    ran = 0;
    host_be_cpu(0);
    call_rcu(&a, count_run);
    quiescent(0);                                                 /* period 1 runs, CPU 0 has passed it */
    host_be_cpu(1);
    call_rcu(&b, count_run);                                      /* CPU 0 may hold what this one frees */
    quiescent(1);                                                 /* ends period 1; b waits for 2 */
    CU_ASSERT_EQUAL(gp_done, 1);
    quiescent(1);
    quiescent(1);
    CU_ASSERT_EQUAL(ran, 0);
    quiescent(0);
    quiescent(0);
    CU_ASSERT_EQUAL(ran, 1);
    quiescent(1);
    CU_ASSERT_EQUAL(ran, 2);
    host_stop();
}

/* Only CPUs that are late are kicked, once in a period, after the time for it. */
static void test_kick_late(void)
{
    for (unsigned s = 1; s < ARRAY_SIZE(sizes); s++) {
        unsigned n = sizes[s];
        struct rcu_head h;

        fresh(n);
        for (unsigned c = 5; c < n; c += 3) {
            host_be_cpu(c);
            rcu_idle_enter();
        }
        host_be_cpu(0);
        call_rcu(&h, count_run);
        for (unsigned c = 0; c < n; c++)
            if (c % 3 == 0)
                quiescent(c);
        host_ns += RCU_KICK_NS - 1;
        quiescent(0);
        CU_ASSERT_EQUAL(stat_sum(STAT_rcu_kick), 0);
        for (unsigned i = 0; i < 5; i++) {
            host_ns += RCU_KICK_NS;
            quiescent(0);
        }
        for (unsigned c = 0; c < n; c++)
            CU_ASSERT_EQUAL(host_kicks(c), c % 3 == 1 || c == 2);
        host_stop();
    }
}

/* A CPU that never passes is named once in a period, alone. */
static void test_stall(void)
{
    for (unsigned s = 1; s < ARRAY_SIZE(sizes); s++) {
        unsigned n = sizes[s], bad = n - 1;

        fresh(n);
        for (unsigned period = 1; period <= 2; period++) {
            struct rcu_head h;

            ran = 0;
            host_be_cpu(0);
            call_rcu(&h, count_run);
            for (unsigned i = 0; i < 40; i++) {
                for (unsigned c = 0; c < bad; c += n > 64 && i > 1 ? 64 : 1)
                    quiescent(c);
                host_ns += RCU_STALL_NS / 10;
                if (i < 10)
                    CU_ASSERT_EQUAL(host_stall.reports, period - 1);
            }
            CU_ASSERT_EQUAL(host_stall.reports, period);
            CU_ASSERT_EQUAL(stat_sum(STAT_rcu_stall), period);
            CU_ASSERT_EQUAL(host_stall.period, rcu_gp_seq);
            CU_ASSERT(host_stall.age >= RCU_STALL_NS);
            for (unsigned w = 0; w < (n + 63) / 64; w++)
                CU_ASSERT_EQUAL(host_stall.cpus[w], w == bad / 64 ? 1ull << bad % 64 : 0);
            CU_ASSERT_EQUAL(ran, 0);
            quiescent(bad);
            quiescent(0);
            quiescent(0);
            CU_ASSERT_EQUAL(ran, 1);
        }
        host_stop();
    }
}

/* A call that polls without ever passing a quiescent point names itself. */
static void test_stall_self(void)
{
    u64 state;

    fresh(1);
    state = start_poll_synchronize_rcu();
    for (unsigned i = 0; i < 50; i++) {
        CU_ASSERT_FALSE(poll_state_synchronize_rcu(state));
        host_ns += RCU_STALL_NS / 10;
    }
    CU_ASSERT_EQUAL(host_stall.reports, 1);
    CU_ASSERT_EQUAL(host_stall.cpus[0], 1);
    CU_ASSERT_EQUAL(host_kicks(0), 0);                            /* that would not help */
    rcu_quiescent();
    CU_ASSERT_TRUE(poll_state_synchronize_rcu(state));
    host_stop();
}

static void test_poll(void)
{
    for (unsigned s = 0; s < ARRAY_SIZE(sizes); s++) {
        unsigned n = sizes[s];
        u64 old, state;

        fresh(n);
        host_be_cpu(0);
        old = get_state_synchronize_rcu();
        CU_ASSERT_EQUAL(rcu_gp_seq, 0);                           /* a mere snapshot starts nothing */
        state = start_poll_synchronize_rcu();
        CU_ASSERT_EQUAL(rcu_gp_seq, 1);
        for (unsigned c = 0; c < n; c++) {
            CU_ASSERT_FALSE(poll_state_synchronize_rcu(state));
            CU_ASSERT_FALSE(poll_state_synchronize_rcu(old));
            quiescent(c);
            host_be_cpu(0);
        }
        CU_ASSERT_TRUE(poll_state_synchronize_rcu(state));
        CU_ASSERT_TRUE(poll_state_synchronize_rcu(old));
        /* Taken in the middle of a period: that one does not count. */
        start_poll_synchronize_rcu();
        state = start_poll_synchronize_rcu();
        for (unsigned c = 0; c < n; c++)
            quiescent(c);
        host_be_cpu(0);
        CU_ASSERT_FALSE(poll_state_synchronize_rcu(state));       /* and this starts the one that does */
        for (unsigned c = 0; c < n; c++)
            quiescent(c);
        CU_ASSERT_TRUE(poll_state_synchronize_rcu(state));
        host_stop();
    }
}

/* A call runs a bounded number of callbacks, in order, and says when the CPU must come back. */
#define MANY 20000u
static struct rcu_head many[MANY];
static unsigned next_expected, out_of_order;
static void in_order(struct rcu_head *h)
{
    out_of_order += h != &many[next_expected];
    next_expected++;
}

static void test_budget(void)
{
    unsigned calls = 0;

    fresh(2);
    next_expected = out_of_order = 0;
    host_be_cpu(0);
    CU_ASSERT_EQUAL(rcu_next_ns(host_ns), ~0ull);
    for (unsigned i = 0; i < MANY; i++)
        call_rcu(&many[i], in_order);
    quiescent(0);
    CU_ASSERT_EQUAL(rcu_next_ns(host_ns), host_ns + RCU_KICK_NS);
    quiescent(1);
    while (next_expected < MANY && calls < 10000) {
        unsigned left = MANY - next_expected, before = next_expected;

        if (calls)
            CU_ASSERT_EQUAL(rcu_next_ns(host_ns), host_ns);
        quiescent(0);
        CU_ASSERT(next_expected - before <= MAX(RCU_BUDGET_MIN, MIN(left / 8, RCU_BUDGET_MAX)));
        CU_ASSERT(next_expected > before);
        calls++;
    }
    CU_ASSERT_EQUAL(next_expected, MANY);
    CU_ASSERT_EQUAL(out_of_order, 0);
    CU_ASSERT(calls > MANY / RCU_BUDGET_MAX && calls < 100);
    quiescent(0);
    CU_ASSERT_EQUAL(rcu_next_ns(host_ns), ~0ull);
    host_stop();
}

/* A callback may queue again, on and on, without keeping the call that runs it. */
static unsigned again_left;
static void again(struct rcu_head *h)
{
    ran++;
    if (--again_left)
        call_rcu(h, again);
}

static void test_requeue(void)
{
    struct rcu_head h;

    fresh(1);
    ran = 0;
    again_left = 10;
    call_rcu(&h, again);
    for (unsigned i = 0; i < 40; i++) {
        unsigned before = ran;

        rcu_quiescent();
        CU_ASSERT(ran - before <= 1);
    }
    CU_ASSERT_EQUAL(ran, 10);
    host_stop();
}

/* The random simulation ----------------------------------------------------------------------------------------------- */

struct object {
    struct rcu_head rcu;
    u64 queued_at;                                                /* step */
    unsigned cpu, number;
};

static struct sim_cpu {
    bool idle;
    u64 quiet_at;                                                 /* the last step at which it held nothing */
    u64 wake_ns;
    u64 kicks;
    unsigned queued, run;                                         /* callbacks, also the number of the next */
} sim[ENV_MAX_CPUS];
static unsigned sim_cpus, this_call;
static u64 step, early, wrong_cpu, wrong_order;
static u64 in_flight;

static void sim_run(struct rcu_head *h)
{
    struct object *o = container_of(h, struct object, rcu);

    for (unsigned c = 0; c < sim_cpus; c++)
        early += !sim[c].idle && sim[c].quiet_at <= o->queued_at;
    wrong_cpu += o->cpu != env_cpu();
    wrong_order += o->number != sim[o->cpu].run++;
    this_call++;
    in_flight--;
    free(o);
}

static void sim_queue(unsigned c)
{
    struct object *o = malloc(sizeof(*o));

    *o = (struct object){ .queued_at = step, .cpu = c, .number = sim[c].queued++ };
    in_flight++;
    call_rcu(&o->rcu, sim_run);
}

static void sim_quiescent(unsigned c)
{
    unsigned left = sim[c].queued - sim[c].run;

    this_call = 0;
    sim[c].quiet_at = step;
    rcu_quiescent();
    CU_ASSERT(this_call <= MAX(RCU_BUDGET_MIN, MIN(left / 8, RCU_BUDGET_MAX)));
}

static void sim_sleep(unsigned c)
{
    sim_quiescent(c);
    sim[c].wake_ns = rcu_next_ns(host_ns);
    if (sim[c].wake_ns <= host_ns)
        return;
    rcu_idle_enter();
    sim[c].idle = true;
}

static void sim_wake(unsigned c)
{
    rcu_idle_exit();
    sim[c].idle = false;
    sim[c].quiet_at = step;
}

static void simulate(unsigned n, u64 seed, unsigned steps)
{
    u64 idle_kicks = 0, double_kicks = 0, at_gp[2] = { 0 };
    u64 *last_gp_kicked;

    fresh(n);
    last_gp_kicked = calloc(n, sizeof(*last_gp_kicked));
    memset(sim, 0, sizeof(sim));
    sim_cpus = n;
    step = early = wrong_cpu = wrong_order = in_flight = 0;
    for (unsigned i = 0; i < steps; i++) {
        unsigned c = host_below(&seed, n), what = host_below(&seed, 16);

        step++;
        host_ns += host_below(&seed, 4000000 / n + 100);
        host_be_cpu(c);
        if (sim[c].idle) {
            /* A timer, a kick (which there must not be), or some reason of its own. */
            if (host_ns >= sim[c].wake_ns || what == 0)
                sim_wake(c);
        } else if (host_poll() || what < 6) {
            sim_quiescent(c);
        } else if (what < 8) {
            sim_sleep(c);
        } else if (what < 11) {
            for (unsigned k = host_below(&seed, what == 10 ? 200 : 3); k > 0; k--)
                sim_queue(c);
        }                                                         /* else it stays where it is, holding what it holds */
        at_gp[0] = rcu_gp_seq;
        for (unsigned k = 0; k < n; k++) {
            u64 now = host_kicks(k);

            if (now == sim[k].kicks)
                continue;
            idle_kicks += sim[k].idle;
            double_kicks += now > sim[k].kicks + 1 || last_gp_kicked[k] == at_gp[0];
            last_gp_kicked[k] = at_gp[0];
            sim[k].kicks = now;
        }
        CU_ASSERT(gp_done == rcu_gp_seq || gp_done + 1 == rcu_gp_seq);
    }
    /* All run in the end, if CPUs just go on living; sleepers come back only for their own callbacks. */
    for (unsigned round = 0; round < 2000 && in_flight; round++) {
        host_ns += RCU_KICK_NS;
        for (unsigned c = 0; c < n; c++) {
            step++;
            host_be_cpu(c);
            if (sim[c].idle && host_ns < sim[c].wake_ns)
                continue;
            if (sim[c].idle)
                sim_wake(c);
            sim_sleep(c);
        }
    }
    CU_ASSERT_EQUAL(in_flight, 0);
    CU_ASSERT_EQUAL(early, 0);
    CU_ASSERT_EQUAL(wrong_cpu, 0);
    CU_ASSERT_EQUAL(wrong_order, 0);
    CU_ASSERT_EQUAL(idle_kicks, 0);
    CU_ASSERT_EQUAL(double_kicks, 0);
    CU_ASSERT(stat_sum(STAT_rcu_gp) > 3);
    free(last_gp_kicked);
    host_stop();
}

static u64 seed0;
static void test_simulation_1(void) { simulate(1, seed0, 20000); }
static void test_simulation_2(void) { simulate(2, seed0, 40000); }
static void test_simulation_12(void) { simulate(12, seed0, 60000); }
static void test_simulation_64(void) { simulate(64, seed0, 60000); }
static void test_simulation_1024(void) { simulate(1024, seed0, 60000); }

/* Real threads ------------------------------------------------------------------------------------------------------- */

struct thing { struct rcu_head rcu; u64 alive; };
static struct thing *shared;
static u32 threads_left;
static u64 dead_seen, freed, made;

static void thing_free(struct rcu_head *h)
{
    struct thing *t = container_of(h, struct thing, rcu);

    store_relaxed(&t->alive, 0);
    atomic_faa64(&freed, 1);
    free(t);
}

static void *thread(void *arg)
{
    unsigned self = (unsigned)(uintptr_t)arg;
    u64 seed = seed0 + self + 1, mine = 0;

    host_be_cpu(self);
    for (unsigned i = 0; i < 20000; i++) {
        unsigned what = host_below(&seed, 16);

        if (what < 10) {
            struct thing *t = rcu_dereference(shared);

            for (unsigned k = 0; k < what; k++)
                mine += load_relaxed(&t->alive) != 1;
        } else if (what < 12) {
            struct thing *t = malloc(sizeof(*t)), *old;

            t->alive = 1;
            atomic_faa64(&made, 1);
            old = (struct thing *)atomic_xchg64((u64 *)(void *)&shared, (u64)t);
            call_rcu(&old->rcu, thing_free);
        } else if (what == 12) {
            rcu_quiescent();
            rcu_idle_enter();
            cpu_relax();
            rcu_idle_exit();
        }
        if (what > 13 || host_poll())
            rcu_quiescent();
    }
    atomic_faa64(&dead_seen, mine);
    /* Stays until all have run out of callbacks: a CPU does not vanish. */
    atomic_faa32(&threads_left, -1u);
    while (load_acquire(&threads_left) || load_acquire(&freed) + 1 < load_acquire(&made)) {
        rcu_quiescent();
        cpu_relax();
    }
    return NULL;
}

static void run_threads(unsigned n)
{
    pthread_t t[16];

    fresh(n);
    host_own_clock = false;
    shared = malloc(sizeof(*shared));
    shared->alive = 1;
    threads_left = n;
    dead_seen = freed = 0;
    made = 1;
    for (uintptr_t i = 0; i < n; i++)
        pthread_create(&t[i], NULL, thread, (void *)i);
    for (unsigned i = 0; i < n; i++)
        pthread_join(t[i], NULL);
    CU_ASSERT_EQUAL(dead_seen, 0);
    CU_ASSERT_EQUAL(freed + 1, made);
    free(shared);
    host_stop();
}

static void test_threads_1(void) { run_threads(1); }
static void test_threads_2(void) { run_threads(2); }
static void test_threads_8(void) { run_threads(8); }
static void test_threads_12(void) { run_threads(12); }

int main(void)
{
    CU_pSuite suite;
    unsigned failures;

    seed0 = host_seed("test_rcu");
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    suite = CU_add_suite("rcu", NULL, NULL);
    CU_ADD_TEST(suite, test_last_cpu);
    CU_ADD_TEST(suite, test_each_cpu_counts);
    CU_ADD_TEST(suite, test_tree);
    CU_ADD_TEST(suite, test_quiet);
    CU_ADD_TEST(suite, test_idle_is_quiescent);
    CU_ADD_TEST(suite, test_idle_in_period);
    CU_ADD_TEST(suite, test_queued_in_period);
    CU_ADD_TEST(suite, test_kick_late);
    CU_ADD_TEST(suite, test_stall);
    CU_ADD_TEST(suite, test_stall_self);
    CU_ADD_TEST(suite, test_poll);
    CU_ADD_TEST(suite, test_budget);
    CU_ADD_TEST(suite, test_requeue);
    CU_ADD_TEST(suite, test_simulation_1);
    CU_ADD_TEST(suite, test_simulation_2);
    CU_ADD_TEST(suite, test_simulation_12);
    CU_ADD_TEST(suite, test_simulation_64);
    CU_ADD_TEST(suite, test_simulation_1024);
    CU_ADD_TEST(suite, test_threads_1);
    CU_ADD_TEST(suite, test_threads_2);
    CU_ADD_TEST(suite, test_threads_8);
    CU_ADD_TEST(suite, test_threads_12);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures ? 1 : 0;
}
