/* SPDX-License-Identifier: MIT */
/*
 * A tiny multiboot1 image that does at ring 0 what a hypervisor does often: plain instructions, address-space switches
 * with paging on, single-page flushes, CPUID.  It reports through QEMU's isa-debug-exit device (port 0xf4), so that
 * QEMU ends with status 2 * 0x10 + 1.  Where KVM is real all of it takes about a second; TCG needs over five.
 */
    .text
    .code32
    .align 4
    .long 0x1badb002, 0, -0x1badb002

    .globl _start
_start:
    cli
    mov $stack_end, %esp
    mov $directory, %edi            /* the low 16 MiB, one to one, in 4 MiB pages */
    movl $0x00000083, 0(%edi)
    movl $0x00400083, 4(%edi)
    movl $0x00800083, 8(%edi)
    movl $0x00c00083, 12(%edi)
    mov %cr4, %eax
    or $0x10, %eax                  /* PSE */
    mov %eax, %cr4
    mov %edi, %cr3
    mov %cr0, %eax
    or $0x80010001, %eax            /* PG, WP, PE */
    mov %eax, %cr0

    mov $800000000, %ecx
1:  dec %ecx
    jnz 1b

    mov $100000, %ecx
2:  mov %edi, %cr3
    invlpg (%esp)
    push %ecx
    pop %ecx
    dec %ecx
    jnz 2b

    mov $2000, %esi
3:  xor %eax, %eax
    cpuid
    dec %esi
    jnz 3b

    mov $0x10, %al
    out %al, $0xf4
4:  hlt
    jmp 4b

    .bss
    .align 4096
directory:
    .skip 4096
    .skip 4096
stack_end:
