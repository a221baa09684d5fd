/* SPDX-License-Identifier: MIT */
/* Shared by pt.c (entries), pt_type.c (tables) and pt_work.c (trees of tables, collected pins). */
#ifndef PT_INTERNAL_H
#define PT_INTERNAL_H

#include "base/errno.h"

#include "pt_meta.h"
#include "pt_work.h"

/* The reference that a present entry @e of a level-@level table holds. */
int pt_get_entry(struct mm_domain *d, u64 e, int level);
void pt_put_entry(struct mm_domain *d, u64 e, int level, bool user);

/* An L2 entry begins or ceases to name an L1. */
void pt_hang(mfn_t l1, mfn_t l2, unsigned idx);
void pt_unhang(mfn_t l1, mfn_t l2, unsigned idx);

/* About what the steps of long work cost, in instructions; for pt_charge(). */
enum { COST_EMPTY = 6, COST_ENTRY = 150, COST_L1 = 20000, COST_FLUSH = 4000 };

/* Pieces of a type change, the frame being claimed (BUSY) -------------------------------------------------- */

#define PT_HV_FIRST 256u         /* the hypervisor's slots of a root */
#define PT_HV_LAST  271u

/* The frame that entry @e of a table of @level, 2 to 4, may name as a table of @d's; NULL: none. */
struct frame *pt_child(struct mm_domain *d, u64 e, int level);

/* Does changing idle(@last) into @ty need old translations gone? */
bool pt_needs_flush(const struct frame *f, enum frame_type last, enum frame_type ty);
/* Makes translations of idle(@last) @f harmless for its life as @ty.  True: it took a flush. */
bool pt_flush_for(const struct frame *f, enum frame_type last, enum frame_type ty);
/* The meta of the table to be, with marks that cover @m and, without a flush, its last life.  NULL: no memory. */
struct pt_meta *pt_meta_for(struct mm_domain *d, struct frame *f, enum frame_type ty, enum frame_type last, struct pt_marks m);
/* Takes the references of the L1 @f from entry *@i on.  An error leaves *@i at the entry it is about. */
int pt_scan_l1(struct mm_domain *d, struct frame *f, unsigned *i);
void pt_drop_l1(struct mm_domain *d, struct frame *f, unsigned n, bool user);
void pt_fill_hv_slots(u64 *l4);
void pt_publish(struct frame *f, struct pt_meta *meta, bool pin);
/* Ends a table's life, its entries being dropped. */
void pt_down_done(struct frame *f, struct pt_meta *meta);
/* Gives up: the frame is without a type again. */
void pt_forget(struct frame *f);

/* Work items (pt_work.c) ----------------------------------------------------------------------------------- */

/* @f is needed, but its type change is suspended: -XEN_ERESTART, and the next hypercall begins with it. */
void pt_note_blocked(struct frame *f);
static inline int pt_suspended(struct frame *f)
{
    pt_note_blocked(f);
    return -XEN_ERESTART;
}
/* Carries out the type change of @f, claimed, to a table of level 2 to 4; the caller has seen that the item is idle.
 * On -XEN_ERESTART the repetition finds the reference kept. */
int pt_work_up(struct mm_domain *d, struct frame *f, enum frame_type ty, enum frame_type last);
/* Takes down the table @f, of level 2 to 4, now or later. */
void pt_work_down(struct mm_domain *d, struct frame *f);

/* Keeps a reference (@rc 0) or a failure for the repetition of this hypercall. */
void pt_keep_result(struct mm_domain *d, struct frame *f, enum frame_type ty, int rc);
bool pt_take_kept(struct frame *f, enum frame_type ty, int *rc);

bool pt_batch_pending(void);
/* Makes sure that one more pin can be collected.  0, or -XEN_ERESTART. */
int pt_batch_room(struct mm_domain *d);
/* Collects a pin whose type change the caller has begun.  False: no batch is open. */
bool pt_batch_park(struct frame *f, enum frame_type ty, enum frame_type last);

#endif
