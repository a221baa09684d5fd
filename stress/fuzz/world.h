/* SPDX-License-Identifier: MIT */
/* A domain with three vCPUs on two CPUs, some frames and tables, in one process; put back to its start for every input. */
#ifndef PT_FUZZ_WORLD_H
#define PT_FUZZ_WORLD_H

#include "base/types.h"

#define DOM_FRAMES  40u                /* mfn 0.. are the domain's, but for 0, which no domain has */
#define HEAP_FRAMES 40u                /* the hypervisor's; the first one is the shared page, which is mapped behind the frames */
#define GUEST_VA    0x10000000ull      /* where the guest's kernel has mfn 0.. mapped, in order */
#define GUEST_SIZE  ((DOM_FRAMES + 1) * PAGE_SIZE)

/* Frames 1 to 4 are a root and what hangs below it; the L1 maps all others, tables read-only.  5: another root with the same
 * L3.  6 to 8: a tree that is not pinned.  9: a valid L1 that hangs nowhere. */
enum { W_L4 = 1, W_L3, W_L2, W_L1, W_L4B, W_FREE_L3, W_FREE_L2, W_FREE_L1, W_L1B, W_FIRST_PLAIN };

struct world_mode {
    bool ptwr;                         /* pt_update= */
    u64 budget;                        /* of a hypercall */
    unsigned preempt;                  /* its work is also suspended at one of so many points, 0: nowhere */
    unsigned heap;                     /* at most so many pages are left */
};

void world_open(void);                 /* once */
void world_reset(const struct world_mode *mode);

/* The vCPU that runs on @cpu calls from now on.  False: none can run there; or the domain is no more. */
bool world_cpu(unsigned cpu);

/* The calls, as the entry code makes them; the caller's registers are the vCPU's.  True: the guest is to issue it again. */
bool world_hypercall(u64 nr, const u64 a[5]);
bool world_hypercall_again(void);      /* false too when there is none */
void world_write_fault(u64 va, u64 rip);
void world_privileged(u64 rip, unsigned vector);
/* Stores of the guest itself, as far as its tables allow them. */
void world_guest_store(u64 va, const void *p, size_t len);
u64 *world_reg(unsigned n);            /* 0..14: in the order of struct cpu_regs; 15: rsp */
void world_user_mode(bool user);       /* as a SYSRET or an event would change it */
void world_time(u64 ns);               /* passes; timers fire */
void world_rest(void);                 /* after each step: every CPU passes a quiescent point */

/* Ends the process unless counts, types and marks agree with the tables, as they are and after suspended work was done. */
void world_check(void);

#endif
