/* SPDX-License-Identifier: MIT */
/* Tests the formatter against the C library's, over all combinations of flags, widths and precisions. */
#include <CUnit/Basic.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "vsnprintf.h"

/* Both formatters, same arguments, every buffer size; the C library is right. */
#define COMPARE(fmt, ...) do {                                                          \
    /* Unknown to the compiler, which would warn of the output being cut. */            \
    const char *volatile _fmt = fmt;                                                    \
    char _want[200], _got[200];                                                         \
    int _n = snprintf(_want, sizeof(_want), _fmt, __VA_ARGS__);                         \
    int _m = pt_snprintf(_got, sizeof(_got), _fmt, __VA_ARGS__);                        \
                                                                                        \
    check_same(_fmt, _want, _n, _got, _m);                                              \
    for (size_t _s = 0; _s < 8; _s++) {                                                 \
        memset(_want, 'x', sizeof(_want));                                              \
        memset(_got, 'x', sizeof(_got));                                                \
        _n = snprintf(_want, _s, _fmt, __VA_ARGS__);                                    \
        _m = pt_snprintf(_got, _s, _fmt, __VA_ARGS__);                                  \
        CU_ASSERT(_n == _m && memcmp(_want, _got, sizeof(_got)) == 0);                  \
    }                                                                                   \
} while (0)

static void check_same(const char *fmt, const char *want, int n, const char *got, int m)
{
    CU_ASSERT(n == m && strcmp(want, got) == 0);
    if (n != m || strcmp(want, got) != 0)
        printf("%s: \"%s\" %d instead of \"%s\" %d\n", fmt, got, m, want, n);
}

static const char *const widths[] = { "", "1", "5", "30" };
static const char *const precisions[] = { "", ".", ".0", ".3", ".25" };

/* Calls @check with every flags-width-precision prefix, "%" included. */
static void for_each_prefix(const char *flags, void (*check)(const char *prefix))
{
    const size_t n = strlen(flags);

    for (unsigned set = 0; set < 1u << n; set++) {
        for (size_t w = 0; w < ARRAY_SIZE(widths); w++) {
            for (size_t p = 0; p < ARRAY_SIZE(precisions); p++) {
                char prefix[30] = "%";

                for (size_t i = 0; i < n; i++)
                    if (set >> i & 1)
                        strncat(prefix, flags + i, 1);
                strcat(prefix, widths[w]);
                strcat(prefix, precisions[p]);
                check(prefix);
            }
        }
    }
}

static const char *with(const char *prefix, const char *conversion)
{
    static char fmt[40];

    snprintf(fmt, sizeof(fmt), "<%s%s>", prefix, conversion);
    return fmt;
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static void check_signed(const char *prefix)
{
    static const long long values[] = { 0, 1, -1, 7, -42, 100, INT_MAX, INT_MIN, LLONG_MAX, LLONG_MIN };

    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        COMPARE(with(prefix, "d"), (int)values[i]);
        COMPARE(with(prefix, "i"), (int)values[i]);
        COMPARE(with(prefix, "hd"), (int)values[i]);
        COMPARE(with(prefix, "hhd"), (int)values[i]);
        COMPARE(with(prefix, "ld"), (long)values[i]);
        COMPARE(with(prefix, "lld"), values[i]);
        COMPARE(with(prefix, "zd"), (ptrdiff_t)values[i]);
        COMPARE(with(prefix, "jd"), (intmax_t)values[i]);
        COMPARE(with(prefix, "td"), (ptrdiff_t)values[i]);
    }
}

static const unsigned long long unsigned_values[] = {
    0, 1, 9, 10, 0xabc, 65535, UINT_MAX, 0x123456789abcdef0, ULLONG_MAX,
};

static void check_unsigned(const char *prefix)
{
    for (size_t i = 0; i < ARRAY_SIZE(unsigned_values); i++) {
        const unsigned long long v = unsigned_values[i];

        COMPARE(with(prefix, "u"), (unsigned)v);
        COMPARE(with(prefix, "hu"), (unsigned)v);
        COMPARE(with(prefix, "hhu"), (unsigned)v);
        COMPARE(with(prefix, "lu"), (unsigned long)v);
        COMPARE(with(prefix, "llu"), v);
        COMPARE(with(prefix, "zu"), (size_t)v);
    }
}

static void check_hex(const char *prefix)
{
    for (size_t i = 0; i < ARRAY_SIZE(unsigned_values); i++) {
        const unsigned long long v = unsigned_values[i];

        COMPARE(with(prefix, "x"), (unsigned)v);
        COMPARE(with(prefix, "X"), (unsigned)v);
        COMPARE(with(prefix, "hx"), (unsigned)v);
        COMPARE(with(prefix, "hhX"), (unsigned)v);
        COMPARE(with(prefix, "lx"), (unsigned long)v);
        COMPARE(with(prefix, "llX"), v);
        COMPARE(with(prefix, "zx"), (size_t)v);
    }
}

static void check_string(const char *prefix)
{
    COMPARE(with(prefix, "s"), "");
    COMPARE(with(prefix, "s"), "ab");
    COMPARE(with(prefix, "s"), "a longer text with 33 characters.");
}

static void test_signed(void) { for_each_prefix("-0+ ", check_signed); }
static void test_unsigned(void) { for_each_prefix("-0", check_unsigned); }
static void test_hex(void) { for_each_prefix("-0#", check_hex); }
static void test_string(void) { for_each_prefix("-", check_string); }

static void test_char_and_percent(void)
{
    COMPARE("[%c]", 'x');
    COMPARE("[%5c|%-5c]", 'x', 'y');
    COMPARE("%d%%, %s", 5, "done");
    COMPARE("%s", "%d %n");
}

static void test_star(void)
{
    static const int n[] = { -30, -1, 0, 1, 10 };

    for (size_t w = 0; w < ARRAY_SIZE(n); w++) {
        COMPARE("[%*d]", n[w], 42);
        COMPARE("[%.*s]", n[w], "text");
        for (size_t p = 0; p < ARRAY_SIZE(n); p++)
            COMPARE("[%*.*x] %s", n[w], n[p], 0xbeefu, "behind");
    }
}

static void test_pointer(void)
{
    char text[40];

    COMPARE("%p", (void *)0x1234);
    COMPARE("[%20p]", (void *)0xffff82d040000000);
    COMPARE("[%-20p]", (void *)&text);
    pt_snprintf(text, sizeof(text), "%p", NULL);
    CU_ASSERT_STRING_EQUAL(text, "0x0");
}

/* A precision bounds a string that has no end. */
static void test_unterminated(void)
{
    const char four[4] = { 'f', 'o', 'u', 'r' };
    char text[10];

    CU_ASSERT_EQUAL(pt_snprintf(text, sizeof(text), "%.4s", four), 4);
    CU_ASSERT_STRING_EQUAL(text, "four");
}

static void test_null_string(void)
{
    const char *volatile nothing = NULL;
    char text[10];

    CU_ASSERT_EQUAL(pt_snprintf(text, sizeof(text), "%s", nothing), 6);
    CU_ASSERT_STRING_EQUAL(text, "(null)");
}

/* What is not known comes out as it stands and takes no argument. */
static void test_unknown(void)
{
    static const struct { const char *fmt, *want; } cases[] = {
        { "%d %q|", "7 %q|" }, { "%d %n|", "7 %n|" }, { "%d %5.2f|", "7 %5.2f|" }, { "%d %", "7 %" },
        { "%d %-08ll", "7 %-08ll" },
    };
    char text[40];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CU_ASSERT_EQUAL(pt_snprintf(text, sizeof(text), cases[i].fmt, 7), (int)strlen(cases[i].want));
        CU_ASSERT_STRING_EQUAL(text, cases[i].want);
    }
}

static void test_no_buffer(void)
{
    const char *volatile text = "text";

    CU_ASSERT_EQUAL(pt_snprintf(NULL, 0, "%s %d", text, 42), 7);
}

/* A width from a format cannot be made to run for ever. */
static void test_huge_width(void)
{
    char text[20];
    const char *volatile fmt = "%99999999999999999999d";

    CU_ASSERT_EQUAL(pt_snprintf(text, sizeof(text), fmt, 1), 4096);
    CU_ASSERT_EQUAL(strlen(text), sizeof(text) - 1);
}

int main(void)
{
    CU_pSuite suite;
    unsigned failures;

    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    suite = CU_add_suite("vsnprintf", NULL, NULL);
    CU_ADD_TEST(suite, test_signed);
    CU_ADD_TEST(suite, test_unsigned);
    CU_ADD_TEST(suite, test_hex);
    CU_ADD_TEST(suite, test_string);
    CU_ADD_TEST(suite, test_char_and_percent);
    CU_ADD_TEST(suite, test_star);
    CU_ADD_TEST(suite, test_pointer);
    CU_ADD_TEST(suite, test_unterminated);
    CU_ADD_TEST(suite, test_null_string);
    CU_ADD_TEST(suite, test_unknown);
    CU_ADD_TEST(suite, test_no_buffer);
    CU_ADD_TEST(suite, test_huge_width);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
