/* SPDX-License-Identifier: MIT */
/* libzstd's optional tracing hooks, which the library declares weak: never called into anything. */
#include <stddef.h>

unsigned long long ZSTD_trace_decompress_begin(const void *dctx);
void ZSTD_trace_decompress_end(unsigned long long ctx, const void *trace);

unsigned long long ZSTD_trace_decompress_begin(const void *dctx)
{
    (void)dctx;
    return 0;
}

void ZSTD_trace_decompress_end(unsigned long long ctx, const void *trace)
{
    (void)ctx;
    (void)trace;
}
