/* SPDX-License-Identifier: MIT */
/* Per-CPU event counters: always on, written by their own CPU only, summed when somebody looks. */
#ifndef PT_BASE_STATS_H
#define PT_BASE_STATS_H

#include "base/env.h"
#include "base/types.h"

enum stat_id {
#define STAT(name) STAT_##name,
#include "base/stats_list.h"
#undef STAT
    STAT_COUNT
};

struct stats_cpu { u64 n[STAT_COUNT]; } __cacheline;
extern struct stats_cpu stats_cpu[];          /* by CPU number */
extern const char *const stat_names[STAT_COUNT];

#define stat_add(id, k) ((void)(stats_cpu[env_cpu()].n[STAT_##id] += (k)))
#define stat_inc(id)    stat_add(id, 1)

/* The sum of one counter over all CPUs; exact only when the counter is at rest. */
u64 stat_sum(enum stat_id id);

#endif
