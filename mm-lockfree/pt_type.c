/* SPDX-License-Identifier: MIT */
/* Type changes of single frames, references as types, pinning; trees of tables are pt_work.c's. */
#include "pt_internal.h"

static bool is_table(enum frame_type t) { return t >= FT_L1 && t <= FT_L4; }
static int level_of(enum frame_type t) { return (int)t - FT_L1 + 1; }

/* From a table always (it may be cached as one); from writable to anything else; a frame without type says so by its meta
 * (see frame_up_failed). */
bool pt_needs_flush(const struct frame *f, enum frame_type last, enum frame_type ty)
{
    if (last == FT_NONE)
        return load_relaxed(&f->meta) != 0 && ty != FT_NONE;
    return last != ty;
}

bool pt_flush_for(const struct frame *f, enum frame_type last, enum frame_type ty)
{
    struct tlb_set set;

    if (!pt_needs_flush(f, last, ty))
        return false;
    tlb_set_clear(&set);
    tlb_collect(&set, f, last);
    tlb_flush_set(&set);
    return true;
}

void pt_forget(struct frame *f)
{
    if (frame_up_failed(f))
        env_frame_dead(f);
}

/* The address space of a root: that of the first table found below it that has one, else its own. */
static u64 choose_as(struct mm_domain *d, struct frame *f)
{
    const u64 *pte = frame_map(f);

    for (unsigned i = 0; i < PT_HV_FIRST; i++) {
        u64 e = load_relaxed(&pte[i]);
        struct frame *c;
        u64 as;

        if (!(e & PTE_P) || pte_mfn(e).v >= max_mfn)
            continue;
        c = frame_of(pte_mfn(e));
        if (load_relaxed(&c->owner) != d->owner || !frame_k_enter(c, FT_L3))
            continue;                           /* nobody holds it for us: only under K is its meta one */
        as = load_relaxed(&pt_meta(c)->as);     /* a hint: any choice is safe, since joins sort out conflicts */
        frame_k_exit(c);
        if (as != AS_NONE && as != AS_ANY)
            return as;
    }
    BUG_ON(frame_mfn(f).v == AS_NONE);           /* no domain has frame 0 */
    return frame_mfn(f).v;
}

struct pt_meta *pt_meta_for(struct mm_domain *d, struct frame *f, enum frame_type ty, enum frame_type last, struct pt_marks m)
{
    struct pt_meta *meta = pt_meta_alloc();

    if (!meta)
        return NULL;
    if (ty == FT_L4) {
        m.as = choose_as(d, f);
    } else if (last == ty) {                    /* nobody flushed: CPUs may still have it cached where it hung before */
        m.as = pt_as_joined(load_relaxed(&f->meta), m.as);
        m.user = true;
    }
    meta->level = (u8)level_of(ty);
    meta->as = m.as;
    meta->user = m.user;
    return meta;
}

int pt_scan_l1(struct mm_domain *d, struct frame *f, unsigned *at)
{
    u64 *pte = frame_map(f);

    for (unsigned i = *at; i < PT_ENTRIES; i++) {
        u64 e = load_relaxed(&pte[i]), n;
        int rc;

        if (!(e & PTE_P)) {
            if (pte_l1tf(e)) {
                *at = i;
                return -XEN_EINVAL;
            }
            continue;
        }
        n = pte_adjust(e, 1);
        rc = pt_get_l1e(d, n);
        if (rc) {
            *at = i;
            return rc;
        }
        if (n != e)
            store_relaxed(&pte[i], n);
    }
    return 0;
}

void pt_drop_l1(struct mm_domain *d, struct frame *f, unsigned n, bool user)
{
    u64 *pte = frame_map(f);

    while (n-- > 0) {
        u64 e = load_relaxed(&pte[n]);

        if (e & PTE_P)
            pt_put_l1e(d, e, user);
    }
}

void pt_fill_hv_slots(u64 *l4)
{
    store_relaxed(&l4[PT_HV_FIRST], 0);         /* readable M2P: only while kernel mode runs on it, see load_root() */
    for (unsigned k = 1; k < 16; k++)
        store_relaxed(&l4[PT_HV_FIRST + k], pt_hv_slots[k]);
}

void pt_publish(struct frame *f, struct pt_meta *meta, bool pin)
{
    meta->done_as = meta->as;                   /* all below was joined while it was hung in */
    meta->done_user = meta->user;
    store_release(&f->meta, (u64)meta);
    frame_up_done(f, pin);                                            /* F2 */
}

/* An L1, a writable page or a page of descriptors. */
static int up_leaf(struct mm_domain *d, struct frame *f, enum frame_type ty, enum frame_type last, bool pin)
{
    struct pt_meta *meta;
    unsigned i = 0;
    int rc;

    if (pt_flush_for(f, last, ty))
        pt_charge(COST_FLUSH);
    if (!is_table(ty)) {
        store_relaxed(&f->meta, 0);
        if (ty == FT_SEG && !pt_segdesc_ok(frame_map(f))) {
            pt_forget(f);
            return -XEN_EINVAL;
        }
        frame_up_done(f, pin);
        return 0;
    }
    meta = pt_meta_for(d, f, ty, last, (struct pt_marks){ AS_NONE, false });
    if (!meta) {
        pt_forget(f);
        return -XEN_ENOMEM;
    }
    pt_charge(COST_L1);
    rc = pt_scan_l1(d, f, &i);
    if (rc) {
        pt_drop_l1(d, f, i, true);
        pt_meta_retire(meta);
        pt_forget(f);
        return rc;
    }
    pt_publish(f, meta, pin);
    return 0;
}

/* Takes a typed reference; waits while another CPU changes the type.  0: done; 1: the type change is the caller's. */
static int get_t_wait(struct mm_domain *d, struct frame *f, enum frame_type ty, enum frame_type *last)
{
    enum get_result r;

    while ((r = frame_get_t(f, ty, last)) == GET_BUSY) {
        stat_inc(fw_busy_wait);
        if (load_relaxed(&f->fw) & FW_SUSP)
            return pt_suspended(f);
        if (pt_batch_pending()) {
            int rc = pt_batch_commit(d);        /* it may be waiting for us */

            if (rc)
                return rc;
        }
        tlb_poll();
        cpu_relax();
    }
    return r == GET_OK ? 0 : r == GET_NEED_UP ? 1 : -XEN_EINVAL;
}

static struct frame *own_frame(struct mm_domain *d, mfn_t mfn)
{
    struct frame *f;

    if (mfn.v >= max_mfn)
        return NULL;
    f = frame_of(mfn);
    return load_relaxed(&f->owner) == d->owner ? f : NULL;
}

struct frame *pt_child(struct mm_domain *d, u64 e, int level)
{
    if (((e & PTE_MFN_MASK) & ~pt_phys_mask) || (e & (PTE_PSE | (level == 4 ? PTE_G : 0))))
        return NULL;
    return own_frame(d, pte_mfn(e));
}

/* For a tree: 0 if this vCPU's item is free for it; 1: @rc is what came of it already; -XEN_ERESTART. */
static int tree_ready(struct frame *f, enum frame_type ty, int *rc)
{
    struct pt_work *w = env_work();

    if (unlikely(w->keep[0].f || w->keep[1].f) && pt_take_kept(f, ty, rc))
        return 1;
    if (likely(load_relaxed(&w->state) == WORK_IDLE))
        return 0;
    w->attention = true;
    return -XEN_ERESTART;
}

static bool is_tree(enum frame_type ty) { return ty >= FT_L2 && ty <= FT_L4; }

int pt_get_type(struct mm_domain *d, mfn_t mfn, enum frame_type ty)
{
    struct frame *f = own_frame(d, mfn);
    enum frame_type last;
    int rc;

    if (!f)
        return -XEN_EINVAL;
    if (is_tree(ty)) {
        int ready = tree_ready(f, ty, &rc);

        if (ready)
            return ready > 0 ? rc : ready;
    }
    rc = get_t_wait(d, f, ty, &last);
    if (rc <= 0)
        return rc;
    return is_tree(ty) ? pt_work_up(d, f, ty, last) : up_leaf(d, f, ty, last, false);
}

void pt_down_done(struct frame *f, struct pt_meta *meta)
{
    u64 as = load_relaxed(&meta->as);

    pt_meta_retire(meta);
    if (frame_down_done(f, as == AS_NONE ? AS_ANY : as))
        env_frame_dead(f);
}

void pt_put_type(struct mm_domain *d, mfn_t mfn)
{
    struct frame *f = frame_of(mfn);
    enum frame_type ty;

    if (frame_put_t(f) != PUT_NEED_DOWN)
        return;
    ty = fw_type(load_relaxed(&f->fw));
    if (is_tree(ty)) {
        pt_work_down(d, f);
    } else if (ty == FT_L1) {
        struct pt_meta *meta = pt_meta(f);

        frame_drain_k(f);
        pt_charge(COST_L1);
        pt_drop_l1(d, f, PT_ENTRIES, load_relaxed(&meta->user));
        pt_down_done(f, meta);
    } else if (frame_down_done(f, ty == FT_W ? load_relaxed(&f->meta) : AS_ANY)) {
        env_frame_dead(f);
    }
}

int pt_pin(struct mm_domain *d, mfn_t mfn, enum frame_type ty)
{
    struct frame *f = own_frame(d, mfn);
    enum frame_type last;
    int rc;

    if (!f)
        return -XEN_EINVAL;
    rc = pt_batch_room(d);
    if (rc)
        return rc;
    if (is_tree(ty)) {
        int ready = tree_ready(f, ty, &rc);

        if (ready < 0)
            return ready;
        if (ready)
            goto have;
    }
    rc = get_t_wait(d, f, ty, &last);
    if (rc > 0) {
        if (pt_needs_flush(f, last, ty) && pt_batch_park(f, ty, last)) {
            stat_inc(pin);
            return 0;
        }
        if (!is_tree(ty)) {
            rc = up_leaf(d, f, ty, last, true);
            if (!rc)
                stat_inc(pin);
            return rc;
        }
        rc = pt_work_up(d, f, ty, last);
    }
have:
    if (rc)
        return rc;
    if (!frame_pin(f)) {
        pt_put_type(d, mfn);
        return -XEN_EINVAL;
    }
    stat_inc(pin);
    return 0;
}

int pt_unpin(struct mm_domain *d, mfn_t mfn)
{
    struct frame *f = own_frame(d, mfn);
    u64 w;

    if (!f)
        return -XEN_EINVAL;
    w = load_relaxed(&f->fw);
    if (unlikely(w & FW_BUSY)) {
        if (w & FW_SUSP)
            return pt_suspended(f);
        if (pt_batch_pending()) {
            int rc = pt_batch_commit(d);

            if (rc)
                return rc;
        }
    }
    if (!frame_unpin(f))
        return -XEN_EINVAL;
    stat_inc(unpin);
    pt_put_type(d, mfn);
    return 0;
}

int pt_mark_user_root(struct mm_domain *d, struct frame *root)
{
    struct pt_meta *m = pt_meta(root);

    if (likely(load_acquire(&m->done_user)) || pt_join(root, 4, load_relaxed(&m->as), true))
        return 0;
    pt_work_keep(d, root, FT_L4);
    return -XEN_ERESTART;
}
