/* SPDX-License-Identifier: MIT */
/* The order of boot. */
#include "alt.h"
#include "arch/cpu.h"
#include "boot/boot.h"
#include "boot/boot_internal.h"
#include "build/dom0.h"
#include "console.h"
#include "console_internal.h"
#include "memory.h"
#include "params.h"
#include "rcu.h"
#include "sched.h"
#include "vcpu.h"

void boot_main(u32 magic, u32 mbi_phys)
{
    console_setup();                             /* the default port, for what goes wrong before the options are known */
    boot_read_multiboot(magic, mbi_phys);
    params_parse(boot_info.cmdline);
    console_setup();
    printk("Ptarmigan, a hypervisor for Xen-PV guests\n");
    params_report();
    cpu_detect();
    boot_alloc_begin();
    cpu_alloc(0);
    mmu_setup();
    idt_setup();
    cpu_setup(0);
    alt_patch(cpu_caps.smap, opt_ptwr);
    acpi_setup();
    apic_setup_boot();
    time_setup();
    smp_setup();
    memory_init();
    sched_init();
    printk("%u CPUs, %llu MiB of RAM free for domains, TSC %llu.%03llu MHz%s\n", nr_cpus,
           (unsigned long long)dom_free_frames() >> 8, (unsigned long long)cpu_caps.tsc_khz / 1000,
           (unsigned long long)cpu_caps.tsc_khz % 1000, cpu_caps.tcg ? ", emulated by TCG" : "");
    start_domains();
    smp_release();
    /* From the boot stack to this CPU's own. */
    __asm__ volatile("mov %0, %%rsp\n xor %%ebp, %%ebp\n call *%1" :: "r"(cpu_stack_top(0) - sizeof(struct cpu_regs)),
                     "r"(cpu_run) : "memory");
    __builtin_unreachable();
}
