/* SPDX-License-Identifier: MIT */
/* Local APIC in xAPIC or x2APIC mode (Intel SDM vol. 3, chapter 10). */
#include "arch/apic.h"

#include "arch/asm.h"
#include "arch/cpu.h"
#include "arch/time.h"
#include "boot/boot_internal.h"
#include "console.h"
#include "pt.h"

#define REG_ID    0x20
#define REG_EOI   0xb0
#define REG_SVR   0xf0
#define REG_ICR   0x300
#define REG_ICR2  0x310
#define REG_TIMER 0x320
#define REG_TMICT 0x380
#define REG_TMCCT 0x390
#define REG_TMDIV 0x3e0
#define APIC_VIRT FIXMAP_VIRT

static bool x2;
static u64 timer_per_tsc;             /* APIC timer ticks per TSC tick, 32.32 fixed point */

static u32 rd(u32 reg)
{
    return x2 ? (u32)rdmsr(0x800 + reg / 16) : *(volatile u32 *)(APIC_VIRT + reg);
}

static void wr(u32 reg, u32 v)
{
    if (x2)
        wrmsr(0x800 + reg / 16, v);
    else
        *(volatile u32 *)(APIC_VIRT + reg) = v;
}

static void icr(u32 apicid, u32 cmd)
{
    if (x2) {
        wrmsr(0x830, (u64)apicid << 32 | cmd);
        return;
    }
    while (rd(REG_ICR) & 1u << 12)
        cpu_relax();
    wr(REG_ICR2, apicid << 24);
    wr(REG_ICR, cmd);
}

void apic_send_ipi(unsigned cpu, unsigned vector)
{
    atomic_fence();                    /* x2APIC writes do not order earlier stores */
    icr(cpu_apicid[cpu], vector);
}

void apic_send_ipi_others(unsigned vector)
{
    for (unsigned c = 0; c < nr_cpus; c++)
        if (c != this_cpu())
            apic_send_ipi(c, vector);
}

void apic_start_cpu(u32 apicid, u32 page)
{
    icr(apicid, 0x4500);               /* INIT */
    udelay(10000);
    icr(apicid, 0x4600 | page);        /* start-up, twice as the SDM asks */
    udelay(200);
    icr(apicid, 0x4600 | page);
}

void apic_eoi(void) { wr(REG_EOI, 0); }

void apic_timer_arm(u64 tsc)
{
    if (cpu_caps.tsc_deadline) {
        wrmsr(MSR_TSC_DEADLINE, tsc == ~0ull ? 0 : MAX(tsc, 1ull));
        return;
    }
    if (tsc == ~0ull) {
        wr(REG_TMICT, 0);
        return;
    }
    u64 now = rdtsc(), d = tsc > now ? tsc - now : 0;
    u64 ticks = (u64)((unsigned __int128)d * timer_per_tsc >> 32) + 1;

    wr(REG_TMICT, (u32)MIN(ticks, 0xffffffffull));
}

void apic_setup_cpu(void)
{
    u64 base = rdmsr(MSR_APIC_BASE) | 1u << 11;

    if (x2)
        base |= 1u << 10;
    wrmsr(MSR_APIC_BASE, base);
    wr(REG_SVR, 0x100 | VEC_SPURIOUS);
    wr(REG_TMDIV, 0xb);                /* divide by 1 */
    wr(REG_TIMER, VEC_TIMER | (cpu_caps.tsc_deadline ? 2u << 17 : 0));
}

void apic_setup_boot(void)
{
    x2 = cpu_caps.x2apic;
    if (!x2)
        hv_map_page(APIC_VIRT, lapic_phys, PTE_P | PTE_RW | PTE_A | PTE_D | PTE_PCD | PTE_PWT | PTE_G | PTE_NX);
    /* The PICs stay silent: all their lines masked. */
    outb(0x21, 0xff);
    outb(0xa1, 0xff);
    apic_setup_cpu();
    if (x2)
        cpu_apicid[0] = rd(2 * 16);
}

/* After the TSC is known. */
void apic_timer_calibrate(void)
{
    u64 t0, t1;
    u32 c;

    if (cpu_caps.tsc_deadline)
        return;
    wr(REG_TIMER, 1u << 16 | VEC_TIMER);
    wr(REG_TMICT, 0xffffffff);
    t0 = rdtsc();
    udelay(10000);
    c = 0xffffffff - rd(REG_TMCCT);
    t1 = rdtsc();
    wr(REG_TMICT, 0);
    timer_per_tsc = ((u64)c << 32) / (t1 - t0);
    wr(REG_TIMER, VEC_TIMER);
}
