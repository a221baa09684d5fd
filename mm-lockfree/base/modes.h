/* SPDX-License-Identifier: MIT */
/* Modes that are chosen once at boot and patched into the code. */
#ifndef PT_BASE_MODES_H
#define PT_BASE_MODES_H

#include "base/env.h"

#ifdef HV_HOSTED
extern bool env_ptwr_on;
static inline bool ptwr_on(void) { return env_ptwr_on; }
#else
/* A 5-byte NOP, which becomes a jump when pt_update=ptwr: the default mode pays for no load and no branch. */
static inline __attribute__((always_inline)) bool ptwr_on(void)
{
    __asm__ goto("1: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
                 ".pushsection .altsites, \"a\"\n .balign 8\n .quad 1b, %l[on]\n .popsection\n" :::: on);
    return false;
on:
    return true;
}
#endif

#endif
