/* SPDX-License-Identifier: MIT */
/* Fuzzes what reads a kernel module: bzImage headers, the four decompressors behind them, ELF and its Xen notes. */
#include <stdlib.h>
#include <string.h>

#include "build/bzimage.h"
#include "build/elf.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define ROOM (4u << 20)                /* larger images and scratch demands are not unpacked here */

/* A failed call has one line in @err. */
static int said(int rc, const char *err)
{
    if (rc && (!*err || strchr(err, '\n')))
        abort();
    return rc;
}

static void parse(const void *file, u64 size)
{
    static struct elf_image elf;
    char err[256] = "";

    if (said(elf_parse(file, size, &elf, err, sizeof(err)), err))
        return;
    /* What the builder relies on. */
    for (u32 i = 0; i < elf.nr_segments; i++) {
        const struct elf_segment *s = &elf.segment[i];

        if (s->offset > size || s->filesz > size - s->offset || s->filesz > s->memsz || s->gpa + s->memsz < s->gpa)
            abort();
    }
    if (elf.nr_segments > ELF_MAX_SEGMENTS)
        abort();
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    static u8 scratch[ROOM];
    struct image_info info;
    char err[256] = "";
    u64 got = 0;
    u8 *dst;

    if (said(image_probe(data, size, &info, err, sizeof(err)), err))
        return 0;
    if ((const u8 *)info.payload < data || (const u8 *)info.payload + info.payload_size > data + size)
        abort();
    if (info.compression == COMPRESSION_NONE) {
        parse(info.payload, info.payload_size);
        return 0;
    }
    if (info.unpacked_size > ROOM || info.scratch_size > ROOM)
        return 0;
    dst = malloc(info.unpacked_size + !info.unpacked_size);
    if (!dst)
        return 0;
    decompress_init(scratch, info.scratch_size);
    if (!said(image_unpack(&info, dst, info.unpacked_size, &got, err, sizeof(err)), err)) {
        if (got != info.unpacked_size)
            abort();
        parse(dst, got);
    }
    free(dst);
    return 0;
}
