/* SPDX-License-Identifier: MIT */
/* The iret hypercall within kernel mode, with good frames and bad, and a SYSCALL from where it cannot return to. */
#include "guest.h"

static struct frame_iret kernel_frame(void (*to)(void))
{
    return (struct frame_iret){ .rip = (u64)to, .cs = FLAT_CS & ~3ul, .ss = FLAT_SS, .rflags = 2,
                                .rsp = (u64)stacks[NR_VCPUS] + STACK_SIZE - 2048 - 8,
                                .rax = 0x1a, .rcx = 0x1c, .r11 = 0x1b };
}

static void bad_insn(void) { __asm__ volatile("ud2"); }

TEST(iret_kernel)
{
    struct frame_iret f = kernel_frame(bad_insn);
    struct regs *r;

    f.rflags = 2 | 0x3000 | 0x800 | 1ul << 17;  /* IOPL 3, OF, VM */
    r = enter(&f, true, 0x1d, 0x1e);
    EQ(r->vec, 6);
    EQ(r->rax, 0x1a);
    EQ(r->rcx, 0x1c);
    EQ(r->r11, 0x1b);
    EQ(r->rdi, 0x1d);
    EQ(r->rsi, 0x1e);
    EQ(r->rflags & 0x3000, 0);
    EQ(r->rflags & 1ul << 17, 0);
    EQ(r->rflags & 0x800, 0x800);
    EQ(r->cs & 3, 0);
    EQ(r->mask, 1);
    EQ(r->rsp, f.rsp);
    f.rflags |= 0x200;
    r = enter(&f, true, 0, 0);
    EQ(r->mask, 0);
    EQ(r->rflags & 0x200, 0x200);
}

TEST(iret_bad_frames)
{
    static const u64 bad_cs[] = { 0xe008, 0xe040, 0xe050, 0xfff8, 0x0004, 0, 0xe028 };
    static const u64 bad_ss[] = { 0xe010, 0xe040, 0xfff8, 0, 0xe030 };
    static const u64 bad_rip[] = { 0x8000000000000000, 0x0000800000000000, 0xffff7fffffffffff };
    struct frame_iret f;
    struct regs *r;

    for (unsigned i = 0; i < COUNT(bad_cs); i++) {
        f = kernel_frame(bad_insn);
        f.cs = bad_cs[i];
        r = enter(&f, true, 0, 0);
        EQ(r->vec, 13);
        EQ(r->err, bad_cs[i] & 0xfffc);
    }
    for (unsigned i = 0; i < COUNT(bad_ss); i++) {
        f = kernel_frame(bad_insn);
        f.ss = bad_ss[i];
        r = enter(&f, true, 0, 0);
        EQ(r->vec == 13 || r->vec == 12, true);
        EQ(r->err, bad_ss[i] & 0xfffc);
    }
    for (unsigned i = 0; i < COUNT(bad_rip); i++) {
        f = kernel_frame(bad_insn);
        f.rip = bad_rip[i];
        r = enter(&f, true, 0, 0);
        EQ(r->vec, 13);
        EQ(r->err, 0);
    }
    /* The hypervisor's addresses are canonical, and not for the guest. */
    f = kernel_frame(bad_insn);
    f.rip = 0xffff82d040200000;
    r = enter(&f, true, 0, 0);
    EQ(r->vec, 14);
    EQ(r->err & 0x10, 0x10);
    EQ(r->rip, 0xffff82d040200000);
    /* Flags that would trap in the hypervisor itself. */
    f = kernel_frame(bad_insn);
    f.rflags |= 0x100 | 0x4000 | 0x40000;
    r = enter(&f, true, 0, 0);
    EQ(r->vec == 6 || r->vec == 1, true);
}

TEST(syscall_bad_rip)
{
    /* The last two bytes below the hole: SYSCALL there would return to a non-canonical address. */
    u8 *code = page_alloc();
    void *l1 = table_page(), *l2 = table_page(), *l3 = table_page();
    u64 va = 0x00007ffffffff000;
    struct frame_iret f = kernel_frame(bad_insn);
    struct regs *r;

    code[4094] = 0x0f;
    code[4095] = 0x05;
    hook(va, 4, l3);
    hook(va, 3, l2);
    hook(va, 2, l1);
    EQ(map_va(va, pte(mfn_of(code), P | US)), 0);
    f.rip = va + 4094;
    f.rax = __HYPERVISOR_xen_version;
    r = enter(&f, true, XENVER_pagesize, 0);
    EQ(r->vec, 13);
    EQ(r->rax, PAGE);
    /* And the stack pointer: the frame of the next trap has no place. */
    unhook(va, 2);
    unhook(va, 3);
    unhook(va, 4);
    page_free(l1);
    page_free(l2);
    page_free(l3);
    page_free(code);
}
