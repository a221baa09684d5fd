/* SPDX-License-Identifier: MIT */
/* base/env.h on the metal. */
#ifndef PT_ARCH_ENV_METAL_H
#define PT_ARCH_ENV_METAL_H

#include "arch/apic.h"
#include "arch/asm.h"
#include "arch/cpu.h"
#include "arch/time.h"

static inline unsigned env_cpu(void) { return this_cpu(); }
static inline unsigned env_nr_cpus(void) { return nr_cpus; }
static inline u64 env_tsc(void) { return rdtsc_ordered(); }
static inline void *env_map(mfn_t mfn) { return (void *)(DIRECTMAP_VIRT + (mfn.v << PAGE_SHIFT)); }
static inline mfn_t env_mfn_of(const void *page) { return MFN(((u64)page - DIRECTMAP_VIRT) >> PAGE_SHIFT); }
static inline void env_flush_local(void) { write_cr3(read_cr3()); }   /* guest entries are never global */
static inline void env_invlpg_local(u64 va) { invlpg(va); }
static inline void env_send_tlb_ipi(unsigned cpu) { apic_send_ipi(cpu, VEC_TLB); }
static inline void env_kick(unsigned cpu) { apic_send_ipi(cpu, VEC_KICK); }
static inline bool env_preempt(void) { return false; }
static inline struct pt_work *env_work(void) { return cpu_info()->pt_work; }
static inline u64 env_now(void) { return now_ns(); }

#define ENV_BUDGET       400000u         /* half of what no hypercall may exceed */
#define ENV_OWN_STATS    (cpu_info()->stats)
#define ENV_STATS(cpu)   (cpu_info_of(cpu)->stats)
#define FRAME_TABLE ((struct frame *)FRAMETABLE_VIRT)

#endif
