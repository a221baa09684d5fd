/* SPDX-License-Identifier: MIT */
/* Strings, output, time and the command line. */
#include "guest.h"

#include <stdarg.h>

void *memset(void *d, int c, size_t n)
{
    void *p = d;

    __asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(c) : "memory");
    return d;
}

void *memcpy(void *d, const void *s, size_t n)
{
    void *p = d;

    __asm__ volatile("rep movsb" : "+D"(p), "+S"(s), "+c"(n) :: "memory");
    return d;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const u8 *x = a, *y = b;

    for (; n; n--, x++, y++)
        if (*x != *y)
            return *x - *y;
    return 0;
}

size_t strlen(const char *s)
{
    size_t n = 0;

    while (s[n])
        n++;
    return n;
}

const char *strstr_(const char *s, const char *what)
{
    size_t n = strlen(what);

    for (; *s; s++)
        if (!memcmp(s, what, n))
            return s;
    return n ? NULL : s;
}

struct out { char *p, *end; };

static void put(struct out *o, char c)
{
    if (o->p < o->end)
        *o->p++ = c;
}

static void put_number(struct out *o, u64 v, unsigned base, bool sharp)
{
    char digit[24];
    unsigned n = 0;

    if (sharp) {
        put(o, '0');
        put(o, 'x');
    }
    do
        digit[n++] = "0123456789abcdef"[v % base];
    while (v /= base);
    while (n)
        put(o, digit[--n]);
}

/* %s %c %d %u %x %ld %lu %lx, and # with x. */
static void vformat(struct out *o, const char *fmt, va_list ap)
{
    for (; *fmt; fmt++) {
        bool sharp = false, wide = false;

        if (*fmt != '%') {
            put(o, *fmt);
            continue;
        }
        for (fmt++; *fmt == '#' || *fmt == 'l'; fmt++) {
            sharp |= *fmt == '#';
            wide |= *fmt == 'l';
        }
        switch (*fmt) {
        case 's':
            for (const char *s = va_arg(ap, const char *); *s; s++)
                put(o, *s);
            break;
        case 'c':
            put(o, (char)va_arg(ap, int));
            break;
        case 'd': {
            long v = wide ? va_arg(ap, long) : va_arg(ap, int);

            if (v < 0)
                put(o, '-');
            put_number(o, v < 0 ? -(u64)v : (u64)v, 10, false);
            break;
        }
        case 'u':
        case 'x':
            put_number(o, wide ? va_arg(ap, u64) : va_arg(ap, u32), *fmt == 'x' ? 16 : 10, sharp);
            break;
        default:
            put(o, *fmt);
        }
    }
}

void format(char *buf, size_t size, const char *fmt, ...)
{
    struct out o = { buf, buf + size - 1 };
    va_list ap;

    va_start(ap, fmt);
    vformat(&o, fmt, ap);
    va_end(ap);
    *o.p = 0;
}

void format_va(char *buf, size_t size, const char *fmt, va_list ap)
{
    struct out o = { buf, buf + size - 1 };

    vformat(&o, fmt, ap);
    *o.p = 0;
}

/* One call of the hypervisor for each text, so that lines of several vCPUs do not mix. */
void say(const char *fmt, ...)
{
    char line[256];
    struct out o = { line, line + sizeof(line) };
    va_list ap;

    va_start(ap, fmt);
    vformat(&o, fmt, ap);
    va_end(ap);
    HC(console_io, CONSOLEIO_write, o.p - line, line);
}

void shutdown(u32 reason)
{
    struct sched_shutdown s = { reason };

    HC(sched_op, SCHEDOP_shutdown, &s);
    say("SCHEDOP_shutdown came back\n");
    for (;;)
        pause_();
}

const char *option(const char *name)
{
    const char *p = (const char *)si->cmd_line;
    size_t n = strlen(name);

    while ((p = strstr_(p, name))) {
        if ((p == (const char *)si->cmd_line || p[-1] == ' ') && p[n] == '=')
            return p + n + 1;
        p++;
    }
    return NULL;
}

static u64 rdtsc(void)
{
    u32 lo, hi;

    __asm__ volatile("lfence; rdtsc" : "=a"(lo), "=d"(hi) :: "memory");
    return (u64)hi << 32 | lo;
}

u64 now_ns(void)
{
    const volatile struct vcpu_time_info *t = &this_cpu()->info->time;
    u32 version;
    u64 d, ns;

    do {
        version = t->version;
        __asm__ volatile("" ::: "memory");
        d = rdtsc() - t->tsc_timestamp;
        d = t->tsc_shift >= 0 ? d << t->tsc_shift : d >> -t->tsc_shift;
        ns = t->system_time + (u64)((unsigned __int128)d * t->tsc_to_system_mul >> 32);
        __asm__ volatile("" ::: "memory");
    } while ((version & 1) || version != t->version);
    return ns;
}
