/* SPDX-License-Identifier: MIT */
/* Plain stores to L1 tables, which the hypervisor carries out, lets happen, or refuses.
 *
 * Each test runs on a table with one read-only mapping and on one with two: where page tables are made writable for a
 * while (pt_update=ptwr), the second kind is still emulated.  What must be refused is tried on the second kind only in
 * that mode, because a store to the first kind is not looked at before the table is taken back. */
#include "guest.h"


static u64 *t;                                  /* the table, read-only */
static void *data[2];
static u64 *hooked;                             /* the table that holds the second mapping of t */

static u64 e(unsigned i, u64 flags) { return pte(mfn_of(data[i]), flags); }

static void open_table(bool twice)
{
    t = table_page();
    data[0] = page_alloc();
    data[1] = page_alloc();
    hooked = table_page();
    hook(SCRATCH, 2, hooked);
    REQUIRE(EQ(pin(1, mfn_of(t)), 0));
    if (twice)
        REQUIRE(EQ(map_va(SCRATCH + PAGE, pte(mfn_of(t), ROE)), 0));
}

static void close_table(void)
{
    EQ(map_va(SCRATCH + PAGE, 0), 0);
    EQ(unpin(mfn_of(t)), 0);
    unhook(SCRATCH, 2);
    for (unsigned i = 0; i < 2; i++) {
        EQ(usable(data[i]), true);
        page_free(data[i]);
    }
    EQ(usable(t), true);
    page_free(t);
    page_free(hooked);
}

/* Has @p a writable mapping somewhere in t?  (Its own must be read-only for that question.) */
static bool writable(void *p)
{
    bool yes;

    EQ(make_ro(p), 0);
    yes = pin(1, mfn_of(p)) != 0;
    if (!yes)
        EQ(unpin(mfn_of(p)), 0);
    EQ(make_rw(p), 0);
    return yes;
}

#define BOTH(name, body) \
    static void body(void); \
    TEST(name) { open_table(false); body(); close_table(); } \
    TEST(name##_twice_mapped) { open_table(true); body(); close_table(); }

BOTH(emul_mov, mov)
static void mov(void)
{
    *(volatile u64 *)&t[3] = e(0, RWE);
    EQ(t[3], e(0, RWE));
    EQ(writable(data[0]), true);
    *(volatile u64 *)&t[3] = e(1, RWE);
    EQ(writable(data[0]), false);
    EQ(writable(data[1]), true);
    *(volatile u64 *)&t[3] = e(1, ROE);
    EQ(writable(data[1]), false);
    *(volatile u64 *)&t[3] = 0;
    EQ(t[3], 0);
    /* Not present: anything goes, and nothing is referenced. */
    *(volatile u64 *)&t[3] = 0xfffffffffffffffe;
    EQ(t[3], 0xfffffffffffffffe);
    *(volatile u64 *)&t[3] = e(0, RW | US);
    EQ(writable(data[0]), false);
    /* Narrow stores merge. */
    *(volatile u64 *)&t[4] = e(0, RWE);
    *(volatile u8 *)&t[4] = (u8)ROE;
    EQ(t[4], e(0, ROE));
    EQ(writable(data[0]), false);
    *(volatile u8 *)&t[4] = (u8)RWE;
    EQ(writable(data[0]), true);
    *(volatile u32 *)&t[4] = 0;
    EQ(t[4], e(0, 0) & ~0xfffffffful);
    EQ(writable(data[0]), false);
    *(volatile u16 *)((char *)&t[5] + 6) = 0x8000;
    EQ(t[5], 1ul << 63);
    __asm__ volatile("movl $0x20, (%0)" :: "r"(&t[6]) : "memory");
    EQ(t[6], 0x20);
    __asm__ volatile("movq $-2, (%0)" :: "r"(&t[6]) : "memory");
    EQ(t[6], ~1ul);
    __asm__ volatile("movb %%ah, 1(%0)" :: "r"(&t[6]), "a"(0x5500) : "memory");
    EQ(t[6], 0xffffffffffff55fe);
}

BOTH(emul_xchg, xchg)
static void xchg(void)
{
    u64 v = e(0, RWE);

    __asm__ volatile("xchg %0, (%1)" : "+r"(v) : "r"(&t[0]) : "memory");
    EQ(v, 0);
    EQ(t[0], e(0, RWE));
    v = e(1, RWE);
    __asm__ volatile("xchg %0, (%1)" : "+r"(v) : "r"(&t[0]) : "memory");
    EQ(v, e(0, RWE));
    EQ(writable(data[0]), false);
    EQ(writable(data[1]), true);
    v = 0;
    __asm__ volatile("mov %0, %%r13; xchg %%r13, (%1); mov %%r13, %0" : "+r"(v) : "r"(&t[0]) : "memory", "r13");
    EQ(v, e(1, RWE));
    EQ(t[0], 0);
    EQ(writable(data[1]), false);
    /* 4 bytes: the register's upper half is cleared. */
    v = 0xffffffff00000010;
    __asm__ volatile("xchg %k0, (%1)" : "+r"(v) : "r"(&t[1]) : "memory");
    EQ(v, 0);
    EQ(t[1], 0x10);
    /* The hardware's accessed and dirty bits are in the old value. */
    *(volatile u64 *)&t[7] = e(0, P | RW | US);
    hook(SCRATCH + 0x200000, 2, t);
    *(volatile u64 *)(SCRATCH + 0x200000 + 7 * PAGE) = 99;
    EQ(*(u64 *)data[0], 99);
    v = 0;
    __asm__ volatile("xchg %0, (%1)" : "+r"(v) : "r"(&t[7]) : "memory");
    EQ(v, e(0, RWE));
    mmuext(MMUEXT_TLB_FLUSH_LOCAL, 0, 0);
    CHECK(try_read((void *)(SCRATCH + 0x200000 + 7 * PAGE), NULL));
    unhook(SCRATCH + 0x200000, 2);
}

BOTH(emul_lock_and, lock_and)
static void lock_and(void)
{
    u64 fl;

    *(volatile u64 *)&t[9] = e(0, RWE);
    EQ(writable(data[0]), true);
    __asm__ volatile("lock andb $0xfd, (%1)\n pushfq\n pop %0" : "=r"(fl) : "r"(&t[9]) : "memory", "cc");
    EQ(t[9], e(0, ROE));
    EQ(fl & 0x8c1, 0);                          /* OF, SF, ZF, CF: 0x65 is neither zero nor negative */
    EQ(fl & 4, 4);                              /* PF: four bits */
    EQ(writable(data[0]), false);
    __asm__ volatile("lock orb $2, (%0)" :: "r"(&t[9]) : "memory", "cc");
    EQ(writable(data[0]), true);
    __asm__ volatile("lock andq %1, (%0)" :: "r"(&t[9]), "r"(~RW) : "memory", "cc");
    EQ(t[9], e(0, ROE));
    EQ(writable(data[0]), false);
    __asm__ volatile("lock andb $0, (%1)\n pushfq\n pop %0" : "=r"(fl) : "r"(&t[9]) : "memory", "cc");
    EQ(t[9], e(0, 0));
    EQ(fl & 0x8c1, 0x40);
    __asm__ volatile("orb $0x80, 7(%1)\n pushfq\n pop %0" : "=r"(fl) : "r"(&t[9]) : "memory", "cc");
    EQ(t[9], e(0, 0) | NX);
    EQ(fl & 0x8c1, 0x80);
}

BOTH(emul_bits, bits)
static void bits(void)
{
    u8 c;

    *(volatile u64 *)&t[11] = e(0, RWE);
    __asm__ volatile("lock btrq $5, (%1)\n setc %0" : "=r"(c) : "r"(&t[11]) : "memory", "cc");
    EQ(c, 1);
    EQ(t[11], e(0, RWE & ~AC));
    __asm__ volatile("lock btrq $5, (%1)\n setc %0" : "=r"(c) : "r"(&t[11]) : "memory", "cc");
    EQ(c, 0);
    EQ(t[11], e(0, RWE & ~AC));
    __asm__ volatile("lock btsq $5, (%1)\n setc %0" : "=r"(c) : "r"(&t[11]) : "memory", "cc");
    EQ(c, 0);
    EQ(t[11], e(0, RWE));
    __asm__ volatile("lock btrl $1, (%1)\n setc %0" : "=r"(c) : "r"(&t[11]) : "memory", "cc");
    EQ(c, 1);
    EQ(t[11], e(0, ROE));
    EQ(writable(data[0]), false);
    __asm__ volatile("lock btcq $0, (%1)\n setc %0" : "=r"(c) : "r"(&t[11]) : "memory", "cc");
    EQ(c, 1);
    EQ(t[11], e(0, ROE & ~P));
    __asm__ volatile("lock btrq $63, (%1)\n setc %0" : "=r"(c) : "r"(&t[11]) : "memory", "cc");
    EQ(c, 0);
    /* Bit numbers in a register reach beyond the operand: refused, or done right. */
    if (!TRY("lock btsq %[n], (%[p])", , A([p] "r"(&t[11]), [n] "r"(64ul + 5))))
        EQ(t[12], 0x20);
    else
        EQ(t[12], 0);
    EQ(t[11], e(0, ROE & ~P));
}

#define CMPXCHG(operand, new) \
    __asm__ volatile("lock cmpxchg " #operand ", (%[p])\n setz %b[c]" \
                     : "+a"(old), [c] "+r"(c) : [n] "r"(new), [p] "r"(&t[13]) : "memory", "cc")
BOTH(emul_cmpxchg, cmpxchg)
static void cmpxchg(void)
{
    u64 old = 5, c = 0;

    CMPXCHG(%[n], e(0, RWE));
    EQ(c, 0);
    EQ(old, 0);
    EQ(t[13], 0);
    EQ(writable(data[0]), false);
    CMPXCHG(%[n], e(0, RWE));
    EQ(c, 1);
    EQ(old, 0);
    EQ(t[13], e(0, RWE));
    EQ(writable(data[0]), true);
    old = e(1, RWE);
    c = 0;
    CMPXCHG(%[n], 0ul);
    EQ(c, 0);
    EQ(old, e(0, RWE));
    EQ(t[13], e(0, RWE));
    CMPXCHG(%[n], 0ul);
    EQ(c, 1);
    EQ(t[13], 0);
    EQ(writable(data[0]), false);
    /* 4 bytes. */
    old = 0x1234567800000000;
    c = 0;
    CMPXCHG(%k[n], 0x30);
    EQ(c, 1);
    EQ(t[13], 0x30);
}

BOTH(emul_arithmetic, arithmetic)
static void arithmetic(void)
{
    u64 v = 8, fl;

    *(volatile u64 *)&t[20] = 0x10;
    __asm__ volatile("lock xadd %0, (%1)" : "+r"(v) : "r"(&t[20]) : "memory", "cc");
    EQ(v, 0x10);
    EQ(t[20], 0x18);
    __asm__ volatile("lock addq $0x28, (%0)" :: "r"(&t[20]) : "memory", "cc");
    EQ(t[20], 0x40);
    __asm__ volatile("lock subq %2, (%1)\n pushfq\n pop %0" : "=r"(fl) : "r"(&t[20]), "r"(0x42ul) : "memory", "cc");
    EQ(t[20], -2ul);
    EQ(fl & 0x8c1, 0x81);                       /* negative, borrow */
    __asm__ volatile("lock xorq %1, (%0)" :: "r"(&t[20]), "r"(-2ul) : "memory", "cc");
    EQ(t[20], 0);
    /* A string: one element a fault, or all at once. */
    {
        u64 *p = &t[30], n = 5;

        __asm__ volatile("rep stosq" : "+D"(p), "+c"(n) : "a"(e(0, ROE)) : "memory");
        EQ(n, 0);
        EQ((u64)p, (u64)&t[35]);
        for (unsigned i = 30; i < 35; i++)
            EQ(t[i], e(0, ROE));
        EQ(t[35], 0);
    }
    /* Addressing: index, scale, displacement, RIP is covered by the others. */
    __asm__ volatile("movq $0x22, -8(%0,%1,8)" :: "r"(t), "r"(41ul) : "memory");
    EQ(t[40], 0x22);
    __asm__ volatile("mov %0, %%r12\n movq $0x44, 0x150(%%r12)" :: "r"(t) : "memory", "r12");
    EQ(t[42], 0x44);
}

/* Refusals ---------------------------------------------------------------------------------------------------- */

/* The store of @v to entry @i must fault and change nothing. */
static void refused(unsigned i, u64 v, const char *what)
{
    u64 before = t[i], x = v;

    if (!try_write(&t[i], v))
        FAIL("a mov of %s (%#lx) was done", what, v);
    TRAPPED(14, 3);
    EQ(this_cpu()->trap_cr2, (u64)&t[i]);
    if (!TRY("xchg %[x], (%[p])", A(, [x] "+r"(x)), A([p] "r"(&t[i]))))
        FAIL("an xchg of %s (%#lx) was done", what, v);
    EQ(x, v);
    if (!TRY("lock cmpxchg %[x], (%[p])", A(, "+a"(before)), A([p] "r"(&t[i]), [x] "r"(v))))
        FAIL("a cmpxchg of %s (%#lx) was done", what, v);
    EQ(t[i], before);
}

TEST(emul_bad_values)
{
    open_table(mode_ptwr);
    refused(50, pte(foreign_mfn(0), ROE), "a foreign frame");
    refused(50, pte(foreign_mfn(0), RWE), "a foreign frame, writable");
    refused(50, pte(mfn_of(t), RWE), "the table itself, writable");
    refused(50, pte(mfn_of((void *)si->pt_base), RWE), "the L4, writable");
    refused(50, pte(mfn_of(hooked), RWE), "a table, writable");
    refused(50, pte(0xfee00, RWE), "the LAPIC");
    refused(50, 1ul << 51 | RWE, "a reserved bit");
    refused(50, e(0, RWE | PCD), "uncached RAM");
    /* From a good entry to bad ones, also by parts. */
    *(volatile u64 *)&t[51] = pte(mfn_of(hooked), ROE);
    refused(51, pte(mfn_of(hooked), RWE), "a table, writable");
    CHECK(TRY("lock orb $2, (%[p])", , A([p] "r"(&t[51]))));
    CHECK(TRY("lock btsq $1, (%[p])", , A([p] "r"(&t[51]))));
    CHECK(TRY("movb %[v], (%[p])", , A([p] "r"(&t[51]), [v] "q"((u8)RWE))));
    CHECK(TRY("lock addb $2, (%[p])", , A([p] "r"(&t[51]))));
    EQ(t[51], pte(mfn_of(hooked), ROE));
    CHECK(TRY("lock btsq $50, (%[p])", , A([p] "r"(&t[51]))));
    EQ(t[51], pte(mfn_of(hooked), ROE));
    close_table();
}

TEST(emul_bad_shapes)
{
    u64 v = 0x10;
    u32 n = 0;

    open_table(true);
    /* Not inside one entry. */
    for (unsigned off = 1; off < 8; off++) {
        if (!TRY("movq %[v], (%[p])", , A([p] "r"((char *)&t[60] + off), [v] "r"(v))))
            n++;
        else
            EQ(this_cpu()->trap.vec, 14);
    }
    EQ(n, 0);
    CHECK(TRY("movl %k[v], (%[p])", , A([p] "r"((char *)&t[60] + 6), [v] "r"(v))));
    CHECK(TRY("xchg %[v], (%[p])", A(, [v] "+r"(v)), A([p] "r"((char *)&t[60] + 4))));
    CHECK(TRY("lock cmpxchg16b (%[p])", , A([p] "r"(&t[60]), "a"(0ul), "d"(0ul), "b"(0x10ul), "c"(0x10ul))));
    EQ(t[60], 0);
    EQ(t[61], 0);
    /* Instructions that are none of the known forms. */
    CHECK(TRY("movnti %[v], (%[p])", , A([p] "r"(&t[60]), [v] "r"(v))));
    CHECK(TRY("fxsave (%[p])", , A([p] "r"(&t[64]))));
    CHECK(TRY("movq %%xmm0, (%[p])", , A([p] "r"(&t[60]))));
    CHECK(TRY("popq (%[p])\n nop", , A([p] "r"(&t[60]))));
    CHECK(TRY("shlq $1, (%[p])", , A([p] "r"(&t[60]))));
    CHECK(TRY("incq (%[p])", , A([p] "r"(&t[60]))));
    for (unsigned i = 60; i < 70; i++)
        EQ(t[i], 0);
    close_table();
}

/* Over the end of the table into a writable page. */
TEST(emul_straddling)
{
    u64 *after;

    open_table(true);
    EQ(map_va(SCRATCH + 2 * PAGE, e(1, RWE)), 0);
    after = data[1];
    after[0] = 0x1111111111111111;
    CHECK(TRY("movq %[v], (%[p])", , A([p] "r"(SCRATCH + 2 * PAGE - 4), [v] "r"(0ul))));
    TRAPPED(14, 3);
    EQ(after[0], 0x1111111111111111);
    EQ(t[511], 0);
    CHECK(TRY("xchg %[v], (%[p])", , A([p] "r"(SCRATCH + 2 * PAGE - 1), [v] "r"(0ul))));
    EQ(after[0], 0x1111111111111111);
    EQ(map_va(SCRATCH + 2 * PAGE, 0), 0);
    close_table();
}

/* A read-only page that is no table, and tables of other levels: faults like any other. */
TEST(emul_no_table)
{
    u64 *p = table_page();

    CHECK(try_write(p, 1));
    TRAPPED(14, 3);
    EQ(p[0], 0);
    for (int level = 2; level <= 4; level++) {
        EQ(pin(level, mfn_of(p)), 0);
        CHECK(try_write(&p[3], 0x10));
        TRAPPED(14, 3);
        CHECK(TRY("lock andb $0xfd, (%[p])", , A([p] "r"(&p[4]))));
        EQ(p[3], 0);
        EQ(unpin(mfn_of(p)), 0);
    }
    page_free(p);
}

/* The entry that maps the code or the stack in use, or the table itself. */
TEST(emul_own_mapping)
{
    u64 *l1, keep, i;

    open_table(false);
    hook(SCRATCH + 0x200000, 2, t);
    *(volatile u64 *)&t[0] = pte(mfn_of(t), ROE);
    l1 = (u64 *)(SCRATCH + 0x200000);           /* the table seen through itself */
    EQ(l1[0], pte(mfn_of(t), ROE));
    CHECK(!try_write(&l1[1], e(0, RWE)));
    EQ(t[1], e(0, RWE));
    *(volatile u64 *)(l1 + 512) = 0x77;         /* through the entry just written */
    EQ(*(u64 *)data[0], 0x77);
    if (!mode_ptwr)
        CHECK(try_write(&l1[0], pte(mfn_of(t), RWE)));
    CHECK(!try_write(&l1[1], 0));
    CHECK(!try_write(&l1[0], 0));               /* saws off its own branch */
    EQ(t[0], 0);
    unhook(SCRATCH + 0x200000, 2);
    /* An entry of a table in use by the kernel: the page of this very variable's neighbours, unchanged. */
    i = pte_ma((u64)data[0], 1) & 4095;
    l1 = va_of(pte_ma((u64)data[0], 1) >> 12);
    keep = l1[i / 8];
    CHECK(!try_write(&l1[i / 8], keep & ~RW));
    mmuext(MMUEXT_INVLPG_LOCAL, (u64)data[0], 0);
    CHECK(try_write(data[0], 1));
    CHECK(!try_write(&l1[i / 8], keep));
    CHECK(!try_write(data[0], 1));
    close_table();
}

/* Many tables in turn, each with a few stores, and a look from the hypercall side in between. */
TEST(emul_many_tables)
{
    u64 *many[8];
    void *d = page_alloc();

    for (unsigned i = 0; i < COUNT(many); i++) {
        many[i] = table_page();
        REQUIRE(EQ(pin(1, mfn_of(many[i])), 0));
    }
    for (unsigned n = 0; n < 3000; n++) {
        u64 *p = many[n * 5 % COUNT(many)], v = n % 3 ? pte(mfn_of(d), RWE) : 0;
        unsigned i = n * 7 & 511;

        *(volatile u64 *)&p[i] = v;
        if (p[i] != v) {
            FAIL("round %u: read %#lx after writing %#lx", n, p[i], v);
            break;
        }
        if (n % 50 == 0)
            EQ(mmu_update(mfn_of(p) << 12 | i * 8, 0), 0);
    }
    EQ(make_ro(d), 0);
    EQ(pin(1, mfn_of(d)), -EINVAL);
    for (unsigned i = 0; i < COUNT(many); i++) {
        EQ(unpin(mfn_of(many[i])), 0);
        page_free(many[i]);
    }
    EQ(usable(d), true);
    page_free(d);
}
