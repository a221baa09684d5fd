/* SPDX-License-Identifier: MIT */
/* Shared by sched.c and timer.c. */
#ifndef PT_SCHED_INTERNAL_H
#define PT_SCHED_INTERNAL_H

#include "base/types.h"

void timer_init(void);
/* Fires this CPU's timers that expired by @now. */
void timer_fire(u64 now);
/* This CPU's earliest timer, absolute ns; ~0: none. */
u64 timer_first(void);

/* The next time this CPU needs an interrupt; may lie in the past.  Fires nothing. */
u64 sched_next_event(void);

#endif
