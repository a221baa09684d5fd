/* SPDX-License-Identifier: MIT */
/* base/env.h in a process; described in env.h of this folder. */
#include "env.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <x86intrin.h>

#include "base/modes.h"
#include "mmu.h"
#include "pt_work.h"

struct frame *env_frame_table;
u64 env_stats[ENV_MAX_CPUS][ENV_STATS_MAX];
bool env_ptwr_on;
unsigned host_preempt;
u64 host_budget;
static struct pt_work work[ENV_MAX_CPUS];
static struct pt_work *works[ENV_MAX_CPUS];
bool host_own_clock, host_counting_tsc, host_ipi_at_once;
u64 host_ns, host_heap_left;
struct host_stall host_stall;
__thread jmp_buf *host_bug_jmp;

static __thread unsigned self;
static unsigned cpus = 1;
static char *memory;
static u64 nr_pages, tsc_count;
static struct { u32 ipi, kick; u64 ipis, kicks; } __cacheline cpu_irq[ENV_MAX_CPUS];

/* Heap pages, linked through their first bytes. */
static void *heap;
static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;

unsigned env_cpu(void) { return self; }
unsigned env_nr_cpus(void) { return cpus; }
void host_be_cpu(unsigned cpu) { self = cpu; }
void *env_map(mfn_t mfn) { return memory + (mfn.v << PAGE_SHIFT); }
mfn_t env_mfn_of(const void *page) { return MFN((u64)((const char *)page - memory) >> PAGE_SHIFT); }

u64 env_tsc(void)
{
    if (host_counting_tsc)
        return __atomic_add_fetch(&tsc_count, 1, __ATOMIC_RELAXED);
    _mm_lfence();
    return __rdtsc();
}

u64 env_now(void)
{
    struct timespec t;

    if (host_own_clock)
        return load_relaxed(&host_ns);
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

struct pt_work *env_work(void) { return &work[self]; }

struct pt_work **host_works(void)
{
    for (unsigned c = 0; c < cpus; c++)
        works[c] = &work[c];
    return works;
}

bool env_preempt(void)
{
    static __thread u64 seed;

    if (!host_preempt)
        return false;
    if (!seed)
        seed = self * 2654435761u + 1;
    return !host_below(&seed, host_preempt);
}

void (*host_on_flush)(unsigned cpu);

void env_flush_local(void)
{
    mmu_flush(self);
    if (host_on_flush)
        host_on_flush(self);
}

void env_invlpg_local(u64 va) { mmu_invlpg(self, va); }

void env_send_tlb_ipi(unsigned cpu)
{
    atomic_faa64(&cpu_irq[cpu].ipis, 1);
    if (host_ipi_at_once) {
        unsigned me = self;

        self = cpu;
        tlb_poll();
        self = me;
        return;
    }
    store_release(&cpu_irq[cpu].ipi, 1);
}

void env_kick(unsigned cpu)
{
    atomic_faa64(&cpu_irq[cpu].kicks, 1);
    store_release(&cpu_irq[cpu].kick, 1);
}

bool host_poll(void)
{
    if (load_relaxed(&cpu_irq[self].ipi) && atomic_xchg32(&cpu_irq[self].ipi, 0))
        tlb_poll();
    return load_relaxed(&cpu_irq[self].kick) && atomic_xchg32(&cpu_irq[self].kick, 0);
}

u64 host_ipis(unsigned cpu) { return load_relaxed(&cpu_irq[cpu].ipis); }
u64 host_kicks(unsigned cpu) { return load_relaxed(&cpu_irq[cpu].kicks); }

void *env_page_alloc(void)
{
    void *p = NULL;

    pthread_mutex_lock(&heap_lock);
    if (host_heap_left) {
        host_heap_left--;
        p = heap;
        memcpy(&heap, p, sizeof(heap));
    }
    pthread_mutex_unlock(&heap_lock);
    return p;
}

void env_page_free(void *page)
{
    pthread_mutex_lock(&heap_lock);
    memcpy(page, &heap, sizeof(heap));
    heap = page;
    host_heap_left++;
    pthread_mutex_unlock(&heap_lock);
}

void env_bug(const char *file, int line, const char *what)
{
    if (host_bug_jmp)
        longjmp(*host_bug_jmp, 1);
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    abort();
}

void env_rcu_stall(u64 period, u64 age_ns, const u64 *late)
{
    host_stall.reports++;
    host_stall.period = period;
    host_stall.age = age_ns;
    memcpy(host_stall.cpus, late, (cpus + 63) / 64 * 8);
}

void host_start(unsigned n, u64 frames, u64 pages)
{
    cpus = n;
    self = 0;
    nr_pages = frames + pages;
    memory = mmap(NULL, (nr_pages + 1) << PAGE_SHIFT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    env_frame_table = aligned_alloc(CACHELINE, ROUND_UP((nr_pages + 2) * sizeof(struct frame), CACHELINE));
    if (memory == MAP_FAILED || !env_frame_table) {
        fprintf(stderr, "no memory for %llu pages\n", (unsigned long long)nr_pages);
        exit(2);
    }
    memset(env_frame_table, 0, (nr_pages + 2) * sizeof(struct frame));
    max_mfn = nr_pages;
    for (u64 m = 0; m < frames; m++)
        frame_assign(frame_of(MFN(m)), HOST_DOM);
    for (u64 m = frames; m < nr_pages; m++)
        frame_of(MFN(m))->owner = OWNER_HV;
    heap = NULL;
    host_heap_left = 0;
    for (u64 m = nr_pages; m-- > frames;)
        env_page_free(env_map(MFN(m)));
    memset(cpu_irq, 0, sizeof(cpu_irq));
    memset(work, 0, sizeof(work));
    host_budget = ~0ull;
    host_preempt = 0;
    memset(&host_stall, 0, sizeof(host_stall));
    memset(env_stats, 0, sizeof(env_stats));
    memset(tlb_cpu, 0, sizeof(tlb_cpu[0]) * ENV_MAX_CPUS);
    host_on_flush = NULL;
    host_ipi_at_once = false;
    mmu_reset();
}

void host_stop(void)
{
    munmap(memory, (nr_pages + 1) << PAGE_SHIFT);
    free(env_frame_table);
    memory = NULL;
    env_frame_table = NULL;
}

u64 host_seed(const char *name)
{
    const char *s = getenv("PT_SEED");
    struct timespec t;
    u64 seed;

    clock_gettime(CLOCK_MONOTONIC, &t);
    seed = s ? strtoull(s, NULL, 0) : (u64)t.tv_nsec * 0x9e3779b97f4a7c15ull + (u64)t.tv_sec;
    if (!seed)
        seed = 1;
    printf("%s: PT_SEED=%llu\n", name, (unsigned long long)seed);
    fflush(stdout);
    return seed;
}
