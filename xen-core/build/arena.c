/* SPDX-License-Identifier: MIT */
/* Blocks cut one after the other from a region; space returns from the newest end. */
#include "build/arena.h"

struct header {
    u64 below;                 /* offset of the header of the block before this one, or ARENA_EMPTY */
    u64 freed;
};

_Static_assert(sizeof(struct header) == ARENA_ALIGN, "blocks behind a header must stay aligned");

static struct header *header_at(struct arena *a, u64 offset) { return (struct header *)(a->base + offset); }

void arena_init(struct arena *a, void *region, u64 size)
{
    u64 skip = -(uintptr_t)region & (ARENA_ALIGN - 1);

    /* As numbers: @region may be NULL with a size of 0. */
    *a = (struct arena){ .base = (u8 *)((uintptr_t)region + skip), .size = size < skip ? 0 : size - skip,
                         .top = ARENA_EMPTY };
}

void *arena_alloc(struct arena *a, u64 size)
{
    u64 room = a->size - a->used, need;
    struct header *h;

    if (size > room)
        return NULL;
    need = sizeof(*h) + ROUND_UP(size, ARENA_ALIGN);
    if (need > room)
        return NULL;
    h = header_at(a, a->used);
    *h = (struct header){ .below = a->top };
    a->top = a->used;
    a->used += need;
    return h + 1;
}

void arena_free(struct arena *a, void *p)
{
    if (p == NULL)
        return;
    ((struct header *)p)[-1].freed = 1;
    while (a->top != ARENA_EMPTY && header_at(a, a->top)->freed) {
        a->used = a->top;
        a->top = header_at(a, a->top)->below;
    }
}
