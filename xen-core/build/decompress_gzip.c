/* SPDX-License-Identifier: MIT */
/* gzip through zlib. */
#include <limits.h>
#include <zlib.h>

#include "build/decompress_internal.h"

static voidpf gzip_alloc(voidpf opaque, uInt n, uInt size) { return arena_alloc(opaque, (u64)n * size); }
static void gzip_free(voidpf opaque, voidpf p) { arena_free(opaque, p); }

/* The state, about 7 KiB, and a window of 32 KiB that a single call does not need. */
u64 gzip_scratch(void) { return 64u << 10; }

int gzip_decompress(struct job *j)
{
    z_stream z = { .next_in = (Bytef *)(uintptr_t)j->in, .avail_in = (uInt)j->in_size, .next_out = j->out,
                   .avail_out = (uInt)j->out_room, .zalloc = gzip_alloc, .zfree = gzip_free,
                   .opaque = j->arena };
    int rc;

    if (j->in_size > UINT_MAX || j->out_room > UINT_MAX)
        return job_fail(j, "gzip: %llu bytes of input or %llu of output, more than 4 GiB",
                        (ull)j->in_size, (ull)j->out_room);
    rc = inflateInit2(&z, MAX_WBITS + 16);     /* + 16: a gzip header, not a zlib one */
    if (rc != Z_OK)
        return job_fail(j, "gzip: not enough scratch memory: %llu bytes given, %llu needed",
                        (ull)j->arena->size, (ull)gzip_scratch());
    rc = inflate(&z, Z_FINISH);
    j->out_size = j->out_room - z.avail_out;
    inflateEnd(&z);
    if (rc == Z_STREAM_END && z.avail_in == 0)
        return 0;
    if (rc == Z_STREAM_END)
        return job_fail(j, "gzip: %u stray bytes after the data", z.avail_in);
    return job_fail(j, "gzip: %s after %llu of %llu bytes of input", z.msg ? z.msg :
                    z.avail_out == 0 ? "the data is longer than announced" : "the data is truncated",
                    (ull)(j->in_size - z.avail_in), (ull)j->in_size);
}
