/* SPDX-License-Identifier: MIT */
/* Tests the scheduler: its rules on one thread with a clock of our own, and its promises (no wake-up is lost, nothing
 * runs in two places) with a thread for each CPU. */
#include <CUnit/Basic.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sched.c"
#include "timer.c"

#define MS        1000000ull
#define CPUS_MAX  8
#define ENTITIES  24

u64 env_stats[ENV_MAX_CPUS][ENV_STATS_MAX];

/* The environment ---------------------------------------------------------------------------------------- */

static __thread unsigned cpu_number;
static unsigned cpus = 1;
static bool real_time;                           /* threads and the real clock, or one thread and @clock_ns */
static u64 clock_ns, armed[CPUS_MAX];
static unsigned kicks[CPUS_MAX];                 /* since kicks_reset() */
static u32 idle[CPUS_MAX];
static sem_t kicked[CPUS_MAX];

unsigned env_cpu(void) { return cpu_number; }
unsigned env_nr_cpus(void) { return cpus; }
bool sched_cpu_idle(unsigned cpu) { return load_relaxed(&idle[cpu]); }
void sched_arm(u64 ns) { armed[cpu_number] = ns; }

u64 env_now(void)
{
    struct timespec t;

    if (!real_time)
        return clock_ns;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

void env_kick(unsigned cpu)
{
    if (real_time)
        sem_post(&kicked[cpu]);
    else
        kicks[cpu]++;
}

void env_bug(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    abort();
}

static struct sched_entity ent[ENTITIES];
static struct { struct sched_entity *se; u64 at; unsigned cpu; } fired[64];
static unsigned nr_fired, depth;
static void (*on_fire)(struct sched_entity *se);

void se_timer_fired(struct sched_entity *se)
{
    if (real_time) {
        on_fire(se);
        return;
    }
    CU_ASSERT_EQUAL(depth, 0);                   /* a timer that fires must not fire the next one from within */
    depth++;
    if (nr_fired < ARRAY_SIZE(fired)) {
        fired[nr_fired].se = se;
        fired[nr_fired].at = env_now();
        fired[nr_fired].cpu = cpu_number;
    }
    nr_fired++;
    if (on_fire)
        on_fire(se);
    depth--;
}

/* One thread ---------------------------------------------------------------------------------------------- */

static void kicks_reset(void) { memset(kicks, 0, sizeof(kicks)); }

static void fresh(unsigned n)
{
    memset(runq, 0, sizeof(runq));
    memset(timerq, 0, sizeof(timerq));
    memset(idle, 0, sizeof(idle));
    memset(armed, 0xff, sizeof(armed));
    kicks_reset();
    cpus = n;
    cpu_number = 0;
    clock_ns = 1000 * MS;
    nr_fired = 0;
    on_fire = NULL;
    sched_init();
    for (unsigned i = 0; i < ENTITIES; i++)
        se_init(&ent[i], i % n);
}

/* What CPU @cpu does when it passes through the scheduler; returns what it runs then. */
static struct sched_entity *pass(unsigned cpu, struct sched_entity *prev)
{
    struct sched_entity *next;

    cpu_number = cpu;
    next = sched_pick(prev, clock_ns);
    if (prev && next != prev)
        sched_switched(prev);
    store_relaxed(&idle[cpu], next == NULL);
    sched_arm(sched_tick(clock_ns));
    cpu_number = 0;
    return next;
}

static void test_wake_idle_home(void)
{
    fresh(2);
    idle[0] = idle[1] = 1;
    sched_wake(&ent[1]);
    CU_ASSERT_EQUAL(ent[1].state, SE_QUEUED);
    CU_ASSERT_EQUAL(ent[1].cpu, 1);
    CU_ASSERT_EQUAL(kicks[1], 1);
    CU_ASSERT_PTR_EQUAL(pass(1, NULL), &ent[1]);
    CU_ASSERT_EQUAL(ent[1].state, SE_RUNNING);
    CU_ASSERT_EQUAL(ent[1].on_cpu, 1);
}

static void test_wake_moves_to_idle(void)
{
    fresh(3);
    sched_wake(&ent[0]);
    CU_ASSERT_PTR_EQUAL(pass(0, NULL), &ent[0]);
    idle[2] = 1;
    kicks_reset();
    sched_wake(&ent[3]);                         /* home 0 is busy, 2 idles */
    CU_ASSERT_EQUAL(ent[3].cpu, 2);
    CU_ASSERT_EQUAL(kicks[2], 1);
    sched_wake(&ent[6]);                         /* 2 has something to do now */
    CU_ASSERT_EQUAL(ent[6].cpu, 0);
    CU_ASSERT_PTR_EQUAL(pass(2, NULL), &ent[3]);
}

static void test_wake_waits_for_registers(void)
{
    fresh(2);
    sched_wake(&ent[0]);
    pass(0, NULL);
    idle[1] = 1;
    CU_ASSERT(sched_block(&ent[0]));
    sched_wake(&ent[0]);                         /* before CPU 0 has switched */
    CU_ASSERT_EQUAL(ent[0].cpu, 0);
    CU_ASSERT_PTR_NULL(pass(1, NULL));           /* nor may 1 steal it */
    CU_ASSERT_PTR_EQUAL(pass(0, &ent[0]), &ent[0]);
}

static void test_wake_busy_shortens_slice(void)
{
    fresh(2);
    sched_wake(&ent[1]);
    pass(1, NULL);
    kicks_reset();
    sched_wake(&ent[3]);
    CU_ASSERT_EQUAL(kicks[1], 1);                /* it must arm its timer */
    CU_ASSERT_PTR_EQUAL(pass(1, &ent[1]), &ent[1]);
    CU_ASSERT_EQUAL(armed[1], clock_ns + WAKE_SLICE_NS);
    sched_wake(&ent[5]);
    CU_ASSERT_EQUAL(kicks[1], 1);                /* it has */
    clock_ns += WAKE_SLICE_NS;
    cpu_number = 1;
    sched_tick(clock_ns);
    CU_ASSERT(sched_need_resched());
    CU_ASSERT_PTR_EQUAL(pass(1, &ent[1]), &ent[3]);
}

static void test_round_robin(void)
{
    struct sched_entity *run = NULL;
    u64 got[4] = { 0 };

    fresh(1);
    for (unsigned i = 0; i < 4; i++)
        sched_wake(&ent[i]);
    for (unsigned i = 0; i < 400; i++) {
        run = pass(0, run);
        CU_ASSERT_PTR_EQUAL(run, &ent[i / 10 % 4]);
        got[run - ent]++;
        clock_ns += SLICE_NS / 10;
    }
    for (unsigned i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(got[i], 100);
}

static void test_yield(void)
{
    struct sched_entity *run;

    fresh(1);
    sched_wake(&ent[0]);
    sched_wake(&ent[1]);
    run = pass(0, NULL);
    CU_ASSERT_PTR_EQUAL(pass(0, run), run);
    sched_yield_slice();
    CU_ASSERT_PTR_EQUAL(pass(0, run), &ent[1]);
    CU_ASSERT(sched_block(&ent[1]));
    CU_ASSERT_PTR_EQUAL(pass(0, &ent[1]), &ent[0]);
    sched_yield_slice();
    CU_ASSERT_PTR_EQUAL(pass(0, &ent[0]), &ent[0]);      /* alone: goes on */
}

static void test_block(void)
{
    fresh(1);
    sched_wake(&ent[0]);
    pass(0, NULL);
    sched_wake(&ent[0]);                         /* while it runs */
    CU_ASSERT_FALSE(sched_block(&ent[0]));
    CU_ASSERT_EQUAL(ent[0].state, SE_RUNNING);
    CU_ASSERT(sched_block(&ent[0]));             /* consumed */
    CU_ASSERT_PTR_NULL(pass(0, &ent[0]));
    sched_wake(&ent[0]);
    CU_ASSERT_PTR_EQUAL(pass(0, NULL), &ent[0]);
    sched_wake(&ent[0]);
    sched_forget_wakes(&ent[0]);
    CU_ASSERT(sched_block(&ent[0]));
}

/* A guest can ask twice in one multicall, and be woken in between. */
static void test_block_twice(void)
{
    fresh(1);
    for (unsigned i = 0; i < 3; i++)
        sched_wake(&ent[i]);
    pass(0, NULL);
    CU_ASSERT(sched_block(&ent[0]));
    CU_ASSERT(sched_block(&ent[0]));
    sched_wake(&ent[0]);
    CU_ASSERT_EQUAL(runq[0].len, 3);
    CU_ASSERT_FALSE(sched_block(&ent[0]));       /* woken since: it runs on */
    CU_ASSERT_EQUAL(runq[0].len, 2);
    CU_ASSERT(sched_block(&ent[0]));
    sched_wake(&ent[0]);
    sched_wake(&ent[0]);
    CU_ASSERT_PTR_EQUAL(pass(0, &ent[0]), &ent[1]);
    sched_block(&ent[1]);
    CU_ASSERT_PTR_EQUAL(pass(0, &ent[1]), &ent[2]);
    sched_block(&ent[2]);
    CU_ASSERT_PTR_EQUAL(pass(0, &ent[2]), &ent[0]);
    CU_ASSERT_EQUAL(runq[0].len, 0);
    CU_ASSERT(runq[0].tail == &runq[0].head);
}

static void test_park(void)
{
    fresh(1);
    sched_wake(&ent[0]);
    sched_wake(&ent[1]);
    pass(0, NULL);
    sched_wake(&ent[0]);
    sched_park(&ent[0]);
    sched_wake(&ent[0]);
    CU_ASSERT_EQUAL(ent[0].state, SE_BLOCKED);
    CU_ASSERT_PTR_EQUAL(pass(0, &ent[0]), &ent[1]);
    sched_wake(&ent[0]);
    CU_ASSERT_EQUAL(runq[0].len, 0);
    sched_unpark(&ent[0]);
    CU_ASSERT_EQUAL(runq[0].len, 1);
    sched_unpark(&ent[0]);                       /* two at once */
    CU_ASSERT_EQUAL(runq[0].len, 1);
    CU_ASSERT(sched_block(&ent[1]));
    CU_ASSERT_PTR_EQUAL(pass(0, &ent[1]), &ent[0]);
    CU_ASSERT(sched_block(&ent[0]));             /* the wake-ups of its absence are gone */
    sched_wake(&ent[0]);
    sched_park(&ent[0]);                         /* while queued: blocked, woken, then parked in one multicall */
    CU_ASSERT_EQUAL(runq[0].len, 0);
    CU_ASSERT_PTR_NULL(pass(0, &ent[0]));
}

static void test_steal(void)
{
    fresh(3);
    for (unsigned i = 0; i < 9; i += 3)          /* 0, 3, 6: CPU 0 */
        sched_wake(&ent[i]);
    sched_wake(&ent[1]);
    sched_wake(&ent[4]);                         /* CPU 1 */
    CU_ASSERT_PTR_EQUAL(pass(0, NULL), &ent[0]);
    CU_ASSERT_PTR_EQUAL(pass(1, NULL), &ent[1]);
    CU_ASSERT_PTR_EQUAL(pass(2, NULL), &ent[3]); /* from the longer queue, its head */
    CU_ASSERT_EQUAL(ent[3].cpu, 2);
    CU_ASSERT_EQUAL(runq[0].len, 1);
    sched_wake(&ent[3]);
    CU_ASSERT_EQUAL(ent[3].wake_pending, 1);
}

/* The head of the queue still has its registers on its CPU: the thief takes the one behind it. */
static void test_steal_skips_loaded(void)
{
    fresh(2);
    sched_wake(&ent[0]);
    pass(0, NULL);
    CU_ASSERT(sched_block(&ent[0]));
    sched_wake(&ent[0]);                         /* queued first, registers loaded */
    sched_wake(&ent[2]);
    CU_ASSERT_PTR_EQUAL(pass(1, NULL), &ent[2]);
    CU_ASSERT_EQUAL(runq[0].len, 1);
    CU_ASSERT(runq[0].tail == &ent[0].next);
}

static void test_preempted_goes_to_idle(void)
{
    fresh(2);
    sched_wake(&ent[0]);
    sched_wake(&ent[2]);
    pass(0, NULL);
    idle[1] = 1;
    kicks_reset();
    clock_ns += SLICE_NS;
    CU_ASSERT_PTR_EQUAL(pass(0, &ent[0]), &ent[2]);
    CU_ASSERT_EQUAL(kicks[1], 1);
    CU_ASSERT_PTR_EQUAL(pass(1, NULL), &ent[0]);
}

static void test_timer_order(void)
{
    fresh(1);
    sched_timer_set(&ent[0], clock_ns + 30);
    sched_timer_set(&ent[1], clock_ns + 10);
    CU_ASSERT_EQUAL(armed[0], clock_ns + 10);
    sched_timer_set(&ent[2], clock_ns + 20);
    sched_timer_set(&ent[3], clock_ns + 10);
    sched_timer_set(&ent[1], clock_ns + 40);     /* moved */
    sched_timer_set(&ent[2], ~0ull);             /* off */
    sched_timer_set(&ent[2], ~0ull);
    clock_ns += 9;
    CU_ASSERT_EQUAL(sched_tick(clock_ns), clock_ns + 1);
    CU_ASSERT_EQUAL(nr_fired, 0);
    clock_ns += 100;
    CU_ASSERT_EQUAL(sched_tick(clock_ns), ~0ull);
    CU_ASSERT_EQUAL(nr_fired, 3);
    CU_ASSERT_PTR_EQUAL(fired[0].se, &ent[3]);
    CU_ASSERT_PTR_EQUAL(fired[1].se, &ent[0]);
    CU_ASSERT_PTR_EQUAL(fired[2].se, &ent[1]);
    CU_ASSERT_EQUAL(ent[0].timer_ns, ~0ull);
}

static void test_timer_within(void)
{
    fresh(1);
    sched_timer_within(&ent[0], clock_ns + 50);
    CU_ASSERT_EQUAL(ent[0].timer_ns, clock_ns + 50);
    sched_timer_within(&ent[0], clock_ns + 90);
    CU_ASSERT_EQUAL(ent[0].timer_ns, clock_ns + 50);
    sched_timer_within(&ent[0], ~0ull);
    CU_ASSERT_EQUAL(ent[0].timer_ns, clock_ns + 50);
    sched_timer_within(&ent[0], clock_ns + 20);
    CU_ASSERT_EQUAL(ent[0].timer_ns, clock_ns + 20);
    sched_timer_set(&ent[0], clock_ns + 90);
    CU_ASSERT_EQUAL(ent[0].timer_ns, clock_ns + 90);
    CU_ASSERT_EQUAL(sched_next_event(), clock_ns + 90);
}

static void test_timer_changes_cpu(void)
{
    fresh(2);
    sched_timer_set(&ent[0], clock_ns + 10);
    sched_timer_set(&ent[2], clock_ns + 15);
    cpu_number = 1;
    sched_timer_set(&ent[0], clock_ns + 20);
    CU_ASSERT_EQUAL(armed[1], clock_ns + 20);
    CU_ASSERT_EQUAL(ent[0].timer_cpu, 1);
    clock_ns += 100;
    sched_tick(clock_ns);
    CU_ASSERT_EQUAL(nr_fired, 1);
    CU_ASSERT_PTR_EQUAL(fired[0].se, &ent[0]);
    CU_ASSERT_EQUAL(fired[0].cpu, 1);
    cpu_number = 0;
    sched_tick(clock_ns);
    CU_ASSERT_EQUAL(nr_fired, 2);
    CU_ASSERT_PTR_EQUAL(fired[1].se, &ent[2]);
}

static void wake_it(struct sched_entity *se) { sched_wake(se); }
static void again_past(struct sched_entity *se) { if (nr_fired < 3) sched_timer_set(se, 1); }

/* Many at once, each waking its entity here: the stack must not grow with them (se_timer_fired() looks). */
static void test_timers_together(void)
{
    fresh(1);
    on_fire = wake_it;
    for (unsigned i = 0; i < ENTITIES; i++)
        sched_timer_set(&ent[i], clock_ns + 10);
    clock_ns += 20;
    sched_tick(clock_ns);
    CU_ASSERT_EQUAL(nr_fired, ENTITIES);
    CU_ASSERT_EQUAL(runq[0].len, ENTITIES);
    fresh(1);
    on_fire = again_past;                        /* set again from within, in the past */
    sched_timer_set(&ent[0], 2);
    CU_ASSERT_EQUAL(nr_fired, 0);
    CU_ASSERT(armed[0] <= clock_ns);             /* at once, but by interrupt */
    sched_tick(clock_ns);
    CU_ASSERT_EQUAL(nr_fired, 3);
}

/* The interrupt comes for the slice only if somebody waits. */
static void test_tick_and_slice(void)
{
    fresh(1);
    sched_wake(&ent[0]);
    pass(0, NULL);
    CU_ASSERT_EQUAL(armed[0], ~0ull);
    sched_wake(&ent[1]);
    CU_ASSERT_EQUAL(armed[0], clock_ns + WAKE_SLICE_NS);
    sched_timer_set(&ent[0], clock_ns + 100);
    CU_ASSERT_EQUAL(sched_tick(clock_ns), clock_ns + 100);
    CU_ASSERT_FALSE(sched_need_resched());
    clock_ns += WAKE_SLICE_NS;
    CU_ASSERT_EQUAL(sched_tick(clock_ns), ~0ull);
    CU_ASSERT(sched_need_resched());
    CU_ASSERT_EQUAL(nr_fired, 1);
}

/* Threads -------------------------------------------------------------------------------------------------- */

/* Tokens travel between tasks: one that has tokens passes them on at random, one that has none blocks.  A lost wake-up
 * makes its token stand still, and when all of them do, every CPU sleeps for good. */
struct task {
    struct sched_entity se;
    u32 tokens;
    u32 runs_on;                                 /* CPU + 1 while a CPU is at it */
    unsigned saved_by;                           /* plain on purpose: ordered by on_cpu alone */
    u64 hops, timeouts;
};
static struct task task[ENTITIES];
static u32 hops_left, stop, trouble;
static bool with_timers;
#define TASK(e) container_of(e, struct task, se)

static void bad(const char *what)
{
    if (!atomic_xchg32(&trouble, 1))
        fprintf(stderr, "    %s\n", what);
    store_relaxed(&stop, 1);
}

static void finish(void)
{
    store_relaxed(&stop, 1);
    for (unsigned c = 0; c < cpus; c++)
        sem_post(&kicked[c]);
}

static void task_timer(struct sched_entity *se)
{
    atomic_faa64(&TASK(se)->timeouts, 1);
    sched_wake(se);
}

/* Passes one token on, or goes to sleep; false: the task left the CPU or wants to. */
static bool step(struct task *t, unsigned *seed)
{
    u32 have = load_acquire(&t->tokens);

    if (have) {
        struct task *to = &task[(unsigned)rand_r(seed) % ENTITIES];

        atomic_faa32(&t->tokens, -1u);
        t->hops++;
        if (atomic_faa32(&hops_left, -1u) == 1)
            finish();
        atomic_faa32(&to->tokens, 1);
        sched_wake(&to->se);
        return rand_r(seed) % 8 != 0;
    }
    if (with_timers && rand_r(seed) % 4 == 0)
        sched_timer_set(&t->se, env_now() + (unsigned)rand_r(seed) % 200000);
    sched_forget_wakes(&t->se);
    if (load_acquire(&t->tokens))
        return true;
    return !sched_block(&t->se);
}

static void *cpu_thread(void *arg)
{
    unsigned self = (unsigned)(uintptr_t)arg, seed = self + 1;
    struct sched_entity *cur = NULL;

    cpu_number = self;
    while (!load_relaxed(&stop)) {
        struct sched_entity *next;

        sched_arm(sched_tick(env_now()));
        next = sched_pick(cur, env_now());
        if (cur && next != cur) {
            /* Its registers are saved now. */
            TASK(cur)->saved_by = self;
            if (atomic_xchg32(&TASK(cur)->runs_on, 0) != self + 1)
                bad("a task ran on two CPUs");
            sched_switched(cur);
        }
        if (next && next != cur) {
            if (atomic_xchg32(&TASK(next)->runs_on, self + 1))
                bad("a task was picked while it ran elsewhere");
            if (TASK(next)->saved_by == ~0u)
                bad("a task was picked before it was saved");
            TASK(next)->saved_by = ~0u;
        }
        cur = next;
        if (!cur) {
            struct timespec until;
            u64 ns;

            store_relaxed(&idle[self], 1);
            sched_arm(sched_tick(env_now()));
            cur = sched_pick(NULL, env_now());
            if (cur) {
                store_relaxed(&idle[self], 0);
                if (atomic_xchg32(&TASK(cur)->runs_on, self + 1))
                    bad("a task was picked while it ran elsewhere");
                TASK(cur)->saved_by = ~0u;
                continue;
            }
            /* Sleeps until it is kicked, or its timer comes; 20 s of nothing is a lost wake-up. */
            clock_gettime(CLOCK_REALTIME, &until);
            ns = armed[self] == ~0ull ? 20000000000ull : armed[self] > env_now() ? armed[self] - env_now() : 0;
            ns += (u64)until.tv_nsec;
            until.tv_sec += (time_t)(ns / 1000000000);
            until.tv_nsec = (long)(ns % 1000000000);
            if (sem_timedwait(&kicked[self], &until) && armed[self] == ~0ull && !load_relaxed(&stop))
                bad("a CPU slept for 20 s with tokens under way");
            store_relaxed(&idle[self], 0);
            continue;
        }
        while (step(TASK(cur), &seed) && sem_trywait(&kicked[self]) && !load_relaxed(&stop))
            if (armed[self] <= env_now()) {
                sched_arm(sched_tick(env_now()));
                if (sched_need_resched())
                    break;
            }
    }
    return NULL;
}

static void run_threads(unsigned n, unsigned tokens, u32 hops, bool timers)
{
    pthread_t thread[CPUS_MAX];
    unsigned sum = 0, seed = 7;
    u64 moved = 0;

    fresh(n);
    real_time = true;
    on_fire = task_timer;
    with_timers = timers;
    stop = trouble = 0;
    hops_left = hops;
    memset(task, 0, sizeof(task));
    for (unsigned c = 0; c < n; c++)
        sem_init(&kicked[c], 0, 0);
    for (unsigned i = 0; i < ENTITIES; i++)
        se_init(&task[i].se, i % n);
    for (unsigned i = 0; i < tokens; i++)
        task[(unsigned)rand_r(&seed) % ENTITIES].tokens++;
    for (unsigned i = 0; i < ENTITIES; i++)
        if (task[i].tokens)
            sched_wake(&task[i].se);
    for (unsigned c = 0; c < n; c++)
        pthread_create(&thread[c], NULL, cpu_thread, (void *)(uintptr_t)c);
    for (unsigned c = 0; c < n; c++)
        pthread_join(thread[c], NULL);
    CU_ASSERT_EQUAL(trouble, 0);
    for (unsigned i = 0; i < ENTITIES; i++) {
        sum += task[i].tokens;
        moved += task[i].hops;
    }
    CU_ASSERT_EQUAL(sum, tokens);
    CU_ASSERT(moved >= hops);
    for (unsigned c = 0; c < n; c++)
        sem_destroy(&kicked[c]);
    real_time = false;
}

static void test_threads_one_token(void) { run_threads(4, 1, 20000, false); }
static void test_threads_few(void) { run_threads(4, 3, 60000, false); }
static void test_threads_many(void) { run_threads(8, 16, 200000, false); }
static void test_threads_timers(void) { run_threads(4, 5, 60000, true); }

int main(void)
{
    CU_pSuite suite;
    unsigned failures;

    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    suite = CU_add_suite("sched", NULL, NULL);
    CU_ADD_TEST(suite, test_wake_idle_home);
    CU_ADD_TEST(suite, test_wake_moves_to_idle);
    CU_ADD_TEST(suite, test_wake_waits_for_registers);
    CU_ADD_TEST(suite, test_wake_busy_shortens_slice);
    CU_ADD_TEST(suite, test_round_robin);
    CU_ADD_TEST(suite, test_yield);
    CU_ADD_TEST(suite, test_block);
    CU_ADD_TEST(suite, test_block_twice);
    CU_ADD_TEST(suite, test_park);
    CU_ADD_TEST(suite, test_steal);
    CU_ADD_TEST(suite, test_steal_skips_loaded);
    CU_ADD_TEST(suite, test_preempted_goes_to_idle);
    CU_ADD_TEST(suite, test_timer_order);
    CU_ADD_TEST(suite, test_timer_within);
    CU_ADD_TEST(suite, test_timer_changes_cpu);
    CU_ADD_TEST(suite, test_timers_together);
    CU_ADD_TEST(suite, test_tick_and_slice);
    CU_ADD_TEST(suite, test_threads_one_token);
    CU_ADD_TEST(suite, test_threads_few);
    CU_ADD_TEST(suite, test_threads_many);
    CU_ADD_TEST(suite, test_threads_timers);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
