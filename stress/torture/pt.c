/* SPDX-License-Identifier: MIT */
/* Tortures page tables: CPUs update, emulate, pin, unpin, hook, change roots, flush and give frames back, all on a few
 * frames, while their MMUs walk the tables, keep what they may and write to what they can reach.  Long work is suspended at
 * random, and gone on with by whoever needs it; some calls are never repeated.  Impossible is what the MMUs report (mmu.h), and
 * at rest whatever the audit finds. */
#include <string.h>

#include "above.h"
#include "audit.h"
#include "base/errno.h"
#include "mmu.h"
#include "pt_work.h"
#include "ptwalk.h"
#include "torture.h"

#define SLOTS   4                            /* entries of a table that are used */
#define PER     6                            /* frames a class: data, L1 .. L4 */
#define FRAMES  (5 * PER)

static struct { mfn_t root; bool kernel; u64 done, good, again; } __cacheline own[64];
static struct rcu_head limbo[FRAMES];
static u32 agents_off;

/* A frame that is mostly used as a table of @level (0: data). */
static u64 frame_for(int level, u64 *seed)
{
    if (!host_below(seed, 12))
        return host_below(seed, FRAMES + 2); /* anything, also what is not the domain's */
    return (u64)level * PER + host_below(seed, PER);
}

static u64 entry_for(int level, u64 *seed)
{
    u64 r = host_random(seed), flags = PTE_US | (r & 7 ? PTE_P : 0) | (r & 8 ? PTE_RW : 0) | (r & 0x30 ? 0 : PTE_D);

    if (!(r >> 8 & 63))
        flags |= r & 1 ? PTE_PSE : PTE_PCD;
    if (level > 1)
        flags |= PTE_RW;
    else if (host_below(seed, 3) == 0)
        return pte_make(MFN(frame_for(1 + (int)host_below(seed, 4), seed)), flags);      /* tables are mapped read-only */
    return pte_make(MFN(frame_for(level - 1, seed)), flags);
}

static int pick_level(u64 *seed)
{
    static const u8 level[] = { 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4 };

    return level[host_below(seed, sizeof(level))];
}

static struct frame *own_frame(u64 m)
{
    return m < FRAMES && load_relaxed(&frame_of(MFN(m))->owner) == HOST_DOM ? frame_of(MFN(m)) : NULL;
}

static int set(u64 *seed)
{
    int level = pick_level(seed);
    struct frame *f = own_frame(frame_for(level, seed));

    return f ? pt_set(&host_dom, f, host_below(seed, SLOTS), level, host_below(seed, 3) ? entry_for(level, seed) : 0,
                      host_below(seed, 2) ? PT_NORMAL : PT_PRESERVE_AD) : -XEN_EINVAL;
}

static int emulate(u64 *seed)
{
    static const u8 op[] = { PTE_OP_MOV, PTE_OP_XCHG, PTE_OP_AND, PTE_OP_BTR, PTE_OP_CMPXCHG };
    struct frame *f = own_frame(frame_for(1, seed));
    struct pte_insn i = { .op = op[host_below(seed, sizeof(op))], .size = 8, .reg = REGS_RCX };
    unsigned idx = host_below(seed, SLOTS);
    u64 regs[24] = { 0 };

    if (!f)
        return -XEN_EINVAL;
    regs[REGS_RCX / 8] = i.op == PTE_OP_BTR ? host_below(seed, 2) : i.op == PTE_OP_AND ? ~PTE_RW : entry_for(1, seed);
    regs[REGS_RAX / 8] = load_relaxed((u64 *)frame_map(f) + idx);
    return pt_emulate(&host_dom, f, idx * 8, &i, regs);
}

static int pin(u64 *seed)
{
    int level = pick_level(seed);

    return pt_pin(&host_dom, MFN(frame_for(level, seed)), FT_L1 + (enum frame_type)(level - 1));
}

static int unpin(u64 *seed) { return pt_unpin(&host_dom, MFN(frame_for(pick_level(seed), seed))); }

/* A multicall: it ends early when one of its operations has to be repeated. */
static int batch(u64 *seed)
{
    int rc = 0;

    pt_batch_begin();
    for (unsigned n = 1 + host_below(seed, 6); n > 0 && rc != -XEN_ERESTART; n--) {
        pt_batch_token(n);
        switch (host_below(seed, 6)) {
        case 0:  rc = unpin(seed); break;
        case 1:  rc = set(seed); break;
        default: rc = pin(seed);
        }
    }
    return pt_batch_end(&host_dom);
}

static void load(unsigned self)
{
    mfn_t root = own[self].root;

    if (root.v == MFN_INVALID.v)
        mmu_load_root(self, ~0ull, AS_NONE, false);
    else
        mmu_load_root(self, root.v, load_relaxed(&pt_meta(frame_of(root))->as), own[self].kernel);
}

static int new_root(unsigned self, u64 *seed)
{
    mfn_t old = own[self].root, new = MFN(frame_for(4, seed));
    bool kernel = host_below(seed, 2);
    int rc = 0;

    if (!host_below(seed, 8))
        new = MFN_INVALID;
    else
        rc = pt_get_type(&host_dom, new, FT_L4);
    if (rc)
        return rc;
    if (new.v != MFN_INVALID.v && !kernel && pt_mark_user_root(&host_dom, frame_of(new)))
        return -XEN_ERESTART;
    own[self].root = new;
    own[self].kernel = kernel;
    load(self);
    if (old.v != MFN_INVALID.v)
        pt_put_type(&host_dom, old);
    return 0;
}

/* The guest clears a page through a writable mapping of its own. */
static int clear(u64 *seed)
{
    mfn_t m = MFN(host_below(seed, FRAMES));
    int rc = pt_get_type(&host_dom, m, FT_W);

    if (rc)
        return rc;
    for (unsigned i = 0; i < SLOTS; i++)
        store_relaxed((u64 *)env_map(m) + i, host_below(seed, 3) ? 0 : entry_for(1 + (int)host_below(seed, 4), seed));
    pt_put_type(&host_dom, m);
    return 0;
}

/* A frame that died comes back after a grace period, with nothing left of it in any TLB. */
static void reborn(struct rcu_head *h)
{
    struct tlb_set all;

    tlb_set_clear(&all);
    for (unsigned c = 0; c < torture_cpus; c++)
        tlb_set_add(&all, c);
    tlb_flush_set(&all);
    frame_assign(frame_of(MFN((u64)(h - limbo))), HOST_DOM);
}

static void on_dead(struct frame *f) { call_rcu(&limbo[frame_mfn(f).v], reborn); }

static int release(u64 *seed)
{
    struct frame *f = own_frame(host_below(seed, FRAMES));
    int r = f ? frame_release(f) : -1;

    if (r == 1)
        env_frame_dead(f);
    return r < 0 ? -XEN_EINVAL : 0;
}

static int walk(unsigned self, u64 *seed)
{
    u64 va = 0;
    mfn_t m;

    for (unsigned l = 0; l < 4; l++)
        va |= (u64)host_below(seed, SLOTS) << (PAGE_SHIFT + 9 * l);
    if (own[self].root.v == MFN_INVALID.v)
        return -XEN_EINVAL;
    pt_walk_permits(&host_dom, own[self].root, va, 4 | (u32)host_below(seed, 2) * 2);
    return pt_walk_table(&host_dom, own[self].root, va, 1 + (int)host_below(seed, 3), &m) ? 0 : -XEN_EINVAL;
}

static int operation(unsigned self, u64 *seed)
{
    switch (host_below(seed, 20)) {
    case 0: case 1: case 2: case 3: case 4: case 5:
        return set(seed);
    case 6: case 7: case 8:  return emulate(seed);
    case 9: case 10:         return pin(seed);
    case 11: case 12:        return unpin(seed);
    case 13:                 return batch(seed);
    case 14:                 return new_root(self, seed);
    case 15: case 16:        return clear(seed);
    case 17:                 return host_below(seed, 8) ? walk(self, seed) : release(seed);
    case 18:                 tlb_flush_local(); return 0;
    default:                 mmu_step(self, seed, SLOTS); return 0;
    }
}

/* What a hypercall does around its operation.  -XEN_ERESTART: it is to be issued again. */
static int hypercall(unsigned self, u64 *seed)
{
    int rc = -XEN_ERESTART;

    pt_work_start();
    if (!pt_work_attention() || !pt_work_resume(&host_dom)) {
        rc = operation(self, seed);
        if (rc != -XEN_ERESTART && pt_work_attention())
            pt_work_settle(&host_dom);
    }
    tlb_poll();
    rcu_quiescent();
    return rc;
}

static void one(unsigned self, u64 *seed)
{
    u64 begun = *seed;
    int rc = hypercall(self, seed);

    for (unsigned i = host_below(&begun, 10) ? 200 : 0; rc == -XEN_ERESTART && i > 0; i--) {      /* some give up */
        *seed = begun;
        host_poll();
        rc = hypercall(self, seed);
    }
    own[self].again += rc == -XEN_ERESTART;
    if (rc == -XEN_ERESTART)
        return;
    if (rc && rc != -XEN_EINVAL && rc != -XEN_EAGAIN && rc != -XEN_ENOMEM)
        impossible("an error of no kind", (u64)rc);
    own[self].done++;
    own[self].good += !rc;
}

static void roots(struct audit *a)
{
    for (unsigned c = 0; c < torture_cpus; c++)
        if (own[c].root.v != MFN_INVALID.v)
            audit_root(a, own[c].root, !own[c].kernel);
}

static void finding(struct audit *a, const struct audit_finding *f)
{
    (void)a;
    printf("audit: frame %llu entry %d: %s %#llx, expected %#llx\n", (unsigned long long)f->mfn.v, f->entry, f->what,
           (unsigned long long)f->found, (unsigned long long)f->expected);
}

static void at_rest(void)
{
    struct audit a = { .d = &host_dom, .refs = roots, .report = finding };

    if (!audit_run(&a))
        impossible("the audit disagrees", a.wrong);
}

/* No work of this CPU is left, nor any that was in its way. */
static void finish(void)
{
    while (pt_work_attention()) {
        pt_work_start();
        if (!pt_work_resume(&host_dom))
            pt_work_settle(&host_dom);
        host_poll();
        rcu_quiescent();
    }
}

static void cpu(unsigned self, u64 *seed)
{
    own[self].root = MFN_INVALID;
    torture_rest(NULL);
    do {
        for (unsigned i = 0; i < 3000; i++) {
            one(self, seed);
            host_poll();
            tlb_poll();
            rcu_quiescent();
        }
    } while (!torture_rest(at_rest));
    /* The end of the domain: nothing may be left. */
    finish();
    if (own[self].root.v != MFN_INVALID.v) {
        mfn_t old = own[self].root;

        own[self].root = MFN_INVALID;
        load(self);
        pt_put_type(&host_dom, old);
        finish();
    }
    torture_rest(NULL);
    if (!self) {
        for (u64 m = 0; m < FRAMES; m++) {
            while (pt_unpin(&host_dom, MFN(m)) == -XEN_ERESTART)
                finish();
            finish();
        }
        for (u64 m = 0; m < FRAMES; m++)
            if (load_relaxed(&frame_of(MFN(m))->fw) & (FW_T | FW_U | FW_K | FW_BUSY))
                impossible("references left at the end", load_relaxed(&frame_of(MFN(m))->fw));
        store_relaxed(&agents_off, 1);
    }
    torture_rest(at_rest);
}

static void agent(u64 *seed)
{
    while (!load_relaxed(&agents_off)) {
        for (unsigned i = 0; i < 64; i++)
            mmu_step(host_below(seed, torture_cpus), seed, SLOTS);
        cpu_relax();
    }
}

int main(int argc, char **argv)
{
    bool with_agent = !(argc > 3 && !strcmp(argv[3], "no-agent"));
    u64 done = 0, good = 0, again = 0;
    char detail[320];

    torture_init(argc, argv, FRAMES, 64);
    pt_phys_mask = 0x0000003ffffff000ull;
    frame_release(frame_of(MFN(0)));             /* no domain has frame 0 */
    frame_of(MFN(0))->owner = OWNER_HV;
    host_on_dead = on_dead;
    host_dom.work = host_works();
    host_dom.nr_work = torture_cpus;
    host_preempt = 20;
    torture_run(cpu, with_agent ? agent : NULL);
    for (unsigned c = 0; c < torture_cpus; c++) {
        done += own[c].done;
        good += own[c].good;
        again += own[c].again;
    }
    if (mmu_bad.writable_table)
        impossible("writable translations of tables", mmu_bad.writable_table);
    if (mmu_bad.table_writable)
        impossible("writable frames walked as tables", mmu_bad.table_writable);
    if (mmu_bad.wrong_level)
        impossible("tables walked at another level", mmu_bad.wrong_level);
    if (!good || !stat_sum(STAT_type_down) || !stat_sum(STAT_work_parked) || (with_agent && !mmu_bad.walks))
        impossible("nothing happened", good);
    snprintf(detail, sizeof(detail), "%llu operations (%llu done, %llu given up, %llu ups, %llu retries, %llu parked, %llu taken over, "
             "%llu shootdowns, %llu deaths), "
             "%llu MMU steps (%llu walks, %llu hits)", (unsigned long long)done, (unsigned long long)good,
             (unsigned long long)again, (unsigned long long)stat_sum(STAT_type_up), (unsigned long long)stat_sum(STAT_pte_cas_retry),
             (unsigned long long)stat_sum(STAT_work_parked), (unsigned long long)stat_sum(STAT_work_taken_over),
             (unsigned long long)stat_sum(STAT_tlb_shootdown), (unsigned long long)host_dead, (unsigned long long)mmu_bad.steps,
             (unsigned long long)mmu_bad.walks, (unsigned long long)mmu_bad.hits);
    return torture_end(detail);
}
