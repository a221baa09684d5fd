/* SPDX-License-Identifier: MIT */
/* The ACPI tables that the hypervisor needs: MADT for CPUs, FADT and DSDT for timer and power-off (ACPI 6.4, 5.2). */
#include "arch/asm.h"
#include "arch/cpu.h"
#include "boot/boot.h"
#include "boot/boot_internal.h"
#include "console.h"
#include "params.h"
#include "pt_string.h"

u32 cpu_apicid[NR_CPUS];
unsigned nr_possible_cpus = 1;
u64 lapic_phys = 0xfee00000;
u32 pm_timer_port, pm1a_cnt, pm1b_cnt;
u16 s5_typ_a, s5_typ_b;
bool s5_known;

struct sdt { char sig[4]; u32 length; u8 rev, sum; char oem[6], table[8]; u32 oem_rev, creator, creator_rev; } __attribute__((packed));

static bool sum_ok(const void *p, u64 len)
{
    const u8 *b = p;
    u8 s = 0;

    for (u64 i = 0; i < len; i++)
        s = (u8)(s + b[i]);
    return !s;
}

/* A table in RAM or firmware memory that the direct map covers; NULL when it is not sound. */
static const struct sdt *table(u64 phys, const char *want)
{
    const struct sdt *t = (const struct sdt *)(DIRECTMAP_VIRT + phys);
    u64 limit = MAX(1ull << 32, boot_info.max_mfn << PAGE_SHIFT);

    if (!phys || phys > limit - sizeof(*t) || t->length < sizeof(*t) || t->length > 16u << 20 || phys + t->length > limit ||
        !sum_ok(t, t->length)) {
        printk("ACPI: table %s at %#llx ignored: bad address, length or checksum\n", want, (unsigned long long)phys);
        return NULL;
    }
    return t;
}

static u64 find_rsdp(void)
{
    for (u64 p = 0x80000; p < 0x100000; p += 16) {
        const char *s = (const char *)(DIRECTMAP_VIRT + p);

        if (!memcmp(s, "RSD PTR ", 8) && sum_ok(s, 20))
            return p;
    }
    return 0;
}

static void add_cpu(u32 apicid, u32 boot_id)
{
    if (apicid == boot_id)
        return;
    if (nr_possible_cpus >= opt_maxcpus || nr_possible_cpus >= NR_CPUS)
        return;
    cpu_apicid[nr_possible_cpus++] = apicid;
}

static void parse_madt(const struct sdt *t)
{
    const u8 *p = (const u8 *)t + 44, *end = (const u8 *)t + t->length;
    u32 a, b, c, d;

    if (t->length < 44)
        return;
    memcpy(&a, (const u8 *)t + 36, 4);
    lapic_phys = a;
    cpuid_count(1, 0, &a, &b, &c, &d);
    cpu_apicid[0] = b >> 24;
    for (; p + 2 <= end && p[1] >= 2 && p + p[1] <= end; p += p[1]) {
        u32 id, flags;

        if (p[0] == 0 && p[1] >= 8) {
            memcpy(&flags, p + 4, 4);
            if (flags & 1)
                add_cpu(p[3], cpu_apicid[0]);
        } else if (p[0] == 9 && p[1] >= 16) {
            memcpy(&id, p + 4, 4);
            memcpy(&flags, p + 8, 4);
            if ((flags & 1) && (id < 255 || cpu_caps.x2apic))
                add_cpu(id, cpu_apicid[0]);
        } else if (p[0] == 5 && p[1] >= 12) {
            memcpy(&lapic_phys, p + 4, 8);
        }
    }
}

/* \_S5: a package whose first two elements are the sleep types: 08 "_S5_" 12 len count elem elem ... */
static void parse_dsdt(const struct sdt *t)
{
    const u8 *b = (const u8 *)t;

    for (u32 i = sizeof(*t); i + 16 < t->length; i++) {
        u32 k = i + 4;
        u16 v[2];

        if (memcmp(b + i, "_S5_", 4) || b[k] != 0x12)
            continue;
        k += 1;
        k += 1u + (b[k] >> 6);                  /* package length bytes */
        k += 1;                                 /* element count */
        for (unsigned n = 0; n < 2; n++) {
            if (k + 2 >= t->length)
                return;
            if (b[k] == 0x0a) {
                v[n] = b[k + 1];
                k += 2;
            } else {
                v[n] = b[k] == 0xff ? 0 : b[k];
                k += 1;
            }
        }
        s5_typ_a = v[0];
        s5_typ_b = v[1];
        s5_known = true;
        return;
    }
}

static void parse_fadt(const struct sdt *t)
{
    const u8 *b = (const u8 *)t;
    u32 dsdt;

    if (t->length < 116)
        return;
    memcpy(&dsdt, b + 40, 4);
    memcpy(&pm1a_cnt, b + 64, 4);
    memcpy(&pm1b_cnt, b + 68, 4);
    if (b[91] == 4)
        memcpy(&pm_timer_port, b + 76, 4);
    t = table(dsdt, "DSDT");
    if (t)
        parse_dsdt(t);
}

void acpi_setup(void)
{
    u64 rsdp = find_rsdp(), root = 0;
    const u8 *r = (const u8 *)(DIRECTMAP_VIRT + rsdp);
    const struct sdt *t;
    unsigned width = 4;

    boot_info.rsdp = rsdp;
    if (!rsdp) {
        printk("ACPI: no RSDP found; going on with one CPU\n");
        return;
    }
    if (r[15] >= 2 && sum_ok(r, 36)) {
        memcpy(&root, r + 24, 8);
        width = 8;
    }
    if (!root) {
        memcpy(&root, r + 16, 4);
        root &= 0xffffffff;
        width = 4;
    }
    t = table(root, width == 8 ? "XSDT" : "RSDT");
    if (!t)
        return;
    for (u32 off = sizeof(*t); off + width <= t->length; off += width) {
        const struct sdt *s;
        u64 pa = 0;

        memcpy(&pa, (const u8 *)t + off, width);
        s = table(pa, "in the root table");
        if (!s)
            continue;
        if (!memcmp(s->sig, "APIC", 4))
            parse_madt(s);
        else if (!memcmp(s->sig, "FACP", 4))
            parse_fadt(s);
    }
}
