/* SPDX-License-Identifier: MIT */
/* Prints the counters. */
#ifndef PT_STATS_DUMP_H
#define PT_STATS_DUMP_H

/* One line "PTSTATS {...}": every counter, summed over CPUs.  Any CPU, while running. */
void stats_dump_json(void);

#endif
