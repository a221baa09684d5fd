/* SPDX-License-Identifier: MIT */
/* The audit: recomputes every frame's counts and type from the tables themselves, and names the frames that disagree.
 *
 * State       struct frame.hint is the tally, first of untyped then of typed references; 0 again at the end.
 * Roles       one CPU, while no other holds a reference in its hands: the world is stopped, or the test is at rest.
 *             No table may be open (ptwr.h) and no pin collected (pt.h); work items may be parked, and are accounted for.
 * Progress    two walks over all tables and four over the frame table; allocates nothing, takes no lock.
 * Tested by   tests/unit/test_audit.c, and at the end of every boot test */
#ifndef PT_AUDIT_H
#define PT_AUDIT_H

#include "pt.h"

struct audit_finding {
    mfn_t mfn;
    const char *what;        /* the word or the rule */
    int entry;               /* of the table @mfn, or -1 */
    u64 expected, found;
};

struct audit {
    struct mm_domain *d;                                            /* whose frames */
    void (*refs)(struct audit *a);                                  /* tells all references that are in no table */
    void (*report)(struct audit *a, const struct audit_finding *f); /* for the first AUDIT_REPORTS findings; or NULL */
    void *arg;                                                      /* the caller's */

    /* Results. */
    u64 frames;              /* of the domain */
    u64 tables;              /* of them valid tables */
    u64 dead;                /* given back, with no reference left */
    u64 limbo;               /* given back, still referenced */
    u64 suspended;           /* in a type change that is suspended (pt_work.h) */
    u64 wrong;               /* findings */

    int pass;                /* own */
    u64 parked;
};
#define AUDIT_REPORTS 10

/* Checks every frame of the machine.  True: nothing disagrees. */
bool audit_run(struct audit *a);

/* For @refs: a reference on @mfn as type @ty (FT_NONE: an untyped one) that is in no table. */
void audit_ref(struct audit *a, mfn_t mfn, enum frame_type ty);
/* For @refs: @mfn is a root that somebody runs on, with @user user mode. */
void audit_root(struct audit *a, mfn_t mfn, bool user);

#endif
