/* SPDX-License-Identifier: MIT */
/* Finds the ELF kernel in a boot module: a Linux bzImage, a plain ELF file, or a gzip'ed one. */
#ifndef PT_BUILD_BZIMAGE_H
#define PT_BUILD_BZIMAGE_H

#include "base/types.h"
#include "build/decompress.h"

enum image_kind { IMAGE_ELF, IMAGE_GZIP, IMAGE_BZIMAGE };

struct image_info {
    enum image_kind kind;
    enum compression compression;
    const void *payload;       /* inside the module; with COMPRESSION_NONE it is the ELF file itself */
    u64 payload_size;          /* bytes, without the size trailer */
    u64 unpacked_size;         /* bytes: what the trailer says, and image_unpack() insists on */
    u64 scratch_size;          /* bytes decompress_init() must give before image_unpack(); may be 0 */
};

/* Larger kernels cannot be mapped: an initial mapping is at most 1 GiB. */
#define IMAGE_UNPACKED_MAX (1ull << 30)

/* Finds and describes the kernel in the @size bytes at @blob.  0, or -1 with one line in @err that names the
 * broken rule and the value.  Conditions as in decompress.h. */
int image_probe(const void *blob, u64 size, struct image_info *out, char *err, size_t errlen);

/* Unpacks it to @dst, @dst_size >= @info->unpacked_size bytes that overlap neither module nor scratch memory.
 * 0 with *@out_size = unpacked_size, or -1 with one line in @err.  Conditions as in decompress.h. */
int image_unpack(const struct image_info *info, void *dst, u64 dst_size, u64 *out_size, char *err,
                 size_t errlen);

#endif
