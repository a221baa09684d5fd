/* SPDX-License-Identifier: MIT */
/* Entry point, Xen notes, and the assembly ends of traps, upcalls and mode switches. */
#define __ASSEMBLY__
#include <xen/elfnote.h>

#define HYPERCALL_IRET 23

    .macro NOTE type, value:vararg
    .pushsection .note.Xen, "a", @note
    .balign 4
    .long 4, 2f - 1f, \type
    .asciz "Xen"
1:  \value
2:  .balign 4
    .popsection
    .endm

    NOTE XEN_ELFNOTE_ENTRY, .quad _start
    NOTE XEN_ELFNOTE_VIRT_BASE, .quad 0xffffffff80000000
    NOTE XEN_ELFNOTE_PADDR_OFFSET, .quad 0
    NOTE XEN_ELFNOTE_XEN_VERSION, .asciz "xen-3.0"
    NOTE XEN_ELFNOTE_GUEST_OS, .asciz "ptarmigan-test"
    NOTE XEN_ELFNOTE_LOADER, .asciz "generic"
    NOTE XEN_ELFNOTE_HYPERCALL_PAGE, .quad hypercall_page

    .section .hypercall_page, "ax"
    .globl hypercall_page
hypercall_page:
    .skip 4096, 0xcc

    .section .text.start, "ax"
    .globl _start
_start:                                     /* rsi: start_info */
    cld
    lea stacks + 16384(%rip), %rsp
    mov %rsi, %rdi
    xor %ebp, %ebp
    call guest_main
    ud2

    .globl vcpu_start
vcpu_start:                                 /* further vCPUs; rdi: what the context says */
    cld
    call vcpu_main
    ud2

/* Traps.  On entry: rcx, r11, [error code], rip, cs, rflags, rsp, ss. */
    .macro ENTRY vec, err
    .balign 16
    pop %rcx
    pop %r11
    .if !\err
    push $0
    .endif
    push $\vec
    jmp trap_common
    .endm

    .balign 16
    .globl trap_stubs
trap_stubs:
    .set v, 0
    .rept 256
    .if v == 8 || (v >= 10 && v <= 14) || v == 17
    ENTRY v, 1
    .else
    ENTRY v, 0
    .endif
    .set v, v + 1
    .endr

    .globl event_entry
    .balign 16
event_entry:
    ENTRY 256, 0
    .globl syscall_entry
syscall_entry:
    ENTRY 257, 0
    .globl syscall32_entry
syscall32_entry:
    ENTRY 259, 0
    .globl failsafe_entry
    .balign 16
failsafe_entry:                             /* rcx, r11, ds, es, fs, gs, rip, ... */
    pop %rcx
    pop %r11
    add $32, %rsp
    push $0
    push $258
    jmp trap_common

    .globl trap_common
trap_common:
    push %rdi; push %rsi; push %rdx; push %rcx; push %rax
    push %r8;  push %r9;  push %r10; push %r11
    push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
    cld
    mov %rsp, %rdi
    call trap_handler
    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
    pop %r11; pop %r10; pop %r9;  pop %r8
    pop %rax; pop %rcx; pop %rdx; pop %rsi; pop %rdi
    add $16, %rsp
    push $0
    push %rcx
    push %r11
    push %rax
    mov $HYPERCALL_IRET, %eax
    syscall
    ud2

/* int run_guarded(void (*fn)(void *), void *arg, u64 *save_sp): 0 when @fn came back, 1 when leave(*save_sp) was
 * called. */
    .globl run_guarded
run_guarded:
    push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
    mov %rsp, (%rdx)
    mov %rdi, %rax
    mov %rsi, %rdi
    call *%rax
    xor %eax, %eax
1:  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
    ret

/* noreturn void leave(u64 sp): continues behind the run_guarded or enter_frame that stored @sp. */
    .globl leave
leave:
    mov %rdi, %rsp
    mov $1, %eax
    jmp 1b

/* int enter_frame(const struct frame_iret *f, u64 *save_sp, u64 rdi, u64 rsi): the iret hypercall with @f; comes back
 * through leave(). */
    .globl enter_frame
enter_frame:
    push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
    mov %rsp, (%rsi)
    mov %rdi, %rsp
    mov %rdx, %rdi
    mov %rcx, %rsi
    mov $HYPERCALL_IRET, %eax
    syscall
    ud2

/* void call_preserving(u64 regs[14]): hypercall rax with all registers from @regs (rax rbx rdx rsi rdi rbp r8 r9 r10
 * r12 r13 r14 r15 rflags); stores them back as they are afterwards. */
    .globl call_preserving
call_preserving:
    push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
    push %rdi
    pushq 104(%rdi)
    popfq
    mov 0(%rdi), %rax;   mov 8(%rdi), %rbx;   mov 16(%rdi), %rdx;  mov 24(%rdi), %rsi
    mov 40(%rdi), %rbp;  mov 48(%rdi), %r8;   mov 56(%rdi), %r9;   mov 64(%rdi), %r10
    mov 72(%rdi), %r12;  mov 80(%rdi), %r13;  mov 88(%rdi), %r14;  mov 96(%rdi), %r15
    mov 32(%rdi), %rdi
    syscall
    mov (%rsp), %rcx
    mov %rdi, 32(%rcx)
    mov %rcx, %rdi
    mov %rax, 0(%rdi);   mov %rbx, 8(%rdi);   mov %rdx, 16(%rdi);  mov %rsi, 24(%rdi)
    mov %rbp, 40(%rdi);  mov %r8, 48(%rdi);   mov %r9, 56(%rdi);   mov %r10, 64(%rdi)
    mov %r12, 72(%rdi);  mov %r13, 80(%rdi);  mov %r14, 88(%rdi);  mov %r15, 96(%rdi)
    pushfq
    popq 104(%rdi)
    cld
    pop %rdi
    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
    ret

/* The page that user mode runs: position-independent snippets, each ending with a trap. */
    .section .user, "ax"
    .balign 4096
    .globl user_page, user_syscall, user_ud2, user_int3, user_int80, user_read, user_write, user_rdmsr, user_cpuid
    .globl user_int20, user_in, user_gs, user_cr3, user_lock, user_spin, user_int0d, user_plain_cpuid
user_page:
user_syscall:
    syscall
    ud2
user_ud2:
    ud2
user_int3:
    int3
    ud2
user_int80:
    int $0x80
    ud2
user_int20:
    int $0x20
    ud2
user_int0d:
    int $0x0d
    ud2
user_read:                                  /* rdi: address (registers come from enter_user) */
    mov (%rdi), %rax
    syscall
user_write:
    mov %rsi, (%rdi)
    syscall
user_lock:
    lock andb $0xfd, (%rdi)
    syscall
user_rdmsr:
    mov $0xc0000100, %ecx
    rdmsr
    ud2
user_cpuid:
    mov $0x40000000, %eax
    xor %ecx, %ecx
    ud2
    .ascii "xen"
    cpuid
    syscall
user_plain_cpuid:
    ud2
    .ascii "xe!"
    cpuid
    syscall
user_in:
    mov $0x3f8, %edx
    in %dx, %al
    ud2
user_gs:
    mov %gs:0, %rax
    syscall
user_cr3:
    mov %cr3, %rax
    ud2
user_spin:
    pause
    incq (%rdi)
    jmp user_spin
    .balign 4096

    .section .note.GNU-stack, "", @progbits
