/* SPDX-License-Identifier: MIT */
/* Type changes of frames: validating a page as a table, taking it down, pinning. */
#include "pt_internal.h"

static bool is_table(enum frame_type t) { return t >= FT_L1 && t <= FT_L4; }
static int level_of(enum frame_type t) { return (int)t - FT_L1 + 1; }

/* Does changing idle(@last) into @ty need old translations gone?  From a table always (it may be cached as one);
 * from writable to anything else; a frame without type says so by its meta (see frame_up_failed). */
static bool needs_flush(const struct frame *f, enum frame_type last, enum frame_type ty)
{
    if (last == FT_NONE)
        return load_relaxed(&f->meta) != 0 && ty != FT_NONE;
    return last != ty;
}

static void drop_entries(struct mm_domain *d, struct frame *f, int level, unsigned n, bool user)
{
    u64 *pte = frame_map(f);

    for (unsigned i = n; i-- > 0;) {
        u64 e = load_relaxed(&pte[i]);

        if (level == 4 && i >= 256 && i <= 271) {
            store_relaxed(&pte[i], 0);          /* ours: the page goes back to the guest */
            continue;
        }
        if (!(e & PTE_P))
            continue;
        if (level == 2)
            pt_unhang(pte_mfn(e), frame_mfn(f), i);
        pt_put_entry(d, e, level, user);
        if (level > 1)
            tlb_poll();
    }
}

/* The address space of a root: that of the first table found below it that has one, else its own. */
static u64 choose_as(struct mm_domain *d, struct frame *f)
{
    const u64 *pte = frame_map(f);

    for (unsigned i = 0; i < 256; i++) {
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
    return frame_mfn(f).v;
}

static int scan(struct mm_domain *d, struct frame *f, int level, struct pt_meta *meta)
{
    u64 *pte = frame_map(f);

    for (unsigned i = 0; i < PT_ENTRIES; i++) {
        u64 e, n;
        int rc;

        if (level == 4 && i == 256) {
            store_relaxed(&pte[256], 0);        /* readable M2P: only while kernel mode runs on it, see load_root() */
            for (unsigned k = 1; k < 16; k++)
                store_relaxed(&pte[256 + k], pt_hv_slots[k]);
            i = 271;
            continue;
        }
        e = load_relaxed(&pte[i]);
        if (!(e & PTE_P))
            continue;
        n = pte_adjust(e, level);
        rc = pt_get_entry(d, n, level);
        if (rc) {
            drop_entries(d, f, level, i, true);
            return rc;
        }
        if (level > 1) {
            /* High slots of a root are the kernel's, shared by all roots. */
            u64 as = level == 4 && i > 271 ? AS_ANY : load_relaxed(&meta->as);
            bool user = load_relaxed(&meta->user) || (level == 4 && i < 256);

            pt_join(frame_of(pte_mfn(n)), level - 1, as, user);
            if (level == 2)
                pt_hang(pte_mfn(n), frame_mfn(f), i);
            tlb_poll();
        }
        if (n != e)
            store_relaxed(&pte[i], n);
    }
    return 0;
}

static void forget(struct frame *f)
{
    if (frame_up_failed(f))
        env_frame_dead(f);
}

int pt_up(struct mm_domain *d, struct frame *f, enum frame_type ty, enum frame_type last, bool flushed, bool pin)
{
    struct pt_meta *meta;
    int rc;

    if (!flushed && needs_flush(f, last, ty)) {
        struct tlb_set set;

        tlb_set_clear(&set);
        tlb_collect(&set, f, last);
        tlb_flush_set(&set);
    }
    if (!is_table(ty)) {
        store_relaxed(&f->meta, 0);
        if (ty == FT_SEG && !pt_segdesc_ok(frame_map(f))) {
            forget(f);
            return -EINVAL;
        }
        frame_up_done(f, pin);
        return 0;
    }
    meta = pt_meta_alloc();
    if (!meta) {
        forget(f);
        return -ENOMEM;
    }
    meta->level = (u32)level_of(ty);
    if (ty == FT_L4) {
        meta->as = choose_as(d, f);
    } else if (last == ty) {
        meta->as = f->meta;                     /* nobody flushed: CPUs may still have it cached where it hung before */
        meta->user = 1;
    }
    rc = scan(d, f, level_of(ty), meta);
    if (rc) {
        pt_meta_retire(meta);
        forget(f);
        return rc;
    }
    store_release(&f->meta, (u64)meta);
    frame_up_done(f, pin);                                            /* F2 */
    return 0;
}

/* Takes a typed reference; waits while another CPU changes the type.  GET_OK, GET_NEED_UP or GET_REFUSED. */
static enum get_result get_t_wait(struct mm_domain *d, struct frame *f, enum frame_type ty, enum frame_type *last)
{
    enum get_result r;

    while ((r = frame_get_t(f, ty, last)) == GET_BUSY) {
        stat_inc(fw_busy_wait);
        if (pt_batch_pending())
            pt_batch_commit(d);                 /* it may be waiting for us */
        tlb_poll();
        cpu_relax();
    }
    return r;
}

static struct frame *own_frame(struct mm_domain *d, mfn_t mfn)
{
    struct frame *f;

    if (mfn.v >= max_mfn)
        return NULL;
    f = frame_of(mfn);
    return load_relaxed(&f->owner) == d->owner ? f : NULL;
}

int pt_get_type(struct mm_domain *d, mfn_t mfn, enum frame_type ty)
{
    struct frame *f = own_frame(d, mfn);
    enum frame_type last;

    if (!f)
        return -EINVAL;
    switch (get_t_wait(d, f, ty, &last)) {
    case GET_OK:
        return 0;
    case GET_NEED_UP:
        return pt_up(d, f, ty, last, false, false);
    default:
        return -EINVAL;
    }
}

static void down(struct mm_domain *d, struct frame *f)
{
    enum frame_type ty = fw_type(load_relaxed(&f->fw));
    u64 as = AS_ANY;

    if (is_table(ty)) {
        struct pt_meta *meta = pt_meta(f);

        frame_drain_k(f);
        drop_entries(d, f, level_of(ty), PT_ENTRIES, load_relaxed(&meta->user));
        as = load_relaxed(&meta->as);
        if (as == AS_NONE)
            as = AS_ANY;
        store_relaxed(&f->meta, as);
        pt_meta_retire(meta);
    } else if (ty == FT_W) {
        as = load_relaxed(&f->meta);
    }
    if (frame_down_done(f, as))
        env_frame_dead(f);
}

void pt_put_type(struct mm_domain *d, mfn_t mfn)
{
    struct frame *f = frame_of(mfn);

    if (frame_put_t(f) == PUT_NEED_DOWN)
        down(d, f);
}

int pt_pin(struct mm_domain *d, mfn_t mfn, enum frame_type ty)
{
    struct frame *f = own_frame(d, mfn);
    enum frame_type last;

    if (!f)
        return -EINVAL;
    switch (get_t_wait(d, f, ty, &last)) {
    case GET_OK:
        if (frame_pin(f))
            break;
        pt_put_type(d, mfn);
        return -EINVAL;
    case GET_NEED_UP: {
        int rc;

        if (needs_flush(f, last, ty) && pt_batch_park(d, f, ty, last))
            break;
        rc = pt_up(d, f, ty, last, false, true);
        if (rc)
            return rc;
        break;
    }
    default:
        return -EINVAL;
    }
    stat_inc(pin);
    return 0;
}

int pt_unpin(struct mm_domain *d, mfn_t mfn)
{
    struct frame *f = own_frame(d, mfn);

    if (!f)
        return -EINVAL;
    if (pt_batch_pending() && (load_relaxed(&f->fw) & FW_BUSY))
        pt_batch_commit(d);
    if (!frame_unpin(f))
        return -EINVAL;
    stat_inc(unpin);
    pt_put_type(d, mfn);
    return 0;
}

void pt_mark_user_root(struct mm_domain *d, struct frame *root)
{
    struct pt_meta *m = pt_meta(root);

    (void)d;
    if (!load_relaxed(&m->user))
        pt_join(root, 4, load_relaxed(&m->as), true);
}
