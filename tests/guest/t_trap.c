/* SPDX-License-Identifier: MIT */
/* Exceptions and privileged instructions of the guest kernel. */
#include "guest.h"

static u8 *event_mask(void) { return &this_cpu()->info->evtchn_upcall_mask; }

TEST(ud2_frame)
{
    u64 at, sp;

    for (u8 mask = 0; mask < 2; mask++) {
        __atomic_store_n(event_mask(), mask, __ATOMIC_SEQ_CST);
        CHECK(TRY_AT("ud2", at, sp));
        EQ(*event_mask(), mask);                /* the iret put it back */
        TRAPPED(6, 0);
        EQ(last()->rip, at);
        EQ(last()->rsp, sp);
        EQ(last()->cs, FLAT_CS & ~3);
        EQ(last()->ss & 0xffff, FLAT_SS);
        EQ(last()->mask, mask);
        EQ(last()->rflags & 0x200, mask ? 0 : 0x200);
        EQ(last()->rflags & 0x3000, 0);
    }
    *event_mask() = 1;
}

/* The frame lies below the stack pointer, rounded down to 16. */
TEST(frame_alignment)
{
    for (unsigned off = 0; off < 16; off += 4) {
        u64 sp, rsp;
        u32 f = 0;

        __asm__ volatile("mov %%rsp, %[sp]\n sub %[off], %%rsp\n sub $256, %%rsp\n mov %%rsp, %[rsp]\n1: ud2\n"
                         "2: mov $1, %k[f]\n mov %[sp], %%rsp\n" EX_TABLE("1b", "2b")
                         : [f] "+r"(f), [sp] "=&r"(sp), [rsp] "=&r"(rsp) : [off] "r"((u64)off) : "memory", "cc");
        CHECK(f);
        EQ(last()->rsp, rsp);
        EQ(this_cpu()->trap_frame_end, rsp & ~15ul);
    }
}

TEST(breakpoint)
{
    u64 at, sp;

    CHECK(TRY_AT("int3", at, sp));
    TRAPPED(3, 0);
    EQ(last()->rip, at + 1);
}

TEST(divide)
{
    CHECK(TRY("div %[z]", , A("a"(1), "d"(0), [z] "r"(0))));
    TRAPPED(0, 0);
}

TEST(single_step)
{
    u64 at = 0;
    u32 n = this_cpu()->traps;

    HC(set_debugreg, 6, 0xffff0ff0);
    __asm__ volatile("lea 1f(%%rip), %[at]\n pushfq\n orq $0x100, (%%rsp)\n popfq\n nop\n1: nop\n"
                     : [at] "=&r"(at) :: "memory", "cc");
    EQ(this_cpu()->traps, n + 1);
    TRAPPED(1, 0);
    EQ(last()->rip, at);
    EQ(last()->rflags & 0x100, 0x100);
    EQ(HC(get_debugreg, 6) & 0x4000, 0x4000);
}

static u64 watched;

TEST(debug_registers)
{
    u32 n = this_cpu()->traps;

    EQ(HC(set_debugreg, 0, 0xffff830000000000), -EPERM);
    EQ(HC(set_debugreg, 0, HV_BASE), -EPERM);
    EQ(HC(set_debugreg, 0, 1ul << 63), -EPERM);
    EQ(HC(set_debugreg, 4, 0), -EINVAL);
    EQ(HC(set_debugreg, 8, 0), -EINVAL);
    EQ(HC(set_debugreg, ~0ul, 0), -EINVAL);
    EQ(HC(get_debugreg, 4), -EINVAL);
    EQ(HC(get_debugreg, 100), -EINVAL);
    EQ(HC(set_debugreg, 7, 1ul << 13 | 1), -EPERM);
    EQ(HC(set_debugreg, 7, 1ul << 32), -EPERM);
    EQ(HC(set_debugreg, 7, 1 | 2ul << 16), -EPERM);
    EQ(HC(set_debugreg, 0, &watched), 0);
    EQ(HC(get_debugreg, 0), (u64)&watched);
    EQ(HC(set_debugreg, 7, 1 | 1ul << 16 | 3ul << 18), 0);      /* 4-byte writes */
    __atomic_store_n((u32 *)&watched, 1, __ATOMIC_SEQ_CST);
    EQ(this_cpu()->traps, n + 1);
    TRAPPED(1, 0);
    EQ(HC(get_debugreg, 6) & 1, 1);
    EQ(HC(set_debugreg, 7, 0), 0);
    __atomic_store_n((u32 *)&watched, 2, __ATOMIC_SEQ_CST);
    EQ(this_cpu()->traps, n + 1);
    HC(set_debugreg, 0, 0);
    /* A breakpoint on what the hypervisor writes for the guest must not stop the hypervisor. */
    EQ(HC(set_debugreg, 1, &watched), 0);
    EQ(HC(set_debugreg, 7, 4 | 1ul << 20 | 3ul << 22), 0);
    HC(xen_version, XENVER_get_features, &watched);
    EQ(HC(set_debugreg, 7, 0), 0);
    HC(set_debugreg, 1, 0);
}

TEST(general_protection)
{
    u64 at, sp;

    CHECK(try_read((void *)0x8000000000000000, NULL));
    TRAPPED(13, 0);
    CHECK(TRY_AT("hlt", at, sp));
    TRAPPED(13, 0);
    EQ(last()->rip, at);
    CHECK(TRY("mov %[r], %%cr3", , A([r] "r"(0ul))));
    TRAPPED(13, 0);
    CHECK(TRY("lgdt (%[p])", , A([p] "r"(&watched))));
    TRAPPED(13, 0);
    CHECK(TRY("lidt (%[p])", , A([p] "r"(&watched))));
    CHECK(TRY("ltr %w[s]", , A([s] "r"(0xe040))));
    CHECK(TRY("lldt %w[s]", , A([s] "r"(0))));
    CHECK(TRY("invlpg (%[p])", , A([p] "r"(&watched))));
    CHECK(TRY("swapgs", , ));
    CHECK(TRY("sysretq", , A("c"(0))));
    CHECK(TRY("mov %[r], %%cr8", , A([r] "r"(0ul))));
    TRAPPED(13, 0);
}

/* The hypervisor's own selectors, and the far ends of the descriptor table. */
TEST(selectors)
{
    static const u16 bad[] = {
        0xe008, 0xe010, 0xe040, 0xe048, 0xe050, 0xeff8, 0xfff8, 0xe00b, 0xe013, 0x0008, 0x0004, 0xfffc, 0x6ff8,
    };

    for (unsigned i = 0; i < COUNT(bad); i++) {
        if (!TRY("mov %w[s], %%es", , A([s] "r"(bad[i]))))
            FAIL("selector %#x could be loaded", bad[i]);
        TRAPPED(13, bad[i] & 0xfffc);
    }
    CHECK(!TRY("mov %w[s], %%es", , A([s] "r"(0xe02b))));
    CHECK(!TRY("mov %w[s], %%es", , A([s] "r"(0))));
    CHECK(!TRY("mov %w[s], %%es", , A([s] "r"(3))));
}

TEST(page_faults)
{
    u64 v, *page = page_alloc();
    void *l1 = table_page();

    hook(SCRATCH, 2, l1);
    CHECK(try_read((void *)SCRATCH, &v));
    TRAPPED(14, 0);
    EQ(this_cpu()->trap_cr2, SCRATCH);
    __asm__ volatile("mov %%cr2, %0" : "=r"(v));
    EQ(v, SCRATCH);
    CHECK(try_write((void *)(SCRATCH + 0x123), 1));
    TRAPPED(14, 2);
    EQ(this_cpu()->trap_cr2, SCRATCH + 0x123);
    EQ(map_va(SCRATCH, pte(mfn_of(page), P)), 0);
    CHECK(try_write((void *)SCRATCH, 1));
    TRAPPED(14, 3);
    CHECK(!try_read((void *)SCRATCH, &v));
    /* Execution. */
    *(u8 *)page = 0xc3;
    CHECK(!TRY("call *%[p]", , A([p] "r"(SCRATCH))));
    EQ(map_va(SCRATCH, pte(mfn_of(page), P | NX)), 0);
    {
        struct frame_iret f = { .rip = SCRATCH, .cs = FLAT_CS & ~3ul, .ss = FLAT_SS, .rflags = 2,
                                .rsp = (u64)stacks[NR_VCPUS] + STACK_SIZE - 2048 };

        enter(&f, true, 0, 0);
        TRAPPED(14, 0x11);
        EQ(last()->rip, SCRATCH);
        EQ(this_cpu()->trap_cr2, SCRATCH);
    }
    unhook(SCRATCH, 2);
    CHECK(try_read((void *)SCRATCH, &v));
    TRAPPED(14, 0);
    /* Hypervisor addresses: faults like any other, user bit clear because this is the kernel. */
    CHECK(try_read((void *)0xffff830000000000, &v));
    EQ(last()->vec, 14);
    EQ(last()->err & ~1ul, 0);
    EQ(this_cpu()->trap_cr2, 0xffff830000000000);
    page_free(l1);
    page_free(page);
}

/* A software interrupt that must be refused. */
#define TRY_INT(n) ({ \
    u64 at_, sp_; \
    CHECK(TRY_AT("int $" #n, at_, sp_)); \
    EQ(last()->rip, at_); \
    TRAPPED(13, (n) * 8 + 2); })

TEST(software_interrupts)
{
    u64 at;
    u32 n = this_cpu()->traps;

    __asm__ volatile("lea 1f(%%rip), %[at]\n int $0x20\n1:" : [at] "=&r"(at) :: "memory", "cc");
    EQ(this_cpu()->traps, n + 1);
    TRAPPED(0x20, 0);
    EQ(last()->rip, at);
    __asm__ volatile("lea 1f(%%rip), %[at]\n int $0x80\n1:" : [at] "=&r"(at) :: "memory", "cc");
    TRAPPED(0x80, 0);
    EQ(last()->rip, at);
    EQ(this_cpu()->traps, n + 2);
    TRY_INT(0x21);
    TRY_INT(0x81);
    TRY_INT(0xf0);
    TRY_INT(0xfb);
    TRY_INT(0xfc);
    TRY_INT(0xfd);
    TRY_INT(0xfe);
    TRY_INT(0xff);
}

TEST(trap_table)
{
    static struct trap_info t[260];
    u64 at, sp;

    /* Entries are merged. */
    t[0] = (struct trap_info){ 0x21, 0, 0xe033, (u64)trap_stubs[0x21] };
    EQ(HC(set_trap_table, t), 0);
    __asm__ volatile("int $0x21" ::: "memory", "cc");
    TRAPPED(0x21, 0);
    CHECK(TRY_AT("ud2", at, sp));
    TRAPPED(6, 0);
    t[0].address = 0x8000000000000000;
    EQ(HC(set_trap_table, t), -EINVAL);
    for (unsigned i = 0; i < COUNT(t); i++)
        t[i] = (struct trap_info){ 0x22, 0, 0xe033, (u64)trap_stubs[0x22] };
    EQ(HC(set_trap_table, t), -EINVAL);         /* no end */
    EQ(HC(set_trap_table, 0), 0);
    register_traps();
    TRY_INT(0x21);
    TRY_INT(0x22);
}

/* A handler without flag 4 leaves events unmasked. */
TEST(trap_mask_flag)
{
    struct trap_info t[2] = { { 0x23, 0, 0xe033, (u64)trap_stubs[0x23] }, { 0 } };

    EQ(HC(set_trap_table, t), 0);
    *event_mask() = 0;
    __asm__ volatile("int $0x23" ::: "memory", "cc");
    TRAPPED(0x23, 0);
    EQ(last()->mask, 0);
    EQ(*event_mask(), 0);
    *event_mask() = 1;
    HC(set_trap_table, 0);
    register_traps();
}
