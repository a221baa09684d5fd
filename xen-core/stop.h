/* SPDX-License-Identifier: MIT */
/* Work that needs the world stopped: the audit, and the end of the initial domain.
 *
 * State       world_work: WORLD_* bits, set by anyone, each taken by the first CPU that comes to a safe point;
 *             WORLD_STOP while a CPU has the world stopped, or is waiting for that.
 *             waiting: CPUs inside the wait below.
 * Roles       a safe point is where a CPU holds nothing: no lock, no reference, no update in flight.  There is one in
 *             schedule(), hence on the way to every guest after a kick, and one in the idle loop.
 * Commits at  the CAS that sets WORLD_STOP: only one CPU leads.  The world is stopped when it has seen all others wait.
 * Pairs       S1: waiting lowered (locked) -> world_work read, vs. WORLD_STOP set (locked) -> waiting read: who is
 *             counted has not left, or looks again and finds the bit.
 * Progress    everyone who waits serves the TLB inbox, so nobody on the way to a safe point waits for one that is
 *             there.  The leader gives up after STOP_NS. */
#ifndef PT_STOP_H
#define PT_STOP_H

#include "base/atomic.h"

#define WORLD_STOP  1u
#define WORLD_AUDIT 2u               /* asked for on the console */
#define WORLD_END   4u               /* the initial domain is gone, the machine follows it */
#define STOP_NS     30000000000ull

extern u32 world_work;

/* Asks for WORLD_* work; this CPU, or another before it, does it at its next safe point.  Any context. */
void world_request(u32 what);

void safe_point_slow(void);
/* The caller holds nothing: takes part when another CPU stops the world, and does what was asked for. */
static inline void safe_point(void)
{
    if (unlikely(load_relaxed(&world_work)))
        safe_point_slow();
}

#endif
