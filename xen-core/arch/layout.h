/* SPDX-License-Identifier: MIT */
/* The hypervisor's address space: L4 slots 256..271, the range the Xen PV ABI reserves.  Every L4 of
 * every guest shares the same L3 tables for these slots. */
#ifndef PT_ARCH_LAYOUT_H
#define PT_ARCH_LAYOUT_H

#define HV_L4_FIRST     256
#define HV_L4_LAST      271
#define HV_START        0xffff800000000000
#define HV_END          0xffff880000000000

#define M2P_RO_VIRT     0xffff800000000000    /* slot 256: the guest-readable machine-to-physical array */
#define M2P_RW_VIRT     0xffff808000000000    /* slot 257: the same frames, writable, supervisor only */
#define VCPU_DT_VIRT    0xffff828000000000    /* slot 261: descriptor tables, VCPU_DT_SIZE a vCPU */
#define VCPU_DT_SHIFT   18
#define HV_IMAGE_VIRT   0xffff82d040000000    /* text, data, bss */
#define FIXMAP_VIRT     0xffff82d080000000    /* uncached device pages: LAPIC, IO-APIC, HPET */
#define FRAMETABLE_VIRT 0xffff82e000000000    /* struct frame by mfn, up to the end of slot 261 */
#define DIRECTMAP_VIRT  0xffff830000000000    /* slots 262..271: all RAM, 5 TiB */
#define DIRECTMAP_END   0xffff880000000000
#define HV_IMAGE_PHYS   0x200000              /* where the image is linked to load */

#define ENV_STATS_MAX   128                   /* event counters a CPU, in its struct cpu_info */
#define STACK_SHIFT     15                    /* one stack a CPU, aligned to its size */
#define STACK_SIZE      (1 << STACK_SHIFT)
#define NR_CPUS         1024

/* GDT selectors.  The first 14 pages (7168 entries) are the guest's; ours begin at byte 0xe000. */
#define GDT_RESERVED_PAGE 14
#define FLAT_CS32       0xe023                /* guest 32-bit code, DPL 3 */
#define FLAT_DS         0xe02b                /* guest data and stack, DPL 3 */
#define FLAT_CS64       0xe033                /* guest 64-bit code, DPL 3 */
#define HV_CS           0xe008
#define HV_DS           0xe010                /* must be HV_CS + 8 for SYSCALL */
#define TSS_SEL         0xe040                /* 16-byte descriptor */
#define LDT_SEL         0xe050                /* 16-byte descriptor */

/* Vectors above the exceptions. */
#define VEC_SYSCALL80   0x80                  /* guest int $0x80, gate DPL 3 */
#define VEC_SERIAL      0xf0
#define VEC_KICK        0xfb                  /* look at your work flags */
#define VEC_TLB         0xfc                  /* drain your TLB inbox */
#define VEC_TIMER       0xfd
#define VEC_HALT        0xfe                  /* stop for panic or shutdown */
#define VEC_SPURIOUS    0xff

#endif
