/* SPDX-License-Identifier: MIT */
/* Included before every source of the hypercall target: the machine below the ABI code is the one of world_env.c, privileged
 * instructions do nothing, and guest memory is reached through checked accessors. */
#ifndef PT_FUZZ_SHIM_HV_H
#define PT_FUZZ_SHIM_HV_H

#include <ck_pr.h>
#include <ck_spinlock.h>
#include <ck_stack.h>

#include "base/types.h"

#include "arch/cpu.h"
#include "arch/asm.h"
#include "base/env.h"
#include "guest_copy.h"

/* All that is per CPU is small, so that a world can be put back quickly. */
#undef ENV_MAX_CPUS
#define ENV_MAX_CPUS 4

extern struct cpu_info fuzz_cpu[2];
extern unsigned fuzz_this;
#define cpu_info()     (&fuzz_cpu[fuzz_this])
#define current_vcpu() (cpu_info()->current)
#define this_cpu()     (cpu_info()->cpu)

#define rdmsr(msr)     fuzz_rdmsr(msr)
#define wrmsr(msr, v)  fuzz_wrmsr(msr, v)
#define rdtsc()        env_tsc()
#define write_cr3(v)   fuzz_write_cr3(v)
#define invlpg(va)     ((void)(va))
#define inb(p)         ((u8)(p))
#define inw(p)         ((u16)(p))
#define inl(p)         ((u32)(p))
#define outb(p, v)     ((void)(p), (void)(v))
#define outw(p, v)     ((void)(p), (void)(v))
#define outl(p, v)     ((void)(p), (void)(v))
u64 fuzz_rdmsr(u32 msr);
void fuzz_wrmsr(u32 msr, u64 v);
void fuzz_write_cr3(u64 v);

#define raw_copy(dst, src, len)   fuzz_raw_copy(dst, src, len)
#define raw_read_pair(src, a, b)  fuzz_raw_read_pair(src, a, b)
#define raw_write64(dst, v)       fuzz_raw_write64(dst, v)
size_t fuzz_raw_copy(void *dst, const void *src, size_t len);
bool fuzz_raw_read_pair(u64 src, u64 *a, u64 *b);
bool fuzz_raw_write64(u64 dst, u64 v);

/* From here on `__asm__ volatile (...)` is an empty statement: what is left of it is privileged.  Its operands are then
 * variables that nobody uses. */
#define volatile(...) ("")
#pragma clang diagnostic ignored "-Wunused-variable"

/* The sources' variables lie together, for world_reset(). */
#pragma clang section bss = "hv_bss" data = "hv_data"

#endif
