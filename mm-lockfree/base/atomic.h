/* SPDX-License-Identifier: MIT */
/* Atomic operations on shared words.  On the metal they are Concurrency Kit's ck_pr; hosted builds
 * use the compiler's builtins, which ThreadSanitizer understands.  Every read-modify-write here is
 * sequentially consistent (on x86-64 a locked instruction); loads and stores carry their order in
 * their name. */
#ifndef PT_BASE_ATOMIC_H
#define PT_BASE_ATOMIC_H

#include "base/types.h"

#ifdef HV_MC

/* The controlled-interleaving build (stress/mc): each access is a scheduling point of its simulated CPU. */
u64 mc_load(const void *p, unsigned size);
void mc_store(void *p, u64 v, unsigned size);
bool mc_cas(void *p, u64 *old, u64 new, unsigned size);
enum mc_rmw { MC_XCHG, MC_ADD, MC_OR, MC_AND };
u64 mc_rmw(enum mc_rmw op, void *p, u64 v, unsigned size);      /* returns the old value */
void mc_fence(void);
void mc_relax(void);

#define load_relaxed(p)      ((__typeof__((void)0, *(p)))mc_load((p), sizeof(*(p))))
#define load_acquire(p)      load_relaxed(p)
#define store_relaxed(p, v)  ({ __typeof__(*(p)) _v = (v); mc_store((p), (u64)_v, sizeof(_v)); })
#define store_release(p, v)  store_relaxed(p, v)
static inline bool atomic_cas64(u64 *p, u64 *old, u64 new) { return mc_cas(p, old, new, 8); }
static inline u64 atomic_xchg64(u64 *p, u64 v) { return mc_rmw(MC_XCHG, p, v, 8); }
static inline u64 atomic_faa64(u64 *p, u64 v) { return mc_rmw(MC_ADD, p, v, 8); }
static inline u32 atomic_faa32(u32 *p, u32 v) { return (u32)mc_rmw(MC_ADD, p, v, 4); }
static inline u32 atomic_xchg32(u32 *p, u32 v) { return (u32)mc_rmw(MC_XCHG, p, v, 4); }
static inline bool atomic_cas32(u32 *p, u32 *old, u32 new)
{
    u64 o = *old;
    bool ok = mc_cas(p, &o, new, 4);

    *old = (u32)o;
    return ok;
}
static inline u8 atomic_xchg8(u8 *p, u8 v) { return (u8)mc_rmw(MC_XCHG, p, v, 1); }
static inline void atomic_or64(u64 *p, u64 v) { mc_rmw(MC_OR, p, v, 8); }
static inline void atomic_and64(u64 *p, u64 v) { mc_rmw(MC_AND, p, v, 8); }
static inline u64 atomic_fetch_and64(u64 *p, u64 v) { return mc_rmw(MC_AND, p, v, 8); }
static inline void atomic_fence(void) { mc_fence(); }
static inline void cpu_relax(void) { mc_relax(); }
static inline bool atomic_test_and_set_bit(u64 *p, unsigned n)
{ return mc_rmw(MC_OR, p + n / 64, 1ull << (n % 64), 8) >> (n % 64) & 1; }
static inline bool atomic_test_and_clear_bit(u64 *p, unsigned n)
{ return mc_rmw(MC_AND, p + n / 64, ~(1ull << (n % 64)), 8) >> (n % 64) & 1; }

#elif defined(HV_HOSTED)

#define load_relaxed(p)      __atomic_load_n((p), __ATOMIC_RELAXED)
#define load_acquire(p)      __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define store_relaxed(p, v)  __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define store_release(p, v)  __atomic_store_n((p), (v), __ATOMIC_RELEASE)
static inline bool atomic_cas64(u64 *p, u64 *old, u64 new)
{ return __atomic_compare_exchange_n(p, old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); }
static inline u64 atomic_xchg64(u64 *p, u64 v) { return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); }
static inline u64 atomic_faa64(u64 *p, u64 v) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); }
static inline u32 atomic_faa32(u32 *p, u32 v) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); }
static inline u32 atomic_xchg32(u32 *p, u32 v) { return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); }
static inline bool atomic_cas32(u32 *p, u32 *old, u32 new)
{ return __atomic_compare_exchange_n(p, old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); }
static inline u8 atomic_xchg8(u8 *p, u8 v) { return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); }
static inline void atomic_or64(u64 *p, u64 v) { __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST); }
static inline void atomic_and64(u64 *p, u64 v) { __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST); }
static inline u64 atomic_fetch_and64(u64 *p, u64 v) { return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST); }
static inline void atomic_fence(void)  /* a locked operation: ThreadSanitizer knows no fences */
{
    volatile u64 w = 0;

    __atomic_fetch_add(&w, 1, __ATOMIC_SEQ_CST);
}
int sched_yield(void);                 /* threads may be many more than CPUs */
static inline void cpu_relax(void) { sched_yield(); }
/* Sets bit @n of the bitmap at @p; returns its old value. */
static inline bool atomic_test_and_set_bit(u64 *p, unsigned n)
{ return __atomic_fetch_or(p + n / 64, 1ull << (n % 64), __ATOMIC_SEQ_CST) >> (n % 64) & 1; }
static inline bool atomic_test_and_clear_bit(u64 *p, unsigned n)
{ return __atomic_fetch_and(p + n / 64, ~(1ull << (n % 64)), __ATOMIC_SEQ_CST) >> (n % 64) & 1; }

#else

#include <ck_pr.h>

/* x86-TSO gives every load acquire and every store release order; the compiler barrier is what the
 * names add. */
#define load_relaxed(p)      (*(const volatile __typeof__(*(p)) *)(p))
#define load_acquire(p)      ({ __typeof__(*(p)) _v = load_relaxed(p); ck_pr_barrier(); _v; })
#define store_relaxed(p, v)  ((void)(*(volatile __typeof__(*(p)) *)(p) = (v)))
#define store_release(p, v)  ({ ck_pr_barrier(); store_relaxed(p, v); })
/* Compare-and-swap; on failure *@old becomes the value found. */
static inline bool atomic_cas64(u64 *p, u64 *old, u64 new) { return ck_pr_cas_64_value(p, *old, new, old); }
static inline u64 atomic_xchg64(u64 *p, u64 v) { return ck_pr_fas_64(p, v); }
static inline u64 atomic_faa64(u64 *p, u64 v) { return ck_pr_faa_64(p, v); }
static inline u32 atomic_faa32(u32 *p, u32 v) { return ck_pr_faa_32(p, v); }
static inline u32 atomic_xchg32(u32 *p, u32 v) { return ck_pr_fas_32(p, v); }
static inline bool atomic_cas32(u32 *p, u32 *old, u32 new) { return ck_pr_cas_32_value(p, *old, new, old); }
static inline u8 atomic_xchg8(u8 *p, u8 v) { return ck_pr_fas_8(p, v); }
static inline void atomic_or64(u64 *p, u64 v) { ck_pr_or_64(p, v); }
static inline void atomic_and64(u64 *p, u64 v) { ck_pr_and_64(p, v); }
static inline u64 atomic_fetch_and64(u64 *p, u64 v)
{
    u64 old = load_relaxed(p);
    while (!atomic_cas64(p, &old, old & v))
        ;
    return old;
}
static inline void atomic_fence(void) { ck_pr_fence_strict_memory(); }
static inline void cpu_relax(void) { ck_pr_stall(); }
/* Sets bit @n of the bitmap at @p; returns its old value. */
static inline bool atomic_test_and_set_bit(u64 *p, unsigned n)
{ return ck_pr_bts_64(p + n / 64, n % 64); }
static inline bool atomic_test_and_clear_bit(u64 *p, unsigned n)
{ return ck_pr_btr_64(p + n / 64, n % 64); }

#endif

static inline void atomic_set_bit(u64 *p, unsigned n) { atomic_or64(p + n / 64, 1ull << (n % 64)); }
static inline void atomic_clear_bit(u64 *p, unsigned n) { atomic_and64(p + n / 64, ~(1ull << (n % 64))); }
static inline bool test_bit(const u64 *p, unsigned n) { return load_relaxed(p + n / 64) >> (n % 64) & 1; }
#define compiler_barrier() __asm__ volatile("" ::: "memory")

#endif
