/* SPDX-License-Identifier: MIT */
/* Entry points called by entry.S, and what the vectors need from elsewhere. */
#ifndef PT_ARCH_TRAPS_H
#define PT_ARCH_TRAPS_H

#include "arch/cpu.h"

void trap_handler(struct cpu_regs *regs);
bool syscall_handler(struct cpu_regs *regs);      /* true: nothing but rax changed, SYSRET may be used */
void syscall32_handler(struct cpu_regs *regs);
void resume_frame(struct cpu_regs *regs) __noreturn;

void timer_interrupt(void);
void serial_interrupt(void);
void nmi_interrupt(struct cpu_regs *regs);        /* on the NMI stack: may only stop this CPU */
void panic_regs(const struct cpu_regs *regs, const char *fmt, ...) __printf(2, 3) __noreturn;

#endif
