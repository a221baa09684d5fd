/* SPDX-License-Identifier: MIT */
/* Privileged instructions that the hypervisor carries out for the guest kernel, and what it does not let through. */
#include "guest.h"

static void forced_cpuid(u32 leaf, u32 sub, u32 r[4])
{
    __asm__ volatile("ud2\n .ascii \"xen\"\n cpuid"
                     : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3]) : "a"(leaf), "c"(sub));
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
    /* PSE MCE SEP MTRR PGE MCA PSE36 */
    EQ(r[3] & (1u << 3 | 1u << 7 | 1u << 11 | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 17), 0);
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
    static const u32 secret[] = {
        0xc0000081, 0xc0000082, 0xc0000083, 0xc0000084, 0x174, 0x176, 0x17a, 0x12345678, 0x10, 0x278, 0x6e0,
    };
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
    __asm__ volatile("fnstcw %0; movq %%xmm7, %1; mov %%es, %w2; mov %%ds, %w3"
                     : "=m"(cw2), "=r"(x), "=r"(es), "=r"(ds));
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
