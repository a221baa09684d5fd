/* SPDX-License-Identifier: MIT */
/* Hypercalls on page tables, descriptors, traps and CPU state. */
#ifndef PT_ABI_MM_H
#define PT_ABI_MM_H

#include "domain.h"

hypercall_fn hc_set_trap_table, hc_mmu_update, hc_set_gdt, hc_stack_switch, hc_set_callbacks, hc_fpu_taskswitch,
    hc_set_debugreg, hc_get_debugreg, hc_update_descriptor, hc_update_va_mapping, hc_set_segment_base, hc_mmuext_op,
    hc_callback_op, hc_iret;

/* Per-vCPU soft TLB and decode cache; NULL: out of memory. */
void *mm_vcpu_create(void);
struct pt_work *mm_vcpu_work(void *mm);   /* in what mm_vcpu_create() gave */

/* Makes @mfn (MFN_INVALID for none) the kernel or user root of the current vCPU.  0 or -errno. */
int mm_new_root(struct vcpu *v, mfn_t mfn, bool user);

/* The same for a vCPU that does not run yet. */
int mm_initial_root(struct vcpu *v, mfn_t mfn, bool user);

#endif
