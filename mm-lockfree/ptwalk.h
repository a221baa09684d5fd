/* SPDX-License-Identifier: MIT */
/* Walking a guest's page tables through the direct map, inside one RCU read section. */
#ifndef PT_WALK_H
#define PT_WALK_H

#include "pt.h"

/* Finds the table of @level that translates @va under @root (a valid L4).  Every table on the way is checked to be a
 * valid one of @d before it is read, so a stale entry leads to a miss, never astray.  False: not mapped that far. */
bool pt_walk_table(struct mm_domain *d, mfn_t root, u64 va, int level, mfn_t *table);

/* Do the tables under @root permit the access to @addr that the page-fault error code @error describes?  Then the fault
 * came from something that has changed since. */
bool pt_walk_permits(struct mm_domain *d, mfn_t root, u64 addr, u32 error);

#endif
