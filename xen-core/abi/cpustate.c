/* SPDX-License-Identifier: MIT */
/* Hypercalls on a vCPU's own state: traps, callbacks, stacks, segment bases, debug registers, initial context. */
#include <xen/callback.h>
#include <xen/errno.h>

#include "abi/abi_mm.h"
#include "arch/asm.h"
#include "guest_copy.h"
#include "memory.h"
#include "pt_work.h"
#include "vcpu.h"

long hc_set_trap_table(u64 list, u64 a2, u64 a3, u64 a4, u64 a5)
{
    struct vcpu *v = current_vcpu();

    (void)a2; (void)a3; (void)a4; (void)a5;
    if (!list) {
        __builtin_memset(v->trap, 0, sizeof(v->trap));
        return 0;
    }
    for (unsigned i = 0; i <= 256; i++) {
        struct trap_info t;

        if (copy_from_guest(&t, list + i * sizeof(t), sizeof(t)))
            return -XEN_EFAULT;
        if (!t.address)
            return 0;
        if (!canonical(t.address))
            return -XEN_EINVAL;
        v->trap[t.vector] = (struct trap_entry){ .address = t.address, .flags = t.flags };
    }
    return -XEN_EINVAL;                          /* more entries than vectors, and no end */
}

static long set_callback(struct vcpu *v, unsigned type, bool mask, u64 address, bool set)
{
    struct callback *cb;

    switch (type) {
    case CALLBACKTYPE_event:     cb = &v->cb_event; mask = true; break;
    case CALLBACKTYPE_failsafe:  cb = &v->cb_failsafe; break;
    case CALLBACKTYPE_syscall:   cb = &v->cb_syscall; break;
    case CALLBACKTYPE_syscall32:
        if (!cpu_caps.amd)
            return -XEN_EINVAL;                  /* Intel has no SYSCALL in compatibility mode */
        cb = &v->cb_syscall32;
        break;
    case CALLBACKTYPE_nmi:
        return 0;                                /* no NMI is ever sent to a guest */
    default:
        return -XEN_EINVAL;
    }
    if (set && !canonical(address))
        return -XEN_EINVAL;
    *cb = (struct callback){ .address = address, .mask = mask, .set = set };
    return 0;
}

long hc_callback_op(u64 cmd, u64 arg, u64 a3, u64 a4, u64 a5)
{
    struct callback_register r;
    struct callback_unregister u;

    (void)a3; (void)a4; (void)a5;
    switch (cmd) {
    case CALLBACKOP_register:
        if (copy_from_guest(&r, arg, sizeof(r)))
            return -XEN_EFAULT;
        return set_callback(current_vcpu(), r.type, r.flags & CALLBACKF_mask_events, r.address, true);
    case CALLBACKOP_unregister:
        if (copy_from_guest(&u, arg, sizeof(u)))
            return -XEN_EFAULT;
        if (u.type == CALLBACKTYPE_event || u.type == CALLBACKTYPE_failsafe || u.type == CALLBACKTYPE_syscall)
            return -XEN_EINVAL;
        return set_callback(current_vcpu(), u.type, false, 0, false);
    default:
        return -XEN_ENOSYS;
    }
}

long hc_set_callbacks(u64 event, u64 failsafe, u64 syscall, u64 a4, u64 a5)
{
    struct vcpu *v = current_vcpu();
    long rc = set_callback(v, CALLBACKTYPE_event, true, event, event != 0);

    (void)a4; (void)a5;
    if (!rc)
        rc = set_callback(v, CALLBACKTYPE_failsafe, false, failsafe, failsafe != 0);
    if (!rc)
        rc = set_callback(v, CALLBACKTYPE_syscall, false, syscall, syscall != 0);
    return rc;
}

long hc_stack_switch(u64 ss, u64 sp, u64 a3, u64 a4, u64 a5)
{
    struct vcpu *v = current_vcpu();

    (void)a3; (void)a4; (void)a5;
    v->kernel_ss = ss | 3;
    v->kernel_sp = sp;
    return 0;
}

long hc_fpu_taskswitch(u64 set, u64 a2, u64 a3, u64 a4, u64 a5)
{
    (void)set; (void)a2; (void)a3; (void)a4; (void)a5;
    return 0;                                    /* the FPU is switched with the vCPU; the guest never sees CR0.TS */
}

long hc_set_segment_base(u64 which, u64 base, u64 a3, u64 a4, u64 a5)
{
    (void)a3; (void)a4; (void)a5;
    switch (which) {
    case SEGBASE_FS:
    case SEGBASE_GS_USER:
    case SEGBASE_GS_KERNEL:
        if (!canonical(base))
            return -XEN_EINVAL;
        wrmsr(which == SEGBASE_FS ? MSR_FS_BASE : which == SEGBASE_GS_USER ? MSR_KERNEL_GS_BASE : MSR_GS_BASE, base);
        return 0;
    case SEGBASE_GS_USER_SEL: {
        u64 sel = base & 0xffff;

        /* The selector is loaded with the user base active, so that it and the base it brings are the user's. */
        __asm__ volatile("swapgs\n mov %w1, %%gs\n1: mov %w0, %%gs\n2: swapgs\n"
                         ".pushsection .text.fixup, \"ax\"\n3: xor %k0, %k0\n mov %w0, %%gs\n jmp 2b\n.popsection\n"
                         EX_TABLE("1b", "3b") : "+r"(sel) : "r"(FLAT_DS) : "memory");
        return 0;
    }
    default:
        return -XEN_EINVAL;
    }
}

/* What DR7 may say: breakpoints on guest addresses only, no general detect, no I/O breakpoints. */
static bool dr7_ok(const struct vcpu *v, u64 val)
{
    if (val >> 32 || (val & (1u << 13)))
        return false;
    for (unsigned i = 0; i < 4; i++) {
        if (!(val >> (i * 2) & 3))
            continue;
        if ((val >> (16 + i * 4) & 3) == 2 || !guest_range_ok(v->dr[i], 1))
            return false;
    }
    return true;
}

long hc_set_debugreg(u64 reg, u64 val, u64 a3, u64 a4, u64 a5)
{
    struct vcpu *v = current_vcpu();

    (void)a3; (void)a4; (void)a5;
    switch (reg) {
    case 0: case 1: case 2: case 3:
        if (!guest_range_ok(val, 1))
            return -XEN_EPERM;
        break;
    case 6:
        val = (val & 0xe00full) | 0xffff0ff0;
        break;
    case 7:
        val = (val & ~0xd800ull) | 0x400;
        if (!dr7_ok(v, val))
            return -XEN_EPERM;
        break;
    default:
        return -XEN_EINVAL;
    }
    v->dr[reg] = val;
    switch (reg) {
    case 0: __asm__ volatile("mov %0, %%dr0" :: "r"(val)); break;
    case 1: __asm__ volatile("mov %0, %%dr1" :: "r"(val)); break;
    case 2: __asm__ volatile("mov %0, %%dr2" :: "r"(val)); break;
    case 3: __asm__ volatile("mov %0, %%dr3" :: "r"(val)); break;
    case 7:
        __asm__ volatile("mov %0, %%dr7" :: "r"(val));
    }
    return 0;
}

long hc_get_debugreg(u64 reg, u64 a2, u64 a3, u64 a4, u64 a5)
{
    (void)a2; (void)a3; (void)a4; (void)a5;
    return reg < 8 && reg != 4 && reg != 5 ? (long)current_vcpu()->dr[reg] : -XEN_EINVAL;
}

int vcpu_set_context(struct vcpu *v, const struct vcpu_guest_context *c)
{
    const struct cpu_user_regs *u = &c->user_regs;
    int rc;

    if (!(c->flags & VGCF_in_kernel) || !canonical(u->rip) || !canonical(u->rsp) || !canonical(c->fs_base) ||
        !canonical(c->gs_base_kernel) || !canonical(c->gs_base_user))
        return -XEN_EINVAL;
    rc = gdt_set(v, c->gdt_frames, c->gdt_ents > 0xffff ? 0xffff : (unsigned)c->gdt_ents);
    if (rc)
        return rc;
    v->regs = (struct cpu_regs){
        .r15 = u->r15, .r14 = u->r14, .r13 = u->r13, .r12 = u->r12, .rbp = u->rbp, .rbx = u->rbx, .r11 = u->r11,
        .r10 = u->r10, .r9 = u->r9, .r8 = u->r8, .rax = u->rax, .rcx = u->rcx, .rdx = u->rdx, .rsi = u->rsi, .rdi = u->rdi,
        .rip = u->rip, .cs = u->cs | 3, .ss = u->ss | 3, .rsp = u->rsp,
        .rflags = (u->rflags & ~(RFLAGS_IOPL | RFLAGS_VM | RFLAGS_NT)) | RFLAGS_IF | 2,
    };
    v->ds = u->ds;
    v->es = u->es;
    v->fs = u->fs;
    v->gs = u->gs;
    v->fs_base = c->fs_base;
    v->gs_base_kernel = c->gs_base_kernel;
    v->gs_base_user = c->gs_base_user;
    v->kernel_ss = c->kernel_ss | 3;
    v->kernel_sp = c->kernel_sp;
    v->guest_kernel = true;
    for (unsigned i = 0; i < 256; i++) {
        u64 a = c->trap_ctxt[i].address;

        v->trap[i] = (struct trap_entry){ .address = canonical(a) ? a : 0, .flags = c->trap_ctxt[i].flags };
    }
    rc = set_callback(v, CALLBACKTYPE_event, true, c->event_callback_eip, c->event_callback_eip != 0);
    if (!rc)
        rc = set_callback(v, CALLBACKTYPE_failsafe, c->flags & VGCF_failsafe_disables_events, c->failsafe_callback_eip,
                          c->failsafe_callback_eip != 0);
    if (!rc && c->syscall_callback_eip)
        rc = set_callback(v, CALLBACKTYPE_syscall, c->flags & VGCF_syscall_disables_events, c->syscall_callback_eip, true);
    if (!rc)
        rc = mm_initial_root(v, MFN(c->ctrlreg[3] >> PAGE_SHIFT), false);
    if (!rc && c->ctrlreg[1])
        rc = mm_initial_root(v, MFN(c->ctrlreg[1] >> PAGE_SHIFT), true);
    if (rc) {
        (void)gdt_set(v, NULL, 0);
        if (v->root_kernel.v != MFN_INVALID.v) {
            if (rc == -XEN_ERESTART)
                pt_work_keep(v->domain->mm, frame_of(v->root_kernel), FT_L4);
            else
                pt_put_type(v->domain->mm, v->root_kernel);
        }
        v->root_kernel = MFN_INVALID;
    }
    return rc;
}
