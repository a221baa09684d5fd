/* SPDX-License-Identifier: MIT */
/* The counters' names and sums; each CPU's counters lie where base/env.h says. */
#include "base/stats.h"

#include "base/atomic.h"

const char *const stat_names[STAT_COUNT] = {
#define STAT(name) #name,
#include "base/stats_list.h"
#undef STAT
};

u64 stat_sum(enum stat_id id)
{
    u64 sum = 0;

    for (unsigned c = 0; c < env_nr_cpus(); c++)
        sum += load_relaxed(&ENV_STATS(c)[id]);
    return sum;
}
