/* SPDX-License-Identifier: MIT */
/* Runs single instructions on the CPU under test with chosen registers, flags and memory, so that the
 * emulation can be compared with the real thing; and bytes that end at an unreadable page. */
#ifndef PT_TEST_INSN_RUN_H
#define PT_TEST_INSN_RUN_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "arch/cpu.h"

#define RUN_SLOT        16             /* room for the instruction, the rest of it is nops */
#define RUN_FLAGS       0xcd5ull       /* OF DF SF ZF AF PF CF */
#define UCONTEXT_RIP    16             /* in gregs; glibc names it only for _GNU_SOURCE */

/* The second page of the arena, which the code reaches relative to RIP. */
struct run_context { u64 gpr[16], flags, host_rsp; };

/* Pages below 2 GiB, so that 32-bit displacements reach them: code, context, memory operand. */
static struct {
    u8 *code, *slot;
    struct run_context *ctx;
    u64 *page;
    volatile int signal;               /* that the last instruction caused, and its address */
    volatile u64 fault;
} run;

static const u8 gpr_offset[16] = {
    offsetof(struct cpu_regs, rax), offsetof(struct cpu_regs, rcx), offsetof(struct cpu_regs, rdx),
    offsetof(struct cpu_regs, rbx), offsetof(struct cpu_regs, rsp), offsetof(struct cpu_regs, rbp),
    offsetof(struct cpu_regs, rsi), offsetof(struct cpu_regs, rdi), offsetof(struct cpu_regs, r8),
    offsetof(struct cpu_regs, r9), offsetof(struct cpu_regs, r10), offsetof(struct cpu_regs, r11),
    offsetof(struct cpu_regs, r12), offsetof(struct cpu_regs, r13), offsetof(struct cpu_regs, r14),
    offsetof(struct cpu_regs, r15),
};

static inline u64 *gpr(struct cpu_regs *r, unsigned n) { return (u64 *)(void *)((char *)r + gpr_offset[n]); }

static u64 random_state = 0x9e3779b97f4a7c15ull;

/* xorshift64* */
static inline u64 random64(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1dull;
}

static inline unsigned pick(unsigned n) { return (unsigned)(random64() >> 33) % n; }
static inline bool chance(unsigned percent) { return pick(100) < percent; }

static inline void random_seed(void)
{
    const char *s = getenv("PT_TEST_SEED");

    if (s && strtoull(s, NULL, 0))
        random_state = strtoull(s, NULL, 0);
    printf("PT_TEST_SEED=%#llx\n", (unsigned long long)random_state);
}

static inline void run_caught(int sig, siginfo_t *info, void *context)
{
    greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[UCONTEXT_RIP];

    if (*rip < (greg_t)run.slot || *rip >= (greg_t)run.slot + RUN_SLOT) {
        signal(sig, SIG_DFL);              /* not the instruction's: a bug in the test */
        return;
    }
    run.signal = sig;
    run.fault = (u64)info->si_addr;
    *rip = (greg_t)run.slot + RUN_SLOT;
}

/* Appends an instruction with a 32-bit displacement from RIP to @p, which must be its last field. */
static inline u8 *emit_rip(u8 *p, const u8 *op, unsigned n, const void *target)
{
    s32 disp;

    memcpy(p, op, n);
    disp = (s32)((const u8 *)target - (p + n + 4));
    memcpy(p + n, &disp, 4);
    return p + n + 4;
}

static inline u8 *emit_gpr(u8 *p, u8 opcode, unsigned n)
{
    const u8 op[3] = { n < 8 ? 0x48 : 0x4c, opcode, (u8)(5 | (n & 7) << 3) };

    return emit_rip(p, op, 3, &run.ctx->gpr[n]);
}

/* Makes the arena; false: impossible here. */
static inline bool run_open(void)
{
    static const u8 push[] = { 0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57 };
    static const u8 pop[] = { 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3 };
    static u8 signal_stack[65536];
    struct sigaction sa = { .sa_sigaction = run_caught, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    stack_t ss = { .ss_sp = signal_stack, .ss_size = sizeof(signal_stack) };
    u8 *p = mmap(NULL, 3 * PAGE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS |
                 MAP_32BIT, -1, 0);

    if (p == MAP_FAILED || sigaltstack(&ss, NULL) || sigaction(SIGSEGV, &sa, NULL) ||
        sigaction(SIGILL, &sa, NULL) || sigaction(SIGBUS, &sa, NULL) || sigaction(SIGTRAP, &sa, NULL))
        return false;
    run.code = p;
    run.ctx = (void *)(p + PAGE_SIZE);
    run.page = (void *)(p + 2 * PAGE_SIZE);
    memcpy(p, push, sizeof(push));
    p += sizeof(push);
    p = emit_rip(p, (const u8[]){ 0x48, 0x89, 0x25 }, 3, &run.ctx->host_rsp);      /* mov %rsp, host_rsp */
    p = emit_rip(p, (const u8[]){ 0xff, 0x35 }, 2, &run.ctx->flags);               /* push flags */
    *p++ = 0x9d;                                                                   /* popf */
    for (unsigned n = 0; n < 16; n++)
        p = emit_gpr(p, 0x8b, n);
    run.slot = p;
    p += RUN_SLOT;
    for (unsigned n = 0; n < 16; n++)
        p = emit_gpr(p, 0x89, n);
    p = emit_rip(p, (const u8[]){ 0x48, 0x8b, 0x25 }, 3, &run.ctx->host_rsp);      /* mov host_rsp, %rsp */
    *p++ = 0x9c;                                                                   /* pushf */
    p = emit_rip(p, (const u8[]){ 0x8f, 0x05 }, 2, &run.ctx->flags);               /* pop flags */
    *p++ = 0xfc;                                                                   /* cld */
    memcpy(p, pop, sizeof(pop));
    return true;
}

/* Runs the instruction at run.slot with @regs (general registers and flags), which it changes.  The signal
 * it ended with, or 0; run.fault has its address. */
static inline int run_insn(const u8 *bytes, unsigned len, struct cpu_regs *regs)
{
    void (*code)(void);

    memset(run.slot, 0x90, RUN_SLOT);
    memcpy(run.slot, bytes, len);
    for (unsigned n = 0; n < 16; n++)
        run.ctx->gpr[n] = *gpr(regs, n);
    run.ctx->flags = (regs->rflags & RUN_FLAGS) | 0x202;
    run.signal = 0;
    memcpy(&code, &run.code, sizeof(code));
    code();
    for (unsigned n = 0; n < 16; n++)
        *gpr(regs, n) = run.ctx->gpr[n];
    regs->rflags = (regs->rflags & ~RUN_FLAGS) | (run.ctx->flags & RUN_FLAGS);
    return run.signal;
}

/* A copy of @bytes that ends where an unreadable page starts. */
static inline u8 *at_guard(const u8 *bytes, unsigned len)
{
    static u8 *end;

    if (!end) {
        u8 *p = mmap(NULL, 2 * PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (p == MAP_FAILED || mprotect(p + PAGE_SIZE, PAGE_SIZE, PROT_NONE))
            abort();
        end = p + PAGE_SIZE;
    }
    memcpy(end - len, bytes, len);
    return end - len;
}

#endif
