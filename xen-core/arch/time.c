/* SPDX-License-Identifier: MIT */
/* TSC calibration against the ACPI PM timer or the PIT, system time, wall clock. */
#include "arch/time.h"

#include "arch/apic.h"
#include "arch/asm.h"
#include "arch/cpu.h"
#include "base/atomic.h"
#include "boot/boot_internal.h"
#include "console.h"

struct time_scale time_scale;
u64 wallclock_base_ns;
static u64 tsc_per_ns;                 /* 32.32 fixed point */

#define PM_HZ  3579545u
#define PIT_HZ 1193182u

/* TSC ticks while @pm ticks of the 24-bit PM timer pass. */
static u64 measure_pm(u32 pm, u32 *took)
{
    u32 s = inl((u16)pm_timer_port) & 0xffffff, n;
    u64 t0, t1;

    do
        n = inl((u16)pm_timer_port) & 0xffffff;
    while (n == s);
    s = n;
    t0 = rdtsc();
    do
        n = (inl((u16)pm_timer_port) - s) & 0xffffff;
    while (n < pm);
    t1 = rdtsc();
    *took = n;
    return t1 - t0;
}

/* The same against PIT channel 2, counting down once. */
static u64 measure_pit(u32 count)
{
    u64 t0, t1;

    outb(0x61, (inb(0x61) & 0xfd) | 1);
    outb(0x43, 0xb0);
    outb(0x42, count & 0xff);
    outb(0x42, (u8)(count >> 8));
    t0 = rdtsc();
    while (!(inb(0x61) & 0x20))
        ;
    t1 = rdtsc();
    return t1 - t0;
}

static u8 cmos(u8 reg)
{
    outb(0x70, reg);
    return inb(0x71);
}

static unsigned bcd(unsigned v, bool is_bcd) { return is_bcd ? (v >> 4) * 10 + (v & 15) : v; }

/* Seconds since 1970 from the RTC, read between updates. */
static u64 rtc_seconds(void)
{
    unsigned f[6], y, m, d, b;
    static const u8 reg[6] = { 0, 2, 4, 7, 8, 9 };

    for (unsigned i = 0; i < 100000 && (cmos(10) & 0x80); i++)
        ;
    b = cmos(11);
    for (unsigned i = 0; i < 6; i++)
        f[i] = bcd(cmos(reg[i]), !(b & 4));
    d = f[3];
    m = f[4];
    y = f[5] + (f[5] < 70 ? 2000 : 1900);
    if (m <= 2) {
        y--;
        m += 12;
    }
    u64 days = 365ull * y + y / 4 - y / 100 + y / 400 + (153 * (m - 3) + 2) / 5 + d - 719469;

    return days * 86400 + f[2] * 3600 + f[1] * 60 + f[0];
}

void udelay(u64 us)
{
    u64 end = rdtsc() + us * cpu_caps.tsc_khz / 1000;

    while (rdtsc() < end)
        cpu_relax();
}

u64 now_ns(void)
{
    u64 d = rdtsc() - time_scale.tsc_base;

    d = time_scale.shift < 0 ? d >> -time_scale.shift : d << time_scale.shift;
    return (u64)((unsigned __int128)d * time_scale.mul >> 32);
}

u64 ns_to_tsc(u64 ns)
{
    if (ns == ~0ull)
        return ns;
    return time_scale.tsc_base + (u64)((unsigned __int128)ns * tsc_per_ns >> 32) + 1;
}

void time_setup(void)
{
    u64 hz, scaled, wall;

    if (pm_timer_port) {
        u32 took;
        u64 ticks = measure_pm(PM_HZ / 20, &took);

        hz = ticks * PM_HZ / took;
    } else {
        hz = measure_pit(PIT_HZ / 20) * 20;
    }
    cpu_caps.tsc_khz = hz / 1000;
    if (!cpu_caps.tsc_khz)
        boot_fatal("time: the TSC does not count");
    /* ns = (ticks << shift) * mul >> 32, with mul as large as 32 bits allow. */
    scaled = hz;
    time_scale.shift = 0;
    while (scaled > 2000000000ull) {
        scaled >>= 1;
        time_scale.shift--;
    }
    while (scaled <= 1000000000ull) {
        scaled <<= 1;
        time_scale.shift++;
    }
    time_scale.mul = (u32)((1000000000ull << 32) / scaled);
    tsc_per_ns = (cpu_caps.tsc_khz << 32) / 1000000;
    wall = rtc_seconds();
    time_scale.tsc_base = rdtsc();
    wallclock_base_ns = wall * 1000000000ull;
    apic_timer_calibrate();
}
