/* SPDX-License-Identifier: MIT */
/* Running vCPUs: mode toggles, bounce frames, context switch. */
#ifndef PT_VCPU_H
#define PT_VCPU_H

#include "domain.h"

/* Switches the current vCPU to virtual kernel or user mode: root, GS base, and the TLB bookkeeping. */
void toggle_to_kernel(struct vcpu *v);
void toggle_to_user(struct vcpu *v);

/* Loads the current vCPU's root for the mode it is in.  Drops all guest translations of this CPU. */
void load_root(struct vcpu *v);

/* Makes the guest run its handler for @vector.  @error: pushed where the vector has one. */
void inject_exception(struct vcpu *v, struct cpu_regs *regs, unsigned vector, u32 error);
void inject_page_fault(struct vcpu *v, struct cpu_regs *regs, u64 addr, u32 error);
/* Enters @cb with a bounce frame. */
void bounce_callback(struct vcpu *v, struct cpu_regs *regs, const struct callback *cb);
/* A SYSCALL from user mode; false: the guest registered no handler. */
bool syscall_bounce(struct vcpu *v, struct cpu_regs *regs, const struct callback *cb);

/* What must happen before a guest runs: scheduling, TLB inbox, RCU, event upcall. @regs is the frame at the top of
 * this CPU's stack; on return it may be another vCPU's. */
void exit_to_guest(struct cpu_regs *regs);

static inline bool event_deliverable(const struct vcpu *v)
{
    const vcpu_info_t *i = v->info;

    return load_relaxed(&i->evtchn_upcall_pending) && !load_relaxed(&i->evtchn_upcall_mask);
}

void cpu_run(void) __noreturn;           /* a CPU's life after boot: run vCPUs, or idle */

/* Descriptor tables of the vCPU (abi/desc.c). */
void dt_load(struct vcpu *v);            /* GDTR and LDTR for @v on this CPU */
void dt_init_vcpu(struct vcpu *v);
int gdt_set(struct vcpu *v, const u64 *mfns, unsigned entries);
int ldt_set(struct vcpu *v, u64 va, u32 ents);
struct audit;
void dt_refs(struct audit *a, const struct vcpu *v);   /* tells the references that its tables hold */

/* Emulation (abi/). */
bool emulate_pte_write(struct vcpu *v, struct cpu_regs *regs, u64 addr, u32 error);   /* false: reflect */
void emulate_privileged(struct vcpu *v, struct cpu_regs *regs, unsigned vector);
void fpu_save(struct vcpu *v);
void fpu_load(struct vcpu *v);
int fpu_init(struct vcpu *v);
void mm_vcpu_flushed(struct vcpu *v);    /* the soft TLB dies with the real one */

/* A guest exception while the hypervisor worked for it: jumps over the faulting access. */
bool fixup_exception(struct cpu_regs *regs);

static inline bool canonical(u64 va) { return (u64)((s64)(va << 16) >> 16) == va; }
/* Guest addresses the hypervisor may access for a guest: canonical and outside the hypervisor. */
static inline bool guest_range_ok(u64 va, u64 len)
{
    u64 end = va + len;

    return end >= va && canonical(va) && (end <= HV_START || va >= HV_END) && (va >= HV_END || end <= 1ull << 47);
}

#endif
