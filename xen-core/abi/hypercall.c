/* SPDX-License-Identifier: MIT */
/* Hypercall entry, dispatch and multicalls. */
#include <xen/errno.h>

#include "abi/abi.h"
#include "abi/abi_mm.h"
#include "arch/traps.h"
#include "base/stats.h"
#include "guest_copy.h"
#include "pt_work.h"
#include "ptwr.h"
#include "vcpu.h"

static hypercall_fn hc_multicall;

static hypercall_fn *const table[] = {
    [__HYPERVISOR_set_trap_table]     = hc_set_trap_table,
    [__HYPERVISOR_mmu_update]         = hc_mmu_update,
    [__HYPERVISOR_set_gdt]            = hc_set_gdt,
    [__HYPERVISOR_stack_switch]       = hc_stack_switch,
    [__HYPERVISOR_set_callbacks]      = hc_set_callbacks,
    [__HYPERVISOR_fpu_taskswitch]     = hc_fpu_taskswitch,
    [__HYPERVISOR_platform_op]        = hc_platform_op,
    [__HYPERVISOR_set_debugreg]       = hc_set_debugreg,
    [__HYPERVISOR_get_debugreg]       = hc_get_debugreg,
    [__HYPERVISOR_update_descriptor]  = hc_update_descriptor,
    [__HYPERVISOR_memory_op]          = hc_memory_op,
    [__HYPERVISOR_multicall]          = hc_multicall,
    [__HYPERVISOR_update_va_mapping]  = hc_update_va_mapping,
    [__HYPERVISOR_set_timer_op]       = hc_set_timer_op,
    [__HYPERVISOR_xen_version]        = hc_xen_version,
    [__HYPERVISOR_console_io]         = hc_console_io,
    [__HYPERVISOR_grant_table_op]     = hc_grant_table_op,
    [__HYPERVISOR_vm_assist]          = hc_vm_assist,
    [__HYPERVISOR_vcpu_op]            = hc_vcpu_op,
    [__HYPERVISOR_set_segment_base]   = hc_set_segment_base,
    [__HYPERVISOR_mmuext_op]          = hc_mmuext_op,
    [__HYPERVISOR_sched_op]           = hc_sched_op,
    [__HYPERVISOR_callback_op]        = hc_callback_op,
    [__HYPERVISOR_event_channel_op]   = hc_event_channel_op,
    [__HYPERVISOR_physdev_op]         = hc_physdev_op,
    [__HYPERVISOR_iret]               = hc_iret,
};

static long dispatch(u64 nr, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5)
{
    if (unlikely(nr >= ARRAY_SIZE(table) || !table[nr]))
        return -XEN_ENOSYS;
    return table[nr](a1, a2, a3, a4, a5);
}

/* Calls that only touch page tables may go on with pins collected; any other commits them first. */
static bool keeps_batch(u64 nr)
{
    return nr == __HYPERVISOR_mmu_update || nr == __HYPERVISOR_update_va_mapping || nr == __HYPERVISOR_mmuext_op;
}

#define RESULT_OFF offsetof(struct multicall_entry, result)

#define ARGS_OFF offsetof(struct multicall_entry, args)

/* The call of the entry @at is to be issued again: with these arguments. */
static bool entry_again(u64 at)
{
    struct vcpu *v = current_vcpu();

    if (!v->cont.set)
        return true;
    v->cont.set = false;
    return !copy_to_guest(at + ARGS_OFF, v->cont.a, sizeof(v->cont.a));
}

static long hc_multicall(u64 list, u64 count, u64 a3, u64 a4, u64 a5)
{
    struct mm_domain *mm = current_domain()->mm;
    long rc = 0;

    (void)a3; (void)a4; (void)a5;
    if (count > 65536 || !guest_range_ok(list, count * 64))
        return -XEN_EFAULT;
    if (!ptwr_on())
        pt_batch_begin();                        /* the old scheme did each call by itself */
    for (u64 i = 0; i < count; i++) {
        u64 at = list + i * 64, e[8];
        long r;

        pt_charge(500);
        if (pt_spent() && i) {
            rc = hypercall_again(at, count - i, 0);
            break;
        }

        stat_inc(multicall_entries);
        if (guest_read(e, at, 56)) {
            rc = -XEN_EFAULT;
            break;
        }
        if (!keeps_batch(e[0]) && pt_batch_commit(mm)) {
            rc = hypercall_again(at, count - i, 0);
            break;
        }
        pt_batch_token(at + RESULT_OFF);
        r = e[0] == __HYPERVISOR_multicall || e[0] == __HYPERVISOR_iret ? -XEN_EINVAL
            : dispatch(e[0], e[2], e[3], e[4], e[5], e[6]);
        if (unlikely(r == -XEN_ERESTART)) {
            rc = entry_again(at) ? hypercall_again(at, count - i, 0) : -XEN_EFAULT;
            break;
        }
        if (ptwr_on() ? copy_to_guest(at + RESULT_OFF, &r, 8) : !raw_write64(at + RESULT_OFF, (u64)r)) {
            rc = -XEN_EFAULT;
            break;
        }
        tlb_poll();
        if (unlikely(pt_work_attention())) {             /* a call that failed may have left something to finish */
            rc = hypercall_again(at + 64, count - i - 1, 0);
            break;
        }
    }
    if (unlikely(pt_batch_end(mm)) && !rc)
        rc = hypercall_again(list + count * 64, 0, 0);
    return rc;
}

/* A pin collected in a multicall failed after its entry's result was written. */
void env_batch_failed(u64 token) { (void)raw_write64(token, (u64)-(s64)XEN_EINVAL); }

void env_ptwr_bad_entry(void)
{
    /* The CPU that closes the table for an audit may be running nobody. */
    domain_crash(current_vcpu() ? current_domain() : dom0, "a writable page table was left with an entry that is not acceptable");
}

/* What a vCPU has left over from earlier hypercalls goes first. */
static int finish_earlier(struct mm_domain *mm)
{
    int rc;

    if (ptwr_on())
        ptwr_enter(mm, STAT_ptwr_flush_other);
    rc = pt_work_resume(mm);
    if (ptwr_on())
        ptwr_exit(mm);
    return rc;
}

static void settle(struct mm_domain *mm)
{
    if (ptwr_on())
        ptwr_enter(mm, STAT_ptwr_flush_other);
    pt_work_settle(mm);
    if (ptwr_on())
        ptwr_exit(mm);
}

/* The guest finds itself before its SYSCALL, with the arguments for the rest of the work. */
static void again(struct vcpu *v, struct cpu_regs *regs)
{
    stat_inc(hc_again);
    regs->rip -= 2;
    if (v->cont.set) {
        regs->rdi = v->cont.a[0];
        regs->rsi = v->cont.a[1];
        regs->rdx = v->cont.a[2];
        v->cont.set = false;
    }
}

static void hypercall(struct vcpu *v, struct cpu_regs *regs)
{
    long r = 0;

    pt_work_start();
    if (pt_work_attention())
        r = finish_earlier(v->domain->mm);
    if (likely(!r)) {
        r = dispatch(regs->rax, regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8);
        if (pt_work_attention() && r != -XEN_ERESTART)
            settle(v->domain->mm);
    }
    if (unlikely(r == -XEN_ERESTART))
        again(v, regs);
    else if (likely(regs->vector))              /* else the call replaced the registers (iret) */
        regs->rax = (u64)r;
}

bool syscall_handler(struct cpu_regs *regs)
{
    struct vcpu *v = current_vcpu();

    if (unlikely(!v->guest_kernel)) {
        stat_inc(exit_syscall);
        if (!syscall_bounce(v, regs, &v->cb_syscall))
            inject_exception(v, regs, 6, 0);
    } else {
        stat_inc(exit_hypercall);
        hypercall(v, regs);
    }
    exit_to_guest(regs);
    return regs->vector == 0x100 && canonical(regs->rip);
}

void syscall32_handler(struct cpu_regs *regs)
{
    struct vcpu *v = current_vcpu();

    stat_inc(exit_syscall);
    if (v->guest_kernel || !syscall_bounce(v, regs, &v->cb_syscall32))
        inject_exception(v, regs, 6, 0);
    exit_to_guest(regs);
}

struct iret_frame { u64 rax, r11, rcx, flags, rip, cs, rflags, rsp, ss; };
#define IRET_IN_SYSCALL 0x100

long hc_iret(u64 a1, u64 a2, u64 a3, u64 a4, u64 a5)
{
    struct vcpu *v = current_vcpu();
    struct cpu_regs *regs = &cpu_info()->regs;
    struct iret_frame f;

    (void)a1; (void)a2; (void)a3; (void)a4; (void)a5;
    stat_inc(guest_iret);
    if (unlikely(copy_from_guest(&f, regs->rsp, sizeof(f)))) {
        domain_crash(v->domain, "iret frame at %#llx cannot be read", (unsigned long long)regs->rsp);
        return 0;
    }
    if ((f.cs & 3) == 3) {
        if (unlikely(v->root_user.v == MFN_INVALID.v)) {
            domain_crash(v->domain, "iret to user mode without a user page table");
            return 0;
        }
        toggle_to_user(v);
    }
    regs->rip = f.rip;
    regs->cs = (f.cs & 0xffff) | 3;
    regs->rflags = (f.rflags & ~(RFLAGS_IOPL | RFLAGS_VM)) | RFLAGS_IF | 2;
    regs->rsp = f.rsp;
    regs->ss = (f.ss & 0xffff) | 3;
    if (!(f.flags & IRET_IN_SYSCALL)) {
        regs->r11 = f.r11;
        regs->rcx = f.rcx;
    }
    regs->rax = f.rax;
    regs->vector = 0;
    store_relaxed(&v->info->evtchn_upcall_mask, !(f.rflags & RFLAGS_IF));
    return 0;
}
