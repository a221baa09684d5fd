/* SPDX-License-Identifier: MIT */
/* Tests the decoder and arithmetic of page-table writes against the CPU itself: each form is executed for real on a copy,
 * and memory, registers and flags are compared. */
#define _GNU_SOURCE
#include <CUnit/Basic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "emulate/op.h"

/* Offsets as in struct cpu_regs. */
#define R15 0
#define R12 24
#define RBP 32
#define RBX 40
#define R8  72
#define RAX 80
#define RCX 88
#define RDX 96
#define RSI 104
#define RDI 112
#define RFLAGS 144
#define NREG 21

static unsigned char *code;
static u64 slot_real, slot_emul;

static u64 *at(u64 *regs, unsigned off) { return &regs[off / 8]; }

/* Runs @len bytes of code with rax, rcx, rdx, rbx, rsi, rdi, r8 and flags from @regs; rbx addresses the operand. */
static void execute(const u8 *insn, unsigned len, u64 *regs)
{
    u64 in[8] = { *at(regs, RAX), *at(regs, RCX), *at(regs, RDX), *at(regs, RBX), *at(regs, RSI), *at(regs, RDI),
                  *at(regs, R8), *at(regs, RFLAGS) };

    memcpy(code, insn, len);
    code[len] = 0xc3;
    __asm__ volatile(
        "mov 56(%[in]), %%rax\n push %%rax\n"
        "mov 0(%[in]), %%rax\n mov 8(%[in]), %%rcx\n mov 16(%[in]), %%rdx\n mov 24(%[in]), %%rbx\n"
        "mov 32(%[in]), %%rsi\n mov 40(%[in]), %%rdi\n mov 48(%[in]), %%r8\n"
        "popf\n call *%[code]\n pushf\n pop %%r9\n cld\n"
        "mov %%rax, 0(%[in])\n mov %%rcx, 8(%[in])\n mov %%rdx, 16(%[in])\n mov %%rbx, 24(%[in])\n"
        "mov %%rsi, 32(%[in])\n mov %%rdi, 40(%[in])\n mov %%r8, 48(%[in])\n mov %%r9, 56(%[in])\n"
        :: [in] "r"(in), [code] "r"(code)
        : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "memory", "cc");
    *at(regs, RAX) = in[0];
    *at(regs, RCX) = in[1];
    *at(regs, RDX) = in[2];
    *at(regs, RBX) = in[3];
    *at(regs, RSI) = in[4];
    *at(regs, RDI) = in[5];
    *at(regs, R8) = in[6];
    *at(regs, RFLAGS) = in[7];
}

#define ALL_FLAGS 0x8d5u               /* OF SF ZF AF PF CF */
#define NO_AF     0x8c5u
#define CF_ONLY   0x001u

struct form { const char *name; u8 bytes[12]; unsigned len, size, flags; bool rdi; };
/* The memory operand is (%rbx); with rdi, (%rdi). */
static const struct form forms[] = {
    { "lock andb imm8", { 0xf0, 0x80, 0x23, 0xfd }, 4, 1, NO_AF, false },
    { "lock andb imm8 disp8", { 0xf0, 0x80, 0x63, 0x00, 0xfd }, 5, 1, NO_AF, false },
    { "xchg %rax", { 0x48, 0x87, 0x03 }, 3, 8, ALL_FLAGS, false },
    { "xchg %eax", { 0x87, 0x03 }, 2, 4, ALL_FLAGS, false },
    { "xchg %r8", { 0x4c, 0x87, 0x03 }, 3, 8, ALL_FLAGS, false },
    { "xchg %cx", { 0x66, 0x87, 0x0b }, 3, 2, ALL_FLAGS, false },
    { "xchg %dl", { 0x86, 0x13 }, 2, 1, ALL_FLAGS, false },
    { "xchg %ah", { 0x86, 0x23 }, 2, 1, ALL_FLAGS, false },
    { "xchg %sil", { 0x40, 0x86, 0x33 }, 3, 1, ALL_FLAGS, false },
    { "lock btrq imm8", { 0xf0, 0x48, 0x0f, 0xba, 0x33, 0x05 }, 6, 8, CF_ONLY, false },
    { "btsq imm8", { 0x48, 0x0f, 0xba, 0x2b, 0x3f }, 5, 8, CF_ONLY, false },
    { "btcl imm8", { 0x0f, 0xba, 0x3b, 0x21 }, 4, 4, CF_ONLY, false },
    { "mov %rsi", { 0x48, 0x89, 0x33 }, 3, 8, ALL_FLAGS, false },
    { "mov %esi", { 0x89, 0x33 }, 2, 4, ALL_FLAGS, false },
    { "movb %ch", { 0x88, 0x2b }, 2, 1, ALL_FLAGS, false },
    { "movq $imm32", { 0x48, 0xc7, 0x03, 0x01, 0x02, 0x03, 0x84 }, 7, 8, ALL_FLAGS, false },
    { "movl $imm32", { 0xc7, 0x03, 0x01, 0x02, 0x03, 0x84 }, 6, 4, ALL_FLAGS, false },
    { "movw $imm16", { 0x66, 0xc7, 0x03, 0x01, 0x82 }, 5, 2, ALL_FLAGS, false },
    { "movb $imm8", { 0xc6, 0x03, 0x7f }, 3, 1, ALL_FLAGS, false },
    { "andq imm8", { 0x48, 0x83, 0x23, 0xfd }, 4, 8, NO_AF, false },
    { "lock andl imm32", { 0xf0, 0x81, 0x23, 0xff, 0x0f, 0xf0, 0xff }, 7, 4, NO_AF, false },
    { "lock orq %rdx", { 0xf0, 0x48, 0x09, 0x13 }, 4, 8, NO_AF, false },
    { "xorb %al", { 0x30, 0x03 }, 2, 1, NO_AF, false },
    { "lock addq %rcx", { 0xf0, 0x48, 0x01, 0x0b }, 4, 8, ALL_FLAGS, false },
    { "addb imm8", { 0x80, 0x03, 0x90 }, 3, 1, ALL_FLAGS, false },
    { "subl %edx", { 0x29, 0x13 }, 2, 4, ALL_FLAGS, false },
    { "subw imm8", { 0x66, 0x83, 0x2b, 0x85 }, 4, 2, ALL_FLAGS, false },
    { "lock cmpxchg %rcx", { 0xf0, 0x48, 0x0f, 0xb1, 0x0b }, 5, 8, ALL_FLAGS, false },
    { "cmpxchg %ecx", { 0x0f, 0xb1, 0x0b }, 3, 4, ALL_FLAGS, false },
    { "cmpxchg %cl", { 0x0f, 0xb0, 0x0b }, 3, 1, ALL_FLAGS, false },
    { "lock xadd %rdx", { 0xf0, 0x48, 0x0f, 0xc1, 0x13 }, 5, 8, ALL_FLAGS, false },
    { "xadd %dx", { 0x66, 0x0f, 0xc1, 0x13 }, 4, 2, ALL_FLAGS, false },
    { "stosq", { 0x48, 0xab }, 2, 8, ALL_FLAGS, true },
    { "stosb", { 0xaa }, 1, 1, ALL_FLAGS, true },
};

static u64 rnd(void) { return (u64)rand() << 42 ^ (u64)rand() << 21 ^ (u64)rand(); }

static void test_against_cpu(void)
{
    for (unsigned f = 0; f < ARRAY_SIZE(forms); f++) {
        const struct form *m = &forms[f];
        struct pte_insn insn;
        bool good = true;

        if (decode_pte_insn(m->bytes, m->len, &insn)) {
            CU_FAIL("form not decoded");
            printf("\n    not decoded: %s", m->name);
            continue;
        }
        CU_ASSERT(insn.len == m->len && insn.size == m->size);
        for (unsigned n = 0; n < 2000 && good; n++) {
            u64 real[NREG], emul[NREG], start = rnd(), new;
            unsigned off = (unsigned)(rnd() % (8 / m->size)) * m->size;
            bool wrote;

            for (unsigned i = 0; i < NREG; i++)
                real[i] = rnd();
            *at(real, RFLAGS) = 2 | (rnd() & 0x8d5);
            if (n & 1)                           /* let cmpxchg match now and then */
                *at(real, RAX) = (*at(real, RAX) & ~op_mask(m->size)) | (start >> (8 * off) & op_mask(m->size));
            memcpy(emul, real, sizeof(real));
            slot_real = slot_emul = start;
            *at(real, m->rdi ? RDI : RBX) = (u64)&slot_real + off;
            *at(emul, m->rdi ? RDI : RBX) = (u64)&slot_emul + off;
            if (pte_insn_ea(&insn, emul, 0x1000) != (u64)&slot_emul + off)
                good = false;
            execute(m->bytes, m->len, real);
            wrote = pte_op_compute(&insn, slot_emul, off, emul, &new);
            pte_op_commit(&insn, start, wrote ? new : start, off, emul);
            if (wrote)
                slot_emul = new;
            *at(emul, m->rdi ? RDI : RBX) += (u64)&slot_real - (u64)&slot_emul;
            good = good && slot_real == slot_emul && !((*at(real, RFLAGS) ^ *at(emul, RFLAGS)) & m->flags);
            for (unsigned r = RBX; r <= RDI; r += 8)
                good = good && *at(real, r) == *at(emul, r);
        }
        CU_ASSERT(good);
        if (!good)
            printf("\n    differs from the CPU: %s", m->name);
    }
}

/* An instruction that is cut off anywhere is refused, and not a byte beyond is read. */
static void test_truncated(void)
{
    unsigned char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct pte_insn insn;

    CU_ASSERT_FATAL(pages != MAP_FAILED && !mprotect(pages + 4096, 4096, PROT_NONE));
    for (unsigned f = 0; f < ARRAY_SIZE(forms); f++) {
        for (unsigned n = 0; n < forms[f].len; n++) {
            memcpy(pages + 4096 - n, forms[f].bytes, n);
            CU_ASSERT(decode_pte_insn(pages + 4096 - n, n, &insn) == -1);
        }
    }
    for (unsigned i = 0; i < 300000; i++) {
        unsigned n = (unsigned)rnd() % 16;
        u8 *p = pages + 4096 - n;

        for (unsigned k = 0; k < n; k++)
            p[k] = (u8)rnd();
        if (!decode_pte_insn(p, n, &insn))
            CU_ASSERT(insn.len && insn.len <= n && insn.size <= 8);
    }
    munmap(pages, 8192);
}

static void test_refused(void)
{
    static const u8 bad[][8] = {
        { 0xf0, 0x48, 0x89, 0x03 },              /* lock mov */
        { 0xf0, 0x48, 0x87, 0xc3 },              /* lock xchg with a register destination */
        { 0x48, 0x8b, 0x03 },                    /* a load */
        { 0x67, 0x89, 0x03 },                    /* address size */
        { 0xf3, 0x48, 0x87, 0x03 },              /* rep xchg */
        { 0x48, 0x83, 0x13, 0x01 },              /* adc */
        { 0x48, 0x0f, 0xab, 0x03 },              /* bts with a bit offset in a register */
        { 0x0f, 0xc7, 0x0b },                    /* cmpxchg8b */
    };
    struct pte_insn insn;

    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
        CU_ASSERT(decode_pte_insn(bad[i], 8, &insn) == -1);
}

static void test_addressing(void)
{
    u64 regs[NREG] = { 0 };
    struct pte_insn insn;

    *at(regs, R12) = 0x1000;
    *at(regs, RCX) = 0x10;
    *at(regs, R15) = 0x200000;
    CU_ASSERT(!decode_pte_insn((const u8[]){ 0xf0, 0x41, 0x80, 0x24, 0x24, 0xfd }, 6, &insn));      /* (%r12) */
    CU_ASSERT(pte_insn_ea(&insn, regs, 0) == 0x1000);
    CU_ASSERT(!decode_pte_insn((const u8[]){ 0x49, 0x89, 0x44, 0xcc, 0xf8 }, 5, &insn));            /* -8(%r12,%rcx,8) */
    CU_ASSERT(pte_insn_ea(&insn, regs, 0) == 0x1000 + 0x80 - 8);
    CU_ASSERT(!decode_pte_insn((const u8[]){ 0x48, 0x89, 0x05, 0x10, 0, 0, 0 }, 7, &insn));         /* 16(%rip) */
    CU_ASSERT(pte_insn_ea(&insn, regs, 0x4000) == 0x4000 + 7 + 16);
    CU_ASSERT(!decode_pte_insn((const u8[]){ 0x4a, 0x89, 0x04, 0x3d, 0, 1, 0, 0 }, 8, &insn));      /* 0x100(,%r15) */
    CU_ASSERT(pte_insn_ea(&insn, regs, 0) == 0x200100);
}

int main(void)
{
    unsigned failures;
    CU_pSuite s;

    code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED || CU_initialize_registry() || !(s = CU_add_suite("decode", 0, 0)))
        return 2;
    srand(1);
    CU_add_test(s, "against the CPU", test_against_cpu);
    CU_add_test(s, "truncated and random bytes", test_truncated);
    CU_add_test(s, "refused forms", test_refused);
    CU_add_test(s, "addressing", test_addressing);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
