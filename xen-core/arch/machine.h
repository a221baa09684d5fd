/* SPDX-License-Identifier: MIT */
/* What the boot code built and later code uses: the hypervisor's root table, descriptor-table areas, power. */
#ifndef PT_ARCH_MACHINE_H
#define PT_ARCH_MACHINE_H

#include "arch/cpu.h"

extern u64 *hv_l4;                          /* the idle root, in the direct map */

/* The 64 L1 entries of a vCPU's descriptor-table area (pages 0-15 GDT, 16-31 LDT); NULL when out of memory. */
u64 *hv_map_vcpu_dt(unsigned slot);
mfn_t cpu_gdt_page(unsigned cpu);           /* the page with this CPU's reserved descriptors */
void *cpu_gdt_ptr(unsigned cpu);            /* the same, mapped */

void machine_poweroff(void) __noreturn;
void machine_reboot(void) __noreturn;
void machine_halt(void) __noreturn;

#endif
