/* SPDX-License-Identifier: MIT */
/* The rest of what the decompression libraries expect from a C library.  Each of them gets its memory through
 * an allocator argument (decompress_*.c), so that the general allocator is only reached by code for formats
 * that are not supported, and by this is told that memory is out. */
#include "base/bug.h"

void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void free(void *p);
void __stack_chk_fail(void) __noreturn;
unsigned long long ZSTD_trace_decompress_begin(const void *ctx);
void ZSTD_trace_decompress_end(unsigned long long trace, const void *what);

void *malloc(size_t size)
{
    (void)size;
    return NULL;
}

void *calloc(size_t n, size_t size)
{
    (void)n;
    (void)size;
    return NULL;
}

void free(void *p) { (void)p; }

void __stack_chk_fail(void) { env_bug(__FILE__, __LINE__, "stack overrun in a decompressor"); }

/* libzstd refers to these weakly; but the address 0 that stands for absent is out of reach from where a
 * hypervisor is linked.  A begin that returns 0 asks for no trace. */
unsigned long long ZSTD_trace_decompress_begin(const void *ctx)
{
    (void)ctx;
    return 0;
}

void ZSTD_trace_decompress_end(unsigned long long trace, const void *what)
{
    (void)trace;
    (void)what;
}
