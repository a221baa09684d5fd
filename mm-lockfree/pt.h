/* SPDX-License-Identifier: MIT */
/* Page tables of PV guests: validation, and the one door through which an entry changes.
 *
 * State       a table is a frame valid as L1..L4 (frame.h) whose present entries each hold one reference on what
 *             they name: L1 read-only entry: U; L1 writable entry: T(W); higher: T of the level below.
 *             frame.meta of a valid table points to its struct pt_meta.
 * Roles       any CPU may update any entry at any time; no lock.  A CPU that validates or devalidates a table has
 *             its frame BUSY and is alone.
 * Commits at  the RMW on the entry.  The value it returns is the value whose reference is dropped, by the CPU that
 *             got it: so counts are exact whoever races.
 * Pairs       M1: reference taken -> entry RMW, vs. entry read -> reference dropped.
 *             M2: entry written under K -> K dropped, vs. address space changed -> K seen 0 -> entries scanned (join).
 *             M4: children joined -> done_as, done_user stored, vs. they are read -> the table is hung in: who finds marks
 *             that cover its own also finds them below, or sees that another CPU is still at it, and joins too.
 *             M3: entry RMW -> meta->user read, vs. meta->user set -> table hooked: a removed entry that user mode
 *             could have cached is time-stamped.
 * Reclaim     pt_meta: one grace period after the table's life.
 * Progress    an update retries only because another succeeded.  Taking a reference may wait for a type change.
 * Tested by   tests/guest, tests/unit/test_pt.c */
#ifndef PT_PT_H
#define PT_PT_H

#include "emulate/decode.h"
#include "frame.h"
#include "pte.h"
#include "rcu.h"
#include "tlb.h"

struct mm_domain {
    u32 owner;               /* frame.owner of its frames */
    bool io_ok;              /* may map frames that are not RAM */
    u32 nr_work;
    struct pt_work **work;   /* the work item of each vCPU, see pt_work.h */
    struct ptwr_dom *ptwr;   /* only in that mode */
};

struct pt_meta {
    u64 as;                  /* address space it hangs in: the mfn of its first L4, AS_ANY for several, AS_NONE for none yet */
    u64 done_as;             /* as and user, as far as all below is known to be joined to them (M4) */
    u32 user;                /* reachable from a root that user mode runs on; sticky */
    u8 level, done_user;
    u64 back;                /* L1: machine address of the one L2 entry naming it; BACK_NONE, BACK_MANY */
    struct rcu_head rcu;
};
#define BACK_NONE (~0ull)        /* no address of an entry: 0 is one */
#define BACK_MANY 1ull

static inline struct pt_meta *pt_meta(const struct frame *f) { return (struct pt_meta *)load_acquire(&f->meta); }

/* The 16 L4 entries of the hypervisor, copied into every L4 that is validated.  Set at boot. */
extern u64 pt_hv_slots[16];
extern u64 pt_phys_mask;         /* address bits an entry may have */

enum pt_how {
    PT_NORMAL,
    PT_PRESERVE_AD,              /* new value | (A, D of the old one) */
};

/* Errors: -EINVAL bad entry or reference refused; -EAGAIN @tf is not a valid table of @level (any more); -ERESTART: the
 * budget is spent, or a frame is in a suspended type change (pt_work.h): nothing happened that a repetition would not
 * find, the hypercall is to be issued again. */

/* Sets entry @idx of table @tf to @new.  Own CPU, interrupts off; may wait for type changes. */
int pt_set(struct mm_domain *d, struct frame *tf, unsigned idx, int level, u64 new, enum pt_how how);

/* Carries out one decoded guest instruction on the entry at byte offset @off of the L1 @tf: memory, registers and
 * flags in @regs as the CPU would.  -EINVAL: the new entry is not acceptable (nothing changed). */
int pt_emulate(struct mm_domain *d, struct frame *tf, unsigned off, const struct pte_insn *insn, void *regs);

/* Takes a reference on @mfn as type @ty, validating it if need be. */
int pt_get_type(struct mm_domain *d, mfn_t mfn, enum frame_type ty);
void pt_put_type(struct mm_domain *d, mfn_t mfn);

/* MMUEXT_PIN_* and UNPIN.  In a batch the pin may be carried out later; a late failure is reported through
 * env_batch_failed(@token). */
int pt_pin(struct mm_domain *d, mfn_t mfn, enum frame_type ty);
int pt_unpin(struct mm_domain *d, mfn_t mfn);

/* Marks @root (a valid L4 that the caller holds) as one that user mode runs on, with all below it.  0, or -ERESTART: the
 * caller's reference is kept for the repetition. */
int pt_mark_user_root(struct mm_domain *d, struct frame *root);

/* Batches: between begin and end, pins of this vCPU are collected and share one shootdown.  Commit does what was
 * collected; anything that waits for a frame, or leaves for the guest, commits first.  0, or -ERESTART: under way, the
 * repeated hypercall goes on with it. */
void pt_batch_begin(void);
int pt_batch_end(struct mm_domain *d);
int pt_batch_commit(struct mm_domain *d);
void pt_batch_token(u64 token);                 /* what env_batch_failed gets for pins made from now on */
void env_batch_failed(u64 token);               /* bound above: a collected pin failed */

/* Drops a leaf reference as an L1 entry @e would. */
void pt_put_l1e(struct mm_domain *d, u64 e, bool user);
int pt_get_l1e(struct mm_domain *d, u64 e);

/* Bound above: checks a page of segment descriptors and makes it harmless in place; false: refused. */
bool pt_segdesc_ok(u64 *page);

/* Bound above: a dead frame of a domain goes back to the free list after a grace period. */
void env_frame_dead(struct frame *f);
/* Bound above: may @d map this frame that is not RAM? */
bool env_io_allowed(struct mm_domain *d, mfn_t mfn);

#endif
