/* SPDX-License-Identifier: MIT */
/* Updates of page-table entries; the protocol is described in pt.h. */
#include "pt_internal.h"

#include "emulate/op.h"

u64 pt_phys_mask, pt_l1tf_limit;
u64 pt_hv_slots[16];

static inline struct frame *ram_frame(mfn_t m)
{
    if (unlikely(m.v >= max_mfn))
        return NULL;
    return frame_of(m);
}

/* Leaf references ------------------------------------------------------------------------------- */

static int get_foreign(struct mm_domain *d, u64 e)
{
    return d->io_ok && env_io_allowed(d, pte_mfn(e)) ? 0 : -XEN_EINVAL;
}

static inline int get_l1e(struct mm_domain *d, u64 e)
{
    struct frame *f = ram_frame(pte_mfn(e));

    if (unlikely((e & PTE_MFN_MASK) & ~pt_phys_mask))
        return -XEN_EINVAL;
    if (unlikely(!f || load_relaxed(&f->owner) != d->owner))
        return get_foreign(d, e);
    if (unlikely(e & PTE_CACHE))
        return -XEN_EINVAL;                         /* RAM stays write-back */
    if (!(e & PTE_RW))
        return frame_get_u(f) ? 0 : -XEN_EINVAL;
    if (likely(frame_get_t_fast(f, FT_W)))
        return 0;
    return pt_get_type(d, pte_mfn(e), FT_W);
}

int pt_get_l1e(struct mm_domain *d, u64 e) { return get_l1e(d, e); }

/* A writable mapping that user mode may have cached is gone: later type changes compare with this time. */
static void note_user_drop(struct frame *f)
{
    u64 now = env_tsc(), old = load_relaxed(&f->meta);

    while (old < now && !atomic_cas64(&f->meta, &old, now))
        ;
}

static inline void put_l1e(struct mm_domain *d, u64 e, bool user)
{
    struct frame *f = ram_frame(pte_mfn(e));

    if (unlikely(!f || load_relaxed(&f->owner) != d->owner))
        return;                                 /* not RAM of the domain: not counted */
    if (!(e & PTE_RW)) {
        if (unlikely(frame_put_u(f)))
            env_frame_dead(f);
        return;
    }
    if (user)
        note_user_drop(f);
    if (likely(frame_put_t_fast(f)))
        return;
    if (frame_put_t(f) == PUT_NEED_DOWN && unlikely(frame_down_done(f, load_relaxed(&f->meta))))
        env_frame_dead(f);
}

void pt_put_l1e(struct mm_domain *d, u64 e, bool user) { put_l1e(d, e, user); }

int pt_get_entry(struct mm_domain *d, u64 e, int level)
{
    if (level == 1)
        return get_l1e(d, e);
    if ((e & PTE_MFN_MASK) & ~pt_phys_mask)
        return -XEN_EINVAL;
    if (e & (PTE_PSE | (level == 4 ? PTE_G : 0)))
        return -XEN_EINVAL;
    return pt_get_type(d, pte_mfn(e), (enum frame_type)(FT_L1 + level - 2));
}

void pt_put_entry(struct mm_domain *d, u64 e, int level, bool user)
{
    if (level == 1)
        put_l1e(d, e, user);
    else
        pt_put_type(d, pte_mfn(e));
}

/* The update --------------------------------------------------------------------------------------- */

/* Neither presence, target, permission to write nor cacheability change: the references stay as they are. */
static inline bool same_refs(u64 old, u64 new, int level)
{
    u64 bits = level == 1 ? PTE_P | PTE_RW | PTE_CACHE | PTE_MFN_MASK : PTE_P | PTE_PSE | PTE_G | PTE_MFN_MASK;

    return !((old ^ new) & bits);
}

/* An L2 entry names the L1 @m: keeps the one back-pointer that says where the table hangs. */
static void set_back(mfn_t m, mfn_t l2, unsigned idx, bool hang)
{
    struct pt_meta *meta = pt_meta(frame_of(m));
    u64 slot = l2.v << PAGE_SHIFT | idx * 8, old = load_relaxed(&meta->back);

    do {
        u64 new = hang ? (old == BACK_NONE ? slot : BACK_MANY) : (old == slot ? BACK_NONE : old);

        if (new == old)
            return;
        if (atomic_cas64(&meta->back, &old, new))
            return;
    } while (true);
}

void pt_hang(mfn_t l1, mfn_t l2, unsigned idx) { set_back(l1, l2, idx, true); }
void pt_unhang(mfn_t l1, mfn_t l2, unsigned idx) { set_back(l1, l2, idx, false); }

/* The table @m is about to hang in entry @idx of a table of @level with marks @as, @user.  False: the budget is spent. */
static bool join_child(mfn_t m, unsigned idx, int level, u64 as, bool user)
{
    struct pt_marks below = pt_marks_below((struct pt_marks){ as == AS_NONE ? AS_ANY : as, user }, level, idx);

    return pt_join(frame_of(m), level - 1, below.as, below.user);
}

/* Computes the wanted value from the current one; false: nothing to write. */
typedef bool want_fn(u64 old, u64 *new, void *ctx);

static int not_valid(struct frame *tf) { return load_relaxed(&tf->fw) & FW_SUSP ? pt_suspended(tf) : -XEN_EAGAIN; }

/* The one door.  Inlined with a constant @want and @level where it is hot. */
static inline __attribute__((always_inline))
int update(struct mm_domain *d, struct frame *tf, u64 *slot, int level, want_fn *want, void *ctx, u64 *was)
{
    u64 old = load_relaxed(slot), new;

    for (;;) {
        struct pt_meta *meta;
        bool held = false, same, user = false;
        u64 as = AS_NONE;
        int rc;

        if (!want(old, &new, ctx)) {
            *was = old;
            return 0;
        }
        if (pte_l1tf(new))
            return -XEN_EINVAL;
        new = pte_adjust(new, level);
        same = same_refs(old, new, level) || !(new & PTE_P);
        if (!same) {
            rc = pt_get_entry(d, new, level);
            if (unlikely(rc))
                return rc;
            held = true;
            if (level > 1) {
                /* Only under K is it sure that meta is one.  What it says may change until K is held again below. */
                if (unlikely(!frame_k_enter(tf, (enum frame_type)(FT_L1 + level - 1)))) {
                    pt_put_entry(d, new, level, true);
                    return not_valid(tf);
                }
                meta = pt_meta(tf);
                as = load_relaxed(&meta->as);
                user = load_relaxed(&meta->user);
                frame_k_exit(tf);
                if (unlikely(!join_child(pte_mfn(new), (unsigned)((u64)slot & 4095) / 8, level, as, user))) {
                    pt_work_keep(d, frame_of(pte_mfn(new)), (enum frame_type)(FT_L1 + level - 2));
                    return -XEN_ERESTART;
                }
                if (level == 2)
                    pt_hang(pte_mfn(new), frame_mfn(tf), (unsigned)((u64)slot & 4095) / 8);
            }
        }
        if (unlikely(!frame_k_enter(tf, (enum frame_type)(FT_L1 + level - 1)))) {
            rc = not_valid(tf);
            goto undo;
        }
        meta = pt_meta(tf);
        if (level > 1 && held && unlikely(load_relaxed(&meta->as) != as || load_relaxed(&meta->user) != user)) {
            frame_k_exit(tf);
            rc = 1;                             /* moved to another address space meanwhile: once more */
            goto undo;
        }
        if (unlikely(!atomic_cas64(slot, &old, new))) {
            frame_k_exit(tf);
            stat_inc(pte_cas_retry);
            rc = 1;
            goto undo;
        }
        user = load_relaxed(&meta->user);       /* M3 */
        frame_k_exit(tf);                       /* M2 */
        *was = old;
        if ((old & PTE_P) && !same_refs(old, new, level)) {
            if (level == 2)
                pt_unhang(pte_mfn(old), frame_mfn(tf), (unsigned)((u64)slot & 4095) / 8);
            pt_put_entry(d, old, level, user);
        }
        return 0;

undo:
        if (held) {
            if (level == 2)
                pt_unhang(pte_mfn(new), frame_mfn(tf), (unsigned)((u64)slot & 4095) / 8);
            pt_put_entry(d, new, level, true);
        }
        if (rc <= 0)
            return rc;
        old = load_relaxed(slot);
    }
}

struct set_ctx { u64 new; bool keep_ad; };

static inline __attribute__((always_inline)) bool want_set(u64 old, u64 *new, void *ctx)
{
    const struct set_ctx *c = ctx;

    *new = c->keep_ad && (old & PTE_P) ? c->new | (old & (PTE_A | PTE_D)) : c->new;
    return true;
}

static inline __attribute__((always_inline))
int set_level(struct mm_domain *d, struct frame *tf, unsigned idx, int level, struct set_ctx *c)
{
    u64 *slot = (u64 *)frame_map(tf) + idx, was;

    return update(d, tf, slot, level, want_set, c, &was);
}

int pt_set(struct mm_domain *d, struct frame *tf, unsigned idx, int level, u64 new, enum pt_how how)
{
    struct set_ctx c = { new, how == PT_PRESERVE_AD };
    int rc;

    if (likely(level == 1))
        rc = set_level(d, tf, idx, 1, &c);
    else if (level == 4 && idx >= 256 && idx <= 271)
        return -XEN_EINVAL;                         /* the hypervisor's slots */
    else
        rc = set_level(d, tf, idx, level, &c);
    if (unlikely(rc == -XEN_EAGAIN && pt_batch_pending())) {
        rc = pt_batch_commit(d);                /* it may be our own collected pin that holds the table */
        return rc ? rc : pt_set(d, tf, idx, level, new, how);
    }
    return rc;
}

struct emul_ctx { const struct pte_insn *insn; void *regs; unsigned off; u64 result; };

static inline __attribute__((always_inline)) bool want_emul(u64 old, u64 *new, void *ctx)
{
    struct emul_ctx *c = ctx;
    bool write = pte_op_compute(c->insn, old, c->off, c->regs, new);

    c->result = write ? *new : old;             /* before what the hypervisor adds to it */
    return write;
}

int pt_emulate(struct mm_domain *d, struct frame *tf, unsigned off, const struct pte_insn *insn, void *regs)
{
    struct emul_ctx c = { insn, regs, off & 7, 0 };
    u64 *slot = (u64 *)((char *)frame_map(tf) + (off & ~7u)), was = 0;
    int rc = update(d, tf, slot, 1, want_emul, &c, &was);

    if (rc)
        return rc;
    pte_op_commit(insn, was, c.result, c.off, regs);
    return 0;
}
