/* SPDX-License-Identifier: MIT */
/* Unpacks, parses and loads the kernel of the initial domain. */
#include "build/kernel.h"

#include <xen/features.h>

#include "arch/asm.h"
#include "boot/boot.h"
#include "build/bzimage.h"
#include "console.h"
#include "memory.h"
#include "pt_string.h"

#define NAME "module 0 (kernel)"

/* The decompressors were built for user space: they read a stack-protector canary at %fs:0x28. */
static u64 scratch_tls[8];

static u64 frames_of(u64 bytes) { return ROUND_UP(bytes, PAGE_SIZE) >> PAGE_SHIFT; }

/* Unpacks to scratch frames: first the file, then what the decompressor works in. */
static void unpack(struct kernel *k, const struct image_info *info)
{
    u64 file_frames = frames_of(info->unpacked_size), frames = file_frames + frames_of(info->scratch_size);
    u64 room = file_frames << PAGE_SHIFT;
    char err[256];
    u8 *mem;

    k->scratch = dom_take_range(frames);
    if (mfn_eq(k->scratch, MFN_INVALID))
        boot_fatal(NAME ": too little memory to unpack it: %llu KiB in one piece needed, "
                   "%llu KiB free in all", (unsigned long long)frames * 4,
                   (unsigned long long)dom_free_frames() * 4);
    mem = env_map(k->scratch);
    decompress_init(mem + room, (frames - file_frames) << PAGE_SHIFT);
    if (image_unpack(info, mem, room, &k->size, err, sizeof(err)))
        boot_fatal(NAME ": %s", err);
    k->file = mem;
    dom_add_free_range(k->scratch.v + file_frames, k->scratch.v + frames);
    k->scratch_frames = file_frames;
}

void kernel_open(struct kernel *k, const struct boot_module *m)
{
    const u8 *blob = (const u8 *)env_map(MFN(m->start >> PAGE_SHIFT)) + (m->start & (PAGE_SIZE - 1));
    const struct elf_image *elf = &k->elf;
    struct image_info info;
    char err[256];

    *k = (struct kernel){ .scratch = MFN_INVALID };
    wrmsr(MSR_FS_BASE, (u64)scratch_tls);
    if (image_probe(blob, m->size, &info, err, sizeof(err)))
        boot_fatal(NAME ": %s", err);
    if (info.compression == COMPRESSION_NONE) {
        k->file = info.payload;
        k->size = info.payload_size;
    } else {
        unpack(k, &info);
    }
    if (elf_parse(k->file, k->size, &k->elf, err, sizeof(err)))
        boot_fatal(NAME ": %s", err);
    if (elf->has_supported_features && !(elf->supported_features & 1u << XENFEAT_dom0))
        boot_fatal(NAME ": ELF: supported features %#x lack bit %d (can be the initial domain)",
                   elf->supported_features, XENFEAT_dom0);
}

void kernel_load(const struct kernel *k, struct builder *b)
{
    const struct elf_image *elf = &k->elf;

    for (u32 i = 0; i < elf->nr_segments; i++)
        builder_write(b, elf->segment[i].gpa, k->file + elf->segment[i].offset, elf->segment[i].filesz);
    if (elf->has_hypercall_page)
        builder_hypercall_page(builder_map(b, (elf->hypercall_page - elf->virt_base) >> PAGE_SHIFT));
}

void kernel_close(struct kernel *k)
{
    dom_add_free_range(k->scratch.v, k->scratch.v + k->scratch_frames);
    k->scratch_frames = 0;
    k->file = NULL;
}
