/* SPDX-License-Identifier: MIT */
/* Synthetic kernels for the loader's tests: an ELF file laid out like Linux', and bzImages around it. */
#ifndef PT_TESTS_LOADER_IMAGE_H
#define PT_TESTS_LOADER_IMAGE_H

#include <elf.h>

#include "base/types.h"
#include "build/decompress.h"

/* A malloc()ed buffer of exactly @size bytes, so that a sanitizer sees every access beyond it. */
struct blob { u8 *p; size_t size; };

struct blob blob_copy(const void *p, size_t size);
void blob_append(struct blob *b, const void *p, size_t size);
void blob_free(struct blob *b);

/* The ELF kernel's parts, in file order: header, TEST_PHDRS program headers, notes, contents. */
enum { TEST_TEXT, TEST_DATA, TEST_PERCPU, TEST_INIT, TEST_NOTE, TEST_PHDRS };
#define TEST_VIRT_BASE 0xffffffff80000000ull
#define TEST_TEXT_PADDR 0x1000000ull
#define TEST_ENTRY     0xffffffff81000100ull

static inline Elf64_Ehdr *elf_header(const struct blob *b) { return (Elf64_Ehdr *)b->p; }
static inline Elf64_Phdr *elf_phdr(const struct blob *b, unsigned i)
{
    return (Elf64_Phdr *)(b->p + sizeof(Elf64_Ehdr)) + i;
}


/* Appends one note, each part padded to @align. */
void note_add(struct blob *notes, size_t align, const char *name, u32 type, const void *value, u32 size);
void note_add_u64(struct blob *notes, u32 type, u64 v);
void note_add_u32(struct blob *notes, u32 type, u32 v);
void note_add_text(struct blob *notes, u32 type, const char *s);

/* ENTRY, VIRT_BASE and PADDR_OFFSET, as any PV Linux has them. */
struct blob notes_minimal(void);

/* A valid kernel with exactly these notes, whose bytes are repetitive enough to compress and hold x86 calls.
 * Does not free @notes. */
struct blob elf_build(const struct blob *notes);

/* @data compressed, with the size trailer that Linux' build appends. */
struct blob payload_build(enum compression c, const struct blob *data);
/* The same for xz with the given integrity check (an lzma_check). */
struct blob payload_build_xz(const struct blob *data, int check);

/* A bzImage around @payload: TEST_SETUP_SECTS setup sectors, TEST_STUB bytes of code, the payload, TEST_TAIL
 * bytes more. */
#define TEST_SETUP_SECTS 2
#define TEST_STUB 0x2cc
#define TEST_TAIL 100
#define TEST_PAYLOAD_AT ((TEST_SETUP_SECTS + 1) * 512 + TEST_STUB)
struct blob bzimage_build(const struct blob *payload);
struct blob bzimage_build_from(enum compression c, const struct blob *data);

static inline void put_u8(struct blob *b, size_t at, u8 v) { b->p[at] = v; }
void put_u16(struct blob *b, size_t at, u16 v);
void put_u32(struct blob *b, size_t at, u32 v);

#endif
