/* SPDX-License-Identifier: MIT */
/* The hypervisor's other business right after a plain store to a live table: with writable page tables the table is
 * then unhooked and its new entries not yet looked at.  The answers must be the same in every mode.
 *
 * Each test runs on a table in the kernel's part of the address space, shared by all roots, and on one in the low part
 * of this root only. */
#include "guest.h"

#define HIGH (SCRATCH + 0x600000)
#define LOW 0x10000000ul

static u64 here;
static void *l3, *l2;
static u64 *t;                                  /* hooked at here, pinned, read-only where it is written */
static void *page;

static void setup(bool low)
{
    here = low ? LOW : HIGH;
    if (low) {
        l3 = table_page();
        l2 = table_page();
        hook(here, 4, l3);
        hook(here, 3, l2);
    }
    t = table_page();
    page = page_alloc();
    REQUIRE(EQ(pin(1, mfn_of(t)), 0));
    hook(here, 2, t);
}

static void finish(void)
{
    EQ(unpin(mfn_of(t)), 0);
    if (pte_get(here, 2))
        unhook(here, 2);
    if (here == LOW) {
        unhook(here, 3);
        unhook(here, 4);
        page_free(l3);
        page_free(l2);
    }
    EQ(usable(page), true);
    EQ(usable(t), true);
    page_free(page);
    page_free(t);
}

#define BOTH(name, body) \
    static void body(void); \
    TEST(name) { setup(false); body(); finish(); } \
    TEST(name##_low) { setup(true); body(); finish(); } \
    static void body(void)

static u64 entry(u64 flags) { return pte(mfn_of(page), flags); }
static void store(unsigned i, u64 v) { *(volatile u64 *)&t[i] = v; }
static void *at(unsigned i) { return (void *)(here + i * PAGE); }

/* fa89a590: the error code's present bit says nothing about the guest's own entry there. */
BOTH(ptwr_fa89a590_access, access_)
{
    u64 v = 0;

    ((u64 *)page)[9] = 0x909;
    for (unsigned i = 0; i < 100; i++) {
        store(i, entry(RWE));
        EQ(try_read((u64 *)at(i) + 9, &v), false);
        EQ(v, 0x909);
        store(i, 0);
        mmuext(MMUEXT_INVLPG_LOCAL, (u64)at(i), 0);
        EQ(try_read((u64 *)at(i) + 9, &v), true);
        TRAPPED(14, 0);
    }
}

/* 1a8bbf93: the hypervisor itself runs into what is unhooked. */
BOTH(ptwr_1a8bbf93_hypercall_arguments, hypercall_arguments)
{
    struct xen_machphys_mapping *m = at(5);
    struct multicall_entry *e = at(6);
    struct mmu_update *u = (struct mmu_update *)((char *)at(7) + 512);

    store(5, entry(RWE));
    EQ(HC(memory_op, XENMEM_machphys_mapping, m), 0);
    EQ(((struct xen_machphys_mapping *)page)->v_start, (u64)M2P);
    store(6, entry(RWE));
    e->op = __HYPERVISOR_xen_version;
    e->args[0] = XENVER_pagesize;
    store(8, entry(RWE));                       /* open again after the stores through it */
    EQ(HC(multicall, e, 1), 0);
    EQ(((struct multicall_entry *)page)->result, PAGE);
    store(7, entry(RWE));
    u->ptr = mfn_of(t) << 12 | 8 * 100;
    u->val = entry(ROE);
    store(9, entry(ROE));
    EQ(HC(mmu_update, u, 1, 0, DOMID_SELF), 0);
    EQ(t[100], entry(ROE));
    /* The mapping is gone, and so is the permission. */
    store(5, 0);
    mmuext(MMUEXT_INVLPG_LOCAL, (u64)m, 0);
    EQ(HC(memory_op, XENMEM_machphys_mapping, m), -EFAULT);
    store(5, entry(ROE));
    mmuext(MMUEXT_INVLPG_LOCAL, (u64)m, 0);
    EQ(HC(memory_op, XENMEM_machphys_mapping, m), -EFAULT);
}

BOTH(ptwr_1a8bbf93_stack, stack)
{
    u64 sp;
    u32 f = 0;

    /* this_cpu() needs its pointer at the foot of the stack: the trap must come on a stack of that shape. */
    for (unsigned i = 0; i < STACK_SIZE / PAGE; i++)
        store(i, pte(mfn_of(stacks[NR_VCPUS] + i * PAGE), RWE));
    store(20, entry(RWE));
    __asm__ volatile("mov %%rsp, %[sp]\n mov %[new], %%rsp\n1: ud2\n2: mov $1, %k[f]\n mov %[sp], %%rsp\n"
                     EX_TABLE("1b", "2b")
                     : [f] "+r"(f), [sp] "=&r"(sp) : [new] "r"(here + STACK_SIZE - 64) : "memory", "cc");
    EQ(f, 1);
    EQ(this_cpu()->trap.vec, 6);
    EQ(this_cpu()->trap.rsp, here + STACK_SIZE - 64);
    for (unsigned i = 0; i < STACK_SIZE / PAGE; i++)
        store(i, 0);
}

/* fa961865: a type that a new entry of an open table would forbid. */
BOTH(ptwr_fa961865_references, references)
{
    static u64 list[14];

    REQUIRE(EQ(make_ro(page), 0));
    list[0] = mfn_of(page);
    for (unsigned i = 0; i < 50; i++) {
        store(3, entry(RWE));
        EQ(HC(set_gdt, list, 16), -EINVAL);
        store(3, 0);
        EQ(HC(set_gdt, list, 16), 0);
        EQ(HC(set_gdt, list, 0), 0);
        store(4, entry(RWE));
        EQ(mmuext(MMUEXT_SET_LDT, (u64)page, 16), -EINVAL);
        store(4, entry(ROE));
        EQ(mmuext(MMUEXT_SET_LDT, (u64)page, 16), 0);
        EQ(mmuext(MMUEXT_SET_LDT, 0, 0), 0);
        store(5, entry(RWE));
        EQ(pin(4, mfn_of(page)), -EINVAL);
        store(5, entry(ROE));
        EQ(pin(4, mfn_of(page)), 0);
        EQ(unpin(mfn_of(page)), 0);
    }
}

/* The table goes away, or moves, in the middle. */
BOTH(open_unhook, moved_away)
{
    for (unsigned i = 0; i < 50; i++) {
        store(7, entry(RWE));
        unhook(here, 2);
        mmuext(MMUEXT_TLB_FLUSH_LOCAL, 0, 0);
        EQ(try_read(at(7), NULL), true);
        EQ(unpin(mfn_of(t)), 0);
        EQ(make_ro(page), 0);
        EQ(pin(1, mfn_of(page)), 0);            /* nothing of t counts any more */
        EQ(unpin(mfn_of(page)), 0);
        EQ(make_rw(page), 0);
        EQ(try_write(&t[7], 0), true);          /* no table: no store */
        EQ(pin(1, mfn_of(t)), 0);
        hook(here, 2, t);
        EQ(try_read(at(7), NULL), false);
        store(7, 0);
        hook(here + 0x200000, 2, t);            /* two places */
        store(7, entry(RWE));
        EQ(try_write((char *)at(7) + 0x200000, i << 1), false);
        unhook(here + 0x200000, 2);
        store(7, 0);
    }
}

/* 64aac38d: the entry that maps one table is in another; both are written in turn. */
BOTH(ptwr_64aac38d_nested, nested)
{
    u64 *outer = table_page(), *inner;
    u64 map_inner;

    REQUIRE(EQ(pin(1, mfn_of(outer)), 0));
    hook(here + 0x200000, 2, outer);
    EQ(map_va((u64)t, 0), 0);                   /* t is to be reached through outer only */
    map_inner = pte(mfn_of(t), ROE);
    *(volatile u64 *)&outer[4] = map_inner;
    inner = (u64 *)(here + 0x200000 + 4 * PAGE);
    for (unsigned i = 0; i < 50; i++) {
        /* One that hangs nowhere has a slot of its own: then both could be open at a time. */
        if (i == 25)
            unhook(here, 2);
        EQ(try_write(&inner[i], entry(RWE)), false);
        EQ(try_write(&outer[i + 100], entry(ROE)), false);
        EQ(try_write(&inner[i], entry(ROE)), false);
        EQ(load(&inner[i]), entry(ROE));
        EQ(try_write(&outer[4], i & 1 ? map_inner : map_inner & ~P), false);
        if (i & 1)
            continue;
        mmuext(MMUEXT_INVLPG_LOCAL, (u64)&inner[i], 0);
        EQ(try_write(&inner[i], 0), true);
        EQ(try_write(&outer[4], map_inner), false);
    }
    EQ(try_write(&outer[4], 0), false);
    EQ(make_ro(t), 0);
    EQ(unpin(mfn_of(outer)), 0);
    unhook(here + 0x200000, 2);
    EQ(usable(outer), true);
    page_free(outer);
}

/* 3c5d6999: the entry that maps an open table, writable for the moment, is changed by other means. */
BOTH(ptwr_3c5d6999_own_mapping, own_mapping)
{
    u64 own = pte_ma((u64)t, 1), v;

    for (unsigned i = 0; i < 50; i++) {
        store(3, entry(RWE));
        EQ(map_va((u64)t, pte(mfn_of(t), ROE | (i & 1 ? NX : 0))), 0);
        store(4, entry(ROE));
        EQ(mmu_update(own, pte(mfn_of(t), ROE)), 0);
        store(5, entry(RWE));
        EQ(mmu_update(own, pte(mfn_of(t), RWE)), -EINVAL);
        store(6, entry(RWE));
        EQ(mmu_update(own, 0), 0);
        mmuext(MMUEXT_INVLPG_LOCAL, (u64)t, 0);
        EQ(try_write(&t[7], 0), true);
        EQ(make_ro(t), 0);
        store(3, 0);
        v = load(&t[4]);
        EQ(v, entry(ROE));
        store(4, 0);
        store(5, 0);
        store(6, 0);
        if (i % 10 == 0) {
            EQ(make_ro(page), 0);
            EQ(pin(1, mfn_of(page)), 0);        /* no writable reference has stayed behind */
            EQ(unpin(mfn_of(page)), 0);
            EQ(make_rw(page), 0);
        }
    }
}

/* The other vCPU uses the mappings meanwhile. */
static u64 seen;

static void reader(void *arg)
{
    (void)arg;
    while (!stop) {
        u64 v = 0;

        for (unsigned i = 0; i < 8; i++)
            if (!try_read(at(i), &v)) {
                seen++;
                if (v != 0x5eed) {
                    FAIL("read %#lx through a live table, expected 0x5eed", v);
                    return;
                }
            }
        HC(xen_version, XENVER_extraversion, (char *)at(0) + 512);
    }
}

BOTH(open_other_vcpu, other_vcpu)
{
    *(u64 *)page = 0x5eed;
    seen = 0;
    vcpu1_run(reader, NULL);
    for (u64 end = now_ns() + 1000000000, i = 0; now_ns() < end && (i < race_rounds || seen < 100); i++) {
        store(i & 7, i & 8 ? entry(RWE) : 0);
        if (t[i & 7] != (i & 8 ? entry(RWE) : 0)) {
            FAIL("entry %lu reads %#lx after it was written", i & 7, t[i & 7]);
            break;
        }
    }
    stop = 1;
    vcpu1_wait();
    CHECK(seen > 0);
}
