/* SPDX-License-Identifier: MIT */
/* The serial console: the hypervisor's messages, the guest's output, and input with escape keys. */
#ifndef PT_CONSOLE_H
#define PT_CONSOLE_H

#include "base/types.h"

/* Formats one message (a line ends with \n) and writes it to the console.  Any context, any CPU. */
void printk(const char *fmt, ...) __printf(1, 2);

/* Writes guest text.  Whole lines are buffered per call; never blocks for longer than the UART needs. */
void console_write(const char *buf, size_t len);

/* Takes up to @max input bytes; returns how many. */
size_t console_read(char *buf, size_t max);

/* Receives pending UART input: called from the serial interrupt and from the timer tick when there is
 * no interrupt.  Returns true when there is input for the guest. */
bool console_poll_input(void);

/* Stops every CPU after writing the message, the registers of the caller and a backtrace; then
 * reboots or halts as the options say. */
void panic(const char *fmt, ...) __printf(1, 2) __noreturn;

/* A boot that cannot go on: one line "ptarmigan: fatal: ..." and a clean stop. */
void boot_fatal(const char *fmt, ...) __printf(1, 2) __noreturn;

struct cpu_regs;
void show_regs(const struct cpu_regs *regs);

#endif
