/* SPDX-License-Identifier: MIT */
/* Shared by pt.c (entries), pt_type.c (tables) and pt_batch.c (collected pins). */
#ifndef PT_INTERNAL_H
#define PT_INTERNAL_H

#include <xen/errno.h>

#include "pt_meta.h"

#define EINVAL  XEN_EINVAL
#define EAGAIN  XEN_EAGAIN
#define ENOMEM  XEN_ENOMEM

/* The reference that a present entry @e of a level-@level table holds. */
int pt_get_entry(struct mm_domain *d, u64 e, int level);
void pt_put_entry(struct mm_domain *d, u64 e, int level, bool user);

/* An L2 entry begins or ceases to name an L1. */
void pt_hang(mfn_t l1, mfn_t l2, unsigned idx);
void pt_unhang(mfn_t l1, mfn_t l2, unsigned idx);

/* Finishes the type change that GET_NEED_UP handed over: flush unless @flushed, validate, publish (with @pin pinned). */
int pt_up(struct mm_domain *d, struct frame *f, enum frame_type ty, enum frame_type last, bool flushed, bool pin);

bool pt_batch_pending(void);
/* Collects a pin whose type change the caller has begun.  False: no batch is open or it is full. */
bool pt_batch_park(struct mm_domain *d, struct frame *f, enum frame_type ty, enum frame_type last);

#endif
