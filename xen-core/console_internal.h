/* SPDX-License-Identifier: MIT */
/* Between console.c, panic.c and main.c. */
#ifndef PT_CONSOLE_INTERNAL_H
#define PT_CONSOLE_INTERNAL_H

#include <stdarg.h>

void console_setup(void);
void console_break_lock(void);           /* panic: never wait for the lock again */
void vprintk(const char *fmt, va_list ap);

#endif
