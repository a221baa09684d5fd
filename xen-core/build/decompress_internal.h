/* SPDX-License-Identifier: MIT */
/* Between decompress.c and the files for the single formats. */
#ifndef PT_BUILD_DECOMPRESS_INTERNAL_H
#define PT_BUILD_DECOMPRESS_INTERNAL_H

#include "build/arena.h"

typedef unsigned long long ull;     /* for formats */

/* One job.  @out_size counts what was produced. */
struct job {
    const u8 *in;
    u64 in_size;
    u8 *out;
    u64 out_room, out_size;
    struct arena *arena;
    char *err;
    size_t errlen;
};

/* Formats the message of @j; returns -1. */
int job_fail(struct job *j, const char *fmt, ...) __printf(2, 3);

/* Scratch memory that the data at @j->in needs, including what the arena adds.  0, or -1 with a message. */
int xz_scratch(struct job *j, u64 *need);
u64 zstd_scratch(void);
u64 gzip_scratch(void);

/* 0, or -1 with a message. */
int xz_decompress(struct job *j);
int lz4_decompress(struct job *j);
int zstd_decompress(struct job *j);
int gzip_decompress(struct job *j);

#endif
