/* SPDX-License-Identifier: MIT */
/* Formatted text into a buffer: the integer and string part of C's vsnprintf(). */
#include "vsnprintf.h"

enum length { LEN_CHAR = -2, LEN_SHORT, LEN_INT, LEN_LONG, LEN_LLONG };

/* One conversion, as read from the format. */
struct spec {
    bool left, zero, alt, plus, space;
    int width;
    int precision;             /* -1: none given */
    enum length length;
};

struct out { char *buf; size_t size, len; };

static void put(struct out *o, char c)
{
    if (o->len + 1 < o->size)
        o->buf[o->len] = c;
    o->len++;
}

static void put_n(struct out *o, const char *s, int n)
{
    while (n-- > 0)
        put(o, *s++);
}

static void put_fill(struct out *o, char c, int n)
{
    while (n-- > 0)
        put(o, c);
}

static void put_string(struct out *o, const struct spec *sp, const char *s, int n)
{
    put_fill(o, ' ', sp->left ? 0 : sp->width - n);
    put_n(o, s, n);
    put_fill(o, ' ', sp->left ? sp->width - n : 0);
}

/* At most @limit bytes are looked at, so that a precision also bounds unterminated text. */
static int string_length(const char *s, int limit)
{
    int n = 0;

    while ((limit < 0 || n < limit) && s[n] != '\0')
        n++;
    return n;
}

static void put_number(struct out *o, const struct spec *sp, u64 v, unsigned base, bool upper,
                       const char *prefix)
{
    const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    char text[20];             /* 2^64 - 1 has 20 decimal digits */
    int n = 0, zeros, total, prefix_len = string_length(prefix, -1);

    for (u64 rest = v; rest != 0; rest /= base)
        text[sizeof(text) - 1 - n++] = digits[rest % base];
    zeros = (sp->precision < 0 ? 1 : sp->precision) - n;
    if (sp->zero && !sp->left && sp->precision < 0)
        zeros = MAX(zeros, sp->width - prefix_len - n);
    zeros = MAX(zeros, 0);
    total = prefix_len + zeros + n;

    put_fill(o, ' ', sp->left ? 0 : sp->width - total);
    put_n(o, prefix, prefix_len);
    put_fill(o, '0', zeros);
    put_n(o, text + sizeof(text) - n, n);
    put_fill(o, ' ', sp->left ? sp->width - total : 0);
}

static void put_signed(struct out *o, const struct spec *sp, s64 v)
{
    const char *sign = v < 0 ? "-" : sp->plus ? "+" : sp->space ? " " : "";

    put_number(o, sp, v < 0 ? -(u64)v : (u64)v, 10, false, sign);
}

static void put_hex(struct out *o, const struct spec *sp, u64 v, bool upper)
{
    put_number(o, sp, v, 16, upper, !sp->alt || v == 0 ? "" : upper ? "0X" : "0x");
}

/* va_list may be an array type: only by reference can a callee advance the caller's. */
struct args { va_list ap; };

static s64 arg_signed(struct args *a, enum length length)
{
    switch (length) {
    case LEN_CHAR:  return (signed char)va_arg(a->ap, int);
    case LEN_SHORT: return (short)va_arg(a->ap, int);
    case LEN_INT:   return va_arg(a->ap, int);
    case LEN_LONG:  return va_arg(a->ap, long);
    case LEN_LLONG: break;
    }
    return va_arg(a->ap, long long);
}

static u64 arg_unsigned(struct args *a, enum length length)
{
    switch (length) {
    case LEN_CHAR:  return (unsigned char)va_arg(a->ap, unsigned);
    case LEN_SHORT: return (unsigned short)va_arg(a->ap, unsigned);
    case LEN_INT:   return va_arg(a->ap, unsigned);
    case LEN_LONG:  return va_arg(a->ap, unsigned long);
    case LEN_LLONG: break;
    }
    return va_arg(a->ap, unsigned long long);
}

static const char *read_flags(const char *f, struct spec *sp)
{
    for (;; f++) {
        switch (*f) {
        case '-': sp->left = true; break;
        case '0': sp->zero = true; break;
        case '#': sp->alt = true; break;
        case '+': sp->plus = true; break;
        case ' ': sp->space = true; break;
        default: return f;
        }
    }
}

/* Digits, or '*' for the next argument.  Larger numbers than any console line are cut. */
static const char *read_number(const char *f, struct args *a, int *n)
{
    const int limit = 4096;

    *n = 0;
    if (*f == '*') {
        *n = va_arg(a->ap, int);
        *n = MAX(MIN(*n, limit), -limit);
        return f + 1;
    }
    for (; *f >= '0' && *f <= '9'; f++)
        *n = MIN(*n * 10 + (*f - '0'), limit);
    return f;
}

static const char *read_length(const char *f, struct spec *sp)
{
    switch (*f) {
    case 'h':
        sp->length = f[1] == 'h' ? LEN_CHAR : LEN_SHORT;
        return f + (f[1] == 'h' ? 2 : 1);
    case 'l':
        sp->length = f[1] == 'l' ? LEN_LLONG : LEN_LONG;
        return f + (f[1] == 'l' ? 2 : 1);
    case 'z':
    case 'j':
    case 't':
        sp->length = LEN_LONG;
        return f + 1;
    default:
        return f;
    }
}

static const char *read_spec(const char *f, struct args *a, struct spec *sp)
{
    *sp = (struct spec){ .precision = -1, .length = LEN_INT };
    f = read_flags(f, sp);
    f = read_number(f, a, &sp->width);
    if (sp->width < 0) {
        sp->left = true;
        sp->width = -sp->width;
    }
    if (*f == '.') {
        f = read_number(f + 1, a, &sp->precision);
        if (sp->precision < 0)
            sp->precision = -1;
    }
    return read_length(f, sp);
}

/* Prints by conversion character @c; false when there is no such conversion. */
static bool convert(struct out *o, struct spec *sp, char c, struct args *a)
{
    switch (c) {
    case '%':
        put(o, '%');
        return true;
    case 'c': {
        char ch = (char)va_arg(a->ap, int);

        put_string(o, sp, &ch, 1);
        return true;
    }
    case 's': {
        const char *s = va_arg(a->ap, const char *);

        if (s == NULL)
            s = "(null)";
        put_string(o, sp, s, string_length(s, sp->precision));
        return true;
    }
    case 'd':
    case 'i':
        put_signed(o, sp, arg_signed(a, sp->length));
        return true;
    case 'u':
        put_number(o, sp, arg_unsigned(a, sp->length), 10, false, "");
        return true;
    case 'x':
    case 'X':
        put_hex(o, sp, arg_unsigned(a, sp->length), c == 'X');
        return true;
    case 'p':
        put_number(o, sp, (u64)va_arg(a->ap, void *), 16, false, "0x");
        return true;
    default:
        return false;
    }
}

int pt_vsnprintf(char *buf, size_t size, const char *fmt, va_list ap)
{
    struct out o = { buf, size, 0 };
    struct args a;

    va_copy(a.ap, ap);
    while (*fmt != '\0') {
        const char *start = fmt++;
        struct spec sp;

        if (*start != '%') {
            put(&o, *start);
            continue;
        }
        fmt = read_spec(fmt, &a, &sp);
        if (*fmt != '\0' && convert(&o, &sp, *fmt, &a))
            fmt++;
        else
            put_n(&o, start, (int)(fmt - start));
    }
    va_end(a.ap);
    if (size != 0)
        buf[MIN(o.len, size - 1)] = '\0';
    return (int)o.len;
}

int pt_snprintf(char *buf, size_t size, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = pt_vsnprintf(buf, size, fmt, ap);
    va_end(ap);
    return n;
}
