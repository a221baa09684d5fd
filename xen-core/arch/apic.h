/* SPDX-License-Identifier: MIT */
/* Local APIC: xAPIC or x2APIC, inter-processor interrupts, and the one-shot timer. */
#ifndef PT_ARCH_APIC_H
#define PT_ARCH_APIC_H

#include "base/types.h"

/* Sends @vector to CPU @cpu (hypervisor numbering).  Interrupts off. */
void apic_send_ipi(unsigned cpu, unsigned vector);
/* Sends @vector to every other CPU. */
void apic_send_ipi_others(unsigned vector);
/* INIT and start-up IPIs: the CPU begins in real mode at physical @page << 12. */
void apic_start_cpu(u32 apicid, u32 page);
void apic_timer_calibrate(void);
void apic_eoi(void);
/* Arms this CPU's one-shot timer for absolute TSC time @tsc (~0 = off); a past time fires at once. */
void apic_timer_arm(u64 tsc);

#endif
