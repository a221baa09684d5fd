/* SPDX-License-Identifier: MIT */
/* Tests every transition of the frame state word, one at a time, and its limits. */
#include <CUnit/Basic.h>
#include <stdlib.h>

#include "env.h"
#include "frame.h"

#define ANY_TYPE (enum frame_type)77

static struct frame *f;
static enum frame_type last;

static int start(void)
{
    host_start(1, 8, 0);
    host_counting_tsc = true;
    f = frame_of(MFN(3));
    return 0;
}

static int stop(void)
{
    host_stop();
    return 0;
}

static u64 word(bool alloc, enum frame_type ty, u64 flags, u64 t, u64 u)
{
    return (alloc ? FW_ALLOC : 0) | (u64)ty << FW_TY_SHIFT | flags | t << 19 | u;
}

static void set(u64 w)
{
    f->fw = w;
    f->stamp = f->meta = 0;
    last = ANY_TYPE;
}

static void test_assign_release(void)
{
    set(FW_DEAD);
    f->meta = 5;
    frame_assign(f, 9);
    CU_ASSERT_EQUAL(f->fw, FW_ALLOC);
    CU_ASSERT_EQUAL(f->owner, 9);
    CU_ASSERT_EQUAL(f->meta, 0);
    CU_ASSERT_TRUE(HOST_EXPECT_BUG(frame_assign(f, 8)));          /* it is in use */
    CU_ASSERT_EQUAL(frame_release(f), 1);
    CU_ASSERT_EQUAL(f->fw, FW_DEAD);
    CU_ASSERT_NOT_EQUAL(f->stamp, 0);
    CU_ASSERT_EQUAL(frame_release(f), -1);
    set(word(true, FT_L1, FW_VALID | FW_PIN, 1, 0));
    CU_ASSERT_EQUAL(frame_release(f), 0);                         /* a pinned table stays one */
    CU_ASSERT_EQUAL(f->fw, word(false, FT_L1, FW_VALID | FW_PIN, 1, 0));
    CU_ASSERT_EQUAL(frame_release(f), -1);
}

static void test_get_u(void)
{
    set(word(true, FT_NONE, 0, 0, 0));
    CU_ASSERT_TRUE(frame_get_u(f));
    CU_ASSERT_EQUAL(f->fw, word(true, FT_NONE, 0, 0, 1));
    /* Every single reference makes a frame live. */
    const u64 refs[] = { FW_ALLOC, FW_PIN, FW_BUSY, FW_K_ONE, FW_T_ONE, 1, 1ull << 55 };
    for (unsigned i = 0; i < ARRAY_SIZE(refs); i++) {
        set(refs[i]);
        CU_ASSERT_TRUE(frame_get_u(f));
        CU_ASSERT_EQUAL(f->fw, refs[i] + 1);
        set(refs[i] | FW_DEAD);
        CU_ASSERT_FALSE(frame_get_u(f));
        CU_ASSERT_EQUAL(f->fw, refs[i] | FW_DEAD);
    }
    set(word(false, FT_W, FW_VALID, 0, 0));
    CU_ASSERT_FALSE(frame_get_u(f));                              /* no reference: dying, whatever the rest says */
}

static void test_put_u(void)
{
    set(word(true, FT_L2, FW_VALID, 1, 2));
    CU_ASSERT_FALSE(frame_put_u(f));
    CU_ASSERT_FALSE(frame_put_u(f));
    CU_ASSERT_EQUAL(f->fw, word(true, FT_L2, FW_VALID, 1, 0));
    CU_ASSERT_TRUE(HOST_EXPECT_BUG(frame_put_u(f)));
    set(word(false, FT_W, 0, 0, 2));
    CU_ASSERT_FALSE(frame_put_u(f));
    CU_ASSERT_EQUAL(f->stamp, 0);
    CU_ASSERT_TRUE(frame_put_u(f));                               /* the last of any kind */
    CU_ASSERT_EQUAL(f->fw, word(false, FT_W, FW_DEAD, 0, 0));
    CU_ASSERT_NOT_EQUAL(f->stamp, 0);
}

/* U sticks at its maximum: the frame is never freed, but nothing else changes. */
static void test_u_limit(void)
{
    set(word(false, FT_NONE, 0, 0, FW_U - 1));
    CU_ASSERT_TRUE(frame_get_u(f));
    CU_ASSERT_EQUAL(f->fw & FW_U, FW_U);
    CU_ASSERT_TRUE(frame_get_u(f));
    CU_ASSERT_EQUAL(f->fw, word(false, FT_NONE, 0, 0, FW_U));
    for (unsigned i = 0; i < 5; i++)
        CU_ASSERT_FALSE(frame_put_u(f));
    CU_ASSERT_EQUAL(f->fw, word(false, FT_NONE, 0, 0, FW_U));
}

static void test_t_limit(void)
{
    const enum frame_type types[] = { FT_W, FT_L1, FT_L4, FT_SEG };

    for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
        set(word(true, types[i], FW_VALID, FW_T_LIMIT - 1, 7));
        CU_ASSERT_EQUAL(frame_get_t(f, types[i], &last), GET_OK);
        CU_ASSERT_EQUAL(fw_t(f->fw), FW_T_LIMIT);
        CU_ASSERT_FALSE(frame_get_t_fast(f, types[i]));
        CU_ASSERT_EQUAL(frame_get_t(f, types[i], &last), GET_REFUSED);
        CU_ASSERT_EQUAL(f->fw, word(true, types[i], FW_VALID, FW_T_LIMIT, 7));
        CU_ASSERT_EQUAL(frame_put_t(f), PUT_OK);
        CU_ASSERT_EQUAL(frame_get_t(f, types[i], &last), GET_OK);
    }
    /* Between the limit and an overflow into K there is room for every CPU to be in the middle of a get. */
    CU_ASSERT(FW_T_LIMIT + ENV_MAX_CPUS < FW_T >> 19);
    CU_ASSERT(ENV_MAX_CPUS <= FW_K / FW_K_ONE);
}

/* get_t from every state to every type, against the table in the design: who gets, waits, changes, or is refused. */
static void test_get_t_matrix(void)
{
    for (unsigned flags = 0; flags < 8; flags++) {
        bool busy = flags & 1, valid = flags & 2, alloc = flags & 4;
        for (u64 t = 0; t < 3; t++)
            for (enum frame_type from = FT_NONE; from <= FT_SEG; from++)
                for (enum frame_type to = FT_W; to <= FT_SEG; to++) {
                    u64 w = word(alloc, from, (busy ? FW_BUSY : 0) | (valid ? FW_VALID : 0), t, 0), after = w;
                    enum get_result want, got;

                    if ((busy && valid) || (valid && !t) || (!valid && t && !busy))
                        continue;                                 /* no state of the protocol */
                    set(w);
                    if (!busy && !t && !alloc)
                        want = GET_REFUSED;                       /* no reference at all */
                    else if (busy)
                        want = !t || from == to ? GET_BUSY : GET_REFUSED;
                    else if (t)
                        want = from == to ? GET_OK : GET_REFUSED;
                    else
                        want = from == FT_W && to == FT_W ? GET_OK : GET_NEED_UP;
                    if (want == GET_OK)
                        after = (w + FW_T_ONE) | FW_VALID;
                    if (want == GET_NEED_UP)
                        after = fw_set_type(w, to) + FW_T_ONE + FW_BUSY;
                    got = frame_get_t(f, to, &last);
                    if (got != want || f->fw != after || last != (want == GET_NEED_UP ? from : ANY_TYPE)) {
                        CU_FAIL("frame_get_t");
                        printf("word %#llx to %u: %u, expected %u, word %#llx\n", (unsigned long long)w, to, got, want,
                               (unsigned long long)f->fw);
                    }
                }
    }
    set(FW_DEAD);
    CU_ASSERT_EQUAL(frame_get_t(f, FT_W, &last), GET_REFUSED);
    set(FW_DEAD | FW_VALID | (u64)FT_W << FW_TY_SHIFT);
    CU_ASSERT_EQUAL(frame_get_t_slow(f, FT_W, &last), GET_REFUSED);
}

static bool put_t_is_a_bug(void) { return HOST_EXPECT_BUG(frame_put_t(f)); }

static void test_up(void)
{
    for (int pin = 0; pin < 2; pin++) {
        set(word(true, FT_NONE, 0, 0, 4));
        CU_ASSERT_EQUAL(frame_get_t(f, FT_L3, &last), GET_NEED_UP);
        CU_ASSERT_FALSE(frame_k_enter(f, FT_L3));
        CU_ASSERT_TRUE(put_t_is_a_bug());                         /* not while the type changes */
        CU_ASSERT_TRUE(frame_get_u(f));                           /* that changes under us */
        frame_up_done(f, pin);
        CU_ASSERT_EQUAL(f->fw, word(true, FT_L3, FW_VALID | (pin ? FW_PIN : 0), 1, 5));
    }
}

static void test_up_failed(void)
{
    set(word(true, FT_W, 0, 0, 4));
    CU_ASSERT_EQUAL(frame_get_t(f, FT_L3, &last), GET_NEED_UP);
    CU_ASSERT_EQUAL(last, FT_W);
    CU_ASSERT_FALSE(frame_up_failed(f));
    CU_ASSERT_EQUAL(f->fw, word(true, FT_NONE, 0, 0, 4));
    CU_ASSERT_EQUAL(f->meta, ~0ull);                              /* its old translations were not looked after */
    CU_ASSERT_NOT_EQUAL(f->stamp, 0);

    set(word(true, FT_NONE, 0, 0, 0));
    CU_ASSERT_EQUAL(frame_get_t(f, FT_L1, &last), GET_NEED_UP);
    CU_ASSERT_EQUAL(frame_release(f), 0);                         /* let go meanwhile: the type change still owns it */
    CU_ASSERT_TRUE(frame_up_failed(f));
    CU_ASSERT_EQUAL(f->fw, FW_DEAD);
}

static void test_down(void)
{
    u64 before;

    set(word(true, FT_L2, FW_VALID, 3, 1));
    CU_ASSERT_EQUAL(frame_put_t(f), PUT_OK);
    CU_ASSERT_EQUAL(frame_put_t(f), PUT_OK);
    before = env_tsc();
    CU_ASSERT_EQUAL(frame_put_t(f), PUT_NEED_DOWN);
    CU_ASSERT_EQUAL(f->fw, word(true, FT_L2, FW_BUSY, 0, 1));
    CU_ASSERT_EQUAL(frame_get_t(f, FT_L2, &last), GET_BUSY);
    CU_ASSERT_EQUAL(frame_get_t(f, FT_W, &last), GET_BUSY);
    CU_ASSERT_FALSE(frame_down_done(f, 0x123));
    CU_ASSERT_EQUAL(f->fw, word(true, FT_L2, 0, 0, 1));           /* idle, its last type kept for the flush decision */
    CU_ASSERT_EQUAL(f->meta, 0x123);
    CU_ASSERT(f->stamp > before);

    set(word(false, FT_W, FW_VALID, 1, 0));
    CU_ASSERT_EQUAL(frame_put_t(f), PUT_NEED_DOWN);
    CU_ASSERT_TRUE(frame_down_done(f, 0));
    CU_ASSERT_EQUAL(f->fw, word(false, FT_W, FW_DEAD, 0, 0));

    set(word(true, FT_W, 0, 0, 0));
    CU_ASSERT_TRUE(put_t_is_a_bug());                             /* there is none */
}

/* XSA-241: the time stamp is taken after the count reached 0, when nobody else can put a mapping back. */
static void test_stamp_after_zero_xsa241(void)
{
    u64 t;

    set(word(true, FT_W, FW_VALID, 2, 0));
    CU_ASSERT_EQUAL(frame_put_t(f), PUT_OK);
    CU_ASSERT_EQUAL(f->stamp, 0);
    CU_ASSERT_EQUAL(frame_put_t(f), PUT_NEED_DOWN);
    CU_ASSERT_EQUAL(f->stamp, 0);
    t = env_tsc();
    frame_down_done(f, 0);
    CU_ASSERT(f->stamp > t);
}

static void test_k(void)
{
    set(word(true, FT_L1, FW_VALID, 1, 0));
    CU_ASSERT_TRUE(frame_k_enter(f, FT_L1));
    CU_ASSERT_TRUE(frame_k_enter(f, FT_L1));
    CU_ASSERT_FALSE(frame_k_enter(f, FT_L2));
    CU_ASSERT_EQUAL(f->fw, word(true, FT_L1, FW_VALID, 1, 0) + 2 * FW_K_ONE);
    /* K is not a reference to the type: the table may go down, and then waits (XSA-242: whoever reaches 0 cleans up). */
    CU_ASSERT_EQUAL(frame_put_t(f), PUT_NEED_DOWN);
    CU_ASSERT_FALSE(frame_k_enter(f, FT_L1));
    frame_k_exit(f);
    frame_k_exit(f);
    frame_drain_k(f);
    CU_ASSERT_FALSE(frame_down_done(f, 0));
    CU_ASSERT_FALSE(frame_k_enter(f, FT_L1));
    set(word(true, FT_W, FW_VALID, 1, 0));
    CU_ASSERT_FALSE(frame_k_enter(f, FT_L1));
}

/* Any number of CPUs up to the limit may be inside an update at once. */
static void test_k_limit(void)
{
    const u64 w = word(true, FT_L1, FW_VALID, 1, 3);

    set(w);
    for (unsigned i = 0; i < ENV_MAX_CPUS; i++)
        CU_ASSERT_TRUE(frame_k_enter(f, FT_L1));
    CU_ASSERT_EQUAL(f->fw & ~FW_K, w);
    for (unsigned i = 0; i < ENV_MAX_CPUS; i++)
        frame_k_exit(f);
    CU_ASSERT_EQUAL(f->fw, w);
}

static void test_pin(void)
{
    set(word(true, FT_L4, FW_VALID, 1, 0));
    CU_ASSERT_FALSE(frame_unpin(f));
    CU_ASSERT_TRUE(frame_pin(f));
    CU_ASSERT_FALSE(frame_pin(f));
    CU_ASSERT_EQUAL(f->fw, word(true, FT_L4, FW_VALID | FW_PIN, 1, 0));
    CU_ASSERT_TRUE(frame_unpin(f));
    CU_ASSERT_FALSE(frame_unpin(f));
    CU_ASSERT_EQUAL(f->fw, word(true, FT_L4, FW_VALID, 1, 0));
    set(word(true, FT_L4, FW_BUSY | FW_PIN, 1, 0));
    CU_ASSERT_FALSE(frame_unpin(f));                              /* parked in a batch: not yet */
}

/* XSA-280: the fields whose sharing was the bug are separate. */
static void test_layout_xsa280(void)
{
    CU_ASSERT_EQUAL(sizeof(struct frame), 32);
    CU_ASSERT(offsetof(struct frame, stamp) != offsetof(struct frame, meta));
    CU_ASSERT(offsetof(struct frame, owner) != offsetof(struct frame, hint));
    /* The fields of the word are disjoint and do not touch each other's carries. */
    const u64 part[] = { FW_DEAD, FW_ALLOC, FW_PIN, FW_BUSY, FW_VALID, FW_CM, FW_TY, FW_K, FW_T, FW_U };
    u64 all = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(part); i++) {
        CU_ASSERT_EQUAL(all & part[i], 0);
        all |= part[i];
    }
}

int main(void)
{
    CU_pSuite suite;
    unsigned failures;

    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    suite = CU_add_suite("frame", start, stop);
    CU_ADD_TEST(suite, test_assign_release);
    CU_ADD_TEST(suite, test_get_u);
    CU_ADD_TEST(suite, test_put_u);
    CU_ADD_TEST(suite, test_u_limit);
    CU_ADD_TEST(suite, test_t_limit);
    CU_ADD_TEST(suite, test_get_t_matrix);
    CU_ADD_TEST(suite, test_up);
    CU_ADD_TEST(suite, test_up_failed);
    CU_ADD_TEST(suite, test_down);
    CU_ADD_TEST(suite, test_stamp_after_zero_xsa241);
    CU_ADD_TEST(suite, test_k);
    CU_ADD_TEST(suite, test_k_limit);
    CU_ADD_TEST(suite, test_pin);
    CU_ADD_TEST(suite, test_layout_xsa280);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures ? 1 : 0;
}
