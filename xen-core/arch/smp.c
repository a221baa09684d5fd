/* SPDX-License-Identifier: MIT */
/* Starting the other CPUs, one after the other. */
#include "arch/apic.h"
#include "arch/asm.h"
#include "arch/cpu.h"
#include "arch/machine.h"
#include "arch/time.h"
#include "base/atomic.h"
#include "boot/boot.h"
#include "boot/boot_internal.h"
#include "console.h"
#include "pt.h"
#include "pt_string.h"
#include "vcpu.h"

extern char trampoline_start[], trampoline_end[], trampoline_cr3[], trampoline_stack[];
extern u64 boot_l4[];

static u32 ap_online;            /* set by the starting AP when it is set up */
static u32 ap_go;                /* released when domains exist */

void ap_main(void)
{
    unsigned cpu = this_cpu();

    write_cr3((u64)hv_l4 - DIRECTMAP_VIRT);
    cpu_setup(cpu);
    apic_setup_cpu();
    store_release(&ap_online, 1);
    while (!load_acquire(&ap_go))
        cpu_relax();
    cpu_run();
}

/* A free page of conventional memory for the trampoline. */
static u64 low_page(void)
{
    for (unsigned i = 0; i < boot_info.nr_e820; i++) {
        const struct e820_entry *e = &boot_info.e820[i];
        u64 p = 0x8000;

        if (e->type == E820_RAM && e->addr <= p && e->addr + e->size >= p + PAGE_SIZE)
            return p;
    }
    boot_fatal("memory: page 0x8000 is no RAM; the CPUs' start-up code needs it");
}

void smp_setup(void)
{
    u64 page, up;
    char *t;

    if (nr_possible_cpus == 1)
        return;
    page = low_page();
    t = (char *)(DIRECTMAP_VIRT + page);
    memcpy(t, trampoline_start, (u64)(trampoline_end - trampoline_start));
    memcpy(&boot_l4[HV_L4_FIRST], &hv_l4[HV_L4_FIRST], 16 * 8);      /* the identity map stays */
    *(u64 *)(void *)(t + (trampoline_cr3 - trampoline_start)) = (u64)boot_l4 - HV_IMAGE_VIRT + HV_IMAGE_PHYS;
    for (unsigned i = 1; i < nr_possible_cpus; i++) {
        unsigned cpu = nr_cpus;

        cpu_apicid[cpu] = cpu_apicid[i];
        cpu_alloc(cpu);
        *(u64 *)(void *)(t + (trampoline_stack - trampoline_start)) = cpu_stack_top(cpu) - sizeof(struct cpu_regs) - 64;
        store_release(&ap_online, 0);
        apic_start_cpu(cpu_apicid[cpu], (u32)(page >> 12));
        up = rdtsc() + cpu_caps.tsc_khz * 2000;
        while (!load_acquire(&ap_online) && rdtsc() < up)
            cpu_relax();
        if (!load_acquire(&ap_online)) {
            printk("CPU with APIC id %u did not start; left out\n", cpu_apicid[cpu]);
            break;                   /* it might still wake up on this stack: start no more */
        }
        nr_cpus++;
    }
}

void smp_release(void) { store_release(&ap_go, 1); }
