/* SPDX-License-Identifier: MIT */
/* Allocation of struct pt_meta, and joining a table to an address space. */
#ifndef PT_META_H
#define PT_META_H

#include "pt.h"

/* A cleared meta, or NULL when memory is out.  Own CPU's free list first. */
struct pt_meta *pt_meta_alloc(void);
/* Frees @m after a grace period. */
void pt_meta_retire(struct pt_meta *m);

/* The valid table @f is about to be reachable from a table with address space @as and user-reachability @user: notes
 * that in it and, where something changed, in all tables below it.  Must precede the store of the entry. */
void pt_join(struct frame *f, int level, u64 as, bool user);

#endif
