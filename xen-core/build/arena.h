/* SPDX-License-Identifier: MIT */
/* Memory for the decompressors: blocks cut one after the other from a region of fixed size. */
#ifndef PT_BUILD_ARENA_H
#define PT_BUILD_ARENA_H

#include "base/types.h"

struct arena {
    u8 *base;
    u64 size;
    u64 used;                  /* offset of the first free byte */
    u64 top;                   /* offset of the newest block's header; ARENA_EMPTY without one */
};

#define ARENA_EMPTY ~0ull
#define ARENA_ALIGN 16
/* What the first block costs beyond its size, at most: the region's alignment, header and rounding. */
#define ARENA_BLOCK_COST (3 * ARENA_ALIGN)

/* Makes @a hand out the @size bytes at @region, which stay the caller's.  One CPU at a time uses an arena. */
void arena_init(struct arena *a, void *region, u64 size);

/* @size bytes aligned to ARENA_ALIGN, contents undefined; NULL when they do not fit. */
void *arena_alloc(struct arena *a, u64 size);

/* Gives a block back; NULL is allowed.  Its space is used again once every newer block has gone, too. */
void arena_free(struct arena *a, void *p);

#endif
