/* SPDX-License-Identifier: MIT */
/* The hosted environment: a CPU is a thread (or one thread plays all of them in turn), machine memory and the frame table
 * are arrays, an interrupt is a flag that its CPU serves at host_poll(). */
#ifndef PT_HOST_ENV_H
#define PT_HOST_ENV_H

#include <setjmp.h>

#include "base/env.h"
#include "frame.h"

#define HOST_DOM  1u                         /* frame.owner of the frames that host_start() gives to the domain */

/* A machine with @cpus CPUs, @frames frames owned by HOST_DOM (mfn 0..@frames-1, zeroed) and @heap pages for the
 * hypervisor.  All state of the sources under test that has a known address is cleared.  One thread. */
void host_start(unsigned cpus, u64 frames, u64 heap);
void host_stop(void);

/* The calling thread is CPU @cpu from now on. */
void host_be_cpu(unsigned cpu);

/* An instant at which this CPU takes interrupts: serves its TLB inbox if it was sent an IPI.  True: it was kicked. */
bool host_poll(void);

/* One thread plays all CPUs: an IPI is served by its CPU before env_send_tlb_ipi() returns. */
extern bool host_ipi_at_once;

/* Called by each CPU that has just dropped its translations, unless NULL. */
extern void (*host_on_flush)(unsigned cpu);

/* Interrupts that were sent to @cpu since host_start(). */
u64 host_ipis(unsigned cpu);
u64 host_kicks(unsigned cpu);

/* env_now(): the real clock, or host_ns where a test sets host_own_clock. */
extern bool host_own_clock;
extern u64 host_ns;
/* env_tsc() counts the reads (an order without a clock) instead of reading the CPU's counter. */
extern bool host_counting_tsc;

/* Long work is suspended at one of @host_preempt of the points where it can be, 0: nowhere. */
extern unsigned host_preempt;
/* The work items of all CPUs: one vCPU runs on each. */
struct pt_work **host_works(void);

extern u64 host_heap_left;                   /* env_page_alloc() fails at 0 */

/* What the last stall report said. */
struct host_stall { u64 reports, period, age; u64 cpus[ENV_MAX_CPUS / 64]; };
extern struct host_stall host_stall;

/* env_bug() returns here while it is set, else it ends the process.  Use through HOST_EXPECT_BUG. */
extern __thread jmp_buf *host_bug_jmp;

/* True when @stmt ran into a BUG_ON. */
#define HOST_EXPECT_BUG(stmt) ({                        \
        jmp_buf _j;                                     \
        volatile bool _bug = true;                      \
        host_bug_jmp = &_j;                             \
        if (!setjmp(_j)) {                              \
            stmt;                                       \
            _bug = false;                               \
        }                                               \
        host_bug_jmp = NULL;                            \
        _bug;                                           \
    })

/* A small generator for tests (xorshift64*); @s must not be 0. */
static inline u64 host_random(u64 *s)
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * 0x2545f4914f6cdd1dull;
}
/* 0..@n-1 */
static inline unsigned host_below(u64 *s, unsigned n) { return (unsigned)((host_random(s) >> 32) * n >> 32); }
/* The seed given in the environment variable PT_SEED, else one from the clock; printed with @name. */
u64 host_seed(const char *name);

#endif
