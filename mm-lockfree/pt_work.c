/* SPDX-License-Identifier: MIT */
/* Work items; described in pt_work.h. */
#include "pt_internal.h"

static int level_of(unsigned ty) { return (int)ty - FT_L1 + 1; }
static struct pt_level *top(struct pt_work *w) { return &w->at[w->depth - 1]; }

/* A step says: there is more to do, or what it needs is suspended (-XEN_ERESTART). */
enum { MORE = 1 };

/* Begin and end of one table --------------------------------------------------------------------------- */

/* The marks that entry @i of the table @lv hands down. */
static struct pt_marks marks_of(const struct pt_level *lv, unsigned i)
{
    struct pt_marks m = { load_relaxed(&lv->meta->as), load_relaxed(&lv->meta->user) };

    return pt_marks_below(m, level_of(lv->ty), i);
}

/* A way up ends with @rc.  It was for root @root; or, -1, for an entry of the table on top, which goes down from where it is. */
static void failed(struct pt_work *w, int root, int rc)
{
    if (root >= 0) {
        w->root[root].rc = rc;
        return;
    }
    w->rc = rc;
    top(w)->failed = top(w)->down = true;
}

static struct pt_level *push(struct pt_work *w)
{
    BUG_ON(w->depth == PT_DEPTH_MAX);
    return &w->at[w->depth++];
}

/* @f is claimed for this item as @ty. */
static void begin_up(struct mm_domain *d, struct pt_work *w, struct frame *f, enum frame_type ty, enum frame_type last, int root)
{
    struct pt_marks m = root < 0 ? marks_of(top(w), top(w)->i) : (struct pt_marks){ AS_NONE, false };
    struct pt_meta *meta;

    if (root < 0 && pt_flush_for(f, last, ty))
        pt_charge(COST_FLUSH);
    meta = pt_meta_for(d, f, ty, last, m);
    if (!meta) {
        pt_forget(f);
        failed(w, root, -XEN_ENOMEM);
        return;
    }
    *push(w) = (struct pt_level){ .f = f, .meta = meta, .ty = ty, .root = (s8)root };
}

static void begin_down(struct pt_work *w, struct frame *f)
{
    frame_drain_k(f);
    *push(w) = (struct pt_level){ .f = f, .meta = pt_meta(f), .ty = fw_type(load_relaxed(&f->fw)), .root = -1,
                                  .i = PT_ENTRIES, .down = true };
}

static void end_up(struct pt_work *w)
{
    struct pt_level *lv = top(w);
    int root = lv->root;

    pt_publish(lv->f, lv->meta, root >= 0 && w->root[root].pin);
    w->depth--;
    if (root < 0)
        top(w)->held = true;
}

static void end_down(struct pt_work *w)
{
    struct pt_level *lv = top(w);

    w->depth--;
    if (!lv->failed) {
        pt_down_done(lv->f, lv->meta);
        return;
    }
    pt_meta_retire(lv->meta);
    pt_forget(lv->f);
    failed(w, lv->root, w->rc);
}

/* Steps ------------------------------------------------------------------------------------------------------- */

static int step_up_l1(struct mm_domain *d, struct pt_work *w)
{
    struct pt_level *lv = top(w);
    unsigned i = lv->i;
    int rc = pt_scan_l1(d, lv->f, &i);

    lv->i = (u16)i;
    pt_charge(COST_L1);
    if (rc == -XEN_ERESTART)
        return rc;
    if (rc)
        failed(w, -1, rc);
    else
        end_up(w);
    return MORE;
}

/* Takes the reference of the present entry @e.  MORE: held, begun or failed; -XEN_ERESTART. */
static int acquire(struct mm_domain *d, struct pt_work *w, u64 e)
{
    struct pt_level *lv = top(w);
    enum frame_type ty = (enum frame_type)(lv->ty - 1), last;
    struct frame *f = pt_child(d, e, level_of(lv->ty));

    switch (f ? frame_get_t(f, ty, &last) : GET_REFUSED) {
    case GET_OK:
        lv->held = true;
        return MORE;
    case GET_NEED_UP:
        begin_up(d, w, f, ty, last, -1);
        return MORE;
    case GET_BUSY:
        stat_inc(fw_busy_wait);
        if (load_relaxed(&f->fw) & FW_SUSP)
            return pt_suspended(f);
        pt_charge(COST_ENTRY);                   /* who has it may be waiting for us: not for ever */
        tlb_poll();
        cpu_relax();
        return MORE;
    default:
        failed(w, -1, -XEN_EINVAL);
        return MORE;
    }
}

/* The next entry of a table of level 2 to 4. */
static int step_up(struct mm_domain *d, struct pt_work *w)
{
    struct pt_level *lv = top(w);
    int level = level_of(lv->ty);
    u64 *pte = frame_map(lv->f), e, n;
    unsigned first, end;
    struct pt_marks m;
    struct frame *f;

    tlb_poll();
    if (level == 4 && lv->i == PT_HV_FIRST) {
        pt_fill_hv_slots(pte);
        lv->i = PT_HV_LAST + 1;
    }
    end = level == 4 && lv->i < PT_HV_FIRST ? PT_HV_FIRST : PT_ENTRIES;
    first = lv->i;
    for (e = 0; first < end && !((e = load_relaxed(&pte[first])) & PTE_P) && !pte_l1tf(e); first++)
        ;
    pt_charge(COST_ENTRY + (first - lv->i) * COST_EMPTY);
    lv->i = (u16)first;
    if (first == end) {
        if (end == PT_ENTRIES)
            end_up(w);
        return MORE;
    }
    if (!(e & PTE_P)) {
        failed(w, -1, -XEN_EINVAL);
        return MORE;
    }
    n = pte_adjust(e, level);
    if (!lv->held) {
        int rc = acquire(d, w, n);

        if (!lv->held)
            return rc;
    }
    f = frame_of(pte_mfn(n));
    m = marks_of(lv, lv->i);
    if (!pt_join(f, level - 1, m.as, m.user))
        return MORE;                             /* the budget is spent: joined from here next time */
    if (level == 2)
        pt_hang(pte_mfn(n), frame_mfn(lv->f), lv->i);
    if (n != e)
        store_relaxed(&pte[lv->i], n);
    lv->held = false;
    lv->i++;
    return MORE;
}

/* Drops the references of entries [0, i) from the end, until one of them has to be taken down first. */
static int step_down(struct mm_domain *d, struct pt_work *w)
{
    struct pt_level *lv = top(w);
    int level = level_of(lv->ty);
    u64 *pte = frame_map(lv->f);

    tlb_poll();
    if (level == 1) {
        pt_drop_l1(d, lv->f, lv->i, lv->failed || load_relaxed(&lv->meta->user));
        pt_charge(COST_L1);
        end_down(w);
        return MORE;
    }
    pt_charge(64 * COST_EMPTY);
    for (unsigned k = 0; lv->i > 0 && k < 64; k++) {
        struct frame *f;
        u64 e;

        if (level == 4 && lv->i == PT_HV_LAST + 1) {
            for (; lv->i > PT_HV_FIRST; lv->i--)
                store_relaxed(&pte[lv->i - 1], 0);       /* ours: the page goes back to the guest */
            continue;
        }
        e = load_relaxed(&pte[--lv->i]);
        if (!(e & PTE_P))
            continue;
        pt_charge(COST_ENTRY);
        if (level == 2)
            pt_unhang(pte_mfn(e), frame_mfn(lv->f), lv->i);
        f = frame_of(pte_mfn(e));
        if (frame_put_t(f) == PUT_NEED_DOWN) {
            begin_down(w, f);
            return MORE;
        }
    }
    if (!lv->i)
        end_down(w);
    return MORE;
}

/* One flush for all pins that were collected; a root that is none came alone, or came last. */
static void flush_roots(struct pt_work *w)
{
    struct tlb_set set;

    w->flushed = true;
    tlb_set_clear(&set);
    for (unsigned i = 0; i < w->n; i++)
        if (pt_needs_flush(w->root[i].f, (enum frame_type)w->root[i].last, (enum frame_type)w->root[i].ty))
            tlb_collect(&set, w->root[i].f, (enum frame_type)w->root[i].last);
    tlb_flush_set(&set);
    pt_charge(COST_FLUSH);
}

/* Begins with the next root, lower levels first: so no root waits for another one of this item.  0: there is none. */
static int next_root(struct mm_domain *d, struct pt_work *w)
{
    int next = -1;

    for (unsigned i = 0; i < w->n; i++)
        if (!w->root[i].begun && (next < 0 || w->root[i].ty < w->root[next].ty))
            next = (int)i;
    if (next < 0)
        return 0;
    if (!w->flushed)
        flush_roots(w);
    w->root[next].begun = true;
    begin_up(d, w, w->root[next].f, (enum frame_type)w->root[next].ty, (enum frame_type)w->root[next].last, next);
    return MORE;
}

/* Runs and parks ------------------------------------------------------------------------------------------------ */

static void park(struct pt_work *w)
{
    for (unsigned i = 0; i < w->depth; i++)
        frame_suspend(w->at[i].f);
    for (unsigned i = 0; i < w->n; i++)
        if (!w->root[i].begun)
            frame_suspend(w->root[i].f);
    stat_inc(work_parked);
    store_release(&w->state, WORK_PARKED);                            /* Q1 */
}

/* Has @w in RUN.  0: it is DONE; -XEN_ERESTART: it is PARKED. */
static int run(struct mm_domain *d, struct pt_work *w)
{
    int rc;

    do {
        rc = !w->depth ? next_root(d, w) : top(w)->down ? step_down(d, w) :
             top(w)->ty == FT_L1 ? step_up_l1(d, w) : step_up(d, w);
        if (!rc) {
            store_release(&w->state, WORK_DONE);                      /* Q1 */
            return 0;
        }
    } while (rc == MORE && (!w->depth || !pt_spent()));       /* what is all done is never parked */
    park(w);
    env_work()->attention = true;
    return -XEN_ERESTART;
}

static void look_again(struct pt_work *w)
{
    w->attention = w->keep[0].f || w->keep[1].f || w->blocked || load_relaxed(&w->state) != WORK_IDLE;
}

/* The owner takes the results. */
static void collect(struct mm_domain *d, struct pt_work *w)
{
    unsigned n = w->n;

    w->n = 0;
    w->flushed = false;
    store_relaxed(&w->state, WORK_IDLE);
    for (unsigned i = 0; i < n; i++) {
        struct pt_root *r = &w->root[i];

        if (r->pin && r->rc)
            env_batch_failed(r->token);
        else if (!r->pin)
            pt_keep_result(d, r->f, (enum frame_type)r->ty, r->rc);
    }
}

static bool has(const struct pt_work *w, const struct frame *f)
{
    for (unsigned i = 0; i < w->depth; i++)
        if (w->at[i].f == f)
            return true;
    for (unsigned i = 0; i < w->n; i++)
        if (w->root[i].f == f && !w->root[i].begun)
            return true;
    return false;
}

static bool take(struct pt_work *w)
{
    u32 s = load_acquire(&w->state);

    return s == WORK_PARKED && atomic_cas32(&w->state, &s, WORK_RUN);  /* Q1 */
}

/* Goes on with the item that has @f.  0: it is done, or there is none (any more). */
static int help(struct mm_domain *d, const struct frame *f)
{
    for (unsigned i = 0; i < d->nr_work && (load_relaxed(&f->fw) & FW_SUSP); i++) {
        struct pt_work *w = d->work[i];

        if (!take(w))
            continue;
        if (has(w, f)) {
            stat_inc(work_taken_over);
            return run(d, w);
        }
        store_release(&w->state, WORK_PARKED);                        /* Q1 */
    }
    tlb_poll();
    cpu_relax();                                 /* it is just being parked, or somebody runs it */
    return 0;
}

int pt_work_resume(struct mm_domain *d)
{
    struct pt_work *w = env_work();
    struct frame *f = w->blocked;
    u32 state;

    w->blocked = NULL;
    if (f && help(d, f)) {
        if (!w->blocked)
            w->blocked = f;
        return -XEN_ERESTART;
    }
    while ((state = load_acquire(&w->state)) != WORK_IDLE) {          /* Q1 */
        if (state == WORK_DONE) {
            collect(d, w);
        } else if (take(w)) {
            if (run(d, w))
                return -XEN_ERESTART;
        } else {
            tlb_poll();                          /* somebody else runs it, for the time of a hypercall at most */
            cpu_relax();
        }
    }
    look_again(w);
    return 0;
}

void pt_work_drain(struct mm_domain *d)
{
    while (env_work()->blocked) {
        pt_work_start();
        (void)pt_work_resume(d);
    }
}

/* Kept references --------------------------------------------------------------------------------------------------- */

void pt_keep_result(struct mm_domain *d, struct frame *f, enum frame_type ty, int rc)
{
    struct pt_work *w = env_work();
    unsigned i = w->keep[0].f ? 1 : 0;
    struct frame *old = w->keep[i].f;
    int old_rc = w->keep[i].rc;

    w->keep[i].f = f;
    w->keep[i].ty = (u8)ty;
    w->keep[i].rc = rc;
    w->attention = true;
    if (old && !old_rc)
        pt_put_type(d, frame_mfn(old));
}

void pt_work_keep(struct mm_domain *d, struct frame *f, enum frame_type ty) { pt_keep_result(d, f, ty, 0); }

bool pt_take_kept(struct frame *f, enum frame_type ty, int *rc)
{
    struct pt_work *w = env_work();

    for (unsigned i = 0; i < 2; i++) {
        if (w->keep[i].f == f && w->keep[i].ty == ty) {
            w->keep[i].f = NULL;
            *rc = w->keep[i].rc;
            look_again(w);
            return true;
        }
    }
    return false;
}

void pt_work_settle(struct mm_domain *d)
{
    struct pt_work *w = env_work();

    for (unsigned i = 0; i < 2; i++) {
        struct frame *f = w->keep[i].f;

        w->keep[i].f = NULL;
        if (f && !w->keep[i].rc)
            pt_put_type(d, frame_mfn(f));
    }
    look_again(w);
}

/* Entry points of pt_type.c ------------------------------------------------------------------------------------------ */

void pt_note_blocked(struct frame *f)
{
    env_work()->blocked = f;
    env_work()->attention = true;
}

/* Runs the owner's item, which it has in RUN. */
static int run_own(struct mm_domain *d, struct pt_work *w)
{
    int rc = run(d, w);

    if (!rc)
        collect(d, w);
    return rc;
}

int pt_work_up(struct mm_domain *d, struct frame *f, enum frame_type ty, enum frame_type last)
{
    struct pt_work *w = env_work();
    int rc;

    BUG_ON(load_relaxed(&w->state) != WORK_IDLE || w->n > PT_BATCH_MAX);
    w->root[w->n++] = (struct pt_root){ .f = f, .ty = (u8)ty, .last = (u8)last };
    store_relaxed(&w->state, WORK_RUN);
    rc = run_own(d, w);
    if (!rc)
        BUG_ON(!pt_take_kept(f, ty, &rc));
    return rc;
}

/* Makes this vCPU's item its own again, to put more on it. */
static void take_own(struct mm_domain *d, struct pt_work *w)
{
    u32 state;

    while ((state = load_acquire(&w->state)) != WORK_IDLE) {          /* Q1 */
        if (state == WORK_DONE) {
            collect(d, w);
        } else if (take(w)) {
            return;
        } else {
            tlb_poll();
            cpu_relax();
        }
    }
    store_relaxed(&w->state, WORK_RUN);
}

void pt_work_down(struct mm_domain *d, struct frame *f)
{
    struct pt_work *w = env_work();

    take_own(d, w);
    begin_down(w, f);
    (void)run_own(d, w);
}

/* Batches ------------------------------------------------------------------------------------------------------------ */

bool pt_batch_pending(void)
{
    const struct pt_work *w = env_work();

    return w->n && load_relaxed(&w->state) == WORK_IDLE;
}

void pt_batch_begin(void) { env_work()->open = true; }
void pt_batch_token(u64 token) { env_work()->token = token; }

int pt_batch_end(struct mm_domain *d)
{
    env_work()->open = false;
    return pt_batch_commit(d);
}

int pt_batch_room(struct mm_domain *d) { return env_work()->n == PT_BATCH_MAX ? pt_batch_commit(d) : 0; }

bool pt_batch_park(struct frame *f, enum frame_type ty, enum frame_type last)
{
    struct pt_work *w = env_work();

    if (!w->open || load_relaxed(&w->state) != WORK_IDLE || w->n == PT_BATCH_MAX)
        return false;
    w->root[w->n++] = (struct pt_root){ .f = f, .ty = (u8)ty, .last = (u8)last, .token = w->token, .pin = true };
    stat_inc(batch_parked);
    return true;
}

int pt_batch_commit(struct mm_domain *d)
{
    struct pt_work *w = env_work();

    if (!pt_batch_pending())
        return 0;
    stat_inc(batch_commit);
    store_relaxed(&w->state, WORK_RUN);
    return run_own(d, w);
}
