/* SPDX-License-Identifier: MIT */
/* Two vCPUs doing the same or opposite things to the same pages, for a number of rounds. */
#ifndef TEST_GUEST_RACE_H
#define TEST_GUEST_RACE_H

#include "guest.h"

#define HERE (SCRATCH + 0x400000)               /* where the tables that are raced for are hooked */
#define LEAST 20                                /* a side that came through less often took no part */

extern volatile u32 wins[NR_VCPUS];             /* how often each vCPU came through */

/* Runs @own here and @other on vCPU 1.  Each calls together() first; @other may go on until stop is set, which is done
 * when @own is back. */
void race(void (*other)(void *), void (*own)(void *), void *arg);
void together(void);
/* Another round?  @rounds of them, or fewer on a slow machine, or more while one side has not had its LEAST. */
bool more(u32 i, u32 rounds);
void enough(u32 least);                         /* fails the test if a side won no more often */
bool ok_or(long rc, long err);                  /* @rc is 0: true; @err: false; else the test fails */
u32 random(void);
void leave_alone(void);                         /* gives the other side its turn, for a while that is never the same */

#define TOKENS 8
extern void *token[TOKENS];                     /* pages to be mapped */
void tokens_make(void);
void tokens_drop(void);                         /* each must be free of types by now */
static inline u64 token_pte(unsigned i) { return pte(mfn_of(token[i]), RWE); }

#endif
