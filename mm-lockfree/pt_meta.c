/* SPDX-License-Identifier: MIT */
/* Per-table metadata: allocation from per-CPU free lists, and propagation of address-space marks. */
#include "pt_meta.h"

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
    m->as = AS_NONE;
    m->level = 0;
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

void pt_join(struct frame *f, int level, u64 as, bool user)
{
    struct pt_meta *m;
    u64 old, new;
    bool change = false;

    /* A table that was found in an entry may be on its way down, nobody holds it for us: only under K is its meta one. */
    if (!frame_k_enter(f, (enum frame_type)(FT_L1 + level - 1)))
        return;
    m = pt_meta(f);
    old = load_relaxed(&m->as);
    do {
        new = old == AS_NONE ? as : as == AS_NONE || as == old ? old : AS_ANY;
        if (new == old)
            break;
        change = true;
    } while (!atomic_cas64(&m->as, &old, new));
    if (user && !load_relaxed(&m->user)) {
        atomic_xchg32(&m->user, 1);                                   /* M3 */
        change = true;
    }
    frame_k_exit(f);
    if (!change || level == 1)
        return;

    /* An update that read the old marks has entered K before our store: once K was seen 0 its entry is visible. */
    frame_drain_k(f);                                                 /* M2 */
    const u64 *pte = frame_map(f);
    for (unsigned i = 0; i < PT_ENTRIES; i++) {
        u64 e = load_relaxed(&pte[i]);

        if ((e & PTE_P) && (level != 4 || i < 256 || i > 271))
            pt_join(frame_of(pte_mfn(e)), level - 1, new, user);
    }
}
