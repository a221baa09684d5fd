/* SPDX-License-Identifier: MIT */
/* XZ through liblzma. */
#include <lzma.h>

#include "build/decompress.h"
#include "build/decompress_internal.h"
#include "pt_string.h"

/* Beside the filters: the decoders of stream and blocks, the index hash, and the options of four filters,
 * each with what the arena adds. */
#define DECODER_SIZE (64u << 10)

static void *xz_alloc(void *opaque, size_t n, size_t size)
{
    size_t total;

    return __builtin_mul_overflow(n, size, &total) ? NULL : arena_alloc(opaque, total);
}

static void xz_free(void *opaque, void *p) { arena_free(opaque, p); }

/* The header of the stream.  The CRC64 of liblzma only works after its constructors ran, which nobody does
 * for an image without a C library, and Linux' own decompressor checks CRC32 only: so does this one. */
static int check_stream(struct job *j)
{
    lzma_stream_flags flags;

    if (j->in_size < LZMA_STREAM_HEADER_SIZE)
        return job_fail(j, "xz: %llu bytes are too short for a stream header", (ull)j->in_size);
    if (lzma_stream_header_decode(&flags, j->in) != LZMA_OK)
        return job_fail(j, "xz: the stream header is corrupt");
    if (flags.check != LZMA_CHECK_CRC32 && flags.check != LZMA_CHECK_NONE)
        return job_fail(j, "xz: check type %d is not supported, only none (%d) and CRC32 (%d)",
                        (int)flags.check, LZMA_CHECK_NONE, LZMA_CHECK_CRC32);
    return 0;
}

int xz_scratch(struct job *j, u64 *need)
{
    u8 room[2048] __attribute__((aligned(ARENA_ALIGN)));
    struct arena a;
    lzma_allocator alloc = { xz_alloc, xz_free, &a };
    lzma_filter filters[LZMA_FILTERS_MAX + 1];
    lzma_block block = { .version = 1, .check = LZMA_CHECK_NONE, .filters = filters };
    const u8 *p = j->in + LZMA_STREAM_HEADER_SIZE;
    u64 left;

    if (check_stream(j) != 0)
        return -1;
    left = j->in_size - LZMA_STREAM_HEADER_SIZE;
    if (left == 0 || *p == 0) {
        *need = DECODER_SIZE;      /* no block */
        return 0;
    }
    block.header_size = lzma_block_header_size_decode(*p);
    if (block.header_size > left)
        return job_fail(j, "xz: block header of %u bytes, with %llu bytes left", block.header_size,
                        (ull)left);
    /* The filters' options are abandoned together with their arena. */
    arena_init(&a, room, sizeof(room));
    if (lzma_block_header_decode(&block, &alloc, p) != LZMA_OK)
        return job_fail(j, "xz: the block header is corrupt or needs an unknown filter");
    *need = lzma_raw_decoder_memusage(filters);
    if (*need == UINT64_MAX)
        return job_fail(j, "xz: the filter chain is not supported");
    *need += DECODER_SIZE;
    return 0;
}

static const char *error_text(lzma_ret rc)
{
    switch (rc) {
    case LZMA_FORMAT_ERROR:  return "not an xz stream";
    case LZMA_OPTIONS_ERROR: return "a header asks for something unsupported";
    case LZMA_DATA_ERROR:    return "the data is corrupt or truncated";
    case LZMA_BUF_ERROR:     return "the data is longer than announced";
    case LZMA_MEM_ERROR:
    case LZMA_MEMLIMIT_ERROR: return "not enough scratch memory";
    default:                 return "the decoder failed";
    }
}

int xz_decompress(struct job *j)
{
    lzma_allocator alloc = { xz_alloc, xz_free, j->arena };
    u64 memlimit = DECOMPRESS_SCRATCH_MAX;
    size_t in_pos = 0, out_pos = 0;
    lzma_ret rc;

    if (check_stream(j) != 0)
        return -1;
    rc = lzma_stream_buffer_decode(&memlimit, 0, &alloc, j->in, &in_pos, j->in_size, j->out, &out_pos,
                                   j->out_room);
    if (rc != LZMA_OK)
        return job_fail(j, "xz: %s (%llu bytes of input, %llu announced, liblzma error %d)", error_text(rc),
                        (ull)j->in_size, (ull)j->out_room, (int)rc);
    if (in_pos != j->in_size)
        return job_fail(j, "xz: the stream ends at byte %#llx of %#llx", (ull)in_pos,
                        (ull)j->in_size);
    j->out_size = out_pos;
    return 0;
}
