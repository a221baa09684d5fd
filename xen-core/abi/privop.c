/* SPDX-License-Identifier: MIT */
/* Privileged instructions of a guest kernel, trapped at CPL 3 (#GP, or #UD for the forced CPUID prefix). */
#include <xen/errno.h>

#include "arch/asm.h"
#include "base/stats.h"
#include "abi/cpuid.h"
#include "domain.h"
#include "guest_copy.h"
#include "vcpu.h"

/* Offsets of registers by hardware number in struct cpu_regs. */
static u64 *gpr(struct cpu_regs *r, unsigned n)
{
    static const u8 off[16] = { 80, 88, 96, 40, 152, 32, 104, 112, 72, 64, 56, 48, 24, 16, 8, 0 };

    return (u64 *)(void *)((char *)r + off[n & 15]);
}

/* Model-specific registers ------------------------------------------------------------------------- */

static bool read_msr(struct vcpu *v, u32 msr, u64 *val)
{
    switch (msr) {
    case MSR_FS_BASE:
        *val = rdmsr(MSR_FS_BASE);
        return true;
    case MSR_GS_BASE:
        *val = rdmsr(MSR_GS_BASE);
        return true;
    case MSR_KERNEL_GS_BASE:
        *val = rdmsr(MSR_KERNEL_GS_BASE);
        return true;
    case MSR_TSC_AUX:
        *val = v->tsc_aux;
        return cpu_caps.rdtscp;
    case MSR_EFER:
        *val = (rdmsr(MSR_EFER) | EFER_SCE) & ~(1ull << 12);
        return true;
    case MSR_APIC_BASE:
        *val = 0xfee00800 | (v->id ? 0 : 1u << 8);
        return true;
    case MSR_PAT:
        *val = 0x050100070406ull;
        return true;
    case 0x8b:                                   /* microcode revision */
    case 0x1a0:                                  /* MISC_ENABLE */
        *val = 0;
        return true;
    default:
        return false;
    }
}

static bool write_msr(struct vcpu *v, u32 msr, u64 val)
{
    switch (msr) {
    case MSR_FS_BASE:
    case MSR_GS_BASE:
    case MSR_KERNEL_GS_BASE:
        if (!canonical(val))
            return false;
        wrmsr(msr, val);
        return true;
    case MSR_TSC_AUX:
        if (!cpu_caps.rdtscp || val >> 32)
            return false;
        v->tsc_aux = (u32)val;
        wrmsr(MSR_TSC_AUX, val);
        return true;
    case 0x8b:
        return !val;
    default:
        return false;
    }
}

/* I/O ports ------------------------------------------------------------------------------------------ */

static bool user_port_ok(struct vcpu *v, u16 port, unsigned size)
{
    if (v->guest_kernel)
        return true;                             /* the kernel counts as ring 1, and asks for IOPL 1 */
    for (unsigned i = 0; i < size; i++) {
        u32 p = port + i;
        u8 b;

        if (!v->iobmp || p >= v->iobmp_ports || copy_from_guest(&b, v->iobmp + p / 8, 1) || b >> (p & 7) & 1)
            return false;
    }
    return true;
}

/* Ports that the hypervisor keeps: interrupt controllers, PIT, its serial port, the reset register; they read as absent. */
static bool port_hidden(u16 p, unsigned size)
{
    static const struct { u16 first, last; } hidden[] = {
        { 0x20, 0x21 }, { 0x40, 0x43 }, { 0x60, 0x64 }, { 0xa0, 0xa1 }, { 0x3f8, 0x3ff }, { 0x2f8, 0x2ff }, { 0xcf9, 0xcf9 },
        { 0xcf8, 0xcf8 }, { 0xcfa, 0xcff },
    };

    if (!current_domain()->is_initial)
        return true;
    for (unsigned i = 0; i < ARRAY_SIZE(hidden); i++)
        if (p <= hidden[i].last && p + size - 1 >= hidden[i].first)
            return true;
    return p >= 0x3c0 && p <= 0x3df;             /* no VGA text console for the guest: each access is a trap */
}

static u32 port_in(u16 p, unsigned size)
{
    if (p >= 0x40 && p <= 0x43)
        return 0;                                /* a constant other than all ones ends the guest's PIT probe quickly */
    if (port_hidden(p, size))
        return size == 4 ? ~0u : (1u << (8 * size)) - 1;
    return size == 1 ? inb(p) : size == 2 ? inw(p) : inl(p);
}

static void port_out(u16 p, unsigned size, u32 val)
{
    if (port_hidden(p, size))
        return;
    if (size == 1)
        outb(p, (u8)val);
    else if (size == 2)
        outw(p, (u16)val);
    else
        outl(p, val);
}

/* 0xE4..0xE7, 0xEC..0xEF; false: not permitted. */
static bool port_io(struct vcpu *v, struct cpu_regs *regs, u8 op, u8 immediate, bool osize)
{
    unsigned size = op & 1 ? (osize ? 2 : 4) : 1;
    u16 port = op & 8 ? (u16)regs->rdx : immediate;

    if (!user_port_ok(v, port, size))
        return false;
    if (op & 2) {
        port_out(port, size, (u32)regs->rax);
    } else {
        u32 val = port_in(port, size);

        if (size == 4)
            regs->rax = val;
        else if (size == 2)
            regs->rax = (regs->rax & ~0xffffull) | val;
        else
            regs->rax = (regs->rax & ~0xffull) | val;
    }
    return true;
}

/* Control registers ------------------------------------------------------------------------------------ */

static bool read_cr(struct vcpu *v, unsigned cr, u64 *val)
{
    switch (cr) {
    case 0:
        *val = CR0_PG | CR0_WP | CR0_NE | CR0_ET | CR0_MP | CR0_PE | CR0_AM;
        return true;
    case 2:
        *val = v->cr2;
        return true;
    case 3:
        *val = v->root_kernel.v << PAGE_SHIFT;
        return true;
    case 4:
        *val = v->cr4 | CR4_PAE;
        return true;
    case 8:
        *val = 0;
        return true;
    default:
        return false;
    }
}

static bool write_cr(struct vcpu *v, unsigned cr, u64 val)
{
    u64 allowed = CR4_PAE | CR4_MCE | CR4_OSFXSR | CR4_OSXMMEXCPT | CR4_TSD | CR4_DE |
                  (cpu_caps.fsgsbase ? CR4_FSGSBASE : 0) | (cpu_caps.xsave ? CR4_OSXSAVE : 0);

    switch (cr) {
    case 0:
        return true;                             /* nothing a guest may change has an effect here */
    case 2:
        v->cr2 = val;
        return true;
    case 4:
        v->cr4 = val & allowed;
        return true;
    default:
        return false;
    }
}

static bool write_xcr0(struct vcpu *v, struct cpu_regs *regs)
{
    u64 val = (regs->rax & 0xffffffff) | regs->rdx << 32;

    if (!cpu_caps.xsave || (u32)regs->rcx || !(val & 1) || (val & ~cpu_caps.xcr0_mask) || (val & 6) == 4)
        return false;
    v->xcr0 = val;
    __asm__ volatile("xsetbv" :: "c"(0), "a"((u32)val), "d"(0));
    return true;
}

/* Decode and dispatch ------------------------------------------------------------------------------------ */

static void do_cpuid(struct vcpu *v, struct cpu_regs *regs)
{
    u32 r[4];

    guest_cpuid(v, (u32)regs->rax, (u32)regs->rcx, r);
    regs->rax = r[0];
    regs->rbx = r[1];
    regs->rcx = r[2];
    regs->rdx = r[3];
}

/* Two-byte opcodes of a guest kernel; returns the length after the 0F, or 0: refuse. */
static unsigned two_byte(struct vcpu *v, struct cpu_regs *regs, const u8 *b, unsigned avail, u8 rex)
{
    u64 val;

    if (avail < 1)
        return 0;
    switch (b[0]) {
    case 0xa2:
        do_cpuid(v, regs);
        return 1;
    case 0x32:
        if (!read_msr(v, (u32)regs->rcx, &val)) {
            if (v->trap[13].address)
                return 0;
            val = 0;                             /* too early for the guest to handle a fault */
        }
        regs->rax = (u32)val;
        regs->rdx = val >> 32;
        return 1;
    case 0x30:
        return write_msr(v, (u32)regs->rcx, (u32)regs->rax | regs->rdx << 32) ? 1 : 0;
    case 0x06:                                   /* clts */
    case 0x09:                                   /* wbinvd */
        return 1;
    case 0x20:                                   /* mov cr, r */
    case 0x22:                                   /* mov r, cr */
        if (avail < 2 || b[1] < 0xc0)
            return 0;
        if (b[0] == 0x20) {
            if (!read_cr(v, (b[1] >> 3 & 7) | (rex & 4) << 1, &val))
                return 0;
            *gpr(regs, (b[1] & 7) | (rex & 1) << 3) = val;
        } else if (!write_cr(v, (b[1] >> 3 & 7) | (rex & 4) << 1, *gpr(regs, (b[1] & 7) | (rex & 1) << 3))) {
            return 0;
        }
        return 2;
    case 0x01:
        if (avail >= 2 && b[1] == 0xd1)
            return write_xcr0(v, regs) ? 2 : 0;
        return 0;
    default:
        return 0;
    }
}

/* A #GP: 0 refuse, else the instruction's length. */
static unsigned general(struct vcpu *v, struct cpu_regs *regs, const u8 *b, unsigned avail)
{
    bool osize = false;
    unsigned i = 0, n;
    u8 rex = 0;

    while (i < avail && (b[i] == 0x66 || b[i] == 0xf2 || b[i] == 0xf3 || b[i] == 0x2e || b[i] == 0x3e))
        osize |= b[i++] == 0x66;
    if (i < avail && (b[i] & 0xf0) == 0x40)
        rex = b[i++];
    if (i >= avail)
        return 0;
    switch (b[i]) {
    case 0xe4: case 0xe5: case 0xe6: case 0xe7:
        if (i + 1 >= avail)
            return 0;
        return port_io(v, regs, b[i], b[i + 1], osize) ? i + 2 : 0;
    case 0xec: case 0xed: case 0xee: case 0xef:
        return port_io(v, regs, b[i], 0, osize) ? i + 1 : 0;
    case 0xfa: case 0xfb:                        /* cli, sti: the event mask is the guest's business */
        return v->guest_kernel ? i + 1 : 0;
    case 0x0f:
        if (!v->guest_kernel)
            return 0;
        n = two_byte(v, regs, b + i + 1, avail - i - 1, rex);
        return n ? i + 1 + n : 0;
    default:
        return 0;
    }
}

void emulate_privileged(struct vcpu *v, struct cpu_regs *regs, unsigned vector)
{
    static const u8 forced[5] = { 0x0f, 0x0b, 'x', 'e', 'n' };
    u64 rip = regs->rip;
    u8 b[15];
    unsigned avail = 0, len = 0;

    if (guest_range_ok(rip, sizeof(b)))
        avail = (unsigned)(sizeof(b) - guest_read(b, rip, sizeof(b)));
    stat_inc(privop);
    if (vector == 6) {
        if (avail >= 7 && !__builtin_memcmp(b, forced, 5) && b[5] == 0x0f && b[6] == 0xa2) {
            do_cpuid(v, regs);
            regs->rip += 7;
            return;
        }
        inject_exception(v, regs, 6, 0);
        return;
    }
    /* A software interrupt whose gate refuses ring 3.  The vector comes from the instruction, because QEMU's TCG reports
     * a wrong one in the error code. */
    if (avail >= 2 && b[0] == 0xcd && (regs->error_code & 2)) {
        const struct trap_entry *t = &v->trap[b[1]];

        if (t->address && (v->guest_kernel || (t->flags & 3) >= 3)) {
            regs->rip += 2;
            inject_exception(v, regs, b[1], 0);
        } else {
            inject_exception(v, regs, 13, b[1] * 8u + 2);
        }
        return;
    }
    if (!regs->error_code)
        len = general(v, regs, b, avail);
    if (len) {
        regs->rip += len;
        return;
    }
    inject_exception(v, regs, 13, regs->error_code);
}
