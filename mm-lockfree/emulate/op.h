/* SPDX-License-Identifier: MIT */
/* The arithmetic of decoded page-table writes: computed without side effects, so that a lost race can be repeated, and
 * committed to registers and flags once the write took place. */
#ifndef PT_EMULATE_OP_H
#define PT_EMULATE_OP_H

#include "emulate/decode.h"

static inline u64 op_mask(unsigned size) { return size == 8 ? ~0ull : (1ull << (8 * size)) - 1; }

static inline u64 op_source(const struct pte_insn *i, const void *regs)
{
    u64 v;

    if (i->reg == REG_NONE)
        return (u64)i->imm & op_mask(i->size);
    v = *(const u64 *)(const void *)((const char *)regs + (i->reg & ~7u));
    return v >> (8 * (i->reg & 7)) & op_mask(i->size);
}

u64 pte_op_value(const struct pte_insn *i, u64 old, u64 src, const void *regs);

/* @old: the 8-byte entry; @off: where in it the operand lies.  *@new: the entry after the instruction.  False: the
 * instruction writes nothing (a cmpxchg that does not match). */
static inline bool pte_op_compute(const struct pte_insn *i, u64 old, unsigned off, const void *regs, u64 *new)
{
    u64 mask = op_mask(i->size), src = op_source(i, regs), v = old >> (8 * off) & mask;

    switch (i->op) {
    case PTE_OP_XCHG:
    case PTE_OP_MOV:
    case PTE_OP_STOS:
        v = src;
        break;
    case PTE_OP_AND:
        v &= src;
        break;
    case PTE_OP_BTR:
        v &= ~(1ull << i->imm);
        break;
    case PTE_OP_CMPXCHG:
        if (v != (*(const u64 *)(const void *)((const char *)regs + 80) & mask))
            return false;
        v = src;
        break;
    default:
        v = pte_op_value(i, v, src, regs) & mask;
    }
    *new = (old & ~(mask << (8 * off))) | v << (8 * off);
    return true;
}

/* Registers and flags after the entry went from @old to @new (equal for a cmpxchg that did not match). */
void pte_op_commit(const struct pte_insn *i, u64 old, u64 new, unsigned off, void *regs);

#endif
