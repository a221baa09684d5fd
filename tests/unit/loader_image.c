/* SPDX-License-Identifier: MIT */
/* Synthetic kernels for the loader's tests. */
#include "loader_image.h"

#include <lz4.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <xen/elfnote.h>
#include <zlib.h>
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

static void must(bool ok)
{
    if (!ok)
        abort();
}

struct blob blob_copy(const void *p, size_t size)
{
    struct blob b = { malloc(size ? size : 1), size };

    must(b.p != NULL);
    if (size)
        memcpy(b.p, p, size);
    return b;
}

void blob_append(struct blob *b, const void *p, size_t size)
{
    b->p = realloc(b->p, b->size + size + !(b->size + size));
    must(b->p != NULL);
    if (size)
        memcpy(b->p + b->size, p, size);
    b->size += size;
}

void blob_free(struct blob *b)
{
    free(b->p);
    *b = (struct blob){ 0 };
}

void put_u16(struct blob *b, size_t at, u16 v) { memcpy(b->p + at, &v, sizeof(v)); }
void put_u32(struct blob *b, size_t at, u32 v) { memcpy(b->p + at, &v, sizeof(v)); }

static void pad_to(struct blob *b, size_t align)
{
    static const u8 zeros[8];

    blob_append(b, zeros, -b->size & (align - 1));
}

void note_add(struct blob *notes, size_t align, const char *name, u32 type, const void *value, u32 size)
{
    Elf64_Nhdr h = { .n_namesz = (u32)strlen(name) + 1, .n_descsz = size, .n_type = type };

    blob_append(notes, &h, sizeof(h));
    blob_append(notes, name, h.n_namesz);
    pad_to(notes, align);
    blob_append(notes, value, size);
    pad_to(notes, align);
}

void note_add_u64(struct blob *notes, u32 type, u64 v) { note_add(notes, 4, "Xen", type, &v, sizeof(v)); }
void note_add_u32(struct blob *notes, u32 type, u32 v) { note_add(notes, 4, "Xen", type, &v, sizeof(v)); }

void note_add_text(struct blob *notes, u32 type, const char *s)
{
    note_add(notes, 4, "Xen", type, s, (u32)strlen(s) + 1);
}

struct blob notes_minimal(void)
{
    struct blob notes = { 0 };

    note_add_u64(&notes, XEN_ELFNOTE_ENTRY, TEST_ENTRY);
    note_add_u64(&notes, XEN_ELFNOTE_VIRT_BASE, TEST_VIRT_BASE);
    note_add_u64(&notes, XEN_ELFNOTE_PADDR_OFFSET, 0);
    return notes;
}

/* Text with a near call every 16 bytes, which is what the x86 filter of xz changes. */
static void fill_contents(u8 *p, size_t size)
{
    u32 seed = 1;

    for (size_t i = 0; i < size; i++) {
        seed = seed * 1103515245 + 12345;
        p[i] = i % 16 == 0 ? 0xe8 : i % 16 == 4 ? 0 : i % 16 < 4 ? (u8)(i / 256) : (u8)(seed >> 29);
    }
}

struct blob elf_build(const struct blob *notes)
{
    static u8 contents[40000];
    const u64 notes_at = sizeof(Elf64_Ehdr) + TEST_PHDRS * sizeof(Elf64_Phdr), at = notes_at + notes->size;
    const Elf64_Ehdr h = {
        .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
        .e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_entry = TEST_TEXT_PADDR,
        .e_phoff = sizeof(h), .e_ehsize = sizeof(h), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = TEST_PHDRS,
    };
    const Elf64_Phdr ph[TEST_PHDRS] = {
        [TEST_TEXT] = { .p_type = PT_LOAD, .p_offset = at, .p_vaddr = TEST_VIRT_BASE + TEST_TEXT_PADDR,
                        .p_paddr = TEST_TEXT_PADDR, .p_filesz = 20000, .p_memsz = 20000 },
        [TEST_DATA] = { .p_type = PT_LOAD, .p_offset = at + 20000, .p_vaddr = TEST_VIRT_BASE + 0x1005000,
                        .p_paddr = 0x1005000, .p_filesz = 5000, .p_memsz = 5000 },
        [TEST_PERCPU] = { .p_type = PT_LOAD, .p_offset = at + 25000, .p_vaddr = 0,
                          .p_paddr = 0x1007000, .p_filesz = 3000, .p_memsz = 3000 },
        [TEST_INIT] = { .p_type = PT_LOAD, .p_offset = at + 28000, .p_vaddr = TEST_VIRT_BASE + 0x1008000,
                        .p_paddr = 0x1008000, .p_filesz = 12000, .p_memsz = 0x10000 },
        [TEST_NOTE] = { .p_type = PT_NOTE, .p_offset = notes_at, .p_vaddr = 0, .p_paddr = 0,
                        .p_filesz = notes->size, .p_memsz = notes->size, .p_align = 4 },
    };
    struct blob b = blob_copy(&h, sizeof(h));

    fill_contents(contents, sizeof(contents));
    blob_append(&b, ph, sizeof(ph));
    blob_append(&b, notes->p, notes->size);
    blob_append(&b, contents, sizeof(contents));
    return b;
}

static void add_trailer(struct blob *b, size_t unpacked)
{
    u32 size = (u32)unpacked;

    blob_append(b, &size, sizeof(size));
}

struct blob payload_build_xz(const struct blob *data, int check)
{
    lzma_options_lzma lzma2;
    lzma_filter chain[] = {
        { LZMA_FILTER_X86, NULL }, { LZMA_FILTER_LZMA2, &lzma2 }, { LZMA_VLI_UNKNOWN, NULL },
    };
    struct blob b = { malloc(data->size * 2 + 1000), 0 };

    must(b.p != NULL && !lzma_lzma_preset(&lzma2, 1));
    lzma2.dict_size = 1 << 20;
    must(lzma_stream_buffer_encode(chain, (lzma_check)check, NULL, data->p, data->size, b.p, &b.size,
                                   data->size * 2 + 1000) == LZMA_OK);
    add_trailer(&b, data->size);
    return b;
}

/* Several chunks, although the format allows larger ones. */
static struct blob payload_lz4(const struct blob *data)
{
    static const u32 magic = 0x184c2102;
    const size_t step = 16000;
    struct blob b = blob_copy(&magic, sizeof(magic));

    for (size_t at = 0; at < data->size; at += step) {
        char chunk[LZ4_COMPRESSBOUND(16000)];
        int n = LZ4_compress_default((const char *)data->p + at, chunk, (int)MIN(step, data->size - at),
                                     (int)sizeof(chunk));
        u32 size = (u32)n;

        must(n > 0);
        blob_append(&b, &size, sizeof(size));
        blob_append(&b, chunk, size);
    }
    add_trailer(&b, data->size);
    return b;
}

/* As a pipe into `zstd` would: with a checksum, without the content size. */
static struct blob payload_zstd(const struct blob *data)
{
    ZSTD_CCtx *ctx = ZSTD_createCCtx();
    const size_t room = ZSTD_compressBound(data->size);
    struct blob b = { malloc(room), 0 };

    must(ctx != NULL && b.p != NULL);
    must(!ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, 1)));
    must(!ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_contentSizeFlag, 0)));
    b.size = ZSTD_compress2(ctx, b.p, room, data->p, data->size);
    must(!ZSTD_isError(b.size));
    ZSTD_freeCCtx(ctx);
    add_trailer(&b, data->size);
    return b;
}

static struct blob payload_gzip(const struct blob *data)
{
    z_stream z = { .next_in = data->p, .avail_in = (uInt)data->size };
    const size_t room = data->size * 2 + 1000;
    struct blob b = { malloc(room), 0 };

    must(b.p != NULL && deflateInit2(&z, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_out = b.p;
    z.avail_out = (uInt)room;
    must(deflate(&z, Z_FINISH) == Z_STREAM_END);
    b.size = room - z.avail_out;
    deflateEnd(&z);
    return b;
}

struct blob payload_build(enum compression c, const struct blob *data)
{
    switch (c) {
    case COMPRESSION_XZ:   return payload_build_xz(data, LZMA_CHECK_CRC32);
    case COMPRESSION_LZ4:  return payload_lz4(data);
    case COMPRESSION_ZSTD: return payload_zstd(data);
    case COMPRESSION_GZIP: return payload_gzip(data);
    case COMPRESSION_NONE: break;
    }
    return blob_copy(data->p, data->size);
}

struct blob bzimage_build(const struct blob *payload)
{
    static const u8 zeros[TEST_PAYLOAD_AT];
    u8 tail[TEST_TAIL];
    struct blob b = blob_copy(zeros, sizeof(zeros));

    memset(tail, 0xa5, sizeof(tail));
    b.p[0x1f1] = TEST_SETUP_SECTS;
    put_u16(&b, 0x1fe, 0xaa55);
    memcpy(b.p + 0x202, "HdrS", 4);
    put_u16(&b, 0x206, 0x20f);
    put_u32(&b, 0x248, TEST_STUB);
    put_u32(&b, 0x24c, (u32)payload->size);
    blob_append(&b, payload->p, payload->size);
    blob_append(&b, tail, sizeof(tail));
    return b;
}

struct blob bzimage_build_from(enum compression c, const struct blob *data)
{
    struct blob payload = payload_build(c, data), b = bzimage_build(&payload);

    blob_free(&payload);
    return b;
}
