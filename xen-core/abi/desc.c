/* SPDX-License-Identifier: MIT */
/* Descriptor tables: set_gdt, update_descriptor, SET_LDT, and what is loaded with a vCPU. */
#include <xen/errno.h>

#include "abi/abi_mm.h"
#include "arch/asm.h"
#include "arch/machine.h"
#include "audit.h"
#include "base/stats.h"
#include "guest_copy.h"
#include "memory.h"
#include "ptwalk.h"
#include "ptwr.h"
#include "vcpu.h"

#define DT_PTE   (PTE_P | PTE_RW | PTE_A | PTE_D | PTE_NX)      /* supervisor, not global */
#define LDT_PAGE 16                                             /* first LDT page of the area */

static u64 dt_virt(const struct vcpu *v) { return VCPU_DT_VIRT + ((u64)v->dt_slot << VCPU_DT_SHIFT); }

/* A page of zeroes behind every unused descriptor page: a selector there is a null descriptor, not a page fault. */
static mfn_t zero_page_mfn(void)
{
    static void *page;

    if (!page)
        page = hv_zalloc_page();
    BUG_ON(!page);
    return env_mfn_of(page);
}

void dt_init_vcpu(struct vcpu *v)
{
    for (unsigned i = 0; i < 32; i++)
        v->dt_pte[i] = pte_make(zero_page_mfn(), DT_PTE & ~PTE_RW);
}

void dt_load(struct vcpu *v)
{
    struct { u16 limit; u64 base; } __attribute__((packed)) gdtr = { 0xefff, dt_virt(v) };
    u64 *ldt = (u64 *)cpu_gdt_ptr(this_cpu()) + (LDT_SEL - 0xe000) / 8;

    /* Not global, and a root was loaded since another vCPU's page was here: nothing stale. */
    v->dt_pte[GDT_RESERVED_PAGE] = pte_make(cpu_gdt_page(this_cpu()), DT_PTE);
    invlpg(dt_virt(v) + GDT_RESERVED_PAGE * PAGE_SIZE);
    __asm__ volatile("lgdt %0" :: "m"(gdtr));
    if (v->ldt_ents) {
        u64 base = dt_virt(v) + LDT_PAGE * PAGE_SIZE, limit = v->ldt_ents * 8 - 1;

        ldt[0] = (limit & 0xffff) | (base & 0xffffff) << 16 | 0x82ull << 40 | (limit >> 16 & 15) << 48 |
                 (base >> 24 & 0xff) << 56;
        ldt[1] = base >> 32;
        __asm__ volatile("lldt %w0" :: "r"(LDT_SEL));
    } else {
        __asm__ volatile("lldt %w0" :: "r"(0));
    }
}

/* Makes one descriptor harmless: everything runs at DPL 3, and what is not code, data or a call gate is refused. */
static bool fix_descriptor(u64 *desc)
{
    u64 d = *desc;

    if (!(d >> 47 & 1)) {                       /* not present */
        return true;
    }
    if (d >> 44 & 1) {                          /* code or data */
        *desc = d | 3ull << 45;
        /* A conforming code segment or an expand-down stack does no harm at DPL 3. */
        return true;
    }
    if (!(d >> 40 & 31)) {                      /* type 0: reserved, never used by the CPU */
        *desc = d & ~(3ull << 45);
        return true;
    }
    return false;                               /* TSS, LDT, gates */
}

bool pt_segdesc_ok(u64 *page)
{
    for (unsigned i = 0; i < 512; i++)
        if (!fix_descriptor(&page[i]))
            return false;
    return true;
}

static void drop_gdt(struct vcpu *v)
{
    for (unsigned i = 0; i < GDT_RESERVED_PAGE; i++) {
        if (v->gdt_frame[i].v == MFN_INVALID.v)
            continue;
        v->dt_pte[i] = pte_make(zero_page_mfn(), DT_PTE & ~PTE_RW);
        invlpg(dt_virt(v) + i * PAGE_SIZE);
        pt_put_type(v->domain->mm, v->gdt_frame[i]);
        v->gdt_frame[i] = MFN_INVALID;
    }
}

int gdt_set(struct vcpu *v, const u64 *mfns, unsigned entries)
{
    unsigned n = (entries + 511) / 512, i;

    if (entries > GDT_RESERVED_PAGE * 512)
        return -XEN_EINVAL;
    for (i = 0; i < n; i++) {
        int rc = pt_get_type(v->domain->mm, MFN(mfns[i]), FT_SEG);

        if (rc) {
            while (i--)
                pt_put_type(v->domain->mm, MFN(mfns[i]));
            return rc;
        }
    }
    drop_gdt(v);
    for (i = 0; i < n; i++) {
        v->gdt_frame[i] = MFN(mfns[i]);
        v->dt_pte[i] = pte_make(MFN(mfns[i]), DT_PTE);
        invlpg(dt_virt(v) + i * PAGE_SIZE);
    }
    v->gdt_ents = entries;
    return 0;
}

long hc_set_gdt(u64 list, u64 entries, u64 a3, u64 a4, u64 a5)
{
    u64 mfns[GDT_RESERVED_PAGE];

    (void)a3; (void)a4; (void)a5;
    if (entries > GDT_RESERVED_PAGE * 512)
        return -XEN_EINVAL;
    if (copy_from_guest(mfns, list, (entries + 511) / 512 * 8))
        return -XEN_EFAULT;
    if (ptwr_on()) {
        struct mm_domain *mm = current_domain()->mm;
        long rc;

        ptwr_enter(mm, STAT_ptwr_flush_descriptor);
        rc = gdt_set(current_vcpu(), mfns, (unsigned)entries);
        ptwr_exit(mm);
        return rc;
    }
    return gdt_set(current_vcpu(), mfns, (unsigned)entries);
}

/* One checked descriptor into a page of descriptors, or into a plain page that is writable anyway. */
static int write_descriptor(struct mm_domain *mm, mfn_t mfn, u64 ma, u64 desc)
{
    enum frame_type ty;
    int rc;

    ty = fw_type(load_acquire(&frame_of(mfn)->fw)) == FT_SEG ? FT_SEG : FT_W;
    rc = pt_get_type(mm, mfn, ty);
    if (rc)
        return rc;
    store_relaxed((u64 *)env_map(mfn) + (ma & 4095) / 8, desc);
    pt_put_type(mm, mfn);
    return 0;
}

long hc_update_descriptor(u64 ma, u64 desc, u64 a3, u64 a4, u64 a5)
{
    struct mm_domain *mm = current_domain()->mm;
    mfn_t mfn = MFN(ma >> PAGE_SHIFT);
    int rc;

    (void)a3; (void)a4; (void)a5;
    if ((ma & 7) || mfn.v >= max_mfn || !fix_descriptor(&desc))
        return -XEN_EINVAL;
    if (ptwr_on()) {
        ptwr_enter(mm, STAT_ptwr_flush_descriptor);
        rc = write_descriptor(mm, mfn, ma, desc);
        ptwr_exit(mm);
        return rc;
    }
    return write_descriptor(mm, mfn, ma, desc);
}

static void drop_ldt(struct vcpu *v)
{
    unsigned n = (v->ldt_ents + 511) / 512;

    for (unsigned i = 0; i < n; i++) {
        mfn_t m = pte_mfn(v->dt_pte[LDT_PAGE + i]);

        v->dt_pte[LDT_PAGE + i] = pte_make(zero_page_mfn(), DT_PTE & ~PTE_RW);
        invlpg(dt_virt(v) + (LDT_PAGE + i) * PAGE_SIZE);
        if (!mfn_eq(m, zero_page_mfn()))
            pt_put_type(v->domain->mm, m);
    }
    v->ldt_ents = 0;
    v->ldt_base = 0;
}

/* MMUEXT_SET_LDT: maps the pages of the table at @va now; each must be a page of descriptors. */
int ldt_set(struct vcpu *v, u64 va, u32 ents)
{
    struct mm_domain *mm = v->domain->mm;
    unsigned n = (ents + 511) / 512, i;
    mfn_t page[16];

    if (ents > 8192 || (va & 4095) || (ents && !guest_range_ok(va, ents * 8ull)))
        return -XEN_EINVAL;
    for (i = 0; i < n; i++) {
        mfn_t l1;
        u64 e = 0;
        int rc = -XEN_EINVAL;

        if (pt_walk_table(mm, v->root_kernel, va + i * PAGE_SIZE, 1, &l1))
            e = load_relaxed((u64 *)env_map(l1) + pt_index(va + i * PAGE_SIZE, 1));
        page[i] = pte_mfn(e);
        if (e & PTE_P)
            rc = pt_get_type(mm, page[i], FT_SEG);
        if (rc) {
            while (i--)
                pt_put_type(mm, page[i]);
            return rc;
        }
    }
    drop_ldt(v);
    for (i = 0; i < n; i++) {
        v->dt_pte[LDT_PAGE + i] = pte_make(page[i], DT_PTE);
        invlpg(dt_virt(v) + (LDT_PAGE + i) * PAGE_SIZE);
    }
    v->ldt_base = va;
    v->ldt_ents = ents;
    dt_load(v);
    return 0;
}

void dt_refs(struct audit *a, const struct vcpu *v)
{
    for (unsigned i = 0; i < GDT_RESERVED_PAGE; i++)
        if (v->gdt_frame[i].v != MFN_INVALID.v)
            audit_ref(a, v->gdt_frame[i], FT_SEG);
    for (unsigned i = 0; i < (v->ldt_ents + 511) / 512; i++)
        if (!mfn_eq(pte_mfn(v->dt_pte[LDT_PAGE + i]), zero_page_mfn()))
            audit_ref(a, pte_mfn(v->dt_pte[LDT_PAGE + i]), FT_SEG);
}
