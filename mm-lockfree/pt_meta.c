/* SPDX-License-Identifier: MIT */
/* Per-table metadata: allocation from per-CPU free lists, and propagation of address-space marks. */
#include "pt_internal.h"

/* Free metas of this CPU, linked through rcu.next.  A retired meta returns to the list of the CPU that retired it. */
static struct { struct rcu_head *free; } __cacheline meta_cpu[ENV_MAX_CPUS];

struct pt_meta *pt_meta_alloc(void)
{
    struct rcu_head **list = &meta_cpu[env_cpu()].free;
    struct pt_meta *m;

    if (!*list) {
        char *page = env_page_alloc();

        if (!page)
            return NULL;
        for (unsigned i = 0; i < PAGE_SIZE / sizeof(*m); i++) {
            m = (struct pt_meta *)(void *)(page + i * sizeof(*m));
            m->rcu.next = *list;
            *list = &m->rcu;
        }
    }
    m = container_of(*list, struct pt_meta, rcu);
    *list = m->rcu.next;
    m->as = m->done_as = AS_NONE;
    m->level = m->done_user = 0;
    m->user = 0;
    m->back = BACK_NONE;
    return m;
}

static void meta_free(struct rcu_head *h)
{
    struct rcu_head **list = &meta_cpu[env_cpu()].free;

    h->next = *list;
    *list = h;
}

void pt_meta_retire(struct pt_meta *m) { call_rcu(&m->rcu, meta_free); }

u64 pt_as_joined(u64 a, u64 b) { return a == AS_NONE ? b : b == AS_NONE || b == a ? a : AS_ANY; }

enum joined { SPENT, ALREADY, CHANGED };

/* Raises the marks of the table @f of @level.  @now gets those that all below must be joined to, @meta whose
 * they are; NULL: all that is below was joined to them already. */
static enum joined raise(struct frame *f, int level, u64 as, bool user, struct pt_marks *now, struct pt_meta **meta)
{
    enum joined r = ALREADY;
    struct pt_meta *m;
    u64 old, new;

    *meta = NULL;
    /* A table that was found in an entry may be on its way down, nobody holds it for us: only under K is its meta one. */
    if (!frame_k_enter(f, (enum frame_type)(FT_L1 + level - 1)))
        return ALREADY;
    m = pt_meta(f);
    old = load_relaxed(&m->as);
    while ((new = pt_as_joined(old, as)) != old) {
        r = CHANGED;
        if (atomic_cas64(&m->as, &old, new))
            break;
    }
    if (user && !load_relaxed(&m->user)) {
        atomic_xchg32(&m->user, 1);                                   /* M3 */
        r = CHANGED;
    }
    *now = (struct pt_marks){ new, load_relaxed(&m->user) };
    if (level > 1 && (load_acquire(&m->done_as) != new || (now->user && !load_acquire(&m->done_user))))    /* M4 */
        *meta = m;
    frame_k_exit(f);
    return r;
}

/* All below @f was joined to @marks. */
static void done(struct frame *f, int level, const struct pt_meta *meta, struct pt_marks marks)
{
    struct pt_meta *m;
    u64 old, new;

    if (!frame_k_enter(f, (enum frame_type)(FT_L1 + level - 1)))
        return;
    m = pt_meta(f);
    if (m == meta) {                             /* else it went and came back meanwhile */
        old = load_relaxed(&m->done_as);
        do {
            new = pt_as_joined(old, marks.as);
        } while (new != old && !atomic_cas64(&m->done_as, &old, new));                /* M4 */
        if (marks.user)
            store_release(&m->done_user, 1);                          /* M4 */
    }
    frame_k_exit(f);
}

static enum joined join(struct frame *f, int level, u64 as, bool user)
{
    struct pt_marks now;
    struct pt_meta *meta;
    enum joined r = raise(f, level, as, user, &now, &meta);
    const u64 *pte = frame_map(f);

    if (!meta)
        return r;
    /* An update that read the old marks has entered K before our store: once K was seen 0 its entry is visible. */
    frame_drain_k(f);                                                 /* M2 */
    for (unsigned i = 0; i < PT_ENTRIES; i++) {
        u64 e = load_relaxed(&pte[i]);

        if (!(e & PTE_P) || (level == 4 && i >= PT_HV_FIRST && i <= PT_HV_LAST))
            continue;
        /* Nobody holds @f for us: it may be a page of the guest's by now, and hold anything. */
        if (unlikely(pte_mfn(e).v >= max_mfn) || load_relaxed(&frame_of(pte_mfn(e))->owner) != load_relaxed(&f->owner))
            continue;
        pt_charge(100);
        tlb_poll();
        r = join(frame_of(pte_mfn(e)), level - 1, now.as, now.user);
        if (r == SPENT || (r == CHANGED && pt_spent()))               /* never without having got further */
            return SPENT;
    }
    done(f, level, meta, now);
    return CHANGED;
}

bool pt_join(struct frame *f, int level, u64 as, bool user) { return join(f, level, as, user) != SPENT; }
