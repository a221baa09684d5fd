/* SPDX-License-Identifier: MIT */
/* Stopping the world; the protocol is described in stop.h. */
#include "stop.h"

#include "arch/cpu.h"
#include "audit_hv.h"
#include "domain.h"
#include "tlb.h"

u32 world_work __cacheline;
static u32 waiting __cacheline;

static void clear_bits(u32 bits)
{
    u32 w = load_relaxed(&world_work);

    while (!atomic_cas32(&world_work, &w, w & ~bits))
        ;
}

void world_request(u32 what)
{
    u32 w = load_relaxed(&world_work);

    while (!atomic_cas32(&world_work, &w, w | what))
        ;
    cpu_info()->work |= WORK_RESCHED;
}

/* Waits until all other CPUs wait.  False: one did not come. */
static bool gather(void)
{
    u64 end = env_now() + STOP_NS;

    for (unsigned c = 0; c < nr_cpus; c++)
        if (c != this_cpu())
            env_kick(c);
    while (load_acquire(&waiting) < nr_cpus - 1) {                    /* S1 */
        if (env_now() > end)
            return false;
        tlb_poll();
        cpu_relax();
    }
    return true;
}

static void wait(void)
{
    atomic_faa32(&waiting, 1);
    while (load_acquire(&world_work) & WORLD_STOP) {
        tlb_poll();
        cpu_relax();
    }
    atomic_faa32(&waiting, -1u);                                      /* S1 */
}

void safe_point_slow(void)
{
    u32 w;

    while ((w = load_acquire(&world_work))) {
        if (w & WORLD_STOP) {
            wait();
            continue;
        }
        if (!atomic_cas32(&world_work, &w, w | WORLD_STOP))
            continue;
        audit_stopped(gather(), w & WORLD_AUDIT);
        if (w & WORLD_END)
            domain_end(dom0);
        clear_bits(w | WORLD_STOP);
    }
}
