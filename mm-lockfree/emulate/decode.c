/* SPDX-License-Identifier: MIT */
/* Decoder for writes to page-table entries; refuses everything it does not know. */
#include "emulate/decode.h"

#define NO_OP (-1)

/* By bits 3..5 of the opcode (00..39) or by ModRM.reg (80, 81, 83); the last is cmp, which writes nothing. */
static const s8 arithmetic[8] = {
    PTE_OP_ADD, PTE_OP_OR, PTE_OP_ADC, PTE_OP_SBB, PTE_OP_AND, PTE_OP_SUB, PTE_OP_XOR, NO_OP,
};

/* Memory operand from ModRM; the low three bits of its reg field in *@ext.  False: a register. */
static bool memory(struct insn_cursor *c, const struct insn_prefix *p, struct pte_insn *o, unsigned *ext)
{
    struct insn_modrm m = insn_modrm(c, p, &o->mem);

    *ext = m.reg & 7;
    return m.mod != 3;
}

/* Memory and register operand, for @op. */
static int with_register(struct insn_cursor *c, const struct insn_prefix *p, struct pte_insn *o, int op)
{
    struct insn_modrm m = insn_modrm(c, p, &o->mem);

    o->reg = insn_reg(m.reg, o->size, p->rex);
    return m.mod == 3 ? NO_OP : op;
}

/* Opcodes of one byte: the operation, or NO_OP. */
static int one_byte(struct insn_cursor *c, const struct insn_prefix *p, u8 opcode, struct pte_insn *o)
{
    unsigned ext;
    int op;

    o->size = opcode & 1 ? insn_full_size(p) : 1;
    if (opcode < 0x40 && (opcode & 7) < 2)
        return with_register(c, p, o, arithmetic[opcode >> 3]);
    switch (opcode) {
    case 0x86: case 0x87:
        return with_register(c, p, o, PTE_OP_XCHG);
    case 0x88: case 0x89:
        return with_register(c, p, o, PTE_OP_MOV);
    case 0x80: case 0x81: case 0x83:
        if (!memory(c, p, o, &ext))
            return NO_OP;
        op = arithmetic[ext];
        if (op != NO_OP)
            o->imm = insn_imm(c, opcode == 0x81 ? MIN(o->size, 4) : 1);
        return op;
    case 0xc6: case 0xc7:
        if (!memory(c, p, o, &ext) || ext)
            return NO_OP;
        o->imm = insn_imm(c, MIN(o->size, 4));
        return PTE_OP_MOV;
    case 0xf6: case 0xf7:
        if (!memory(c, p, o, &ext))
            return NO_OP;
        return ext == 2 ? PTE_OP_NOT : ext == 3 ? PTE_OP_NEG : NO_OP;
    case 0xfe: case 0xff:
        if (!memory(c, p, o, &ext))
            return NO_OP;
        return ext == 0 ? PTE_OP_INC : ext == 1 ? PTE_OP_DEC : NO_OP;
    case 0xaa: case 0xab:
        o->mem = (struct insn_mem){ REGS_RDI, REG_NONE, 0, SEG_NONE, 0 };    /* ES, whatever the prefix */
        o->reg = REGS_RAX;
        o->rep = p->rep;
        return PTE_OP_STOS;
    default:
        return NO_OP;
    }
}

/* Opcodes 0F xx: the operation, or NO_OP. */
static int two_byte(struct insn_cursor *c, const struct insn_prefix *p, struct pte_insn *o)
{
    static const s8 bit_ops[8] = { NO_OP, NO_OP, NO_OP, NO_OP, NO_OP, PTE_OP_BTS, PTE_OP_BTR, PTE_OP_BTC };
    u8 opcode = insn_byte(c);
    unsigned ext;
    int op;

    o->size = insn_full_size(p);
    switch (opcode) {
    case 0xb0: case 0xc0:
        o->size = 1;
        __attribute__((fallthrough));
    case 0xb1: case 0xc1:
        return with_register(c, p, o, opcode < 0xc0 ? PTE_OP_CMPXCHG : PTE_OP_XADD);
    case 0xab: case 0xb3: case 0xbb:
        o->bit_string = true;
        return with_register(c, p, o, bit_ops[opcode >> 3 & 7]);
    case 0xba:
        if (!memory(c, p, o, &ext))
            return NO_OP;
        op = bit_ops[ext];
        if (op != NO_OP)
            o->imm = insn_imm(c, 1) & (8 * o->size - 1);
        return op;
    case 0xc7:
        /* With REX.W it is cmpxchg16b, which is wider than an entry. */
        if (!memory(c, p, o, &ext) || ext != 1 || o->size != 4)
            return NO_OP;
        o->size = 8;
        return PTE_OP_CMPXCHG8B;
    default:
        return NO_OP;
    }
}

int decode_pte_insn(const u8 *bytes, unsigned avail, struct pte_insn *o)
{
    struct insn_cursor c = insn_start(bytes, avail);
    struct insn_prefix p;
    int op, rc;
    u8 b;

    *o = (struct pte_insn){ .reg = REG_NONE };
    b = insn_prefixes(&c, &p);
    op = b == 0x0f ? two_byte(&c, &p, o) : one_byte(&c, &p, b, o);
    if (p.asize || p.ambiguous || p.repne || (p.rep && op != PTE_OP_STOS) ||
        (p.lock && (op == PTE_OP_MOV || op == PTE_OP_STOS)))
        op = NO_OP;
    rc = insn_finish(&c, op != NO_OP);
    if (rc)
        return rc;
    o->op = (u8)op;
    o->len = (u8)c.used;
    return 0;
}
