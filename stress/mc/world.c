/* SPDX-License-Identifier: MIT */
/* The world that scenarios start from: a domain with two kernel roots, a user root, tables and candidates for tables;
 * and what mm-lockfree binds above itself. */
#include "mc.h"

#include "pt_meta.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { R0 = 1, U0, R1, R2, A0, A1, B0, B1, C0, C1, C2, K3, K2, K1, D0, D1, D2, D3, E0 };
static const char *const names[FRAMES] = {
    "-", "r0", "u0", "r1", "r2", "a0", "a1", "b0", "b1", "c0", "c1", "c2", "k3", "k2", "k1",
    "d0", "d1", "d2", "d3", "e0",
};

struct mm_domain mc_dom;
u8 mc_released[FRAMES];
u64 mc_metas;
struct frame *env_frame_table = mc_frames;
u64 env_stats[ENV_MAX_CPUS][ENV_STATS_MAX];
u64 env_stats[ENV_MAX_CPUS][ENV_STATS_MAX];
bool env_ptwr_on;

static struct pt_work work[CPUS] __attribute__((section("mcstate"), aligned(64))), *works[CPUS];
u64 host_budget = ~0ull;                 /* suspended by env_preempt() only */
static unsigned pages;                   /* of mc_hv in use */
static u8 oom;

#define CALLS 64
static struct call { struct rcu_head *head; void (*func)(struct rcu_head *); u32 section[CPUS]; u8 busy, in_hv[CPUS]; }
    calls[CALLS];
static unsigned calls_pending;
static struct rcu_head dead_head[FRAMES];

static struct image {
    char *state;
    u8 mem[FRAMES][PAGE_SIZE], hv[2][PAGE_SIZE];
    struct ptwr_dom ptwr;
    struct frame frames[FRAMES];
    struct cpu cpus[CPUS];
    struct mm_domain dom;
    unsigned pages;
    u64 metas, clock;
} images[2];
static int current = -1;

const char *world_name(unsigned f) { return f < FRAMES ? names[f] : "?"; }

unsigned world_frame(const char *name, unsigned len)
{
    for (unsigned f = 1; f < FRAMES; f++)
        if (strlen(names[f]) == len && !memcmp(names[f], name, len))
            return f;
    return 0;
}

/* Bound for mm-lockfree ------------------------------------------------------------------------------- */

unsigned env_cpu(void) { return mc.cpu; }
unsigned env_nr_cpus(void) { return mc.nr_cpus; }

u64 env_tsc(void)
{
    mc_point();
    return mc.clock >> 1;                /* coarse: two CPUs may read the same */
}
u64 env_now(void) { return mc.clock * 10000; }

void *env_map(mfn_t mfn)
{
    if (mfn.v >= FRAMES)
        mc_violation("frame %llu is outside memory", (unsigned long long)mfn.v);
    return mc_mem[mfn.v];
}

void env_flush_local(void)
{
    mc_point();
    mc_drain_all();
    TRACE("c%u flushes its TLB", mc.cpu);
    mmu_flush(mc.cpu);
}

static void interrupt(unsigned cpu)
{
    if (mc.direct) {
        unsigned was = mc.cpu;

        mc.cpu = cpu;
        tlb_poll();
        mc.cpu = was;
        return;
    }
    mc_point();
    TRACE("c%u sends an interrupt to c%u", mc.cpu, cpu);
    mc_drain_all();
    if (!cpus[cpu].ipi_here)
        mc.enabled |= BIT(ACTOR_IPI(cpu));
}
void env_send_tlb_ipi(unsigned cpu) { interrupt(cpu); }
void env_kick(unsigned cpu) { interrupt(cpu); }

struct pt_work *env_work(void) { return &work[mc.cpu]; }

void *env_page_alloc(void) { return pages < HV_PAGES ? mc_hv[pages++] : NULL; }
void env_page_free(void *page) { (void)page; }

void env_bug(const char *file, int line, const char *what)
{
    const char *base = strrchr(file, '/');

    mc_violation("BUG_ON(%s) at %s:%d", what, base ? base + 1 : file, line);
    abort();
}

void env_rcu_stall(u64 seq, u64 ns, const u64 *late) { (void)seq; (void)ns; (void)late; }

bool env_io_allowed(struct mm_domain *d, mfn_t mfn)
{
    (void)d;
    return mfn.v >= FRAMES;
}
void env_batch_failed(u64 token) { (void)token; }
void env_ptwr_bad_entry(void) { TRACE("c%u a bad entry was left in an open table", mc.cpu); }

bool pt_segdesc_ok(u64 *page)
{
    unsigned f = (unsigned)(((u8 *)page - mc_mem[0]) / (long)PAGE_SIZE);

    if (mc_writers[f])
        mc_violation("%s is checked as descriptors and a CPU can still write it", names[f]);
    return true;
}

/* RCU and metas ---------------------------------------------------------------------------------------- */

static void called(struct rcu_head *head)
{
    struct call *k = calls;

    while (k < calls + CALLS && (!k->busy || k->head != head))
        k++;
    if (k == calls + CALLS) {
        mc_violation("a callback ran that nobody queued");
        return;
    }
    for (unsigned c = 0; c < mc.nr_cpus; c++)
        if (k->in_hv[c] && cpus[c].section == k->section[c])
            mc_violation("an RCU callback ran while CPU %u was still in its read section", c);
    k->busy = 0;
    k->func(head);
    calls_pending--;                     /* now it is done: whoever waits for it may leave */
}

/* Stands in for call_rcu() in the sources: remembers who is in a read section now. */
void mc_call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
    struct call *k = calls;

    for (unsigned i = 0; i < CALLS; i++)
        if (calls[i].busy && calls[i].head == head)
            mc_violation("queued for RCU twice");
    while (k < calls + CALLS && k->busy)
        k++;
    if (k == calls + CALLS)
        mc_violation("too many RCU callbacks");
    *k = (struct call){ .head = head, .func = func, .busy = 1 };
    calls_pending++;
    for (unsigned c = 0; c < mc.nr_cpus; c++) {
        k->in_hv[c] = cpus[c].in_hv && !cpus[c].idle;
        k->section[c] = cpus[c].section;
    }
    if ((u8 *)head >= mc_hv[0] && (u8 *)head < mc_hv[0] + sizeof(mc_hv))
        mc_metas--;
    call_rcu(head, called);
}

bool mc_rcu_pending(void) { return calls_pending; }

struct pt_meta *mc_meta_alloc(void)
{
    struct pt_meta *m;

    if (oom && !--oom)
        return NULL;
    m = pt_meta_alloc();
    if (m)
        mc_metas++;
    return m;
}

/* A dead frame after its grace period: when no CPU can have it cached, it goes to another domain. */
static void reuse(struct rcu_head *head)
{
    unsigned f = (unsigned)(head - dead_head);
    struct tlb_set s;

    tlb_set_clear(&s);
    for (unsigned c = 0; c < mc.nr_cpus; c++)
        if (load_acquire(&tlb_cpu[c].as) != AS_NONE && load_acquire(&tlb_cpu[c].flush_time) <= mc_frames[f].stamp)
            tlb_set_add(&s, c);
    tlb_flush_set(&s);
    TRACE("c%u gives %s to another owner", mc.cpu, names[f]);
    frame_assign(&mc_frames[f], 2);
    mc_drain_all();
}

void env_frame_dead(struct frame *f)
{
    unsigned n = (unsigned)(f - mc_frames);

    TRACE("c%u %s is dead", mc.cpu, names[n]);
    if (!(f->fw & FW_DEAD))
        mc_violation("%s is reported dead and is not", names[n]);
    /* Before the grace period: who reads the owner after it, and the word later, must not find the domain's name. */
    store_relaxed(&f->owner, OWNER_NONE);
    atomic_fence();
    mc_call_rcu(&dead_head[n], reuse);
}

/* The first world --------------------------------------------------------------------------------------- */

static void put(unsigned f, unsigned i, unsigned target, char how) { *mc_slot(f, i) = entry_of(target, how); }
static void die(const char *what)
{
    fprintf(stderr, "mc: cannot build the world: %s\n", what);
    exit(2);
}

static void contents(void)
{
    put(C0, 0, D0, 'w');
    put(C0, 1, D1, 'o');
    put(C1, 0, D1, 'w');
    put(C1, 1, D2, 'o');
    put(C2, 0, D2, 'w');
    put(B0, 0, C0, 'h');
    put(B1, 0, C1, 'h');
    put(A0, 0, B0, 'h');
    put(A1, 0, B1, 'h');
    put(R0, 0, A0, 'h');
    put(U0, 0, A0, 'h');
    put(R2, 0, A1, 'h');
    put(D3, 0, D0, 'w');
    put(D3, 1, K1, 'w');                 /* refused: a table */
    put(K3, 0, K2, 'h');
    put(K2, 0, K1, 'h');
    put(R0, 272, K3, 'h');
    put(R1, 272, K3, 'h');
    put(R2, 272, K3, 'h');
    for (unsigned f = 1; f < FRAMES; f++) {
        bool table = f == R0 || f == U0 || f == R1 || f == A0 || f == B0 || f == C0 || f == K3 || f == K2 || f == K1;

        if (f != E0)
            put(K1, f, f, table ? 'o' : 'w');
        for (unsigned i = 0; i < 3; i++)
            mc_interesting[f][i] = 1;
        if (f <= R2)
            mc_interesting[f][256] = mc_interesting[f][257] = mc_interesting[f][272] = 1;
    }
    for (unsigned i = 0; i < FRAMES; i++)
        mc_interesting[K1][i] = 1;
}

static void build(bool ptwr)
{
    struct image *im = &images[ptwr];
    u64 size = (u64)(__stop_mcstate - __start_mcstate);
    static char *first;

    if (!first) {
        first = malloc(size);
        if (!first)
            die("no memory");
        memcpy(first, __start_mcstate, size);
    }
    memcpy(__start_mcstate, first, size);
    memset(mc_mem, 0, sizeof(mc_mem));
    memset(mc_frames, 0, sizeof(mc_frames));
    memset(cpus, 0, sizeof(cpus));
    memset(&mc, 0, sizeof(mc));
    mc_metas = pages = 0;
    mc.direct = true;
    mc.nr_cpus = CPUS;
    mc.clock = 1000;
    max_mfn = FRAMES;
    pt_phys_mask = ~0ull >> 12 & PTE_MFN_MASK;
    pt_hv_slots[1] = entry_of(E0, 'h') & ~PTE_US;
    mc_dom = (struct mm_domain){ .owner = 1, .nr_work = CPUS, .work = works };
    for (unsigned c = 0; c < CPUS; c++)
        works[c] = &work[c];
    env_ptwr_on = ptwr;
    oracle_reset();
    for (unsigned f = 1; f < FRAMES; f++) {
        mc_frames[f].fw = FW_DEAD;
        frame_assign(&mc_frames[f], f == E0 ? 3 : 1);
    }
    contents();
    mc.cpu = 0;
    if (pt_pin(&mc_dom, MFN(R0), FT_L4) || pt_pin(&mc_dom, MFN(U0), FT_L4) || pt_pin(&mc_dom, MFN(R1), FT_L4) ||
        pt_pin(&mc_dom, MFN(C0), FT_L1))
        die("pins");
    if (ptwr && !ptwr_init(&mc_dom, true))
        die("ptwr");
    for (unsigned c = 0; c < CPUS; c++) {
        mc.cpu = c;
        cpus[c].root_kernel = MFN(c == 2 ? R1 : R0);
        cpus[c].root_user = MFN(U0);
        cpus[c].guest_kernel = true;
        if (pt_get_type(&mc_dom, cpus[c].root_kernel, FT_L4) || pt_get_type(&mc_dom, MFN(U0), FT_L4))
            die("roots");
        if (pt_mark_user_root(&mc_dom, &mc_frames[U0]))
            die("user root");
        guest_load_root(&cpus[c]);
        rcu_quiescent();
    }
    mmu_reset(0);
    im->state = malloc(size);
    if (!im->state)
        die("no memory");
    memcpy(im->state, __start_mcstate, size);
    memcpy(im->mem, mc_mem, sizeof(mc_mem));
    memcpy(im->hv, mc_hv, sizeof(im->hv));
    memcpy(im->frames, mc_frames, sizeof(mc_frames));
    memcpy(im->cpus, cpus, sizeof(cpus));
    if (ptwr)
        im->ptwr = *mc_dom.ptwr;
    im->dom = mc_dom;
    im->pages = pages;
    im->metas = mc_metas;
    im->clock = mc.clock + 2;
}

void world_init(void)
{
    build(false);
    build(true);
}

void world_reset(const struct scenario *s)
{
    const struct image *im = &images[s->ptwr];

    if (current != s->ptwr) {
        memcpy(mc_mem, im->mem, sizeof(mc_mem));
        mc_undo_mark();
        current = s->ptwr;
    }
    mc_undo();
    memcpy(__start_mcstate, im->state, (u64)(__stop_mcstate - __start_mcstate));
    memcpy(mc_hv[0], im->hv[0], PAGE_SIZE);
    memcpy(mc_frames, im->frames, sizeof(mc_frames));
    memcpy(cpus, im->cpus, sizeof(cpus));
    mc_dom = im->dom;
    if (s->ptwr)
        *mc_dom.ptwr = im->ptwr;
    pages = im->pages;
    mc_metas = im->metas;
    env_ptwr_on = s->ptwr;
    oom = s->oom;
    if (calls_pending)
        memset(calls, 0, sizeof(calls));
    calls_pending = 0;
    memset(mc_released, 0, sizeof(mc_released));
    mc = (struct run){ .clock = im->clock, .limit = 30000, .nr_cpus = s->cpus, .steady = s->steady };
    for (unsigned c = 0; c < CPUS; c++)
        cpus[c].preempts = s->preempts;
    mmu_set_watch(s->watch);
    oracle_reset();
    mmu_reset(s->pages);
    mc.direct = true;
    setup_program(s);
    mc.direct = false;
    mc.clock += 2;
}
