/* SPDX-License-Identifier: MIT */
/* Page-table entry bits and what a guest may put in them (Intel SDM vol. 3, 4.5). */
#ifndef PT_PTE_H
#define PT_PTE_H

#include "base/types.h"

#define PTE_P    (1ull << 0)
#define PTE_RW   (1ull << 1)
#define PTE_US   (1ull << 2)
#define PTE_PWT  (1ull << 3)
#define PTE_PCD  (1ull << 4)
#define PTE_A    (1ull << 5)
#define PTE_D    (1ull << 6)
#define PTE_PAT  (1ull << 7)     /* L1 */
#define PTE_PSE  (1ull << 7)     /* L2, L3 */
#define PTE_G    (1ull << 8)
#define PTE_NX   (1ull << 63)

#define PTE_CACHE     (PTE_PWT | PTE_PCD | PTE_PAT)
#define PTE_MFN_MASK  0x000ffffffffff000ull

#define PT_ENTRIES    512

static inline mfn_t pte_mfn(u64 e) { return MFN((e & PTE_MFN_MASK) >> PAGE_SHIFT); }
static inline u64 pte_make(mfn_t m, u64 flags) { return m.v << PAGE_SHIFT | flags; }
static inline unsigned pt_index(u64 va, int level) { return va >> (PAGE_SHIFT + 9 * (level - 1)) & 511; }

/* L1TF (XSA-273): a CPU that has the flaw reads through an entry that is not present whatever the L1 cache holds of the address
 * in it.  Below this address an entry that is not present may name nothing; 0: any may (the CPU is not affected, or the
 * domain is trusted).  Constant after boot. */
extern u64 pt_l1tf_limit;
static inline bool pte_l1tf(u64 e)
{
    return unlikely(pt_l1tf_limit) && !(e & PTE_P) && (e & PTE_MFN_MASK) && (e & PTE_MFN_MASK) < pt_l1tf_limit;
}

/* What the hypervisor changes in a present entry: guests run at CPL 3, so everything is a user page, and
 * nothing is global, so that a CR3 load drops it. */
static inline u64 pte_adjust(u64 e, int level)
{
    if (!(e & PTE_P))
        return e;
    return level == 1 ? (e | PTE_US) & ~PTE_G : e | PTE_US;
}

#endif
