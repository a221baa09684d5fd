/* SPDX-License-Identifier: MIT */
/* The counters' storage and names. */
#include "base/stats.h"

#include "base/atomic.h"

struct stats_cpu stats_cpu[ENV_MAX_CPUS];

const char *const stat_names[STAT_COUNT] = {
#define STAT(name) #name,
#include "base/stats_list.h"
#undef STAT
};

u64 stat_sum(enum stat_id id)
{
    u64 sum = 0;

    for (unsigned c = 0; c < env_nr_cpus(); c++)
        sum += load_relaxed(&stats_cpu[c].n[id]);
    return sum;
}
