/* SPDX-License-Identifier: MIT */
/* Table-free decoder for memory writes; refuses everything it does not know. */
#include "emulate/decode.h"

/* Offsets of rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 .. r15 in the saved registers. */
static const u8 reg_off[16] = { 80, 88, 96, 40, 152, 32, 104, 112, 72, 64, 56, 48, 24, 16, 8, 0 };

struct cursor { const u8 *p; unsigned left, used; };

static bool next(struct cursor *c, u8 *b)
{
    if (!c->left)
        return false;
    *b = *c->p++;
    c->left--;
    c->used++;
    return true;
}

static bool imm(struct cursor *c, unsigned size, s64 *v)
{
    u64 x = 0;

    for (unsigned i = 0; i < size; i++) {
        u8 b;

        if (!next(c, &b))
            return false;
        x |= (u64)b << (8 * i);
    }
    *v = size == 1 ? (s8)x : size == 2 ? (s16)x : size == 4 ? (s32)x : (s64)x;
    return true;
}

/* ModRM with a memory operand. */
static bool modrm(struct cursor *c, u8 rex, struct pte_insn *o, unsigned *reg)
{
    unsigned mod, rm;
    s64 d = 0;
    u8 m, sib;

    if (!next(c, &m))
        return false;
    mod = m >> 6;
    rm = m & 7;
    *reg = (m >> 3 & 7) | (rex & 4) << 1;
    o->base = o->index = REG_NONE;
    if (mod == 3)
        return false;
    if (rm == 4) {
        unsigned idx, base;

        if (!next(c, &sib))
            return false;
        idx = (sib >> 3 & 7) | (rex & 2) << 2;
        base = (sib & 7) | (rex & 1) << 3;
        o->scale = sib >> 6;
        if (idx != 4)
            o->index = reg_off[idx];
        if ((sib & 7) == 5 && mod == 0)
            mod = 4;                       /* disp32, no base */
        else
            o->base = reg_off[base];
    } else if (rm == 5 && mod == 0) {
        o->base = REG_RIP;
        mod = 4;
    } else {
        o->base = reg_off[rm | (rex & 1) << 3];
    }
    if (mod == 1 ? !imm(c, 1, &d) : mod != 0 && !imm(c, 4, &d))
        return false;
    o->disp = (s32)d;
    return true;
}

static u8 reg_operand(unsigned reg, unsigned size, u8 rex)
{
    if (size == 1 && !rex && reg >= 4)
        return (u8)(reg_off[reg - 4] + 1);   /* ah, ch, dh, bh */
    return reg_off[reg];
}

/* Two-byte opcodes 0F xx. */
static int two_byte(struct cursor *c, struct pte_insn *o, u8 rex, unsigned full, bool *lockable)
{
    unsigned reg;
    u8 op;

    if (!next(c, &op))
        return -1;
    o->size = (u8)full;
    *lockable = true;
    switch (op) {
    case 0xb0:
    case 0xc0:
        o->size = 1;
        __attribute__((fallthrough));
    case 0xb1:
    case 0xc1:
        o->op = op >= 0xc0 ? PTE_OP_XADD : PTE_OP_CMPXCHG;
        if (!modrm(c, rex, o, &reg))
            return -1;
        o->reg = reg_operand(reg, o->size, rex);
        return 0;
    case 0xba:
        if (!modrm(c, rex, o, &reg) || !imm(c, 1, &o->imm))
            return -1;
        o->imm &= full * 8 - 1;
        switch (reg & 7) {
        case 5: o->op = PTE_OP_BTS; return 0;
        case 6: o->op = PTE_OP_BTR; return 0;
        case 7: o->op = PTE_OP_BTC; return 0;
        }
        return -1;
    default:
        return -1;                         /* bit offsets in a register may reach beyond the operand: not known here */
    }
}

int decode_pte_insn(const u8 *bytes, unsigned avail, struct pte_insn *o)
{
    struct cursor c = { bytes, avail > 15 ? 15 : avail, 0 };
    bool lock = false, rep = false, osize = false, lockable = false;
    unsigned full, reg;
    u8 b, rex = 0;

    *o = (struct pte_insn){ .base = REG_NONE, .index = REG_NONE, .reg = REG_NONE };
    for (;;) {
        if (!next(&c, &b))
            return -1;
        if (b == 0xf0)
            lock = true;
        else if (b == 0x66)
            osize = true;
        else if (b == 0xf3)
            rep = true;
        else if (b != 0x3e && b != 0x2e && b != 0x26 && b != 0x36)   /* segments without effect */
            break;
    }
    if ((b & 0xf0) == 0x40) {
        rex = b;
        if (!next(&c, &b))
            return -1;
    }
    full = rex & 8 ? 8 : osize ? 2 : 4;
    if (b == 0x0f) {
        if (rep || two_byte(&c, o, rex, full, &lockable))
            return -1;
    } else {
        o->size = (u8)(b & 1 ? full : 1);
        switch (b) {
        case 0x88: case 0x89:              /* mov r, m */
        case 0x86: case 0x87:              /* xchg */
        case 0x00: case 0x01: case 0x08: case 0x09: case 0x20: case 0x21: case 0x28: case 0x29: case 0x30: case 0x31:
            o->op = b >= 0x88 ? PTE_OP_MOV : b >= 0x86 ? PTE_OP_XCHG : b < 0x08 ? PTE_OP_ADD : b < 0x20 ? PTE_OP_OR
                : b < 0x28 ? PTE_OP_AND : b < 0x30 ? PTE_OP_SUB : PTE_OP_XOR;
            lockable = o->op != PTE_OP_MOV;
            if (!modrm(&c, rex, o, &reg))
                return -1;
            o->reg = reg_operand(reg, o->size, rex);
            break;
        case 0xc6: case 0xc7:              /* mov imm, m */
            o->op = PTE_OP_MOV;
            if (!modrm(&c, rex, o, &reg) || (reg & 7) || !imm(&c, MIN(o->size, 4), &o->imm))
                return -1;
            break;
        case 0x80: case 0x81: case 0x83: { /* group 1 */
            static const s8 op[8] = { PTE_OP_ADD, PTE_OP_OR, -1, -1, PTE_OP_AND, PTE_OP_SUB, PTE_OP_XOR, -1 };

            if (!modrm(&c, rex, o, &reg) || op[reg & 7] < 0 || !imm(&c, b == 0x81 ? MIN(o->size, 4) : 1, &o->imm))
                return -1;
            o->op = (u8)op[reg & 7];
            lockable = true;
            break;
        }
        case 0xaa: case 0xab:              /* stos */
            o->op = PTE_OP_STOS;
            o->base = reg_off[7];
            o->reg = reg_off[0];
            o->rep = rep;
            break;
        default:
            return -1;
        }
        if (rep && o->op != PTE_OP_STOS)
            return -1;
    }
    if (lock && !lockable)
        return -1;
    o->len = (u8)c.used;
    for (unsigned i = 0; i < o->len; i++)
        o->bytes[i] = bytes[i];
    return 0;
}
