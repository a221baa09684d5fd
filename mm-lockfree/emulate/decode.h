/* SPDX-License-Identifier: MIT */
/* Decoder for the instructions with which guests write page-table entries (Intel SDM vol. 2; 64-bit mode only). */
#ifndef PT_EMULATE_DECODE_H
#define PT_EMULATE_DECODE_H

#include "base/types.h"

enum pte_op {
    PTE_OP_MOV, PTE_OP_XCHG, PTE_OP_ADD, PTE_OP_OR, PTE_OP_AND, PTE_OP_SUB, PTE_OP_XOR,
    PTE_OP_BTS, PTE_OP_BTR, PTE_OP_BTC, PTE_OP_CMPXCHG, PTE_OP_XADD, PTE_OP_STOS,
};

/* Register operands are byte offsets into the saved registers (struct cpu_regs order). */
#define REG_NONE 0xff
#define REG_RIP  0xfe

struct pte_insn {
    u8 bytes[16];
    u8 len, op, size;        /* size of the memory operand in bytes: 1, 2, 4, 8 */
    u8 base, index, scale;   /* offsets, REG_NONE, REG_RIP; scale as a shift */
    u8 reg;                  /* register operand, or REG_NONE: @imm */
    u8 rep;
    s32 disp;
    s64 imm;
};

/* Decodes the instruction at @bytes, of which @avail (<= 15) may be read.  0, or -1: not one of the known forms. */
int decode_pte_insn(const u8 *bytes, unsigned avail, struct pte_insn *out);

/* The address of the memory operand; @regs: saved registers, @rip: of the instruction. */
static inline u64 pte_insn_ea(const struct pte_insn *i, const void *regs, u64 rip)
{
    const char *r = regs;
    u64 ea = (u64)(s64)i->disp;

    if (i->base == REG_RIP)
        return ea + rip + i->len;
    if (i->base != REG_NONE)
        ea += *(const u64 *)(const void *)(r + i->base);
    if (i->index != REG_NONE)
        ea += *(const u64 *)(const void *)(r + i->index) << i->scale;
    return ea;
}

#endif
