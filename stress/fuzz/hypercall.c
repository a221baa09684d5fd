/* SPDX-License-Identifier: MIT */
/* Fuzzes what a guest can ask for.  An input is a program of two vCPUs that take turns: hypercalls with arguments of every
 * kind, stores to guest memory, write faults on page tables, privileged instructions; hypercalls may be suspended at any point
 * where they can be.  Nothing may be touched outside of guest memory, no BUG_ON() may hold, and at the end every count must
 * agree with the page tables. */
#include <string.h>

#include "world.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define STEPS   64u
#define REPEATS 200u                   /* of suspended hypercalls in one input: it must come to an end */

static const u8 *in;
static size_t left;
static unsigned repeats;

static u64 take(unsigned bytes)
{
    u64 v = 0;

    bytes = (unsigned)MIN(bytes, left);
    memcpy(&v, in, bytes);
    in += bytes;
    left -= bytes;
    return v;
}

/* One argument: a small number, a guest address, a frame, a table entry, anything. */
static u64 argument(void)
{
    u64 kind = take(1), n;

    switch (kind & 7) {
    case 0:  return kind >> 3;
    case 1:  return take(1);
    case 2:  return GUEST_VA + (take(3) % (GUEST_SIZE + PAGE_SIZE));
    case 3:  return take(1) % (DOM_FRAMES + 4);
    case 4:                                      /* an entry, or the machine address of one */
        n = take(1) % (DOM_FRAMES + 4);
        return n << PAGE_SHIFT | (take(2) & 0xfff) | (kind & 8 ? 1ull << 63 : 0);
    case 5:  return take(4);
    case 6:  return 0x7ff0 + (kind >> 3);        /* DOMID_SELF and its neighbours */
    default: return take(8);
    }
}

static void call(bool repeat)
{
    u64 nr = take(1), a[5];
    bool again;

    for (unsigned i = 0; i < 5; i++)
        a[i] = argument();
    again = world_hypercall(nr, a);
    while (again && repeat && repeats++ < REPEATS)
        again = world_hypercall_again();
}

/* Stores up to 64 bytes; the words in them can be arguments, so that structures become plausible. */
static void store(bool words)
{
    u64 va = GUEST_VA + take(3) % (GUEST_SIZE + PAGE_SIZE), n = 1 + take(1) % 64, w[8] = { 0 };

    if (words) {
        n = n % 8 + 1;
        va &= ~7ull;
        for (unsigned i = 0; i < n; i++)
            w[i] = argument();
        n *= 8;
    } else {
        n = MIN(n, left);
        memcpy(w, in, n);
        in += n;
        left -= n;
    }
    world_guest_store(va, w, n);
}

static void fault(unsigned kind)
{
    u64 rip = GUEST_VA + take(3) % GUEST_SIZE, va = GUEST_VA + take(3) % GUEST_SIZE;

    for (unsigned i = 0; i < 2; i++) {
        unsigned reg = take(1) % 16;

        *world_reg(reg) = kind == 0 && !i ? va : argument();
    }
    if (kind == 0)
        world_write_fault(va, rip);
    else
        world_privileged(rip, kind == 1 ? 13 : 6);
}

static void step(u64 op)
{
    switch (op & 7) {
    case 0: store(false); break;
    case 1: store(true); break;
    case 2: fault(0); break;
    case 3: fault(op & 64 ? 1 : 2); break;
    case 4:
        if (op & 64)
            world_user_mode(op & 128);
        else if (op & 128)
            world_time(take(3) * 100);
        else if (repeats++ < REPEATS)
            (void)world_hypercall_again();
        break;
    default: call(op & 64);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc; (void)argv;
    world_open();
    return 0;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    static const u64 budgets[4] = { 400000, 400000, 20000, 0 };
    u8 first = size ? data[0] : 0, second = size > 1 ? data[1] : 0;
    struct world_mode mode = { .ptwr = first & 1, .budget = budgets[first >> 1 & 3], .preempt = first >> 3 & 7,
                               .heap = first & 64 ? second & 15 : ~0u };

    world_reset(&mode);                          /* also this file's variables */
    in = data + MIN(size, 2);
    left = size - MIN(size, 2);
    for (unsigned steps = 0; left && steps < STEPS; steps++) {
        u64 op = take(1);

        if (world_cpu(op >> 3 & 1))
            step(op);
        world_rest();
    }
    world_check();
    return 0;
}
