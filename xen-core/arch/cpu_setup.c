/* SPDX-License-Identifier: MIT */
/* Per-CPU state: stacks, GDT, TSS, IDT, control registers, system-call MSRs. */
#include "arch/asm.h"
#include "arch/cpu.h"
#include "arch/machine.h"
#include "boot/boot.h"
#include "boot/boot_internal.h"
#include "console.h"
#include "params.h"
#include "pt_string.h"

struct cpu_caps cpu_caps;
unsigned nr_cpus = 1;

struct tss {
    u32 res0;
    u64 rsp[3], res1, ist[7], res2;
    u16 res3, iobase;
} __attribute__((packed));

struct gate { u16 off0, sel; u8 ist, attr; u16 off1; u32 off2, res; };

static struct gate idt[256] __attribute__((aligned(16)));
static u64 *gdt_page[NR_CPUS];            /* the reserved page: selectors 0xe000 and up; the TSS lies behind them */
static u64 stack_top[NR_CPUS];

#define TSS_OFF 2048                      /* of the TSS in that page */

extern const u64 trap_entry_table[256];
extern char syscall_stubs[], syscall32_stubs[];
extern struct { u64 guest_rsp, stack, pad[6]; } cpu_scratch[NR_CPUS];

mfn_t cpu_gdt_page(unsigned cpu) { return MFN(((u64)gdt_page[cpu] - DIRECTMAP_VIRT) >> PAGE_SHIFT); }
void *cpu_gdt_ptr(unsigned cpu) { return gdt_page[cpu]; }
u64 cpu_stack_top(unsigned cpu) { return stack_top[cpu]; }

void cpu_detect(void)
{
    u32 a, b, c, d, max, xmax;

    cpuid_count(0, 0, &max, &b, &c, &d);
    cpu_caps.intel = b == 0x756e6547;
    cpu_caps.amd = b == 0x68747541;
    cpuid_count(1, 0, &a, &b, &c, &d);
    cpu_caps.pge = d >> 13 & 1;
    cpu_caps.xsave = c >> 26 & 1;
    cpu_caps.pcid = c >> 17 & 1;
    cpu_caps.x2apic = c >> 21 & 1;
    cpu_caps.tsc_deadline = c >> 24 & 1;
    if (c >> 31 & 1) {
        cpuid_count(0x40000000, 0, &a, &b, &c, &d);
        cpu_caps.tcg = b == 0x54474354;
    }
    if (max >= 7) {
        cpuid_count(7, 0, &a, &b, &c, &d);
        cpu_caps.fsgsbase = b & 1;
        cpu_caps.smep = b >> 7 & 1;
        cpu_caps.smap = b >> 20 & 1;
        cpu_caps.umip = c >> 2 & 1;
    }
    cpuid_count(0x80000000, 0, &xmax, &b, &c, &d);
    cpuid_count(0x80000001, 0, &a, &b, &c, &d);
    cpu_caps.nx = d >> 20 & 1;
    cpu_caps.gb_pages = d >> 26 & 1;
    cpu_caps.rdtscp = d >> 27 & 1;
    cpu_caps.phys_bits = 36;
    if (xmax >= 0x80000008) {
        cpuid_count(0x80000008, 0, &a, &b, &c, &d);
        cpu_caps.phys_bits = a & 0xff;
    }
    if (xmax >= 0x80000007) {
        cpuid_count(0x80000007, 0, &a, &b, &c, &d);
        cpu_caps.invariant_tsc = d >> 8 & 1;
    }
    cpu_caps.xsave_size = 512;
    if (cpu_caps.xsave) {
        cpuid_count(0xd, 0, &a, &b, &c, &d);
        cpu_caps.xcr0_mask = a & 7;               /* x87, SSE, AVX */
    }
    if (!opt_smep)
        cpu_caps.smep = false;
    if (!opt_smap)
        cpu_caps.smap = false;
    if (!cpu_caps.nx)
        boot_fatal("CPU: no NX bit (CPUID 0x80000001.EDX bit 20), which is required");
}

void cpu_alloc(unsigned cpu)
{
    char *s = boot_alloc(STACK_SIZE, STACK_SIZE), *ist;
    struct cpu_info *info = (struct cpu_info *)(void *)(s + STACK_SIZE) - 1;
    struct tss *tss;
    u64 *g, base;

    info->cpu = cpu;
    stack_top[cpu] = (u64)&info->regs + sizeof(struct cpu_regs);
    cpu_scratch[cpu].stack = stack_top[cpu];
    g = gdt_page[cpu] = boot_alloc(PAGE_SIZE, PAGE_SIZE);
    tss = (struct tss *)(void *)((char *)g + TSS_OFF);
    g[1] = 0x00af9b000000ffff;                    /* 0xe008: hypervisor code */
    g[2] = 0x00cf93000000ffff;                    /* 0xe010: hypervisor data */
    g[4] = 0x00cffb000000ffff;                    /* 0xe023: guest code, 32 bit */
    g[5] = 0x00cff3000000ffff;                    /* 0xe02b: guest data */
    g[6] = 0x00affb000000ffff;                    /* 0xe033: guest code, 64 bit */
    base = (u64)tss;
    g[8] = (sizeof(*tss) - 1) | (base & 0xffffff) << 16 | 0x89ull << 40 | (base >> 24 & 0xff) << 56;
    g[9] = base >> 32;
    tss->rsp[0] = stack_top[cpu];
    tss->iobase = sizeof(*tss);
    for (unsigned i = 0; i < 3; i++) {            /* NMI, double fault, machine check */
        ist = boot_alloc(STACK_SIZE, STACK_SIZE);
        info = (struct cpu_info *)(void *)(ist + STACK_SIZE) - 1;
        info->cpu = cpu;
        tss->ist[i] = (u64)&info->regs + sizeof(struct cpu_regs);
    }
}

void idt_setup(void)
{
    for (unsigned v = 0; v < 256; v++) {
        u64 a = trap_entry_table[v];
        unsigned dpl = v == 3 || v == 4 || v == VEC_SYSCALL80 ? 3 : 0;

        idt[v] = (struct gate){ .off0 = (u16)a, .sel = HV_CS, .attr = (u8)(0x8e | dpl << 5), .off1 = (u16)(a >> 16),
                                .off2 = (u32)(a >> 32) };
    }
    idt[2].ist = 1;
    idt[8].ist = 2;
    idt[18].ist = 3;
}

void cpu_setup(unsigned cpu)
{
    struct { u16 limit; u64 base; } __attribute__((packed)) gdtr = { 0xefff, (u64)gdt_page[cpu] - 0xe000 },
        idtr = { sizeof(idt) - 1, (u64)idt };
    u64 cr4 = CR4_PAE | CR4_MCE | CR4_DE | CR4_OSFXSR | CR4_OSXMMEXCPT;

    __asm__ volatile("lgdt %0\n lidt %1\n"
                     "pushq %2\n lea 1f(%%rip), %%rax\n push %%rax\n lretq\n1:\n"
                     "mov %3, %%ss\n mov %4, %%ds\n mov %4, %%es\n mov %4, %%fs\n mov %4, %%gs\n"
                     :: "m"(gdtr), "m"(idtr), "i"(HV_CS), "r"(HV_DS), "r"(0) : "rax", "memory");
    gdt_page[cpu][8] &= ~(2ull << 40);            /* LTR wants a TSS that is not busy */
    __asm__ volatile("ltr %w0" :: "r"(TSS_SEL));
    __asm__ volatile("lldt %w0" :: "r"(0));

    if (cpu_caps.pge && !opt_ptwr)                /* see ptwr.h */
        cr4 |= CR4_PGE;
    if (cpu_caps.fsgsbase)
        cr4 |= CR4_FSGSBASE;
    if (cpu_caps.xsave)
        cr4 |= CR4_OSXSAVE;
    if (cpu_caps.smep)
        cr4 |= CR4_SMEP;
    if (cpu_caps.smap)
        cr4 |= CR4_SMAP;
    if (cpu_caps.umip)
        cr4 |= CR4_UMIP;
    write_cr4(cr4);
    write_cr0(CR0_PG | CR0_WP | CR0_NE | CR0_ET | CR0_MP | CR0_PE);
    wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_SCE | EFER_NXE);
    wrmsr(MSR_STAR, (u64)FLAT_CS32 << 48 | (u64)HV_CS << 32);
    wrmsr(MSR_LSTAR, (u64)syscall_stubs + cpu * 32);
    wrmsr(MSR_CSTAR, (u64)syscall32_stubs + cpu * 32);
    wrmsr(MSR_SFMASK, RFLAGS_IF | RFLAGS_TF | RFLAGS_DF | RFLAGS_NT | RFLAGS_AC | RFLAGS_IOPL | RFLAGS_RF | RFLAGS_VM);
    if (cpu_caps.intel)
        wrmsr(MSR_SYSENTER_CS, 0);
    wrmsr(MSR_PAT, 0x050100070406ull);
    if (cpu_caps.xsave) {
        u32 a, b, c, d;

        __asm__ volatile("xsetbv" :: "c"(0), "a"((u32)cpu_caps.xcr0_mask), "d"(0));
        cpuid_count(0xd, 0, &a, &b, &c, &d);
        if (cpu == 0)
            cpu_caps.xsave_size = b;
    }
    __asm__ volatile("fninit");
}
