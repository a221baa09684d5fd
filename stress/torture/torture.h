/* SPDX-License-Identifier: MIT */
/* What the torture programs share: threads as CPUs, a deadline, points of rest, and counts of impossible observations. */
#ifndef PT_TORTURE_H
#define PT_TORTURE_H

#include <stdio.h>

#include "env.h"

extern unsigned torture_cpus;
extern u64 torture_seed;                     /* of this run; a thread starts from it and its number */

/* Reads "PROGRAM [SECONDS [CPUS]]", prints and sets the seed, starts the machine with host_start(). */
void torture_init(int argc, char **argv, u64 frames, u64 heap);

/* Runs @cpu_fn on each CPU and, with @agent, @agent in one more thread (which is no CPU) until they return. */
void torture_run(void (*cpu_fn)(unsigned cpu, u64 *seed), void (*agent)(u64 *seed));

bool torture_over(void);                     /* the time is up */

/* A point of rest: all CPUs meet here, holding nothing in their hands; CPU 0 calls @check (or NULL), then all go on.
 * True: the time is up, the same for all CPUs. */
bool torture_rest(void (*check)(void));

/* Something that cannot be was seen: counted under @what, the first few are printed with @value. */
void impossible(const char *what, u64 value);

/* Ends the run: prints the line of @detail and the sum of impossible things; the exit status. */
int torture_end(const char *detail);

#endif
