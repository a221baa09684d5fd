/* SPDX-License-Identifier: MIT */
/* Tests that no translation survives a type change: the decision by old and new type, its place in the type change, and
 * whole scenarios in which another CPU's MMU keeps what it may. */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pt_meta.c"

#include "above.h"
#include "env.h"
#include "mmu.h"

enum { DATA_A = 1, DATA_B, X, L2_A, L2_B, L3_A, L3_B, L4_A, L4_B, L1_M, FRAMES = 17 };     /* no domain has frame 0 */
#define P  PTE_P
#define RW PTE_RW
#define VA(l4, l3, l2, l1) ((u64)(l4) << 39 | (u64)(l3) << 30 | (u64)(l2) << 21 | (u64)(l1) << 12)

static struct frame *fr(u64 m) { return frame_of(MFN(m)); }
static u64 *table(u64 m) { return env_map(MFN(m)); }
static u64 entry(u64 m, u64 flags) { return pte_make(MFN(m), flags); }
static int set(u64 m, unsigned idx, int level, u64 e) { return pt_set(&host_dom, fr(m), idx, level, e, PT_NORMAL); }

static void fresh(void)
{
    host_start(2, FRAMES, 4);
    host_counting_tsc = host_ipi_at_once = true;
    memset(rcu_cpu, 0, sizeof(rcu_cpu[0]) * 2);
    memset(meta_cpu, 0, sizeof(meta_cpu));
    pt_phys_mask = 0x0000003ffffff000ull;
    memset(pt_hv_slots, 0, sizeof(pt_hv_slots));
    host_segdesc_ok = true;
    host_batch_failed = 0;
}

static unsigned flushes[2], not_claimed;
static const struct frame *claimed;
static enum frame_type claimed_type;

static void on_flush(unsigned cpu)
{
    u64 w = claimed->fw;

    flushes[cpu]++;
    not_claimed += !(w & FW_BUSY) || (w & FW_VALID) || fw_type(w) != claimed_type;
}

/* Brings DATA_A into the state idle(@last), as the code itself leaves it; @failed: by a validation that failed. */
static void make_idle(enum frame_type last, bool failed)
{
    if (failed) {
        table(DATA_A)[0] = entry(1ull << 38, P);
        CU_ASSERT_NOT_EQUAL(pt_get_type(&host_dom, MFN(DATA_A), FT_L1), 0);
        table(DATA_A)[0] = 0;
    } else if (last != FT_NONE) {
        CU_ASSERT_EQUAL(pt_get_type(&host_dom, MFN(DATA_A), last), 0);
        pt_put_type(&host_dom, MFN(DATA_A));
    }
}

/* XSA-408: what counts is what the frame was; XSA-401: the flush comes after the claim, and before the frame can be used. */
static void test_decision_xsa401_xsa408(void)
{
    for (enum frame_type last = FT_NONE; last <= FT_SEG; last++)
        for (enum frame_type ty = FT_W; ty <= FT_SEG; ty++)
            for (int failed = 0; failed < 2; failed++) {
                bool must, must_not;

                if (failed && last != FT_NONE)
                    continue;
                fresh();
                make_idle(last, failed);
                for (unsigned c = 0; c < 2; c++) {
                    tlb_cpu[c].as = AS_ANY;                       /* it has cached all that it could */
                    tlb_cpu[c].mode = 1;
                    tlb_cpu[c].flush_time = 0;
                }
                flushes[0] = flushes[1] = not_claimed = 0;
                claimed = fr(DATA_A);
                claimed_type = ty;
                host_on_flush = on_flush;
                CU_ASSERT_EQUAL(pt_get_type(&host_dom, MFN(DATA_A), ty), 0);
                must = failed || (last != FT_NONE && last != ty);
                must_not = (last == FT_NONE && !failed) || (last == FT_W && ty == FT_W);
                for (unsigned c = 0; c < 2; c++)
                    if ((must && flushes[c] != 1) || (must_not && flushes[c]))
                        CU_FAIL("flush decision");
                CU_ASSERT_EQUAL(not_claimed, 0);
                host_stop();
            }
}

/* A CPU that flushed since the frame became idle, or runs no guest, is left alone. */
static void test_skips(void)
{
    fresh();
    make_idle(FT_W, false);
    tlb_cpu[0].as = AS_ANY;
    tlb_cpu[1].as = AS_ANY;
    tlb_cpu[0].mode = tlb_cpu[1].mode = 1;
    tlb_cpu[1].flush_time = env_tsc();
    claimed = fr(DATA_A);
    claimed_type = FT_L1;
    flushes[0] = flushes[1] = 0;
    host_on_flush = on_flush;
    CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(DATA_A), FT_L1), 0);
    CU_ASSERT_EQUAL(flushes[0], 1);
    CU_ASSERT_EQUAL(flushes[1], 0);
    host_stop();
}

/* Collected pins: one flush for all of them, each is a table in the end, failures are told one by one. */
static void test_batch(void)
{
    fresh();
    tlb_cpu[0].as = tlb_cpu[1].as = AS_ANY;
    tlb_cpu[0].mode = tlb_cpu[1].mode = 1;
    for (u64 m = DATA_A; m <= L4_B; m++) {
        CU_ASSERT_EQUAL(pt_get_type(&host_dom, MFN(m), FT_W), 0);
        pt_put_type(&host_dom, MFN(m));
    }
    table(L2_A)[0] = entry(X, P);
    table(L3_A)[0] = entry(L2_A, P);
    table(DATA_B)[0] = entry(1ull << 38, P);
    pt_batch_begin();
    for (u64 m = X; m <= L3_A; m++) {
        pt_batch_token(m);
        if (m != L2_B)
            CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(m), m == X ? FT_L1 : m == L2_A ? FT_L2 : FT_L3), 0);
    }
    pt_batch_token(99);
    CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(DATA_B), FT_L1), 0);    /* its failure comes later */
    CU_ASSERT_EQUAL(stat_sum(STAT_tlb_request), 0);
    CU_ASSERT_EQUAL(fr(X)->fw & (FW_BUSY | FW_VALID), FW_BUSY);
    pt_batch_end(&host_dom);
    CU_ASSERT_EQUAL(stat_sum(STAT_tlb_request), 1);
    CU_ASSERT_EQUAL(host_batch_failed, 1);
    CU_ASSERT_EQUAL(host_last_token, 99);
    CU_ASSERT_EQUAL(fr(DATA_B)->fw & (FW_T | FW_PIN | FW_BUSY), 0);
    CU_ASSERT_EQUAL(fw_t(fr(X)->fw), 2);                          /* pin and L2 entry */
    CU_ASSERT_EQUAL(fw_t(fr(L2_A)->fw), 2);
    CU_ASSERT_EQUAL(fw_t(fr(L3_A)->fw), 1);
    /* Unpinning what is parked carries the batch out first. */
    pt_batch_begin();
    CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(L3_B), FT_L3), 0);
    CU_ASSERT_EQUAL(pt_unpin(&host_dom, MFN(L3_B)), 0);
    /* And so does an update of a parked table, and a full batch. */
    CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(L2_B), FT_L2), 0);
    CU_ASSERT_EQUAL(set(L2_B, 0, 2, entry(X, P)), 0);
    pt_batch_end(&host_dom);
    CU_ASSERT_EQUAL(fw_t(fr(X)->fw), 3);
    host_stop();
}

/* L4_A -> L3_A -> L2_A -> X -> DATA_A, and a second address space without X; both pinned. */
static void two_spaces(void)
{
    fresh();
    table(L4_A)[1] = entry(L3_A, P | RW);
    table(L3_A)[1] = entry(L2_A, P | RW);
    table(L2_A)[1] = entry(X, P | RW);
    table(X)[1] = entry(DATA_A, P);
    table(L4_B)[1] = entry(L3_B, P | RW);
    table(L3_B)[1] = entry(L2_B, P | RW);
    CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(L4_A), FT_L4), 0);
    CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(L4_B), FT_L4), 0);
    CU_ASSERT_NOT_EQUAL(pt_meta(fr(L4_A))->as, pt_meta(fr(L4_B))->as);
}

static void check_mmus(void)
{
    u64 seed = 3;

    for (unsigned i = 0; i < 50; i++)
        for (unsigned c = 0; c < 2; c++)
            mmu_step(c, &seed, 3);
    CU_ASSERT_EQUAL(mmu_bad.writable_table, 0);
    CU_ASSERT_EQUAL(mmu_bad.table_writable, 0);
    CU_ASSERT_EQUAL(mmu_bad.wrong_level, 0);
}

/* The plain case: CPU 1 has the table X cached in A; X is unhooked without a flush and mapped writable by CPU 0. */
static void test_table_to_writable(void)
{
    two_spaces();
    mmu_load_root(1, L4_A, pt_meta(fr(L4_A))->as, true);
    mmu_load_root(0, L4_B, pt_meta(fr(L4_B))->as, true);
    CU_ASSERT_TRUE(mmu_access(1, VA(1, 1, 1, 1), false, NULL));
    CU_ASSERT_EQUAL(set(L2_A, 1, 2, 0), 0);
    CU_ASSERT_TRUE(mmu_access(1, VA(1, 1, 1, 1), false, NULL));   /* nobody flushed: it still translates */
    CU_ASSERT_EQUAL(pt_get_type(&host_dom, MFN(X), FT_W), 0);
    CU_ASSERT_FALSE(mmu_access(1, VA(1, 1, 1, 1), false, NULL));
    CU_ASSERT_TRUE(stat_sum(STAT_tlb_skip_root) > 0);             /* and CPU 0, in B, was not asked to */
    check_mmus();
    host_stop();
}

/* X moves from A to B while nobody flushes, and becomes writable then: CPU 1 has it cached from A. */
static void test_table_moves_to_other_space(void)
{
    two_spaces();
    mmu_load_root(1, L4_A, pt_meta(fr(L4_A))->as, true);
    CU_ASSERT_TRUE(mmu_access(1, VA(1, 1, 1, 1), false, NULL));
    CU_ASSERT_EQUAL(set(L2_A, 1, 2, 0), 0);
    CU_ASSERT_EQUAL(set(L2_B, 1, 2, entry(X, P | RW)), 0);
    CU_ASSERT_EQUAL(set(L2_B, 1, 2, 0), 0);
    CU_ASSERT_EQUAL(pt_get_type(&host_dom, MFN(X), FT_W), 0);
    CU_ASSERT_FALSE(mmu_access(1, VA(1, 1, 1, 1), false, NULL));
    check_mmus();
    host_stop();
}

/* X leaves the tables that user mode runs on and is pinned by itself; CPU 1, in user mode, still has it cached and
 * picks up a writable mapping that is put into it then. */
static void test_user_table_pinned_alone(void)
{
    two_spaces();
    pt_mark_user_root(&host_dom, fr(L4_A));
    mmu_load_root(1, L4_A, pt_meta(fr(L4_A))->as, false);
    CU_ASSERT_TRUE(mmu_access(1, VA(1, 1, 1, 1), false, NULL));
    CU_ASSERT_EQUAL(set(L2_A, 1, 2, 0), 0);
    CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(X), FT_L1), 0);
    CU_ASSERT_EQUAL(set(X, 2, 1, entry(DATA_B, P | RW)), 0);
    mmu_access(1, VA(1, 1, 1, 2), true, NULL);
    CU_ASSERT_EQUAL(set(X, 2, 1, 0), 0);
    CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(DATA_B), FT_L1), 0);
    CU_ASSERT_FALSE(mmu_access(1, VA(1, 1, 1, 2), true, NULL));
    check_mmus();
    host_stop();
}

/* A writable mapping that user mode may have cached, removed by CPU 0: seen by the filter for CPUs in user mode. */
static void test_user_mapping_to_table(void)
{
    for (int user = 0; user < 2; user++) {
        two_spaces();
        if (user)
            pt_mark_user_root(&host_dom, fr(L4_A));
        CU_ASSERT_EQUAL(set(X, 2, 1, entry(DATA_B, P | RW)), 0);
        mmu_load_root(1, L4_A, pt_meta(fr(L4_A))->as, !user);
        CU_ASSERT_TRUE(mmu_access(1, VA(1, 1, 1, 2), true, NULL));
        CU_ASSERT_EQUAL(set(X, 2, 1, 0), 0);
        CU_ASSERT_TRUE(mmu_access(1, VA(1, 1, 1, 2), true, NULL));
        CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(DATA_B), FT_L1), 0);
        CU_ASSERT_FALSE(mmu_access(1, VA(1, 1, 1, 2), true, NULL));
        check_mmus();
        host_stop();
    }
}

/* A table of one level becomes one of another: cached upper entries must go (paging-structure caches). */
static void test_table_to_other_level(void)
{
    two_spaces();
    mmu_load_root(1, L4_A, pt_meta(fr(L4_A))->as, true);
    CU_ASSERT_TRUE(mmu_access(1, VA(1, 1, 1, 1), false, NULL));
    CU_ASSERT_EQUAL(set(L2_A, 1, 2, 0), 0);
    table(X)[1] = 0;
    CU_ASSERT_EQUAL(set(L3_B, 2, 3, entry(X, P | RW)), 0);        /* X is an L2 now */
    CU_ASSERT_FALSE(mmu_access(1, VA(1, 1, 1, 1), false, NULL));
    check_mmus();
    host_stop();
}

/* The marks of an address space follow a table that is hung into it, at all levels below. */
static void test_marks(void)
{
    two_spaces();
    CU_ASSERT_EQUAL(pt_meta(fr(X))->as, pt_meta(fr(L4_A))->as);
    CU_ASSERT_EQUAL(pt_meta(fr(X))->user, 1);                     /* a low slot: user mode's, whoever runs on the root */
    CU_ASSERT_EQUAL(set(L3_B, 5, 3, entry(L2_A, P)), 0);
    CU_ASSERT_EQUAL(pt_meta(fr(L2_A))->as, AS_ANY);
    CU_ASSERT_EQUAL(pt_meta(fr(X))->as, AS_ANY);
    CU_ASSERT_EQUAL(pt_meta(fr(L3_A))->as, pt_meta(fr(L4_A))->as);
    /* High slots are the kernel's, shared: any address space, no user. */
    CU_ASSERT_EQUAL(set(L2_A, 1, 2, 0), 0);
    CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(L1_M), FT_L1), 0);
    CU_ASSERT_EQUAL(pt_meta(fr(L1_M))->as, AS_NONE);
    host_stop();
}

int main(void)
{
    CU_pSuite suite;
    unsigned failures;

    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    suite = CU_add_suite("pt_flush", NULL, NULL);
    CU_ADD_TEST(suite, test_decision_xsa401_xsa408);
    CU_ADD_TEST(suite, test_skips);
    CU_ADD_TEST(suite, test_batch);
    CU_ADD_TEST(suite, test_table_to_writable);
    CU_ADD_TEST(suite, test_table_moves_to_other_space);
    CU_ADD_TEST(suite, test_user_table_pinned_alone);
    CU_ADD_TEST(suite, test_user_mapping_to_table);
    CU_ADD_TEST(suite, test_table_to_other_level);
    CU_ADD_TEST(suite, test_marks);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures ? 1 : 0;
}
