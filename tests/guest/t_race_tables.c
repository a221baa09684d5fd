/* SPDX-License-Identifier: MIT */
/* Two vCPUs on the entries of the same tables, at all levels, and on roots. */
#include "race.h"

#define ENTRIES 6                               /* few, so that the two meet often */
static u64 *frame, *table, *table2, *tree[4];
static u64 held[NR_VCPUS];

/* Each vCPU holds one value and exchanges it with entries of the table: none may be lost or doubled. */
static void exchange(void *arg)
{
    u32 id = this_cpu()->id;
    u64 v = held[id];
    bool hypercalls = arg != NULL;

    together();
    for (u32 i = 0; more(i, race_rounds * 10); i++) {
        unsigned k = random() % ENTRIES;

        __asm__ volatile("xchg %0, (%1)" : "+r"(v) : "r"(&table[k]) : "memory");
        wins[id]++;
        if (hypercalls && i % 64 == 0)
            ok_or(mmu_update(ma(table, 100 + id), i & 64 ? token_pte(i % TOKENS) : 0), 0);
    }
    held[id] = v;
}

static void race_exchange(bool twice, bool hypercalls)
{
    u8 seen[TOKENS] = { 0 };

    table = table_page();
    table2 = table_page();
    hook(HERE, 2, table2);
    tokens_make();
    REQUIRE(EQ(pin(1, mfn_of(table)), 0));
    if (twice)
        REQUIRE(EQ(map_va(HERE, pte(mfn_of(table), ROE)), 0));
    for (unsigned i = 0; i < ENTRIES; i++)
        EQ(mmu_update(ma(table, i), token_pte(i)), 0);
    held[0] = token_pte(TOKENS - 2);
    held[1] = token_pte(TOKENS - 1);
    race(exchange, exchange, hypercalls ? &held : NULL);
    EQ(mmu_update(ma(table, 100), 0), 0);
    EQ(mmu_update(ma(table, 101), 0), 0);
    for (unsigned k = 0; k < ENTRIES + 2; k++) {
        u64 v = k < ENTRIES ? table[k] : held[k - ENTRIES];

        for (unsigned i = 0; v && i < TOKENS; i++) {
            if ((v | AC | DI) == token_pte(i)) {
                seen[i]++;
                v = 0;
            }
        }
        EQ(v, 0);
    }
    for (unsigned i = 0; i < TOKENS; i++)
        EQ(seen[i], 1);
    EQ(unpin(mfn_of(table)), 0);
    unhook(HERE, 2);
    tokens_drop();
    EQ(usable(table), true);
    page_free(table);
    page_free(table2);
}

TEST(race_xchg) { race_exchange(false, false); }
TEST(race_xchg_twice_mapped) { race_exchange(true, false); }
TEST(race_xchg_hypercalls) { race_exchange(false, true); }

/* Hooking and unhooking a table under the writes to it ----------------------------------------------------------- */

/* Writes to whatever the page is at the moment: a table (emulated, or by hypercall), or a plain page that is mapped
 * read-only (a fault, or a plain write by hypercall). */
static void write_entries(void *arg)
{
    u32 id = this_cpu()->id;

    (void)arg;
    together();
    while (!stop) {
        u32 r = random();
        u64 v = r & 1 ? token_pte(r >> 1 & (TOKENS - 1)) : 0;
        unsigned k = r >> 5 & 15;

        if (r >> 4 & 1)
            ok_or(mmu_update(ma(table, k), v), -EINVAL);
        else
            TRY("xchg %[v], (%[p])", A(, [v] "+r"(v)), A([p] "r"(&table[k])));
        wins[id]++;
    }
}

static void hook_unhook(void *arg)
{
    u64 l2 = pte_ma(HERE, 2);

    (void)arg;
    together();
    for (u32 i = 0; more(i, race_rounds); i++) {
        if (!ok_or(mmu_update(l2, pte(mfn_of(table), RWE)), -EINVAL))
            continue;                           /* the other side had it as a plain page just then */
        wins[0]++;
        if (i & 1)
            ok_or(mmu_update(ma(table, i & 15), 0), 0);
        if (i % 64 == 0)
            try_read((void *)(HERE + (i & 15) * PAGE), NULL);
        ok_or(mmu_update(l2, 0), 0);
    }
}

TEST(xsa242_update_races_unhook)
{
    table = table_page();
    tokens_make();
    race(write_entries, hook_unhook, NULL);
    enough(LEAST);
    EQ(make_rw(table), 0);
    tokens_drop();
    EQ(usable(table), true);
    page_free(table);
}

/* A whole tree is pinned and unpinned while its lowest table is written to. */
static void pin_tree(void *arg)
{
    (void)arg;
    together();
    for (u32 i = 0; more(i, race_rounds / 4); i++) {
        if (!ok_or(pin(4, mfn_of(tree[3])), -EINVAL))
            continue;
        wins[0]++;
        ok_or(mmu_update(ma(tree[1], 1), i & 1 ? pte(mfn_of(table), RWE) : 0), 0);
        ok_or(unpin(mfn_of(tree[3])), 0);
    }
}

TEST(xsa310_tree_pin_races_update)
{
    for (unsigned i = 0; i < 4; i++)
        tree[i] = page_alloc();
    for (unsigned i = 1; i < 4; i++)
        tree[i][0] = pte(mfn_of(tree[i - 1]), RWE);
    for (unsigned i = 0; i < 4; i++)
        EQ(make_ro(tree[i]), 0);
    table = tree[0];
    tokens_make();
    race(write_entries, pin_tree, NULL);
    enough(LEAST);
    for (unsigned i = 0; i < 4; i++)
        EQ(make_rw(tree[i]), 0);
    tokens_drop();
    for (unsigned i = 0; i < 4; i++) {
        EQ(usable(tree[i]), true);
        page_free(tree[i]);
    }
}

/* Roots: one vCPU runs on one of two, now this, now that; the other pins and unpins them. */
static void switch_roots(void *arg)
{
    u64 home = mfn_of((void *)si->pt_base);

    (void)arg;
    together();
    while (!stop) {
        wins[1] += ok_or(mmuext(MMUEXT_NEW_BASEPTR, mfn_of(tree[random() & 1]), 0), -EINVAL);
        ok_or(mmuext(MMUEXT_NEW_USER_BASEPTR, random() & 1 ? mfn_of(tree[random() & 1]) : 0, 0), -EINVAL);
    }
    ok_or(mmuext(MMUEXT_NEW_BASEPTR, home, 0), 0);
    ok_or(mmuext(MMUEXT_NEW_USER_BASEPTR, 0, 0), 0);
}

static void pin_roots(void *arg)
{
    (void)arg;
    together();
    for (u32 i = 0; more(i, race_rounds / 4); i++) {
        u64 *t = tree[i & 1];

        if (ok_or(pin(4, mfn_of(t)), -EINVAL)) {
            wins[0]++;
            ok_or(unpin(mfn_of(t)), 0);
        }
        if (ok_or(make_rw(t), -EINVAL))
            ok_or(make_ro(t), 0);
        ok_or(mmu_update(ma(tree[0], 255), 0), -EINVAL);
    }
}

TEST(xsa494_roots_race_pin)
{
    for (unsigned i = 0; i < 2; i++) {
        tree[i] = page_alloc();
        memcpy(tree[i], (void *)si->pt_base, PAGE);
        EQ(make_ro(tree[i]), 0);
    }
    race(switch_roots, pin_roots, NULL);
    enough(LEAST);
    for (unsigned i = 0; i < 2; i++) {
        EQ(usable(tree[i]), true);
        page_free(tree[i]);
    }
}

/* Mappings of the same address from both sides, with flushes of both kinds. */
static void map_storm(void *arg)
{
    u32 id = this_cpu()->id;

    (void)arg;
    together();
    for (u32 i = 0; more(i, race_rounds / 4); i++) {
        u32 r = random();
        u64 va = HERE + (r & 3) * PAGE, mask = 1ul << (r >> 10 & 1);
        u64 flags[] = { UVMF_NONE, UVMF_INVLPG | UVMF_ALL, UVMF_TLB_FLUSH | UVMF_ALL, UVMF_INVLPG | (u64)&mask };

        wins[id]++;
        ok_or(HC(update_va_mapping, va, r & 4 ? token_pte(r >> 3 & (TOKENS - 1)) : 0, flags[r >> 6 & 3]), 0);
        if (r & 0x100)
            try_write((void *)(va + 8 * id), i);
        if (r & 0x200)
            ok_or(mmuext(MMUEXT_TLB_FLUSH_MULTI, 0, (u64)&mask), 0);
    }
}

TEST(race_map_map)
{
    table = table_page();
    hook(HERE, 2, table);
    tokens_make();
    race(map_storm, map_storm, NULL);
    unhook(HERE, 2);
    tokens_drop();
    EQ(usable(table), true);
    page_free(table);
}

/* Read-only and writable mappings of one frame against its hooking as a table in two places. */
static void hook_two(void *arg)
{
    u32 id = this_cpu()->id;
    u64 l2 = pte_ma(HERE + (id + 1) * 0x200000, 2);

    (void)arg;
    together();
    for (u32 i = 0; more(i, race_rounds); i++) {
        if (ok_or(mmu_update(l2, pte(mfn_of(frame), RWE)), -EINVAL)) {
            wins[id]++;
            ok_or(mmu_update(ma(frame, id), i & 1 ? pte(mfn_of(token[0]), RWE) : 0), 0);
            ok_or(mmu_update(l2, 0), 0);
        }
        if (ok_or(make_rw(frame), -EINVAL))
            ok_or(make_ro(frame), 0);
    }
}

TEST(xsa299_hook_races_hook)
{
    frame = table_page();
    token[0] = page_alloc();
    race(hook_two, hook_two, NULL);
    enough(LEAST);
    EQ(make_rw(frame), 0);
    EQ(usable(frame), true);
    EQ(usable(token[0]), true);
    page_free(frame);
    page_free(token[0]);
}

/* Write-protecting an entry by a plain store against its clearing: the read-only reference is there before the entry
 * says so, or the other side drops one that nobody took. */
static void protect(void *arg)
{
    (void)arg;
    together();
    while (!stop) {
        for (unsigned k = 0; k < ENTRIES; k++)
            TRY("lock andb $0xfd, (%[p])", , A([p] "r"(&table[k])));
        wins[1]++;
    }
}

static void set_and_clear(void *arg)
{
    (void)arg;
    together();
    for (u32 i = 0; more(i, race_rounds); i++) {
        unsigned k = i % ENTRIES;
        u64 v = 0;

        ok_or(mmu_update(ma(table, k), token_pte(0)), 0);
        if (i & 1)
            __asm__ volatile("xchg %0, (%1)" : "+r"(v) : "r"(&table[k]) : "memory");
        else
            ok_or(mmu_update(ma(table, k), 0), 0);
        wins[0]++;
    }
}

TEST(race_wrprotect_clear)
{
    table = table_page();
    tokens_make();
    REQUIRE(EQ(pin(1, mfn_of(table)), 0));
    race(protect, set_and_clear, NULL);
    enough(LEAST);
    for (unsigned k = 0; k < ENTRIES; k++)
        EQ(mmu_update(ma(table, k), 0), 0);
    EQ(unpin(mfn_of(table)), 0);
    tokens_drop();
    EQ(usable(table), true);
    page_free(table);
}
