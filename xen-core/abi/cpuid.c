/* SPDX-License-Identifier: MIT */
/* CPUID policy: hardware features less what needs ring 0, what the hypervisor does not switch, and what would make a
 * guest build large or global pages. */
#include "abi/cpuid.h"

#include "arch/asm.h"

#define BIT(n) (1u << (n))

/* Leaf 1 edx: fpu de tsc msr pae cx8 apic cmov pat clflush mmx fxsr sse sse2 ht.  No vme pse mce sep mtrr pge mca pse36. */
#define L1_EDX (BIT(0) | BIT(2) | BIT(4) | BIT(5) | BIT(6) | BIT(8) | BIT(9) | BIT(15) | BIT(16) | BIT(19) | BIT(23) | \
                BIT(24) | BIT(25) | BIT(26) | BIT(28))
/* Leaf 1 ecx: sse3 pclmul ssse3 fma cx16 sse4.1 sse4.2 movbe popcnt aes xsave osxsave avx f16c rdrand hypervisor. */
#define L1_ECX (BIT(0) | BIT(1) | BIT(9) | BIT(12) | BIT(13) | BIT(19) | BIT(20) | BIT(22) | BIT(23) | BIT(25) | BIT(26) | \
                BIT(28) | BIT(29) | BIT(30))
/* Leaf 7 ebx: fsgsbase bmi1 avx2 bmi2 erms rdseed adx clflushopt clwb sha. */
#define L7_EBX (BIT(0) | BIT(3) | BIT(5) | BIT(8) | BIT(9) | BIT(18) | BIT(19) | BIT(23) | BIT(24) | BIT(29))
/* Leaf 7 ecx: vaes vpclmulqdq rdpid. */
#define L7_ECX (BIT(9) | BIT(10) | BIT(22))
/* 0x80000001 edx beyond leaf 1's: syscall nx mmxext fxsr_opt rdtscp lm; ecx: lahf lzcnt sse4a misalignsse prefetch. */
#define E1_EDX (BIT(11) | BIT(20) | BIT(22) | BIT(25) | BIT(27) | BIT(29))
#define E1_LEAF1 0x0183f3ffu                    /* the bits that AMD repeats from leaf 1 */
#define E1_ECX (BIT(0) | BIT(5) | BIT(6) | BIT(7) | BIT(8))

static void xsave_leaf(const struct vcpu *v, u32 sub, u32 r[4])
{
    u64 mask = cpu_caps.xcr0_mask;

    if (sub == 0) {
        r[0] = (u32)mask;
        r[1] = v->xcr0 & 4 ? 0x340 : 0x240;      /* legacy area, header, AVX state */
        r[2] = mask & 4 ? 0x340 : 0x240;
        r[3] = 0;
    } else if (sub == 1) {
        r[0] &= BIT(0);                          /* xsaveopt */
        r[1] = r[2] = r[3] = 0;
    } else if (sub != 2 || !(mask & 4)) {
        r[0] = r[1] = r[2] = r[3] = 0;
    }
}

void guest_cpuid(const struct vcpu *v, u32 leaf, u32 sub, u32 r[4])
{
    u32 max, d;

    if (leaf >= 0x40000000 && leaf <= 0x4000ffff) {
        r[0] = r[1] = r[2] = r[3] = 0;
        if (leaf == 0x40000000) {
            r[0] = 0x40000005;
            r[1] = 0x566e6558;                   /* "XenVMMXenVMM" */
            r[2] = 0x65584d4d;
            r[3] = 0x4d4d566e;
        } else if (leaf == 0x40000001) {
            r[0] = 4 << 16 | 17;
        } else if (leaf == 0x40000005) {
            r[1] = cpu_caps.phys_bits;
        }
        return;
    }
    cpuid_count(leaf & 0x80000000, 0, &max, &d, &d, &d);
    if (leaf > max) {
        r[0] = r[1] = r[2] = r[3] = 0;
        return;
    }
    cpuid_count(leaf, sub, &r[0], &r[1], &r[2], &r[3]);
    switch (leaf) {
    case 0:
        r[0] = MIN(r[0], 0xdu);
        break;
    case 1:
        r[1] = (r[1] & 0x0000ffff) | v->id << 24 | 1u << 16;
        r[2] &= L1_ECX;
        r[3] &= L1_EDX;
        r[2] |= BIT(31);
        if (!cpu_caps.xsave)
            r[2] &= ~(BIT(26) | BIT(28) | BIT(12) | BIT(29));
        else
            r[2] |= BIT(27);
        if (!(cpu_caps.xcr0_mask & 4))
            r[2] &= ~(BIT(28) | BIT(12) | BIT(29));
        break;
    case 5:
    case 6:
    case 0xa:
    case 0xb:
        r[0] = r[1] = r[2] = r[3] = 0;
        break;
    case 7:
        if (sub) {
            r[0] = r[1] = r[2] = r[3] = 0;
            break;
        }
        r[0] = 0;
        r[1] &= L7_EBX;
        r[2] &= L7_ECX;
        r[3] &= BIT(4);                          /* fsrm */
        if (!cpu_caps.fsgsbase)
            r[1] &= ~BIT(0);
        if (!(cpu_caps.xcr0_mask & 4)) {
            r[1] &= ~BIT(5);
            r[2] &= ~(BIT(9) | BIT(10));
        }
        if (!cpu_caps.rdtscp)
            r[2] &= ~BIT(22);
        break;
    case 0xd:
        if (!cpu_caps.xsave)
            r[0] = r[1] = r[2] = r[3] = 0;
        else
            xsave_leaf(v, sub, r);
        break;
    case 0x80000000:
        r[0] = MIN(r[0], 0x80000008u);
        break;
    case 0x80000001:
        r[2] &= E1_ECX;
        r[3] &= E1_EDX | (cpu_caps.amd ? L1_EDX & E1_LEAF1 : 0);
        break;
    case 0x80000007:
        r[0] = r[1] = r[2] = 0;
        r[3] = BIT(8);                           /* one time scale, constant: the hypervisor relies on it as well */
        break;
    case 0x80000008:
        r[0] = (r[0] & 0xff) | 48 << 8;
        r[1] = r[2] = r[3] = 0;
        break;
    }
}
