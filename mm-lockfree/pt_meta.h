/* SPDX-License-Identifier: MIT */
/* Allocation of struct pt_meta, and joining a table to an address space. */
#ifndef PT_META_H
#define PT_META_H

#include "pt.h"

/* A cleared meta, or NULL when memory is out.  Own CPU's free list first. */
struct pt_meta *pt_meta_alloc(void);
/* Frees @m after a grace period. */
void pt_meta_retire(struct pt_meta *m);

/* What a table is reachable from: an address space, and user mode. */
struct pt_marks { u64 as; bool user; };
u64 pt_as_joined(u64 a, u64 b);          /* the least that covers both */
/* What a table of @level with marks @m hands to the table in its entry @idx.  High slots of a root are the kernel's, shared
 * by all roots; low ones belong to user mode. */
static inline struct pt_marks pt_marks_below(struct pt_marks m, int level, unsigned idx)
{
    if (level == 4)
        return (struct pt_marks){ idx > 271 ? AS_ANY : m.as, m.user || idx < 256 };
    return m;
}

/* The valid table @f is about to be reachable from a table with address space @as and user-reachability @user: notes
 * that in it and in all tables below it that do not say so yet.  Must precede the store of the entry.  False: the budget is
 * spent before all was done (pt_work.h); a repetition goes on where this one stopped. */
bool pt_join(struct frame *f, int level, u64 as, bool user);

#endif
