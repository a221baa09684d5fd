/* SPDX-License-Identifier: MIT */
/* Known ways out of a PV guest that a boot cannot show for certain, each named after the Xen advisory that told of it.
 * More of them, by the same naming, are in test_frame.c, test_pt.c and test_pt_flush.c; docs/hostile-guest.md has all. */
#include <CUnit/Basic.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "above.h"
#include "audit.h"
#include "env.h"
#include "pt_meta.h"

enum { L1, L2, L3, L4, DATA, READ, OTHER, FRAMES = 16 };
#define RWE  (PTE_P | PTE_RW | PTE_US)
#define ROE  (PTE_P | PTE_US)

static struct frame *fr(unsigned mfn) { return frame_of(MFN(mfn)); }
static u64 *pte(unsigned mfn, unsigned i) { return (u64 *)env_map(MFN(mfn)) + i; }
static u64 to(unsigned mfn, u64 flags) { return pte_make(MFN(mfn), flags); }

static void no_refs(struct audit *a) { (void)a; }

static bool clean(void)
{
    struct audit a = { .d = &host_dom, .refs = no_refs };

    return audit_run(&a);
}

static int start(void)
{
    host_start(2, FRAMES, 512);                   /* no grace period ends in here: metas add up */
    pt_phys_mask = (1ull << 40) - 1;
    return 0;
}

static int stop(void)
{
    host_stop();
    return 0;
}

/* A validation that fails gives back every reference that it took, wherever it stops: in each table of a tree, at each
 * entry (45, 58, 290, 299, 310). */
static void test_failed_validation_xsa58_xsa299(void)
{
    const unsigned table[] = { L1, L2, L3, L4 };

    for (unsigned i = 0; i < PT_ENTRIES; i++) {
        *pte(L1, i) = i & 1 ? to(DATA, RWE) : to(READ, ROE);
        *pte(L2, i) = to(L1, RWE);
        *pte(L3, i) = i % 3 ? to(L2, RWE) : 0;
        *pte(L4, i) = i < 256 || i > 271 ? to(L3, RWE) : 0;
    }
    for (unsigned level = 0; level < 4; level++) {
        for (unsigned i = 0; i < PT_ENTRIES; i++) {
            u64 keep = *pte(table[level], i);

            if (level == 3 && i >= 256 && i <= 271)
                continue;
            *pte(table[level], i) = to(level ? DATA : L4, RWE);     /* no table; or a table, writable */
            CU_ASSERT_NOT_EQUAL(pt_pin(&host_dom, MFN(L4), FT_L4), 0);
            CU_ASSERT_TRUE(clean());
            *pte(table[level], i) = keep;
            for (unsigned m = 0; m < FRAMES; m++)
                CU_ASSERT_EQUAL(fr(m)->fw & FW_REFS, FW_ALLOC);
        }
    }
    CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(L4), FT_L4), 0);
    CU_ASSERT_TRUE(clean());
    CU_ASSERT_EQUAL(pt_unpin(&host_dom, MFN(L4)), 0);
    CU_ASSERT_TRUE(clean());
}

static u32 unpinned;

static void *unpin(void *arg)
{
    (void)arg;
    host_be_cpu(1);
    pt_unpin(&host_dom, MFN(OTHER));
    store_release(&unpinned, 1);
    return NULL;
}

/* An update in flight is no reference, yet the table's end waits for it: what it writes is dropped with the rest. */
static void test_update_in_flight_xsa242(void)
{
    pthread_t t;
    u64 w;

    CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(OTHER), FT_L1), 0);
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(OTHER), 7, 1, to(DATA, RWE), PT_NORMAL), 0);
    CU_ASSERT_TRUE(frame_k_enter(fr(OTHER), FT_L1));                /* between the check and the entry's write */
    store_relaxed(&unpinned, 0);
    if (pthread_create(&t, NULL, unpin, NULL)) {
        CU_FAIL("no thread");
        return;
    }
    do
        w = load_acquire(&fr(OTHER)->fw);
    while (!(w & FW_BUSY) && !load_acquire(&unpinned));
    usleep(20000);                                                  /* time enough to do wrong */
    CU_ASSERT_FALSE(load_acquire(&unpinned));
    CU_ASSERT_EQUAL(fw_t(load_acquire(&fr(DATA)->fw)), 1);          /* its entries are still its own */
    CU_ASSERT_EQUAL(pt_get_l1e(&host_dom, to(READ, ROE)), 0);
    store_relaxed(pte(OTHER, 8), to(READ, ROE));                    /* the write in flight */
    frame_k_exit(fr(OTHER));
    pthread_join(t, NULL);
    CU_ASSERT_TRUE(unpinned);
    CU_ASSERT_TRUE(clean());
    CU_ASSERT_EQUAL(fr(READ)->fw & FW_U, 0);
    CU_ASSERT_EQUAL(fw_t(fr(DATA)->fw), 0);
}

/* A join reads tables that nobody holds for it: by then they may be pages of the guest's with any frame number in them.  What a
 * table says here is not what was validated: the numbers lie beyond the frame table, or name frames of others. */
static void test_join_of_garbage(void)
{
    for (unsigned m = L1; m <= L3; m++) {                           /* never tables before: no marks yet */
        frame_release(fr(m));
        frame_assign(fr(m), HOST_DOM);
        memset(pte(m, 0), 0, PAGE_SIZE);
    }
    *pte(L2, 0) = to(L1, RWE);
    *pte(L3, 0) = to(L2, RWE);
    CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(L3), FT_L3), 0);
    for (unsigned i = 1; i < 40; i++) {
        *pte(L2, i) = (1ull << (12 + i)) | RWE;
        *pte(L3, i) = (1ull << (51 - i)) | RWE;
    }
    *pte(L2, 41) = to(FRAMES + 5, RWE);                             /* the hypervisor's */
    *pte(L3, 41) = to(FRAMES + 5, RWE);
    CU_ASSERT_TRUE(pt_join(fr(L3), 3, 4711, true));
    CU_ASSERT_EQUAL(pt_meta(fr(L1))->as, 4711);
    memset(pte(L2, 1), 0, PAGE_SIZE - 8);
    memset(pte(L3, 1), 0, PAGE_SIZE - 8);
    CU_ASSERT_EQUAL(pt_unpin(&host_dom, MFN(L3)), 0);
    CU_ASSERT_TRUE(clean());
}

int main(void)
{
    CU_pSuite s;
    unsigned failures;

    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    s = CU_add_suite("xsa", start, stop);
    if (!s || !CU_add_test(s, "failed validation: XSA-58, 299", test_failed_validation_xsa58_xsa299) ||
        !CU_add_test(s, "update in flight: XSA-242", test_update_in_flight_xsa242) ||
        !CU_add_test(s, "a join of garbage", test_join_of_garbage))
        return 1;
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    return failures != 0;
}
