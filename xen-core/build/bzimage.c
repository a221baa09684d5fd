/* SPDX-License-Identifier: MIT */
/* Finds the payload of a boot module and unpacks it. */
#include "build/bzimage.h"

#include "pt_string.h"
#include "vsnprintf.h"

/* The parts of Linux' x86 setup header that matter here, by file offset. */
#define SETUP_SECTS    0x1f1       /* u8: 512-byte sectors behind the first one; 0 means 4 */
#define BOOT_FLAG      0x1fe       /* u16 */
#define HEADER_MAGIC   0x202       /* "HdrS" */
#define PROTOCOL       0x206       /* u16 */
#define PAYLOAD_OFFSET 0x248       /* u32, from the start of the protected-mode code */
#define PAYLOAD_LENGTH 0x24c       /* u32 */
#define HEADER_END     0x250

#define BOOT_FLAG_VALUE   0xaa55
#define HEADER_MAGIC_VALUE 0x53726448u
#define PROTOCOL_PAYLOAD  0x208    /* the first with the payload fields */
#define SECTOR_SIZE       512
#define ELF_MAGIC_VALUE   0x464c457fu

#define FAIL(...) (pt_snprintf(err, errlen, __VA_ARGS__), -1)

typedef unsigned long long ull;

static u16 get_u16(const void *blob, u64 offset)
{
    u16 v;

    memcpy(&v, (const u8 *)blob + offset, sizeof(v));
    return v;
}

static u32 get_u32(const void *blob, u64 offset)
{
    u32 v;

    memcpy(&v, (const u8 *)blob + offset, sizeof(v));
    return v;
}

static bool is_elf(const void *p, u64 size)
{
    return size >= sizeof(u32) && get_u32(p, 0) == ELF_MAGIC_VALUE;
}

/* Sets payload and payload_size to what the setup header says, the size trailer included. */
static int find_payload(const void *blob, u64 size, struct image_info *out, char *err, size_t errlen)
{
    u64 sectors, start, offset, length;

    if (get_u16(blob, BOOT_FLAG) != BOOT_FLAG_VALUE)
        return FAIL("bzImage: boot flag is %#x, not %#x", get_u16(blob, BOOT_FLAG), BOOT_FLAG_VALUE);
    if (get_u16(blob, PROTOCOL) < PROTOCOL_PAYLOAD)
        return FAIL("bzImage: boot protocol %#x is older than %#x", get_u16(blob, PROTOCOL),
                    PROTOCOL_PAYLOAD);
    sectors = ((const u8 *)blob)[SETUP_SECTS];
    start = ((sectors ? sectors : 4) + 1) * SECTOR_SIZE;
    if (start > size)
        return FAIL("bzImage: setup_sects %llu puts the code at %#llx, beyond the image size %#llx",
                    (ull)sectors, (ull)start, (ull)size);
    /* 64-bit sums of 32-bit fields: no overflow. */
    offset = start + get_u32(blob, PAYLOAD_OFFSET);
    length = get_u32(blob, PAYLOAD_LENGTH);
    if (offset > size || length > size - offset)
        return FAIL("bzImage: payload offset %#llx + length %#llx exceeds image size %#llx", (ull)offset,
                    (ull)length, (ull)size);
    out->payload = (const u8 *)blob + offset;
    out->payload_size = length;
    return 0;
}

/* The trailer: the last 4 bytes.  Part of the format in gzip, appended to the others by Linux' build. */
static int read_trailer(struct image_info *out, char *err, size_t errlen)
{
    u64 trailer = sizeof(u32);

    if (out->payload_size <= trailer)
        return FAIL("%s: payload of %llu bytes is too short for its size trailer",
                    compression_name(out->compression), (ull)out->payload_size);
    out->unpacked_size = get_u32(out->payload, out->payload_size - trailer);
    if (out->compression != COMPRESSION_GZIP)
        out->payload_size -= trailer;
    return 0;
}

int image_probe(const void *blob, u64 size, struct image_info *out, char *err, size_t errlen)
{
    *out = (struct image_info){ .kind = IMAGE_ELF, .payload = blob, .payload_size = size };
    if (is_elf(blob, size)) {
        out->unpacked_size = size;
    } else if (compression_detect(blob, size) == COMPRESSION_GZIP) {
        out->kind = IMAGE_GZIP;
        out->compression = COMPRESSION_GZIP;
    } else {
        if (size < HEADER_END)
            return FAIL("not a kernel: neither ELF nor gzip, and %llu bytes are too short for a bzImage",
                        (ull)size);
        if (get_u32(blob, HEADER_MAGIC) != HEADER_MAGIC_VALUE)
            return FAIL("not a kernel: neither ELF nor gzip, and no \"HdrS\" at %#x (%#x)", HEADER_MAGIC,
                        get_u32(blob, HEADER_MAGIC));
        out->kind = IMAGE_BZIMAGE;
        if (find_payload(blob, size, out, err, errlen) != 0)
            return -1;
        out->compression = compression_detect(out->payload, out->payload_size);
        if (out->compression == COMPRESSION_NONE) {
            if (!is_elf(out->payload, out->payload_size))
                return FAIL("bzImage: payload of %llu bytes at %#llx is neither ELF, xz, lz4, zstd nor gzip "
                            "(%#x)", (ull)out->payload_size,
                            (ull)((const u8 *)out->payload - (const u8 *)blob),
                            out->payload_size < sizeof(u32) ? 0 : get_u32(out->payload, 0));
            out->unpacked_size = out->payload_size;
        }
    }
    if (out->compression != COMPRESSION_NONE && read_trailer(out, err, errlen) != 0)
        return -1;
    if (out->unpacked_size == 0 || out->unpacked_size > IMAGE_UNPACKED_MAX)
        return FAIL("kernel of %llu bytes when unpacked: must be 1 to %llu", (ull)out->unpacked_size,
                    IMAGE_UNPACKED_MAX);
    return decompress_scratch(out->compression, out->payload, out->payload_size, &out->scratch_size, err,
                              errlen);
}

int image_unpack(const struct image_info *info, void *dst, u64 dst_size, u64 *out_size, char *err,
                 size_t errlen)
{
    if (info->unpacked_size > dst_size)
        return FAIL("kernel of %llu bytes when unpacked does not fit in %llu", (ull)info->unpacked_size,
                    (ull)dst_size);
    if (decompress(info->compression, info->payload, info->payload_size, dst, info->unpacked_size, out_size,
                   err, errlen) != 0)
        return -1;
    if (*out_size != info->unpacked_size)
        return FAIL("%s: %llu bytes unpacked, but the size trailer says %llu",
                    compression_name(info->compression), (ull)*out_size, (ull)info->unpacked_size);
    return 0;
}
