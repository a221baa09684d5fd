/* SPDX-License-Identifier: MIT */
/* The arithmetic of decoded page-table writes: computed without side effects, so that a lost race can be
 * repeated, and committed to registers and flags once the write took place. */
#ifndef PT_EMULATE_OP_H
#define PT_EMULATE_OP_H

#include "emulate/decode.h"

static inline u64 op_mask(unsigned size) { return ~0ull >> (64 - 8 * size); }

enum {
    FLAG_CF = 0x001, FLAG_PF = 0x004, FLAG_AF = 0x010, FLAG_ZF = 0x040, FLAG_SF = 0x080, FLAG_DF = 0x400,
    FLAG_OF = 0x800,
};
#define FLAGS_STATUS ((u64)(FLAG_CF | FLAG_PF | FLAG_AF | FLAG_ZF | FLAG_SF | FLAG_OF))

static inline u64 *op_reg_at(void *regs, unsigned off) { return (u64 *)(void *)((char *)regs + off); }

static inline u64 op_reg(const void *regs, unsigned off)
{
    return *(const u64 *)(const void *)((const char *)regs + off);
}

/* The second operand, in the low @i->size bytes; above them anything. */
static inline u64 op_source(const struct pte_insn *i, const void *regs)
{
    if (i->reg == REG_NONE)
        return (u64)i->imm;
    return op_reg(regs, i->reg & ~7u) >> (8 * (i->reg & 7));
}

/* Which bit of the operand a bit test means. */
static inline unsigned op_bit(const struct pte_insn *i, u64 src)
{
    return (unsigned)src & (8u * i->size - 1);
}

/* For pte_op_compute(): what the less frequent operations make of operand @v.  False: nothing is written. */
bool pte_op_value(const struct pte_insn *i, u64 v, u64 src, const void *regs, u64 *result);

/* What the instruction writes.  @old: the 8-byte entry that holds the operand, @off: the byte in it where
 * the operand starts (@off + @i->size <= 8), @regs: saved registers.  *@new: the entry afterwards.  False:
 * nothing is written (a cmpxchg that does not match), and *@new is untouched. */
static inline bool pte_op_compute(const struct pte_insn *i, u64 old, unsigned off, const void *regs, u64 *new)
{
    u64 src = op_source(i, regs), mask = op_mask(i->size) << (8 * off), v;

    switch (i->op) {
    case PTE_OP_MOV:
    case PTE_OP_XCHG:
        v = src << (8 * off);
        break;
    case PTE_OP_AND:
        v = old & (src << (8 * off));
        break;
    case PTE_OP_BTR:
        v = old & ~(1ull << (op_bit(i, src) + 8 * off));
        break;
    default:
        if (!pte_op_value(i, old >> (8 * off), src, regs, &v))
            return false;
        v <<= 8 * off;
    }
    *new = old ^ ((old ^ v) & mask);
    return true;
}

/* SF, ZF and PF of the low @size bytes of @r. */
static inline u64 op_szp(u64 r, unsigned size)
{
    unsigned unused = 64 - 8 * size;
    u64 top = r << unused;

    return (top ? 0 : FLAG_ZF) | (top >> 63 ? FLAG_SF : 0) | (__builtin_parity(r & 0xff) ? 0 : FLAG_PF);
}

/* For pte_op_commit(): everything but the most frequent cases. */
void pte_op_commit_other(const struct pte_insn *i, u64 old, u64 new, unsigned off, void *regs);

/* Registers and flags after the entry at which pte_op_compute() looked went from @old to @new (equal where it
 * said false).  RIP stays.  Undefined flags become 0, or for bit tests stay. */
static inline void pte_op_commit(const struct pte_insn *i, u64 old, u64 new, unsigned off, void *regs)
{
    u64 *flags = op_reg_at(regs, REGS_RFLAGS);

    switch (i->op) {
    case PTE_OP_MOV:
        return;
    case PTE_OP_XCHG:
        if (unlikely(i->size != 8))
            break;
        *op_reg_at(regs, i->reg) = old;
        return;
    case PTE_OP_AND:
        *flags = (*flags & ~FLAGS_STATUS) | op_szp(new >> (8 * off), i->size);
        return;
    case PTE_OP_BTR:
        *flags = (*flags & ~FLAG_CF) | (old >> (op_bit(i, op_source(i, regs)) + 8 * off) & 1);
        return;
    }
    pte_op_commit_other(i, old, new, off, regs);
}

#endif
