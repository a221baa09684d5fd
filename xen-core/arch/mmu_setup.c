/* SPDX-License-Identifier: MIT */
/* The hypervisor's final page tables: direct map, image, frame table, machine-to-physical array. */
#include "arch/asm.h"
#include "arch/cpu.h"
#include "arch/machine.h"
#include "boot/boot.h"
#include "boot/boot_internal.h"
#include "console.h"
#include "params.h"
#include "pt.h"
#include "pt_string.h"

u64 *hv_l4;

extern char image_start[], rodata_start[], data_start[], image_end[];

#define SIZE_2M   (1ull << 21)
#define SIZE_1G   (1ull << 30)
#define HV_RO     (PTE_P | PTE_A | PTE_G | PTE_NX)
#define HV_RW     (HV_RO | PTE_RW | PTE_D)
#define HV_RX     (PTE_P | PTE_A | PTE_G)

static u64 *from_phys(u64 pa) { return (u64 *)(DIRECTMAP_VIRT + (pa & PTE_MFN_MASK)); }
static u64 to_phys(const void *p) { return (u64)p - DIRECTMAP_VIRT; }

/* The entry for @va at @level (1: 4 KiB, 2: 2 MiB, 3: 1 GiB), with tables allocated on the way. */
static u64 *entry(u64 va, int level, u64 table_flags)
{
    u64 *t = hv_l4;

    for (int l = 4; l > level; l--) {
        u64 *e = &t[pt_index(va, l)];

        if (!(*e & PTE_P))
            *e = to_phys(boot_alloc(PAGE_SIZE, PAGE_SIZE)) | PTE_P | PTE_RW | PTE_A | table_flags;
        t = from_phys(*e);
    }
    return &t[pt_index(va, level)];
}

static void map_2m(u64 va, u64 pa, u64 flags, u64 table_flags)
{
    *entry(va, 2, table_flags) = pa | flags | PTE_PSE;
}

void hv_map_page(u64 va, u64 phys, u64 flags)
{
    *entry(va, 1, 0) = phys | flags;
    invlpg(va);
}

/* Direct map of [start, end): 1 GiB pages where they fit and the CPU has them, else 2 MiB. */
static void map_direct(u64 start, u64 end)
{
    start = ROUND_DOWN(start, SIZE_2M);
    end = ROUND_UP(end, SIZE_2M);
    while (start < end) {
        u64 va = DIRECTMAP_VIRT + start;

        if (cpu_caps.gb_pages && !(start & (SIZE_1G - 1)) && end - start >= SIZE_1G) {
            *entry(va, 3, 0) = start | HV_RW | PTE_PSE;
            start += SIZE_1G;
        } else {
            u64 *e = entry(va, 3, 0);

            if (!((*e & PTE_P) && (*e & PTE_PSE)))
                map_2m(va, start, HV_RW, 0);
            start += SIZE_2M;
        }
    }
}

/* Is there RAM among frames [first, end)? */
static bool any_ram(u64 first, u64 end)
{
    for (unsigned i = 0; i < boot_info.nr_e820; i++) {
        const struct e820_entry *e = &boot_info.e820[i];

        if (e->type == E820_RAM && e->addr < end << PAGE_SHIFT && e->addr + e->size > first << PAGE_SHIFT)
            return true;
    }
    return false;
}

/* Maps an array of @size bytes an mfn at @va, by 2 MiB; where its frames are no RAM, a shared page of zeroes. The
 * second view at @va2 (0: none) is for guests: read-only, user. */
static void map_array(u64 va, u64 va2, u64 size)
{
    static u64 zero;                            /* allocated for the first hole */
    u64 per = SIZE_2M / size;

    for (u64 m = 0; m < max_mfn; m += per, va += SIZE_2M) {
        bool ram = any_ram(m, m + per);
        u64 pa;

        if (!ram && !zero)
            zero = to_phys(boot_alloc(SIZE_2M, SIZE_2M));
        pa = ram ? to_phys(boot_alloc(SIZE_2M, SIZE_2M)) : zero;
        map_2m(va, pa, ram ? HV_RW : HV_RO, 0);
        if (va2) {
            map_2m(va2, pa, (HV_RO & ~PTE_G) | PTE_US, PTE_US);
            va2 += SIZE_2M;
        }
    }
}

void mmu_setup(void)
{
    max_mfn = boot_info.max_mfn;
    pt_phys_mask = ((1ull << cpu_caps.phys_bits) - 1) & PTE_MFN_MASK;
    if (opt_pv_l1tf)
        pt_l1tf_limit = max_mfn << PAGE_SHIFT;  /* there is nothing above it that a cache could hold */
    hv_l4 = boot_alloc(PAGE_SIZE, PAGE_SIZE);
    for (unsigned i = HV_L4_FIRST; i <= HV_L4_LAST; i++)
        hv_l4[i] = to_phys(boot_alloc(PAGE_SIZE, PAGE_SIZE)) | PTE_P | PTE_RW | PTE_A | (i == 256 ? PTE_US : 0);

    map_direct(0, 1ull << 32);                  /* with firmware tables and devices' neighbours */
    for (unsigned i = 0; i < boot_info.nr_e820; i++) {
        const struct e820_entry *e = &boot_info.e820[i];

        if ((e->type == E820_RAM || e->type == E820_ACPI || e->type == E820_NVS) && e->addr + e->size > 1ull << 32 &&
            e->addr < max_mfn << PAGE_SHIFT)
            map_direct(MAX(e->addr, 1ull << 32), MIN(e->addr + e->size, max_mfn << PAGE_SHIFT));
    }
    for (u64 va = HV_IMAGE_VIRT; va < (u64)image_end; va += PAGE_SIZE)
        *entry(va, 1, 0) = (va - HV_IMAGE_VIRT + HV_IMAGE_PHYS) |
                           (va < (u64)rodata_start ? HV_RX : va < (u64)data_start ? HV_RO : HV_RW);
    map_array(FRAMETABLE_VIRT, 0, sizeof(struct frame));
    map_array(M2P_RW_VIRT, M2P_RO_VIRT, sizeof(u64));
    entry(VCPU_DT_VIRT, 2, 0);
    memcpy(pt_hv_slots, &hv_l4[HV_L4_FIRST], sizeof(pt_hv_slots));
    write_cr3(to_phys(hv_l4));
    boot_alloc_limit(~0ull);
}

/* Contiguous in virtual addresses, because the L1 tables are; allocated on demand from the heap. */
u64 *hv_map_vcpu_dt(unsigned slot)
{
    u64 va = VCPU_DT_VIRT + ((u64)slot << VCPU_DT_SHIFT);
    u64 *l2 = from_phys(from_phys(hv_l4[pt_index(va, 4)])[pt_index(va, 3)]) + pt_index(va, 2);

    if (pt_index(va, 3) != pt_index(VCPU_DT_VIRT, 3))
        return NULL;
    if (!(*l2 & PTE_P)) {
        u64 *page = env_page_alloc();

        if (!page)
            return NULL;
        memset(page, 0, PAGE_SIZE);
        *l2 = to_phys(page) | PTE_P | PTE_RW | PTE_A;
    }
    return from_phys(*l2) + pt_index(va, 1);
}
