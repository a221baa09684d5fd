/* SPDX-License-Identifier: MIT */
/* Writable page tables; the scheme is described in ptwr.h. */
#include "ptwr.h"

#include "pt_internal.h"
#include "ptwalk.h"

static bool smp_guest;

bool ptwr_init(struct mm_domain *d, bool many_vcpus)
{
    /* The domain has one; its slots and snapshots are pages of their own. */
    d->ptwr = env_page_alloc();
    if (!d->ptwr)
        return false;
    *d->ptwr = (struct ptwr_dom){ 0 };
    smp_guest = many_vcpus;
    for (unsigned i = 0; i < 2; i++) {
        d->ptwr->slot[i].snapshot = env_page_alloc();
        d->ptwr->slot[i].prev_changed = 1;
        if (!d->ptwr->slot[i].snapshot)
            return false;
    }
    return true;
}

static void lock(struct ptwr_dom *p)
{
    while (load_relaxed(&p->lock) || atomic_xchg32(&p->lock, 1)) {
        tlb_poll();
        cpu_relax();
    }
    store_relaxed(&p->owner, env_cpu() + 1);
}

static void unlock(struct ptwr_dom *p)
{
    store_relaxed(&p->owner, 0);
    store_release(&p->lock, 0);
}

/* Every CPU that runs the domain drops its translations. */
static void flush_domain(void)
{
    struct tlb_set s;

    tlb_set_clear(&s);
    for (unsigned c = 0; c < env_nr_cpus(); c++)
        if (load_acquire(&tlb_cpu[c].as) != AS_NONE)
            tlb_set_add(&s, c);
    tlb_flush_set(&s);
}

static void set_bits(u64 *pte, u64 set, u64 clear)
{
    u64 old = load_relaxed(pte);

    while (!atomic_cas64(pte, &old, (old | set) & ~clear))
        ;
}

static void count_changed(u32 n)
{
    stat_add(ptwr_changed, n);
    if (n == 0)
        stat_inc(ptwr_changed_0);
    else if (n == 1)
        stat_inc(ptwr_changed_1);
    else if (n < 8)
        stat_inc(ptwr_changed_2_7);
    else if (n < 64)
        stat_inc(ptwr_changed_8_63);
    else if (n < 256)
        stat_inc(ptwr_changed_64_255);
    else
        stat_inc(ptwr_changed_256_512);
}

/* Brings the references in line with what the guest wrote; false: an entry is not acceptable. */
static bool revalidate(struct mm_domain *d, struct ptwr_slot *s, u32 *changed)
{
    u64 *pte = frame_map(s->f);
    bool user = load_relaxed(&pt_meta(s->f)->user);

    for (unsigned i = 0; i < PT_ENTRIES; i++) {
        u64 old = s->snapshot[i], new = load_relaxed(&pte[i]), adj;

        if (likely(old == new))
            continue;
        (*changed)++;
        adj = pte_adjust(new, 1);
        if (pte_l1tf(new))
            goto refuse;
        if ((adj & PTE_P) && !((old & PTE_P) && !((old ^ adj) & (PTE_P | PTE_RW | PTE_CACHE | PTE_MFN_MASK)))) {
            int rc;

            while ((rc = pt_get_l1e(d, adj)) == -XEN_ERESTART)
                pt_work_drain(d);               /* a table on its way down becomes writable */
            if (rc)
                goto refuse;
            if (old & PTE_P)
                pt_put_l1e(d, old, user);
        } else if (!(adj & PTE_P) && (old & PTE_P)) {
            pt_put_l1e(d, old, user);
        }
        if (adj != new)
            store_relaxed(&pte[i], adj);
        continue;

refuse:
        for (; i < PT_ENTRIES; i++)
            store_relaxed(&pte[i], s->snapshot[i]);
        return false;
    }
    return true;
}

static void close_slot(struct mm_domain *d, struct ptwr_slot *s)
{
    u32 changed = 0;
    bool ok;

    set_bits(s->map_pte, 0, PTE_RW);
    flush_domain();                                                   /* W2 */
    ok = revalidate(d, s, &changed);
    if (s->hook)
        set_bits(s->hook, PTE_US, 0);
    frame_up_done(s->f, false);
    s->f = NULL;
    s->prev_changed = changed;
    stat_inc(ptwr_close);
    count_changed(changed);
    if (!ok)
        env_ptwr_bad_entry();
}

static bool close_all(struct mm_domain *d)
{
    bool any = false;

    for (unsigned i = 0; i < 2; i++) {
        if (d->ptwr->slot[i].f) {
            close_slot(d, &d->ptwr->slot[i]);
            any = true;
        }
    }
    return any;
}

void ptwr_enter(struct mm_domain *d, enum stat_id why)
{
    lock(d->ptwr);
    if (close_all(d))
        ENV_OWN_STATS[why]++;
}

static bool any_open(const struct ptwr_dom *p)
{
    return load_acquire(&p->slot[0].f) || load_acquire(&p->slot[1].f);
}

enum ptwr_access ptwr_access_begin(struct mm_domain *d)
{
    struct ptwr_dom *p = d->ptwr;

    if (load_relaxed(&p->owner) == env_cpu() + 1)
        return PTWR_OURS;
    atomic_faa32(&p->accessors, 1);                                   /* W3 */
    if (likely(!load_acquire(&p->opening) && !any_open(p)))
        return PTWR_COUNTED;
    atomic_faa32(&p->accessors, -1u);
    ptwr_enter(d, STAT_ptwr_flush_other);
    return PTWR_LOCKED;
}

void ptwr_access_end(struct mm_domain *d, enum ptwr_access how)
{
    if (how == PTWR_COUNTED)
        atomic_faa32(&d->ptwr->accessors, -1u);
    else if (how == PTWR_LOCKED)
        ptwr_exit(d);
}

void ptwr_exit(struct mm_domain *d) { unlock(d->ptwr); }

/* Is this table in a state in which it may be opened?  Otherwise counts why not. */
static bool may_open(const struct frame *f, u64 w, const struct pt_meta *meta)
{
    u64 expect = (w & FW_PIN ? 1 : 0) + (meta->back != BACK_NONE ? 1 : 0);

    if (meta->back == BACK_MANY) {
        stat_inc(ptwr_emulate_many);
        return false;
    }
    if (fw_t(w) != expect || (smp_guest && (w & FW_U) != 1) || (w & FW_CM)) {
        stat_inc(ptwr_emulate_shared);
        return false;
    }
    (void)f;
    return true;
}

bool ptwr_open_fault(struct mm_domain *d, mfn_t root, struct frame *f, u64 addr)
{
    struct ptwr_dom *p = d->ptwr;
    struct ptwr_slot *s;
    struct pt_meta *meta;
    unsigned which;
    mfn_t map;
    u64 w, *slot_pte;

    lock(p);
    for (unsigned i = 0; i < 2; i++) {
        if (p->slot[i].f == f) {
            unlock(p);                          /* opened by another vCPU meanwhile: the write may be repeated */
            return true;
        }
        if (p->slot[i].f && p->slot[i].map_table == f) {
            stat_inc(ptwr_flush_conflict);      /* the write is to the entry that maps an open table */
            close_slot(d, &p->slot[i]);
        }
    }
    w = load_acquire(&f->fw);
    if ((w & (FW_VALID | FW_BUSY | FW_TY)) != (FW_VALID | (u64)FT_L1 << FW_TY_SHIFT))
        goto emulate;
    meta = pt_meta(f);
    if (!may_open(f, w, meta))
        goto emulate;
    which = meta->back != BACK_NONE && meta->as == load_relaxed(&tlb_cpu[env_cpu()].as) ? PTWR_ACTIVE : PTWR_INACTIVE;
    s = &p->slot[which];
    if (s->f) {
        stat_inc(ptwr_flush_slot);
        close_slot(d, s);
    }
    if (!s->prev_changed) {
        s->prev_changed = 1;                    /* the last batch was opened for nothing: make sure of progress */
        stat_inc(ptwr_emulate_progress);
        goto emulate;
    }
    if (!pt_walk_table(d, root, addr, 1, &map))
        goto emulate;
    slot_pte = (u64 *)env_map(map) + pt_index(addr, 1);
    if (!mfn_eq(pte_mfn(load_relaxed(slot_pte)), frame_mfn(f)) || frame_of(map) == f)
        goto emulate;

    w = load_acquire(&f->fw);
    do {
        if (!(w & FW_VALID) || (w & FW_BUSY))
            goto emulate;
    } while (!atomic_cas64(&f->fw, &w, (w | FW_BUSY) & ~FW_VALID));
    frame_drain_k(f);
    atomic_xchg32(&p->opening, 1);                                    /* W3 */
    while (load_acquire(&p->accessors)) {
        tlb_poll();
        cpu_relax();
    }
    s->hook = NULL;
    if (meta->back != BACK_NONE) {
        s->hook = (u64 *)((char *)env_map(MFN(meta->back >> PAGE_SHIFT)) + (meta->back & (PAGE_SIZE - 1)));
        set_bits(s->hook, 0, PTE_US);
    }
    flush_domain();                  /* W1; of a table that hangs nowhere a CPU may have the entry it hung in cached */
    store_release(&s->f, f);
    store_release(&p->opening, 0);                                    /* W4 */
    s->map_pte = slot_pte;
    s->map_table = frame_of(map);
    __builtin_memcpy(s->snapshot, frame_map(f), PAGE_SIZE);
    set_bits(slot_pte, PTE_RW, 0);
    stat_inc(ptwr_open);
    if (which == PTWR_INACTIVE)
        stat_inc(ptwr_open_inactive);
    unlock(p);
    return true;

emulate:
    /* The instruction is read through the guest's tables: nothing may be open then. */
    if (close_all(d))
        stat_inc(ptwr_flush_conflict);
    return false;
}

bool ptwr_fault(struct mm_domain *d, mfn_t root, u64 addr, u32 error)
{
    struct ptwr_dom *p = d->ptwr;
    bool hit = false;
    mfn_t l2;

    /* The usual fault has nothing to do with this: no lock for it, as long as nothing was opened meanwhile. */
    if (!any_open(p)) {
        if (pt_walk_permits(d, root, addr, error))
            return true;
        /* In the order opposite to ptwr_open_fault()'s stores: a table opened meanwhile is seen.  None was closed since then,
         * as closing waits for this CPU's flush. */
        if (!load_acquire(&p->opening) && !any_open(p))                                               /* W4 */
            return false;
    }
    lock(p);
    if (pt_walk_table(d, root, addr, 2, &l2)) {
        const u64 *at = (u64 *)env_map(l2) + pt_index(addr, 2);

        for (unsigned i = 0; i < 2; i++) {
            if (p->slot[i].f && p->slot[i].hook == at) {
                stat_inc(ptwr_flush_fault);
                close_slot(d, &p->slot[i]);
                hit = true;
            }
        }
    }
    hit = hit || pt_walk_permits(d, root, addr, error);
    unlock(p);
    return hit;
}
