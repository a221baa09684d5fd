/* SPDX-License-Identifier: MIT */
/* Shared memory as x86-TSO gives it: a FIFO of stores for each CPU, drained by locked operations and at any time. */
#include "mc.h"

#include <stdio.h>

u8 mc_mem[FRAMES][PAGE_SIZE] __attribute__((aligned(4096)));
u8 mc_hv[HV_PAGES][PAGE_SIZE] __attribute__((aligned(4096)));
struct frame mc_frames[FRAMES];
u8 mc_interesting[FRAMES][PT_ENTRIES];

static struct { u64 *p, v; } undo[1u << 16];
static unsigned undo_n;

static inline bool in(const void *p, const void *start, const void *end)
{
    return (u64)p - (u64)start < (u64)end - (u64)start;
}
static inline bool in_mem(const void *p) { return in(p, mc_mem, mc_mem + FRAMES); }
static inline unsigned mem_frame(const void *p) { return (unsigned)(((u64)p - (u64)mc_mem) / PAGE_SIZE); }
static inline unsigned mem_idx(const void *p) { return (unsigned)(((u64)p - (u64)mc_mem) % PAGE_SIZE / 8); }

/* Everything that the sources may touch. */
static void check(const void *p)
{
    if (likely(in(p, mc_frames, mc_frames + FRAMES) || in_mem(p) || in(p, __start_mcstate, __stop_mcstate) ||
               in(p, mc_hv, mc_hv + HV_PAGES)))
        return;
    mc_violation("access to a wild address %#llx", (unsigned long long)(u64)p);
}

const char *mc_name(const void *p)
{
    static char buf[2][64];
    static unsigned n;
    char *b = buf[n++ & 1];
    u64 off;

    if (in(p, mc_frames, mc_frames + FRAMES)) {
        static const char *const field[] = { "fw", "owner", "stamp", "meta" };

        off = (u64)p - (u64)mc_frames;
        snprintf(b, 64, "%s.%s", world_name((unsigned)(off / sizeof(struct frame))), field[off % 32 / 8]);
    } else if (in_mem(p)) {
        snprintf(b, 64, "%s[%u]", world_name(mem_frame(p)), mem_idx(p));
    } else if (in(p, tlb_cpu, tlb_cpu + CPUS)) {
        const struct tlb_cpu *t = &tlb_cpu[((u64)p - (u64)tlb_cpu) / sizeof(*t)];

        off = (u64)p - (u64)t;
        snprintf(b, 64, "tlb%u.%s", (unsigned)(t - tlb_cpu), off == offsetof(struct tlb_cpu, word) ? "word" :
                 off == offsetof(struct tlb_cpu, ack) ? "ack" :
                 off == offsetof(struct tlb_cpu, flush_time) ? "flush_time" :
                 off == offsetof(struct tlb_cpu, as) ? "as" : "mode");
    } else if (in(p, mc_hv, mc_hv + HV_PAGES)) {
        snprintf(b, 64, "hv+%#llx", (unsigned long long)((u64)p - (u64)mc_hv));
    } else {
        snprintf(b, 64, "state+%#llx", (unsigned long long)((u64)p - (u64)__start_mcstate));
    }
    return b;
}

static u64 raw_load(const void *p, unsigned size)
{
    switch (size) {
    case 1:  return *(const volatile u8 *)p;
    case 2:  return *(const volatile u16 *)p;
    case 4:  return *(const volatile u32 *)p;
    default: return *(const volatile u64 *)p;
    }
}

void mc_commit(unsigned cpu, void *p, u64 v, unsigned size, bool guest)
{
    u64 old = raw_load(p, size);

    if (in_mem(p)) {
        unsigned f = mem_frame(p);

        if (guest)
            oracle_guest_store(f);
        if (undo_n == ARRAY_SIZE(undo))
            mc_violation("undo log is full");
        undo[undo_n].p = (u64 *)((u64)p & ~7ull);
        undo[undo_n].v = *undo[undo_n].p;
        undo_n++;
    }
    switch (size) {
    case 1:  *(volatile u8 *)p = (u8)v; break;
    case 2:  *(volatile u16 *)p = (u16)v; break;
    case 4:  *(volatile u32 *)p = (u32)v; break;
    default: *(volatile u64 *)p = v; break;
    }
    if (old == v)
        return;
    mc_wake_waiters(cpu);
    if (in(p, mc_frames, mc_frames + FRAMES)) {
        u64 off = (u64)p - (u64)mc_frames;

        if (off % sizeof(struct frame) == offsetof(struct frame, fw))
            oracle_fw((unsigned)(off / sizeof(struct frame)), old, v, cpu);
    } else if (in_mem(p) && !mc.direct) {
        oracle_slot(mem_frame(p), mem_idx(p));
    }
}

void mc_undo_mark(void) { undo_n = 0; }

void mc_undo(void)
{
    while (undo_n) {
        undo_n--;
        *undo[undo_n].p = undo[undo_n].v;
    }
}

void mc_drain_one(unsigned cpu)
{
    struct cpu *c = &cpus[cpu];
    typeof(c->sb[0]) s = c->sb[0];

    TRACE("c%u   drain %s = %#llx", cpu, mc_name(s.p), (unsigned long long)s.v);
    c->sb_n--;
    for (unsigned i = 0; i < c->sb_n; i++)
        c->sb[i] = c->sb[i + 1];
    if (!c->sb_n)
        mc.enabled &= ~BIT(ACTOR_DRAIN(cpu));
    mc_commit(cpu, s.p, s.v, s.size, s.guest);
}

void mc_drain_all(void)
{
    struct cpu *c = &cpus[mc.cpu];

    while (c->sb_n) {
        mc_drain_one(mc.cpu);
        mc_point();
    }
}

u64 mc_load(const void *p, unsigned size)
{
    struct cpu *c;
    u64 v;

    if (in_mem(p) && !mc_interesting[mem_frame(p)][mem_idx(p)])
        return raw_load(p, size);
    mc_point();
    check(p);
    c = &cpus[mc.cpu];
    if (in_mem(p) && !mc.direct)
        oracle_read(mem_frame(p), mc.cpu);
    v = raw_load(p, size);
    for (unsigned i = c->sb_n; i-- > 0;) {
        u64 d = (u64)p - (u64)c->sb[i].p;

        if (!d && c->sb[i].size == size) {
            v = c->sb[i].v;
            break;
        }
        if (d < c->sb[i].size || -d < size) {
            mc_drain_all();                     /* no forwarding from a part: it waits for the store */
            v = raw_load(p, size);
            break;
        }
    }
    TRACE("c%u load %s -> %#llx", mc.cpu, mc_name(p), (unsigned long long)v);
    return v;
}

static void buffer(void *p, u64 v, unsigned size, bool guest)
{
    struct cpu *c = &cpus[mc.cpu];

    if (mc.direct) {
        mc_commit(mc.cpu, p, v, size, guest);
        return;
    }
    if (c->sb_n == SB_DEPTH)
        mc_drain_one(mc.cpu);
    c->sb[c->sb_n].p = p;
    c->sb[c->sb_n].v = v;
    c->sb[c->sb_n].size = (u8)size;
    c->sb[c->sb_n].guest = guest;
    c->sb_n++;
    mc.enabled |= BIT(ACTOR_DRAIN(mc.cpu));
}

void mc_store(void *p, u64 v, unsigned size)
{
    if (in_mem(p) && !mc_interesting[mem_frame(p)][mem_idx(p)] && !mc.direct && raw_load(p, size) == v)
        return;
    mc_point();
    check(p);
    TRACE("c%u store %s = %#llx", mc.cpu, mc_name(p), (unsigned long long)v);
    buffer(p, v, size, false);
}

void mc_store_guest(void *p, u64 v)
{
    mc_point();
    TRACE("c%u guest store %s = %#llx", mc.cpu, mc_name(p), (unsigned long long)v);
    buffer(p, v, 8, true);
}

bool mc_cas(void *p, u64 *old, u64 new, unsigned size)
{
    u64 v;

    mc_point();
    check(p);
    mc_drain_all();
    v = raw_load(p, size);
    TRACE("c%u cas %s %#llx -> %#llx %s", mc.cpu, mc_name(p), (unsigned long long)*old, (unsigned long long)new,
          v == *old ? "ok" : "fails");
    if (v != *old) {
        *old = v;
        return false;
    }
    mc_commit(mc.cpu, p, new, size, false);
    return true;
}

u64 mc_rmw(enum mc_rmw op, void *p, u64 v, unsigned size)
{
    u64 old, new;

    mc_point();
    check(p);
    mc_drain_all();
    old = raw_load(p, size);
    new = op == MC_XCHG ? v : op == MC_ADD ? old + v : op == MC_OR ? old | v : old & v;
    TRACE("c%u rmw %s %#llx -> %#llx", mc.cpu, mc_name(p), (unsigned long long)old, (unsigned long long)new);
    mc_commit(mc.cpu, p, new, size, false);
    return old;
}

void mc_fence(void)
{
    mc_point();
    mc_drain_all();
}
