/* SPDX-License-Identifier: MIT */
/* Recomputes the frames' counts and types from the tables; its demands are those of audit.h, pt.h, frame.h. */
#include "audit.h"

#include "pt_meta.h"
#include "pt_work.h"

enum { PASS_U, PASS_T };     /* what is counted; the entries themselves are judged in the second */

#define L4_FIRST 256         /* the hypervisor's slots of a root */
#define L4_LAST  271

static bool is_table(enum frame_type t) { return t >= FT_L1 && t <= FT_L4; }
static int level_of(enum frame_type t) { return (int)t - FT_L1 + 1; }

static void wrong(struct audit *a, mfn_t mfn, const char *what, int entry, u64 expected, u64 found)
{
    struct audit_finding f = { mfn, what, entry, expected, found };

    if (a->wrong++ < AUDIT_REPORTS && a->report)
        a->report(a, &f);
}

/* The rest of memory is mapped read-only where it is a hole: frames of others are only ever read. */
static struct frame *own(const struct audit *a, mfn_t mfn)
{
    return mfn.v < max_mfn && frame_of(mfn)->owner == a->d->owner ? frame_of(mfn) : NULL;
}

static bool valid_table(const struct frame *f) { return (f->fw & FW_VALID) && is_table(fw_type(f->fw)); }

/* Pass 0: what a word may say by itself ------------------------------------------------------------------------ */

/* What all below @f was joined to cannot be more than what @f is to be joined to. */
static void check_done(struct audit *a, const struct frame *f)
{
    const struct pt_meta *m = pt_meta(f);

    if (pt_as_joined(m->as, m->done_as) != m->as)
        wrong(a, frame_mfn(f), "address space, against what is joined", -1, m->done_as, m->as);
    if (m->done_user && !m->user)
        wrong(a, frame_mfn(f), "user mark, against what is joined", -1, 1, 0);
}

static void check_word(struct audit *a, struct frame *f)
{
    mfn_t m = frame_mfn(f);
    u64 w = f->fw;
    enum frame_type ty = fw_type(w);

    f->hint = 0;
    a->frames++;
    if (w & FW_DEAD) {
        a->dead++;
        if (w & (FW_REFS | FW_VALID))
            wrong(a, m, "references of a dead frame", -1, 0, w & (FW_REFS | FW_VALID));
        return;
    }
    a->limbo += !(w & FW_ALLOC);
    if (!(w & FW_REFS))
        wrong(a, m, "a live frame without any reference: its word", -1, FW_DEAD, w);
    if ((w & (FW_BUSY | FW_K | FW_CM)) && (w & (FW_BUSY | FW_SUSP | FW_K | FW_CM)) != (FW_BUSY | FW_SUSP))
        wrong(a, m, "work in flight at rest", -1, 0, w & (FW_BUSY | FW_K | FW_CM));
    if (w & FW_SUSP)
        a->suspended++;                          /* its T is compared with what its work item says */
    else if (!(w & FW_VALID) != !(w & FW_T))
        wrong(a, m, "VALID against T", -1, w & FW_T ? FW_VALID : 0, w & FW_VALID);
    if ((w & FW_T) && ty == FT_NONE)
        wrong(a, m, "typed references without a type: T", -1, 0, fw_t(w));
    if ((w & FW_PIN) && !valid_table(f))
        wrong(a, m, "pinned, but no valid table: type", -1, FT_L1, ty);
    if (!valid_table(f))
        return;
    a->tables++;
    if (!f->meta || f->meta == AS_ANY)
        wrong(a, m, "a table without meta", -1, 1, f->meta);
    else if (pt_meta(f)->level != (u32)level_of(ty))
        wrong(a, m, "level in meta", -1, (u64)level_of(ty), pt_meta(f)->level);
    else
        check_done(a, f);
}

static bool has_meta(const struct frame *f) { return f->meta && f->meta != AS_ANY; }

/* The tables' entries -------------------------------------------------------------------------------------------- */

/* Entry @i of the L1 @t. */
static void leaf(struct audit *a, const struct frame *t, int i, u64 e)
{
    struct frame *c = own(a, pte_mfn(e));

    if (!c) {
        if (a->pass == PASS_T && !(a->d->io_ok && env_io_allowed(a->d, pte_mfn(e))))
            wrong(a, frame_mfn(t), "maps a frame of somebody else", i, 0, e);
        return;
    }
    if (!(e & PTE_RW)) {
        c->hint += a->pass == PASS_U;
        return;
    }
    if (a->pass != PASS_T)
        return;
    c->hint++;
    if (fw_type(c->fw) != FT_W)
        wrong(a, pte_mfn(e), "mapped writable: type", -1, FT_W, fw_type(c->fw));
}

/* The marks of @c, which hangs in entry @i of @t of @level, follow from those of @t as far as they count: what is just being
 * joined, or was given up half-way, does not yet (pt_join()). */
static void check_marks(struct audit *a, const struct frame *t, int level, int i, const struct frame *c)
{
    const struct pt_meta *m = pt_meta(t), *n = pt_meta(c);
    u64 as = level == 4 && i > L4_LAST ? AS_ANY : m->done_as, has = level == 2 ? n->as : n->done_as;
    u64 slot = frame_mfn(t).v << PAGE_SHIFT | (u64)i * 8;

    if (as != AS_NONE && has != as && has != AS_ANY)
        wrong(a, frame_mfn(c), "address space", -1, as, has);
    if ((m->done_user || (level == 4 && i < L4_FIRST)) && !(level == 2 ? n->user : n->done_user))
        wrong(a, frame_mfn(c), "user mark", -1, 1, 0);
    if (level == 2 && n->back != slot && n->back != BACK_MANY)
        wrong(a, frame_mfn(c), "back pointer", -1, slot, n->back);
}

/* Entry @i of the table @t of @level, 2 to 4. */
static void link(struct audit *a, const struct frame *t, int level, int i, u64 e)
{
    enum frame_type want = (enum frame_type)(FT_L1 + level - 2);
    struct frame *c = own(a, pte_mfn(e));

    if (e & (PTE_PSE | (level == 4 ? PTE_G : 0)))
        wrong(a, frame_mfn(t), "entry with a refused bit", i, e & ~(PTE_PSE | PTE_G), e);
    if (!c) {
        wrong(a, frame_mfn(t), "names a frame of somebody else", i, 0, e);
        return;
    }
    c->hint++;
    if (!(c->fw & FW_VALID) || fw_type(c->fw) != want)
        wrong(a, pte_mfn(e), "named as a table: type", -1, want, fw_type(c->fw));
    else if (has_meta(c) && valid_table(t) && has_meta(t))       /* a suspended table's marks are its item's */
        check_marks(a, t, level, i, c);
}

/* The first @n entries of the table @t hold references. */
static void entries(struct audit *a, const struct frame *t, int n)
{
    int level = level_of(fw_type(t->fw));
    const u64 *pte = frame_map(t);

    if (a->pass == PASS_U && level > 1)
        return;                                  /* they hold no untyped references */
    for (int i = 0; i < n; i++) {
        u64 e = load_relaxed(&pte[i]);

        if (level == 4 && i >= L4_FIRST && i <= L4_LAST) {
            u64 want = pt_hv_slots[i - L4_FIRST];

            if ((t->fw & FW_VALID) && e != want && (i > L4_FIRST || e))   /* the first one: in kernel mode only */
                wrong(a, frame_mfn(t), "the hypervisor's slot", i, want, e);
            continue;
        }
        if (!(e & PTE_P))
            continue;
        if (a->pass == PASS_T) {
            if (pte_adjust(e, level) != e)
                wrong(a, frame_mfn(t), "entry not adjusted", i, pte_adjust(e, level), e);
            if ((e & PTE_MFN_MASK) & ~pt_phys_mask)
                wrong(a, frame_mfn(t), "entry beyond the address width", i, e & pt_phys_mask, e);
            if (level == 1 && pte_mfn(e).v < max_mfn && (e & PTE_CACHE) && own(a, pte_mfn(e)))
                wrong(a, frame_mfn(t), "RAM mapped uncached", i, e & ~PTE_CACHE, e);
        }
        if (level == 1)
            leaf(a, t, i, e);
        else
            link(a, t, level, i, e);
    }
}

/* References outside of tables ------------------------------------------------------------------------------------ */

void audit_ref(struct audit *a, mfn_t mfn, enum frame_type ty)
{
    struct frame *f = own(a, mfn);

    if (!f) {
        wrong(a, mfn, "held outside of tables, but somebody else's: owner", -1, a->d->owner,
              mfn.v < max_mfn ? frame_of(mfn)->owner : 0);
        return;
    }
    if (ty == FT_NONE) {
        f->hint += a->pass == PASS_U;
        return;
    }
    if (a->pass != PASS_T)
        return;
    f->hint++;
    if (fw_type(f->fw) != ty || !(f->fw & FW_VALID))
        wrong(a, mfn, "held outside of tables: type", -1, ty, fw_type(f->fw));
}

void audit_root(struct audit *a, mfn_t mfn, bool user)
{
    struct frame *f = own(a, mfn);

    audit_ref(a, mfn, FT_L4);
    if (a->pass == PASS_T && user && f && valid_table(f) && has_meta(f) && !(pt_meta(f)->user && pt_meta(f)->done_user))
        wrong(a, mfn, "user mark of a root", -1, 1, 0);
}

/* Work items: what is parked in the middle ------------------------------------------------------------------------- */

/* @f, of a parked item, has a typed reference on its way up and none on its way down. */
static void suspended(struct audit *a, struct frame *f, bool up)
{
    if (!(f->fw & FW_SUSP))
        wrong(a, frame_mfn(f), "in a parked item, but not suspended: its word", -1, FW_SUSP, f->fw);
    if (a->pass == PASS_T)
        f->hint += up;
    a->parked += a->pass == PASS_T;
}

static bool on_stack(const struct pt_work *w, int root)
{
    for (unsigned i = 0; i < w->depth; i++)
        if (w->at[i].root == root)
            return true;
    return false;
}

static void work_refs(struct audit *a, const struct pt_work *w)
{
    for (unsigned i = 0; i < 2; i++)
        if (w->keep[i].f && !w->keep[i].rc)
            audit_ref(a, frame_mfn(w->keep[i].f), (enum frame_type)w->keep[i].ty);
    for (unsigned i = 0; i < w->n && w->state == WORK_DONE; i++)     /* results that the owner has not taken */
        if (!w->root[i].pin && !w->root[i].rc)
            audit_ref(a, frame_mfn(w->root[i].f), (enum frame_type)w->root[i].ty);
    if (w->state != WORK_PARKED)
        return;
    for (unsigned i = 0; i < w->n; i++)                               /* those of roots that are done already */
        if (!w->root[i].pin && w->root[i].begun && !w->root[i].rc && !on_stack(w, (int)i))
            audit_ref(a, frame_mfn(w->root[i].f), (enum frame_type)w->root[i].ty);
    for (unsigned i = 0; i < w->depth; i++) {
        const struct pt_level *lv = &w->at[i];

        suspended(a, lv->f, !lv->down || lv->failed);
        entries(a, lv->f, lv->i);
        if (lv->held && a->pass == PASS_T)
            frame_of(pte_mfn(load_relaxed((u64 *)frame_map(lv->f) + lv->i)))->hint++;
    }
    for (unsigned i = 0; i < w->n; i++)
        if (!w->root[i].begun)
            suspended(a, w->root[i].f, true);
}

/* The comparison --------------------------------------------------------------------------------------------------- */

static void compare(struct audit *a, struct frame *f)
{
    mfn_t m = frame_mfn(f);
    u64 w = f->fw, n = f->hint;

    f->hint = 0;
    if (a->pass == PASS_U) {
        if ((w & FW_U) != n && (w & FW_U) != FW_U)       /* at its maximum it is stuck */
            wrong(a, m, "U", -1, n, w & FW_U);
        return;
    }
    if (fw_t(w) != n + !!(w & FW_PIN))
        wrong(a, m, "T", -1, n + !!(w & FW_PIN), fw_t(w));
    if (!valid_table(f) || fw_type(w) != FT_L1 || !has_meta(f) || a->suspended)
        return;
    /* An L1's back pointer: no entry names it, one does, or it does not matter. */
    u64 back = pt_meta(f)->back;

    if (back != BACK_MANY && (back != BACK_NONE) != n)
        wrong(a, m, "back pointer for the entries that name it: their number", -1, back != BACK_NONE, n);
}

bool audit_run(struct audit *a)
{
    a->frames = a->tables = a->dead = a->limbo = a->wrong = a->suspended = a->parked = 0;
    for (u64 m = 0; m < max_mfn; m++) {
        struct frame *f = frame_of(MFN(m));

        if (own(a, MFN(m)))
            check_word(a, f);
        else if (f->fw & FW_REFS)
            wrong(a, MFN(m), "references of a frame that is nobody's", -1, 0, f->fw & FW_REFS);
    }
    for (a->pass = PASS_U; a->pass <= PASS_T; a->pass++) {
        for (u64 m = 0; m < max_mfn; m++)
            if (own(a, MFN(m)) && valid_table(frame_of(MFN(m))))
                entries(a, frame_of(MFN(m)), PT_ENTRIES);
        for (unsigned i = 0; i < a->d->nr_work; i++)
            work_refs(a, a->d->work[i]);
        a->refs(a);
        for (u64 m = 0; m < max_mfn; m++)
            if (own(a, MFN(m)))
                compare(a, frame_of(MFN(m)));
    }
    if (a->suspended != a->parked)
        wrong(a, MFN_INVALID, "suspended frames, against those of parked work items", -1, a->parked, a->suspended);
    return !a->wrong;
}
