/* SPDX-License-Identifier: MIT */
/* Chooses the decompressor by magic number and gives it memory. */
#include "build/decompress.h"

#include "build/decompress_internal.h"
#include "pt_string.h"
#include "vsnprintf.h"

static struct arena scratch;

static const struct format {
    enum compression id;
    const char *name;
    u8 magic[6];
    u8 magic_size;
} formats[] = {
    { COMPRESSION_XZ, "xz", { 0xfd, '7', 'z', 'X', 'Z', 0 }, 6 },
    { COMPRESSION_LZ4, "lz4", { 0x02, 0x21, 0x4c, 0x18 }, 4 },
    { COMPRESSION_ZSTD, "zstd", { 0x28, 0xb5, 0x2f, 0xfd }, 4 },
    { COMPRESSION_GZIP, "gzip", { 0x1f, 0x8b, 0x08 }, 3 },
};

enum compression compression_detect(const void *data, u64 size)
{
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
        if (size >= formats[i].magic_size && memcmp(data, formats[i].magic, formats[i].magic_size) == 0)
            return formats[i].id;
    return COMPRESSION_NONE;
}

const char *compression_name(enum compression c)
{
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
        if (formats[i].id == c)
            return formats[i].name;
    return "none";
}

int job_fail(struct job *j, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    pt_vsnprintf(j->err, j->errlen, fmt, ap);
    va_end(ap);
    return -1;
}

void decompress_init(void *region, u64 size) { arena_init(&scratch, region, size); }

int decompress_scratch(enum compression c, const void *in, u64 in_size, u64 *need, char *err, size_t errlen)
{
    struct job j = { .in = in, .in_size = in_size, .err = err, .errlen = errlen };

    *need = 0;
    switch (c) {
    case COMPRESSION_XZ:
        if (xz_scratch(&j, need) != 0)
            return -1;
        break;
    case COMPRESSION_ZSTD:
        *need = zstd_scratch();
        break;
    case COMPRESSION_GZIP:
        *need = gzip_scratch();
        break;
    case COMPRESSION_LZ4:
    case COMPRESSION_NONE:
        break;
    }
    if (*need > DECOMPRESS_SCRATCH_MAX)
        return job_fail(&j, "%s: %llu bytes of scratch memory needed, more than the limit %llu",
                        compression_name(c), (ull)*need, DECOMPRESS_SCRATCH_MAX);
    return 0;
}

int decompress(enum compression c, const void *in, u64 in_size, void *out, u64 out_room, u64 *out_size,
               char *err, size_t errlen)
{
    struct job j = { .in = in, .in_size = in_size, .out = out, .out_room = out_room, .arena = &scratch,
                     .err = err, .errlen = errlen };
    int rc = -1;

    /* Whatever the last job left behind. */
    arena_init(&scratch, scratch.base, scratch.size);
    switch (c) {
    case COMPRESSION_XZ:   rc = xz_decompress(&j); break;
    case COMPRESSION_LZ4:  rc = lz4_decompress(&j); break;
    case COMPRESSION_ZSTD: rc = zstd_decompress(&j); break;
    case COMPRESSION_GZIP: rc = gzip_decompress(&j); break;
    case COMPRESSION_NONE:
        if (in_size > out_room) {
            job_fail(&j, "%llu bytes do not fit in %llu", (ull)in_size,
                     (ull)out_room);
            break;
        }
        memcpy(out, in, in_size);
        j.out_size = in_size;
        rc = 0;
        break;
    }
    *out_size = j.out_size;
    return rc;
}
