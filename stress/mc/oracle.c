/* SPDX-License-Identifier: MIT */
/* What must hold after each step, checked where it can change: frame words, entries, caches, guest stores; and the
 * audit when everything is at rest. */
#include "mc.h"

#include "pt_internal.h"

#include <string.h>

static u8 busy_owner[FRAMES], scanning[FRAMES];
static const char *const type_name[8] = { "NONE", "W", "L1", "L2", "L3", "L4", "SEG", "?" };

static bool is_table(u64 w) { return fw_type(w) >= FT_L1 && fw_type(w) <= FT_L4; }
static unsigned level_of(u64 w) { return fw_type(w) - FT_L1 + 1; }
static bool ours(unsigned f) { return f && f < FRAMES && mc_frames[f].owner == mc_dom.owner; }

static bool ptwr_holds(unsigned cpu)
{
    return mc_dom.ptwr && mc_dom.ptwr->lock && mc_dom.ptwr->owner == cpu + 1;
}

/* An L1 that is open for writing. */
static bool is_open(unsigned f)
{
    return mc_dom.ptwr && (mc_frames[f].fw & (FW_BUSY | FW_VALID)) == FW_BUSY && fw_type(mc_frames[f].fw) == FT_L1;
}

void oracle_reset(void)
{
    memset(scanning, 0, sizeof(scanning));
    memset(busy_owner, 0xff, sizeof(busy_owner));
}

static void check_frame(unsigned f)
{
    u64 w = mc_frames[f].fw;

    if (mc_writers[f]) {
        if (w & FW_VALID && (is_table(w) || fw_type(w) == FT_SEG))
            mc_violation("%s is a valid %s and a CPU can still write it", world_name(f), type_name[fw_type(w)]);
        if (scanning[f])
            mc_violation("%s is being scanned as %s and a CPU can still write it", world_name(f),
                         type_name[fw_type(w)]);
    }
    for (unsigned l = 1; l <= 4; l++) {
        if (!oracle_uses[f][l])
            continue;
        if (w & FW_VALID && !(is_table(w) && level_of(w) == l))
            mc_violation("%s is a valid %s and a CPU still has it cached as L%u", world_name(f),
                         type_name[fw_type(w)], l);
        if (oracle_users[f][l] && mc_writers[f])
            mc_violation("%s is used as L%u while a CPU can write it", world_name(f), l);
    }
}

void oracle_cached(unsigned f)
{
    if (!mc.direct)
        check_frame(f);
}

void oracle_guest_store(unsigned f)
{
    u64 w = mc_frames[f].fw;

    if (w & FW_VALID && (is_table(w) || fw_type(w) == FT_SEG))
        mc_violation("a guest store reached %s, a valid %s", world_name(f), type_name[fw_type(w)]);
    if (scanning[f])
        mc_violation("a guest store reached %s while it was scanned", world_name(f));
    if (!ours(f) && mc_frames[f].owner != OWNER_NONE)
        mc_violation("a guest store reached %s, which the guest gave away", world_name(f));
}

void oracle_read(unsigned f, unsigned cpu)
{
    u64 w = mc_frames[f].fw;

    if (w & FW_BUSY && is_table(w) && (busy_owner[f] == cpu || ptwr_holds(cpu) || w & FW_SUSP) && !pt_batch_pending()) {
        if (!is_open(f) || !mc_writers[f])
            scanning[f] = 1;
        else if (busy_owner[f] != cpu)
            mc_violation("%s is compared while a CPU can still write it", world_name(f));
        check_frame(f);
    }
}

/* A valid table's present entry holds a reference on what it names. */
void oracle_slot(unsigned f, unsigned idx)
{
    u64 w = mc_frames[f].fw, e, t;
    unsigned target, level = level_of(w);

    if (mc.direct || !(w & FW_VALID) || !is_table(w) || !ours(f))
        return;
    e = *mc_slot(f, idx);
    if (!(e & PTE_P) || (level == 4 && idx >= 256 && idx <= 271))
        return;
    if (pte_mfn(e).v >= FRAMES || !ours((unsigned)pte_mfn(e).v))
        mc_violation("%s names frame %llu, which is not the domain's", mc_name(mc_slot(f, idx)),
                     (unsigned long long)pte_mfn(e).v);
    target = (unsigned)pte_mfn(e).v;
    t = mc_frames[target].fw;
    if (level == 1 && (!(e & PTE_RW) || is_open(target))) {
        if (t & FW_DEAD || !(t & FW_U))
            mc_violation("%s maps %s without a reference", mc_name(mc_slot(f, idx)), world_name(target));
    } else if (level == 1) {
        if (!(t & FW_VALID) || fw_type(t) != FT_W)
            mc_violation("%s maps %s writable, which is %s%s", mc_name(mc_slot(f, idx)), world_name(target),
                         t & FW_VALID ? "" : "not valid as ", type_name[fw_type(t)]);
    } else if ((!(t & FW_VALID) && !is_open(target)) || !is_table(t) || level_of(t) != level - 1) {
        mc_violation("%s hooks %s, which is %s%s", mc_name(mc_slot(f, idx)), world_name(target),
                     t & FW_VALID ? "" : "not valid as ", type_name[fw_type(t)]);
    }
}

/* @f lost something: nobody may name it for that. */
static void check_names(unsigned f)
{
    for (unsigned p = 1; p < FRAMES; p++) {
        u64 w = mc_frames[p].fw;

        if (!(w & FW_VALID) || !is_table(w))
            continue;
        for (unsigned i = 0; i < 273; i++) {
            if (i == FRAMES)
                i = 272;
            if (mc_interesting[p][i] && *mc_slot(p, i) & PTE_P && pte_mfn(*mc_slot(p, i)).v == f)
                oracle_slot(p, i);
        }
    }
}

void oracle_fw(unsigned f, u64 old, u64 new, unsigned cpu)
{
    if (mc.direct)
        return;
    if (new & FW_BUSY && !(old & FW_BUSY))
        busy_owner[f] = (u8)cpu;
    if (!(new & FW_BUSY))
        scanning[f] = 0;
    if ((old ^ new) & (FW_VALID | FW_BUSY | FW_TY | FW_DEAD))
        check_frame(f);
    if (old & FW_DEAD && !(new & FW_DEAD) && oracle_maps[f] + oracle_uses[f][1] + oracle_uses[f][2] + oracle_uses[f][3])
        mc_violation("%s gets another owner while a CPU has it cached", world_name(f));
    if ((old & ~new) & FW_VALID || (old ^ new) & (FW_TY | FW_DEAD) || (old & FW_U && !(new & FW_U)))
        check_names(f);
    if ((old & ~new) & FW_VALID)
        for (unsigned c = 0; c < mc.nr_cpus; c++)
            if (cpus[c].cr3.v == f)
                mc_violation("%s ceases to be valid while CPU %u has it loaded", world_name(f), c);
    if (new & FW_VALID && !(old & FW_VALID) && is_table(new))
        for (unsigned i = 0; i < PT_ENTRIES; i++)
            if (mc_interesting[f][i])
                oracle_slot(f, i);
}

/* At rest -------------------------------------------------------------------------------------------- */

static u32 want_t[FRAMES], want_u[FRAMES], hooks[FRAMES], tables;
static u64 hook_at[FRAMES];

/* The marks of a valid table. */
static const struct pt_meta *meta_of(unsigned f, unsigned level)
{
    static const struct pt_meta none;
    const struct pt_meta *m = pt_meta(&mc_frames[f]);

    if ((u64)m >= (u64)mc_hv && (u64)m < (u64)(mc_hv + HV_PAGES) && m->level == level)
        return m;
    mc_violation("%s has no meta of its level", world_name(f));
    return &none;
}

static void count_entry(unsigned f, unsigned level, unsigned i, u64 e)
{
    unsigned t = (unsigned)pte_mfn(e).v;
    const struct pt_meta *parent = meta_of(f, level), *child;
    u64 as = level == 4 && i > 271 ? AS_ANY : parent->done_as, has;

    oracle_slot(f, i);
    if (!(e & PTE_US))
        mc_violation("%s is present without the user bit", mc_name(mc_slot(f, i)));
    if (level == 1) {
        want_t[t] += e >> 1 & 1;
        want_u[t] += !(e >> 1 & 1);
        return;
    }
    want_t[t]++;
    child = meta_of(t, level - 1);
    has = level == 2 ? child->as : child->done_as;
    if (has != AS_ANY && has != as && as != AS_NONE)
        mc_violation("%s hangs in address space %llu, its mark says %lld", world_name(t), (unsigned long long)as,
                     (long long)has);
    if ((parent->done_user || (level == 4 && i < 256)) && !(level == 2 ? child->user : child->done_user))
        mc_violation("user mode reaches %s, its mark says it does not", world_name(t));
    if (level == 2) {
        hooks[t]++;
        hook_at[t] = (u64)f << PAGE_SHIFT | i * 8;
    }
}

static void count_table(unsigned f, u64 w)
{
    unsigned level = level_of(w);

    tables++;
    (void)meta_of(f, level);
    for (unsigned i = 0; i < PT_ENTRIES; i++) {
        u64 e = *mc_slot(f, i);

        if (level == 4 && i >= 256 && i <= 271) {
            if (i > 256 && e != pt_hv_slots[i - 256])
                mc_violation("%s lacks the hypervisor's slot %u", world_name(f), i);
            continue;
        }
        if (e & PTE_P)
            count_entry(f, level, i, e);
    }
}

static void compare(unsigned f, u64 w)
{
    u64 alloc = mc_released[f] ? 0 : FW_ALLOC;

    if (w & FW_K)
        mc_violation("%s: updates still in flight", world_name(f));
    if (w & FW_BUSY)
        mc_violation("%s: a type change that nobody finished", world_name(f));
    if (fw_t(w) != want_t[f] || (w & FW_U) != want_u[f])
        mc_violation("%s: counts T=%llu U=%llu, the tables say T=%u U=%u", world_name(f), (unsigned long long)fw_t(w),
                     (unsigned long long)(w & FW_U), want_t[f], want_u[f]);
    if ((w & FW_ALLOC) != alloc)
        mc_violation("%s: the owner %s it", world_name(f), alloc ? "should hold" : "should not hold");
    if (w & FW_DEAD)
        mc_violation("%s died and nobody was told", world_name(f));
    if (!(w & (FW_REFS | FW_DEAD)))
        mc_violation("%s has no reference and is not dead", world_name(f));
    if (w & FW_VALID && fw_type(w) == FT_L1 && hooks[f]) {
        u64 back = meta_of(f, 1)->back;

        if (back != BACK_MANY && !(hooks[f] == 1 && back == hook_at[f]))
            mc_violation("%s hangs at %#llx, its mark says %#llx", world_name(f), (unsigned long long)hook_at[f],
                         (unsigned long long)back);
    }
    if (!(w & FW_VALID) && pt_hv_slots[1] && *mc_slot(f, 257) == pt_hv_slots[1])
        mc_violation("%s still has the hypervisor's slots", world_name(f));
}

void oracle_rest(void)
{
    memset(want_t, 0, sizeof(want_t));
    memset(want_u, 0, sizeof(want_u));
    memset(hooks, 0, sizeof(hooks));
    tables = 0;
    for (unsigned c = 0; c < CPUS; c++) {       /* those that the scenario lacks hold their roots too */
        want_t[cpus[c].root_kernel.v]++;
        want_t[cpus[c].root_user.v]++;
    }
    for (unsigned f = 1; f < FRAMES; f++) {
        u64 w = mc_frames[f].fw;

        if (!ours(f))
            continue;
        want_t[f] += w & FW_PIN ? 1 : 0;
        if (w & FW_VALID && is_table(w))
            count_table(f, w);
        if (mc.failed)
            return;
    }
    for (unsigned f = 1; f < FRAMES && !mc.failed; f++) {
        if (ours(f))
            compare(f, mc_frames[f].fw);
        else if (mc_frames[f].fw & FW_DEAD)
            mc_violation("%s died and was not given to another owner", world_name(f));
    }
    if (!mc.failed && tables != mc_metas)
        mc_violation("%llu metas in use for %u tables", (unsigned long long)mc_metas, tables);
}
