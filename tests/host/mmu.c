/* SPDX-License-Identifier: MIT */
/* The software MMU; described in mmu.h. */
#include "mmu.h"

#include <pthread.h>
#include <string.h>

#include "env.h"
#include "pte.h"
#include "tlb.h"

struct mmu_bad mmu_bad;

struct tlb_entry { u64 va, mfn; bool valid, write; };
struct psc_entry { u64 va, mfn; int level; };            /* level: of the table @mfn; 0: unused */

static struct mmu {
    pthread_mutex_t lock;                                /* a walk is atomic against a flush of its own CPU only */
    u64 root;
    struct tlb_entry tlb[MMU_TLB];
    struct psc_entry psc[MMU_PSC];
    unsigned next_tlb, next_psc;
} mmu[ENV_MAX_CPUS];

void mmu_reset(void)
{
    memset(&mmu_bad, 0, sizeof(mmu_bad));
    for (unsigned c = 0; c < ENV_MAX_CPUS; c++) {
        memset(&mmu[c], 0, sizeof(mmu[c]));
        pthread_mutex_init(&mmu[c].lock, NULL);
        mmu[c].root = ~0ull;
    }
}

static void drop(struct mmu *m)
{
    memset(m->tlb, 0, sizeof(m->tlb));
    memset(m->psc, 0, sizeof(m->psc));
}

void mmu_flush(unsigned cpu)
{
    pthread_mutex_lock(&mmu[cpu].lock);
    drop(&mmu[cpu]);
    pthread_mutex_unlock(&mmu[cpu].lock);
}

void mmu_invlpg(unsigned cpu, u64 va)
{
    struct mmu *m = &mmu[cpu];

    pthread_mutex_lock(&m->lock);
    for (unsigned i = 0; i < MMU_TLB; i++)
        if (m->tlb[i].va == (va & PAGE_MASK))
            m->tlb[i].valid = false;
    memset(m->psc, 0, sizeof(m->psc));
    pthread_mutex_unlock(&m->lock);
}

void mmu_load_root(unsigned cpu, u64 root, u64 as, bool kernel)
{
    struct tlb_cpu *t = &tlb_cpu[cpu];
    bool change = as != t->as;
    u64 now;

    if (change)
        store_release(&t->as, AS_ANY);
    if (kernel)
        store_release(&t->mode, t->mode | 1);
    now = env_tsc();
    pthread_mutex_lock(&mmu[cpu].lock);
    drop(&mmu[cpu]);
    mmu[cpu].root = root;
    pthread_mutex_unlock(&mmu[cpu].lock);
    store_release(&t->flush_time, now);                  /* T1 */
    if (!kernel)
        store_release(&t->mode, t->mode & ~1ull);
    if (change)
        store_release(&t->as, as);
}

static void count(u64 *n) { __atomic_add_fetch(n, 1, __ATOMIC_RELAXED); }

/* The translation in @e is in use now: what is its frame?  The lock keeps a flush of this CPU from completing. */
static void check_leaf(const struct tlb_entry *e)
{
    u64 w = load_acquire(&frame_of(MFN(e->mfn))->fw);
    enum frame_type ty = fw_type(w);

    if (e->write && (w & FW_VALID) && ty != FT_W && ty != FT_NONE)
        count(&mmu_bad.writable_table);
}

static void check_table(u64 mfn, int level)
{
    u64 w = load_acquire(&frame_of(MFN(mfn))->fw);
    enum frame_type ty = fw_type(w);

    if (!(w & FW_VALID))
        return;
    if (ty == FT_W)
        count(&mmu_bad.table_writable);
    else if (ty != (enum frame_type)(FT_L1 + level - 1))
        count(&mmu_bad.wrong_level);
}

static u64 prefix(u64 va, int level) { return va >> (PAGE_SHIFT + 9 * level); }

/* Translates @va, filling the caches.  Lock held. */
static struct tlb_entry *walk(struct mmu *m, u64 va, bool write)
{
    u64 table = m->root, e = 0;
    int level = 4;
    bool writable = true;
    struct tlb_entry *t;

    if (table == ~0ull)
        return NULL;
    for (unsigned i = 0; i < MMU_PSC; i++) {
        const struct psc_entry *p = &m->psc[i];

        if (p->level && p->level < level && prefix(p->va, p->level) == prefix(va, p->level)) {
            table = p->mfn;
            level = p->level;
        }
    }
    count(&mmu_bad.walks);
    for (;; level--) {
        u64 *slot, set;

        check_table(table, level);
        slot = (u64 *)env_map(MFN(table)) + pt_index(va, level);
        e = load_acquire(slot);
        do {
            if (!(e & PTE_P) || pte_mfn(e).v >= max_mfn)
                return NULL;
            writable = writable && (e & PTE_RW);
            if (write && !(e & PTE_RW))
                return NULL;
            set = PTE_A | (level == 1 && write ? PTE_D : 0);
        } while ((e & set) != set && !atomic_cas64(slot, &e, e | set));
        table = pte_mfn(e).v;
        if (level == 1)
            break;
        m->psc[m->next_psc] = (struct psc_entry){ va, table, level - 1 };
        m->next_psc = (m->next_psc + 1) % MMU_PSC;
    }
    t = &m->tlb[m->next_tlb];
    m->next_tlb = (m->next_tlb + 1) % MMU_TLB;
    /* Writable without D set would need another walk for the first write. */
    *t = (struct tlb_entry){ va & PAGE_MASK, table, true, writable && (e & PTE_D || write) };
    check_leaf(t);
    return t;
}

static struct tlb_entry *lookup(struct mmu *m, u64 va, bool write)
{
    for (unsigned i = 0; i < MMU_TLB; i++) {
        struct tlb_entry *t = &m->tlb[i];

        if (t->valid && t->va == (va & PAGE_MASK) && (t->write || !write)) {
            count(&mmu_bad.hits);
            return t;
        }
    }
    return walk(m, va, write);
}

/* What guests write: never an acceptable entry, so that a scan of a frame still written to fails the audit. */
static void scribble(const struct tlb_entry *t, u64 value)
{
    check_leaf(t);
    store_relaxed((u64 *)env_map(MFN(t->mfn)) + (value >> 8 & 511), value & ~PTE_P);
}

bool mmu_access(unsigned cpu, u64 va, bool write, u64 *mfn)
{
    struct mmu *m = &mmu[cpu];
    struct tlb_entry *t;

    pthread_mutex_lock(&m->lock);
    t = lookup(m, va, write);
    if (t) {
        check_leaf(t);
        if (mfn)
            *mfn = t->mfn;
    }
    pthread_mutex_unlock(&m->lock);
    return t;
}

void mmu_step(unsigned cpu, u64 *seed, unsigned slots)
{
    struct mmu *m = &mmu[cpu];
    u64 r = host_random(seed), va = 0;
    struct tlb_entry *t;

    for (int l = 1; l <= 4; l++)
        va |= (u64)host_below(seed, slots) << (PAGE_SHIFT + 9 * (l - 1));
    pthread_mutex_lock(&m->lock);
    count(&mmu_bad.steps);
    for (unsigned i = 0; i < MMU_PSC; i++)
        if (m->psc[i].level)
            check_table(m->psc[i].mfn, m->psc[i].level);
    for (unsigned i = 0; i < MMU_TLB; i++)
        if (m->tlb[i].valid)
            check_leaf(&m->tlb[i]);
    if (r & 1) {
        t = lookup(m, va, r & 2);
        if (t && (r & 2))
            scribble(t, r);
    } else {
        t = &m->tlb[r >> 1 & 15];
        if (t->valid && t->write)
            scribble(t, r);
    }
    pthread_mutex_unlock(&m->lock);
}
