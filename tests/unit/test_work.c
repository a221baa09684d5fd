/* SPDX-License-Identifier: MIT */
/* Work items: long type changes in steps, gone on with by whoever comes; XSA-45, 58, 97, 290, 299, 310, 410. */
#include "env.h"

#include <CUnit/Basic.h>
#include <stdio.h>
#include <string.h>

#include "above.h"
#include "audit.h"
#include "pt_meta.c"

enum { L1S = 96, L1_0 = 1, L2_0 = 200, L2S = 3, L3 = 210, L4 = 211, DATA = 220, BIG = 221, USER = 222, FRAMES = 260, HEAP = 24 };
#define RWE (PTE_P | PTE_RW | PTE_US | PTE_A | PTE_D)
#define ROE (PTE_P | PTE_US | PTE_A)

static struct frame *fr(u64 m) { return frame_of(MFN(m)); }
static u64 *table(u64 m) { return env_map(MFN(m)); }

static void no_refs(struct audit *a) { (void)a; }

static void say(struct audit *a, const struct audit_finding *f)
{
    (void)a;
    printf("audit: frame %lld entry %d: %s %#llx, expected %#llx\n", (long long)f->mfn.v, f->entry, f->what,
           (unsigned long long)f->found, (unsigned long long)f->expected);
}

/* Nothing disagrees, with what is parked; gives the number of frames in suspended changes, or -1. */
static s64 sound(void)
{
    struct audit a = { .d = &host_dom, .refs = no_refs, .report = say };

    return audit_run(&a) ? (s64)a.suspended : -1;
}

/* A tree: L4 -> L3 -> L2S L2s -> L1S L1s, each of which maps DATA. */
static void fresh(unsigned cpus)
{
    host_start(cpus, FRAMES, HEAP);
    host_counting_tsc = true;
    memset(rcu_cpu, 0, sizeof(rcu_cpu[0]) * cpus);
    memset(meta_cpu, 0, sizeof(meta_cpu));
    pt_phys_mask = 0x0000003ffffff000ull;
    host_dom.work = host_works();
    host_dom.nr_work = cpus;
    host_dead = host_batch_failed = 0;
    for (unsigned c = 0; c < cpus; c++)
        tlb_cpu[c].as = AS_NONE;
    for (unsigned i = 0; i < L1S; i++) {
        table(L1_0 + i)[i] = pte_make(MFN(DATA), ROE);
        table(L2_0 + i % L2S)[i] = pte_make(MFN(L1_0 + i), RWE);
    }
    for (unsigned i = 0; i < L2S; i++)
        table(L3)[7 + i] = pte_make(MFN(L2_0 + i), RWE);
    table(L4)[0] = pte_make(MFN(L3), RWE);
}

static unsigned again;                       /* how often the last call had to be issued again */

/* Issues @call as a guest does, with at most @slices repetitions. */
#define CALL(slices, call) ({                                        \
        int _rc;                                                      \
        again = 0;                                                    \
        for (_rc = -XEN_ERESTART;;) {                                 \
            pt_work_start();                                          \
            if (!pt_work_attention() || !pt_work_resume(&host_dom)) { \
                if (_rc == -XEN_ERESTART)                             \
                    _rc = (call);                                     \
                if (_rc != -XEN_ERESTART)                             \
                    pt_work_settle(&host_dom);                        \
            }                                                         \
            if (_rc != -XEN_ERESTART && !pt_work_attention())         \
                break;                                                \
            if (sound() < 0 || ++again > (slices)) {                  \
                _rc = -1000;                                          \
                break;                                                \
            }                                                         \
        }                                                             \
        _rc; })

/* Goes on with what is parked, for ever. */
static void finish(void)
{
    for (unsigned i = 0; i < 2000 && pt_work_attention(); i++) {
        pt_work_start();
        if (!pt_work_resume(&host_dom))
            pt_work_settle(&host_dom);
    }
    CU_ASSERT_FALSE(pt_work_attention());
    CU_ASSERT_EQUAL(env_work()->state, WORK_IDLE);
}

static bool valid(u64 m, enum frame_type ty)
{
    return (fr(m)->fw & (FW_VALID | FW_BUSY | FW_SUSP)) == FW_VALID && fw_type(fr(m)->fw) == ty;
}

static bool idle(u64 m) { return !(fr(m)->fw & (FW_T | FW_BUSY | FW_SUSP | FW_VALID)); }

/* No call does much more than its budget allows, at any budget; nothing is lost between two parts. */
static void test_budget_xsa45_xsa410(void)
{
    for (u64 budget = 1; budget < 4000000; budget *= 3) {
        u64 most = 0;

        fresh(1);
        host_budget = budget;
        CU_ASSERT_EQUAL(CALL(1000, (most = env_work()->spent > most ? env_work()->spent : most, pt_pin(&host_dom, MFN(L4), FT_L4))), 0);
        CU_ASSERT_TRUE(most < budget + 30000);                        /* one more L1 */
        CU_ASSERT_EQUAL(again > 0, budget < 20000 * L1S);
        CU_ASSERT_TRUE(valid(L4, FT_L4) && (fr(L4)->fw & FW_PIN) && fw_t(fr(L4)->fw) == 1);
        CU_ASSERT_EQUAL(fr(DATA)->fw & FW_U, L1S);
        CU_ASSERT_EQUAL(sound(), 0);
        CU_ASSERT_EQUAL(CALL(0, pt_pin(&host_dom, MFN(L4), FT_L4)), -XEN_EINVAL);      /* pinned it is */
        CU_ASSERT_EQUAL(CALL(1000, pt_unpin(&host_dom, MFN(L4))), 0);
        CU_ASSERT_EQUAL(again > 0, budget < 20000 * L1S);
        CU_ASSERT_EQUAL(sound(), 0);
        CU_ASSERT_TRUE(idle(L4) && idle(L3) && idle(L2_0) && idle(L1_0 + L1S - 1));
        CU_ASSERT_EQUAL(fr(DATA)->fw & FW_U, 0);
        host_stop();
    }
}

/* Suspended at one in n points, with each n: wherever an error is, it is found once, told once, and undone. */
static void test_failure_xsa58_xsa290(void)
{
    static const u64 bad[] = { L1_0, L1_0 + L1S / 2, L1_0 + L1S - 1, L2_0, L2_0 + L2S - 1, L3, L4 };

    for (unsigned n = 1; n < 6; n++) {
        for (unsigned b = 0; b < ARRAY_SIZE(bad); b++) {
            fresh(1);
            host_preempt = n;
            table(bad[b])[bad[b] == L4 ? 255 : 500] = pte_make(MFN(bad[b] < L2_0 ? FRAMES : DATA), RWE | PTE_PSE);
            CU_ASSERT_EQUAL(CALL(100000, pt_pin(&host_dom, MFN(L4), FT_L4)), -XEN_EINVAL);
            finish();
            CU_ASSERT_EQUAL(sound(), 0);
            CU_ASSERT_TRUE(idle(L4) && idle(L3) && idle(L2_0) && idle(L1_0));
            CU_ASSERT_EQUAL(fr(DATA)->fw & FW_U, 0);
            host_stop();
        }
    }
}

/* A second vCPU that needs a frame of a parked item takes the item over; the first finds what it asked for. */
static void test_taken_over_xsa299_xsa310(void)
{
    for (u64 budget = 1; budget < 20000 * L1S; budget *= 7) {
        for (unsigned need = 0; need < 3; need++) {
            static const u64 frame[] = { L4, L3, L2_0 + 1 };
            static const enum frame_type type[] = { FT_L4, FT_L3, FT_L2 };

            fresh(2);
            host_budget = budget;
            pt_work_start();
            CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(L4), FT_L4), -XEN_ERESTART);
            CU_ASSERT_TRUE(sound() > 0);
            host_be_cpu(1);
            CU_ASSERT_EQUAL(CALL(10000, pt_get_type(&host_dom, MFN(frame[need]), type[need])), 0);
            CU_ASSERT_TRUE(valid(frame[need], type[need]));
            pt_put_type(&host_dom, MFN(frame[need]));
            finish();
            host_be_cpu(0);
            CU_ASSERT_EQUAL(CALL(10000, pt_pin(&host_dom, MFN(L4), FT_L4)), 0);
            CU_ASSERT_EQUAL(fw_t(fr(L4)->fw), 1);
            CU_ASSERT_EQUAL(sound(), 0);

            /* And on its way down: the frame is wanted for something else. */
            host_budget = budget;
            pt_work_start();
            CU_ASSERT_EQUAL(pt_unpin(&host_dom, MFN(L4)), 0);
            host_be_cpu(1);
            CU_ASSERT_EQUAL(CALL(10000, pt_get_type(&host_dom, MFN(L4), FT_W)), 0);
            pt_put_type(&host_dom, MFN(L4));
            host_be_cpu(0);
            finish();
            CU_ASSERT_EQUAL(sound(), 0);
            CU_ASSERT_EQUAL(fr(DATA)->fw & FW_U, 0);
            host_stop();
        }
    }
}

/* The hypercall is not issued again: what it had is dropped, and other calls are not disturbed. */
static void test_given_up_xsa97(void)
{
    fresh(1);
    host_budget = 50000;
    pt_work_start();
    CU_ASSERT_EQUAL(pt_get_type(&host_dom, MFN(L4), FT_L4), -XEN_ERESTART);
    CU_ASSERT_EQUAL(CALL(1000, pt_pin(&host_dom, MFN(BIG), FT_L2)), 0);
    CU_ASSERT_TRUE(valid(BIG, FT_L2));
    finish();
    CU_ASSERT_TRUE(idle(L4) && idle(L2_0));
    CU_ASSERT_EQUAL(sound(), 0);
    host_stop();
}

/* An entry that hooks a tree, replaces it, and is refused. */
static void test_entries(void)
{
    for (unsigned n = 1; n < 6; n++) {
        fresh(1);
        table(L4)[0] = 0;
        host_preempt = n;
        CU_ASSERT_EQUAL(CALL(100000, pt_pin(&host_dom, MFN(L4), FT_L4)), 0);
        CU_ASSERT_EQUAL(CALL(100000, pt_set(&host_dom, fr(L4), 3, 4, pte_make(MFN(L3), RWE), PT_NORMAL)), 0);
        CU_ASSERT_EQUAL(fw_t(fr(L3)->fw), 1);
        CU_ASSERT_EQUAL(pt_meta(fr(L1_0 + 5))->as, L4);               /* joined to the very end */
        CU_ASSERT_EQUAL(pt_meta(fr(L1_0 + 5))->user, 1);
        CU_ASSERT_EQUAL(CALL(100000, pt_set(&host_dom, fr(L4), 3, 4, pte_make(MFN(BIG), RWE), PT_NORMAL)), 0);
        finish();
        CU_ASSERT_EQUAL(sound(), 0);
        CU_ASSERT_TRUE(idle(L3) && idle(L1_0));
        CU_ASSERT_EQUAL(CALL(100000, pt_set(&host_dom, fr(L4), 4, 4, pte_make(MFN(DATA), RWE | PTE_PSE), PT_NORMAL)), -XEN_EINVAL);
        finish();
        CU_ASSERT_EQUAL(sound(), 0);
        host_stop();
    }
}

/* Pins of a multicall: parked in the middle, each is told its own fate. */
static void test_batch(void)
{
    for (unsigned n = 1; n < 6; n++) {
        int rc = 0;

        fresh(1);
        for (unsigned m = 1; m < FRAMES; m++) {                       /* all were writable: their pins are collected */
            CU_ASSERT_EQUAL(pt_get_type(&host_dom, MFN(m), FT_W), 0);
            pt_put_type(&host_dom, MFN(m));
        }
        table(L1_0 + 9)[3] = pte_make(MFN(FRAMES), RWE);
        host_preempt = n;
        pt_batch_begin();
        for (unsigned i = 0; i < 20 && !rc; i++) {
            pt_batch_token(i);
            rc = CALL(1000, pt_pin(&host_dom, MFN(L1_0 + i), FT_L1));
        }
        CU_ASSERT_EQUAL(rc, 0);
        if (pt_batch_end(&host_dom)) {
            CU_ASSERT_TRUE(sound() > 0);
            CU_ASSERT_EQUAL(CALL(1000, 0), 0);
        }
        CU_ASSERT_EQUAL(host_batch_failed, 1);
        CU_ASSERT_EQUAL(host_last_token, 9);
        for (unsigned i = 0; i < 20; i++)
            CU_ASSERT_EQUAL(valid(L1_0 + i, FT_L1), i != 9);
        CU_ASSERT_EQUAL(sound(), 0);
        host_stop();
    }
}

/* A root that user mode is to run on: its tables are marked in parts, and the reference waits meanwhile. */
static int use_as_user_root(void)
{
    int rc = pt_get_type(&host_dom, MFN(L4), FT_L4);

    return rc ? rc : pt_mark_user_root(&host_dom, fr(L4));
}

static void test_user_root(void)
{
    for (u64 budget = 1; budget < 20000 * L1S; budget *= 7) {
        fresh(1);
        table(L4)[400] = pte_make(MFN(L3), RWE);                      /* a kernel's slot: not user mode's by itself */
        table(L4)[0] = 0;
        CU_ASSERT_EQUAL(CALL(0, pt_pin(&host_dom, MFN(L4), FT_L4)), 0);
        CU_ASSERT_EQUAL(pt_meta(fr(L1_0))->user, 0);
        host_budget = budget;
        CU_ASSERT_EQUAL(CALL(100000, use_as_user_root()), 0);
        for (unsigned i = 0; i < L1S; i++)
            CU_ASSERT_EQUAL(pt_meta(fr(L1_0 + i))->user, 1);
        CU_ASSERT_EQUAL(fw_t(fr(L4)->fw), 2);
        pt_put_type(&host_dom, MFN(L4));
        CU_ASSERT_EQUAL(sound(), 0);
        host_stop();
    }
}

/* A write to an entry of a table in a parked item is not lost and not refused: the item goes first. */
static void test_write_to_suspended(void)
{
    u64 regs[24] = { 0 };
    struct pte_insn i = { .len = 4, .op = PTE_OP_MOV, .size = 8, .reg = REGS_RBX };

    fresh(2);
    CU_ASSERT_EQUAL(CALL(0, pt_pin(&host_dom, MFN(L2_0), FT_L2)), 0);
    host_budget = 1;
    pt_work_start();
    CU_ASSERT_EQUAL(pt_unpin(&host_dom, MFN(L2_0)), 0);
    CU_ASSERT_TRUE((fr(L2_0)->fw & FW_SUSP) != 0);
    host_be_cpu(1);
    pt_work_start();
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L2_0), 3, 2, 0, PT_NORMAL), -XEN_ERESTART);
    CU_ASSERT_EQUAL(CALL(1000, pt_set(&host_dom, fr(L2_0), 3, 2, 0, PT_NORMAL)), -XEN_EAGAIN);     /* now it is no table */
    CU_ASSERT_EQUAL(pt_emulate(&host_dom, fr(L2_0), 0, &i, regs), -XEN_EAGAIN);
    host_be_cpu(0);
    finish();
    CU_ASSERT_EQUAL(sound(), 0);
    host_stop();
}

int main(void)
{
    static CU_TestInfo tests[] = {
        { "no call spends more than its budget", test_budget_xsa45_xsa410 },
        { "failures in the middle", test_failure_xsa58_xsa290 },
        { "taken over by another vCPU", test_taken_over_xsa299_xsa310 },
        { "a call that is given up", test_given_up_xsa97 },
        { "entries that hook trees", test_entries },
        { "collected pins", test_batch },
        { "user roots", test_user_root },
        { "writes to suspended tables", test_write_to_suspended },
        CU_TEST_INFO_NULL,
    };
    CU_SuiteInfo suites[] = { { "work", NULL, NULL, NULL, NULL, tests }, CU_SUITE_INFO_NULL };

    if (CU_initialize_registry() || CU_register_suites(suites))
        return 2;
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    return CU_get_number_of_failures() != 0;
}
