/* SPDX-License-Identifier: MIT */
/* Less frequent arithmetic, and registers and flags (Intel SDM vol. 1, 3.4.3). */
#include "emulate/op.h"

/* EDX:EAX or ECX:EBX. */
static u64 pair(const void *regs, unsigned high, unsigned low)
{
    return op_reg(regs, high) << 32 | (u32)op_reg(regs, low);
}

bool pte_op_value(const struct pte_insn *i, u64 v, u64 src, const void *regs, u64 *result)
{
    u64 bit = 1ull << op_bit(i, src), carry = op_reg(regs, REGS_RFLAGS) & FLAG_CF;

    switch (i->op) {
    case PTE_OP_ADD:
    case PTE_OP_XADD: *result = v + src; return true;
    case PTE_OP_ADC:  *result = v + src + carry; return true;
    case PTE_OP_SUB:  *result = v - src; return true;
    case PTE_OP_SBB:  *result = v - src - carry; return true;
    case PTE_OP_OR:   *result = v | src; return true;
    case PTE_OP_XOR:  *result = v ^ src; return true;
    case PTE_OP_INC:  *result = v + 1; return true;
    case PTE_OP_DEC:  *result = v - 1; return true;
    case PTE_OP_NOT:  *result = ~v; return true;
    case PTE_OP_NEG:  *result = -v; return true;
    case PTE_OP_BTS:  *result = v | bit; return true;
    case PTE_OP_BTC:  *result = v ^ bit; return true;
    case PTE_OP_STOS: *result = src; return true;
    case PTE_OP_CMPXCHG:
        *result = src;
        return !((v ^ op_reg(regs, REGS_RAX)) & op_mask(i->size));
    case PTE_OP_CMPXCHG8B:
        *result = pair(regs, REGS_RCX, REGS_RBX);
        return v == pair(regs, REGS_RDX, REGS_RAX);
    default:
        return false;
    }
}

/* A register write of @size bytes: 4 bytes clear the upper half, 1 and 2 leave the rest. */
static void write_reg(void *regs, u8 off, unsigned size, u64 v)
{
    u64 *r = op_reg_at(regs, off & ~7u);
    unsigned shift = 8 * (off & 7);
    u64 mask = op_mask(size) << shift;

    *r = size >= 4 ? v & op_mask(size) : (*r & ~mask) | (v << shift & mask);
}

/* Flags of @r = @a + @b, perhaps + 1.  The top bit carries where two of a, b and not r have it set. */
static u64 add_flags(u64 a, u64 b, u64 r, unsigned size)
{
    u64 carry = (a & b) | ((a | b) & ~r), overflow = (a ^ r) & (b ^ r), f = op_szp(r, size);
    unsigned top = 8 * size - 1;

    f |= carry >> top & 1 ? FLAG_CF : 0;
    f |= overflow >> top & 1 ? FLAG_OF : 0;
    return f | ((a ^ b ^ r) & FLAG_AF);        /* AF lies where the low digit carries to */
}

/* Flags of @r = @a - @b, perhaps - 1.  That is b + r = a. */
static u64 sub_flags(u64 a, u64 b, u64 r, unsigned size)
{
    u64 borrow = (b & r) | ((b | r) & ~a), overflow = (a ^ b) & (a ^ r), f = op_szp(r, size);
    unsigned top = 8 * size - 1;

    f |= borrow >> top & 1 ? FLAG_CF : 0;
    f |= overflow >> top & 1 ? FLAG_OF : 0;
    return f | ((a ^ b ^ r) & FLAG_AF);
}

static void commit_cmpxchg8b(u64 old, void *regs)
{
    u64 *flags = op_reg_at(regs, REGS_RFLAGS);

    if (old == pair(regs, REGS_RDX, REGS_RAX)) {
        *flags |= FLAG_ZF;
        return;
    }
    *flags &= ~FLAG_ZF;
    *op_reg_at(regs, REGS_RAX) = (u32)old;
    *op_reg_at(regs, REGS_RDX) = old >> 32;
}

static void commit_stos(const struct pte_insn *i, void *regs)
{
    *op_reg_at(regs, REGS_RDI) += *op_reg_at(regs, REGS_RFLAGS) & FLAG_DF ? -(u64)i->size : i->size;
    if (i->rep)
        --*op_reg_at(regs, REGS_RCX);
}

void pte_op_commit_other(const struct pte_insn *i, u64 old, u64 new, unsigned off, void *regs)
{
    unsigned size = i->size;
    u64 a = old >> (8 * off), r = new >> (8 * off);    /* before and after, with anything above the operand */
    u64 src = op_source(i, regs), *flags = op_reg_at(regs, REGS_RFLAGS), f;

    switch (i->op) {
    case PTE_OP_NOT:
        return;
    case PTE_OP_XCHG:
        write_reg(regs, i->reg, size, a);
        return;
    case PTE_OP_BTS:
    case PTE_OP_BTC:
        *flags = (*flags & ~FLAG_CF) | (a >> op_bit(i, src) & 1);
        return;
    case PTE_OP_STOS:
        commit_stos(i, regs);
        return;
    case PTE_OP_CMPXCHG8B:
        commit_cmpxchg8b(old, regs);
        return;
    case PTE_OP_OR:
    case PTE_OP_XOR:
        f = op_szp(r, size);
        break;
    case PTE_OP_ADD:
    case PTE_OP_ADC:
        f = add_flags(a, src, r, size);
        break;
    case PTE_OP_XADD:
        f = add_flags(a, src, r, size);
        write_reg(regs, i->reg, size, a);
        break;
    case PTE_OP_SUB:
    case PTE_OP_SBB:
        f = sub_flags(a, src, r, size);
        break;
    case PTE_OP_NEG:
        f = sub_flags(0, a, r, size);
        break;
    case PTE_OP_INC:
        f = (add_flags(a, 1, r, size) & ~FLAG_CF) | (*flags & FLAG_CF);
        break;
    case PTE_OP_DEC:
        f = (sub_flags(a, 1, r, size) & ~FLAG_CF) | (*flags & FLAG_CF);
        break;
    case PTE_OP_CMPXCHG: {
        u64 acc = op_reg(regs, REGS_RAX);

        f = sub_flags(acc, a, acc - a, size);
        if (!(f & FLAG_ZF))
            write_reg(regs, REGS_RAX, size, a);
        break;
    }
    default:
        return;
    }
    *flags = (*flags & ~FLAGS_STATUS) | f;
}
