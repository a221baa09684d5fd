/* SPDX-License-Identifier: MIT */
/* Write faults on page tables: soft TLB, decode cache, and the write itself (pt_update=emulate).
 *
 * Both caches belong to one vCPU and are used only where it runs.  The soft TLB maps a page of guest addresses to the
 * L1 frame that is mapped there read-only; it dies with every flush of the real TLB on this vCPU, so a stale entry can
 * only do what a stale hardware entry could, and the update itself checks again that the frame is a table.  A decode
 * cache entry is used only when the instruction bytes in guest memory equal the cached ones. */
#include <xen/errno.h>

#include "abi/abi_mm.h"
#include "arch/asm.h"
#include "base/stats.h"
#include "emulate/op.h"
#include "guest_copy.h"
#include "memory.h"
#include "pt_work.h"
#include "ptwalk.h"
#include "ptwr.h"
#include "vcpu.h"

#define SOFT_TLB   64
#define DECODE     16
#define INSN_MAX   15
#define NO_RIP     (~0ull)      /* an empty entry: no instruction lies there */

struct soft_tlb { u64 page, gen; struct frame *l1; };
struct decoded { u64 rip, code[2], mask[2]; struct pte_insn insn; };   /* the bytes, and which of them are the instruction */

struct mm_vcpu {
    u64 gen;                                    /* flush generation of this vCPU */
    u64 spurious_rip;
    unsigned spurious;
    struct soft_tlb tlb[SOFT_TLB];
    struct decoded code[DECODE];
    struct pt_work work;
};
_Static_assert(sizeof(struct mm_vcpu) <= PAGE_SIZE, "one page a vCPU");

void *mm_vcpu_create(void)
{
    struct mm_vcpu *m = hv_zalloc_page();

    if (!m)
        return NULL;
    m->gen = 1;
    for (unsigned i = 0; i < DECODE; i++)
        m->code[i].rip = NO_RIP;
    return m;
}

struct pt_work *mm_vcpu_work(void *mm) { return &((struct mm_vcpu *)mm)->work; }

void mm_vcpu_flushed(struct vcpu *v) { ((struct mm_vcpu *)v->mm)->gen++; }

/* The frame of type L1 that is mapped read-only at @addr; NULL: none.  *@spurious: a writable mapping is there now. */
static struct frame *find_table(struct vcpu *v, u64 addr, bool *spurious)
{
    struct mm_vcpu *m = v->mm;
    struct mm_domain *d = v->domain->mm;
    u64 page = addr >> PAGE_SHIFT, e;
    struct soft_tlb *t = &m->tlb[page % SOFT_TLB];
    struct frame *f;
    mfn_t l1;

    if (likely(t->page == page && t->gen == m->gen)) {
        stat_inc(soft_tlb_hit);
        return t->l1;
    }
    stat_inc(soft_tlb_miss);
    if (!pt_walk_table(d, v->root_kernel, addr, 1, &l1))
        return NULL;
    e = load_relaxed((u64 *)env_map(l1) + pt_index(addr, 1));
    if (!(e & PTE_P) || pte_mfn(e).v >= max_mfn)
        return NULL;
    if (e & PTE_RW) {
        *spurious = true;
        return NULL;
    }
    f = frame_of(pte_mfn(e));
    if (load_relaxed(&f->owner) != d->owner || fw_type(load_acquire(&f->fw)) != FT_L1)
        return NULL;
    t->page = page;
    t->gen = m->gen;
    t->l1 = f;
    return f;
}

#define PAIR_FITS(rip) (((rip) & 4095) <= 4096 - 16)

/* Decodes the instruction at @rip into @c.  NULL: cannot be read or is not one of the known forms. */
static __attribute__((noinline)) const struct pte_insn *decode(u64 rip, struct decoded *c)
{
    u64 code[2] = { 0, 0 };
    unsigned avail = INSN_MAX;

    stat_inc(decode_miss);
    c->rip = NO_RIP;
    if (unlikely(!guest_range_ok(rip, 16)))
        return NULL;
    if (PAIR_FITS(rip)) {
        if (!raw_read_pair(rip, &code[0], &code[1]))
            return NULL;
    } else {
        avail -= (unsigned)raw_copy(code, (const void *)rip, INSN_MAX);
    }
    if (decode_pte_insn((const u8 *)code, avail, &c->insn))
        return NULL;
    for (unsigned i = 0; i < 2; i++) {
        unsigned n = c->insn.len > 8 * i ? MIN(c->insn.len - 8 * i, 8u) : 0;

        c->code[i] = code[i];
        c->mask[i] = n ? ~0ull >> (64 - 8 * n) : 0;
    }
    c->rip = rip;
    return &c->insn;
}

/* The instruction at @rip; NULL as above.  A cached one was within the guest's range when it was decoded. */
static inline const struct pte_insn *fetch(struct vcpu *v, u64 rip)
{
    struct mm_vcpu *m = v->mm;
    struct decoded *c = &m->code[(rip ^ rip >> 5) % DECODE];
    u64 a, b;

    if (unlikely(c->rip != rip || !PAIR_FITS(rip) || !raw_read_pair(rip, &a, &b)) ||
        unlikely(((a ^ c->code[0]) & c->mask[0]) | ((b ^ c->code[1]) & c->mask[1])))
        return decode(rip, c);
    stat_inc(decode_hit);
    return &c->insn;
}

/* A fault that a retry may cure: the mapping or the table changed meanwhile.  Three in a row at one place do not. */
static bool retry(struct vcpu *v, u64 rip, u64 addr)
{
    struct mm_vcpu *m = v->mm;

    stat_inc(emul_spurious);
    m->spurious = m->spurious_rip == rip ? m->spurious + 1 : 1;
    m->spurious_rip = rip;
    if (m->spurious > 3) {
        m->spurious = 0;
        return false;
    }
    invlpg(addr & PAGE_MASK);
    mm_vcpu_flushed(v);
    return true;
}

static void count(const struct pte_insn *insn)
{
    switch (insn->op) {
    case PTE_OP_AND:  stat_inc(emul_and); break;
    case PTE_OP_XCHG: stat_inc(emul_xchg); break;
    case PTE_OP_BTR:  stat_inc(emul_btr); break;
    case PTE_OP_MOV:  stat_inc(emul_mov); break;
    default:          stat_inc(emul_other);
    }
}

/* Decodes the instruction at RIP and carries it out on the entry of @f at @addr.  False: the guest gets its fault. */
static inline __attribute__((always_inline)) bool emulate_write(struct vcpu *v, struct cpu_regs *regs, struct frame *f, u64 addr)
{
    const struct pte_insn *insn;
    u64 ea;
    int rc;

    insn = fetch(v, regs->rip);
    if (unlikely(!insn))
        goto reflect;
    if (unlikely(insn->rep && !regs->rcx))
        goto reflect;
    ea = pte_insn_ea(insn, regs, regs->rip);
    if (unlikely(ea != addr || (ea & 7) + insn->size > 8))
        goto reflect;
    rc = pt_emulate(v->domain->mm, f, (unsigned)ea & 4095, insn, regs);
    if (unlikely(rc)) {
        if (rc == -XEN_ERESTART) {              /* what is in the way goes first; the guest repeats its write */
            pt_work_start();
            (void)pt_work_resume(v->domain->mm);
            return true;
        }
        if (rc == -XEN_EAGAIN && retry(v, regs->rip, addr))
            return true;
        goto reflect;
    }
    count(insn);
    if (unlikely(insn->rep && regs->rcx))
        return true;                            /* the next element is another fault */
    regs->rip += insn->len;
    if (unlikely(regs->rflags & RFLAGS_TF)) {
        v->dr[6] |= 1u << 14;
        inject_exception(v, regs, 1, 0);
    }
    return true;

reflect:
    stat_inc(emul_reflected);
    return false;
}

bool emulate_pte_write(struct vcpu *v, struct cpu_regs *regs, u64 addr, u32 error)
{
    bool spurious = false, done;
    struct frame *f;

    (void)error;
    f = find_table(v, addr, &spurious);
    if (unlikely(!f))
        return spurious && retry(v, regs->rip, addr);
    if (ptwr_on() && ptwr_open_fault(v->domain->mm, v->root_kernel, f, addr)) {
        invlpg(addr & PAGE_MASK);
        return true;
    }
    done = emulate_write(v, regs, f, addr);
    if (ptwr_on())
        ptwr_exit(v->domain->mm);               /* ptwr_open_fault() left the domain locked */
    return done;
}
