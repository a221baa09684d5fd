/* SPDX-License-Identifier: MIT */
/* Command line: explores the directed scenarios systematically and random ones by random priorities; prints, shrinks
 * and replays what fails. */
#include "mc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

bool mc_trace;

static struct totals { u64 scenarios, runs, steps, violations; } *shared, mine;
static u64 target_steps = 100000000, seed0 = 1, dfs_cap = 40000, pct_runs = 2000;
static bool first_only, random_too = true;

void mc_tracef(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    printf("%5llu ", (unsigned long long)mc.steps);
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
}

/* Decision strings: c0*12,m1.4*3,d0,i1 */
static void print_decisions(const struct decisions *d)
{
    for (unsigned i = 0; i < d->n; i++) {
        unsigned a = d->seg[i].actor;

        printf("%s", i ? "," : "");
        if (a >= ACTOR_PREEMPT(0))
            printf("p%u", a - ACTOR_PREEMPT(0));
        else if (a < 3 * CPUS)
            printf("%c%u", "cdi"[a / CPUS], a % CPUS);
        else
            printf("m%u.%u", (a - 3 * CPUS) / NVA, (a - 3 * CPUS) % NVA);
        if (d->seg[i].count > 1)
            printf("*%u", d->seg[i].count);
    }
    putchar('\n');
}

static bool parse_decisions(struct decisions *d, const char *p)
{
    d->n = 0;
    d->max = (unsigned)strlen(p) + 1;
    d->seg = calloc(d->max, sizeof(*d->seg));
    while (d->seg && *p) {
        unsigned cpu, v = 0, count = 1;
        char kind = *p;
        const char *at = strchr("cdi", kind);

        if (!kind || (!at && kind != 'm' && kind != 'p'))
            return false;
        cpu = (unsigned)strtoul(p + 1, (char **)&p, 10);
        if (kind == 'm' && *p == '.')
            v = (unsigned)strtoul(p + 1, (char **)&p, 10);
        if (*p == '*')
            count = (unsigned)strtoul(p + 1, (char **)&p, 10);
        if (cpu >= CPUS || v >= NVA || (*p && *p++ != ','))
            return false;
        d->seg[d->n].actor = (u8)(kind == 'm' ? ACTOR_MMU(cpu, v) : kind == 'p' ? ACTOR_PREEMPT(cpu) : (unsigned)(at - "cdi") * CPUS + cpu);
        d->seg[d->n++].count = count;
    }
    return d->seg != NULL;
}

static bool fails(const struct scenario *s, const struct plan *p)
{
    bool ok = mc_run(s, p);

    mine.runs++;
    mine.steps += mc.steps;
    return !ok;
}

/* Delta debugging: leaves out ever smaller pieces of the schedule as long as it still fails. */
static void shrink(const struct scenario *s, struct plan *p, struct decisions *d)
{
    struct decisions t = { malloc(d->n * sizeof(*d->seg)), 0, d->n };

    p->how = BY_REPLAY;
    p->replay = &t;
    for (unsigned size = (d->n + 1) / 2; size && t.seg; size = size > 1 ? (size + 1) / 2 : 0) {
        bool any;

        do {
            any = false;
            for (unsigned at = 0; at < d->n;) {
                unsigned n = MIN(size, d->n - at);

                memcpy(t.seg, d->seg, at * sizeof(*t.seg));
                memcpy(t.seg + at, d->seg + at + n, (d->n - at - n) * sizeof(*t.seg));
                t.n = d->n - n;
                if (fails(s, p)) {
                    memcpy(d->seg, t.seg, t.n * sizeof(*t.seg));
                    d->n = t.n;
                    any = true;
                } else {
                    at += n;
                }
            }
        } while (any && size == 1);
    }
    p->replay = d;
    fails(s, p);
    free(t.seg);
}

static void report(const struct scenario *s, const struct plan *p)
{
    struct decisions d = { malloc(mc_taken.n * sizeof(*d.seg)), mc_taken.n, mc_taken.n };
    struct plan again = *p;
    char text[2048];
    u64 steps = mine.steps;

    mine.violations++;
    memcpy(d.seg, mc_taken.seg, d.n * sizeof(*d.seg));
    scenario_print(s, text, sizeof(text));
    printf("VIOLATION in %s after %llu steps: %s\n  scenario  %s\n", s->name, (unsigned long long)steps, mc.why, text);
    if (!first_only) {
        shrink(s, &again, &d);
        printf("  shrunk to %s\n  replay    build/mc/mc --replay --eager %u --prefill %u --scenario '%s' --decisions ",
               mc.why, p->eager, p->prefill, text);
        print_decisions(&d);
    }
    free(d.seg);
    fflush(stdout);
}

/* Departures from the default order, at most @p->ndev + @left of them.  False: something failed. */
static bool dfs(const struct scenario *s, struct plan *p, unsigned left, u64 *runs)
{
    u32 first = p->ndev ? p->dev[p->ndev - 1].step + 1 : 0, n = 0;
    struct { u32 step; u8 actor; } *todo;

    if (*runs == 0)
        return true;
    --*runs;
    if (fails(s, p)) {
        report(s, p);
        return false;
    }
    if (!left)
        return true;
    for (u32 i = first; i <= mc.steps; i++)
        n += (u32)__builtin_popcountll(mc_alternatives(i));
    todo = malloc(n * sizeof(*todo) + 1);
    n = 0;
    for (u32 i = first; i <= mc.steps; i++) {
        for (u64 m = mc_alternatives(i); m; m &= m - 1) {
            todo[n].step = i;
            todo[n++].actor = (u8)__builtin_ctzll(m);
        }
    }
    for (u32 i = 0; i < n; i++) {
        p->dev[p->ndev].step = todo[i].step;
        p->dev[p->ndev++].actor = todo[i].actor;
        if (!dfs(s, p, left - 1, runs)) {
            free(todo);
            return false;
        }
        p->ndev--;
    }
    free(todo);
    return true;
}

static bool explore_random(const struct scenario *s, u64 seed, u64 runs)
{
    for (u64 i = 0; i < runs; i++) {
        u64 rng = seed * 1000003 + i;
        struct plan p = { .how = i % 4 ? BY_PCT : BY_RANDOM, .seed = rng };

        p.prefill = mc_random(&rng) & 7;
        p.eager = mc_random(&rng) & 1;
        p.depth = (u8)(mc_random(&rng) % 6);
        if (fails(s, &p)) {
            report(s, &p);
            return false;
        }
    }
    return true;
}

static bool explore_directed(const struct scenario *s, unsigned bound)
{
    mine.scenarios++;
    for (unsigned v = 0; v < 4; v++) {
        struct plan p = { .how = BY_DFS, .eager = v & 1, .prefill = v & 2 ? 7 : 0 };

        /* One departure completely, then two as far as the budget goes. */
        for (unsigned b = 1; b <= bound; b++) {
            u64 runs = dfs_cap;

            if (!dfs(s, &p, b, &runs))
                return false;
        }
    }
    return explore_random(s, seed0, pct_runs);
}

static void directed(unsigned i, struct scenario *s)
{
    if (!scenario_parse(s, mc_directed[i].text)) {
        fprintf(stderr, "mc: directed scenario %s is malformed\n", mc_directed[i].name);
        exit(2);
    }
    snprintf(s->name, sizeof(s->name), "%s", mc_directed[i].name);
}

/* The share of job @job of @jobs. */
static bool work(unsigned job, unsigned jobs)
{
    struct scenario s;
    u64 end;

    for (unsigned i = job; i < mc_nr_directed; i += jobs) {
        directed(i, &s);
        if (!explore_directed(&s, s.pages ? 4 : 2) && first_only)
            return false;
    }
    if (!random_too)
        return true;
    end = mine.steps + target_steps / jobs;
    for (u64 k = job; mine.steps < end; k += jobs) {
        scenario_random(&s, seed0 * 1000000 + k);
        mine.scenarios++;
        if (!explore_random(&s, k, 100) && first_only)
            return false;
        if (mine.violations > 5)
            return false;
    }
    return true;
}

/* Until something fails: a little of everything, then ever more of it. */
static int hunt(void)
{
    u64 all = target_steps;

    for (u64 n = 40; mine.steps < all; n *= 6) {
        dfs_cap = n;
        pct_runs = 2 * n;
        random_too = n > 40;
        seed0++;
        target_steps = mine.steps;
        if (!work(0, 1))
            return 1;
    }
    printf("mc: nothing found in %llu steps\n", (unsigned long long)mine.steps);
    return 0;
}

static int run_jobs(unsigned jobs)
{
    struct timespec t0, t1;
    struct totals sum = { 0 };
    double s;

    clock_gettime(CLOCK_MONOTONIC, &t0);
    shared = mmap(NULL, jobs * sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 2;
    fflush(stdout);
    for (unsigned j = 0; j < jobs; j++) {
        pid_t pid = jobs > 1 ? fork() : 0;

        if (!pid) {
            work(j, jobs);
            shared[j] = mine;
            fflush(stdout);
            if (jobs > 1)
                _exit(0);
        }
    }
    for (unsigned j = 0; jobs > 1 && j < jobs; j++) {
        int status;

        if (wait(&status) < 0 || status) {
            fprintf(stderr, "mc: a worker ended with status %#x\n", status);
            return 2;
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &t1);
    for (unsigned j = 0; j < jobs; j++) {
        sum.scenarios += shared[j].scenarios;
        sum.runs += shared[j].runs;
        sum.steps += shared[j].steps;
        sum.violations += shared[j].violations;
    }
    s = (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec);
    printf("%s mc: %llu scenarios, %llu runs, %llu steps, %.1f M steps/s, %llu violations\n",
           sum.violations ? "FAIL" : "PASS", (unsigned long long)sum.scenarios, (unsigned long long)sum.runs,
           (unsigned long long)sum.steps, (double)sum.steps / s / 1e6, (unsigned long long)sum.violations);
    puts(sum.violations ? "0 passed, 1 failed" : "1 passed, 0 failed");
    return sum.violations ? 1 : 0;
}

static int replay(const char *text, const char *decisions, struct plan p, bool verbose)
{
    struct decisions d = { 0 };
    struct scenario s;

    if (!text || !scenario_parse(&s, text) || (decisions && !parse_decisions(&d, decisions))) {
        fprintf(stderr, "mc: --replay needs --scenario, and --decisions as printed\n");
        return 2;
    }
    strcpy(s.name, "replay");
    p.how = BY_REPLAY;
    p.replay = &d;
    mc_trace = verbose;
    if (fails(&s, &p)) {
        printf("VIOLATION after %llu steps: %s\n", (unsigned long long)mc.steps, mc.why);
        return 1;
    }
    printf("no violation in %llu steps\n", (unsigned long long)mc.steps);
    return 0;
}

static int one_scenario(const char *text)
{
    struct scenario s;

    for (unsigned i = 0; i < mc_nr_directed; i++)
        if (!strcmp(text, mc_directed[i].name))
            text = mc_directed[i].text;
    if (!scenario_parse(&s, text)) {
        fprintf(stderr, "mc: cannot parse the scenario\n");
        return 2;
    }
    strcpy(s.name, "given");
    explore_directed(&s, s.pages ? 4 : 2);
    printf("mc: %llu runs, %llu steps, %llu violations\n", (unsigned long long)mine.runs,
           (unsigned long long)mine.steps, (unsigned long long)mine.violations);
    return mine.violations ? 1 : 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: mc [--steps N] [--seed N] [--jobs N] [--dfs RUNS] [--pct RUNS] [--first]\n"
                    "       mc --scenario TEXT|NAME\n"
                    "       mc --replay --scenario TEXT --decisions STRING [--eager 0|1] [--prefill MASK] [--trace]\n"
                    "       mc --list\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *text = NULL, *decisions = NULL;
    bool again = false, verbose = false;
    struct plan p = { 0 };
    unsigned jobs = 1;

    world_init();
    for (int i = 1; i < argc; i++) {
        const char *o = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;

        if (!strcmp(o, "--replay")) { again = true; continue; }
        if (!strcmp(o, "--trace")) { verbose = true; continue; }
        if (!strcmp(o, "--first")) { first_only = true; continue; }
        if (!strcmp(o, "--list")) {
            for (unsigned k = 0; k < mc_nr_directed; k++)
                printf("%-16s %s\n", mc_directed[k].name, mc_directed[k].text);
            return 0;
        }
        if (!v)
            return usage();
        i++;
        if (!strcmp(o, "--steps")) target_steps = strtoull(v, NULL, 10);
        else if (!strcmp(o, "--seed")) seed0 = strtoull(v, NULL, 10);
        else if (!strcmp(o, "--jobs")) jobs = (unsigned)strtoul(v, NULL, 10);
        else if (!strcmp(o, "--dfs")) dfs_cap = strtoull(v, NULL, 10);
        else if (!strcmp(o, "--pct")) pct_runs = strtoull(v, NULL, 10);
        else if (!strcmp(o, "--scenario")) text = v;
        else if (!strcmp(o, "--decisions")) decisions = v;
        else if (!strcmp(o, "--eager")) p.eager = *v == '1';
        else if (!strcmp(o, "--prefill")) p.prefill = (u8)strtoul(v, NULL, 10);
        else return usage();
    }
    if (again)
        return replay(text, decisions, p, verbose);
    if (text)
        return one_scenario(text);
    return first_only ? hunt() : run_jobs(jobs ? jobs : 1);
}
