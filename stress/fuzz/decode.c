/* SPDX-License-Identifier: MIT */
/* Fuzzes the decoder of page-table writes, and compares what it makes of an instruction with the CPU: the same bytes are
 * executed on a copy of the page. */
#include "emulate/op.h"
#include "insn_run.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define ENTRY 200                      /* of run.page: where the operand is put */
#define AVOID(reg, m) ((reg) != REG_NONE && ((reg) & ~7u) == (m))

/* A fault outside of the instruction under test is a crash that the fuzzer must hear of. */
static void fault(int sig, siginfo_t *info, void *context)
{
    u64 rip = (u64)((ucontext_t *)context)->uc_mcontext.gregs[UCONTEXT_RIP];

    if (rip < (u64)run.slot || rip >= (u64)run.slot + RUN_SLOT)
        abort();
    run_caught(sig, info, context);
}

static void open_once(void)
{
    static const int signals[] = { SIGSEGV, SIGILL, SIGBUS, SIGTRAP };
    struct sigaction sa = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };

    if (run.code)
        return;
    if (!run_open())
        abort();
    for (unsigned i = 0; i < ARRAY_SIZE(signals); i++)
        if (sigaction(signals[i], &sa, NULL))
            abort();
}

static u64 defined_flags(unsigned op)
{
    switch (op) {
    case PTE_OP_AND: case PTE_OP_OR: case PTE_OP_XOR:
        return 0xcc5;
    case PTE_OP_BTS: case PTE_OP_BTR: case PTE_OP_BTC:
        return 0x441;
    default:
        return 0xcd5;
    }
}

/* Chooses the registers of @i so that its operand lies at @target.  False: that cannot be had. */
static bool aim(const struct pte_insn *i, struct cpu_regs *r, u64 target)
{
    const struct insn_mem *m = &i->mem;

    if (m->seg != SEG_NONE || m->base >= REG_RIP || m->base == m->index)
        return false;
    if (i->bit_string) {
        if (AVOID(i->reg, m->base))
            return false;
        *op_reg_at(r, i->reg) &= 63;
    }
    if (i->rep)
        r->rcx &= 3;
    *op_reg_at(r, m->base) += target - pte_insn_ea(i, r, r->rip);
    return pte_insn_ea(i, r, r->rip) == target;
}

/* What the hypervisor does with the faults of one instruction, on @page. */
static void emulate(const struct pte_insn *i, u64 *page, struct cpu_regs *r)
{
    do {
        u64 at, old, new = 0;

        if (i->rep && !r->rcx)
            return;
        at = pte_insn_ea(i, r, r->rip) - (u64)run.page;
        if (at >= PAGE_SIZE || (at & 7) + i->size > 8)
            abort();
        old = page[at / 8];
        if (!pte_op_compute(i, old, at & 7, r, &new))
            new = old;
        page[at / 8] = new;
        pte_op_commit(i, old, new, at & 7, r);
    } while (i->rep);
}

/* Executed and emulated, the instruction has the same effect. */
static void compare(const u8 *bytes, const struct pte_insn *i, const u8 *rest, size_t left)
{
    static u64 ours[512];
    struct cpu_regs regs = { 0 }, native;
    u64 target = (u64)(run.page + ENTRY), defined = defined_flags(i->op);

    memcpy(&regs, rest, MIN(left, offsetof(struct cpu_regs, error_code)));
    regs.rip = (u64)run.slot;
    if (left)
        regs.rflags = (u64)rest[left - 1] << 4 | rest[0];
    regs.rflags = (regs.rflags & 0xcd5) | 0x202;
    regs.rsp = (u64)(run.page + ENTRY);
    if (!i->rep && left > 1)
        target += rest[1] % (9u - i->size);
    if (!aim(i, &regs, target))
        return;
    for (unsigned k = 0; k < 512; k++)
        run.page[k] = k * 0x9e3779b97f4a7c15ull;
    if (left >= 16)
        memcpy(run.page + ENTRY, rest + 8, 8);
    memcpy(ours, run.page, sizeof(ours));
    native = regs;
    if (run_insn(bytes, i->len, &native))
        abort();
    emulate(i, ours, &regs);
    if (memcmp(ours, run.page, sizeof(ours)) || (native.rflags ^ regs.rflags) & defined)
        abort();
    native.rflags = regs.rflags;
    if (memcmp(&native, &regs, sizeof(regs)))
        abort();
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    unsigned avail = (unsigned)MIN(size, 16);
    struct pte_insn i, again;
    int rc;

    open_once();
    rc = decode_pte_insn(at_guard(data, avail), avail, &i);
    if (rc == INSN_TRUNCATED && avail >= INSN_MAX_BYTES)
        abort();
    if (rc)
        return 0;
    if (!i.len || i.len > avail || i.len > INSN_MAX_BYTES)
        abort();
    for (unsigned n = 0; n < i.len; n++)
        if (decode_pte_insn(at_guard(data, n), n, &again) != INSN_TRUNCATED)
            abort();
    if (decode_pte_insn(at_guard(data, i.len), i.len, &again) || memcmp(&i, &again, sizeof(i)))
        abort();
    compare(data, &i, data + avail, size - avail);
    return 0;
}
