/* SPDX-License-Identifier: MIT */
/* Tests the freestanding string functions, under other names, against the C library's. */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

#define memcpy  our_memcpy
#define memmove our_memmove
#define memset  our_memset
#define memcmp  our_memcmp
#define strlen  our_strlen
#define strcmp  our_strcmp
#define strncmp our_strncmp
#define strchr  our_strchr
#include "string.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef strlen
#undef strcmp
#undef strncmp
#undef strchr

#define SIZE 96

static void fill(u8 *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (u8)(i * 7 + 1);
}

static void test_memmove(void)
{
    for (size_t from = 0; from < 20; from++) {
        for (size_t to = 0; to < 40; to++) {
            for (size_t n = 0; n < SIZE - 40; n++) {
                u8 want[SIZE], got[SIZE];

                fill(want, SIZE);
                fill(got, SIZE);
                memmove(want + to, want + from, n);
                CU_ASSERT(our_memmove(got + to, got + from, n) == got + to && memcmp(want, got, SIZE) == 0);
            }
        }
    }
}

static void test_memcpy(void)
{
    for (size_t from = 0; from < 9; from++) {
        for (size_t to = 0; to < 9; to++) {
            for (size_t n = 0; n < SIZE - 10; n++) {
                u8 src[SIZE], want[SIZE] = { 0 }, got[SIZE] = { 0 };

                fill(src, SIZE);
                memcpy(want + to, src + from, n);
                CU_ASSERT(our_memcpy(got + to, src + from, n) == got + to && memcmp(want, got, SIZE) == 0);
            }
        }
    }
}

static void test_memset(void)
{
    for (size_t to = 0; to < 9; to++) {
        for (size_t n = 0; n < SIZE - 10; n++) {
            u8 want[SIZE] = { 0 }, got[SIZE] = { 0 };

            memset(want + to, (int)n + 0x1fa, n);
            CU_ASSERT(our_memset(got + to, (int)n + 0x1fa, n) == got + to && memcmp(want, got, SIZE) == 0);
        }
    }
}

static int sign(int n) { return (n > 0) - (n < 0); }

static void test_memcmp(void)
{
    u8 a[SIZE], b[SIZE];

    fill(a, SIZE);
    fill(b, SIZE);
    CU_ASSERT_EQUAL(our_memcmp(a, b, SIZE), 0);
    CU_ASSERT_EQUAL(our_memcmp(a, b + 1, 0), 0);
    for (size_t i = 0; i < SIZE; i++) {
        for (int change = 1; change < 256; change += 127) {
            b[i] ^= (u8)change;
            for (size_t n = 0; n <= SIZE; n++)
                CU_ASSERT_EQUAL(sign(our_memcmp(a, b, n)), sign(memcmp(a, b, n)));
            b[i] ^= (u8)change;
        }
    }
}

static void test_strings(void)
{
    static const char *const texts[] = { "", "a", "b", "ab", "abc", "ab\xff", "ab\x01", "Xen", "Xen2" };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CU_ASSERT_EQUAL(our_strlen(texts[i]), strlen(texts[i]));
        for (int c = -1; c < 256; c++)
            CU_ASSERT_PTR_EQUAL(our_strchr(texts[i], c), strchr(texts[i], c));
        for (size_t k = 0; k < ARRAY_SIZE(texts); k++) {
            CU_ASSERT_EQUAL(sign(our_strcmp(texts[i], texts[k])), sign(strcmp(texts[i], texts[k])));
            for (size_t n = 0; n < 6; n++)
                CU_ASSERT_EQUAL(sign(our_strncmp(texts[i], texts[k], n)),
                                sign(strncmp(texts[i], texts[k], n)));
        }
    }
}

int main(void)
{
    CU_pSuite suite;
    unsigned failures;

    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    suite = CU_add_suite("string", NULL, NULL);
    CU_ADD_TEST(suite, test_memmove);
    CU_ADD_TEST(suite, test_memcpy);
    CU_ADD_TEST(suite, test_memset);
    CU_ADD_TEST(suite, test_memcmp);
    CU_ADD_TEST(suite, test_strings);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
