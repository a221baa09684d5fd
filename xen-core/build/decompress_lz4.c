/* SPDX-License-Identifier: MIT */
/* Legacy LZ4 frames, as `lz4 -l` writes them: the magic, then chunks of a u32 size and one raw block, without
 * an end marker.  The magic may come again where a chunk could: files were concatenated. */
#include <lz4.h>

#include "build/decompress_internal.h"
#include "pt_string.h"

#define LEGACY_MAGIC 0x184c2102u
#define CHUNK_MAX    (8u << 20)     /* uncompressed bytes of a chunk */

static u32 get_u32(const u8 *p)
{
    u32 v;

    memcpy(&v, p, sizeof(v));
    return v;
}

int lz4_decompress(struct job *j)
{
    u64 pos = sizeof(u32);

    while (pos < j->in_size) {
        u64 left = j->in_size - pos, room = MIN(j->out_room - j->out_size, CHUNK_MAX);
        u32 chunk;
        int n;

        if (left < sizeof(chunk))
            return job_fail(j, "lz4: %llu stray bytes at offset %#llx, too few for a chunk size",
                            (ull)left, (ull)pos);
        chunk = get_u32(j->in + pos);
        pos += sizeof(chunk);
        left -= sizeof(chunk);
        if (chunk == LEGACY_MAGIC)
            continue;
        if (chunk == 0 || chunk > left)
            return job_fail(j, "lz4: chunk of %u bytes at offset %#llx, with %llu bytes left", chunk,
                            (ull)pos, (ull)left);
        if (chunk > (u32)LZ4_COMPRESSBOUND(CHUNK_MAX))
            return job_fail(j, "lz4: chunk of %u bytes at offset %#llx, more than %u bytes can grow to",
                            chunk, (ull)pos, CHUNK_MAX);
        n = LZ4_decompress_safe((const char *)j->in + pos, (char *)j->out + j->out_size, (int)chunk,
                                (int)room);
        if (n < 0)
            return job_fail(j, "lz4: chunk at offset %#llx is corrupt or does not fit in the %llu bytes left",
                            (ull)pos, (ull)room);
        j->out_size += (u64)n;
        pos += chunk;
    }
    return 0;
}
