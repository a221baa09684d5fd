/* SPDX-License-Identifier: MIT */
/* BUG_ON for broken state of our own (always compiled in), ASSERT as an early alarm in debug builds. */
#ifndef PT_BASE_BUG_H
#define PT_BASE_BUG_H

#include "base/types.h"

/* Bound by the environment: reports and stops the machine (or the test process). */
void env_bug(const char *file, int line, const char *what) __noreturn;

#define BUG_ON(c)  do { if (unlikely(c)) env_bug(__FILE__, __LINE__, #c); } while (0)
#define BUG()      env_bug(__FILE__, __LINE__, "unreachable")
#ifdef PT_DEBUG
#define ASSERT(c)  BUG_ON(!(c))
#else
#define ASSERT(c)  ((void)sizeof((c) ? 1 : 0))
#endif

#endif
