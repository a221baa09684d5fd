/* SPDX-License-Identifier: MIT */
/* Exceptions and privileged instructions of the guest kernel. */
#include "guest.h"

/* One instruction that must trap, with its address and the stack pointer. */
#define TRY_AT(insn, at, sp) ({ \
    u32 bad_ = 0; \
    __asm__ volatile("mov %%rsp, %[sp_]\n lea 1f(%%rip), %[at_]\n1: " insn "\n jmp 3f\n2: mov $1, %k[bad_]\n3:\n" \
                     EX_TABLE("1b", "2b") : [bad_] "+r"(bad_), [at_] "=&r"(at), [sp_] "=&r"(sp) :: "memory", "cc"); \
    (bool)bad_; })

static struct regs *last(void) { return &this_cpu()->trap; }
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
    __asm__ volatile("lea 1f(%%rip), %[at]\n pushfq\n orq $0x100, (%%rsp)\n popfq\n nop\n1: nop\n" : [at] "=&r"(at) :: "memory", "cc");
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
    static const u16 bad[] = { 0xe008, 0xe010, 0xe040, 0xe048, 0xe050, 0xeff8, 0xfff8, 0xe00b, 0xe013, 0x0008, 0x0004, 0xfffc, 0x6ff8 };

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

static void forced_cpuid(u32 leaf, u32 sub, u32 r[4])
{
    __asm__ volatile("ud2\n .ascii \"xen\"\n cpuid" : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3]) : "a"(leaf), "c"(sub));
}

TEST(cpuid)
{
    u32 r[4];
    char sig[13] = { 0 };

    forced_cpuid(0x40000000, 0, r);
    memcpy(sig, &r[1], 12);
    EQ(memcmp(sig, "XenVMMXenVMM", 12), 0);
    CHECK(r[0] >= 0x40000002);
    forced_cpuid(0x40000001, 0, r);
    EQ(r[0], HC(xen_version, XENVER_version, 0));
    forced_cpuid(0x40000100, 0, r);
    EQ(r[0] | r[1] | r[2] | r[3], 0);
    forced_cpuid(1, 0, r);
    EQ(r[2] >> 31, 1);
    EQ(r[3] & (1u << 3 | 1u << 7 | 1u << 11 | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 17), 0);   /* PSE MCE SEP MTRR PGE MCA PSE36 */
    EQ(r[2] & (1u << 3 | 1u << 5 | 1u << 17 | 1u << 21 | 1u << 24), 0);         /* MONITOR VMX PCID x2APIC deadline */
    EQ(r[2] >> 26 & 1, r[2] >> 27 & 1);
    forced_cpuid(7, 0, r);
    EQ(r[1] & (1u << 7 | 1u << 10 | 1u << 20), 0);                              /* SMEP INVPCID SMAP */
    forced_cpuid(0x80000001, 0, r);
    EQ(r[3] & 1u << 26, 0);                                                     /* 1 GiB pages */
    EQ(r[2] & 1u << 2, 0);                                                      /* SVM */
    EQ(r[3] >> 29 & 1, 1);
    forced_cpuid(0x12345678, 0, r);
    forced_cpuid(0xffffffff, 0, r);
    /* Another string is no prefix. */
    {
        u64 at, sp;

        CHECK(TRY_AT("ud2\n .ascii \"xem\"\n cpuid", at, sp));
        TRAPPED(6, 0);
        EQ(last()->rip, at);
    }
}

static bool try_rdmsr(u32 msr, u64 *v)
{
    u32 lo = 0, hi = 0;
    bool bad = TRY("rdmsr", A(, "=a"(lo), "=d"(hi)), A("c"(msr)));

    *v = (u64)hi << 32 | lo;
    return bad;
}

static bool try_wrmsr(u32 msr, u64 v) { return TRY("wrmsr", , A("c"(msr), "a"((u32)v), "d"((u32)(v >> 32)))); }

static u64 fs_word(void)
{
    u64 v;

    __asm__ volatile("mov %%fs:0, %0" : "=r"(v) :: "memory");
    return v;
}

static u64 gs_word(void)
{
    u64 v;

    __asm__ volatile("mov %%gs:0, %0" : "=r"(v) :: "memory");
    return v;
}

TEST(msr)
{
    static u64 a = 0xfeedface12345678, b = 0x1122334455667788;
    static const u32 base[] = { 0xc0000100, 0xc0000101, 0xc0000102 };
    static const u32 secret[] = { 0xc0000081, 0xc0000082, 0xc0000083, 0xc0000084, 0x174, 0x176, 0x17a, 0x12345678, 0x10, 0x277 + 1, 0x6e0 };
    u64 v;

    for (unsigned i = 0; i < 3; i++) {
        CHECK(!try_wrmsr(base[i], (u64)&a));
        CHECK(!try_rdmsr(base[i], &v));
        EQ(v, (u64)&a);
        CHECK(try_wrmsr(base[i], 0x8000000000000000));
        TRAPPED(13, 0);
        CHECK(try_wrmsr(base[i], 0x0000800000000000));
        CHECK(!try_rdmsr(base[i], &v));
        EQ(v, (u64)&a);
    }
    EQ(fs_word(), a);
    EQ(gs_word(), a);
    CHECK(!try_wrmsr(0xc0000101, (u64)&b));
    EQ(gs_word(), b);
    CHECK(!try_rdmsr(0xc0000080, &v));
    EQ(v & 0x400, 0x400);                       /* long mode is active */
    for (unsigned i = 0; i < COUNT(secret); i++) {
        if (!try_wrmsr(secret[i], 0x1000))
            FAIL("msr %#x could be written", secret[i]);
        if (secret[i] >= 0xc0000000 && !try_rdmsr(secret[i], &v))
            FAIL("msr %#x could be read", secret[i]);
    }
    CHECK(try_wrmsr(0xc0000080, 0));
    CHECK(try_wrmsr(0x1b, 0));
    CHECK(try_rdmsr(0x12345678, &v));
    TRAPPED(13, 0);
}

TEST(segment_base)
{
    static u64 a = 0x1234, b = 0x5678;
    u64 v;

    EQ(HC(set_segment_base, SEGBASE_FS, &a), 0);
    EQ(fs_word(), a);
    EQ(HC(set_segment_base, SEGBASE_GS_KERNEL, &b), 0);
    EQ(gs_word(), b);
    EQ(HC(set_segment_base, SEGBASE_GS_USER, &a), 0);
    EQ(gs_word(), b);
    CHECK(!try_rdmsr(0xc0000102, &v));
    EQ(v, (u64)&a);
    for (u64 which = 0; which < 3; which++) {
        EQ(HC(set_segment_base, which, 0x8000000000000000), -EINVAL);
        EQ(HC(set_segment_base, which, 0x0000800000000000), -EINVAL);
        EQ(HC(set_segment_base, which, 0xffff7fffffffffff), -EINVAL);
    }
    EQ(HC(set_segment_base, 4, 0), -EINVAL);
    EQ(HC(set_segment_base, ~0ul, 0), -EINVAL);
    EQ(HC(set_segment_base, SEGBASE_GS_USER_SEL, 0xe02b), 0);
    EQ(HC(set_segment_base, SEGBASE_GS_USER_SEL, 0xe008), 0);   /* refused by the CPU: null is loaded */
    EQ(HC(set_segment_base, SEGBASE_GS_USER_SEL, 0xe040), 0);
    EQ(HC(set_segment_base, SEGBASE_GS_USER_SEL, 0xfffc), 0);
    EQ(HC(set_segment_base, SEGBASE_GS_USER_SEL, 0), 0);
    EQ(gs_word(), b);
}

TEST(control_registers)
{
    u64 v, cr4;

    __asm__ volatile("mov %%cr0, %0" : "=r"(v));
    EQ(v & 0x80010001, 0x80010001);             /* PG WP PE */
    __asm__ volatile("mov %%cr3, %0" : "=r"(v));
    EQ(v, mfn_of((void *)si->pt_base) << 12);
    __asm__ volatile("mov %%cr4, %0" : "=r"(cr4));
    EQ(cr4 & 0x20, 0x20);
    __asm__ volatile("mov %0, %%cr4" :: "r"(cr4 | 0x600));
    __asm__ volatile("mov %%cr4, %0" : "=r"(v));
    EQ(v & 0x620, 0x620);
    __asm__ volatile("mov %%cr4, %%r15\n mov %%r15, %0" : "=r"(v) :: "r15");
    EQ(v & 0x620, 0x620);
    CHECK(TRY("mov %%cr1, %[v]", A(, [v] "=r"(v)), ));
    /* What only the hypervisor may set does not stick: SMEP, SMAP, PGE, PCIDE, VMXE. */
    if (!TRY("mov %[v], %%cr4", , A([v] "r"(cr4 | 1ul << 20 | 1ul << 21 | 1ul << 7 | 1ul << 17 | 1ul << 13)))) {
        __asm__ volatile("mov %%cr4, %0" : "=r"(v));
        EQ(v & (1ul << 20 | 1ul << 21 | 1ul << 7 | 1ul << 17 | 1ul << 13), 0);
    }
    if (!TRY("mov %[v], %%cr0", , A([v] "r"(0ul)))) {
        __asm__ volatile("mov %%cr0, %0" : "=r"(v));
        EQ(v & 0x80010001, 0x80010001);
    }
    EQ(mfn_of((void *)si->pt_base) << 12, pte_ma(VIRT_BASE, 4) & ~4095ul);
}

TEST(ports)
{
    u32 v = 0x12345678;

    /* Reading an absent or hidden port gives ones or a constant, never a fault for the kernel. */
    CHECK(!TRY("in %%dx, %%al", A(, "+a"(v)), A("d"(0x80))));
    EQ(v & ~0xffu, 0x12345600);
    CHECK(!TRY("in %%dx, %%ax", A(, "+a"(v)), A("d"(0xcf8))));
    EQ(v >> 16, 0x1234);
    CHECK(!TRY("out %%al, %%dx", , A("a"(0), "d"(0x3f8 + 1))));
    CHECK(!TRY("out %%al, $0x20", , A("a"(0x20))));
    CHECK(!TRY("out %%al, %%dx", , A("a"(0xff), "d"(0x21))));
    CHECK(!TRY("out %%al, %%dx", , A("a"(6), "d"(0xcf9))));       /* no reset */
    CHECK(!TRY("out %%eax, %%dx", , A("a"(0x80000000), "d"(0xcf8))));
    CHECK(!TRY("out %%eax, %%dx", , A("a"(~0u), "d"(0xffff))));
    CHECK(!TRY("out %%ax, %%dx", , A("a"(0xfefe), "d"(0x63))));   /* overlaps 0x64, the keyboard controller's reset */
}

/* iret ---------------------------------------------------------------------------------------------------- */

static struct frame_iret kernel_frame(void (*to)(void))
{
    return (struct frame_iret){ .rip = (u64)to, .cs = FLAT_CS & ~3ul, .ss = FLAT_SS, .rflags = 2,
                                .rsp = (u64)stacks[NR_VCPUS] + STACK_SIZE - 2048 - 8, .rax = 0x1a, .rcx = 0x1c, .r11 = 0x1b };
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

/* The FPU, segments and bases survive a sleep. */
TEST(state_over_block)
{
    static u64 word = 0x77;
    u64 x = 0, fs, gs;
    u16 es, ds;
    u16 cw = 0x27f, cw2 = 0;

    CHECK(!try_wrmsr(0xc0000100, (u64)&word));
    HC(set_segment_base, SEGBASE_GS_KERNEL, &word);
    HC(set_segment_base, SEGBASE_GS_USER, 0x123456);
    __asm__ volatile("mov %w0, %%es; mov %w0, %%ds" :: "r"(0xe02b));
    __asm__ volatile("fldcw %0; movq %1, %%xmm7" :: "m"(cw), "r"(0x0123456789abcdef));
    for (unsigned i = 0; i < 5; i++) {
        struct sched_poll p = { .timeout = now_ns() + 2000000 };

        HC(sched_op, SCHEDOP_poll, &p);
    }
    __asm__ volatile("fnstcw %0; movq %%xmm7, %1; mov %%es, %w2; mov %%ds, %w3" : "=m"(cw2), "=r"(x), "=r"(es), "=r"(ds));
    EQ(cw2, cw);
    EQ(x, 0x0123456789abcdef);
    EQ(es, 0xe02b);
    EQ(ds, 0xe02b);
    EQ(fs_word(), 0x77);
    EQ(gs_word(), 0x77);
    CHECK(!try_rdmsr(0xc0000102, &gs) && gs == 0x123456);
    CHECK(!try_rdmsr(0xc0000100, &fs) && fs == (u64)&word);
    __asm__ volatile("mov %w0, %%es; mov %w0, %%ds" :: "r"(0));
}
