/* SPDX-License-Identifier: MIT */
/* Every form of page-table write that the decoder knows, and a generator of random instructions of these
 * forms with registers such that the memory operand lies in run.page. */
#ifndef PT_TEST_INSN_DRAW_H
#define PT_TEST_INSN_DRAW_H

#include "emulate/decode.h"
#include "insn_run.h"

#define GS_BASE    0x12340ull          /* what the test sets */

#define FIRST_ENTRY 100                /* of run.page, of those that may become the operand */
#define ENTRIES     100

#define ALL        0x8d5               /* OF SF ZF AF PF CF */
#define LOGIC      0x8c5               /* AF is undefined */
#define BIT        0x041               /* CF, and ZF stays */

enum operand { REGISTER = 8, BIT_NUMBER, NOTHING };     /* below 8: ModRM.reg extends the opcode */
enum immediate { NO_IMM, IMM8, IMM_FULL };

static const struct form {
    u8 map, opcode, operand, imm, op;
    bool lockable;
    u16 flags;                         /* those that are defined afterwards */
} forms[] = {
#define ARITHMETIC(n, op, flags)                        \
    { 0, 8 * (n),     REGISTER, NO_IMM,   op, true, flags },  \
    { 0, 8 * (n) + 1, REGISTER, NO_IMM,   op, true, flags },  \
    { 0, 0x80,        n,        IMM8,     op, true, flags },  \
    { 0, 0x81,        n,        IMM_FULL, op, true, flags },  \
    { 0, 0x83,        n,        IMM8,     op, true, flags }
#define PAIR(map, opcode, operand, imm, op, lockable, flags)  \
    { map, opcode, operand, imm, op, lockable, flags },       \
    { map, (opcode) + 1, operand, imm, op, lockable, flags }

    ARITHMETIC(0, PTE_OP_ADD, ALL),
    ARITHMETIC(1, PTE_OP_OR, LOGIC),
    ARITHMETIC(2, PTE_OP_ADC, ALL),
    ARITHMETIC(3, PTE_OP_SBB, ALL),
    ARITHMETIC(4, PTE_OP_AND, LOGIC),
    ARITHMETIC(5, PTE_OP_SUB, ALL),
    ARITHMETIC(6, PTE_OP_XOR, LOGIC),
    PAIR(0, 0x86, REGISTER, NO_IMM, PTE_OP_XCHG, true, ALL),
    PAIR(0, 0x88, REGISTER, NO_IMM, PTE_OP_MOV, false, ALL),
    { 0, 0xc6, 0, IMM8, PTE_OP_MOV, false, ALL },
    { 0, 0xc7, 0, IMM_FULL, PTE_OP_MOV, false, ALL },
    PAIR(0, 0xf6, 2, NO_IMM, PTE_OP_NOT, true, ALL),
    PAIR(0, 0xf6, 3, NO_IMM, PTE_OP_NEG, true, ALL),
    PAIR(0, 0xfe, 0, NO_IMM, PTE_OP_INC, true, ALL),
    PAIR(0, 0xfe, 1, NO_IMM, PTE_OP_DEC, true, ALL),
    PAIR(0, 0xaa, NOTHING, NO_IMM, PTE_OP_STOS, false, ALL),
    { 1, 0xab, BIT_NUMBER, NO_IMM, PTE_OP_BTS, true, BIT },
    { 1, 0xb3, BIT_NUMBER, NO_IMM, PTE_OP_BTR, true, BIT },
    { 1, 0xbb, BIT_NUMBER, NO_IMM, PTE_OP_BTC, true, BIT },
    { 1, 0xba, 5, IMM8, PTE_OP_BTS, true, BIT },
    { 1, 0xba, 6, IMM8, PTE_OP_BTR, true, BIT },
    { 1, 0xba, 7, IMM8, PTE_OP_BTC, true, BIT },
    PAIR(1, 0xb0, REGISTER, NO_IMM, PTE_OP_CMPXCHG, true, ALL),
    PAIR(1, 0xc0, REGISTER, NO_IMM, PTE_OP_XADD, true, ALL),
    { 1, 0xc7, 1, NO_IMM, PTE_OP_CMPXCHG8B, true, ALL },
};

/* An encoded instruction with everything that it needs to run. */
struct trial {
    u8 bytes[16];
    unsigned len, size;
    bool lock, rep;
    u64 target, seg_base;              /* address of the operand, and how much of it is segment base */
    struct cpu_regs regs;
};

static u64 fs_base;                    /* the C library's */

static u64 size_mask(unsigned size) { return size == 8 ? ~0ull : (1ull << 8 * size) - 1; }

/* A number from where arithmetic has its corners, or like @other. */
static u64 value(u64 other, unsigned size)
{
    u64 top = 1ull << (8 * size - 1);

    switch (pick(8)) {
    case 0:  return 0;
    case 1:  return ~0ull;
    case 2:  return top - pick(2);
    case 3:  return other;
    case 4:  return ~other + pick(2);
    case 5:  return (u64)pick(40) - 20;
    default: return random64();
    }
}

static u64 inverse(u64 odd)
{
    u64 x = odd;

    for (unsigned i = 0; i < 6; i++)
        x *= 2 - odd * x;
    return x;
}

static bool fits(u64 v, unsigned bytes)
{
    return bytes == 1 ? (s64)v == (s8)v : (s64)v == (s32)v;
}

/* Appends ModRM, SIB and displacement of a memory operand at @want, and loads its registers.  @after:
 * immediate bytes that follow.  Register @avoid is not touched.  False: @want cannot be had in the way
 * that was drawn. */
static bool encode_memory(struct trial *t, unsigned *rex, unsigned reg, u64 want, unsigned after,
                          unsigned avoid)
{
    enum { BASE, BASE_INDEX, INDEX, ABSOLUTE, RELATIVE } kind = pick(5);
    unsigned base = pick(16), index = pick(16), scale = pick(4), mod;
    unsigned disp_bytes = (unsigned[]){ 0, 1, 4 }[pick(3)];
    bool has_index = kind == BASE_INDEX || kind == INDEX;
    bool sib = kind != RELATIVE && (kind != BASE || (base & 7) == 4 || chance(10));
    u64 disp = disp_bytes == 1 ? (u64)(s64)(s8)random64() : disp_bytes ? (u64)(s64)(s32)random64() : 0;

    if (has_index && (index == 4 || index == avoid))
        return false;
    if (kind <= BASE_INDEX && (base == avoid || ((base & 7) == 5 && !disp_bytes)))
        return false;
    if (!has_index) {
        index = 4;
        scale = sib ? scale : 0;
    }
    if (kind >= INDEX) {
        base = 5;
        disp_bytes = 4;
    }
    mod = kind >= INDEX || !disp_bytes ? 0 : disp_bytes == 1 ? 1 : 2;
    t->bytes[t->len++] = (u8)(mod << 6 | (reg & 7) << 3 | (sib ? 4 : base & 7));
    if (sib)
        t->bytes[t->len++] = (u8)(scale << 6 | (index & 7) << 3 | (base & 7));
    *rex |= (reg & 8) >> 1 | (index & 8) >> 2 | (kind <= BASE_INDEX ? (base & 8) >> 3 : 0);
    switch (kind) {
    case BASE:
        *gpr(&t->regs, base) = want - disp;
        break;
    case BASE_INDEX:
        if (base != index) {
            *gpr(&t->regs, index) = random64();
            *gpr(&t->regs, base) = want - disp - (*gpr(&t->regs, index) << scale);
        } else if (scale) {
            *gpr(&t->regs, base) = (want - disp) * inverse(1 + (1ull << scale));
        } else if ((want - disp) & 1) {
            return false;
        } else {
            *gpr(&t->regs, base) = (want - disp) / 2 | random64() << 63;
        }
        break;
    case INDEX:
        disp = (u64)(s64)(s32)((random64() & ~7ull) | (want & 7));
        *gpr(&t->regs, index) = (want - disp) >> scale | (scale ? random64() << (64 - scale) : 0);
        break;
    case ABSOLUTE:
        disp = want;
        break;
    case RELATIVE:
        disp = want - ((u64)run.slot + t->len + 4 + after);
        break;
    }
    if (disp_bytes && !fits(disp, disp_bytes))
        return false;
    memcpy(t->bytes + t->len, &disp, disp_bytes);
    t->len += disp_bytes;
    return true;
}

/* Puts @bytes into random order. */
static void shuffle(u8 *bytes, unsigned n)
{
    for (unsigned i = n; i > 1; i--) {
        unsigned j = pick(i);
        u8 b = bytes[j];

        bytes[j] = bytes[i - 1];
        bytes[i - 1] = b;
    }
}

/* Draws an instruction of form @f on run.page.  False: bad luck, draw again. */
static bool draw(const struct form *f, struct trial *t)
{
    static const u8 no_effect[] = { 0x26, 0x2e, 0x36, 0x3e };
    bool byte = f->map ? (f->opcode == 0xb0 || f->opcode == 0xc0) : !(f->opcode & 1);
    unsigned rex = 0, prefixes, imm_bytes, reg = f->operand < 8 ? f->operand : pick(16), avoid = 16, off;
    bool osize = false, wide = false, wants_rex;
    u64 operand, want, imm;

    *t = (struct trial){ .size = byte ? 1 : (unsigned[]){ 2, 4, 8 }[pick(3)] };
    if (f->op == PTE_OP_CMPXCHG8B)
        t->size = 8;
    else if (t->size == 8)
        wide = true;
    osize = t->size == 2 || (f->op != PTE_OP_CMPXCHG8B && (wide || byte) && chance(20));
    t->rep = f->op == PTE_OP_STOS && chance(60);
    t->lock = f->lockable && chance(50);
    off = t->rep ? pick(8) & ~(t->size - 1) : pick(9 - t->size);
    t->target = (u64)(run.page + FIRST_ENTRY + pick(ENTRIES)) + off;
    memcpy(&operand, (const void *)t->target, t->size);
    operand &= size_mask(t->size);

    for (unsigned n = 0; n < 16; n++)
        *gpr(&t->regs, n) = value(operand, t->size);
    t->regs.rflags = random64() & RUN_FLAGS;
    t->regs.rip = (u64)run.slot;
    if (f->op == PTE_OP_CMPXCHG8B && chance(50)) {
        t->regs.rax = (random64() & ~0xffffffffull) | (u32)operand;
        t->regs.rdx = (random64() & ~0xffffffffull) | operand >> 32;
    }
    if (f->op == PTE_OP_CMPXCHG && chance(50))
        t->regs.rax = (random64() & ~size_mask(t->size)) | operand;

    if (t->lock)
        t->bytes[t->len++] = 0xf0;
    if (osize)
        t->bytes[t->len++] = 0x66;
    if (t->rep)
        t->bytes[t->len++] = 0xf3;
    if (chance(20)) {
        bool fs = chance(50);

        t->bytes[t->len++] = fs ? 0x64 : 0x65;
        t->seg_base = f->op == PTE_OP_STOS ? 0 : fs ? fs_base : GS_BASE;
    } else if (chance(10)) {
        t->bytes[t->len++] = no_effect[pick(4)];
    }
    shuffle(t->bytes, t->len);
    prefixes = t->len;
    wants_rex = wide || reg >= 8 || chance(40);
    t->len++;                              /* room for REX */
    if (f->map)
        t->bytes[t->len++] = 0x0f;
    t->bytes[t->len++] = f->opcode;

    imm_bytes = f->imm == IMM8 ? 1 : f->imm == IMM_FULL ? MIN(t->size, 4u) : 0;
    want = t->target - t->seg_base;
    if (f->operand == BIT_NUMBER) {
        s64 n = (s64)pick(16 * 1024) - 8 * 1024;

        avoid = reg;
        *gpr(&t->regs, reg) = ((u64)n & size_mask(t->size)) | (random64() & ~size_mask(t->size));
        n -= n & (8 * t->size - 1);        /* the CPU adds whole operands to the address */
        want -= (u64)(n / 8);
    }
    if (f->operand == NOTHING) {
        t->regs.rdi = t->target;
        if (t->rep)
            t->regs.rcx = pick(5);
    } else {
        unsigned before = t->len;

        /* Without REX the code is a byte shorter, which RIP-relative operands notice. */
        if (!wants_rex) {
            memmove(t->bytes + prefixes, t->bytes + prefixes + 1, t->len - prefixes - 1);
            t->len = --before;
        }
        if (!encode_memory(t, &rex, reg, want, imm_bytes, avoid) || (rex && !wants_rex))
            return false;
    }
    if (wants_rex)
        t->bytes[prefixes] = (u8)(0x40 | rex | (wide ? 8 : 0));
    else if (f->operand == NOTHING)
        memmove(t->bytes + prefixes, t->bytes + prefixes + 1, --t->len - prefixes);
    imm = value(operand, t->size);
    memcpy(t->bytes + t->len, &imm, imm_bytes);
    t->len += imm_bytes;
    return true;
}

#endif
