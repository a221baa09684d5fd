/* SPDX-License-Identifier: MIT */
/* Whole-buffer decompression of kernel payloads: XZ, legacy LZ4, zstd and gzip.
 *
 * The work is done by Debian's static libraries, which were built for user space.  Whoever calls anything
 * here or in bzimage.h runs on the boot CPU with interrupts off (red zone), SSE enabled (CR0.EM and TS clear,
 * CR4.OSFXSR set), the FS base at a readable block of at least 0x30 bytes whose u64 at 0x28 does not change
 * (stack-protector canary), the direction flag clear, and 16 KiB of stack left.  SSE registers are lost. */
#ifndef PT_BUILD_DECOMPRESS_H
#define PT_BUILD_DECOMPRESS_H

#include "base/types.h"

enum compression { COMPRESSION_NONE, COMPRESSION_XZ, COMPRESSION_LZ4, COMPRESSION_ZSTD, COMPRESSION_GZIP };

/* More scratch memory than this is never asked for: a larger demand is an error. */
#define DECOMPRESS_SCRATCH_MAX (256ull << 20)

/* The format whose magic number @data begins with; COMPRESSION_NONE when it is none of them. */
enum compression compression_detect(const void *data, u64 size);
const char *compression_name(enum compression c);

/* Gives the decompressors @size bytes of scratch memory at @region, until the next call.  Boot CPU. */
void decompress_init(void *region, u64 size);

/* Sets *@need to the bytes of scratch memory that decompress() will want for this data.  0, or -1 with one
 * line in @err. */
int decompress_scratch(enum compression c, const void *in, u64 in_size, u64 *need, char *err, size_t errlen);

/* Decompresses @in to @out, which must not overlap it, and sets *@out_size to the bytes produced, at most
 * @out_room.  All of @in must be one intact compressed file.  0, or -1 with one line in @err and @out in an
 * undefined state. */
int decompress(enum compression c, const void *in, u64 in_size, void *out, u64 out_room, u64 *out_size,
               char *err, size_t errlen);

#endif
