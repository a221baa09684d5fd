/* SPDX-License-Identifier: MIT */
/* Entering a guest's handlers: mode toggles and bounce frames (layout: Xen public header arch-x86/xen-x86_64.h and
 * the guest's entry code: ss, rsp, rflags, cs | saved mask, rip, [error], r11, rcx). */
#include "vcpu.h"

#include "arch/asm.h"
#include "base/stats.h"
#include "pt.h"

/* Vectors that push an error code: 8, 10-14, 17. */
#define HAS_ERROR  (1u << 8 | 0x1fu << 10 | 1u << 17)

/* tlb_cpu.as and .mode of this CPU, before and after a root is loaded (pair T2 in tlb.h). */
static inline void swapgs(void) { __asm__ volatile("swapgs" ::: "memory"); }

void load_root(struct vcpu *v)
{
    struct tlb_cpu *t = &tlb_cpu[this_cpu()];
    mfn_t root = v->guest_kernel ? v->root_kernel : v->root_user;
    u64 as = pt_meta(frame_of(root))->as, now, *l4 = env_map(root);
    u64 m2p = v->guest_kernel || mfn_eq(v->root_kernel, v->root_user) ? pt_hv_slots[0] : 0;
    bool change = as != t->as;

    if (unlikely(load_relaxed(&l4[HV_L4_FIRST]) != m2p))
        store_relaxed(&l4[HV_L4_FIRST], m2p);                        /* user mode may not read the M2P */

    if (change)
        store_release(&t->as, AS_ANY);
    if (v->guest_kernel)
        store_release(&t->mode, t->mode | 1);
    now = rdtsc();
    write_cr3(root.v << PAGE_SHIFT);
    store_release(&t->flush_time, now);                               /* T1 */
    if (!v->guest_kernel)
        store_release(&t->mode, t->mode & ~1ull);
    if (change)
        store_release(&t->as, as);
    mm_vcpu_flushed(v);
}

void toggle_to_kernel(struct vcpu *v)
{
    if (v->guest_kernel)
        return;
    v->guest_kernel = true;
    swapgs();
    load_root(v);
}

void toggle_to_user(struct vcpu *v)
{
    v->guest_kernel = false;
    swapgs();
    load_root(v);
}

/* Pushes the frame and points @regs at @handler. */
static void bounce(struct vcpu *v, struct cpu_regs *regs, u64 handler, bool mask, bool has_err, u32 err, bool keep_flags)
{
    vcpu_info_t *info = v->info;
    u64 saved = info->evtchn_upcall_mask, sp, frame[8];
    bool from_kernel = v->guest_kernel;
    unsigned n = 0;

    if (from_kernel) {
        sp = regs->rsp;
    } else {
        toggle_to_kernel(v);
        sp = v->kernel_sp;
    }
    sp &= ~15ull;
    frame[n++] = regs->rcx;
    frame[n++] = regs->r11;
    if (has_err)
        frame[n++] = err;
    frame[n++] = regs->rip;
    frame[n++] = (from_kernel ? regs->cs & 0xfffc : regs->cs & 0xffff) | saved << 32;
    frame[n++] = (regs->rflags & ~(RFLAGS_IF | RFLAGS_IOPL)) | (saved ? 0 : RFLAGS_IF);
    frame[n++] = regs->rsp;
    frame[n++] = regs->ss & 0xffff;
    sp -= n * 8;
    if (unlikely(copy_to_guest(sp, frame, n * 8))) {
        domain_crash(v->domain, "cannot write a bounce frame at %#llx", (unsigned long long)sp);
        return;
    }
    if (mask)
        store_relaxed(&info->evtchn_upcall_mask, 1);
    if (unlikely(!canonical(handler))) {
        domain_crash(v->domain, "handler address %#llx is not canonical", (unsigned long long)handler);
        return;
    }
    regs->rip = handler;
    regs->rsp = sp;
    regs->cs = FLAT_CS64;
    regs->ss = FLAT_DS;
    regs->vector = 0;
    regs->rflags = keep_flags ? (regs->rflags & ~(RFLAGS_TF | RFLAGS_NT | RFLAGS_DF)) | RFLAGS_IF
        : (regs->rflags & ~(RFLAGS_TF | RFLAGS_NT | RFLAGS_RF | RFLAGS_AC | RFLAGS_VM)) | RFLAGS_IF;
}

void inject_exception(struct vcpu *v, struct cpu_regs *regs, unsigned vector, u32 error)
{
    const struct trap_entry *t = &v->trap[vector & 255];

    stat_inc(bounce_exception);
    if (unlikely(!t->address)) {
        domain_crash(v->domain, "no handler for exception %u (error code %#x, cr2 %#llx)", vector, error,
                     (unsigned long long)v->cr2);
        return;
    }
    bounce(v, regs, t->address, t->flags & 4, vector < 32 && (HAS_ERROR >> vector & 1), error, false);
}

void inject_page_fault(struct vcpu *v, struct cpu_regs *regs, u64 addr, u32 error)
{
    v->cr2 = addr;
    v->info->arch.cr2 = addr;
    inject_exception(v, regs, 14, v->guest_kernel ? error & ~4u : error | 4u);
}

void bounce_callback(struct vcpu *v, struct cpu_regs *regs, const struct callback *cb)
{
    bounce(v, regs, cb->address, cb->mask, false, 0, false);
}

bool syscall_bounce(struct vcpu *v, struct cpu_regs *regs, const struct callback *cb)
{
    stat_inc(bounce_syscall);
    if (!cb->set)
        return false;
    bounce(v, regs, cb->address, cb->mask, false, 0, true);
    return true;
}
