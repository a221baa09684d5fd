/* SPDX-License-Identifier: MIT */
/* What all races need. */
#include "race.h"

#define SOFT (nr_vcpus > 2 ? 1000000000ul : 4000000000ul)      /* ns */
#define HARD 60000000000ul

volatile u32 wins[NR_VCPUS];
void *token[TOKENS];

static volatile u32 arrived;
static char bystander_page[NR_VCPUS][PAGE] __attribute__((aligned(PAGE)));
static u64 begun;
static u32 seed[NR_VCPUS] = { 12345, 67890, 13579, 24680 };

void together(void)
{
    __atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST);
    while (arrived < 2)
        pause_();
}

/* What vCPUs that take no side in a race do meanwhile: their own tables come and go, and all TLBs are flushed. */
static void bystander(void *arg)
{
    void *p = bystander_page[this_cpu()->id];

    (void)arg;
    while (!stop) {
        ok_or(make_ro(p), 0);
        if (ok_or(pin(1 + (int)(random() & 3), mfn_of(p)), 0))
            ok_or(unpin(mfn_of(p)), 0);
        ok_or(make_rw(p), 0);
        if (!(random() & 7))
            mmuext(MMUEXT_TLB_FLUSH_ALL, 0, 0);
    }
}

void race(void (*other)(void *), void (*own)(void *), void *arg)
{
    arrived = wins[0] = wins[1] = 0;
    begun = now_ns();
    vcpu1_run(other, arg);
    for (unsigned id = 2; id < nr_vcpus; id++)
        vcpu_run(id, bystander, NULL);
    own(arg);
    stop = 1;
    vcpus_wait();
    say("  won %u and %u\n", wins[0], wins[1]);
}

void enough(u32 least)
{
    if (nr_vcpus > 2)
        return;                                 /* two of many may never meet on a machine with few CPUs */
    if (wins[0] <= least || wins[1] <= least)
        FAIL("vCPU 0 came through %u times, vCPU 1 %u times; expected more than %u", wins[0], wins[1], least);
}

bool more(u32 i, u32 rounds)
{
    u64 t = now_ns() - begun;

    return (i < rounds && t < SOFT) || (nr_vcpus == 2 && (wins[0] <= LEAST || wins[1] <= LEAST) && t < HARD);
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
