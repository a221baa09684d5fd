/* SPDX-License-Identifier: MIT */
/* The hypervisor's audit of all frames, asked for in the middle of work: the runner presses the key (run.py), looks at
 * what the audit says, and lets the guest go on. */
#include "race.h"

static u64 *tree[NR_VCPUS][4];

/* A tree of tables is built, used, changed and taken down; most references and types are on the way somewhere. */
static void build_and_drop(void)
{
    u32 id = this_cpu()->id;
    u64 **t = tree[id], l2 = pte_ma(HERE + id * 0x200000, 2);

    for (unsigned i = 1; i < 4; i++) {
        ok_or(make_rw(t[i]), 0);
        t[i][id] = pte(mfn_of(t[i - 1]), RWE);
        ok_or(make_ro(t[i]), 0);
    }
    ok_or(make_ro(t[0]), 0);
    ok_or(pin(4, mfn_of(t[3])), 0);
    ok_or(mmu_update(l2, pte(mfn_of(t[0]), RWE)), 0);
    for (unsigned i = 0; i < 20; i++) {
        u64 v = token_pte(i % TOKENS) & (i & 1 ? ~0ul : ~RW);

        __asm__ volatile("xchg %0, (%1)" : "+r"(v) : "r"(&t[0][i]) : "memory");
        ok_or(mmu_update(ma(t[0], i + 20), v), 0);
    }
    ok_or(unpin(mfn_of(t[3])), 0);
    ok_or(mmu_update(l2, 0), 0);
    for (unsigned i = 0; i < 4; i++)
        ok_or(make_rw(t[i]), 0);
    memset(t[0], 0, PAGE);
}

static void storm(void *arg)
{
    (void)arg;
    while (!stop)
        build_and_drop();
}

TEST(audit_under_load)
{
    char c = 0;

    tokens_make();
    for (unsigned id = 0; id < nr_vcpus; id++)
        for (unsigned i = 0; i < 4; i++)
            tree[id][i] = page_alloc();
    vcpus_run(storm, NULL);
    for (unsigned i = 0; i < 5; i++) {
        say("KEY audit\n");
        do {
            /* The console is looked at when a timer fires. */
            struct vcpu_set_singleshot_timer timer = { .timeout_abs_ns = now_ns() + 1000000 };

            ok_or(HC(vcpu_op, VCPUOP_set_singleshot_timer, 0, &timer), 0);
            build_and_drop();
        } while (HC(console_io, CONSOLEIO_read, 1, &c) != 1 || c != 'g');
    }
    HC(vcpu_op, VCPUOP_stop_singleshot_timer, 0, 0);
    stop = 1;
    vcpus_wait();
    for (unsigned id = 0; id < nr_vcpus; id++)
        for (unsigned i = 0; i < 4; i++) {
            EQ(usable(tree[id][i]), true);
            page_free(tree[id][i]);
        }
    tokens_drop();
}

/* c62fffdc, ed80a0a1: whoever stops the guest takes back its writable tables first, on any CPU and in any state. */
static u64 *live;

static void keep_open(void *arg)
{
    (void)arg;
    for (unsigned i = 0; !stop; i++)
        *(volatile u64 *)&live[i & 511] = i & 512 ? token_pte(i % TOKENS) : 0;
}

TEST(ptwr_c62fffdc_audit_while_open)
{
    char c = 0;

    tokens_make();
    live = table_page();
    REQUIRE(EQ(pin(1, mfn_of(live)), 0));
    hook(HERE, 2, live);
    vcpu1_run(keep_open, NULL);
    for (unsigned i = 0; i < 5; i++) {
        say("KEY audit\n");
        do {
            struct vcpu_set_singleshot_timer timer = { .timeout_abs_ns = now_ns() + 1000000 };

            ok_or(HC(vcpu_op, VCPUOP_set_singleshot_timer, 0, &timer), 0);
            for (u64 t0 = now_ns(); now_ns() < t0 + 2000000; )
                pause_();                       /* hypercalls would have the table closed */
        } while (HC(console_io, CONSOLEIO_read, 1, &c) != 1 || c != 'g');
    }
    HC(vcpu_op, VCPUOP_stop_singleshot_timer, 0, 0);
    stop = 1;
    vcpu1_wait();
    unhook(HERE, 2);
    EQ(unpin(mfn_of(live)), 0);
    tokens_drop();
    EQ(usable(live), true);
    page_free(live);
}
