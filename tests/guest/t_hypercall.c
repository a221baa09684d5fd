/* SPDX-License-Identifier: MIT */
/* Hypercalls as such: numbers, pointers, sizes, results. */
#include "guest.h"

TEST(unknown_hypercall)
{
    static const u64 nr[] = { 6, 11, 16, 27, 39, 41, 47, 63, 64, 127, 128, 255, 0x7fffffff, 0xffffffff, 1ul << 32, 1ul << 63, ~0ul };

    for (unsigned i = 0; i < COUNT(nr); i++)
        EQ(hypercall(nr[i], 0, 0, 0, 0, 0), -ENOSYS);
}
