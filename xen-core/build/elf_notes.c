/* SPDX-License-Identifier: MIT */
/* Reads the Xen notes of an ELF kernel. */
#include <elf.h>
#include <xen/elfnote.h>

#include "build/elf_internal.h"
#include "pt_string.h"

static const char owner[] = "Xen";

/* What is inside one note. */
struct note { u32 type; u64 offset; u32 size; };

/* 4 or 8 bytes, as the assembler's .long and .quad make them. */
static int read_u64(struct elf_file *f, const struct note *n, u64 *v)
{
    u32 low;

    if (n->size == sizeof(*v)) {
        memcpy(v, f->bytes + n->offset, sizeof(*v));
        return 0;
    }
    if (n->size != sizeof(low))
        return elf_fail(f, "ELF: Xen note %u has %u bytes, not 4 or 8 as a number", n->type, n->size);
    memcpy(&low, f->bytes + n->offset, sizeof(low));
    *v = low;
    return 0;
}

static int read_optional(struct elf_file *f, const struct note *n, u64 *v, bool *present)
{
    *present = true;
    return read_u64(f, n, v);
}

static int read_bool(struct elf_file *f, const struct note *n, bool *b)
{
    u64 v = 0;

    if (read_u64(f, n, &v) != 0)
        return -1;
    *b = v != 0;
    return 0;
}

static int read_text(struct elf_file *f, const struct note *n, char *text, u32 room)
{
    const char *s = (const char *)f->bytes + n->offset;
    u32 len = 0;

    while (len < n->size && s[len] != '\0')
        len++;
    if (len >= room)
        return elf_fail(f, "ELF: Xen note %u is a string of %u bytes, longer than %u", n->type, len,
                        room - 1);
    memcpy(text, s, len);
    text[len] = '\0';
    /* One line of log must stay one line. */
    for (u32 i = 0; i < len; i++)
        if (text[i] < ' ' || text[i] > '~')
            return elf_fail(f, "ELF: Xen note %u has the byte %#x in its string", n->type, (u8)text[i]);
    return 0;
}

static int expect_text(struct elf_file *f, const struct note *n, char *text, u32 room, const char *expected)
{
    if (read_text(f, n, text, room) != 0)
        return -1;
    if (strcmp(text, expected) != 0)
        return elf_fail(f, "ELF: Xen note %u is \"%s\", not \"%s\"", n->type, text, expected);
    return 0;
}

static int read_l1_mfn_valid(struct elf_file *f, const struct note *n)
{
    struct elf_image *out = f->out;
    const u32 pair = sizeof(out->l1_mfn_mask) + sizeof(out->l1_mfn_value);

    if (n->size == 0 || n->size % pair != 0)
        return elf_fail(f, "ELF: Xen note %u has %u bytes, not mask and value pairs of %u", n->type, n->size,
                        pair);
    memcpy(&out->l1_mfn_mask, f->bytes + n->offset, sizeof(out->l1_mfn_mask));
    memcpy(&out->l1_mfn_value, f->bytes + n->offset + sizeof(out->l1_mfn_mask), sizeof(out->l1_mfn_value));
    out->has_l1_mfn_valid = true;
    return 0;
}

static int read_note(struct elf_file *f, const struct note *n)
{
    struct elf_image *out = f->out;
    u64 v = 0;

    switch (n->type) {
    case XEN_ELFNOTE_ENTRY:          return read_u64(f, n, &out->entry);
    case XEN_ELFNOTE_HYPERCALL_PAGE:
        return read_optional(f, n, &out->hypercall_page, &out->has_hypercall_page);
    case XEN_ELFNOTE_VIRT_BASE:      return read_u64(f, n, &out->virt_base);
    case XEN_ELFNOTE_PADDR_OFFSET:   return read_u64(f, n, &out->paddr_offset);
    case XEN_ELFNOTE_XEN_VERSION:
        return expect_text(f, n, out->xen_version, sizeof(out->xen_version), "xen-3.0");
    case XEN_ELFNOTE_GUEST_OS:       return read_text(f, n, out->guest_os, sizeof(out->guest_os));
    case XEN_ELFNOTE_GUEST_VERSION:  return read_text(f, n, out->guest_version, sizeof(out->guest_version));
    case XEN_ELFNOTE_LOADER:         return expect_text(f, n, out->loader, sizeof(out->loader), "generic");
    case XEN_ELFNOTE_PAE_MODE:       return read_text(f, n, out->pae_mode, sizeof(out->pae_mode));
    case XEN_ELFNOTE_FEATURES:       return read_text(f, n, out->features, sizeof(out->features));
    case XEN_ELFNOTE_HV_START_LOW:   return read_optional(f, n, &out->hv_start_low, &out->has_hv_start_low);
    case XEN_ELFNOTE_L1_MFN_VALID:   return read_l1_mfn_valid(f, n);
    case XEN_ELFNOTE_SUSPEND_CANCEL: return read_bool(f, n, &out->suspend_cancel);
    case XEN_ELFNOTE_INIT_P2M:       return read_optional(f, n, &out->init_p2m, &out->has_init_p2m);
    case XEN_ELFNOTE_MOD_START_PFN:  return read_bool(f, n, &out->mod_start_pfn);
    case XEN_ELFNOTE_SUPPORTED_FEATURES:
        if (read_u64(f, n, &v) != 0)
            return -1;
        out->has_supported_features = true;
        out->supported_features = (u32)v;
        return 0;
    default:
        return 0;              /* for other loaders, or newer than this one */
    }
}

int elf_read_notes(struct elf_file *f, u64 offset, u64 length, u64 align)
{
    const u64 end = offset + length;
    Elf64_Nhdr h;

    while (offset < end) {
        u64 at = offset, name, desc;

        if (end - offset < sizeof(h))
            return elf_fail(f, "ELF: note at file offset %#llx is cut short: %llu bytes, header is %llu",
                            (ull)at, (ull)(end - offset), (ull)sizeof(h));
        memcpy(&h, f->bytes + offset, sizeof(h));
        /* 64-bit sums of 32-bit sizes and offsets inside the file: no overflow. */
        name = offset + sizeof(h);
        desc = offset + ROUND_UP(sizeof(h) + (u64)h.n_namesz, align);
        if (name + h.n_namesz > end || (h.n_descsz != 0 && desc + h.n_descsz > end))
            return elf_fail(f, "ELF: note at file offset %#llx with name size %u and value size %u ends "
                            "beyond its segment at %#llx", (ull)at, h.n_namesz, h.n_descsz, (ull)end);
        if (h.n_namesz == sizeof(owner) && memcmp(f->bytes + name, owner, sizeof(owner)) == 0) {
            f->nr_notes++;
            if (read_note(f, &(struct note){ h.n_type, desc, h.n_descsz }) != 0)
                return -1;
        }
        offset = desc + ROUND_UP((u64)h.n_descsz, align);
    }
    return 0;
}
