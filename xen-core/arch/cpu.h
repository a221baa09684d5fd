/* SPDX-License-Identifier: MIT */
/* What sits at the top of each CPU's stack, and the small per-CPU facts every file needs.
 *
 * The hypervisor runs with interrupts off, always, except in the idle loop's HLT: so there is no
 * interrupt context to reason about, and every loop that waits or is long polls (tlb_poll()). */
#ifndef PT_ARCH_CPU_H
#define PT_ARCH_CPU_H

#include "arch/layout.h"
#include "base/types.h"

struct vcpu;

/* Saved registers in the order that the entry code pushes them; the same order as the head of Xen's
 * struct cpu_user_regs. */
struct cpu_regs {
    u64 r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
    u32 error_code, vector;
    u64 rip, cs, rflags, rsp, ss;
};

/* At the very top of the stack.  @regs is where the CPU pushes a ring-3 entry's frame. */
struct cpu_info {
    struct cpu_regs regs;
    struct vcpu *current;      /* the vCPU whose state is loaded, NULL before the first; own CPU only */
    u32 cpu;                   /* this CPU's number, constant */
    u32 work;                  /* WORK_* bits, set by own CPU only, looked at before returning to a guest */
    struct pt_work *pt_work;   /* the vCPU's, see pt_work.h */
    u64 spare;
    u64 stats[ENV_STATS_MAX];  /* event counters, see base/stats.h: here each costs three instructions */
};
_Static_assert(sizeof(struct cpu_regs) == 168, "entry.S and the public ABI rely on this order");
_Static_assert(sizeof(struct cpu_info) <= 2048, "the boot stack has that much room, see head.S");
_Static_assert((sizeof(struct cpu_info) - sizeof(struct cpu_regs)) % 16 == 0, "rsp0 must be 16-byte aligned");

#define WORK_RESCHED 1u        /* pick another vCPU */

static inline struct cpu_info *cpu_info(void)
{
    unsigned long sp;

    __asm__("mov %%rsp, %0" : "=r"(sp));
    return (struct cpu_info *)((sp | (STACK_SIZE - 1)) + 1) - 1;
}
static inline struct vcpu *current_vcpu(void) { return cpu_info()->current; }
u64 cpu_stack_top(unsigned cpu);            /* where ring-3 frames are pushed: just above struct cpu_info.regs */
static inline struct cpu_info *cpu_info_of(unsigned cpu)
{
    return (struct cpu_info *)(cpu_stack_top(cpu) - sizeof(struct cpu_regs));
}
static inline unsigned this_cpu(void) { return cpu_info()->cpu; }

/* What the boot CPU found; written once before other CPUs start. */
struct cpu_caps {
    bool smep, smap, umip, nx, fsgsbase, xsave, pcid, x2apic, tsc_deadline, arat, cpuid_fault, gb_pages, pge;
    bool rdtscp, tcg, intel, amd, invariant_tsc;
    u64 xcr0_mask;             /* features the hypervisor loads for guests (x87|SSE|AVX|...) */
    u32 xsave_size;            /* bytes for those, >= 512 */
    u32 phys_bits;
    u64 tsc_khz;
};
extern struct cpu_caps cpu_caps;

extern unsigned nr_cpus;       /* CPUs online; numbers 0..nr_cpus-1 are dense; constant after SMP boot */

#endif
