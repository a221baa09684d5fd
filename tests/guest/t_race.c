/* SPDX-License-Identifier: MIT */
/* Two vCPUs on the same frames and tables.  Whatever the order, every call answers 0 or a refusal, nothing changes that
 * must not, and in the end every frame is free of types and references again. */
#include "race.h"

/* Mapping against pinning ------------------------------------------------------------------------------------- */

static u64 *frame, *table, *tree[2];

/* Maps the frame writable, writes through the mapping, unmaps it without a flush, and writes again: with a translation
 * that is left over the write may still be done, but not when the frame has become a table. */
static void map_write_unmap(void *arg)
{
    u64 entry = ma(table, 7), va = HERE + 7 * PAGE;

    (void)arg;
    together();
    for (u32 i = 1; more(wins[0], race_rounds); i++) {
        if (!ok_or(mmu_update(entry, pte(mfn_of(frame), RWE)), -EINVAL))
            continue;
        wins[0]++;
        if (try_write((void *)(va + 24), (u64)i << 1))
            FAIL("a mapping that was granted does not permit the write");
        ok_or(mmu_update(entry, 0), 0);
        for (u64 k = 0; k < 20000; k++)
            if (try_write((void *)(va + 24), (u64)i << 1 | k << 28))
                break;
    }
}

static void pin_look_unpin(void *arg)
{
    int level = (int)(u64)arg;

    together();
    while (!stop) {
        u64 a;

        if (!ok_or(pin(level, mfn_of(frame)), -EINVAL))
            continue;
        wins[1]++;
        a = load(&frame[3]);
        for (unsigned k = 0; k < 100; k++)
            if (load(&frame[3]) != a) {
                FAIL("an L%d changed under its pin, from %#lx to %#lx", level, a, load(&frame[3]));
                break;
            }
        ok_or(unpin(mfn_of(frame)), 0);
        leave_alone();
    }
}

static void race_map_pin(int level)
{
    frame = table_page();
    table = table_page();
    hook(HERE, 2, table);
    race(pin_look_unpin, map_write_unmap, (void *)(u64)level);
    enough(LEAST);
    unhook(HERE, 2);
    EQ(usable(frame), true);
    EQ(usable(table), true);
    page_free(frame);
    page_free(table);
}

TEST(xsa401_map_races_pin_l1) { race_map_pin(1); }
TEST(xsa401_map_races_pin_l4) { race_map_pin(4); }

/* The same against use as a descriptor table. */
static void gdt_look_drop(void *arg)
{
    static u64 list[14];

    (void)arg;
    list[0] = mfn_of(frame);
    together();
    while (!stop) {
        u64 a;

        if (!ok_or(HC(set_gdt, list, 16), -EINVAL))
            continue;
        wins[1]++;
        a = load(&frame[3]);
        for (unsigned k = 0; k < 100; k++)
            if (load(&frame[3]) != a) {
                FAIL("a descriptor table changed in use");
                break;
            }
        ok_or(HC(set_gdt, list, 0), 0);
        leave_alone();
    }
}

TEST(xsa401_map_races_gdt)
{
    frame = table_page();
    table = table_page();
    hook(HERE, 2, table);
    race(gdt_look_drop, map_write_unmap, NULL);
    enough(LEAST);
    unhook(HERE, 2);
    EQ(usable(frame), true);
    page_free(frame);
    page_free(table);
}

/* Both pin and unpin the same page, as different levels, directly and in batches in opposite order. */
static void pin_storm(void *arg)
{
    u32 id = this_cpu()->id;

    (void)arg;
    together();
    for (u32 i = 0; more(i, race_rounds); i++) {
        if (ok_or(pin(1 + (int)((i + id) & 3), mfn_of(frame)), -EINVAL)) {
            wins[id]++;
            ok_or(unpin(mfn_of(frame)), 0);
        }
    }
}

TEST(race_pin_pin)
{
    frame = table_page();
    race(pin_storm, pin_storm, NULL);
    enough(LEAST);
    EQ(unpin(mfn_of(frame)), -EINVAL);
    EQ(usable(frame), true);
    page_free(frame);
}

static void batch_storm(void *arg)
{
    static struct multicall_entry e[2][4];
    static struct mmuext_op op[2][4];
    u32 id = this_cpu()->id;
    struct multicall_entry *m = e[id];

    (void)arg;
    together();
    for (u32 i = 0; more(i, race_rounds / 4); i++) {
        for (unsigned k = 0; k < 4; k++) {
            unsigned which = (k & 1) ^ id;      /* vCPU 0: A B, vCPU 1: B A */

            op[id][k] = (struct mmuext_op){ .cmd = k < 2 ? MMUEXT_PIN_L1_TABLE : MMUEXT_UNPIN_TABLE };
            op[id][k].arg1.mfn = mfn_of(tree[which]);
            m[k] = (struct multicall_entry){ .op = __HYPERVISOR_mmuext_op,
                                             .args = { (u64)&op[id][k], 1, 0, DOMID_SELF } };
        }
        ok_or(HC(multicall, m, 4), 0);
        for (unsigned k = 0; k < 4; k++)
            ok_or((long)m[k].result, -EINVAL);
        wins[id] += m[0].result == 0;
        /* From writable, so that the pins are worth collecting: whichever of the two is free. */
        for (unsigned k = 0; k < 2; k++)
            if (ok_or(make_rw(tree[k]), -EINVAL))
                make_ro(tree[k]);
    }
}

TEST(race_batches)
{
    for (unsigned k = 0; k < 2; k++)
        tree[k] = table_page();
    race(batch_storm, batch_storm, NULL);
    enough(LEAST);
    for (unsigned k = 0; k < 2; k++) {
        unpin(mfn_of(tree[k]));                 /* one of the two may have unpinned the other's, and left one */
        EQ(unpin(mfn_of(tree[k])), -EINVAL);
        make_ro(tree[k]);
        EQ(usable(tree[k]), true);
        page_free(tree[k]);
    }
}
