/* SPDX-License-Identifier: MIT */
/* Reads dom0_mem=, and turns it into pages of the machine at hand. */
#include "build/layout.h"

/* A decimal number at *@s, which moves behind it.  False: no digit, or too large for 64 bits. */
static bool number(const char **s, u64 *n)
{
    const char *p = *s;

    for (*n = 0; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(*n, 10, n) || __builtin_add_overflow(*n, (u64)(*p - '0'), n))
            return false;
    if (p == *s)
        return false;
    *s = p;
    return true;
}

/* Bits that a size's unit shifts by and whether a suffix was there; KiB is the default. */
static unsigned unit_shift(char c, bool *suffix)
{
    *suffix = true;
    switch (c) {
    case 'b': case 'B': return 0;
    case 'k': case 'K': return 10;
    case 'm': case 'M': return 20;
    case 'g': case 'G': return 30;
    case 't': case 'T': return 40;
    }
    *suffix = false;
    return 10;
}

/* One size at *@s, which moves behind it. */
static bool size(const char **s, struct mem_size *sz)
{
    unsigned shift;
    bool suffix;

    if (sz->set)
        return false;
    sz->set = true;
    if (**s == '-') {
        sz->negative = true;
        (*s)++;
    }
    if (!number(s, &sz->n))
        return false;
    if (**s == '%') {
        sz->percent = true;
        (*s)++;
        return sz->n <= 100;
    }
    shift = unit_shift(**s, &suffix);
    *s += suffix;
    if (sz->n >> (63 - shift))
        return false;
    sz->n <<= shift;
    return true;
}

static bool prefix(const char **s, const char *word)
{
    const char *p = *s;

    while (*word)
        if (*p++ != *word++)
            return false;
    *s = p;
    return true;
}

bool mem_option_parse(const char *s, struct mem_option *opt)
{
    bool ok;

    *opt = (struct mem_option){ 0 };
    for (;;) {
        ok = size(&s, prefix(&s, "min:") ? &opt->min : prefix(&s, "max:") ? &opt->max : &opt->size);
        if (ok && *s == '\0')
            return true;
        if (!ok || *s++ != ',')
            break;
    }
    *opt = (struct mem_option){ 0 };
    return false;
}

static u64 pages_of(const struct mem_size *sz, u64 available)
{
    u64 n = sz->percent ? available / 100 * sz->n + available % 100 * sz->n / 100 : sz->n >> PAGE_SHIFT;

    if (!sz->negative)
        return n;
    return n < available ? available - n : 0;
}

u64 mem_option_pages(const struct mem_option *opt, u64 available)
{
    u64 n = opt->size.set ? pages_of(&opt->size, available) : available;

    if (opt->min.set)
        n = MAX(n, pages_of(&opt->min, available));
    if (opt->max.set)
        n = MIN(n, pages_of(&opt->max, available));
    return MIN(n, available);
}
