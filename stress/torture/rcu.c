/* SPDX-License-Identifier: MIT */
/* Tortures RCU: readers follow pointers to objects that updaters replace, freed by callbacks or after polled completion,
 * while CPUs go idle and come back.  An object that is seen after its death was freed too early. */
#include "rcu.h"

#include <stdlib.h>
#include <string.h>

#include "torture.h"

#define SLOTS   8
#define ALIVE   0x600d600d600d600dull
#define DEAD    0xdeaddeaddeaddeadull
#define POLLED  64

struct object { struct rcu_head rcu; u64 state, cpu, number; };
static struct object *slot[SLOTS];
static u64 made, freed, reads, polled;
static struct { u64 queued, run; } __cacheline order[64];

static struct object *make(void)
{
    struct object *o = malloc(sizeof(*o));

    o->state = ALIVE;
    atomic_faa64(&made, 1);
    return o;
}

static void kill(struct object *o)
{
    if (load_relaxed(&o->state) != ALIVE)
        impossible("freed twice", o->state);
    store_relaxed(&o->state, DEAD);
    atomic_faa64(&freed, 1);
    free(o);
}

static void on_free(struct rcu_head *h)
{
    struct object *o = container_of(h, struct object, rcu);

    if (o->cpu != env_cpu())
        impossible("callback on another CPU than it was queued on", o->cpu);
    if (o->number != order[o->cpu].run++)
        impossible("callbacks out of order", o->number);
    kill(o);
}

static struct object *replace(u64 *seed)
{
    struct object *new = make();

    return (struct object *)atomic_xchg64((u64 *)(void *)&slot[host_below(seed, SLOTS)], (u64)new);
}

static void look(const struct object *o)
{
    if (load_relaxed(&o->state) != ALIVE)
        impossible("a dead object was reachable", o->state);
}

static void cpu(unsigned self, u64 *seed)
{
    struct { struct object *o; u64 state; } wait[POLLED] = { 0 };
    u64 my_reads = 0, my_polled = 0;

    while (!torture_over()) {
        const struct object *held[4];
        unsigned what = host_below(seed, 32), n = 1 + host_below(seed, 4);

        /* A read section: some pointers are kept over whatever happens until the next quiescent point. */
        for (unsigned i = 0; i < n; i++)
            look(held[i] = rcu_dereference(slot[host_below(seed, SLOTS)]));
        my_reads += n;
        if (what < 6) {
            struct object *o = replace(seed);

            o->cpu = self;
            o->number = order[self].queued++;
            call_rcu(&o->rcu, on_free);
        } else if (what < 9) {
            unsigned i = host_below(seed, POLLED);

            if (!wait[i].o) {
                wait[i].o = replace(seed);
                wait[i].state = what & 1 ? get_state_synchronize_rcu() : start_poll_synchronize_rcu();
            } else if (poll_state_synchronize_rcu(wait[i].state)) {
                kill(wait[i].o);
                wait[i].o = NULL;
                my_polled++;
            }
        } else if (what == 9) {
            cpu_relax();
        }
        for (unsigned i = 0; i < n; i++)
            look(held[i]);
        if (what > 20 || host_poll())
            rcu_quiescent();
        if (what == 31) {
            rcu_quiescent();
            rcu_idle_enter();
            for (unsigned i = host_below(seed, 3); i > 0; i--)
                cpu_relax();
            rcu_idle_exit();
        }
    }
    /* All that was queued must run in the end, and what is polled for must complete. */
    for (unsigned i = 0; i < POLLED; i++) {
        while (wait[i].o && !poll_state_synchronize_rcu(wait[i].state)) {
            rcu_quiescent();
            cpu_relax();
        }
        if (wait[i].o)
            kill(wait[i].o);
    }
    atomic_faa64(&reads, my_reads);
    atomic_faa64(&polled, my_polled);
    while (load_relaxed(&freed) + SLOTS < load_relaxed(&made)) {
        rcu_quiescent();
        cpu_relax();
    }
    rcu_quiescent();
    rcu_idle_enter();
}

int main(int argc, char **argv)
{
    char detail[160];

    torture_init(argc, argv, 1, 0);
    for (unsigned i = 0; i < SLOTS; i++)
        slot[i] = make();
    torture_run(cpu, NULL);
    if (freed + SLOTS != made)
        impossible("objects lost", made - freed);
    for (unsigned i = 0; i < SLOTS; i++)
        free(slot[i]);
    snprintf(detail, sizeof(detail), "%llu reads, %llu freed (%llu polled), %llu periods, %llu kicks", (unsigned long long)reads,
             (unsigned long long)freed, (unsigned long long)polled, (unsigned long long)stat_sum(STAT_rcu_gp),
             (unsigned long long)stat_sum(STAT_rcu_kick));
    if (!stat_sum(STAT_rcu_gp))
        impossible("no period ended", 0);
    return torture_end(detail);
}
