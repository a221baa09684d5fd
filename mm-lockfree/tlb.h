/* SPDX-License-Identifier: MIT */
/* TLB safety: who may still hold a translation, and how it is told to drop it.
 *
 * No guest translation is global and PCIDs are not used, so every CR3 load drops everything guests had
 * on that CPU.  What a CPU holds therefore stems from the root it has loaded now, since flush_time.
 *
 * State       per CPU: word = generation << 1 | pending (requesters, CAS; owner clears pending);
 *             ack = generation flushed; flush_time = TSC before its last full flush; as = address space
 *             loaded (0 none, AS_ANY while changing); mode: odd while kernel translations may be cached.
 *             ack, flush_time, as and mode are written by their own CPU only.
 * Roles       request: any CPU, interrupts off, holding no in-flight count (K).  poll: own CPU; every loop that
 *             waits or is long calls it, and so does the IPI handler.
 * Commits at  request: the CAS on word.  flush: the CR3 load.
 * Pairs       T1: entry removed (locked) -> stamp read, vs. flush_time read from the TSC before the CR3 load:
 *             flush_time > stamp means that the flush came after the removal.
 *             T2: entry removed (locked) -> as/mode loaded, vs. as/mode stored before CR3 load (serialising):
 *             if the new value is not seen, the fills after the load see the removal.
 *             T3: pending cleared (locked) before the flush: a requester that finds pending set is served by
 *             a flush that has not started.   T4: ack stored after the flush -> ack loaded.
 * Progress    a requester waits for its targets; targets never wait for a requester (they poll).
 * Tested by   tests/unit/test_tlb.c, tests/guest */
#ifndef PT_TLB_H
#define PT_TLB_H

#include "base/atomic.h"
#include "base/env.h"
#include "base/stats.h"
#include "frame.h"

#define AS_NONE 0ull
#define AS_ANY  (~0ull)

struct tlb_cpu {
    u64 word __cacheline;
    u64 ack __cacheline;
    u64 flush_time;
    u64 as;
    u64 mode;
};
extern struct tlb_cpu tlb_cpu[];

struct tlb_set {
    unsigned n;                              /* CPUs in it */
    u64 bits[(ENV_MAX_CPUS + 63) / 64];             /* only the first words, up to env_nr_cpus(), are used */
};
void tlb_set_clear(struct tlb_set *s);
static inline void tlb_set_add(struct tlb_set *s, unsigned cpu)
{
    u64 *w = &s->bits[cpu / 64], b = 1ull << (cpu % 64);

    s->n += !(*w & b);
    *w |= b;
}

/* Adds to @s the CPUs that may hold a translation making @f, idle until now, reachable as @last while it
 * becomes another type.  The caller owns the type change (BUSY). */
void tlb_collect(struct tlb_set *s, const struct frame *f, enum frame_type last);

/* Makes every CPU in @s drop all guest translations, and waits until it has. */
void tlb_flush_set(const struct tlb_set *s);

/* Serves this CPU's inbox. */
void tlb_poll_slow(void);
static inline bool tlb_pending(void) { return load_relaxed(&tlb_cpu[env_cpu()].word) & 1; }
static inline void tlb_poll(void)
{
    if (unlikely(tlb_pending()))
        tlb_poll_slow();
}

/* Drops every guest translation of this CPU. */
static inline void tlb_flush_local(void)
{
    u64 t = env_tsc();

    env_flush_local();
    store_release(&tlb_cpu[env_cpu()].flush_time, t);                 /* T1 */
    stat_inc(tlb_flush_local);
}

#endif
