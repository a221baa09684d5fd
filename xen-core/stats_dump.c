/* SPDX-License-Identifier: MIT */
/* The counters as one JSON object on the console. */
#include "stats_dump.h"

#include "base/stats.h"
#include "console.h"
#include "vsnprintf.h"

void stats_dump_json(void)
{
    static char line[STAT_COUNT * 48 + 64];      /* one dump at a time; a garbled counter line is not worth a lock */
    size_t n = (size_t)pt_snprintf(line, sizeof(line), "PTSTATS {\"cpus\": %u", env_nr_cpus());

    for (unsigned i = 0; i < STAT_COUNT && n < sizeof(line) - 64; i++)
        n += (size_t)pt_snprintf(line + n, sizeof(line) - n, ", \"%s\": %llu", stat_names[i],
                                 (unsigned long long)stat_sum((enum stat_id)i));
    n += (size_t)pt_snprintf(line + n, sizeof(line) - n, "}\n");
    console_write(line, n);
}
