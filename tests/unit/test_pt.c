/* SPDX-License-Identifier: MIT */
/* Tests page-table entries and table types on one CPU: every class of old and new entry at each level against a slow
 * oracle, every error path undone to the last reference.  After each operation the audit recounts everything. */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xen/errno.h>

#include "pt_meta.c"

#include "above.h"
#include "audit.h"
#include "emulate/op.h"
#include "env.h"
#include "ptwalk.h"

_Static_assert(EINVAL == XEN_EINVAL, "the ABI's error numbers");
#define P      PTE_P
#define RW     PTE_RW

/* Frames by use. */
enum { DATA_A, DATA_B, L1_A, L1_B, L2_A, L2_B, L3_A, L3_B, L4_A, L4_B, DEAD, SEG, SPARE, FRAMES = 16 };
#define HEAP   4
#define HOLE   (FRAMES + HEAP + 50)                               /* beyond RAM */

static bool seg_held;
static mfn_t held_root;

static void refs(struct audit *a)
{
    if (seg_held)
        audit_ref(a, MFN(SEG), FT_SEG);
    if (held_root.v != MFN_INVALID.v)
        audit_root(a, held_root, false);
}

static void say(struct audit *a, const struct audit_finding *f)
{
    (void)a;
    printf("audit: frame %llu entry %d: %s %#llx, expected %#llx\n", (unsigned long long)f->mfn.v, f->entry, f->what,
           (unsigned long long)f->found, (unsigned long long)f->expected);
}

static bool sound(void)
{
    struct audit a = { .d = &host_dom, .refs = refs, .report = say };

    return audit_run(&a);
}

static struct frame *fr(u64 m) { return frame_of(MFN(m)); }
static u64 *table(u64 m) { return env_map(MFN(m)); }
static u64 entry(u64 m, u64 flags) { return pte_make(MFN(m), flags); }
static enum frame_type type_of(u64 m) { return fw_type(fr(m)->fw); }
static u64 t_of(u64 m) { return fw_t(fr(m)->fw); }
static u64 u_of(u64 m) { return fr(m)->fw & FW_U; }

static void fresh(void)
{
    if (env_frame_table)
        host_stop();                                              /* the last test's machine */
    host_start(1, FRAMES, HEAP);
    host_counting_tsc = true;
    memset(rcu_cpu, 0, sizeof(rcu_cpu[0]));
    memset(meta_cpu, 0, sizeof(meta_cpu));
    pt_phys_mask = 0x0000003ffffff000ull;
    for (unsigned i = 0; i < 16; i++)
        pt_hv_slots[i] = (u64)(100 + i) << PAGE_SHIFT | P;
    tlb_cpu[0].as = AS_ANY;                                       /* it may have cached anything */
    tlb_cpu[0].mode = 1;
    host_dom.io_ok = host_io_allowed = false;
    host_segdesc_ok = true;
    host_dead = host_batch_failed = 0;
    seg_held = false;
    held_root = MFN_INVALID;
    frame_release(fr(DEAD));
}

static bool pins(u64 m, enum frame_type ty)
{
    return !pt_pin(&host_dom, MFN(m), ty) && (fr(m)->fw & (FW_PIN | FW_VALID | FW_BUSY)) == (FW_PIN | FW_VALID);
}

/* Entries ------------------------------------------------------------------------------------------------------------ */

/* What an L1 entry @e must count on frame @m, from the rules; the entry itself is acceptable. */
static u64 want_u(u64 e, u64 m) { return (e & (P | RW)) == P && pte_mfn(e).v == m; }
static u64 want_t(u64 e, u64 m) { return (e & (P | RW)) == (P | RW) && pte_mfn(e).v == m; }

/* May the domain have the L1 entry @e?  Table L1_A is valid all the time, SEG is held as descriptors. */
static bool l1_ok(u64 e)
{
    u64 m = pte_mfn(e).v;

    if (!(e & P))
        return true;
    if (e & PTE_MFN_MASK & ~pt_phys_mask)
        return false;
    if (m >= FRAMES)
        return host_dom.io_ok && host_io_allowed && m >= FRAMES + HEAP;
    if (m == DEAD || (e & (PTE_PWT | PTE_PCD | PTE_PAT)))
        return false;
    return !(e & RW) || m == DATA_A || m == DATA_B;
}

/* XSA-148, XSA-182, XSA-402 (no uncached RAM): all old and new classes of an L1 entry. */
static void test_l1_matrix_xsa148_xsa182(void)
{
    static const u64 target[] = { DATA_A, DATA_B, L1_A, DEAD, SEG, FRAMES, HOLE, 1ull << 38 };
    static u64 list[32 * ARRAY_SIZE(target)];
    unsigned n = 0, wrong = 0;

    for (unsigned t = 0; t < ARRAY_SIZE(target); t++)
        for (unsigned fl = 0; fl < 32; fl++)
            list[n++] = entry(target[t], (fl & 1 ? P : 0) | (fl & 2 ? RW : 0) | (fl & 4 ? PTE_PWT : 0) | (fl & 8 ? PTE_PCD : 0) |
                              (fl & 16 ? PTE_PAT : 0) | (t * 37 + fl * 11) % 8 * PTE_A | (fl & 1 ? 0 : 0x200));
    for (int io = 0; io < 2; io++) {
        fresh();
        host_dom.io_ok = host_io_allowed = io;
        CU_ASSERT_TRUE(pins(L1_A, FT_L1));
        CU_ASSERT_EQUAL(pt_get_type(&host_dom, MFN(SEG), FT_SEG), 0);
        seg_held = true;
        for (unsigned o = 0; o < n; o++) {
            if (!l1_ok(list[o]))
                continue;
            for (unsigned k = 0; k < n; k++) {
                u64 old, new = list[k], now;
                int rc;

                table(L1_A)[9] = 0;                               /* a clean start for this pair */
                rc = pt_set(&host_dom, fr(L1_A), 9, 1, list[o], PT_NORMAL);
                old = table(L1_A)[9];
                wrong += rc != 0 || old != pte_adjust(list[o], 1);
                rc = pt_set(&host_dom, fr(L1_A), 9, 1, new, PT_NORMAL);
                now = table(L1_A)[9];
                wrong += rc != (l1_ok(new) ? 0 : -EINVAL) || now != (rc ? old : pte_adjust(new, 1));
                wrong += (now & P) && ((now & PTE_G) || !(now & PTE_US));
                for (u64 m = DATA_A; m <= DATA_B; m++)
                    wrong += u_of(m) != want_u(now, m) || t_of(m) != want_t(now, m);
                wrong += u_of(L1_A) != want_u(now, L1_A) || t_of(L1_A) != 1 || u_of(SEG) != want_u(now, SEG);
                wrong += pt_set(&host_dom, fr(L1_A), 9, 1, 0, PT_NORMAL) != 0;
            }
        }
        CU_ASSERT_EQUAL(wrong, 0);
        CU_ASSERT_TRUE(sound());
        host_stop();
    }
}

/* The same for entries of higher tables; also XSA-240: no table of the same or a higher level. */
static void links(int level)
{
    const u64 base = L1_A + 2 * (u64)(level - 2), self = base + 2;     /* the tables below, the table */
    const u64 target[] = { base, base + 1, self, DATA_A, SEG, DEAD, FRAMES, HOLE, 1ull << 38, L4_B };
    static u64 list[64 * ARRAY_SIZE(target)];
    enum frame_type below = (enum frame_type)(FT_L1 + level - 2);
    unsigned n = 0, wrong = 0;

    fresh();
    host_dom.io_ok = host_io_allowed = true;                      /* that is for leaves only */
    for (unsigned t = 0; t < ARRAY_SIZE(target); t++)
        for (unsigned fl = 0; fl < 64; fl++)
            list[n++] = entry(target[t], (fl & 1 ? P : 0) | (fl & 2 ? RW : 0) | (fl & 4 ? PTE_PSE : 0) | (fl & 8 ? PTE_G : 0) |
                              (fl & 16 ? PTE_PCD : 0) | (fl & 32 ? PTE_NX : 0));
    CU_ASSERT_TRUE(pins(self, below + 1));
    CU_ASSERT_TRUE(pins(L4_B, FT_L4));
    CU_ASSERT_EQUAL(pt_get_type(&host_dom, MFN(SEG), FT_SEG), 0);
    CU_ASSERT_EQUAL(pt_get_type(&host_dom, MFN(DATA_A), FT_W), 0);     /* writable somewhere: no table */
    seg_held = true;
#define OK(e) (!((e) & P) || ((pte_mfn(e).v == base || pte_mfn(e).v == base + 1) && !((e) & PTE_PSE) && \
                              !(level == 4 && ((e) & PTE_G))))
    for (unsigned o = 0; o < n; o++) {
        if (!OK(list[o]))
            continue;
        for (unsigned k = 0; k < n; k++) {
            u64 old, new = list[k], now;
            int rc = pt_set(&host_dom, fr(self), 3, level, list[o], PT_NORMAL);

            rcu_quiescent();                                      /* metas of dead tables come back */
            old = table(self)[3];
            wrong += rc != 0 || old != pte_adjust(list[o], level);
            rc = pt_set(&host_dom, fr(self), 3, level, new, PT_NORMAL);
            now = table(self)[3];
            wrong += rc != (OK(new) ? 0 : -EINVAL) || now != (rc ? old : pte_adjust(new, level));
            for (u64 m = base; m <= base + 1; m++)
                wrong += t_of(m) != ((now & P) && pte_mfn(now).v == m) || ((now & P) && pte_mfn(now).v == m && type_of(m) != below);
            wrong += t_of(self) != 1 || t_of(L4_B) != 1 || t_of(DATA_A) != 1;
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    pt_put_type(&host_dom, MFN(DATA_A));
    CU_ASSERT_TRUE(sound());
    host_stop();
}
static void test_l2_matrix_xsa148_xsa240(void) { links(2); }
static void test_l3_matrix(void) { links(3); }
static void test_l4_matrix(void) { links(4); }

static void test_preserve_ad(void)
{
    fresh();
    pins(L1_A, FT_L1);
    pt_set(&host_dom, fr(L1_A), 0, 1, entry(DATA_A, P | RW), PT_NORMAL);
    table(L1_A)[0] |= PTE_A | PTE_D;                              /* the CPU */
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L1_A), 0, 1, entry(DATA_A, P), PT_PRESERVE_AD), 0);
    CU_ASSERT_EQUAL(table(L1_A)[0], entry(DATA_A, P | PTE_US | PTE_A | PTE_D));
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L1_A), 0, 1, entry(DATA_A, P), PT_NORMAL), 0);
    CU_ASSERT_EQUAL(table(L1_A)[0], entry(DATA_A, P | PTE_US));
    table(L1_A)[1] = PTE_A;
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L1_A), 1, 1, entry(DATA_A, P), PT_PRESERVE_AD), 0);
    CU_ASSERT_EQUAL(table(L1_A)[1], entry(DATA_A, P | PTE_US));   /* of an entry that was not present: none */
    CU_ASSERT_TRUE(sound());
    host_stop();
}

static void test_hv_slots(void)
{
    fresh();
    table(L4_A)[256] = table(L4_A)[271] = entry(L3_A, P);         /* not the guest's to say */
    CU_ASSERT_TRUE(pins(L4_A, FT_L4));
    CU_ASSERT_EQUAL(table(L4_A)[256], 0);
    for (unsigned i = 257; i <= 271; i++)
        CU_ASSERT_EQUAL(table(L4_A)[i], pt_hv_slots[i - 256]);
    for (unsigned i = 256; i <= 271; i++)
        CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L4_A), i, 4, entry(L3_A, P), PT_NORMAL), -EINVAL);
    for (unsigned i = 255; i <= 272; i += 17)
        CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L4_A), i, 4, entry(L3_A, P), PT_NORMAL), 0);
    CU_ASSERT_EQUAL(t_of(L3_A), 2);
    CU_ASSERT_TRUE(sound());
    CU_ASSERT_EQUAL(pt_unpin(&host_dom, MFN(L4_A)), 0);
    for (unsigned i = 256; i <= 271; i++)
        CU_ASSERT_EQUAL(table(L4_A)[i], 0);                       /* nothing of ours goes back to the guest */
    CU_ASSERT_EQUAL(table(L4_A)[255], entry(L3_A, P | PTE_US));   /* its own entries stay */
    CU_ASSERT_TRUE(sound());
    host_stop();
}

/* Not a valid table of that level: the caller must look again. */
static void test_set_stale(void)
{
    fresh();
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(DATA_A), 0, 1, entry(DATA_B, P | RW), PT_NORMAL), -XEN_EAGAIN);
    pins(L2_A, FT_L2);
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L2_A), 0, 1, entry(DATA_B, P | RW), PT_NORMAL), -XEN_EAGAIN);
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L2_A), 0, 1, 0, PT_NORMAL), -XEN_EAGAIN);
    CU_ASSERT_EQUAL(table(L2_A)[0], 0);
    CU_ASSERT_EQUAL(t_of(DATA_B), 0);                             /* what was taken was given back */
    CU_ASSERT_TRUE(sound());
    host_stop();
}

/* Emulated writes ------------------------------------------------------------------------------------------------------ */

static int emulate(unsigned off, u8 op, u8 size, u64 reg, u64 rax, u64 *regs)
{
    struct pte_insn i = { .op = op, .size = size, .reg = REGS_RCX };

    memset(regs, 0, 24 * sizeof(u64));
    regs[REGS_RCX / 8] = reg;
    regs[REGS_RAX / 8] = rax;
    return pt_emulate(&host_dom, fr(L1_A), off, &i, regs);
}

static void test_emulate(void)
{
    const u64 rw = entry(DATA_A, P | RW | PTE_US), ro = entry(DATA_A, P | PTE_US);
    u64 r[24];

    fresh();
    pins(L1_A, FT_L1);
    CU_ASSERT_EQUAL(emulate(16, PTE_OP_MOV, 8, rw, 0, r), 0);
    CU_ASSERT_EQUAL(table(L1_A)[2], rw);
    CU_ASSERT_EQUAL(t_of(DATA_A), 1);
    CU_ASSERT_EQUAL(emulate(16, PTE_OP_XCHG, 8, ro, 0, r), 0);
    CU_ASSERT_EQUAL(r[REGS_RCX / 8], rw);                         /* it saw the old one */
    CU_ASSERT_EQUAL(u_of(DATA_A), 1);
    CU_ASSERT_EQUAL(t_of(DATA_A), 0);
    CU_ASSERT_EQUAL(emulate(16, PTE_OP_CMPXCHG, 8, 0, 123, r), 0);
    CU_ASSERT_EQUAL(table(L1_A)[2], ro);                          /* no match: nothing changed, rax says what is there */
    CU_ASSERT_EQUAL(r[REGS_RAX / 8], ro);
    CU_ASSERT_EQUAL(r[REGS_RFLAGS / 8] & FLAG_ZF, 0);
    CU_ASSERT_EQUAL(emulate(16, PTE_OP_CMPXCHG, 8, rw, ro, r), 0);
    CU_ASSERT_EQUAL(table(L1_A)[2], rw);
    CU_ASSERT_NOT_EQUAL(r[REGS_RFLAGS / 8] & FLAG_ZF, 0);
    CU_ASSERT_EQUAL(emulate(16, PTE_OP_BTR, 8, 1, 0, r), 0);      /* bit 1 is RW */
    CU_ASSERT_EQUAL(table(L1_A)[2], ro);
    CU_ASSERT_NOT_EQUAL(r[REGS_RFLAGS / 8] & FLAG_CF, 0);
    CU_ASSERT_EQUAL(emulate(20, PTE_OP_MOV, 4, 0xffff, 0, r), -EINVAL);      /* the upper half: beyond memory */
    CU_ASSERT_EQUAL(table(L1_A)[2], ro);
    CU_ASSERT_EQUAL(emulate(16, PTE_OP_MOV, 1, 0, 0, r), 0);      /* one byte: gone */
    CU_ASSERT_EQUAL(table(L1_A)[2], ro & ~0xffull);
    CU_ASSERT_EQUAL(u_of(DATA_A), 0);
    CU_ASSERT_EQUAL(emulate(0, PTE_OP_XCHG, 8, entry(L1_A, P | RW), 0, r), -EINVAL);
    CU_ASSERT_EQUAL(r[REGS_RCX / 8], entry(L1_A, P | RW));        /* refused: no register changed either */
    CU_ASSERT_EQUAL(emulate(4096 - 8, PTE_OP_MOV, 8, rw, 0, r), 0);
    CU_ASSERT_EQUAL(table(L1_A)[511], rw);
    CU_ASSERT_TRUE(sound());
    CU_ASSERT_EQUAL(pt_unpin(&host_dom, MFN(L1_A)), 0);
    CU_ASSERT_EQUAL(emulate(0, PTE_OP_MOV, 8, rw, 0, r), -XEN_EAGAIN);
    CU_ASSERT_TRUE(sound());
    host_stop();
}

/* Tables ------------------------------------------------------------------------------------------------------------ */

/* A whole address space: L4_A -> L3_A -> L2_A -> L1_A -> DATA_A, all RO-mapped in L1_A too. */
static void build(void)
{
    table(L4_A)[1] = entry(L3_A, P | RW | PTE_US);
    table(L3_A)[2] = entry(L2_A, P | RW | PTE_US);
    table(L2_A)[3] = entry(L1_A, P | RW | PTE_US);
    table(L1_A)[4] = entry(DATA_A, P | RW | PTE_US);
    table(L1_A)[5] = entry(L1_A, P);
    table(L1_A)[6] = entry(L4_A, P);
}
#define VA (1ull << 39 | 2ull << 30 | 3ull << 21 | 4ull << 12)

static void test_pin_tree(void)
{
    mfn_t m;

    fresh();
    build();
    CU_ASSERT_TRUE(pins(L4_A, FT_L4));
    for (unsigned l = 0; l < 4; l++) {
        CU_ASSERT_EQUAL(type_of(L1_A + 2 * l), FT_L1 + l);
        CU_ASSERT_EQUAL(t_of(L1_A + 2 * l), 1);
        CU_ASSERT_EQUAL(pt_meta(fr(L1_A + 2 * l))->level, l + 1);
    }
    CU_ASSERT_EQUAL(t_of(DATA_A), 1);
    CU_ASSERT_EQUAL(u_of(L1_A), 1);
    CU_ASSERT_TRUE(sound());
    CU_ASSERT_TRUE(pt_walk_table(&host_dom, MFN(L4_A), VA, 1, &m));
    CU_ASSERT_EQUAL(m.v, L1_A);
    CU_ASSERT_TRUE(pt_walk_permits(&host_dom, MFN(L4_A), VA, 4 | 2));
    CU_ASSERT_FALSE(pt_walk_permits(&host_dom, MFN(L4_A), VA + 2 * PAGE_SIZE, 4 | 2));
    CU_ASSERT_TRUE(pt_walk_permits(&host_dom, MFN(L4_A), VA + 2 * PAGE_SIZE, 4));
    CU_ASSERT_FALSE(pt_walk_table(&host_dom, MFN(L4_A), VA ^ 1ull << 30, 2, &m));
    /* XSA-286: a walk does not follow an entry to what is no table of that level any more. */
    table(L2_A)[7] = entry(DATA_A, P | PTE_US);
    CU_ASSERT_FALSE(pt_walk_table(&host_dom, MFN(L4_A), VA ^ 4ull << 21, 1, &m));
    table(L2_A)[7] = 0;

    CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(L4_A), FT_L4), -EINVAL);         /* once only */
    CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(L4_A), FT_L3), -EINVAL);
    CU_ASSERT_EQUAL(pt_unpin(&host_dom, MFN(L2_A)), -EINVAL);
    CU_ASSERT_TRUE(sound());
    CU_ASSERT_TRUE(pins(L2_A, FT_L2));                                      /* an inner one too */
    CU_ASSERT_EQUAL(pt_unpin(&host_dom, MFN(L4_A)), 0);
    CU_ASSERT_EQUAL(t_of(L3_A), 0);
    CU_ASSERT_EQUAL(t_of(L2_A), 1);
    CU_ASSERT_EQUAL(t_of(DATA_A), 1);
    CU_ASSERT_TRUE(sound());
    CU_ASSERT_EQUAL(pt_unpin(&host_dom, MFN(L2_A)), 0);
    for (u64 f = DATA_A; f <= L4_B; f++)
        CU_ASSERT_EQUAL(fr(f)->fw & (FW_T | FW_U), 0);
    CU_ASSERT_TRUE(sound());
    host_stop();
}

/* One bad entry, at each of several places in a table of each level: everything that was taken is given back. */
static void test_bad_entry_undo(void)
{
    const u64 bad[] = { entry(FRAMES, P), entry(HOLE, P), entry(1ull << 38, P), entry(DEAD, P), entry(L4_B, P | RW), entry(DATA_A, P | RW | PTE_PSE) };
    const unsigned at[] = { 0, 3, 5, 7, 255, 272, 511 };

    for (unsigned level = 1; level <= 4; level++)
        for (unsigned b = 0; b < ARRAY_SIZE(bad); b++)
            for (unsigned i = 0; i < ARRAY_SIZE(at); i++) {
                u64 m = L1_A + 2 * (u64)(level - 1);

                fresh();
                build();
                pins(L4_B, FT_L4);
                for (unsigned k = 6; k < 512; k += 50)            /* something to undo */
                    table(L1_A)[k] = entry(DATA_B, P | (k & 4 ? RW : 0));
                table(m)[at[i]] = bad[b];
                CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(L4_A), FT_L4), -EINVAL);
                for (u64 f = DATA_A; f <= L4_A; f++)
                    CU_ASSERT_EQUAL(fr(f)->fw & (FW_T | FW_U | FW_BUSY | FW_VALID | FW_PIN), 0);
                CU_ASSERT_TRUE(sound());
                /* Repaired, it can be pinned. */
                table(m)[at[i]] = 0;
                CU_ASSERT_TRUE(pins(L4_A, FT_L4));
                CU_ASSERT_TRUE(sound());
                host_stop();
            }
}

static void test_pin_refused(void)
{
    fresh();
    pins(L1_A, FT_L1);
    pt_set(&host_dom, fr(L1_A), 0, 1, entry(DATA_A, P | RW), PT_NORMAL);
    for (enum frame_type ty = FT_L1; ty <= FT_L4; ty++) {
        CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(DATA_A), ty), -EINVAL);      /* mapped writable */
        CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(DEAD), ty), -EINVAL);
        CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(FRAMES), ty), -EINVAL);      /* the hypervisor's */
        CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(HOLE), ty), -EINVAL);
        CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN_INVALID, ty), -EINVAL);
    }
    CU_ASSERT_EQUAL(pt_unpin(&host_dom, MFN(DATA_A)), -EINVAL);
    CU_ASSERT_EQUAL(pt_unpin(&host_dom, MFN(HOLE)), -EINVAL);
    CU_ASSERT_EQUAL(pt_unpin(&host_dom, MFN(FRAMES)), -EINVAL);
    /* A page that maps itself writable is no table. */
    table(L1_B)[8] = entry(L1_B, P | RW);
    CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(L1_B), FT_L1), -EINVAL);
    CU_ASSERT_TRUE(sound());
    host_stop();
}

/* Read-only references do not keep a frame from becoming a table, writable ones do, and the other way round. */
static void test_types_exclude(void)
{
    fresh();
    pins(L1_A, FT_L1);
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L1_A), 0, 1, entry(L1_B, P), PT_NORMAL), 0);
    CU_ASSERT_TRUE(pins(L1_B, FT_L1));
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L1_A), 0, 1, entry(L1_B, P | RW), PT_NORMAL), -EINVAL);
    CU_ASSERT_EQUAL(pt_get_type(&host_dom, MFN(L1_B), FT_SEG), -EINVAL);
    CU_ASSERT_EQUAL(pt_get_type(&host_dom, MFN(L1_B), FT_L2), -EINVAL);
    CU_ASSERT_EQUAL(pt_unpin(&host_dom, MFN(L1_B)), 0);
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L1_A), 0, 1, entry(L1_B, P | RW), PT_NORMAL), 0);
    CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(L1_B), FT_L1), -EINVAL);
    host_segdesc_ok = false;
    CU_ASSERT_EQUAL(pt_get_type(&host_dom, MFN(SEG), FT_SEG), -EINVAL);
    CU_ASSERT_EQUAL(type_of(SEG), FT_NONE);
    CU_ASSERT_TRUE(sound());
    host_stop();
}

/* XSA-273: an entry that is not present names no memory, whichever way it comes; below the limit only, and not when it is 0. */
static void test_l1tf_xsa273(void)
{
    static const u64 of_level[] = { L1_A, L2_A, L3_A, L4_A };
    u64 regs[24] = { 0 }, bad = entry(DATA_B, 0x42);
    struct pte_insn mov = { .len = 4, .op = PTE_OP_MOV, .size = 8, .reg = REGS_RBX };

    for (int level = 1; level <= 4; level++) {
        enum frame_type ty = (enum frame_type)(FT_L1 + level - 1);
        u64 t = of_level[level - 1];

        fresh();
        pt_l1tf_limit = (u64)FRAMES << PAGE_SHIFT;
        CU_ASSERT_TRUE(pins(t, ty));
        CU_ASSERT_EQUAL(pt_set(&host_dom, fr(t), 9, level, bad, PT_NORMAL), -XEN_EINVAL);
        CU_ASSERT_EQUAL(pt_set(&host_dom, fr(t), 9, level, bad, PT_PRESERVE_AD), -XEN_EINVAL);
        CU_ASSERT_EQUAL(table(t)[9], 0);
        CU_ASSERT_EQUAL(pt_set(&host_dom, fr(t), 9, level, entry(FRAMES, 0x42), PT_NORMAL), 0);
        CU_ASSERT_EQUAL(pt_set(&host_dom, fr(t), 9, level, 0x42, PT_NORMAL), 0);
        if (level == 1) {
            regs[REGS_RBX / 8] = bad;
            CU_ASSERT_EQUAL(pt_emulate(&host_dom, fr(t), 72, &mov, regs), -XEN_EINVAL);
        }
        CU_ASSERT_EQUAL(pt_unpin(&host_dom, MFN(t)), 0);
        for (unsigned at = 0; at < 512; at += 511) {
            table(t)[at] = bad;
            CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(t), ty), -XEN_EINVAL);
            table(t)[at] = 0;
        }
        CU_ASSERT_TRUE(sound());
        pt_l1tf_limit = 0;
        table(t)[0] = bad;
        CU_ASSERT_TRUE(pins(t, ty));
    }
}

/* XSA-252: giving a pinned table back takes ALLOC only; it stays a table until it is unpinned, and dies then. */
static void test_release_pinned_xsa252(void)
{
    fresh();
    build();
    pins(L4_A, FT_L4);
    CU_ASSERT_EQUAL(frame_release(fr(L4_A)), 0);
    CU_ASSERT_EQUAL(frame_release(fr(DATA_A)), 0);
    CU_ASSERT_EQUAL(type_of(L4_A), FT_L4);
    CU_ASSERT_EQUAL(t_of(L4_A), 1);
    CU_ASSERT_TRUE(sound());
    CU_ASSERT_EQUAL(host_dead, 0);
    CU_ASSERT_EQUAL(pt_unpin(&host_dom, MFN(L4_A)), 0);
    CU_ASSERT_EQUAL(host_dead, 2);
    CU_ASSERT_EQUAL(fr(L4_A)->fw & (FW_DEAD | FW_REFS), FW_DEAD);
    CU_ASSERT_EQUAL(fr(DATA_A)->fw & (FW_DEAD | FW_REFS), FW_DEAD);
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L1_A), 0, 1, entry(DATA_A, P), PT_NORMAL), -EINVAL);
    CU_ASSERT_TRUE(sound());
    host_stop();
}

/* The counts at their limits, reached through entries. */
static void test_limits(void)
{
    fresh();
    pins(L1_A, FT_L1);
    pt_set(&host_dom, fr(L1_A), 0, 1, entry(DATA_A, P | RW), PT_NORMAL);
    fr(DATA_A)->fw += (FW_T_LIMIT - 1) * FW_T_ONE;
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L1_A), 1, 1, entry(DATA_A, P | RW), PT_NORMAL), -EINVAL);
    CU_ASSERT_EQUAL(table(L1_A)[1], 0);
    CU_ASSERT_EQUAL(t_of(DATA_A), FW_T_LIMIT);
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L1_A), 0, 1, 0, PT_NORMAL), 0);
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L1_A), 1, 1, entry(DATA_A, P | RW), PT_NORMAL), 0);
    fr(DATA_A)->fw -= (FW_T_LIMIT - 1) * FW_T_ONE;
    fr(DATA_B)->fw |= FW_U;
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L1_A), 2, 1, entry(DATA_B, P), PT_NORMAL), 0);
    CU_ASSERT_EQUAL(pt_set(&host_dom, fr(L1_A), 2, 1, 0, PT_NORMAL), 0);
    CU_ASSERT_EQUAL(u_of(DATA_B), FW_U);                          /* stuck */
    CU_ASSERT_EQUAL(frame_release(fr(DATA_B)), 0);
    CU_ASSERT_TRUE(sound());
    host_stop();
}

/* Out of memory for a table's meta: refused, and nothing is left behind. */
static void test_no_memory(void)
{
    for (u64 tables = 0; tables < 4; tables++) {
        struct pt_meta *m[2 * PAGE_SIZE / sizeof(struct pt_meta)];
        unsigned n = 0;

        fresh();
        build();
        host_heap_left = 1;                                       /* one page of metas, of which @tables are left */
        while (n < ARRAY_SIZE(m) && (m[n] = pt_meta_alloc()))
            n++;
        for (u64 i = 0; i < tables; i++)
            pt_meta_retire(m[--n]);
        for (unsigned i = 0; i < 4; i++)
            rcu_quiescent();
        CU_ASSERT_EQUAL(pt_pin(&host_dom, MFN(L4_A), FT_L4), -XEN_ENOMEM);
        for (u64 f = DATA_A; f <= L4_B; f++)
            CU_ASSERT_EQUAL(fr(f)->fw & (FW_T | FW_U | FW_BUSY | FW_VALID | FW_PIN), 0);
        CU_ASSERT_TRUE(sound());
        while (n > 0)
            pt_meta_retire(m[--n]);
        for (unsigned i = 0; i < 40; i++)
            rcu_quiescent();
        CU_ASSERT_TRUE(pins(L4_A, FT_L4));
        CU_ASSERT_TRUE(sound());
        host_stop();
    }
}

static void test_back_pointer(void)
{
    fresh();
    pins(L2_A, FT_L2);
    pins(L1_A, FT_L1);
    struct pt_meta *m = pt_meta(fr(L1_A));
    CU_ASSERT_EQUAL(m->back, BACK_NONE);
    pt_set(&host_dom, fr(L2_A), 5, 2, entry(L1_A, P), PT_NORMAL);
    CU_ASSERT_EQUAL(m->back, (u64)L2_A << PAGE_SHIFT | 40);
    pt_set(&host_dom, fr(L2_A), 5, 2, 0, PT_NORMAL);
    CU_ASSERT_EQUAL(m->back, BACK_NONE);
    pt_set(&host_dom, fr(L2_A), 5, 2, entry(L1_A, P), PT_NORMAL);
    pt_set(&host_dom, fr(L2_A), 6, 2, entry(L1_A, P), PT_NORMAL);
    CU_ASSERT_EQUAL(m->back, BACK_MANY);
    pt_set(&host_dom, fr(L2_A), 6, 2, 0, PT_NORMAL);
    CU_ASSERT_EQUAL(m->back, BACK_MANY);                          /* sticky */
    CU_ASSERT_TRUE(sound());
    host_stop();
}

static int start(void) { return 0; }

int main(void)
{
    CU_pSuite suite;
    unsigned failures;

    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    suite = CU_add_suite("pt", start, NULL);
    CU_ADD_TEST(suite, test_l1_matrix_xsa148_xsa182);
    CU_ADD_TEST(suite, test_l2_matrix_xsa148_xsa240);
    CU_ADD_TEST(suite, test_l3_matrix);
    CU_ADD_TEST(suite, test_l4_matrix);
    CU_ADD_TEST(suite, test_preserve_ad);
    CU_ADD_TEST(suite, test_hv_slots);
    CU_ADD_TEST(suite, test_set_stale);
    CU_ADD_TEST(suite, test_emulate);
    CU_ADD_TEST(suite, test_pin_tree);
    CU_ADD_TEST(suite, test_bad_entry_undo);
    CU_ADD_TEST(suite, test_pin_refused);
    CU_ADD_TEST(suite, test_types_exclude);
    CU_ADD_TEST(suite, test_release_pinned_xsa252);
    CU_ADD_TEST(suite, test_l1tf_xsa273);
    CU_ADD_TEST(suite, test_limits);
    CU_ADD_TEST(suite, test_no_memory);
    CU_ADD_TEST(suite, test_back_pointer);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures ? 1 : 0;
}
