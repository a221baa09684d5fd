/* SPDX-License-Identifier: MIT */
/* Work items: the type changes that a vCPU has begun and not finished.
 *
 * Validating or taking down a tree of tables takes as long as the tree is big.  It is done in steps, at most one L1 each;
 * when the budget of a hypercall is spent, or a step needs a frame whose own change is suspended, the item is parked and
 * the hypercall returns -ERESTART: the guest issues it again, which first goes on with the item.
 *
 * State       at[0..depth): the tables from a root down to where the work is, each BUSY for the item; entries [0, i) of
 *             each hold their references.  Going up i rises, going down it falls; a failed way up turns into a way down.
 *             A tree that is dropped goes on top of what is there: ways down never wait.
 *             root[]: type changes to begin with; the pins that a multicall collects are such roots and share one flush.
 *             state: IDLE -> RUN (owner) -> DONE | PARKED;  PARKED -> RUN (any CPU, CAS) -> DONE | PARKED;  DONE -> IDLE
 *             (owner, who takes the results).  While PARKED each frame of the item is SUSP besides BUSY.
 * Roles       who has set RUN owns the item and its frames.  A CPU that must wait for a SUSP frame does not run the item on
 *             the spot, where it may hold frames that the item needs: it notes the frame, gives up with -ERESTART, and takes
 *             the item over at the start of its next hypercall, holding nothing.
 * Commits at  as each type change does, see frame.h.  An operation that drops a tree has succeeded when the reference is
 *             dropped, but its hypercall does not end before the item is done: the guest may use the pages then.
 * Pairs       Q1: frames and stack written -> state stored PARKED or DONE, vs. state taken (CAS, load) -> stack read.
 * Reclaim     an item lives as long as its vCPU.
 * Progress    a parked item advances whenever its owner or somebody who needs one of its frames makes a hypercall.  An item
 *             waits only for frames of lower levels than its own.
 * Tested by   tests/unit/test_work.c, stress/mc, stress/torture/pt.c, tests/guest/t_work.c */
#ifndef PT_WORK_H
#define PT_WORK_H

#include "pt.h"

struct pt_level {
    struct frame *f;
    struct pt_meta *meta;
    u16 i;
    u8 ty;
    s8 root;                 /* the root that it is, -1: the table above asked for it, or a tree that was dropped */
    bool down, failed;       /* failed: on its way down because of an entry, or for want of memory */
    bool held;               /* entry i has its reference already and waits to be joined to its address space */
};

struct pt_root {
    struct frame *f;
    u64 token;               /* pins: for env_batch_failed() */
    s32 rc;
    u8 ty, last;
    bool pin, begun;
};

enum { WORK_IDLE, WORK_RUN, WORK_PARKED, WORK_DONE };

#define PT_BATCH_MAX 32
/* One way up, and the ways down of the few trees that a hypercall can drop before it lets go. */
#define PT_DEPTH_MAX 20

struct pt_work {
    u32 state;

    /* The owner's own. */
    bool attention;          /* something of what follows is to be looked after before or after a hypercall */
    bool open;               /* a multicall collects pins */
    u64 token;
    u64 spent;               /* of this hypercall's budget */
    struct frame *blocked;   /* whose change is suspended and was needed */
    /* References that a repeated hypercall finds instead of doing the work again, and failures it is told at once. */
    struct { struct frame *f; s32 rc; u8 ty; } keep[2];

    /* Of who runs it. */
    u8 n;                    /* roots */
    u8 depth;
    bool flushed;            /* for all roots */
    s32 rc;                  /* why the way up on top failed */
    struct pt_level at[PT_DEPTH_MAX];
    struct pt_root root[PT_BATCH_MAX + 1];
};

/* ENV_BUDGET is what a hypercall may spend before it lets go, in about instructions; spent is an estimate. */
static inline void pt_charge(unsigned n) { env_work()->spent += n; }
static inline bool pt_spent(void) { return unlikely(env_work()->spent > ENV_BUDGET) || env_preempt(); }

/* The bounds of a hypercall.  start: a new budget.  resume, where there is attention: goes on with what is parked or in the
 * way.  0, or -ERESTART: not done yet, again later.  settle, at an end that is no -ERESTART: drops what was kept for a
 * repetition that did not come.  Own CPU, interrupts off, nothing held. */
static inline void pt_work_start(void) { env_work()->spent = 0; }
static inline bool pt_work_attention(void) { return unlikely(env_work()->attention); }
int pt_work_resume(struct mm_domain *d);
void pt_work_settle(struct mm_domain *d);

/* Keeps the reference on @f as @ty for the repetition of this hypercall. */
void pt_work_keep(struct mm_domain *d, struct frame *f, enum frame_type ty);

/* For callers that cannot come back: goes on with other items until @env_work()->blocked is free. */
void pt_work_drain(struct mm_domain *d);

#endif
