/* SPDX-License-Identifier: MIT */
/* The audit of all frames: clean over a small domain that has one of everything, and each way to break a count, a type,
 * a mark or an entry is found and named. */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "above.h"
#include "audit.h"
#include "env.h"

enum { L1A = 10, L2A, L3A, L4A, L1B, L4B, DATA, READ, SEG, SHARED, HELD, GONE, LIMBO, SELF, FREE = 40, FRAMES = 48 };
#define RWE  (PTE_P | PTE_RW | PTE_US)
#define ROE  (PTE_P | PTE_US)

static u64 user_root;            /* the mfn of a root that user mode runs on, 0: none */

static u64 *pte(unsigned mfn, unsigned i) { return (u64 *)env_map(MFN(mfn)) + i; }
static struct frame *fr(unsigned mfn) { return frame_of(MFN(mfn)); }
static u64 to(unsigned mfn, u64 flags) { return pte_make(MFN(mfn), flags); }

static void refs(struct audit *a)
{
    audit_root(a, MFN(L4A), false);
    if (user_root)
        audit_root(a, MFN(user_root), true);
    audit_ref(a, MFN(SEG), FT_SEG);
    audit_ref(a, MFN(SHARED), FT_W);
    audit_ref(a, MFN(HELD), FT_NONE);
}

static struct audit_finding first;
static unsigned reports;

static void report(struct audit *a, const struct audit_finding *f)
{
    (void)a;
    if (!reports++)
        first = *f;
}

static struct audit run(void)
{
    struct audit a = { .d = &host_dom, .refs = refs, .report = report };

    reports = 0;
    memset(&first, 0, sizeof(first));
    CU_ASSERT_EQUAL(audit_run(&a), a.wrong == 0);
    CU_ASSERT_EQUAL(reports, a.wrong < AUDIT_REPORTS ? a.wrong : AUDIT_REPORTS);
    for (unsigned m = 0; m < FRAMES; m++)
        CU_ASSERT_EQUAL(fr(m)->hint, 0);
    return a;
}

/* A root with one table of each level, an L1 that is only pinned, one more root, data, and references from outside. */
static int start(void)
{
    host_start(1, FRAMES, 16);
    pt_phys_mask = (1ull << 40) - 1;
    for (unsigned i = 0; i < 16; i++)
        pt_hv_slots[i] = to(1000 + i, PTE_P | PTE_RW | PTE_A);
    *pte(L1A, 0) = to(DATA, RWE);
    *pte(L1A, 1) = to(DATA, RWE);
    *pte(L1A, 2) = to(READ, ROE);
    *pte(L1A, 3) = to(L4A, ROE);                /* a table, seen read-only */
    *pte(L1A, 4) = to(SELF, RWE);
    *pte(L1A, 5) = to(LIMBO, ROE);
    *pte(L1A, 6) = 12345 << 1;                  /* not present */
    *pte(L2A, 7) = to(L1A, RWE);
    *pte(L3A, 8) = to(L2A, RWE);
    *pte(L4A, 9) = to(L3A, RWE);
    *pte(L4B, 300) = to(L3A, RWE);              /* the same tree, in a kernel slot of another root */
    *pte(L1B, 511) = to(READ, ROE);
    if (pt_pin(&host_dom, MFN(L4A), FT_L4) || pt_get_type(&host_dom, MFN(L4A), FT_L4) ||
        pt_pin(&host_dom, MFN(L4B), FT_L4) || pt_pin(&host_dom, MFN(L1B), FT_L1) ||
        pt_get_type(&host_dom, MFN(SEG), FT_SEG) || pt_get_type(&host_dom, MFN(SHARED), FT_W) ||
        !frame_get_u(fr(HELD)))
        return 1;
    user_root = 0;
    frame_release(fr(GONE));
    frame_release(fr(LIMBO));
    return 0;
}

static int stop(void)
{
    host_stop();
    return 0;
}

static void test_clean(void)
{
    struct audit a = run();

    CU_ASSERT_EQUAL(a.wrong, 0);
    CU_ASSERT_EQUAL(a.frames, FRAMES);
    CU_ASSERT_EQUAL(a.tables, 6);
    CU_ASSERT_EQUAL(a.dead, 1);
    CU_ASSERT_EQUAL(a.limbo, 1);
}

/* Updates by every door leave it clean. */
static void test_after_updates(void)
{
    for (unsigned i = 20; i < 60; i++)
        CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L1B), i, 1, to(i & 1 ? DATA : READ, i & 2 ? RWE : ROE), PT_NORMAL), 0);
    CU_ASSERT_EQUAL(run().wrong, 0);
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L2A), 100, 2, to(L1B, RWE), PT_NORMAL), 0);
    CU_ASSERT_EQUAL(run().wrong, 0);
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L2A), 101, 2, to(L1B, RWE), PT_NORMAL), 0);
    CU_ASSERT_EQUAL(run().wrong, 0);
    CU_ASSERT_NOT_EQUAL(pt_set(&host_dom, fr(L1B), 70, 1, to(L2A, RWE), PT_NORMAL), 0);
    CU_ASSERT_NOT_EQUAL(pt_set(&host_dom, fr(L2A), 102, 2, to(DATA, RWE), PT_NORMAL), 0);
    CU_ASSERT_EQUAL(run().wrong, 0);
    for (unsigned i = 20; i < 60; i++)
        CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L1B), i, 1, 0, PT_NORMAL), 0);
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L2A), 100, 2, 0, PT_NORMAL), 0);
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L2A), 101, 2, 0, PT_NORMAL), 0);
    CU_ASSERT_EQUAL(pt_unpin(&host_dom, MFN(L4B)), 0);
    CU_ASSERT_EQUAL(run().wrong, 0);
    CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(L4B), FT_L4), 0);
    CU_ASSERT_EQUAL(run().wrong, 0);
}

/* Changes one word, expects a finding about @mfn that speaks of @what (others may follow from it), and puts it back. */
#define BROKEN(word, value, mfn_, what_) do {                                                                      \
        __typeof__(word) *at_ = &(word), keep_ = *at_;                                                              \
        bool found_ = false;                                                                                       \
        *at_ = (value);                                                                                            \
        expect_mfn = (mfn_), expect_what = (what_), seen = &found_;                                                \
        CU_ASSERT_TRUE(run_seeing().wrong > 0);                                                                    \
        if (!found_)                                                                                               \
            printf("%s:%d: not found: %s of frame %u; first: %s of %llu\n", __FILE__, __LINE__, what_,           \
                   (unsigned)(mfn_), first.what ? first.what : "-", (unsigned long long)first.mfn.v);              \
        CU_ASSERT_TRUE(found_);                                                                                    \
        *at_ = keep_;                                                                                              \
        CU_ASSERT_EQUAL(run().wrong, 0);                                                                           \
    } while (0)

static u64 expect_mfn;
static const char *expect_what;
static bool *seen;

static void look(struct audit *a, const struct audit_finding *f)
{
    report(a, f);
    if (f->mfn.v == expect_mfn && strstr(f->what, expect_what))
        *seen = true;
}

static struct audit run_seeing(void)
{
    struct audit a = { .d = &host_dom, .refs = refs, .report = look };

    reports = 0;
    audit_run(&a);
    return a;
}

#define W(m) fr(m)->fw

static void test_counts(void)
{
    BROKEN(W(READ), W(READ) + 1, READ, "U");
    BROKEN(W(READ), W(READ) - 1, READ, "U");
    BROKEN(W(L4A), W(L4A) - 1, L4A, "U");
    BROKEN(W(HELD), W(HELD) - 1, HELD, "U");
    BROKEN(W(DATA), W(DATA) + FW_T_ONE, DATA, "T");
    BROKEN(W(DATA), W(DATA) - FW_T_ONE, DATA, "T");
    BROKEN(W(L1A), W(L1A) + FW_T_ONE, L1A, "T");
    BROKEN(W(L3A), W(L3A) - FW_T_ONE, L3A, "T");
    BROKEN(W(L4A), W(L4A) & ~FW_PIN, L4A, "T");
    BROKEN(W(L4B), W(L4B) + FW_T_ONE, L4B, "T");
    BROKEN(W(SEG), W(SEG) + FW_T_ONE, SEG, "T");
    BROKEN(W(SHARED), W(SHARED) - FW_T_ONE, SHARED, "T");
    BROKEN(W(FREE), W(FREE) + 1, FREE, "U");
    BROKEN(W(FREE), (W(FREE) + FW_T_ONE) | FW_VALID | (u64)FT_W << FW_TY_SHIFT, FREE, "T");
    BROKEN(user_root, L4B, L4B, "T");
}

static void test_states(void)
{
    BROKEN(W(DATA), W(DATA) | FW_BUSY, DATA, "in flight");
    BROKEN(W(L1A), W(L1A) + FW_K_ONE, L1A, "in flight");
    BROKEN(W(READ), W(READ) | 1ull << 55, READ, "in flight");
    BROKEN(W(DATA), W(DATA) & ~FW_VALID, DATA, "VALID");
    BROKEN(W(FREE), W(FREE) | FW_VALID, FREE, "VALID");
    BROKEN(W(FREE), W(FREE) | FW_PIN, FREE, "pinned");
    BROKEN(W(FREE), W(FREE) & ~FW_ALLOC, FREE, "without any reference");
    BROKEN(W(GONE), W(GONE) | FW_ALLOC, GONE, "dead");
    BROKEN(W(GONE), W(GONE) + 1, GONE, "dead");
    BROKEN(W(DATA), fw_set_type(W(DATA), FT_NONE), DATA, "without a type");
    BROKEN(W(FRAMES), FW_ALLOC, FRAMES, "nobody");         /* the heap's */
    BROKEN(fr(READ)->owner, 77, READ, "nobody");
    BROKEN(fr(SEG)->owner, 77, SEG, "somebody else's");
}

static void test_types(void)
{
    BROKEN(W(DATA), fw_set_type(W(DATA), FT_SEG), DATA, "mapped writable");
    BROKEN(*pte(L1A, 8), to(L2A, RWE), L2A, "mapped writable");
    BROKEN(*pte(L1A, 3), to(L4A, RWE), L4A, "mapped writable");
    BROKEN(*pte(L2A, 9), to(DATA, RWE), DATA, "named as a table");
    BROKEN(*pte(L3A, 9), to(L1B, RWE), L1B, "named as a table");
    BROKEN(*pte(L2A, 9), to(L2A, RWE), L2A, "named as a table");
    BROKEN(W(SEG), fw_set_type(W(SEG), FT_W), SEG, "outside of tables");
    BROKEN(W(L1B), fw_set_type(W(L1B), FT_L2), L1B, "level in meta");
    BROKEN(W(L3A), fw_set_type(W(L3A), FT_W), L3A, "named as a table");
}

static void test_entries(void)
{
    BROKEN(*pte(L1A, 0), 0, DATA, "T");
    BROKEN(*pte(L1A, 2), 0, READ, "U");
    BROKEN(*pte(L1A, 0), to(DATA, ROE), DATA, "T");
    BROKEN(*pte(L1A, 2), to(FREE, ROE), FREE, "U");
    BROKEN(*pte(L1A, 2), to(READ, PTE_P), L1A, "not adjusted");
    BROKEN(*pte(L1A, 2), to(READ, ROE | PTE_G), L1A, "not adjusted");
    BROKEN(*pte(L2A, 7), to(L1A, PTE_P | PTE_RW), L2A, "not adjusted");
    BROKEN(*pte(L1A, 2), to(READ, ROE | PTE_PCD), L1A, "uncached");
    BROKEN(*pte(L1A, 9), to(FRAMES + 1, ROE), L1A, "somebody else");
    BROKEN(*pte(L1A, 9), to(5000, ROE), L1A, "somebody else");
    BROKEN(*pte(L1A, 9), 1ull << 50 | ROE, L1A, "address width");
    BROKEN(*pte(L3A, 9), to(FRAMES + 1, RWE), L3A, "somebody else");
    BROKEN(*pte(L2A, 7), to(L1A, RWE | PTE_PSE), L2A, "refused bit");
    BROKEN(*pte(L4A, 9), to(L3A, RWE | PTE_G), L4A, "refused bit");
    BROKEN(*pte(L4A, 257), 0, L4A, "hypervisor's slot");
    BROKEN(*pte(L4A, 271), pt_hv_slots[15] ^ PTE_US, L4A, "hypervisor's slot");
    BROKEN(*pte(L4B, 256), to(L3A, RWE), L4B, "hypervisor's slot");
    host_io_allowed = host_dom.io_ok = true;
    *pte(L1A, 9) = to(5000, RWE);               /* a device's page is nobody's to count */
    CU_ASSERT_EQUAL(run().wrong, 0);
    *pte(L1A, 9) = 0;
    host_io_allowed = host_dom.io_ok = false;
    *pte(L4A, 256) = pt_hv_slots[0];            /* as in kernel mode */
    CU_ASSERT_EQUAL(run().wrong, 0);
    *pte(L4A, 256) = 0;
}

static void test_marks(void)
{
    BROKEN(fr(L1A)->meta, 0, L1A, "without meta");
    BROKEN(pt_meta(fr(L1A))->level, 2, L1A, "level");
    BROKEN(pt_meta(fr(L1A))->as, 4711, L1A, "address space");
    BROKEN(pt_meta(fr(L3A))->as, 4711, L3A, "address space");
    BROKEN(pt_meta(fr(L1A))->user, 0, L1A, "user mark");
    BROKEN(pt_meta(fr(L3A))->user, 0, L3A, "user mark");
    BROKEN(pt_meta(fr(L1A))->back, BACK_NONE, L1A, "back pointer");
    BROKEN(pt_meta(fr(L1A))->back, to(L2A, 8 * 8), L1A, "back pointer");
    BROKEN(pt_meta(fr(L1B))->back, to(L2A, 8 * 8), L1B, "back pointer");
    pt_mark_user_root(&host_dom, fr(L4B));
    pt_get_type(&host_dom, MFN(L4B), FT_L4);
    user_root = L4B;
    CU_ASSERT_EQUAL(run().wrong, 0);
    BROKEN(pt_meta(fr(L4B))->user, 0, L4B, "user mark of a root");
    user_root = 0;
    pt_put_type(&host_dom, MFN(L4B));
}

/* Not more lines than promised, and the total counts them all. */
static void test_many(void)
{
    for (unsigned i = 0; i < 30; i++)
        *pte(L1A, 100 + i) = to(L2A, RWE);
    CU_ASSERT_TRUE(run().wrong >= 30);
    CU_ASSERT_EQUAL(reports, AUDIT_REPORTS);
    memset(pte(L1A, 100), 0, 30 * 8);
    CU_ASSERT_EQUAL(run().wrong, 0);
}

int main(void)
{
    CU_pSuite s;
    unsigned failures;

    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    s = CU_add_suite("audit", start, stop);
    if (!s || !CU_add_test(s, "clean", test_clean) || !CU_add_test(s, "after updates", test_after_updates) ||
        !CU_add_test(s, "counts", test_counts) || !CU_add_test(s, "states", test_states) ||
        !CU_add_test(s, "types", test_types) || !CU_add_test(s, "entries", test_entries) ||
        !CU_add_test(s, "marks", test_marks) || !CU_add_test(s, "many findings", test_many))
        return 1;
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    return failures != 0;
}
