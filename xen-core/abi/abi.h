/* SPDX-License-Identifier: MIT */
/* Hypercalls that do not touch page tables, and what they offer to the rest. */
#ifndef PT_ABI_H
#define PT_ABI_H

#include "domain.h"

hypercall_fn hc_event_channel_op, hc_vcpu_op, hc_sched_op, hc_set_timer_op, hc_console_io, hc_xen_version, hc_memory_op,
    hc_physdev_op, hc_platform_op, hc_grant_table_op, hc_vm_assist;

/* vcpu_time_info of @v (current @v->info), and the domain's wall clock. */
void vtime_init_vcpu(struct vcpu *v);
void vtime_init_domain(struct domain *d);

/* Accounts the time spent in the old state and enters @state; any CPU that owns the vCPU's run state. */
void runstate_update(struct vcpu *v, int state, u64 now);
/* Writes the guest's copy; the vCPU's kernel root is loaded. */
void runstate_publish(struct vcpu *v);

/* The vCPU comes back from SCHEDOP_poll. */
void poll_done(struct vcpu *v);

/* Console input arrived. */
void console_input_ready(void);

#endif
