/* SPDX-License-Identifier: MIT */
/* The instructions that may fault on guest memory, each with its exception-table entry. */
#ifndef PT_GUEST_COPY_H
#define PT_GUEST_COPY_H

#include "arch/asm.h"
#include "arch/cpu.h"

/* EX_TABLE(a, b): a fault at label a continues at label b. */
#define EX_TABLE(a, b) \
    ".pushsection __ex_table, \"a\"\n .balign 8\n .quad " a ", " b "\n .popsection\n"

/* Opens and closes access to user pages where SMAP is on.  The instructions are patched in at boot (see altsites). */
#define ALT_SITE(kind) \
    ".pushsection .altsites, \"a\"\n .balign 8\n .quad 661b, " #kind "\n .popsection\n"
#define ALT_STAC 1
#define ALT_CLAC 2
#define STAC "661: .byte 0x0f, 0x1f, 0x00\n" ALT_SITE(1)       /* 3-byte NOP, becomes STAC */
#define CLAC "661: .byte 0x0f, 0x1f, 0x00\n" ALT_SITE(2)

/* Copies @len bytes; returns how many were not copied.  The range has been checked. */
static inline size_t raw_copy(void *dst, const void *src, size_t len)
{
    size_t words = len / 8, bytes = len % 8;

    __asm__ volatile(STAC "1: rep movsq\n mov %[b], %%rcx\n 2: rep movsb\n3:\n" CLAC
                     ".pushsection .text.fixup, \"ax\"\n4: lea (%[b], %%rcx, 8), %%rcx\n jmp 3b\n.popsection\n"
                     EX_TABLE("1b", "4b") EX_TABLE("2b", "3b")
                     : "+D"(dst), "+S"(src), "+c"(words) : [b] "r"(bytes) : "memory");
    return words;
}

/* Reads from a checked range of the current guest, outside of any operation on page tables; returns how many bytes were
 * not copied. */
size_t guest_read(void *dst, u64 src, size_t len);

/* Two quadwords, the shape of an mmu_update; false on a fault. */
static inline bool raw_read_pair(u64 src, u64 *a, u64 *b)
{
    u64 x, y;
    u32 ok = 1;

    __asm__ volatile(STAC "1: mov (%[s]), %[x]\n2: mov 8(%[s]), %[y]\n3:\n" CLAC
                     ".pushsection .text.fixup, \"ax\"\n4: xor %[ok], %[ok]\n jmp 3b\n.popsection\n"
                     EX_TABLE("1b", "4b") EX_TABLE("2b", "4b")
                     : [x] "=&r"(x), [y] "=&r"(y), [ok] "+r"(ok) : [s] "r"(src) : "memory");
    *a = x;
    *b = y;
    return ok;
}

static inline bool raw_write64(u64 dst, u64 v)
{
    u32 ok = 1;

    __asm__ volatile(STAC "1: mov %[v], (%[d])\n3:\n" CLAC
                     ".pushsection .text.fixup, \"ax\"\n4: xor %[ok], %[ok]\n jmp 3b\n.popsection\n"
                     EX_TABLE("1b", "4b") : [ok] "+r"(ok) : [d] "r"(dst), [v] "r"(v) : "memory");
    return ok;
}

#endif
