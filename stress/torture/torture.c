/* SPDX-License-Identifier: MIT */
/* The frame of the torture programs; described in torture.h. */
#include "torture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CPUS_MAX 64

unsigned torture_cpus = 2;
u64 torture_seed;

static const char *name;
static u64 deadline_ns, seen_impossible;
static u32 over, arrived, rests, stop;
static void (*cpu_main)(unsigned cpu, u64 *seed);
static void (*agent_main)(u64 *seed);

static u64 clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

void torture_init(int argc, char **argv, u64 frames, u64 heap)
{
    double seconds = argc > 1 ? atof(argv[1]) : 2;

    if (argc > 2)
        torture_cpus = (unsigned)atoi(argv[2]);
    if (!torture_cpus || torture_cpus > CPUS_MAX || seconds <= 0) {
        fprintf(stderr, "usage: %s [SECONDS [CPUS]]\n", argv[0]);
        exit(2);
    }
    name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    torture_seed = host_seed(name);
    host_start(torture_cpus, frames, heap);
    host_counting_tsc = true;                /* other machines' counters may differ by more than a hand-over takes */
    deadline_ns = clock_ns() + (u64)(seconds * 1e9);
}

bool torture_over(void)
{
    if (!load_relaxed(&over) && clock_ns() >= deadline_ns)
        store_relaxed(&over, 1);
    return load_relaxed(&over);
}

/* A different stream for each thread. */
static u64 seed_of(u64 n)
{
    u64 s = (torture_seed ^ (n + 1) * 0x9e3779b97f4a7c15ull) | 1;

    for (unsigned i = 0; i < 8; i++)
        host_random(&s);
    return s;
}

static void *cpu_thread(void *arg)
{
    unsigned cpu = (unsigned)(uintptr_t)arg;
    u64 seed = seed_of(cpu);

    host_be_cpu(cpu);
    cpu_main(cpu, &seed);
    return NULL;
}

static void *agent_thread(void *arg)
{
    u64 seed = seed_of(1000);

    (void)arg;
    agent_main(&seed);
    return NULL;
}

void torture_run(void (*cpu_fn)(unsigned cpu, u64 *seed), void (*agent)(u64 *seed))
{
    pthread_t t[CPUS_MAX], a;

    cpu_main = cpu_fn;
    agent_main = agent;
    for (uintptr_t i = 0; i < torture_cpus; i++)
        pthread_create(&t[i], NULL, cpu_thread, (void *)i);
    if (agent)
        pthread_create(&a, NULL, agent_thread, NULL);
    for (unsigned i = 0; i < torture_cpus; i++)
        pthread_join(t[i], NULL);
    if (agent)
        pthread_join(a, NULL);
}

bool torture_rest(void (*check)(void))
{
    u32 r = load_acquire(&rests);

    if (atomic_faa32(&arrived, 1) + 1 == torture_cpus && env_cpu() == 0)
        goto all_here;
    while (load_acquire(&rests) == r) {
        if (env_cpu() == 0 && load_acquire(&arrived) == torture_cpus)
            goto all_here;
        host_poll();                         /* others may still be waiting for a flush */
        cpu_relax();
    }
    return load_relaxed(&stop);

all_here:
    if (check)
        check();
    store_relaxed(&stop, torture_over());
    store_relaxed(&arrived, 0);
    atomic_faa32(&rests, 1);
    return load_relaxed(&stop);
}

void impossible(const char *what, u64 value)
{
    if (atomic_faa64(&seen_impossible, 1) < 10)
        printf("%s: IMPOSSIBLE: %s (%#llx) on CPU %u\n", name, what, (unsigned long long)value, env_cpu());
}

int torture_end(const char *detail)
{
    printf("%s: %u CPUs, %s: %llu impossible\n", name, torture_cpus, detail, (unsigned long long)seen_impossible);
    return seen_impossible ? 1 : 0;
}
