/* SPDX-License-Identifier: MIT */
/* What happens on a trap: record it and continue where the test expects that, or fail the test. */
#include "guest.h"

u64 port_count[64];

extern const u64 ex_table_start[][2], ex_table_end[][2];

void register_traps(void)
{
    static struct trap_info t[257];
    struct callback_register cb[] = {
        { .type = CALLBACKTYPE_event, .address = (u64)event_entry },
        { .type = CALLBACKTYPE_failsafe, .address = (u64)failsafe_entry },
        { .type = CALLBACKTYPE_syscall, .flags = CALLBACKF_mask_events, .address = (u64)syscall_entry },
    };
    unsigned n = 0;

    for (unsigned v = 0; v < 256; v++) {
        if (v >= 32 && v != 0x20 && v != 0x80)
            continue;
        t[n].vector = (u8)v;
        t[n].flags = (v == 3 || v == 4 || v == 0x80 ? 3 : 0) | 4;
        t[n].cs = 0xe033;
        t[n].address = (u64)trap_stubs[v];
        n++;
    }
    t[n].address = 0;
    EQ(HC(set_trap_table, t), 0);
    for (unsigned i = 0; i < COUNT(cb); i++)
        EQ(HC(callback_op, CALLBACKOP_register, &cb[i]), 0);
}

static void take_events(struct cpu *c)
{
    u64 sel;

    c->upcalls++;
    c->upcall_ns = now_ns();
    __atomic_store_n(&c->info->evtchn_upcall_pending, 0, __ATOMIC_SEQ_CST);
    sel = __atomic_exchange_n(&c->info->evtchn_pending_sel, 0, __ATOMIC_SEQ_CST);
    for (unsigned w = 0; w < 64; w++) {
        u64 bits;

        if (!(sel >> w & 1))
            continue;
        bits = load(&shared->evtchn_pending[w]) & ~load(&shared->evtchn_mask[w]);
        __atomic_fetch_and(&shared->evtchn_pending[w], ~bits, __ATOMIC_SEQ_CST);
        for (unsigned b = 0; b < 64; b++)
            if (w == 0 && bits >> b & 1)
                __atomic_fetch_add(&port_count[b], 1, __ATOMIC_SEQ_CST);
    }
}

static u64 fixup(u64 rip)
{
    for (const u64 (*e)[2] = ex_table_start; e < ex_table_end; e++)
        if ((*e)[0] == rip)
            return (*e)[1];
    return 0;
}

static void record(struct cpu *c, const struct regs *r)
{
    c->trap = *r;
    c->trap_cr2 = c->info->arch.cr2;
    c->trap_frame_end = (u64)(r + 1);
    c->traps++;
}

void trap_handler(struct regs *r)
{
    struct cpu *c = this_cpu();
    u64 to;

    if (r->vec == VEC_EVENT) {
        c->upcall = *r;
        take_events(c);
        if (!c->catch_all)
            return;
    }
    if ((r->cs & 3) == 3 || c->catch_all) {
        record(c, r);
        c->catch_all = false;
        to = c->frame_sp;
        c->frame_sp = 0;
        if (!to) {
            fail_trap(r, c->trap_cr2);
            for (;;)
                pause_();
        }
        leave(to);
    }
    to = fixup(r->vec == 3 ? r->rip - 1 : r->rip);
    if (to) {
        record(c, r);
        r->rip = to;
        return;
    }
    if (r->vec == 1 || r->vec == 3 || (r->vec >= 32 && r->vec < 256) || r->vec == VEC_FAILSAFE) {
        record(c, r);
        r->rflags &= ~0x100ul;                  /* one step is enough */
        return;
    }
    fail_trap(r, c->info->arch.cr2);
    if (!c->test_sp)
        shutdown(SHUTDOWN_crash);
    leave(c->test_sp);
}

struct regs *enter(const struct frame_iret *f, bool any, u64 rdi, u64 rsi)
{
    struct cpu *c = this_cpu();

    c->catch_all = any;
    enter_frame(f, &c->frame_sp, rdi, rsi);
    c->catch_all = false;
    return &c->trap;
}
