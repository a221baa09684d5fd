/* SPDX-License-Identifier: MIT */
/* A software MMU for each hosted CPU: it walks the real bytes of the tables under the loaded root, caches translations
 * and upper-level entries as long as it pleases, sets A and D, and says when it is led astray. */
#ifndef PT_HOST_MMU_H
#define PT_HOST_MMU_H

#include "base/types.h"

#define MMU_TLB  24
#define MMU_PSC  12

void mmu_reset(void);

/* Drops what @cpu has cached; waits for a walk that is under way. */
void mmu_flush(unsigned cpu);
void mmu_invlpg(unsigned cpu, u64 va);

/* Loads @root (~0: none) on @cpu as a MOV to CR3 does, telling tlb_cpu as the hypervisor's load_root() does.  Own CPU.
 * @as: the root's address space, @kernel: kernel mode's mappings. */
void mmu_load_root(unsigned cpu, u64 root, u64 as, bool kernel);

/* One speculative step of @cpu's MMU, from any thread: a walk for an address drawn from @seed among the entries
 * below @slots of each table, or a use of something cached.  A write stores to the frame.  Counts in mmu_bad. */
void mmu_step(unsigned cpu, u64 *seed, unsigned slots);

/* A guest access on @cpu, through its TLB or a walk.  False: it faults.  *@mfn: the frame it reached. */
bool mmu_access(unsigned cpu, u64 va, bool write, u64 *mfn);

/* Impossible things seen: a translation that allows writing to a frame in use as a table or descriptor page, or a cached
 * upper-level entry for a frame that is writable or a table of another level. */
struct mmu_bad { u64 writable_table, table_writable, wrong_level, steps, walks, hits; };
extern struct mmu_bad mmu_bad;

#endif
