/* SPDX-License-Identifier: MIT */
/* Tests finding and unpacking the kernel in a boot module: good images of every compression, truncated,
 * corrupt and forged ones, and a real kernel when PT_TEST_VMLINUZ names its file. */
#include <CUnit/Basic.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build/arena.h"
#include "build/bzimage.h"
#include "build/elf.h"
#include "loader_image.h"

static const enum compression all[] = {
    COMPRESSION_NONE, COMPRESSION_XZ, COMPRESSION_LZ4, COMPRESSION_ZSTD, COMPRESSION_GZIP,
};

static struct blob kernel;         /* the ELF file inside all images */
static char err[300];

/* Probes and unpacks as the hypervisor does, with scratch memory and output of exactly the announced sizes;
 * larger announcements than @limit count as out of memory.  0 with *@out allocated, or -1. */
static int unpack_limited(const struct blob *b, struct blob *out, u64 limit)
{
    struct image_info info;
    void *scratch;
    u64 size = 0;
    int rc;

    err[0] = '\0';
    if (image_probe(b->p, b->size, &info, err, sizeof(err)) != 0)
        return -1;
    CU_ASSERT((const u8 *)info.payload >= b->p);
    CU_ASSERT((const u8 *)info.payload + info.payload_size <= b->p + b->size);
    if (info.unpacked_size > limit) {
        snprintf(err, sizeof(err), "out of memory");
        return -1;
    }
    scratch = malloc(info.scratch_size + 1);
    decompress_init(scratch, info.scratch_size);
    *out = (struct blob){ malloc(info.unpacked_size), info.unpacked_size };
    rc = image_unpack(&info, out->p, out->size, &size, err, sizeof(err));
    decompress_init(NULL, 0);
    free(scratch);
    if (rc == 0) {
        CU_ASSERT_EQUAL(size, info.unpacked_size);
    } else {
        blob_free(out);
    }
    return rc;
}

static int unpack(const struct blob *b, struct blob *out) { return unpack_limited(b, out, 16 << 20); }

static bool same(const struct blob *a, const struct blob *b)
{
    return a->size == b->size && memcmp(a->p, b->p, a->size) == 0;
}

static void check_good(const struct blob *b, const struct blob *expected)
{
    struct blob out;
    int rc = unpack(b, &out);

    CU_ASSERT_EQUAL(rc, 0);
    if (rc != 0) {
        printf("unexpected: %s\n", err);
        return;
    }
    CU_ASSERT(same(&out, expected));
    blob_free(&out);
}

/* Fails with one line that contains @text. */
static void check_bad(const struct blob *b, const char *text)
{
    struct blob out;
    int rc = unpack(b, &out);

    CU_ASSERT_NOT_EQUAL(rc, 0);
    if (rc == 0) {
        printf("accepted instead of: %s\n", text);
        blob_free(&out);
        return;
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(err, text));
    CU_ASSERT_PTR_NULL(strchr(err, '\n'));
    if (!strstr(err, text))
        printf("\"%s\" instead of \"%s\"\n", err, text);
}

static void test_good(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        struct blob b = bzimage_build_from(all[i], &kernel);
        struct image_info info;

        check_good(&b, &kernel);
        CU_ASSERT_EQUAL_FATAL(image_probe(b.p, b.size, &info, err, sizeof(err)), 0);
        CU_ASSERT_EQUAL(info.kind, IMAGE_BZIMAGE);
        CU_ASSERT_EQUAL(info.compression, all[i]);
        CU_ASSERT_EQUAL(info.unpacked_size, kernel.size);
        CU_ASSERT_PTR_EQUAL(info.payload, b.p + TEST_PAYLOAD_AT);
        CU_ASSERT(all[i] == COMPRESSION_NONE || info.payload_size < kernel.size);
        blob_free(&b);
    }
}

static void test_other_kinds(void)
{
    struct blob gz = payload_build(COMPRESSION_GZIP, &kernel), xz = payload_build(COMPRESSION_XZ, &kernel);
    struct image_info info;

    check_good(&kernel, &kernel);
    CU_ASSERT_EQUAL(image_probe(kernel.p, kernel.size, &info, err, sizeof(err)), 0);
    CU_ASSERT_EQUAL(info.kind, IMAGE_ELF);
    CU_ASSERT_PTR_EQUAL(info.payload, kernel.p);
    check_good(&gz, &kernel);
    CU_ASSERT_EQUAL(image_probe(gz.p, gz.size, &info, err, sizeof(err)), 0);
    CU_ASSERT_EQUAL(info.kind, IMAGE_GZIP);
    check_bad(&xz, "neither ELF nor gzip");
    blob_free(&gz);
    blob_free(&xz);
}

/* Concatenated LZ4 files, and XZ without a check. */
static void test_variants(void)
{
    struct blob payload = payload_build(COMPRESSION_LZ4, &kernel), twice, b, both;

    payload.size -= 4;
    twice = blob_copy(payload.p, payload.size);
    blob_append(&twice, payload.p, payload.size);
    blob_append(&twice, &(u32){ 2 * (u32)kernel.size }, 4);
    both = blob_copy(kernel.p, kernel.size);
    blob_append(&both, kernel.p, kernel.size);
    b = bzimage_build(&twice);
    check_good(&b, &both);
    blob_free(&b);
    blob_free(&both);
    blob_free(&twice);
    blob_free(&payload);

    payload = payload_build_xz(&kernel, LZMA_CHECK_NONE);
    b = bzimage_build(&payload);
    check_good(&b, &kernel);
    blob_free(&b);
    blob_free(&payload);
}

/* A module cut anywhere before the end of its payload; behind it nothing matters. */
static void test_truncated_module(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        struct blob b = bzimage_build_from(all[i], &kernel);
        const size_t end = b.size - TEST_TAIL;

        for (size_t n = 0; n <= b.size; n += n < 0x700 || n + 300 > end ? 1 : 97) {
            struct blob cut = blob_copy(b.p, n), out;
            int rc = unpack(&cut, &out);

            CU_ASSERT_EQUAL(rc == 0, n >= end);
            if (n < end) {
                CU_ASSERT_PTR_NOT_NULL(strstr(err, n < 0x250 ? "too short for a bzImage" :
                                              n < 3 * 512 ? "beyond the image size" : "exceeds image size"));
            }
            if (rc == 0)
                blob_free(&out);
            blob_free(&cut);
        }
        blob_free(&b);
    }
}

/* A payload cut anywhere, in an image that is otherwise consistent and keeps the right size trailer. */
static void test_truncated_payload(void)
{
    for (size_t i = 1; i < ARRAY_SIZE(all); i++) {
        struct blob payload = payload_build(all[i], &kernel);
        const size_t end = payload.size - 4;

        for (size_t n = 0; n < end; n += n < 64 || n + 64 > end ? 1 : 61) {
            struct blob cut = blob_copy(payload.p, n), b, out;
            int rc;

            blob_append(&cut, payload.p + end, 4);
            b = bzimage_build(&cut);
            rc = unpack(&b, &out);
            CU_ASSERT_NOT_EQUAL(rc, 0);
            CU_ASSERT(err[0] != '\0');
            if (rc == 0) {
                printf("%s cut at %zu of %zu accepted\n", compression_name(all[i]), n, end);
                blob_free(&out);
            }
            blob_free(&b);
            blob_free(&cut);
        }
        blob_free(&payload);
    }
}

static void test_truncated_gzip(void)
{
    struct blob gz = payload_build(COMPRESSION_GZIP, &kernel);

    for (size_t n = 3; n < gz.size; n += n < 64 || n + 64 > gz.size ? 1 : 61) {
        struct blob cut = blob_copy(gz.p, n), out;
        int rc = unpack(&cut, &out);

        CU_ASSERT_NOT_EQUAL(rc, 0);
        if (rc == 0)
            blob_free(&out);
        blob_free(&cut);
    }
    blob_free(&gz);
}

/* One byte changed: refused, or without effect (gzip's time stamp).  LZ4 has no checksum. */
static void test_corrupt(void)
{
    for (size_t i = 1; i < ARRAY_SIZE(all); i++) {
        struct blob b = bzimage_build_from(all[i], &kernel);
        const size_t end = b.size - TEST_TAIL;
        unsigned refused = 0, tried = 0;

        for (size_t n = TEST_PAYLOAD_AT; n < end; n += n < TEST_PAYLOAD_AT + 100 || n + 100 > end ? 1 : 53) {
            for (u8 flip = 1; flip; flip = (u8)(flip << 3)) {
                struct blob out;

                b.p[n] ^= flip;
                tried++;
                if (unpack(&b, &out) == 0) {
                    CU_ASSERT(all[i] == COMPRESSION_LZ4 || same(&out, &kernel));
                    blob_free(&out);
                } else {
                    refused++;
                }
                b.p[n] ^= flip;
            }
        }
        CU_ASSERT(all[i] == COMPRESSION_LZ4 ? refused > 0 : refused > tried * 9 / 10);
        check_good(&b, &kernel);
        blob_free(&b);
    }
}

static void test_forged_header(void)
{
    static const struct { size_t at; int bytes; u32 v; const char *text; } cases[] = {
        { 0x1f1, 1, 255, "setup_sects 255 puts the code at 0x20000, beyond the image size" },
        { 0x1f1, 1, 0, "payload offset 0xccc + length" },
        { 0x1f1, 1, TEST_SETUP_SECTS - 1, "neither ELF, xz, lz4, zstd nor gzip" },
        { 0x1fe, 2, 0x1234, "boot flag is 0x1234, not 0xaa55" },
        { 0x202, 4, 0x11223344, "no \"HdrS\" at 0x202 (0x11223344)" },
        { 0x206, 2, 0x207, "boot protocol 0x207 is older than 0x208" },
        { 0x248, 4, 0xffffffff, "payload offset 0x1000005ff + length" },
        { 0x248, 4, 0x7fffffff, "exceeds image size" },
        { 0x248, 4, TEST_STUB + TEST_TAIL + 1, "exceeds image size" },
        { 0x248, 4, TEST_STUB + 1, "neither ELF, xz, lz4, zstd nor gzip" },
        { 0x24c, 4, 0xffffffff, "length 0xffffffff exceeds image size" },
        { 0x24c, 4, 0x80000000, "length 0x80000000 exceeds image size" },
        { 0x24c, 4, 0, "payload of 0 bytes" },
        { 0x24c, 4, 3, "payload of 3 bytes" },
    };

    for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
        struct blob b = bzimage_build_from(COMPRESSION_LZ4, &kernel);

        memcpy(b.p + cases[c].at, &cases[c].v, (size_t)cases[c].bytes);
        check_bad(&b, cases[c].text);
        blob_free(&b);
    }
}

/* setup_sects = 0 means 4. */
static void test_setup_sects_zero(void)
{
    struct blob b = bzimage_build_from(COMPRESSION_LZ4, &kernel);

    put_u8(&b, 0x1f1, 0);
    put_u32(&b, 0x248, TEST_PAYLOAD_AT - 5 * 512 + 2048);
    for (size_t i = 0; i < 2048; i++)
        blob_append(&b, "", 1);
    memmove(b.p + TEST_PAYLOAD_AT + 2048, b.p + TEST_PAYLOAD_AT, b.size - TEST_PAYLOAD_AT - 2048);
    check_good(&b, &kernel);
    blob_free(&b);
}

static void test_wrong_trailer(void)
{
    for (size_t i = 1; i < ARRAY_SIZE(all); i++) {
        struct blob b = bzimage_build_from(all[i], &kernel);
        const size_t at = b.size - TEST_TAIL - 4;

        put_u32(&b, at, (u32)kernel.size - 1);
        check_bad(&b, compression_name(all[i]));
        put_u32(&b, at, (u32)kernel.size + 1);
        check_bad(&b, compression_name(all[i]));
        put_u32(&b, at, 1);
        check_bad(&b, compression_name(all[i]));
        put_u32(&b, at, 0);
        check_bad(&b, "kernel of 0 bytes");
        put_u32(&b, at, 0xffffffff);
        check_bad(&b, "kernel of 4294967295 bytes");
        put_u32(&b, at, 64 << 20);
        check_bad(&b, "out of memory");
        put_u32(&b, 0x24c, 4);
        check_bad(&b, all[i] == COMPRESSION_XZ ? "payload of 4 bytes" : "too short for its size trailer");
        blob_free(&b);
    }
}

/* Bytes between the compressed data and the trailer. */
static void test_stray_bytes(void)
{
    for (size_t i = 1; i < ARRAY_SIZE(all); i++) {
        struct blob payload = payload_build(all[i], &kernel), b;

        blob_append(&payload, "\xff\xff\xff\x7f", 4);
        blob_append(&payload, &(u32){ (u32)kernel.size }, 4);
        b = bzimage_build(&payload);
        check_bad(&b, compression_name(all[i]));
        blob_free(&b);
        blob_free(&payload);
    }
}

static void test_lz4_chunks(void)
{
    static const u32 forged[] = { 0, 0x7fffffff, 0xffffffff, 9u << 20 };
    struct blob b = bzimage_build_from(COMPRESSION_LZ4, &kernel);

    for (size_t i = 0; i < ARRAY_SIZE(forged); i++) {
        char text[40];

        snprintf(text, sizeof(text), "lz4: chunk of %u bytes", forged[i]);
        put_u32(&b, TEST_PAYLOAD_AT + 4, forged[i]);
        check_bad(&b, text);
    }
    blob_free(&b);
}

/* Too few bytes for the size of another chunk. */
static void test_lz4_stray_bytes(void)
{
    for (size_t n = 1; n < 4; n++) {
        struct blob payload = payload_build(COMPRESSION_LZ4, &kernel), b;
        char text[40];

        payload.size -= 4;
        blob_append(&payload, "\x01\0\0", n);
        blob_append(&payload, &(u32){ (u32)kernel.size }, 4);
        b = bzimage_build(&payload);
        snprintf(text, sizeof(text), "lz4: %zu stray bytes", n);
        check_bad(&b, text);
        blob_free(&b);
        blob_free(&payload);
    }
}

/* Headers cut short, with nothing behind them. */
static void test_xz_truncated_headers(void)
{
    struct blob payload = payload_build(COMPRESSION_XZ, &kernel);
    const size_t header = LZMA_STREAM_HEADER_SIZE;
    const size_t block = lzma_block_header_size_decode(payload.p[header]);

    for (size_t n = 0; n <= header + block; n++) {
        struct blob cut = blob_copy(payload.p, n);
        u64 need;
        int rc = decompress_scratch(COMPRESSION_XZ, cut.p, cut.size, &need, err, sizeof(err));

        CU_ASSERT_EQUAL(rc == 0, n == header || n == header + block);
        if (rc != 0) {
            CU_ASSERT_PTR_NOT_NULL(strstr(err, n < header ? "too short for a stream header" :
                                          "block header of"));
        }
        blob_free(&cut);
    }
    blob_free(&payload);
}

static void test_xz_checks(void)
{
    static const lzma_check refused[] = { LZMA_CHECK_CRC64, LZMA_CHECK_SHA256 };

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        struct blob payload = payload_build_xz(&kernel, (int)refused[i]), b = bzimage_build(&payload);
        char text[40];

        snprintf(text, sizeof(text), "xz: check type %d is not supported", (int)refused[i]);
        check_bad(&b, text);
        blob_free(&b);
        blob_free(&payload);
    }
}

/* A valid block header with another dictionary size. */
static void test_xz_dictionary(void)
{
    struct blob b = bzimage_build_from(COMPRESSION_XZ, &kernel);
    u8 *p = b.p + TEST_PAYLOAD_AT + LZMA_STREAM_HEADER_SIZE;
    lzma_filter filters[LZMA_FILTERS_MAX + 1];
    lzma_block block = { .version = 1, .check = LZMA_CHECK_CRC32, .filters = filters,
                         .header_size = lzma_block_header_size_decode(*p) };

    CU_ASSERT_EQUAL_FATAL(lzma_block_header_decode(&block, NULL, p), LZMA_OK);
    ((lzma_options_lzma *)filters[1].options)->dict_size = 1u << 30;
    CU_ASSERT_EQUAL_FATAL(lzma_block_header_encode(&block, p), LZMA_OK);
    check_bad(&b, "bytes of scratch memory needed, more than the limit 268435456");
    *p = 0xff;
    check_bad(&b, "xz: ");
    for (int i = 0; i < 2; i++)
        free(filters[i].options);
    blob_free(&b);
}

/* Less scratch memory than announced: an error, never an overrun. */
static void test_little_scratch(void)
{
    for (size_t i = 1; i < ARRAY_SIZE(all); i++) {
        struct blob b = bzimage_build_from(all[i], &kernel), out = blob_copy(kernel.p, kernel.size);
        struct image_info info;
        unsigned good = 0, bad = 0;

        CU_ASSERT_EQUAL_FATAL(image_probe(b.p, b.size, &info, err, sizeof(err)), 0);
        CU_ASSERT_EQUAL(info.scratch_size == 0, all[i] == COMPRESSION_LZ4);
        for (u64 part = 0; part <= 50; part++) {
            const u64 size = info.scratch_size * part / 50;
            u8 *scratch = malloc(size + 1);
            u64 n;

            decompress_init(scratch + 1, size);
            if (image_unpack(&info, out.p, out.size, &n, err, sizeof(err)) == 0) {
                good++;
                CU_ASSERT(same(&out, &kernel));
            } else {
                bad++;
                CU_ASSERT_PTR_NOT_NULL(strstr(err, "scratch memory"));
            }
            free(scratch);
        }
        CU_ASSERT(good > 0);
        CU_ASSERT(bad > 0 || all[i] == COMPRESSION_LZ4);
        blob_free(&out);
        blob_free(&b);
    }
}

static void test_small_destination(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        struct blob b = bzimage_build_from(all[i], &kernel);
        struct image_info info;
        u64 n;

        CU_ASSERT_EQUAL(image_probe(b.p, b.size, &info, err, sizeof(err)), 0);
        CU_ASSERT_EQUAL(image_unpack(&info, NULL, kernel.size - 1, &n, err, sizeof(err)), -1);
        CU_ASSERT_PTR_NOT_NULL(strstr(err, "does not fit in"));
        blob_free(&b);
    }
}

static void test_arena(void)
{
    static u8 region[1000];
    struct arena a;
    void *p, *q, *r;

    arena_init(&a, region + 1, sizeof(region) - 1);
    p = arena_alloc(&a, 100);
    q = arena_alloc(&a, 0);
    r = arena_alloc(&a, 200);
    CU_ASSERT(p != NULL && q != NULL && r != NULL && p != q && q != r);
    CU_ASSERT_EQUAL((uintptr_t)p % ARENA_ALIGN, 0);
    CU_ASSERT_EQUAL((uintptr_t)r % ARENA_ALIGN, 0);
    CU_ASSERT_PTR_NULL(arena_alloc(&a, 700));
    CU_ASSERT_PTR_NULL(arena_alloc(&a, ~0ull));
    CU_ASSERT_PTR_NULL(arena_alloc(&a, ~0ull - 100));
    /* In the wrong order nothing comes back before the newest goes. */
    arena_free(&a, q);
    arena_free(&a, NULL);
    CU_ASSERT_PTR_NULL(arena_alloc(&a, 700));
    arena_free(&a, r);
    CU_ASSERT_PTR_EQUAL(arena_alloc(&a, 700), q);
    arena_init(&a, region + 1, 5);
    CU_ASSERT_PTR_NULL(arena_alloc(&a, 0));
}

static struct blob read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct blob b = { 0 };
    u8 part[65536];
    size_t n;

    while (f != NULL && (n = fread(part, 1, sizeof(part), f)) > 0)
        blob_append(&b, part, n);
    if (f != NULL)
        fclose(f);
    return b;
}

/* A Debian kernel: PV, linked at the top 2 GiB. */
static void test_real_kernel(void)
{
    struct blob b = read_file(getenv("PT_TEST_VMLINUZ")), out;
    struct elf_image elf;
    int rc;

    CU_ASSERT_FATAL(b.size > 0);
    rc = unpack_limited(&b, &out, IMAGE_UNPACKED_MAX);
    if (rc != 0)
        printf("%s\n", err);
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    rc = elf_parse(out.p, out.size, &elf, err, sizeof(err));
    if (rc != 0)
        printf("%s\n", err);
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    CU_ASSERT_EQUAL(elf.virt_base, TEST_VIRT_BASE);
    CU_ASSERT_EQUAL(elf.paddr_offset, 0);
    CU_ASSERT(elf.has_init_p2m && elf.mod_start_pfn && elf.has_supported_features);
    CU_ASSERT_STRING_EQUAL(elf.loader, "generic");
    CU_ASSERT_STRING_EQUAL(elf.guest_os, "linux");
    printf("%zu bytes, entry %#llx, %u segments, VA %#llx-%#llx ", out.size, (unsigned long long)elf.entry,
           elf.nr_segments, (unsigned long long)elf.va_start, (unsigned long long)elf.va_end - 1);
    blob_free(&out);
    blob_free(&b);
}

static int make_kernel(void)
{
    struct blob notes = notes_minimal();

    kernel = elf_build(&notes);
    blob_free(&notes);
    return 0;
}

static int drop_kernel(void)
{
    blob_free(&kernel);
    return 0;
}

int main(void)
{
    const char *vmlinuz = getenv("PT_TEST_VMLINUZ");
    CU_pSuite suite;
    unsigned failures;

    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    suite = CU_add_suite("loader", make_kernel, drop_kernel);
    CU_ADD_TEST(suite, test_good);
    CU_ADD_TEST(suite, test_other_kinds);
    CU_ADD_TEST(suite, test_variants);
    CU_ADD_TEST(suite, test_truncated_module);
    CU_ADD_TEST(suite, test_truncated_payload);
    CU_ADD_TEST(suite, test_truncated_gzip);
    CU_ADD_TEST(suite, test_corrupt);
    CU_ADD_TEST(suite, test_forged_header);
    CU_ADD_TEST(suite, test_setup_sects_zero);
    CU_ADD_TEST(suite, test_wrong_trailer);
    CU_ADD_TEST(suite, test_stray_bytes);
    CU_ADD_TEST(suite, test_lz4_chunks);
    CU_ADD_TEST(suite, test_lz4_stray_bytes);
    CU_ADD_TEST(suite, test_xz_truncated_headers);
    CU_ADD_TEST(suite, test_xz_checks);
    CU_ADD_TEST(suite, test_xz_dictionary);
    CU_ADD_TEST(suite, test_little_scratch);
    CU_ADD_TEST(suite, test_small_destination);
    CU_ADD_TEST(suite, test_arena);
    if (vmlinuz != NULL && *vmlinuz != '\0')
        CU_ADD_TEST(suite, test_real_kernel);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
