/* SPDX-License-Identifier: MIT */
/* Steps of the boot, in the order in which main.c takes them. */
#ifndef PT_BOOT_INTERNAL_H
#define PT_BOOT_INTERNAL_H

#include "base/types.h"

void boot_main(u32 magic, u32 mbi_phys) __noreturn;
void boot_read_multiboot(u32 magic, u32 mbi_phys);
void boot_alloc_begin(void);
void boot_alloc_limit(u64 phys);         /* highest address + 1 that is mapped */

void mmu_setup(void);                    /* final page tables; boot_alloc reaches all RAM afterwards */
void hv_map_page(u64 va, u64 phys, u64 flags);
void cpu_detect(void);
void cpu_setup(unsigned cpu);            /* descriptor tables, control registers, MSRs of this CPU */
void cpu_alloc(unsigned cpu);            /* stacks and tables for it; boot CPU */
void idt_setup(void);
void acpi_setup(void);
void apic_setup_boot(void);
void apic_setup_cpu(void);
void time_setup(void);
void smp_setup(void);
void ap_main(void) __noreturn;
void smp_release(void);                  /* the other CPUs begin to run vCPUs */

/* From ACPI. */
extern u32 cpu_apicid[];                 /* by CPU number; [0] is the boot CPU */
extern unsigned nr_possible_cpus;
extern u64 lapic_phys;
extern u32 pm_timer_port, pm1a_cnt, pm1b_cnt;   /* 0: none */
extern u16 s5_typ_a, s5_typ_b;
extern bool s5_known;

#endif
