/* SPDX-License-Identifier: MIT */
/* Reads and checks an ELF64 PV kernel: header, segments, notes, and whether they fit together. */
#include "build/elf.h"

#include <elf.h>

#include "arch/layout.h"
#include "build/elf_internal.h"
#include "pt_string.h"
#include "vsnprintf.h"

#define L2_SPAN (1ull << 30)        /* what one L2 table maps: the most an image may cover */

int elf_fail(struct elf_file *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    pt_vsnprintf(f->err, f->errlen, fmt, ap);
    va_end(ap);
    return -1;
}

static bool canonical(u64 va) { return va + (1ull << 47) < 1ull << 48; }

static int check_header(struct elf_file *f, Elf64_Ehdr *h)
{
    if (!elf_holds(f, 0, sizeof(*h)))
        return elf_fail(f, "ELF: %llu bytes, header is %llu", (ull)f->size, (ull)sizeof(*h));
    memcpy(h, f->bytes, sizeof(*h));
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
        return elf_fail(f, "ELF: magic is %02x %02x %02x %02x", h->e_ident[0], h->e_ident[1], h->e_ident[2],
                        h->e_ident[3]);
    if (h->e_ident[EI_CLASS] != ELFCLASS64)
        return elf_fail(f, "ELF: class %u, not %d (64-bit)", h->e_ident[EI_CLASS], ELFCLASS64);
    if (h->e_ident[EI_DATA] != ELFDATA2LSB)
        return elf_fail(f, "ELF: data encoding %u, not %d (little-endian)", h->e_ident[EI_DATA], ELFDATA2LSB);
    if (h->e_ident[EI_VERSION] != EV_CURRENT)
        return elf_fail(f, "ELF: version %u, not %d", h->e_ident[EI_VERSION], EV_CURRENT);
    if (h->e_machine != EM_X86_64)
        return elf_fail(f, "ELF: machine %u, not %d (x86-64)", h->e_machine, EM_X86_64);
    if (h->e_type != ET_EXEC)
        return elf_fail(f, "ELF: type %u, not %d (executable)", h->e_type, ET_EXEC);
    if (h->e_phentsize != sizeof(Elf64_Phdr))
        return elf_fail(f, "ELF: program headers of %u bytes, not %llu", h->e_phentsize,
                        (ull)sizeof(Elf64_Phdr));
    if (h->e_phnum == 0)
        return elf_fail(f, "ELF: no program headers");
    if (!elf_holds(f, h->e_phoff, (u64)h->e_phnum * sizeof(Elf64_Phdr)))
        return elf_fail(f, "ELF: %u program headers at offset %#llx exceed file size %#llx", h->e_phnum,
                        (ull)h->e_phoff, (ull)f->size);
    return 0;
}

static Elf64_Phdr program_header(const struct elf_file *f, const Elf64_Ehdr *h, unsigned i)
{
    Elf64_Phdr p;

    memcpy(&p, f->bytes + h->e_phoff + i * sizeof(p), sizeof(p));
    return p;
}

/* Adds PT_LOAD number @i; gpa is p_paddr for now. */
static int add_segment(struct elf_file *f, unsigned i, const Elf64_Phdr *p)
{
    struct elf_image *out = f->out;
    u64 end;

    if (p->p_filesz > p->p_memsz)
        return elf_fail(f, "ELF: segment %u has file size %#llx above memory size %#llx", i, (ull)p->p_filesz,
                        (ull)p->p_memsz);
    if (!elf_holds(f, p->p_offset, p->p_filesz))
        return elf_fail(f, "ELF: segment %u at offset %#llx with file size %#llx exceeds file size %#llx", i,
                        (ull)p->p_offset, (ull)p->p_filesz, (ull)f->size);
    if (p->p_memsz == 0)
        return 0;
    if (__builtin_add_overflow(p->p_paddr, p->p_memsz, &end))
        return elf_fail(f, "ELF: segment %u at address %#llx with memory size %#llx wraps", i,
                        (ull)p->p_paddr, (ull)p->p_memsz);
    for (u32 s = 0; s < out->nr_segments; s++) {
        const struct elf_segment *o = &out->segment[s];

        if (p->p_paddr < o->gpa + o->memsz && o->gpa < end)
            return elf_fail(f, "ELF: segment %u at address %#llx, size %#llx, overlaps the one at %#llx, "
                            "size %#llx", i, (ull)p->p_paddr, (ull)p->p_memsz, (ull)o->gpa, (ull)o->memsz);
    }
    if (out->nr_segments == ELF_MAX_SEGMENTS)
        return elf_fail(f, "ELF: more than %d segments to load", ELF_MAX_SEGMENTS);
    out->segment[out->nr_segments++] = (struct elf_segment){ p->p_paddr, p->p_offset, p->p_filesz,
                                                               p->p_memsz };
    out->paddr_start = MIN(out->paddr_start, p->p_paddr);
    out->paddr_end = MAX(out->paddr_end, end);
    return 0;
}

static int read_segments(struct elf_file *f, const Elf64_Ehdr *h)
{
    f->out->paddr_start = UINT64_MAX;
    for (unsigned i = 0; i < h->e_phnum; i++) {
        Elf64_Phdr p = program_header(f, h, i);

        if (p.p_type == PT_LOAD && add_segment(f, i, &p) != 0)
            return -1;
    }
    if (f->out->nr_segments == 0)
        return elf_fail(f, "ELF: no segment to load among %u program headers", h->e_phnum);
    return 0;
}

static int read_all_notes(struct elf_file *f, const Elf64_Ehdr *h)
{
    for (unsigned i = 0; i < h->e_phnum; i++) {
        Elf64_Phdr p = program_header(f, h, i);

        if (p.p_type != PT_NOTE)
            continue;
        if (!elf_holds(f, p.p_offset, p.p_filesz))
            return elf_fail(f, "ELF: note segment %u at offset %#llx with size %#llx exceeds file size %#llx",
                            i, (ull)p.p_offset, (ull)p.p_filesz, (ull)f->size);
        if (elf_read_notes(f, p.p_offset, p.p_filesz, p.p_align == 8 ? 8 : 4) != 0)
            return -1;
    }
    if (f->nr_notes == 0)
        return elf_fail(f, "ELF: no Xen ELF notes among %u program headers: not a Xen PV kernel", h->e_phnum);
    return 0;
}

/* A guest address of its own: neither in the hole between the halves nor in the hypervisor's part. */
static int check_guest_va(struct elf_file *f, const char *what, u64 va)
{
    if (!canonical(va))
        return elf_fail(f, "ELF: %s %#llx is not canonical", what, (ull)va);
    if (va >= HV_START && va < HV_END)
        return elf_fail(f, "ELF: %s %#llx is in the hypervisor's range %#llx-%#llx", what, (ull)va,
                        (ull)HV_START, (ull)HV_END - 1);
    return 0;
}

/* From p_paddr to pseudo-physical and virtual addresses. */
static int place_image(struct elf_file *f)
{
    struct elf_image *out = f->out;
    u64 base = out->virt_base, end;

    if (check_guest_va(f, "VIRT_BASE", base) != 0)
        return -1;
    if (base & (PAGE_SIZE - 1))
        return elf_fail(f, "ELF: VIRT_BASE %#llx is not page-aligned", (ull)base);
    if (out->paddr_start < out->paddr_offset)
        return elf_fail(f, "ELF: image at address %#llx starts below its PADDR_OFFSET %#llx",
                        (ull)out->paddr_start, (ull)out->paddr_offset);
    end = out->paddr_end - out->paddr_offset;
    if (end > L2_SPAN - base % L2_SPAN)
        return elf_fail(f, "ELF: image ends %#llx bytes above VIRT_BASE %#llx, beyond its GiB from %#llx on",
                        (ull)end, (ull)base, (ull)ROUND_DOWN(base, L2_SPAN));
    for (u32 s = 0; s < out->nr_segments; s++)
        out->segment[s].gpa -= out->paddr_offset;
    out->va_start = base + (out->paddr_start - out->paddr_offset);
    out->va_end = base + end;
    return 0;
}

/* Is [va, va + len) in one segment? */
static bool in_segment(const struct elf_image *out, u64 va, u64 len)
{
    for (u32 s = 0; s < out->nr_segments; s++) {
        const struct elf_segment *g = &out->segment[s];
        u64 offset = va - out->virt_base - g->gpa;     /* huge when below */

        if (offset < g->memsz && len <= g->memsz - offset)
            return true;
    }
    return false;
}

static int check_addresses(struct elf_file *f)
{
    const struct elf_image *out = f->out;

    if (!in_segment(out, out->entry, 1))
        return elf_fail(f, "ELF: entry point %#llx is in no loaded segment of the image %#llx-%#llx",
                        (ull)out->entry, (ull)out->va_start, (ull)out->va_end - 1);
    if (out->has_hypercall_page) {
        if (out->hypercall_page & (PAGE_SIZE - 1))
            return elf_fail(f, "ELF: HYPERCALL_PAGE %#llx is not page-aligned", (ull)out->hypercall_page);
        if (!in_segment(out, out->hypercall_page, PAGE_SIZE))
            return elf_fail(f, "ELF: HYPERCALL_PAGE %#llx is in no loaded segment of the image %#llx-%#llx",
                            (ull)out->hypercall_page, (ull)out->va_start, (ull)out->va_end - 1);
    }
    if (out->has_init_p2m) {
        if (check_guest_va(f, "INIT_P2M", out->init_p2m) != 0)
            return -1;
        if (out->init_p2m & (PAGE_SIZE - 1))
            return elf_fail(f, "ELF: INIT_P2M %#llx is not page-aligned", (ull)out->init_p2m);
    }
    return 0;
}

int elf_parse(const void *file, u64 size, struct elf_image *out, char *err, size_t errlen)
{
    struct elf_file f = { .bytes = file, .size = size, .out = out, .err = err, .errlen = errlen };
    Elf64_Ehdr h;

    memset(out, 0, sizeof(*out));
    if (check_header(&f, &h) != 0)
        return -1;
    out->entry = h.e_entry;
    if (read_segments(&f, &h) != 0 || read_all_notes(&f, &h) != 0 || place_image(&f) != 0)
        return -1;
    return check_addresses(&f);
}
