/* SPDX-License-Identifier: MIT */
/* The string functions that a freestanding image must bring along: compilers call the mem* ones unasked. */
#include "pt_string.h"

#include "base/types.h"

/* String instructions, so that no compiler can turn a loop in here back into a call of the function itself.
 * Eight bytes a step: an emulated CPU takes the same time for each step, whatever its width. */
static inline void copy_bytes(void *dst, const void *src, size_t n)
{
    __asm__ volatile("rep movsb" : "+D" (dst), "+S" (src), "+c" (n) : : "memory");
}

static inline void copy_words(void *dst, const void *src, size_t words)
{
    __asm__ volatile("rep movsq" : "+D" (dst), "+S" (src), "+c" (words) : : "memory");
}

static inline u64 load_word(const void *p)
{
    u64 v;

    __builtin_memcpy(&v, p, sizeof(v));
    return v;
}

static inline void store_word(void *p, u64 v) { __builtin_memcpy(p, &v, sizeof(v)); }

void *memcpy(void *dst, const void *src, size_t n)
{
    u64 last;

    if (n < sizeof(last)) {
        copy_bytes(dst, src, n);
        return dst;
    }
    /* The words, and the last 8 bytes, which may overlap the last word. */
    last = load_word((const char *)src + n - sizeof(last));
    copy_words(dst, src, n / sizeof(last));
    store_word((char *)dst + n - sizeof(last), last);
    return dst;
}

/* From the end down, for a destination that begins inside the source. */
static void copy_down(char *dst, const char *src, size_t n)
{
    while (n >= sizeof(u64)) {
        n -= sizeof(u64);
        store_word(dst + n, load_word(src + n));
        __asm__ volatile("" : : : "memory");
    }
    while (n-- > 0) {
        dst[n] = src[n];
        __asm__ volatile("" : : : "memory");
    }
}

void *memmove(void *dst, const void *src, size_t n)
{
    /* Below @src the difference wraps to a large number: then, too, going up never meets its own output. */
    if ((uintptr_t)dst - (uintptr_t)src >= n)
        return memcpy(dst, src, n);
    copy_down(dst, src, n);
    return dst;
}

void *memset(void *dst, int c, size_t n)
{
    u64 word = (u8)c * 0x0101010101010101ull;
    void *p = dst;
    size_t words = n / sizeof(word), rest = n % sizeof(word);

    __asm__ volatile("rep stosq" : "+D" (p), "+c" (words) : "a" (word) : "memory");
    __asm__ volatile("rep stosb" : "+D" (p), "+c" (rest) : "a" (word) : "memory");
    return dst;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const u8 *p = a, *q = b;

    while (n >= sizeof(u64) && load_word(p) == load_word(q)) {
        p += sizeof(u64);
        q += sizeof(u64);
        n -= sizeof(u64);
    }
    for (; n > 0; p++, q++, n--)
        if (*p != *q)
            return *p - *q;
    return 0;
}

size_t strlen(const char *s)
{
    size_t n = 0;

    while (s[n] != '\0') {
        n++;
        __asm__ volatile("" : : : "memory");
    }
    return n;
}

int strcmp(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return (u8)*a - (u8)*b;
}

int strncmp(const char *a, const char *b, size_t n)
{
    for (; n > 0; a++, b++, n--)
        if (*a != *b || *a == '\0')
            return (u8)*a - (u8)*b;
    return 0;
}

char *strchr(const char *s, int c)
{
    for (; *s != (char)c; s++)
        if (*s == '\0')
            return NULL;
    return (char *)s;
}
