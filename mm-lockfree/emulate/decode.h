/* SPDX-License-Identifier: MIT */
/* Decoder for the instructions with which guests write page-table entries (Intel SDM vol. 2; 64-bit mode). */
#ifndef PT_EMULATE_DECODE_H
#define PT_EMULATE_DECODE_H

#include "emulate/insn.h"

enum pte_op {
    PTE_OP_MOV, PTE_OP_XCHG, PTE_OP_AND, PTE_OP_BTR,       /* the frequent ones */
    PTE_OP_ADD, PTE_OP_OR, PTE_OP_ADC, PTE_OP_SBB, PTE_OP_SUB, PTE_OP_XOR, PTE_OP_BTS, PTE_OP_BTC,
    PTE_OP_INC, PTE_OP_DEC, PTE_OP_NOT, PTE_OP_NEG, PTE_OP_XADD, PTE_OP_CMPXCHG, PTE_OP_CMPXCHG8B,
    PTE_OP_STOS,
};

struct pte_insn {
    u8 len, op;
    u8 size;                           /* of the memory operand in bytes: 1, 2, 4, 8 */
    u8 reg;                            /* register operand, or REG_NONE: the other operand is @imm */
    u8 rep;                            /* stos only: this is one of RCX elements; of none if RCX is 0 */
    u8 bit_string;                     /* bit number in @reg: moves the operand if it lies beyond it */
    u8 spare[2];
    struct insn_mem mem;
    s64 imm;                           /* sign-extended; a bit number is below 8 * @size */
};
_Static_assert(sizeof(struct pte_insn) == 24, "with RIP, bytes and their mask, one cache line");

/* Decodes the instruction at @bytes, of which @avail may be read (more than 15 are never needed).
 * Known are: mov, xchg, add, or, adc, sbb, and, sub, xor, inc, dec, not, neg, bts, btr, btc, xadd, cmpxchg,
 * cmpxchg8b and [rep] stos, to memory, of any operand size and addressing form but the address-size prefix.
 * 0, INSN_UNKNOWN or INSN_TRUNCATED; *@out is valid only after 0. */
int decode_pte_insn(const u8 *bytes, unsigned avail, struct pte_insn *out);

/* The address of the memory operand, without the base of segment @i->mem.seg; @regs: saved registers,
 * @rip: of the instruction. */
static inline u64 pte_insn_ea(const struct pte_insn *i, const void *regs, u64 rip)
{
    u64 ea = insn_ea(&i->mem, regs, rip + i->len);

    if (unlikely(i->bit_string)) {
        u64 bit = *(const u64 *)(const void *)((const char *)regs + i->reg);
        s64 n = i->size == 2 ? (s16)bit : i->size == 4 ? (s32)bit : (s64)bit;

        ea += (u64)((n >> 3) & -(s64)i->size);      /* whole operands, towards minus infinity */
    }
    return ea;
}

#endif
