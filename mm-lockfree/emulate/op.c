/* SPDX-License-Identifier: MIT */
/* Less frequent arithmetic, and registers and flags (Intel SDM vol. 1, 3.4.3). */
#include "emulate/op.h"

#define OFF_RAX 80
#define OFF_RCX 88
#define OFF_RDI 112
#define OFF_RFLAGS 144
#define CF 0x001ull
#define PF 0x004ull
#define AF 0x010ull
#define ZF 0x040ull
#define SF 0x080ull
#define DF 0x400ull
#define OF 0x800ull

static u64 *reg(void *regs, unsigned off) { return (u64 *)(void *)((char *)regs + off); }

u64 pte_op_value(const struct pte_insn *i, u64 v, u64 src, const void *regs)
{
    (void)regs;
    switch (i->op) {
    case PTE_OP_ADD:
    case PTE_OP_XADD:
        return v + src;
    case PTE_OP_SUB:
        return v - src;
    case PTE_OP_OR:
        return v | src;
    case PTE_OP_XOR:
        return v ^ src;
    case PTE_OP_BTS:
        return v | 1ull << i->imm;
    case PTE_OP_BTC:
        return v ^ 1ull << i->imm;
    default:
        return v;
    }
}

/* A register write of @size bytes: 4 bytes clear the upper half, 1 and 2 leave the rest. */
static void write_reg(void *regs, u8 off, unsigned size, u64 v)
{
    u64 *r = reg(regs, off & ~7u);
    unsigned shift = 8 * (off & 7);
    u64 mask = op_mask(size) << shift;

    *r = size >= 4 ? v & op_mask(size) : (*r & ~mask) | (v << shift & mask);
}

static u64 szp(u64 r, unsigned size)
{
    return (r & op_mask(size) ? 0 : ZF) | (r >> (8 * size - 1) & 1 ? SF : 0) | (__builtin_parity(r & 0xff) ? 0 : PF);
}

static u64 add_flags(u64 a, u64 b, u64 r, unsigned size)
{
    u64 top = 8 * size - 1;

    return szp(r, size) | ((r & op_mask(size)) < a ? CF : 0) | ((a ^ b ^ r) & 16 ? AF : 0) |
           (((a ^ r) & (b ^ r)) >> top & 1 ? OF : 0);
}

static u64 sub_flags(u64 a, u64 b, unsigned size)
{
    u64 r = a - b, top = 8 * size - 1;

    return szp(r, size) | (a < b ? CF : 0) | ((a ^ b ^ r) & 16 ? AF : 0) | (((a ^ b) & (a ^ r)) >> top & 1 ? OF : 0);
}

void pte_op_commit(const struct pte_insn *i, u64 old, u64 new, unsigned off, void *regs)
{
    u64 mask = op_mask(i->size), a = old >> (8 * off) & mask, r = new >> (8 * off) & mask;
    u64 src = op_source(i, regs), *fl = reg(regs, OFF_RFLAGS), f = 0;
    const u64 all = CF | PF | AF | ZF | SF | OF;

    switch (i->op) {
    case PTE_OP_MOV:
        return;
    case PTE_OP_XCHG:
        write_reg(regs, i->reg, i->size, a);
        return;
    case PTE_OP_STOS: {
        *reg(regs, OFF_RDI) += *fl & DF ? -(u64)i->size : i->size;
        if (i->rep)
            --*reg(regs, OFF_RCX);
        return;
    }
    case PTE_OP_AND:
    case PTE_OP_OR:
    case PTE_OP_XOR:
        f = szp(r, i->size);
        break;
    case PTE_OP_BTS:
    case PTE_OP_BTR:
    case PTE_OP_BTC:
        *fl = (*fl & ~CF) | (a >> i->imm & 1);
        return;
    case PTE_OP_ADD:
        f = add_flags(a, src, r, i->size);
        break;
    case PTE_OP_XADD:
        f = add_flags(a, src, r, i->size);
        write_reg(regs, i->reg, i->size, a);
        break;
    case PTE_OP_SUB:
        f = sub_flags(a, src, i->size);
        break;
    case PTE_OP_CMPXCHG: {
        u64 acc = *reg(regs, OFF_RAX) & mask;

        f = sub_flags(acc, a, i->size);
        if (acc != a)
            write_reg(regs, OFF_RAX, i->size, a);
        break;
    }
    }
    *fl = (*fl & ~all) | f;
}
