/* SPDX-License-Identifier: MIT */
/* Tests decoding and emulation of page-table writes against the CPU itself: each form with random operands is
 * executed and emulated, and memory, registers, flags and the address of a fault must be the same. */
#include <CUnit/Basic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emulate/op.h"
#include "insn_draw.h"

#define ROUNDS     1500                /* for each form */
#define SET_GS     0x1001              /* arch_prctl() */
#define GET_FS     0x1003

static void show(const struct form *f, const struct trial *t, const char *what)
{
    printf("\n%s: opcode %x/%u:", what, f->opcode, f->operand);
    for (unsigned i = 0; i < t->len; i++)
        printf(" %02x", t->bytes[i]);
    printf("\n");
}

#define CHECK(cond, f, t) do {                  \
    if (!(cond)) {                              \
        show(f, t, #cond);                      \
        CU_FAIL(#cond);                         \
        return;                                 \
    }                                           \
} while (0)

/* What the hypervisor does, on a copy of the page. */
static bool emulate(const struct pte_insn *i, const struct trial *t, u64 *page, struct cpu_regs *r)
{
    do {
        struct cpu_regs same = *r;
        u64 ea, old, new = 0, again = 0, *entry;
        bool writes;

        if (i->rep && !r->rcx)
            return true;
        ea = pte_insn_ea(i, r, r->rip) + t->seg_base - (u64)run.page;
        if (ea >= PAGE_SIZE || (ea & 7) + i->size > 8)
            return false;
        entry = &page[ea / 8];
        old = *entry;
        writes = pte_op_compute(i, old, ea & 7, r, &new);
        if (pte_op_compute(i, old, ea & 7, r, &again) != writes || new != again ||
            memcmp(&same, r, sizeof(same)))
            return false;                  /* it must be repeatable */
        if (!writes)
            new = old;
        *entry = new;
        pte_op_commit(i, old, new, ea & 7, r);
    } while (i->rep);
    return true;
}

/* Executed and emulated, @t has the same effect. */
static void check_trial(const struct form *f, const struct trial *t)
{
    static u64 before[512], emulated[512];
    static const u8 seg[] = { SEG_NONE, SEG_FS, SEG_GS };
    struct cpu_regs native = t->regs, ours = t->regs, faulting = t->regs;
    u64 defined = f->flags | 0x400;
    struct pte_insn i;
    int sig;

    CHECK(decode_pte_insn(at_guard(t->bytes, t->len), t->len, &i) == 0, f, t);
    CHECK(i.len == t->len && i.op == f->op && i.size == t->size && i.rep == t->rep, f, t);
    CHECK(i.mem.seg == seg[t->seg_base == fs_base ? 1 : t->seg_base ? 2 : 0], f, t);
    CHECK(pte_insn_ea(&i, &t->regs, t->regs.rip) + t->seg_base == t->target, f, t);
    for (unsigned n = 0; n < t->len; n++)
        CHECK(decode_pte_insn(at_guard(t->bytes, n), n, &i) == INSN_TRUNCATED, f, t);
    CHECK(decode_pte_insn(t->bytes, 16, &i) == 0, f, t);

    memcpy(before, run.page, sizeof(before));
    memcpy(emulated, run.page, sizeof(before));
    if (mprotect(run.page, PAGE_SIZE, PROT_READ))
        abort();
    sig = run_insn(t->bytes, t->len, &faulting);
    if (mprotect(run.page, PAGE_SIZE, PROT_READ | PROT_WRITE))
        abort();
    if (!t->rep || t->regs.rcx)
        CHECK(sig == SIGSEGV && run.fault == t->target, f, t);
    sig = run_insn(t->bytes, t->len, &native);
    CHECK(sig == 0, f, t);
    CHECK(emulate(&i, t, emulated, &ours), f, t);
    CHECK(!memcmp(emulated, run.page, sizeof(emulated)), f, t);
    CHECK(!((native.rflags ^ ours.rflags) & defined), f, t);
    native.rflags = ours.rflags;
    CHECK(!memcmp(&native, &ours, sizeof(ours)), f, t);
}

static void test_native(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(forms); i++) {
        for (unsigned done = 0; done < ROUNDS;) {
            struct trial t;

            for (unsigned n = 0; n < ENTRIES; n++)
                run.page[FIRST_ENTRY + n] = value(n, 8);
            if (!draw(&forms[i], &t))
                continue;
            check_trial(&forms[i], &t);
            done++;
        }
        CU_ASSERT_FATAL(CU_get_number_of_failures() == 0);     /* one wrong form is enough to read about */
    }
}

/* What Debian's kernel uses on page tables, and its neighbours. */
static void test_known(void)
{
    static const struct { const char *bytes; u8 len, op, size, base, reg; s64 imm; } known[] = {
        { "\xf0\x80\x23\xfd", 4, PTE_OP_AND, 1, REGS_RBX, REG_NONE, -3 },
        { "\xf0\x41\x80\x24\x24\xfd", 6, PTE_OP_AND, 1, offsetof(struct cpu_regs, r12), REG_NONE, -3 },
        { "\x48\x87\x03", 3, PTE_OP_XCHG, 8, REGS_RBX, REGS_RAX, 0 },
        { "\x4c\x87\x3b", 3, PTE_OP_XCHG, 8, REGS_RBX, offsetof(struct cpu_regs, r15), 0 },
        { "\x49\x87\x45\x00", 4, PTE_OP_XCHG, 8, offsetof(struct cpu_regs, r13), REGS_RAX, 0 },
        { "\xf0\x48\x0f\xba\x32\x05", 6, PTE_OP_BTR, 8, REGS_RDX, REG_NONE, 5 },
        { "\x48\x89\x37", 3, PTE_OP_MOV, 8, REGS_RDI, REGS_RSI, 0 },
        { "\x48\xc7\x07\x00\x00\x00\x00", 7, PTE_OP_MOV, 8, REGS_RDI, REG_NONE, 0 },
        { "\xf0\x48\x0f\xb1\x16", 5, PTE_OP_CMPXCHG, 8, REGS_RSI, REGS_RDX, 0 },
        { "\xf0\x48\x0f\xba\x68\x00\x3f", 7, PTE_OP_BTS, 8, REGS_RAX, REG_NONE, 63 },
        { "\x88\x20", 2, PTE_OP_MOV, 1, REGS_RAX, REGS_RAX + 1, 0 },
        { "\x40\x88\x20", 3, PTE_OP_MOV, 1, REGS_RAX, REGS_RSP, 0 },
    };

    for (unsigned k = 0; k < ARRAY_SIZE(known); k++) {
        struct cpu_regs regs = { 0 };
        struct pte_insn i;

        CU_ASSERT_FATAL(decode_pte_insn((const u8 *)known[k].bytes, known[k].len, &i) == 0);
        CU_ASSERT(i.len == known[k].len && i.op == known[k].op && i.size == known[k].size);
        CU_ASSERT(i.reg == known[k].reg && i.imm == known[k].imm);
        CU_ASSERT(i.mem.base == known[k].base && i.mem.index == REG_NONE && i.mem.disp == 0);
        CU_ASSERT(i.mem.seg == SEG_NONE && !i.rep && !i.bit_string);
        *(u64 *)(void *)((char *)&regs + i.mem.base) = 0xffff888012345678ull;
        CU_ASSERT(pte_insn_ea(&i, &regs, 0xffffffff81000000ull) == 0xffff888012345678ull);
    }
}

static void test_refused(void)
{
#define BYTES(...) { sizeof((u8[]){ __VA_ARGS__ }), { __VA_ARGS__ } }
    static const struct { u8 len, bytes[20]; } refused[] = {
        BYTES(0xf0, 0x48, 0x89, 0x07),                     /* lock mov */
        BYTES(0xf0, 0xc6, 0x07, 0x01),
        BYTES(0xf0, 0x48, 0xab),                           /* lock stos */
        BYTES(0x48, 0x89, 0xc7),                           /* to a register */
        BYTES(0xf0, 0x48, 0x87, 0xc3),
        BYTES(0xf0, 0x80, 0xe3, 0xfd),
        BYTES(0xf0, 0x48, 0x0f, 0xb3, 0xc3),
        BYTES(0x67, 0x48, 0x89, 0x07),                     /* address-size prefix */
        BYTES(0x48, 0x0f, 0xc7, 0x0f),                     /* cmpxchg16b */
        BYTES(0x66, 0x0f, 0xc7, 0x0f),
        BYTES(0x48, 0x0f, 0xba, 0x20, 0x05),               /* bt, cmp: no write */
        BYTES(0x48, 0x39, 0x07),
        BYTES(0x48, 0x83, 0x3f, 0x01),
        BYTES(0xf2, 0xf0, 0x48, 0x87, 0x07),               /* repeat prefixes */
        BYTES(0xf3, 0x48, 0x89, 0x07),
        BYTES(0xf2, 0x48, 0xab),
        BYTES(0x64, 0x65, 0x48, 0x89, 0x07),               /* two segments */
        BYTES(0x2e, 0x64, 0x48, 0x89, 0x07),
        BYTES(0x48, 0x66, 0x89, 0x07),                     /* REX before another prefix */
        BYTES(0x48, 0xa5),                                 /* movs */
        /* 16 bytes, one more than an instruction may have */
        BYTES(0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x48, 0xc7, 0x07, 0x01, 0x00, 0x00, 0x00),
    };
    struct pte_insn i;

    for (unsigned k = 0; k < ARRAY_SIZE(refused); k++) {
        const u8 *bytes = at_guard(refused[k].bytes, refused[k].len);

        CU_ASSERT(decode_pte_insn(bytes, refused[k].len, &i) == INSN_UNKNOWN);
        CU_ASSERT(decode_pte_insn(refused[k].bytes, sizeof(refused[k].bytes), &i) == INSN_UNKNOWN);
    }
    CU_ASSERT(decode_pte_insn(refused[ARRAY_SIZE(refused) - 1].bytes + 1, 15, &i) == 0);
}

static bool known_form(unsigned map, unsigned opcode, unsigned modrm)
{
    for (unsigned i = 0; i < ARRAY_SIZE(forms); i++) {
        if (forms[i].map != map || forms[i].opcode != opcode)
            continue;
        if (forms[i].operand == NOTHING)
            return true;
        if (modrm < 0xc0 && (forms[i].operand >= 8 || forms[i].operand == (modrm >> 3 & 7)))
            return true;
    }
    return false;
}

/* Every opcode with every ModRM: those in the table are known, no other is. */
static void test_opcodes(void)
{
    static const u8 prefixes[] = { 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x0f };
    unsigned wrong = 0;

    for (unsigned n = 0; n < 2 * 256 * 256; n++) {
        unsigned map = n >> 16, opcode = n >> 8 & 0xff, modrm = n & 0xff;
        u8 bytes[16] = { 0x0f };
        struct pte_insn i;

        if (!map && (memchr(prefixes, (int)opcode, sizeof(prefixes)) || (opcode & 0xf0) == 0x40))
            continue;
        bytes[map] = (u8)opcode;
        bytes[map + 1] = (u8)modrm;
        wrong += (decode_pte_insn(bytes, 16, &i) == 0) != known_form(map, opcode, modrm);
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static bool good_register(u8 off, bool byte)
{
    for (unsigned n = 0; n < 16; n++)
        if (off == gpr_offset[n] || (byte && n < 4 && off == gpr_offset[n] + 1))
            return true;
    return false;
}

/* Any bytes: no access beyond them, and what is accepted can be computed with. */
static void test_random_bytes(void)
{
    unsigned accepted = 0;

    for (unsigned n = 0; n < 1000000; n++) {
        u64 random[2] = { random64(), random64() };
        unsigned len = pick(17);
        struct cpu_regs regs;
        struct pte_insn i;
        u8 bytes[16];
        u64 new = 0;

        memcpy(bytes, random, sizeof(bytes));
        if (chance(80)) {
            const struct form *f = &forms[pick(ARRAY_SIZE(forms))];
            unsigned at = pick(5);

            for (unsigned k = 0; k < at; k++)
                bytes[k] = (const u8[]){ 0xf0, 0x66, 0x48, 0x41, 0xf3, 0x2e, 0x64, 0x40 }[bytes[k] & 7];
            if (f->map)
                bytes[at++] = 0x0f;
            bytes[at] = f->opcode;
        }
        if (decode_pte_insn(at_guard(bytes, len), len, &i))
            continue;
        accepted++;
        CU_ASSERT(i.len <= len && i.len <= 15 && i.op <= PTE_OP_STOS);
        CU_ASSERT(i.size == 1 || i.size == 2 || i.size == 4 || i.size == 8);
        CU_ASSERT(i.mem.scale <= 3 && i.mem.seg <= SEG_GS);
        CU_ASSERT(i.mem.base == REG_NONE || i.mem.base == REG_RIP || good_register(i.mem.base, false));
        CU_ASSERT(i.mem.index == REG_NONE || good_register(i.mem.index, false));
        CU_ASSERT(i.reg == REG_NONE || good_register(i.reg, i.size == 1));
        for (unsigned k = 0; k < sizeof(regs) / 8; k++)
            ((u64 *)(void *)&regs)[k] = random64();
        for (unsigned off = 0; off + i.size <= 8; off++) {
            u64 old = random64();

            (void)pte_insn_ea(&i, &regs, regs.rip);
            if (!pte_op_compute(&i, old, off, &regs, &new))
                new = old;
            CU_ASSERT(((old ^ new) & ~(size_mask(i.size) << (8 * off))) == 0);
            pte_op_commit(&i, old, new, off, &regs);
        }
    }
    CU_ASSERT(accepted > 10000);
}

int main(void)
{
    CU_pSuite suite;
    unsigned failures;

    random_seed();
    if (CU_initialize_registry() != CUE_SUCCESS || !run_open() || syscall(SYS_arch_prctl, SET_GS, GS_BASE) ||
        syscall(SYS_arch_prctl, GET_FS, &fs_base))
        return 2;
    suite = CU_add_suite("decode", NULL, NULL);
    CU_ADD_TEST(suite, test_known);
    CU_ADD_TEST(suite, test_refused);
    CU_ADD_TEST(suite, test_opcodes);
    CU_ADD_TEST(suite, test_random_bytes);
    CU_ADD_TEST(suite, test_native);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
