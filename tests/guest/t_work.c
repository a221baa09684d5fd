/* SPDX-License-Identifier: MIT */
/* Long operations: they let go for what is pending, go on where they were, and end as if they never had; XSA-45, 58, 97, 290,
 * 299, 310, 410. */
#include "event.h"
#include "race.h"

#define L1S 200                             /* some ten budgets' worth of L1s */

static u64 *top, *second, *third, *leaf[L1S], *data;

static void tree_make(void)
{
    top = page_alloc();
    third = page_alloc();
    second = page_alloc();
    data = page_alloc();
    for (unsigned i = 0; i < L1S; i++) {
        leaf[i] = page_alloc();
        for (unsigned k = 0; k < 512; k++)
            leaf[i][k] = pte(mfn_of(data), ROE);
        EQ(make_ro(leaf[i]), 0);
        second[i * 2] = pte(mfn_of(leaf[i]), RWE);
    }
    third[3] = pte(mfn_of(second), RWE);
    top[7] = pte(mfn_of(third), RWE);
    EQ(make_ro(second), 0);
    EQ(make_ro(third), 0);
    EQ(make_ro(top), 0);
}

/* Nothing of it is a table any more, and nothing is still counted. */
static void tree_drop(void)
{
    for (unsigned i = 0; i < L1S; i++)
        page_free(leaf[i]);
    page_free(second);
    page_free(third);
    page_free(top);
    CHECK(usable(data));
    page_free(data);
}

TEST(work_xsa45_xsa410_pin_unpin)
{
    tree_make();
    EQ(pin(4, mfn_of(top)), 0);
    EQ(pin(4, mfn_of(top)), -EINVAL);
    EQ(make_rw(leaf[L1S - 1]), -EINVAL);
    EQ(unpin(mfn_of(top)), 0);
    EQ(make_rw(leaf[0]), 0);                    /* when the call is back, all is */
    EQ(make_rw(leaf[L1S - 1]), 0);
    EQ(make_ro(leaf[0]), 0);
    EQ(make_ro(leaf[L1S - 1]), 0);
    tree_drop();
}

TEST(work_xsa58_xsa290_bad_entry)
{
    static const unsigned at[] = { 0, L1S / 2, L1S - 1 };

    for (unsigned i = 0; i < COUNT(at); i++) {
        tree_make();
        EQ(make_rw(leaf[at[i]]), 0);
        leaf[at[i]][511] = pte(foreign_mfn(0), RWE);
        EQ(make_ro(leaf[at[i]]), 0);
        EQ(pin(4, mfn_of(top)), -EINVAL);
        EQ(pin(2, mfn_of(second)), -EINVAL);
        tree_drop();
    }
}

/* An interrupt comes in the middle: the interrupted instruction is the hypercall, that is about to go on. */
static u64 latest;

static void interrupted(long (*call)(void), long want)
{
    struct evtchn_bind_virq b = { .virq = VIRQ_TIMER, .vcpu = 0 };
    struct vcpu_set_singleshot_timer t = { 0 };
    bool inside = false;

    REQUIRE(EQ(HC(event_channel_op, EVTCHNOP_bind_virq, &b), 0));
    EQ(unmask(b.port), 0);
    for (u64 after = 20000; after < 3000000 && !inside; after += after / 4) {
        u64 n = count(b.port);

        t.timeout_abs_ns = now_ns() + after;
        EQ(HC(vcpu_op, VCPUOP_set_singleshot_timer, 0, &t), 0);
        set_mask(0);
        EQ(call(), want);
        while (count(b.port) == n)
            poke();
        set_mask(1);
        inside = *(const u16 *)cpus[0].upcall.rip == 0x050f && cpus[0].upcall.rip != (u64)hypercall_page;
        if (inside && cpus[0].upcall_ns > t.timeout_abs_ns + latest)
            latest = cpus[0].upcall_ns - t.timeout_abs_ns;
    }
    CHECK(inside);
    EQ(close(b.port), 0);
    mask(b.port);
}

static long pin_unpin(void)
{
    long rc = pin(4, mfn_of(top));

    return rc ? rc : unpin(mfn_of(top));
}

static struct mmu_update list[4000];

static long long_list(void)
{
    u32 done = 0;
    long rc = HC(mmu_update, list, COUNT(list), &done, DOMID_SELF);

    return rc ? rc : done;
}

static struct multicall_entry calls[1200];

static long many_calls(void)
{
    static struct mmu_update u;

    u = list[0];
    for (unsigned i = 0; i < COUNT(calls); i++)
        calls[i] = (struct multicall_entry){ .op = __HYPERVISOR_mmu_update, .args = { (u64)&u, 1, 0, DOMID_SELF },
                                             .result = 99 };
    long rc = HC(multicall, calls, COUNT(calls));

    for (unsigned i = 0; i < COUNT(calls); i++)
        if (calls[i].result)
            return -1000;
    return rc;
}

TEST(work_interrupted)
{
    tree_make();
    interrupted(pin_unpin, 0);
    scratch_open();
    for (unsigned i = 0; i < COUNT(list); i++)
        list[i] = (struct mmu_update){ ma(scratch, i % 512), pte(mfn_of(data), ROE) };
    interrupted(long_list, COUNT(list));
    interrupted(many_calls, 0);
    scratch_close();
    tree_drop();
    say("  the latest interrupt came %lu ns late\n", latest);
}

/* The instructions of a call between two points where it lets go; with -icount a nanosecond is one. */
TEST(work_latency)
{
    if (option("icount"))
        CHECK(latest && latest < 1000000);
}

/* Roots, entries: what a tree is used for is no matter. */
TEST(work_hook_and_root)
{
    u64 *l4 = (u64 *)si->pt_base, old = root_mfn();

    tree_make();
    EQ(mmu_update(ma(l4, 40), pte(mfn_of(third), RWE)), 0);
    EQ(pte_get(40ul << 39 | 3ul << 30 | 2ul << 21, 1), pte(mfn_of(data), ROE));
    EQ(mmu_update(ma(l4, 40), 0), 0);
    EQ(make_rw(leaf[0]), 0);
    EQ(make_ro(leaf[0]), 0);
    EQ(mmuext(MMUEXT_NEW_USER_BASEPTR, mfn_of(top), 0), 0);
    EQ(mmuext(MMUEXT_NEW_USER_BASEPTR, 0, 0), 0);
    EQ(root_mfn(), old);
    tree_drop();
}

/* Two vCPUs want the same trees in different ways: each call ends, with its own result or the refusal. */
static void other_side(void *arg)
{
    (void)arg;
    together();
    for (u32 i = 0; more(i, 400); i++) {
        switch (random() % 3) {
        case 0:
            if (ok_or(pin(2, mfn_of(second)), -EINVAL)) {
                wins[this_cpu()->id]++;
                EQ(unpin(mfn_of(second)), 0);
            }
            break;
        case 1:
            if (ok_or(pin(1, mfn_of(leaf[random() % L1S])), -EINVAL))
                wins[this_cpu()->id]++;
            break;
        default:
            ok_or(unpin(mfn_of(leaf[random() % L1S])), -EINVAL);
        }
    }
}

static void own_side(void *arg)
{
    (void)arg;
    together();
    for (u32 i = 0; i < 40; i++) {
        if (ok_or(pin(3, mfn_of(third)), -EINVAL)) {
            wins[0]++;
            ok_or(unpin(mfn_of(third)), -EINVAL);
        }
    }
}

TEST(work_xsa299_xsa310_race)
{
    tree_make();
    race(other_side, own_side, NULL);
    enough(5);
    for (unsigned i = 0; i < L1S; i++)
        unpin(mfn_of(leaf[i]));
    tree_drop();
}
