/* SPDX-License-Identifier: MIT */
/* What all races need. */
#include "race.h"

#define SOFT 4000000000ul                       /* ns */
#define HARD 60000000000ul

volatile u32 wins[NR_VCPUS];
void *token[TOKENS];

static volatile u32 arrived;
static u64 begun;
static u32 seed[NR_VCPUS] = { 12345, 67890 };

void together(void)
{
    __atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST);
    while (arrived < 2)
        pause_();
}

void race(void (*other)(void *), void (*own)(void *), void *arg)
{
    arrived = wins[0] = wins[1] = 0;
    begun = now_ns();
    vcpu1_run(other, arg);
    own(arg);
    stop = 1;
    vcpu1_wait();
    say("  won %u and %u\n", wins[0], wins[1]);
}

void enough(u32 least)
{
    if (wins[0] <= least || wins[1] <= least)
        FAIL("vCPU 0 came through %u times, vCPU 1 %u times; expected more than %u", wins[0], wins[1], least);
}

bool more(u32 i, u32 rounds)
{
    u64 t = now_ns() - begun;

    return (i < rounds && t < SOFT) || ((wins[0] <= LEAST || wins[1] <= LEAST) && t < HARD);
}

bool ok_or(long rc, long err)
{
    if (rc && rc != err)
        FAIL("a call answered %ld", rc);
    return rc == 0;
}

u32 random(void)
{
    u32 *s = &seed[this_cpu()->id];

    *s = *s * 1664525 + 1013904223;
    return *s >> 8;
}

void leave_alone(void)
{
    for (u32 n = random() % 3000; n; n--)
        __asm__ volatile("" ::: "memory");
}

void tokens_make(void)
{
    for (unsigned i = 0; i < TOKENS; i++)
        token[i] = page_alloc();
}

void tokens_drop(void)
{
    for (unsigned i = 0; i < TOKENS; i++) {
        EQ(usable(token[i]), true);
        page_free(token[i]);
    }
}
