/* SPDX-License-Identifier: MIT */
/* The end: panic, fatal boot errors, power-off, reboot. */
#include <stdarg.h>

#include "arch/apic.h"
#include "arch/asm.h"
#include "arch/machine.h"
#include "arch/traps.h"
#include "base/atomic.h"
#include "base/bug.h"
#include "boot/boot_internal.h"
#include "console.h"
#include "console_internal.h"
#include "params.h"
#include "pt_string.h"
#include "vsnprintf.h"

static u32 stopping;

void machine_halt(void)
{
    for (;;)
        __asm__ volatile("cli; hlt");
}

void nmi_interrupt(struct cpu_regs *regs)
{
    if (load_acquire(&stopping))
        machine_halt();
    printk("NMI on CPU %u at %#llx ignored\n", this_cpu(), (unsigned long long)regs->rip);
}

/* Stops the other CPUs by NMI: they may be anywhere. */
static void stop_others(void)
{
    store_release(&stopping, 1);
    console_break_lock();
    if (nr_cpus > 1)
        for (unsigned c = 0; c < nr_cpus; c++)
            if (c != this_cpu())
                apic_send_ipi(c, 0x400);        /* delivery mode NMI */
}

void show_regs(const struct cpu_regs *r)
{
#define X(v) (unsigned long long)(v)
    printk("CPU %u  rip %04llx:%016llx  rflags %08llx  rsp %04llx:%016llx\n", this_cpu(), X(r->cs), X(r->rip), X(r->rflags),
           X(r->ss), X(r->rsp));
    printk("rax %016llx  rbx %016llx  rcx %016llx  rdx %016llx\n", X(r->rax), X(r->rbx), X(r->rcx), X(r->rdx));
    printk("rsi %016llx  rdi %016llx  rbp %016llx  r8  %016llx\n", X(r->rsi), X(r->rdi), X(r->rbp), X(r->r8));
    printk("r9  %016llx  r10 %016llx  r11 %016llx  r12 %016llx\n", X(r->r9), X(r->r10), X(r->r11), X(r->r12));
    printk("r13 %016llx  r14 %016llx  r15 %016llx  cr2 %016llx  cr3 %016llx\n", X(r->r13), X(r->r14), X(r->r15),
           X(read_cr2()), X(read_cr3()));
}

static void backtrace(u64 rbp)
{
    u64 lo = rbp & ~(u64)(STACK_SIZE - 1);

    for (unsigned i = 0; i < 16 && rbp >= lo && rbp < lo + STACK_SIZE - 16 && !(rbp & 7) && rbp >= HV_START; i++) {
        const u64 *f = (const u64 *)rbp;

        printk("  called from %016llx\n", (unsigned long long)f[1]);
        rbp = f[0];
    }
}

static void __noreturn end(bool reboot)
{
    if (opt_noreboot || !reboot)
        machine_halt();
    machine_reboot();
}

static void vpanic(const struct cpu_regs *regs, u64 rbp, const char *fmt, va_list ap)
{
    irq_disable();
    stop_others();
    printk("panic on CPU %u:\n", this_cpu());
    vprintk(fmt, ap);
    console_write("\n", 1);
    if (regs)
        show_regs(regs);
    backtrace(rbp);
}

void panic(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vpanic(NULL, (u64)__builtin_frame_address(0), fmt, ap);
    end(true);
}

void panic_regs(const struct cpu_regs *regs, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vpanic(regs, regs->rbp, fmt, ap);
    end(true);
}

void env_bug(const char *file, int line, const char *what) { panic("BUG: %s:%d: %s", file, line, what); }

void boot_fatal(const char *fmt, ...)
{
    char line[512];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = pt_vsnprintf(line, sizeof(line) - 1, fmt, ap);
    va_end(ap);
    (void)n;
    stop_others();
    console_write("ptarmigan: fatal: ", 18);
    console_write(line, strlen(line));
    console_write("\n", 1);
    end(true);
}

void machine_poweroff(void)
{
    stop_others();
    if (s5_known && pm1a_cnt) {
        outw((u16)pm1a_cnt, (u16)((inw((u16)pm1a_cnt) & 0x203) | s5_typ_a << 10 | 1 << 13));
        if (pm1b_cnt)
            outw((u16)pm1b_cnt, (u16)((inw((u16)pm1b_cnt) & 0x203) | s5_typ_b << 10 | 1 << 13));
    }
    for (unsigned i = 0; i < 1000; i++)
        inb(0x80);
    printk("power is still on (S5 %s, PM1a control port %#x): it may be switched off now\n", s5_known ? "known" : "unknown",
           pm1a_cnt);
    machine_halt();
}

void machine_reboot(void)
{
    static const struct { u16 limit; u64 base; } __attribute__((packed)) none = { 0, 0 };

    stop_others();
    for (unsigned i = 0; i < 100000 && (inb(0x64) & 2); i++)
        ;
    outb(0x64, 0xfe);                            /* keyboard controller: pulse reset */
    for (unsigned i = 0; i < 100000; i++)
        inb(0x80);
    outb(0xcf9, 6);
    __asm__ volatile("lidt %0; int3" :: "m"(none));
    machine_halt();
}
