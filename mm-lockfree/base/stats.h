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

_Static_assert(STAT_COUNT <= ENV_STATS_MAX, "raise ENV_STATS_MAX");
extern const char *const stat_names[STAT_COUNT];

#define stat_add(id, k) ((void)(ENV_OWN_STATS[STAT_##id] += (k)))
#define stat_inc(id)    stat_add(id, 1)

/* The sum of one counter over all CPUs; exact only when the counter is at rest. */
u64 stat_sum(enum stat_id id);

#endif
