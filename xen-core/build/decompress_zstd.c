/* SPDX-License-Identifier: MIT */
/* zstd through libzstd. */
#define ZSTD_STATIC_LINKING_ONLY     /* the calls that take an allocator */
#include <zstd.h>

#include "build/decompress_internal.h"

static void *zstd_alloc(void *opaque, size_t size) { return arena_alloc(opaque, size); }
static void zstd_free(void *opaque, void *p) { arena_free(opaque, p); }

/* Into one buffer, so that no window is needed. */
u64 zstd_scratch(void) { return ZSTD_estimateDCtxSize() + ARENA_BLOCK_COST; }

int zstd_decompress(struct job *j)
{
    ZSTD_customMem mem = { zstd_alloc, zstd_free, j->arena };
    ZSTD_DCtx *ctx = ZSTD_createDCtx_advanced(mem);
    size_t n;

    if (ctx == NULL)
        return job_fail(j, "zstd: not enough scratch memory: %llu bytes given, %llu needed",
                        (ull)j->arena->size, (ull)zstd_scratch());
    n = ZSTD_decompressDCtx(ctx, j->out, j->out_room, j->in, j->in_size);
    ZSTD_freeDCtx(ctx);
    if (ZSTD_isError(n))
        return job_fail(j, "zstd: %s (%llu bytes of input, %llu announced)", ZSTD_getErrorName(n),
                        (ull)j->in_size, (ull)j->out_room);
    j->out_size = n;
    return 0;
}
