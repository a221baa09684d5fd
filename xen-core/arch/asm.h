/* SPDX-License-Identifier: MIT */
/* One-instruction wrappers for privileged instructions. */
#ifndef PT_ARCH_ASM_H
#define PT_ARCH_ASM_H

#include "base/types.h"

#define DEFINE_CR(n) \
    static inline u64 read_cr##n(void) { u64 v; __asm__ volatile("mov %%cr" #n ", %0" : "=r"(v)); return v; } \
    static inline void write_cr##n(u64 v) { __asm__ volatile("mov %0, %%cr" #n :: "r"(v) : "memory"); }
DEFINE_CR(0)
DEFINE_CR(2)
DEFINE_CR(3)
DEFINE_CR(4)

static inline u64 rdmsr(u32 msr)
{
    u32 lo, hi;

    __asm__ volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(msr));
    return (u64)hi << 32 | lo;
}
static inline void wrmsr(u32 msr, u64 v)
{ __asm__ volatile("wrmsr" :: "c"(msr), "a"((u32)v), "d"((u32)(v >> 32)) : "memory"); }

static inline u64 rdtsc(void)
{
    u32 lo, hi;

    __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
    return (u64)hi << 32 | lo;
}
/* A time stamp that no earlier access can be ordered after. */
static inline u64 rdtsc_ordered(void)
{
    u32 lo, hi;

    __asm__ volatile("lfence; rdtsc" : "=a"(lo), "=d"(hi) :: "memory");
    return (u64)hi << 32 | lo;
}

static inline void cpuid_count(u32 leaf, u32 sub, u32 *a, u32 *b, u32 *c, u32 *d)
{ __asm__ volatile("cpuid" : "=a"(*a), "=b"(*b), "=c"(*c), "=d"(*d) : "a"(leaf), "c"(sub)); }

static inline void invlpg(u64 va) { __asm__ volatile("invlpg (%0)" :: "r"(va) : "memory"); }
static inline void irq_enable(void) { __asm__ volatile("sti" ::: "memory"); }
static inline void irq_disable(void) { __asm__ volatile("cli" ::: "memory"); }

static inline void outb(u16 p, u8 v) { __asm__ volatile("outb %0, %1" :: "a"(v), "Nd"(p)); }
static inline void outw(u16 p, u16 v) { __asm__ volatile("outw %0, %1" :: "a"(v), "Nd"(p)); }
static inline void outl(u16 p, u32 v) { __asm__ volatile("outl %0, %1" :: "a"(v), "Nd"(p)); }
static inline u8 inb(u16 p) { u8 v; __asm__ volatile("inb %1, %0" : "=a"(v) : "Nd"(p)); return v; }
static inline u16 inw(u16 p) { u16 v; __asm__ volatile("inw %1, %0" : "=a"(v) : "Nd"(p)); return v; }
static inline u32 inl(u16 p) { u32 v; __asm__ volatile("inl %1, %0" : "=a"(v) : "Nd"(p)); return v; }

#define MSR_APIC_BASE       0x1b
#define MSR_TSC_DEADLINE    0x6e0
#define MSR_EFER            0xc0000080
#define MSR_STAR            0xc0000081
#define MSR_LSTAR           0xc0000082
#define MSR_CSTAR           0xc0000083
#define MSR_SFMASK          0xc0000084
#define MSR_FS_BASE         0xc0000100
#define MSR_GS_BASE         0xc0000101
#define MSR_KERNEL_GS_BASE  0xc0000102
#define MSR_TSC_AUX         0xc0000103
#define MSR_SYSENTER_CS     0x174
#define MSR_SYSENTER_ESP    0x175
#define MSR_SYSENTER_EIP    0x176
#define MSR_PAT             0x277

#define EFER_SCE   (1u << 0)
#define EFER_LME   (1u << 8)
#define EFER_NXE   (1u << 11)

#define CR0_PE     (1ul << 0)
#define CR0_MP     (1ul << 1)
#define CR0_EM     (1ul << 2)
#define CR0_TS     (1ul << 3)
#define CR0_ET     (1ul << 4)
#define CR0_NE     (1ul << 5)
#define CR0_WP     (1ul << 16)
#define CR0_AM     (1ul << 18)
#define CR0_PG     (1ul << 31)

#define CR4_TSD        (1ul << 2)
#define CR4_DE         (1ul << 3)
#define CR4_PAE        (1ul << 5)
#define CR4_MCE        (1ul << 6)
#define CR4_PGE        (1ul << 7)
#define CR4_PCE        (1ul << 8)
#define CR4_OSFXSR     (1ul << 9)
#define CR4_OSXMMEXCPT (1ul << 10)
#define CR4_UMIP       (1ul << 11)
#define CR4_FSGSBASE   (1ul << 16)
#define CR4_OSXSAVE    (1ul << 18)
#define CR4_SMEP       (1ul << 20)
#define CR4_SMAP       (1ul << 21)

#define RFLAGS_CF  (1ul << 0)
#define RFLAGS_TF  (1ul << 8)
#define RFLAGS_IF  (1ul << 9)
#define RFLAGS_DF  (1ul << 10)
#define RFLAGS_IOPL (3ul << 12)
#define RFLAGS_NT  (1ul << 14)
#define RFLAGS_RF  (1ul << 16)
#define RFLAGS_VM  (1ul << 17)
#define RFLAGS_AC  (1ul << 18)

#endif
