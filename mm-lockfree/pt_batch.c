/* SPDX-License-Identifier: MIT */
/* Collected pins: the type changes of one multicall share one shootdown.
 *
 * A parked frame is BUSY for this CPU, its old translations not yet flushed.  Commit flushes once for all of them,
 * then validates them level by level, lowest first: so it never waits for a frame that waits for it.  Own CPU
 * only; a batch is open between two calls of one hypercall, interrupts off, hence never shared. */
#include "pt_internal.h"

#define BATCH_MAX 32

struct pt_batch {
    bool open;
    unsigned n;
    u64 token;
    struct { struct frame *f; u64 token; u8 ty, last; } item[BATCH_MAX];
};
_Static_assert(sizeof(struct pt_batch) <= PAGE_SIZE, "one page a CPU, from its first batch on");

static struct pt_batch *batch_cpu[ENV_MAX_CPUS];

bool pt_batch_pending(void)
{
    const struct pt_batch *b = batch_cpu[env_cpu()];

    return b && b->n;
}

void pt_batch_begin(void)
{
    struct pt_batch **b = &batch_cpu[env_cpu()];

    if (unlikely(!*b)) {
        *b = env_page_alloc();
        if (!*b)
            return;                             /* then each pin has a shootdown of its own */
        (*b)->n = 0;
    }
    (*b)->open = true;
}

void pt_batch_token(u64 token)
{
    struct pt_batch *b = batch_cpu[env_cpu()];

    if (likely(b))
        b->token = token;
}

void pt_batch_end(struct mm_domain *d)
{
    struct pt_batch *b = batch_cpu[env_cpu()];

    if (!b)
        return;
    pt_batch_commit(d);
    b->open = false;
}

bool pt_batch_park(struct mm_domain *d, struct frame *f, enum frame_type ty, enum frame_type last)
{
    struct pt_batch *b = batch_cpu[env_cpu()];

    if (!b || !b->open)
        return false;
    if (b->n == BATCH_MAX)
        pt_batch_commit(d);
    b->item[b->n].f = f;
    b->item[b->n].token = b->token;
    b->item[b->n].ty = ty;
    b->item[b->n].last = last;
    b->n++;
    stat_inc(batch_parked);
    return true;
}

void pt_batch_commit(struct mm_domain *d)
{
    struct pt_batch *b = batch_cpu[env_cpu()];
    unsigned n = b ? b->n : 0;
    struct tlb_set set;

    if (!n)
        return;
    b->n = 0;                    /* validation below may wait, and must not come back here */
    stat_inc(batch_commit);
    tlb_set_clear(&set);
    for (unsigned i = 0; i < n; i++)
        tlb_collect(&set, b->item[i].f, b->item[i].last);
    tlb_flush_set(&set);
    for (enum frame_type ty = FT_L1; ty <= FT_L4; ty++)
        for (unsigned i = 0; i < n; i++)
            if (b->item[i].ty == ty && pt_up(d, b->item[i].f, ty, b->item[i].last, true, true))
                env_batch_failed(b->item[i].token);
}
