/* SPDX-License-Identifier: MIT */
/* User mode: how it is entered and left, and what it cannot do. */
#include "guest.h"

static struct user_space us;

static void setup(void) { REQUIRE(user_space_make(&us)); }

TEST(user_syscall)
{
    struct regs *r;

    setup();
    r = enter_user(user_syscall, 0x11, 0x22);
    EQ(r->vec, VEC_SYSCALL);
    EQ(r->rip, USER_RIP(user_syscall) + 2);
    EQ(r->rcx, r->rip);
    EQ(r->r11, r->rflags | 0x200);
    EQ(r->rflags & 0x200, 0);                   /* came with events masked */
    EQ(r->cs, FLAT_CS);
    EQ(r->ss & 0xffff, FLAT_SS);
    EQ(r->rsp, USER_DATA + PAGE);
    EQ(r->rdi, 0x11);
    EQ(r->rsi, 0x22);
    EQ(r->rax, 0xaaaa);
    EQ(this_cpu()->trap_frame_end, (u64)stacks[NR_VCPUS + 1]);
    EQ(this_cpu()->info->evtchn_upcall_mask, 1);
    user_space_drop(&us);
}

TEST(user_traps)
{
    struct regs *r;

    setup();
    r = enter_user(user_ud2, 0, 0);
    EQ(r->vec, 6);
    EQ(r->rip, USER_RIP(user_ud2));
    EQ(r->cs & 3, 3);
    r = enter_user(user_int3, 0, 0);
    EQ(r->vec, 3);
    EQ(r->rip, USER_RIP(user_int3) + 1);
    r = enter_user(user_int80, 0, 0);
    EQ(r->vec, 0x80);
    EQ(r->rip, USER_RIP(user_int80) + 2);
    /* Gates for the kernel only. */
    r = enter_user(user_int20, 0, 0);
    EQ(r->vec, 13);
    EQ(r->err, 0x20 * 8 + 2);
    EQ(r->rip, USER_RIP(user_int20));
    r = enter_user(user_int0d, 0, 0);
    EQ(r->vec, 13);
    EQ(r->err, 0x0d * 8 + 2);
    r = enter_user(user_rdmsr, 0, 0);
    EQ(r->vec, 13);
    EQ(r->err, 0);
    r = enter_user(user_in, 0, 0);
    EQ(r->vec, 13);
    r = enter_user(user_cr3, 0, 0);
    EQ(r->vec, 13);
    r = enter_user(user_cpuid, 0, 0);
    EQ(r->vec, VEC_SYSCALL);
    EQ(r->rbx, 0x566e6558);
    r = enter_user(user_plain_cpuid, 0, 0);
    EQ(r->vec, 6);
    user_space_drop(&us);
}

TEST(user_page_faults)
{
    static const u64 hv[] = {
        0xffff830000000000, 0xffff82d040200000, 0xffff82e000000000, 0xffff828000000000, 0xffff808000000000,
    };
    struct regs *r;
    u64 *l1;

    setup();
    l1 = us.l1;
    r = enter_user(user_read, 0x700000, 0);
    EQ(r->vec, 14);
    EQ(r->err, 4);
    EQ(this_cpu()->trap_cr2, 0x700000);
    r = enter_user(user_write, 0x700008, 1);
    EQ(r->err, 6);
    r = enter_user(user_write, USER_CODE, 1);
    EQ(r->vec, 14);
    EQ(r->err, 7);
    r = enter_user(user_write, USER_DATA, 0x1234);
    EQ(r->vec, VEC_SYSCALL);
    EQ(*(u64 *)us.data, 0x1234);
    /* The kernel is not in the user's tables, whatever its own entries say. */
    r = enter_user(user_read, (u64)&us, 0);
    EQ(r->vec, 14);
    EQ(r->err & 4, 4);
    for (unsigned i = 0; i < COUNT(hv); i++) {
        r = enter_user(user_read, hv[i], 0);
        EQ(r->vec, 14);
        EQ(r->err & 4, 4);
        r = enter_user(user_write, hv[i], 0);
        EQ(r->vec, 14);
    }
    /* A page table that user mode may see is still not to be written by it. */
    EQ(mmu_update(mfn_of(us.l1) << 12 | ((USER_CODE + 0x5000) >> 9 & 0xff8), pte(mfn_of(us.l1), P | US)), 0);
    r = enter_user(user_read, USER_CODE + 0x5000, 0);
    EQ(r->vec, VEC_SYSCALL);
    r = enter_user(user_write, USER_CODE + 0x5000, 0);
    EQ(r->vec, 14);
    EQ(r->err, 7);
    r = enter_user(user_lock, USER_CODE + 0x5000, 0);
    EQ(r->vec, 14);
    EQ(r->err, 7);
    EQ(l1[0], pte(mfn_of(user_page), P | US | AC));
    user_space_drop(&us);
}

/* The kernel may look frames up in the M2P; its users may not. */
TEST(user_m2p)
{
    struct regs *r;

    setup();
    r = enter_user(user_read, (u64)M2P, 0);
    EQ(r->vec, 14);
    EQ(r->err & 4, 4);
    r = enter_user(user_write, (u64)M2P, 0);
    EQ(r->vec, 14);
    user_space_drop(&us);
}

TEST(user_gs)
{
    static u64 kernel_word = 0x6b;
    struct regs *r;
    u64 v;

    setup();
    *(u64 *)us.data = 0x7575;
    EQ(HC(set_segment_base, SEGBASE_GS_KERNEL, &kernel_word), 0);
    EQ(HC(set_segment_base, SEGBASE_GS_USER, USER_DATA), 0);
    r = enter_user(user_gs, 0, 0);
    EQ(r->vec, VEC_SYSCALL);
    EQ(r->rax, 0x7575);
    __asm__ volatile("mov %%gs:0, %0" : "=r"(v));
    EQ(v, kernel_word);
    user_space_drop(&us);
}

/* User mode with the kernel's own root: legal, small kernels do that. */
TEST(user_root_is_kernel_root)
{
    struct frame_iret f = { .rip = (u64)user_syscall, .cs = FLAT_CS, .ss = FLAT_SS, .rflags = 2, .rsp = USER_DATA };
    struct regs *r;
    u64 *table;

    EQ(mmuext(MMUEXT_NEW_USER_BASEPTR, mfn_of((void *)si->pt_base), 0), 0);
    r = enter(&f, false, 0, 0);
    EQ(r->vec, VEC_SYSCALL);
    EQ(r->rip, (u64)user_syscall + 2);
    /* It sees the page tables then, and still has no more right to write them than to any read-only page. */
    table = table_page();
    EQ(pin(1, mfn_of(table)), 0);
    f.rip = (u64)user_write;
    r = enter(&f, false, (u64)&table[3], 0x10);
    EQ(r->vec, 14);
    EQ(r->err, 7);
    EQ(r->rip, (u64)user_write);
    f.rip = (u64)user_lock;
    r = enter(&f, false, (u64)&table[3], 0);
    EQ(r->vec, 14);
    EQ(r->err, 7);
    EQ(table[3], 0);
    EQ(unpin(mfn_of(table)), 0);
    page_free(table);
    EQ(mmuext(MMUEXT_NEW_USER_BASEPTR, 0, 0), 0);
}

TEST(user_bad_selectors)
{
    struct frame_iret f = { .rip = USER_RIP(user_syscall), .cs = 0xe00b, .ss = FLAT_SS, .rflags = 2, .rsp = USER_DATA };
    struct regs *r;

    setup();
    r = enter(&f, false, 0, 0);
    EQ(r->vec, 13);
    EQ(r->err, 0xe008);
    EQ(r->cs & 3, 3);
    f.cs = FLAT_CS;
    f.rip = 0x8000000000000000;
    r = enter(&f, false, 0, 0);
    EQ(r->vec, 13);
    EQ(r->cs & 3, 3);
    user_space_drop(&us);
}

/* Without a SYSCALL callback the instruction is undefined. */
TEST(user_syscall_unregistered)
{
    struct regs *r;

    setup();
    EQ(HC(set_callbacks, event_entry, failsafe_entry, 0), 0);
    r = enter_user(user_syscall, 0, 0);
    EQ(r->vec, 6);
    register_traps();
    r = enter_user(user_syscall, 0, 0);
    EQ(r->vec, VEC_SYSCALL);
    user_space_drop(&us);
}

static void remote_roots(void *arg)
{
    (void)arg;
    EQ(mmuext(MMUEXT_NEW_USER_BASEPTR, mfn_of(us.l4), 0), 0);
    for (unsigned i = 0; i < 200; i++) {
        struct regs *r = enter_user(user_write, USER_DATA, i);

        if (r->vec != VEC_SYSCALL)
            break;
        EQ(*(volatile u64 *)us.data, i);
    }
    EQ(mmuext(MMUEXT_NEW_USER_BASEPTR, 0, 0), 0);
}

/* A root that is unpinned stays a root while another vCPU has it loaded. */
TEST(user_root_of_other_vcpu)
{
    long rc = 0;

    setup();
    vcpu1_run(remote_roots, NULL);
    for (unsigned i = 0; i < 500; i++) {
        rc |= unpin(mfn_of(us.l4));
        rc |= pin(4, mfn_of(us.l4));
    }
    vcpu1_wait();
    EQ(rc, 0);
    user_space_drop(&us);
}
