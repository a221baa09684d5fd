/* SPDX-License-Identifier: MIT */
/* Transitions of the frame state word; the protocol is described in frame.h. */
#include "frame.h"

u64 max_mfn;

/* The word after the last reference went is claimed by exactly one CPU: the one whose CAS sets DEAD. */
static bool try_dead(struct frame *f, u64 w)
{
    while (!(w & (FW_REFS | FW_DEAD))) {
        if (atomic_cas64(&f->fw, &w, w | FW_DEAD)) {
            store_relaxed(&f->stamp, env_tsc());
            return true;
        }
    }
    return false;
}

bool frame_get_u(struct frame *f)
{
    u64 w = load_relaxed(&f->fw);

    do {
        if (unlikely((w & FW_DEAD) || !(w & FW_REFS)))
            return false;
        if (unlikely((w & FW_U) == FW_U))
            return true;                       /* stuck at the maximum for ever */
    } while (unlikely(!atomic_cas64(&f->fw, &w, w + 1)));
    return true;
}

bool frame_put_u(struct frame *f)
{
    u64 w = load_relaxed(&f->fw);

    do {
        BUG_ON(!(w & FW_U));
        if (unlikely((w & FW_U) == FW_U))
            return false;
    } while (unlikely(!atomic_cas64(&f->fw, &w, w - 1)));
    return unlikely(!((w - 1) & FW_REFS)) && try_dead(f, w - 1);
}

enum get_result frame_get_t_slow(struct frame *f, enum frame_type ty, enum frame_type *last)
{
    u64 w = load_acquire(&f->fw), new;
    enum get_result r;

    do {
        if ((w & FW_DEAD) || !(w & FW_REFS))
            return GET_REFUSED;
        if (fw_t(w) >= FW_T_LIMIT)
            return GET_REFUSED;
        if (w & FW_BUSY) {
            if (!(w & FW_T) || fw_type(w) == ty)
                return GET_BUSY;               /* going idle, or becoming what we want */
            return GET_REFUSED;
        }
        if (w & FW_T) {
            if (fw_type(w) != ty)
                return GET_REFUSED;
            new = w + FW_T_ONE;
            r = GET_OK;
        } else if (ty == FT_W && fw_type(w) == FT_W) {
            new = (w + FW_T_ONE) | FW_VALID;   /* same type, nothing to make safe */
            r = GET_OK;
        } else {
            *last = fw_type(w);
            new = (fw_set_type(w, ty) + FW_T_ONE) | FW_BUSY;
            r = GET_NEED_UP;
        }
        if (likely(atomic_cas64(&f->fw, &w, new)))
            break;
        stat_inc(fw_cas_retry);
    } while (true);
    if (r == GET_NEED_UP)
        stat_inc(type_up);
    return r;
}

enum put_result frame_put_t(struct frame *f)
{
    u64 w = load_relaxed(&f->fw), new;

    do {
        BUG_ON(!(w & FW_T) || (w & FW_BUSY));
        if (likely(fw_t(w) > 1))
            new = w - FW_T_ONE;
        else
            new = ((w - FW_T_ONE) | FW_BUSY) & ~FW_VALID;
    } while (unlikely(!atomic_cas64(&f->fw, &w, new)));
    return new & FW_BUSY ? PUT_NEED_DOWN : PUT_OK;
}

void frame_up_done(struct frame *f, bool pin)
{
    u64 w = load_relaxed(&f->fw);

    while (!atomic_cas64(&f->fw, &w, (w & ~(FW_BUSY | FW_SUSP)) | FW_VALID | (pin ? FW_PIN : 0)))   /* F2: pairs with k_enter */
        ;
}

static bool go_idle(struct frame *f, u64 drop, enum frame_type ty)
{
    u64 w = load_relaxed(&f->fw), new;

    do {
        new = fw_set_type((w & ~(FW_BUSY | FW_SUSP)) - drop, ty);
    } while (!atomic_cas64(&f->fw, &w, new));                                          /* F1: pairs with get_t */
    return !(new & FW_REFS) && try_dead(f, new);
}

bool frame_up_failed(struct frame *f)
{
    store_relaxed(&f->meta, ~0ull);  /* whoever types it next must assume that anybody may have cached it */
    store_relaxed(&f->stamp, env_tsc());
    return go_idle(f, FW_T_ONE, FT_NONE);
}

bool frame_down_done(struct frame *f, u64 meta)
{
    store_relaxed(&f->meta, meta);
    store_relaxed(&f->stamp, env_tsc());
    stat_inc(type_down);
    return go_idle(f, 0, fw_type(load_relaxed(&f->fw)));
}

void frame_suspend(struct frame *f)
{
    u64 w = load_relaxed(&f->fw);

    while (!(w & FW_SUSP) && !atomic_cas64(&f->fw, &w, w | FW_SUSP))
        ;
}

bool frame_pin(struct frame *f)
{
    u64 w = load_relaxed(&f->fw);

    do {
        if (w & FW_PIN)
            return false;
    } while (!atomic_cas64(&f->fw, &w, w | FW_PIN));
    return true;
}

bool frame_unpin(struct frame *f)
{
    u64 w = load_relaxed(&f->fw);

    do {
        if (!(w & FW_PIN) || (w & FW_BUSY))
            return false;
    } while (!atomic_cas64(&f->fw, &w, w & ~FW_PIN));
    return true;
}

void frame_assign(struct frame *f, u32 owner)
{
    u64 w = load_relaxed(&f->fw);

    BUG_ON(w & FW_REFS);
    store_relaxed(&f->meta, 0);
    store_relaxed(&f->owner, owner);
    store_release(&f->fw, FW_ALLOC);
}

int frame_release(struct frame *f)
{
    u64 w = load_relaxed(&f->fw);

    do {
        if (!(w & FW_ALLOC))
            return -1;
    } while (!atomic_cas64(&f->fw, &w, w & ~FW_ALLOC));
    w &= ~FW_ALLOC;
    return !(w & FW_REFS) && try_dead(f, w);
}
