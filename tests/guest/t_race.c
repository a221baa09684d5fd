/* SPDX-License-Identifier: MIT */
/* Two vCPUs on the same frames and tables.  Whatever the order, every call answers 0 or a refusal, nothing changes that
 * must not, and in the end every frame is free of types and references again. */
#include "guest.h"

#define RWE (P | RW | US | AC | DI)
#define ROE (P | US | AC | DI)
#define HERE (SCRATCH + 0x400000)               /* a table of its own, so that both vCPUs' scratch areas differ */

static u64 ma(const void *p, unsigned i) { return mfn_of(p) << 12 | i * 8; }

/* Both sides begin together. */
static volatile u32 arrived, stop, wins[2];
static u64 begun;
#define LEAST 20
#define SOFT 4000000000ul
#define HARD 60000000000ul

static void together(void)
{
    __atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST);
    while (arrived < 2)
        pause_();
}

static void race(void (*other)(void *), void (*own)(void *), void *arg)
{
    arrived = stop = wins[0] = wins[1] = 0;
    begun = now_ns();
    vcpu1_run(other, arg);
    own(arg);
    stop = 1;
    vcpu1_wait();
    say("  won %u and %u\n", wins[0], wins[1]);
}

/* A race that one side never won was none. */
static void enough(u32 least)
{
    if (wins[0] <= least || wins[1] <= least)
        FAIL("vCPU 0 came through %u times, vCPU 1 %u times; expected more than %u", wins[0], wins[1], least);
}

/* @rounds of them, or as many as a slow machine does in SOFT; on to HARD if that was no race yet. */
static bool more(u32 i, u32 rounds)
{
    u64 t = now_ns() - begun;

    return (i < rounds && t < SOFT) || ((wins[0] <= LEAST || wins[1] <= LEAST) && t < HARD);
}

static bool ok_or(long rc, long err)
{
    if (rc && rc != err)
        FAIL("a call answered %ld", rc);
    return rc == 0;
}

static u32 seed[2] = { 12345, 67890 };
static u32 random(void)
{
    u32 *s = &seed[this_cpu()->id];

    *s = *s * 1664525 + 1013904223;
    return *s >> 8;
}

/* Gives the other side its turn, for a while that is never the same. */
static void leave_alone(void)
{
    for (u32 n = random() % 3000; n; n--)
        __asm__ volatile("" ::: "memory");
}

/* Mapping against pinning ------------------------------------------------------------------------------------- */

static u64 *frame, *table, *table2, *tree[4];

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

TEST(race_map_pin_l1) { race_map_pin(1); }
TEST(race_map_pin_l4) { race_map_pin(4); }

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

TEST(race_map_gdt)
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
            m[k] = (struct multicall_entry){ .op = __HYPERVISOR_mmuext_op, .args = { (u64)&op[id][k], 1, 0, DOMID_SELF } };
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

/* Entries of one table ----------------------------------------------------------------------------------------- */

#define TOKENS 8
#define ENTRIES 6                               /* few, so that the two meet often */
static void *token[TOKENS];
static u64 held[2];

static u64 token_pte(unsigned i) { return pte(mfn_of(token[i]), RWE); }

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
    for (unsigned i = 0; i < TOKENS; i++)
        token[i] = page_alloc();
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
    for (unsigned i = 0; i < TOKENS; i++) {
        EQ(usable(token[i]), true);
        page_free(token[i]);
    }
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

TEST(race_unhook_write)
{
    table = table_page();
    for (unsigned i = 0; i < TOKENS; i++)
        token[i] = page_alloc();
    race(write_entries, hook_unhook, NULL);
    enough(LEAST);
    EQ(make_rw(table), 0);
    for (unsigned i = 0; i < TOKENS; i++) {
        EQ(usable(token[i]), true);
        page_free(token[i]);
    }
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

TEST(race_tree_write)
{
    for (unsigned i = 0; i < 4; i++)
        tree[i] = page_alloc();
    for (unsigned i = 1; i < 4; i++)
        tree[i][0] = pte(mfn_of(tree[i - 1]), RWE);
    for (unsigned i = 0; i < 4; i++)
        EQ(make_ro(tree[i]), 0);
    table = tree[0];
    for (unsigned i = 0; i < TOKENS; i++)
        token[i] = page_alloc();
    race(write_entries, pin_tree, NULL);
    enough(LEAST);
    for (unsigned i = 0; i < 4; i++)
        EQ(make_rw(tree[i]), 0);
    for (unsigned i = 0; i < TOKENS; i++) {
        EQ(usable(token[i]), true);
        page_free(token[i]);
    }
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

TEST(race_roots)
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
    for (unsigned i = 0; i < TOKENS; i++)
        token[i] = page_alloc();
    race(map_storm, map_storm, NULL);
    unhook(HERE, 2);
    for (unsigned i = 0; i < TOKENS; i++) {
        EQ(usable(token[i]), true);
        page_free(token[i]);
    }
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

TEST(race_hook_hook)
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
