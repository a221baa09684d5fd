/* SPDX-License-Identifier: MIT */
/* Exceptions and interrupts: what each vector means, for the hypervisor and for a guest. */
#include "vcpu.h"

#include "arch/apic.h"
#include "arch/asm.h"
#include "arch/traps.h"
#include "base/stats.h"
#include "console.h"
#include "ptwr.h"
#include "tlb.h"

extern const u64 __ex_table_start[][2], __ex_table_end[][2];
extern const char guest_iretq[];

#define PF_P     1u
#define PF_W     2u
#define PF_U     4u
#define PF_RSVD  8u
#define PF_INSN  16u

bool fixup_exception(struct cpu_regs *regs)
{
    for (const u64 (*e)[2] = __ex_table_start; e < __ex_table_end; e++) {
        if ((*e)[0] == regs->rip) {
            regs->rip = (*e)[1];
            return true;
        }
    }
    return false;
}

/* The IRETQ to a guest refused its selectors or address.  Its registers are live in @regs; the frame it tried to
 * return to is still at @regs->rsp.  Rebuilds the guest's frame and lets the guest handle a #GP. */
static void __noreturn __attribute__((noinline)) iret_failed(struct cpu_regs *regs)
{
    struct cpu_info *info = cpu_info();
    struct cpu_regs r = *regs;
    const u64 *f = (const u64 *)regs->rsp;

    r.rip = f[0];
    r.cs = f[1];
    r.rflags = f[2];
    r.rsp = f[3];
    r.ss = f[4];
    info->regs = r;
    if (!canonical(r.rip))
        info->regs.rip = 0;
    info->regs.cs = FLAT_CS64;
    info->regs.ss = FLAT_DS;
    inject_exception(info->current, &info->regs, 13, r.error_code & 0xffff);
    exit_to_guest(&info->regs);
    resume_frame(&info->regs);
}

/* A ring-3 IRETQ whose stack read faulted as a supervisor access: QEMU's TCG before version 9 does that when SMAP
 * is on.  Does what the instruction would have done. */
static __attribute__((noinline)) bool emulate_ring3_iretq(struct cpu_regs *regs)
{
    u8 insn[2];
    u64 f[5];

    if (copy_from_guest(insn, regs->rip, 2) || insn[0] != 0x48 || insn[1] != 0xcf)
        return false;
    if (copy_from_guest(f, regs->rsp, sizeof(f)))
        return false;
    regs->rip = f[0];
    regs->cs = (f[1] & 0xffff) | 3;
    regs->rflags = (f[2] & ~(RFLAGS_IOPL | RFLAGS_VM | RFLAGS_NT)) | RFLAGS_IF | 2;
    regs->rsp = f[3];
    regs->ss = (f[4] & 0xffff) | 3;
    return true;
}

static void guest_page_fault(struct vcpu *v, struct cpu_regs *regs)
{
    u64 addr = read_cr2();
    u32 err = regs->error_code;

    stat_inc(exit_page_fault);
    if (ptwr_on() && guest_range_ok(addr, 1) &&
        ptwr_fault(v->domain->mm, v->guest_kernel ? v->root_kernel : v->root_user, addr, err)) {
        invlpg(addr & PAGE_MASK);
        return;
    }
    if (v->guest_kernel && (err & (PF_P | PF_W | PF_RSVD)) == (PF_P | PF_W) && guest_range_ok(addr, 1) &&
        emulate_pte_write(v, regs, addr, err))
        return;
    if ((err & (PF_P | PF_U | PF_RSVD)) == PF_P && cpu_caps.smap && emulate_ring3_iretq(regs))
        return;
    inject_page_fault(v, regs, addr, err);
}

static void guest_trap(struct vcpu *v, struct cpu_regs *regs)
{
    unsigned vec = regs->vector;

    switch (vec) {
    case 14:
        guest_page_fault(v, regs);
        return;
    case 13:
    case 6:
        stat_inc(exit_gp_ud);
        emulate_privileged(v, regs, vec);
        return;
    case 1: {
        u64 dr6;

        __asm__ volatile("mov %%dr6, %0" : "=r"(dr6));
        v->dr[6] = dr6;
        __asm__ volatile("mov %0, %%dr6" :: "r"(0xffff0ff0ul));
        inject_exception(v, regs, 1, 0);
        return;
    }
    default:
        stat_inc(exit_other_exception);
        inject_exception(v, regs, vec, regs->error_code);
    }
}

static void interrupt(unsigned vec)
{
    stat_inc(exit_irq);
    switch (vec) {
    case VEC_TLB:
        apic_eoi();
        tlb_poll();
        return;
    case VEC_KICK:
        apic_eoi();
        cpu_info()->work |= WORK_RESCHED;
        return;
    case VEC_TIMER:
        apic_eoi();
        stat_inc(timer_irq);
        timer_interrupt();
        return;
    case VEC_SERIAL:
        apic_eoi();
        serial_interrupt();
        return;
    case VEC_SPURIOUS:
        return;
    default:
        apic_eoi();
    }
}

void trap_handler(struct cpu_regs *regs)
{
    unsigned vec = regs->vector;

    if (unlikely(vec == 2)) {
        nmi_interrupt(regs);
        return;
    }
    if (unlikely(vec == 8 || vec == 18))
        panic_regs(regs, "fatal exception %u, error code %#x", vec, regs->error_code);

    if (likely(regs->cs & 3)) {
        struct vcpu *v = current_vcpu();

        if (vec < 32)
            guest_trap(v, regs);
        else if (vec == VEC_SYSCALL80)
            inject_exception(v, regs, VEC_SYSCALL80, 0);
        else
            interrupt(vec);
        exit_to_guest(regs);
        return;
    }
    if (vec >= 32) {
        interrupt(vec);
        return;
    }
    if (regs->rip == (u64)guest_iretq)
        iret_failed(regs);
    if (fixup_exception(regs))
        return;
    panic_regs(regs, "exception %u in the hypervisor, error code %#x, cr2 %#llx", vec, regs->error_code,
               (unsigned long long)read_cr2());
}
