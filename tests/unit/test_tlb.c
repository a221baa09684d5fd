/* SPDX-License-Identifier: MIT */
/* Tests who is told to flush, and the inboxes with a thread for each CPU. */
#include <CUnit/Basic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"
#include "mmu.h"
#include "tlb.h"

static bool is_table(enum frame_type t) { return t == FT_L1 || t == FT_L2 || t == FT_L3 || t == FT_L4; }

static void test_set(void)
{
    struct tlb_set s;

    host_start(1024, 1, 0);
    memset(&s, 0xff, sizeof(s));
    tlb_set_clear(&s);
    for (unsigned i = 0; i < 2; i++)
        for (unsigned c = 0; c < 1024; c += 31)
            tlb_set_add(&s, c);
    CU_ASSERT_EQUAL(s.n, 34);                                     /* each counts once */
    for (unsigned c = 0; c < 1024; c++)
        CU_ASSERT_EQUAL(s.bits[c / 64] >> (c % 64) & 1, c % 31 == 0);
    host_stop();
}

/* The decision written down a second time, from the rules: may CPU @t still hold a translation to a frame that was @last,
 * idle since @stamp, with note @meta? */
static bool may_hold(const struct tlb_cpu *t, enum frame_type last, u64 stamp, u64 meta)
{
    if (t->as == AS_NONE)
        return false;                                             /* no guest's root is loaded */
    if (t->flush_time > stamp)
        return false;                                             /* dropped everything since */
    if (is_table(last))
        return meta == AS_ANY || t->as == AS_ANY || t->as == meta;
    /* A writable mapping: kernel mode may have any, user mode only what was a user mapping after its last flush. */
    return t->mode % 2 || t->flush_time <= meta;
}

/* Every combination of what the decision looks at. */
static void test_collect_table(void)
{
    const u64 as[] = { AS_NONE, AS_ANY, 5, 6 }, meta[] = { 0, 5, 40, 50, 60, AS_ANY }, time[] = { 39, 40, 41, 50, 51, 61 };
    unsigned wrong = 0, yes = 0, no = 0;

    host_start(3, 1, 0);
    struct frame *f = frame_of(MFN(0));
    struct tlb_cpu *t = &tlb_cpu[1];
    f->stamp = 50;
    for (enum frame_type last = FT_NONE; last <= FT_SEG; last++)
        for (unsigned a = 0; a < ARRAY_SIZE(as); a++)
            for (unsigned m = 0; m < ARRAY_SIZE(meta); m++)
                for (unsigned h = 0; h < ARRAY_SIZE(time); h++)
                    for (u64 mode = 0; mode < 4; mode++) {
                        struct tlb_set s;
                        bool want;

                        t->as = as[a];
                        t->flush_time = time[h];
                        t->mode = mode;
                        f->meta = meta[m];
                        want = may_hold(t, last, f->stamp, f->meta);
                        tlb_set_clear(&s);
                        tlb_collect(&s, f, last);
                        wrong += s.n != want || s.bits[0] != (want ? 2 : 0);
                        *(want ? &yes : &no) += 1;
                    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT(yes > 100 && no > 100);
    host_stop();
}

/* Equal times prove nothing about the order: they must flush. */
static void test_collect_equal_times(void)
{
    struct tlb_set s;

    host_start(2, 1, 0);
    frame_of(MFN(0))->stamp = 77;
    frame_of(MFN(0))->meta = AS_ANY;
    tlb_cpu[1].as = 4;
    tlb_cpu[1].flush_time = 77;
    tlb_set_clear(&s);
    tlb_collect(&s, frame_of(MFN(0)), FT_L2);
    CU_ASSERT_EQUAL(s.bits[0], 2);
    host_stop();
}

static void test_flush_self(void)
{
    struct tlb_set s;
    u64 before;

    host_start(2, 1, 0);
    host_be_cpu(1);
    before = env_tsc();
    tlb_set_clear(&s);
    tlb_flush_set(&s);
    CU_ASSERT_EQUAL(tlb_cpu[1].flush_time, 0);                    /* nobody to flush */
    tlb_set_add(&s, 1);
    tlb_flush_set(&s);
    CU_ASSERT(tlb_cpu[1].flush_time > before);
    CU_ASSERT_EQUAL(host_ipis(0) + host_ipis(1), 0);
    CU_ASSERT_EQUAL(stat_sum(STAT_tlb_shootdown), 0);
    host_stop();
}

/* The recorded time is from before the flush: what is removed while it runs counts as not flushed. */
static u64 time_in_flush;
static void note_time(unsigned cpu) { (void)cpu; time_in_flush = env_tsc(); }

static void test_flush_time_is_before(void)
{
    host_start(1, 1, 0);
    host_on_flush = note_time;
    host_counting_tsc = true;
    tlb_flush_local();
    CU_ASSERT(tlb_cpu[0].flush_time < time_in_flush);
    host_counting_tsc = false;
    host_stop();
}

static u32 stop, ready;
static u64 version, seen[ENV_MAX_CPUS];

static void note_version(unsigned cpu) { store_release(&seen[cpu], load_acquire(&version)); }

static void *target(void *arg)
{
    host_be_cpu((unsigned)(uintptr_t)arg);
    atomic_faa32(&ready, 1);
    while (!load_acquire(&stop)) {
        host_poll();
        cpu_relax();
    }
    return NULL;
}

static void *requester(void *arg)
{
    struct tlb_set s;

    host_be_cpu((unsigned)(uintptr_t)arg);
    tlb_set_clear(&s);
    tlb_set_add(&s, 0);
    atomic_faa32(&ready, 1);
    tlb_flush_set(&s);
    return NULL;
}

/* Requests that find one pending share its flush: CPU 0 gets one IPI for three requests, and flushes once. */
static void test_combine(void)
{
    pthread_t t[3];

    host_start(4, 1, 0);
    for (uintptr_t i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, requester, (void *)(i + 1));
    while (load_acquire(&tlb_cpu[0].word) >> 1 != 3)              /* all have asked, CPU 0 has not looked yet */
        cpu_relax();
    CU_ASSERT_EQUAL(host_ipis(0), 1);
    CU_ASSERT_EQUAL(tlb_cpu[0].ack, 0);
    host_poll();
    for (unsigned i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    CU_ASSERT_EQUAL(tlb_cpu[0].ack, 3);
    CU_ASSERT_EQUAL(host_ipis(0), 1);
    CU_ASSERT_EQUAL(stat_sum(STAT_tlb_flush_local), 1);
    CU_ASSERT_EQUAL(stat_sum(STAT_tlb_combined), 2);
    host_stop();
}

static unsigned storm_cpus;
static u32 late;

static void *storm(void *arg)
{
    unsigned self = (unsigned)(uintptr_t)arg;
    u64 seed = self * 77 + 1;

    host_be_cpu(self);
    for (unsigned i = 0; i < 1500; i++) {
        struct tlb_set s;
        u64 mine = atomic_faa64(&version, 1) + 1;

        tlb_set_clear(&s);
        for (unsigned c = 0; c < storm_cpus; c++)
            if (host_below(&seed, 3))
                tlb_set_add(&s, c);
        tlb_flush_set(&s);
        for (unsigned c = 0; c < storm_cpus; c++)
            if ((s.bits[0] >> c & 1) && load_acquire(&seen[c]) < mine)
                atomic_faa32(&late, 1);                           /* a flush that had started before our change */
        host_poll();
    }
    atomic_faa32(&ready, 1);
    while (!load_acquire(&stop)) {
        host_poll();
        cpu_relax();
    }
    return NULL;
}

/* All ask all, at once: nobody deadlocks, and each gets flushes that started after its change. */
static void test_storm(void)
{
    pthread_t t[8];

    for (storm_cpus = 2; storm_cpus <= 8; storm_cpus *= 2) {
        host_start(storm_cpus, 1, 0);
        memset(seen, 0, sizeof(seen));
        version = stop = ready = late = 0;
        host_on_flush = note_version;
        for (uintptr_t i = 0; i < storm_cpus; i++)
            pthread_create(&t[i], NULL, storm, (void *)i);
        while (load_acquire(&ready) < storm_cpus)
            cpu_relax();
        store_release(&stop, 1);
        for (unsigned i = 0; i < storm_cpus; i++)
            pthread_join(t[i], NULL);
        CU_ASSERT_EQUAL(late, 0);
        CU_ASSERT(stat_sum(STAT_tlb_ipi) <= stat_sum(STAT_tlb_flush_local));
        host_stop();
    }
}

/* A flush that reaches every CPU of a large machine goes to each of them once. */
static void test_many(void)
{
    static pthread_t t[64];
    struct tlb_set s;

    host_start(64, 1, 0);
    stop = ready = 0;
    for (uintptr_t i = 1; i < 64; i++)
        pthread_create(&t[i], NULL, target, (void *)i);
    while (load_acquire(&ready) < 63)
        cpu_relax();
    tlb_set_clear(&s);
    for (unsigned c = 0; c < 64; c++)
        tlb_set_add(&s, c);
    tlb_flush_set(&s);
    for (unsigned c = 1; c < 64; c++) {
        CU_ASSERT_EQUAL(host_ipis(c), 1);
        CU_ASSERT_EQUAL(load_acquire(&tlb_cpu[c].ack), 1);
    }
    store_release(&stop, 1);
    for (unsigned i = 1; i < 64; i++)
        pthread_join(t[i], NULL);
    CU_ASSERT_EQUAL(stat_sum(STAT_tlb_flush_local), 64);
    host_stop();
}

int main(void)
{
    CU_pSuite suite;
    unsigned failures;

    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    suite = CU_add_suite("tlb", NULL, NULL);
    CU_ADD_TEST(suite, test_set);
    CU_ADD_TEST(suite, test_collect_table);
    CU_ADD_TEST(suite, test_collect_equal_times);
    CU_ADD_TEST(suite, test_flush_self);
    CU_ADD_TEST(suite, test_flush_time_is_before);
    CU_ADD_TEST(suite, test_combine);
    CU_ADD_TEST(suite, test_storm);
    CU_ADD_TEST(suite, test_many);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures ? 1 : 0;
}
