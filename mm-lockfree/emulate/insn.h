/* SPDX-License-Identifier: MIT */
/* Pieces of 64-bit x86 instructions that the decoders share: prefixes, ModRM, SIB, displacements,
 * immediates (Intel SDM vol. 2, chapter 2).  Nothing here reads beyond the bytes that it was given. */
#ifndef PT_EMULATE_INSN_H
#define PT_EMULATE_INSN_H

#include "base/types.h"

#define INSN_MAX_BYTES 15

/* Register operands are byte offsets into the saved registers (struct cpu_regs order).  AH, CH, DH and BH
 * are one more than RAX, RCX, RDX and RBX. */
enum {
    REGS_RBP = 32, REGS_RBX = 40, REGS_RAX = 80, REGS_RCX = 88, REGS_RDX = 96, REGS_RSI = 104, REGS_RDI = 112,
    REGS_RFLAGS = 144, REGS_RSP = 152,
};
#define REG_NONE 0xff
#define REG_RIP  0xfe

/* What both decoders return when it is not 0. */
#define INSN_UNKNOWN   (-1)            /* not one of the known forms, or no legal instruction */
#define INSN_TRUNCATED (-2)            /* the bytes end before the instruction does */

enum insn_seg { SEG_NONE, SEG_FS, SEG_GS };

/* A memory operand. */
struct insn_mem {
    u8 base, index;                    /* offsets, REG_NONE, or (base) REG_RIP */
    u8 scale;                          /* as a shift */
    u8 seg;                            /* enum insn_seg: whose base the caller adds */
    s32 disp;
};

struct insn_prefix {
    u8 rex, seg;
    bool lock, osize, asize, rep, repne;
    bool ambiguous;                    /* FS or GS together with another segment prefix */
};

struct insn_modrm { u8 mod, reg, rm; };    /* reg and rm with their REX bits */

struct insn_cursor {
    const u8 *p;
    unsigned avail, used;
    bool over;                         /* a byte beyond the last was wanted; what was read since is 0 */
};

static inline struct insn_cursor insn_start(const u8 *bytes, unsigned avail)
{
    return (struct insn_cursor){ bytes, MIN(avail, INSN_MAX_BYTES), 0, false };
}

/* The result of decoding: @ok unless bytes were missing. */
static inline int insn_finish(const struct insn_cursor *c, bool ok)
{
    if (c->over)
        return c->used < INSN_MAX_BYTES ? INSN_TRUNCATED : INSN_UNKNOWN;
    return ok ? 0 : INSN_UNKNOWN;
}

static inline u8 insn_byte(struct insn_cursor *c)
{
    if (c->used == c->avail) {
        c->over = true;
        return 0;
    }
    return c->p[c->used++];
}

/* A sign-extended immediate or displacement of 1, 2 or 4 bytes. */
static inline s64 insn_imm(struct insn_cursor *c, unsigned size)
{
    u32 x = 0;

    for (unsigned i = 0; i < size; i++)
        x |= (u32)insn_byte(c) << (8 * i);
    return size == 1 ? (s8)x : size == 2 ? (s16)x : (s32)x;
}

/* Reads prefixes; returns the byte after them.  After a REX that is the opcode: another prefix there,
 * before which the CPU ignores the REX, is no opcode that a decoder knows. */
static inline u8 insn_prefixes(struct insn_cursor *c, struct insn_prefix *p)
{
    unsigned segments = 0;
    u8 b;

    *p = (struct insn_prefix){ 0 };
    for (;;) {
        b = insn_byte(c);
        switch (b) {
        case 0xf0: p->lock = true; continue;
        case 0xf2: p->repne = true; continue;
        case 0xf3: p->rep = true; continue;
        case 0x66: p->osize = true; continue;
        case 0x67: p->asize = true; continue;
        case 0x64: p->seg = SEG_FS; segments++; continue;
        case 0x65: p->seg = SEG_GS; segments++; continue;
        case 0x26: case 0x2e: case 0x36: case 0x3e: segments++; continue;    /* no effect */
        }
        break;
    }
    p->ambiguous = p->seg && segments > 1;
    if ((b & 0xf0) == 0x40) {
        p->rex = b;
        b = insn_byte(c);
    }
    return b;
}

/* The operand size where the opcode does not say "byte". */
static inline u8 insn_full_size(const struct insn_prefix *p) { return p->rex & 8 ? 8 : p->osize ? 2 : 4; }

/* The offset of register @n (hardware number, 0..15) as an operand of @size bytes. */
static inline u8 insn_reg(unsigned n, unsigned size, u8 rex)
{
    static const u8 off[16] = {
        REGS_RAX, REGS_RCX, REGS_RDX, REGS_RBX, REGS_RSP, REGS_RBP, REGS_RSI, REGS_RDI,
        72, 64, 56, 48, 24, 16, 8, 0,
    };

    if (size == 1 && !rex && n >= 4)
        return (u8)(off[(n - 4) & 15] + 1);
    return off[n & 15];
}

/* ModRM, and where it means memory SIB and displacement: *@m, which is untouched for a register. */
static inline struct insn_modrm insn_modrm(struct insn_cursor *c, const struct insn_prefix *p,
                                           struct insn_mem *m)
{
    u8 b = insn_byte(c), disp;
    struct insn_modrm r = {
        .mod = b >> 6, .reg = (u8)((b >> 3 & 7) | (p->rex & 4) << 1), .rm = (u8)((b & 7) | (p->rex & 1) << 3),
    };

    if (r.mod == 3)
        return r;
    *m = (struct insn_mem){ REG_NONE, REG_NONE, 0, p->seg, 0 };
    disp = r.mod == 1 ? 1 : r.mod == 2 ? 4 : 0;
    if ((b & 7) == 4) {
        u8 sib = insn_byte(c), index = (u8)((sib >> 3 & 7) | (p->rex & 2) << 2);

        m->scale = sib >> 6;
        if (index != 4)
            m->index = insn_reg(index, 8, p->rex);
        if ((sib & 7) == 5 && r.mod == 0)
            disp = 4;
        else
            m->base = insn_reg((sib & 7) | (p->rex & 1u) << 3, 8, p->rex);
    } else if ((b & 7) == 5 && r.mod == 0) {
        m->base = REG_RIP;
        disp = 4;
    } else {
        m->base = insn_reg(r.rm, 8, p->rex);
    }
    if (disp)
        m->disp = (s32)insn_imm(c, disp);
    return r;
}

/* The offset of *@m within its segment; @next_rip: of the following instruction. */
static inline u64 insn_ea(const struct insn_mem *m, const void *regs, u64 next_rip)
{
    const char *r = regs;
    u64 ea = (u64)(s64)m->disp;

    if (m->base == REG_RIP)
        return ea + next_rip;
    if (m->base != REG_NONE)
        ea += *(const u64 *)(const void *)(r + m->base);
    if (m->index != REG_NONE)
        ea += *(const u64 *)(const void *)(r + m->index) << m->scale;
    return ea;
}

#endif
