/* SPDX-License-Identifier: MIT */
/* From the multiboot loader (32-bit protected mode, paging off) and from a starting AP (16-bit real mode) to C. */
#define __ASSEMBLY__
#include "arch/layout.h"

#define PHYS(x)  ((x) - HV_IMAGE_VIRT + HV_IMAGE_PHYS)
#define MB_MAGIC 0x1badb002
#define MB_FLAGS 0x3                     /* modules on page boundaries, memory map */

    .section .multiboot, "a"
    .balign 4
    .long MB_MAGIC, MB_FLAGS, -(MB_MAGIC + MB_FLAGS)

    .section .text.boot, "ax"
    .code32
    .globl start
start:                                   /* eax = loader's magic, ebx = physical address of its information */
    cld
    cli
    mov $PHYS(boot_stack_top), %esp
    mov %eax, %ebp
    mov %ebx, %esi

    /* Identity map of the first 4 GiB, and the image and direct map at their final addresses, by 2 MiB pages. */
    mov $PHYS(boot_l2), %edi
    mov $0x83, %eax
    xor %edx, %edx
    mov $2048, %ecx
1:  mov %eax, (%edi)
    movl $0, 4(%edi)
    add $0x200000, %eax
    add $8, %edi
    loop 1b

    mov $PHYS(boot_l2) + 3, %eax         /* L3: four gigabytes */
    mov $PHYS(boot_l3), %edi
    mov %eax, (%edi)
    add $0x1000, %eax
    mov %eax, 8(%edi)
    add $0x1000, %eax
    mov %eax, 16(%edi)
    add $0x1000, %eax
    mov %eax, 24(%edi)

    /* The image: 1 GiB at HV_IMAGE_VIRT (slot 261, L3 entry 321) maps physical memory from HV_IMAGE_PHYS. */
    mov $PHYS(boot_l2_image), %edi
    mov $HV_IMAGE_PHYS + 0x83, %eax
    mov $64, %ecx
2:  mov %eax, (%edi)
    movl $0, 4(%edi)
    add $0x200000, %eax
    add $8, %edi
    loop 2b
    movl $PHYS(boot_l2_image) + 3, PHYS(boot_l3_image) + 8 * ((HV_IMAGE_VIRT >> 30) & 511)

    mov $PHYS(boot_l4), %edi
    movl $PHYS(boot_l3) + 3, (%edi)
    movl $PHYS(boot_l3) + 3, 8 * 262(%edi)
    movl $PHYS(boot_l3_image) + 3, 8 * 261(%edi)

    mov %edi, %eax
    call enter_long
    .code64
    movabs $5f, %rax
    jmp *%rax
5:  lea boot_stack_top(%rip), %rsp
    xor %ebp, %ebp
    mov PHYS(boot_magic), %edi
    mov PHYS(boot_mbi), %esi
    call boot_main
    ud2

    .code32
/* Turns on long mode with root table eax; returns to the caller in 64-bit mode. */
enter_long:
    mov %ebp, PHYS(boot_magic)
    mov %esi, PHYS(boot_mbi)
    mov %eax, %cr3
    mov %cr4, %eax
    or $0x620, %eax                      /* PAE, OSFXSR, OSXMMEXCPT */
    mov %eax, %cr4
    mov $0xc0000080, %ecx
    rdmsr
    or $0x901, %eax                      /* SCE, LME, NXE: every 64-bit CPU with NX; checked in C */
    wrmsr
    mov $0x80010033, %eax                /* PG, WP, NE, ET, MP, PE */
    mov %eax, %cr0
    lgdt PHYS(boot_gdtr)
    pop %eax
    pushl $8
    push %eax
    lret

    .balign 16
boot_gdt:
    .quad 0
    .quad 0x00af9a000000ffff             /* 8: code64 */
    .quad 0x00cf92000000ffff             /* 16: data */
    .quad 0x00cf9a000000ffff             /* 24: code32 */
boot_gdtr:
    .word 31
    .long PHYS(boot_gdt)

/* AP trampoline: copied to a page below 1 MiB and entered there in real mode; cs = page >> 4, ip = 0. */
    .code16
    .balign 16
    .globl trampoline_start, trampoline_end, trampoline_cr3, trampoline_stack
trampoline_start:
    cli
    cld
    mov %cs, %ax
    mov %ax, %ds
    xor %ebx, %ebx
    mov %cs, %bx
    shl $4, %ebx                         /* the page's address */
    lea (t_gdt - trampoline_start)(%ebx), %eax
    mov %eax, (t_gdtr - trampoline_start + 2)
    lgdtl (t_gdtr - trampoline_start)
    mov %cr0, %eax
    or $1, %al
    mov %eax, %cr0
    lea (t_32 - trampoline_start)(%ebx), %eax
    mov %eax, (t_jump - trampoline_start)
    ljmpl *(t_jump - trampoline_start)
    .code32
t_32:
    mov $16, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    mov (trampoline_cr3 - trampoline_start)(%ebx), %eax
    mov %eax, %cr3
    mov %cr4, %eax
    or $0x620, %eax
    mov %eax, %cr4
    mov $0xc0000080, %ecx
    rdmsr
    or $0x901, %eax
    wrmsr
    mov $0x80010033, %eax
    mov %eax, %cr0
    lea (t_64 - trampoline_start)(%ebx), %eax
    mov %eax, (t_jump64 - trampoline_start)(%ebx)
    ljmpl *(t_jump64 - trampoline_start)(%ebx)
    .code64
t_64:
    mov (trampoline_stack - trampoline_start)(%rbx), %rsp
    xor %ebp, %ebp
    movabs $ap_start, %rax
    jmp *%rax
    .balign 8
t_gdt:
    .quad 0
    .quad 0x00af9a000000ffff
    .quad 0x00cf92000000ffff
    .quad 0x00cf9a000000ffff
t_gdtr:
    .word 31
    .long 0
t_jump:
    .long 0
    .word 24
t_jump64:
    .long 0
    .word 8
    .balign 8
trampoline_cr3:
    .quad 0
trampoline_stack:
    .quad 0
trampoline_end:

    .text
    .globl ap_start
ap_start:
    call ap_main
    ud2

    .bss
    .balign 4096
    .globl boot_l4
boot_l4:        .skip 4096
boot_l3:        .skip 4096
boot_l3_image:  .skip 4096
boot_l2_image:  .skip 4096
boot_l2:        .skip 4 * 4096
    .balign STACK_SIZE
boot_stack:     .skip STACK_SIZE - 2048
boot_stack_top: .skip 2048                /* room for a struct cpu_info that nobody fills: cpu 0, no vCPU */
boot_magic:     .skip 4
boot_mbi:       .skip 4

    .section .note.GNU-stack, "", @progbits
