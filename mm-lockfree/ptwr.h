/* SPDX-License-Identifier: MIT */
/* pt_update=ptwr: writable page tables as Xen had them until 2006, for comparison.
 *
 * On a write fault the table is unhooked from its L2 entry, made writable for the guest, and checked again when it is
 * closed: at the next operation on page tables, at a fault under the unhooked entry, when its slot is needed, or before
 * the hypervisor itself touches guest memory.
 *
 * Unhooking takes the user bit out of the L2 entry, not the present bit as Xen did: Xen's own Linux knew that a present
 * bit may be missing for a while, today's takes such an entry for a bad one and clears it.  Without the user bit
 * nothing at CPL 3 gets through the entry; the hypervisor would, and therefore closes the tables first.  An open table may
 * hold global entries, which the hypervisor's speculation could cache: CR4.PGE stays off in this mode (cpu_setup.c).
 *
 * State       per domain two slots, ACTIVE (the table hangs in the address space that faulted) and INACTIVE.  An open
 *             table's frame is BUSY, !VALID, TY=L1 with its counts unchanged: every lock-free path backs off.
 * Roles       every function here holds the domain's lock, the only lock on a page-table path; it exists in this mode
 *             only.  While it is waited for, the CPU serves its TLB inbox.
 * Commits at  open: the CAS that sets BUSY.  close: the CAS that sets VALID.
 * Pairs       W1: user bit of the L2 entry cleared -> all CPUs flushed -> mapping made writable; W2: mapping made read-only -> all CPUs
 *             flushed -> entries compared.
 *             W3: accessors raised (locked) -> opening and slots read, vs. opening set (locked) -> accessors read.
 *             W4: opening set -> hook changed -> slot stored -> opening cleared, vs. fault looked at -> opening read -> slots
 *             read: a fault that lay under a table just being unhooked finds one of them set.
 * Reclaim     slots and snapshots live as long as the domain; an open table's frame is BUSY, hence alive.
 * Progress    blocking: one operation of a domain at a time.
 * Tested by   stress/mc (ptwr-*), tests/guest/t_open.c, t_xsa.c */
#ifndef PT_PTWR_H
#define PT_PTWR_H

#include "base/modes.h"
#include "pt.h"

struct ptwr_slot {
    struct frame *f;           /* the open table, NULL: closed */
    u64 *map_pte;              /* the entry that maps it, now writable */
    struct frame *map_table;   /* the L1 in which that entry is */
    u64 *hook;                 /* the L2 entry it hung in; NULL: it hung nowhere */
    u32 prev_changed;          /* entries that the last batch in this slot changed */
    u64 *snapshot;             /* a page */
};

struct ptwr_dom {
    u32 lock __cacheline;
    u32 owner;                 /* CPU + 1 that holds it */
    u32 opening;               /* a table is about to be opened: no new accessor may start */
    u32 accessors;             /* CPUs inside a guest copy that started while nothing was open */
    struct ptwr_slot slot[2];
};
enum { PTWR_ACTIVE, PTWR_INACTIVE };

/* Allocates the state; boot.  False: out of memory. */
bool ptwr_init(struct mm_domain *d, bool many_vcpus);

/* Brackets every operation on page tables: takes the lock and closes what is open, counting @why. */
void ptwr_enter(struct mm_domain *d, enum stat_id why);
void ptwr_exit(struct mm_domain *d);

/* A guest kernel wrote to the read-only mapping at @addr of the L1 @f.  True: the table is open, the guest may repeat
 * its write.  False: the write must be emulated; the lock is held, call ptwr_exit() afterwards. */
bool ptwr_open_fault(struct mm_domain *d, mfn_t root, struct frame *f, u64 addr);

/* Bound above: the guest left an unacceptable entry in an open table (which was put back): it must die. */
void env_ptwr_bad_entry(void);

/* Brackets the hypervisor's own access to guest memory: nothing is open from begin to end. */
enum ptwr_access { PTWR_OURS, PTWR_COUNTED, PTWR_LOCKED };
enum ptwr_access ptwr_access_begin(struct mm_domain *d);
void ptwr_access_end(struct mm_domain *d, enum ptwr_access how);

/* A fault with @error at @addr under @root: true when it lay under an unhooked entry, which is closed now (by us, or by
 * another CPU since the fault): repeat the access. */
bool ptwr_fault(struct mm_domain *d, mfn_t root, u64 addr, u32 error);

#endif
