/* SPDX-License-Identifier: MIT */
/* Fixed-width names, typed frame numbers, and the few macros used everywhere. */
#ifndef PT_BASE_TYPES_H
#define PT_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t  u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t   s8;
typedef int16_t  s16;
typedef int32_t  s32;
typedef int64_t  s64;

/* A machine frame number.  A struct, so that it cannot be mixed up with a guest's pfn. */
typedef struct { u64 v; } mfn_t;
#define MFN(n)        ((mfn_t){ (n) })
#define MFN_INVALID   MFN(~0ull)
static inline bool mfn_eq(mfn_t a, mfn_t b) { return a.v == b.v; }

#define PAGE_SHIFT    12
#define PAGE_SIZE     (1ull << PAGE_SHIFT)
#define PAGE_MASK     (~(PAGE_SIZE - 1))

#define ARRAY_SIZE(a)      (sizeof(a) / sizeof((a)[0]))
#define ROUND_UP(x, a)     (((x) + (a) - 1) & ~((__typeof__(x))(a) - 1))
#define ROUND_DOWN(x, a)   ((x) & ~((__typeof__(x))(a) - 1))
#define MIN(a, b)          ((a) < (b) ? (a) : (b))
#define MAX(a, b)          ((a) > (b) ? (a) : (b))
#define likely(x)          __builtin_expect(!!(x), 1)
#define unlikely(x)        __builtin_expect(!!(x), 0)
#define CACHELINE          64
#define __cacheline        __attribute__((aligned(CACHELINE)))
#define container_of(p, t, m) ((t *)((char *)(p) - offsetof(t, m)))
#define __printf(f, a)     __attribute__((format(printf, f, a)))
#define __noreturn         __attribute__((noreturn))

#endif
