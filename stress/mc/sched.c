/* SPDX-License-Identifier: MIT */
/* The scheduler: coroutines, one for each CPU, and who takes the next step.  All other actors take theirs inline. */
#include "mc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK_SIZE 65536
#define ALT_MAX    65536
#define UNFAIR     15000                 /* steps after which a schedule has to be fair */

struct run mc;
struct cpu cpus[CPUS];
struct decisions mc_taken;

static u8 stacks[CPUS][STACK_SIZE] __attribute__((aligned(64)));
static void *main_sp;
static const struct scenario *scen;
static const struct plan *plan;
static u64 rng;
static u8 order[ACTORS];                 /* PCT: by falling priority */
static u32 change_at[8];
static unsigned change_n;
static unsigned seg_at;
static u32 seg_used, avg_len = 300;
static u64 *alt;
static unsigned dev_at;

__attribute__((naked, noinline)) static void switch_to(void **save __attribute__((unused)),
                                                       void *load __attribute__((unused)))
{
    __asm__("push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
            "mov %rsp, (%rdi)\n mov %rsi, %rsp\n"
            "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n");
}

u64 mc_random(u64 *s)
{
    u64 z = *s += 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static u32 below(u32 n) { return (u32)((mc_random(&rng) >> 32) * n >> 32); }

static void leave(void)
{
    void *dummy;

    switch_to(&dummy, main_sp);
    __builtin_unreachable();
}

void mc_violation(const char *fmt, ...)
{
    __builtin_va_list ap;

    if (mc.failed)
        return;
    __builtin_va_start(ap, fmt);
    vsnprintf(mc.why, sizeof(mc.why), fmt, ap);
    __builtin_va_end(ap);
    mc.failed = true;
    if (mc.direct) {
        fprintf(stderr, "mc: while building the world: %s\n", mc.why);
        exit(3);
    }
    TRACE("VIOLATION %s", mc.why);
    if (!mc.resting)
        leave();
}

static unsigned lowest(u64 mask) { return (unsigned)__builtin_ctzll(mask); }

/* The default order: go on with the same actor; else the next CPU, buffered stores, interrupts. */
static unsigned by_default(void)
{
    u64 e = mc.enabled;

    if ((plan->eager || mc.calm) && (e & (DRAIN_MASK | IPI_MASK)))
        return lowest(e & (DRAIN_MASK | IPI_MASK));
    if (mc.cur < CPUS) {
        if (e >> mc.cur & 1)
            return mc.cur;
    } else if (mc.cur >= 3 * CPUS && mc.cur < ACTOR_PREEMPT(0) && e >> mc.cur & 1) {
        unsigned i = mc.cur - 3 * CPUS;

        if (cpus[i / NVA].walk[i % NVA].level)
            return mc.cur;
    }
    if (e & CPU_MASK) {
        unsigned from = mc.cpu;

        if (mc.cur < CPUS)
            from = (mc.cur + 1) % CPUS;
        for (unsigned i = 0; i < CPUS; i++)
            if (e >> ((from + i) % CPUS) & 1)
                return (from + i) % CPUS;
    }
    return lowest(e & (DRAIN_MASK | IPI_MASK));
}

static void set_priority(unsigned actor, unsigned to)
{
    unsigned at = 0;

    while (order[at] != actor)
        at++;
    for (; at < to; at++)
        order[at] = order[at + 1];
    for (; at > to; at--)
        order[at] = order[at - 1];
    order[at] = (u8)actor;
}

static unsigned by_pct(void)
{
    u64 e = mc.enabled;

    for (unsigned i = 0; ; i++) {
        unsigned a = order[i];

        if (!(e >> a & 1))
            continue;
        if (change_n && mc.steps >= change_at[change_n - 1]) {
            change_n--;
            set_priority(a, ACTORS - 1);
            return by_pct();
        }
        return a;
    }
}

static unsigned by_chance(void)
{
    u64 e = mc.enabled;
    unsigned k;

    if (e >> mc.cur & 1 && (mc_random(&rng) & 7))
        return mc.cur;
    if (e & CPU_MASK && (mc_random(&rng) & 3))
        e &= CPU_MASK;
    for (k = below((u32)__builtin_popcountll(e)); k; k--)
        e &= e - 1;
    return lowest(e);
}

static unsigned by_replay(void)
{
    while (seg_at < plan->replay->n) {
        const struct seg *s = &plan->replay->seg[seg_at];

        if (seg_used < s->count && mc.enabled >> s->actor & 1) {
            seg_used++;
            return s->actor;
        }
        seg_at++;
        seg_used = 0;
    }
    return by_default();
}

static unsigned by_dfs(void)
{
    unsigned a = by_default();
    u32 step = (u32)mc.steps;

    if (dev_at < plan->ndev && plan->dev[dev_at].step == step) {
        a = plan->dev[dev_at++].actor;
        if (!(mc.enabled >> a & 1))
            a = by_default();
    } else if (dev_at == plan->ndev && step < ALT_MAX) {
        alt[step] = mc.calm ? 0 : mc.enabled & ~BIT(a);
        alt[step + 1] = 0;
    }
    return a;
}

/* Everybody gets a turn: who still does not get anywhere never will. */
static unsigned by_turns(void)
{
    unsigned c = (unsigned)(mc.steps / 64) % mc.nr_cpus;

    if (mc.enabled & (DRAIN_MASK | IPI_MASK))
        return lowest(mc.enabled & (DRAIN_MASK | IPI_MASK));
    return mc.enabled >> c & 1 ? c : by_default();
}

static unsigned pick(void)
{
    if (mc.calm)
        return by_default();
    if (unlikely(mc.steps > UNFAIR))
        return by_turns();
    switch (plan->how) {
    case BY_PCT:    return by_pct();
    case BY_RANDOM: return by_chance();
    case BY_REPLAY: return by_replay();
    default:        return by_dfs();
    }
}

static void record(unsigned a)
{
    struct decisions *d = &mc_taken;

    if (d->n && d->seg[d->n - 1].actor == a) {
        d->seg[d->n - 1].count++;
        return;
    }
    if (d->n == d->max) {
        d->max = d->max ? d->max * 2 : 1024;
        d->seg = realloc(d->seg, d->max * sizeof(*d->seg));
        if (!d->seg)
            abort();
    }
    d->seg[d->n++] = (struct seg){ (u8)a, 1 };
}

/* Nobody but page walkers can do anything: time passes, waiters look again; unless that has happened often. */
static void stuck(void)
{
    bool all = true;

    for (unsigned c = 0; c < mc.nr_cpus; c++)
        all = all && cpus[c].finished;
    if (all)
        leave();
    if (++mc.jumps > 60) {
        for (unsigned c = 0; c < mc.nr_cpus; c++)
            if (cpus[c].blocked)
                mc_violation("deadlock: CPU %u waits for ever", c);
        mc_violation("deadlock");
    }
    mc.clock += 100000;
    mc_wake_waiters(CPUS);
}

/* Lets other actors run until a CPU is to take the next step; switches to it. */
static void next_step(void **save)
{
    unsigned a;

    for (;;) {
        if (unlikely(++mc.steps > mc.limit))
            mc_violation("no progress in %llu steps", (unsigned long long)mc.limit);
        mc.clock++;
        if (unlikely(!(mc.enabled & (CPU_MASK | DRAIN_MASK | IPI_MASK)))) {
            stuck();
            continue;
        }
        a = pick();
        record(a);
        mc.cur = a;
        if (a < CPUS)
            break;
        if (a < 2 * CPUS) {
            mc_drain_one(a - CPUS);
        } else if (a < 3 * CPUS) {
            struct cpu *c = &cpus[a - 2 * CPUS];

            TRACE("c%u interrupt arrives", a - 2 * CPUS);
            c->ipi_here = true;
            mc.enabled &= ~BIT(a);
            if (c->at_rest && !c->finished)
                mc.enabled |= BIT(ACTOR_CPU(a - 2 * CPUS));
        } else if (a >= ACTOR_PREEMPT(0)) {
            TRACE("c%u is to suspend its work", a - ACTOR_PREEMPT(0));
            cpus[a - ACTOR_PREEMPT(0)].preempted = true;
            mc.enabled &= ~BIT(a);
        } else {
            unsigned i = a - 3 * CPUS;

            mmu_step(i / NVA, i % NVA, false);
            if (plan->how == BY_PCT && !cpus[i / NVA].walk[i % NVA].level)
                set_priority(a, below(ACTORS));
        }
    }
    if (a != mc.cpu || save == &main_sp) {
        mc.cpu = a;
        switch_to(save, cpus[a].sp);
    }
}

void mc_point(void)
{
    if (unlikely(mc.direct || mc.resting)) {
        mc.clock++;
        return;
    }
    next_step(&cpus[mc.cpu].sp);
}

/* Long work may be suspended here: another scheduling step decides. */
bool env_preempt(void)
{
    struct cpu *c = &cpus[mc.cpu];
    unsigned self = mc.cpu;

    if (mc.direct || mc.resting || mc.calm || !c->preempts)
        return false;
    mc.enabled |= BIT(ACTOR_PREEMPT(self));
    mc_point();
    mc.enabled &= ~BIT(ACTOR_PREEMPT(self));
    if (!c->preempted)
        return false;
    c->preempted = false;
    c->preempts--;
    return true;
}

void mc_wake_waiters(unsigned except)
{
    for (unsigned c = 0; c < mc.nr_cpus; c++) {
        if (c != except && cpus[c].blocked) {
            cpus[c].blocked = false;
            mc.enabled |= BIT(ACTOR_CPU(c));
        }
    }
    if (except < CPUS)
        mc.jumps = 0;
}

void mc_relax(void)
{
    struct cpu *c = &cpus[mc.cpu];

    if (mc.direct)
        mc_violation("waiting while alone");
    c->blocked = true;
    mc.enabled &= ~BIT(ACTOR_CPU(mc.cpu));
    mc_point();
    c->blocked = false;                  /* an interrupt may have woken it */
}

static void coroutine(void)
{
    unsigned c = mc.cpu;
    void *dummy;

    cpu_program(c, scen);
    cpus[c].finished = true;
    mc.enabled &= ~BIT(ACTOR_CPU(c));
    next_step(&dummy);
    __builtin_unreachable();
}

static void start_cpu(unsigned c)
{
    void **sp = (void **)(void *)(stacks[c] + STACK_SIZE - 64);

    *--sp = NULL;
    *--sp = (void *)coroutine;
    for (unsigned i = 0; i < 6; i++)
        *--sp = NULL;
    cpus[c].sp = sp;
    mc.enabled |= BIT(ACTOR_CPU(c));
}

static void shuffle(void)
{
    for (unsigned i = 0; i < ACTORS; i++) {
        unsigned k = below(i + 1);

        order[i] = order[k];
        order[k] = (u8)i;
    }
    change_n = MIN(plan->depth, ARRAY_SIZE(change_at));
    for (unsigned i = 0; i < change_n; i++) {
        u32 at = below(avg_len + 1);
        unsigned k = i;

        for (; k > 0 && change_at[k - 1] < at; k--)      /* falling order: the next one is the last */
            change_at[k] = change_at[k - 1];
        change_at[k] = at;
    }
}

bool mc_run(const struct scenario *s, const struct plan *p)
{
    scen = s;
    plan = p;
    rng = p->seed;
    world_reset(s);
    mc_taken.n = 0;
    seg_at = seg_used = dev_at = 0;
    if (p->how == BY_PCT)
        shuffle();
    if (p->how == BY_DFS && !alt) {
        alt = calloc(ALT_MAX + 2, sizeof(*alt));
        if (!alt)
            abort();
    }
    for (unsigned c = 0; c < s->cpus; c++) {
        start_cpu(c);
        if (p->prefill >> c & 1)
            mmu_prefill(c);
    }
    mc.cpu = 0;
    mc.cur = 0;
    next_step(&main_sp);
    avg_len += ((s32)mc.steps - (s32)avg_len) / 8;
    mc.resting = true;
    if (!mc.failed)
        oracle_rest();
    return !mc.failed;
}

u64 mc_alternatives(u32 i) { return i < ALT_MAX ? alt[i] : 0; }
