/* SPDX-License-Identifier: MIT */
/* Formatted text into a buffer, for the console and for error messages. */
#ifndef PT_VSNPRINTF_H
#define PT_VSNPRINTF_H

#include <stdarg.h>

#include "base/types.h"

/* Writes at most @size bytes to @buf, the last one a NUL, and returns the length that the whole text has
 * (without the NUL), as C's snprintf does.  @buf may be NULL when @size is 0.  Any context.
 *
 * Conversions: %% %c %s %d %i %u %x %X %p, with h, hh, l, ll, z, j and t; flags '-', '0', '#', '+' and ' ';
 * width and precision as digits or '*'.  %p is %#lx.  A NULL string prints as "(null)".  Anything else,
 * floating point and %n among it, is copied out as it stands and takes no argument. */
int pt_vsnprintf(char *buf, size_t size, const char *fmt, va_list ap) __printf(3, 0);
int pt_snprintf(char *buf, size_t size, const char *fmt, ...) __printf(3, 4);

#endif
