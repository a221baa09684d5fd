/* SPDX-License-Identifier: MIT */
/* Entry and exit: save registers, pass one pointer, call C, restore.
 *
 * Interrupts are off in every line of this file.  A frame from ring 3 always lies at the top of the CPU's
 * stack (cpu_info->regs); one from ring 0 (idle loop, faulting guest copy) lies where it happened. */
#define __ASSEMBLY__
#include "arch/layout.h"

#define REGS_ERR    120
#define REGS_CS     136
#define VEC_SYSCALL 0x100

    .macro SAVE_REGS
    push %rdi; push %rsi; push %rdx; push %rcx; push %rax
    push %r8;  push %r9;  push %r10; push %r11
    push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
    .endm

    .macro RESTORE_REGS
    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
    pop %r11; pop %r10; pop %r9;  pop %r8
    pop %rax; pop %rcx; pop %rdx; pop %rsi; pop %rdi
    .endm

    .text

/* One stub of 16 bytes for each vector: error code (a zero where the CPU pushes none) and vector number. */
    .balign 16
trap_stubs:
    .set vec, 0
    .rept 256
    .balign 16
    .if vec != 8 && (vec < 10 || vec > 14) && vec != 17 && vec != 21 && vec != 29 && vec != 30
    push $0
    .endif
    movl $vec, 4(%rsp)
    jmp trap_common
    .set vec, vec + 1
    .endr

    .balign 16
trap_common:                        /* any vector; all registers the interrupted code's */
    SAVE_REGS
    cld
    mov %rsp, %rdi
    call trap_handler
    .globl return_from_trap
return_from_trap:                   /* rsp: the frame to return to */
    RESTORE_REGS
    add $8, %rsp                    /* error code and vector */
    .globl guest_iretq
guest_iretq:
    iretq

/* SYSCALL: rcx = rip, r11 = rflags, rsp still the guest's.  A stub of 32 bytes a CPU finds its stack. */
    .macro SYSCALL_STUBS cs, target
    .set cpu, 0
    .rept NR_CPUS
    .balign 32
    mov %rsp, cpu_scratch + 64 * cpu(%rip)
    mov cpu_scratch + 64 * cpu + 8(%rip), %rsp
    pushq $FLAT_DS
    pushq cpu_scratch + 64 * cpu(%rip)
    jmp \target
    .set cpu, cpu + 1
    .endr
    .endm

    .globl syscall_stubs
    .balign 32
syscall_stubs:
    SYSCALL_STUBS FLAT_CS64, syscall_entry
    .globl syscall32_stubs
    .balign 32
syscall32_stubs:
    SYSCALL_STUBS FLAT_CS32, syscall32_entry

    .balign 16
syscall_entry:
    push %r11
    pushq $FLAT_CS64
    push %rcx
    pushq $0
    movl $VEC_SYSCALL, 4(%rsp)
    SAVE_REGS
    mov %rsp, %rdi
    call syscall_handler            /* al: SYSRET may be used */
    test %al, %al
    jz return_from_trap
    RESTORE_REGS
    mov 8(%rsp), %rcx               /* rip */
    mov 24(%rsp), %r11              /* rflags */
    mov 32(%rsp), %rsp
    sysretq

    .balign 16
syscall32_entry:
    push %r11
    pushq $FLAT_CS32
    push %rcx
    pushq $0
    movl $(VEC_SYSCALL + 1), 4(%rsp)
    SAVE_REGS
    mov %rsp, %rdi
    call syscall32_handler
    jmp return_from_trap

/* void resume_frame(struct cpu_regs *frame): abandons the stack below and returns to the guest's frame. */
    .globl resume_frame
resume_frame:
    mov %rdi, %rsp
    jmp return_from_trap

    .section .rodata
    .balign 8
    .globl trap_entry_table
trap_entry_table:                   /* by vector, for the IDT */
    .set vec, 0
    .rept 256
    .quad trap_stubs + 16 * vec
    .set vec, vec + 1
    .endr

    .bss
    .balign 64
    .globl cpu_scratch
cpu_scratch:                        /* by CPU: guest rsp, then the CPU's entry stack pointer; one line each */
    .skip 64 * NR_CPUS

    .section .note.GNU-stack, "", @progbits
