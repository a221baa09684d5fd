/* SPDX-License-Identifier: MIT */
/* The MMU of each CPU: walks the real table bytes, a TLB and paging-structure caches that keep what they have until
 * they are flushed, accessed and dirty bits.  Page walks read memory, not the CPU's store buffer. */
#include "mc.h"

#include <string.h>

u64 mc_va[NVA];
u8 mc_writers[FRAMES], oracle_maps[FRAMES], oracle_uses[FRAMES][5], oracle_users[FRAMES][5];

/* The page that stands for all pages sharing a table of @level on their way. */
static const u8 rep[NVA][4] = {
    { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 0, 2, 0, 0 }, { 0, 3, 3, 0 },
    { 0, 4, 4, 4 }, { 0, 4, 4, 4 }, { 0, 6, 6, 6 }, { 0, 4, 4, 4 },
};
#define WALKS 3

void mmu_set_watch(const u8 *watch)
{
    static const u8 at[3] = { 4, 5, 7 };

    mc_va[0] = 0;
    mc_va[1] = 1ull << 12;
    mc_va[2] = 1ull << 21;
    mc_va[3] = 1ull << 30;
    mc_va[6] = 1ull << 39;
    for (unsigned i = 0; i < 3; i++)
        mc_va[at[i]] = 0xffff880000000000ull + (watch[i] ? watch[i] : 15u + i) * PAGE_SIZE;
}

static void enable(unsigned cpu, unsigned v)
{
    struct cpu *c = &cpus[cpu];
    u64 bit = BIT(ACTOR_MMU(cpu, v));

    if (c->cr3.v < FRAMES && (c->budget[v] || c->walk[v].level))
        mc.enabled |= bit;
    else
        mc.enabled &= ~bit;
}

static void drop_tlb(struct cpu *c, unsigned v)
{
    struct tlb_entry *t = &c->tlb[v];

    if (!t->ok)
        return;
    oracle_maps[t->frame]--;
    if (t->rw && t->us)
        mc_writers[t->frame]--;
    t->ok = 0;
}

static void drop_psc(struct cpu *c)
{
    for (unsigned v = 0; v < NVA; v++) {
        for (unsigned l = 1; l <= 3; l++) {
            struct psc_entry *e = &c->psc[v][l];

            if (!e->ok)
                continue;
            oracle_uses[e->frame][l]--;
            if (e->us)
                oracle_users[e->frame][l]--;
            e->ok = 0;
        }
    }
}

void mmu_flush(unsigned cpu)
{
    struct cpu *c = &cpus[cpu];

    drop_psc(c);
    for (unsigned v = 0; v < NVA; v++) {
        drop_tlb(c, v);
        c->walk[v].level = 0;
        enable(cpu, v);
    }
}

void mmu_invlpg(unsigned cpu, unsigned v)
{
    struct cpu *c = &cpus[cpu];

    drop_psc(c);
    drop_tlb(c, v);
    for (unsigned i = 0; i < NVA; i++) {
        c->walk[i].level = 0;
        enable(cpu, i);
    }
}

void mmu_reset(u8 pages)
{
    memset(mc_writers, 0, sizeof(mc_writers));
    memset(oracle_maps, 0, sizeof(oracle_maps));
    memset(oracle_uses, 0, sizeof(oracle_uses));
    memset(oracle_users, 0, sizeof(oracle_users));
    for (unsigned c = 0; c < mc.nr_cpus; c++) {
        memset(cpus[c].tlb, 0, sizeof(cpus[c].tlb));
        memset(cpus[c].psc, 0, sizeof(cpus[c].psc));
        memset(cpus[c].walk, 0, sizeof(cpus[c].walk));
        for (unsigned v = 0; v < NVA; v++) {
            cpus[c].budget[v] = !pages || pages >> v & 1 ? WALKS : 0;
            enable(c, v);
        }
    }
}

static void start_walk(struct cpu *c, unsigned v, struct walk *w)
{
    for (unsigned l = 1; l <= 3; l++) {
        const struct psc_entry *e = &c->psc[rep[v][l]][l];

        if (e->ok) {
            *w = (struct walk){ (u8)l, e->frame, e->rw, e->us };
            return;
        }
    }
    *w = (struct walk){ 4, (u8)c->cr3.v, 1, 1 };
}

static void fill_psc(struct cpu *c, unsigned v, const struct walk *w)
{
    struct psc_entry *e = &c->psc[rep[v][w->level]][w->level];

    if (e->ok) {
        oracle_uses[e->frame][w->level]--;
        if (e->us)
            oracle_users[e->frame][w->level]--;
    }
    *e = (struct psc_entry){ 1, w->frame, w->rw, w->us };
    oracle_uses[e->frame][w->level]++;
    if (e->us)
        oracle_users[e->frame][w->level]++;
    oracle_cached(e->frame);
}

static void fill_tlb(struct cpu *c, unsigned v, const struct walk *w, unsigned frame, bool dirty)
{
    struct tlb_entry *t = &c->tlb[v];

    drop_tlb(c, v);
    *t = (struct tlb_entry){ 1, (u8)frame, w->rw, w->us, dirty };
    oracle_maps[frame]++;
    if (t->rw && t->us)
        mc_writers[frame]++;
    oracle_cached(frame);
}

/* Reads one entry.  True: the walk is over; w->level is then 0. */
static bool walk_step(unsigned cpu, unsigned v, struct walk *w, bool write)
{
    struct cpu *c = &cpus[cpu];
    unsigned idx = pt_index(mc_va[v], w->level), table = w->frame, level = w->level;
    u64 *slot = mc_slot(table, idx), e = *slot, set;

    oracle_slot(table, idx);
    TRACE("c%u   mmu.%u reads %s -> %#llx", cpu, v, mc_name(slot), (unsigned long long)e);
    if (!(e & PTE_P)) {
        w->level = 0;
        return true;
    }
    if (pte_mfn(e).v >= FRAMES)
        mc_violation("CPU %u's walk of page %u leaves memory through %s", cpu, v, mc_name(slot));
    w->rw &= e >> 1 & 1;
    w->us &= e >> 2 & 1;
    set = PTE_A | (write && level == 1 && w->rw && w->us ? PTE_D : 0);
    if ((e & set) != set) {
        u64 fw = mc_frames[table].fw;

        if (fw & FW_VALID && (fw_type(fw) < FT_L1 || fw_type(fw) > FT_L4))
            mc_violation("CPU %u's walk of page %u sets a bit in %s, which is no table", cpu, v, mc_name(slot));
        mc_commit(cpu, slot, e | set, 8, false);
    }
    if (level == 1) {
        w->level = 0;
        fill_tlb(c, v, w, (unsigned)pte_mfn(e).v, e >> 6 & 1 || set & PTE_D);
        return true;
    }
    w->level--;
    w->frame = (u8)pte_mfn(e).v;
    fill_psc(c, v, w);
    return false;
}

void mmu_step(unsigned cpu, unsigned v, bool write)
{
    struct cpu *c = &cpus[cpu];
    struct walk *w = &c->walk[v];

    if (!w->level) {
        drop_tlb(c, v);                          /* it may evict what it has at any time */
        c->budget[v]--;
        start_walk(c, v, w);
    }
    walk_step(cpu, v, w, write);
    enable(cpu, v);
}

void mmu_prefill(unsigned cpu)
{
    for (unsigned v = 0; v < NVA; v++) {
        struct walk w;

        if (cpus[cpu].tlb[v].ok || cpus[cpu].cr3.v >= FRAMES || !cpus[cpu].budget[v])
            continue;
        start_walk(&cpus[cpu], v, &w);
        while (!walk_step(cpu, v, &w, false))
            ;
        enable(cpu, v);
    }
}

unsigned mmu_access(unsigned v, bool write, unsigned idx, u64 val)
{
    struct cpu *c = &cpus[mc.cpu];
    struct tlb_entry *t = &c->tlb[v];
    struct walk w;

    if (c->cr3.v >= FRAMES)
        return 4;
    mc_point();
    if (!t->ok || (write && t->rw && !t->dirty)) {
        start_walk(c, v, &w);
        while (!walk_step(mc.cpu, v, &w, write))
            mc_point();
        enable(mc.cpu, v);
        if (!t->ok)
            return 4 | (write ? 2 : 0);
    }
    if (!t->us || (write && !t->rw)) {
        unsigned error = 1 | 4 | (write ? 2 : 0);

        drop_tlb(c, v);                          /* a fault drops what it came from */
        enable(mc.cpu, v);
        return error;
    }
    if (write)
        mc_store_guest(mc_slot(t->frame, idx), val);
    return 0;
}
