/* SPDX-License-Identifier: MIT */
/* Tests reading ELF kernels: segments, Xen notes and their defaults, and every rule that a forged file can
 * break. */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xen/elfnote.h>

#include "build/elf.h"
#include "loader_image.h"

static char err[300];

static int parse(const struct blob *b, struct elf_image *out)
{
    err[0] = '\0';
    return elf_parse(b->p, b->size, out, err, sizeof(err));
}

static void check_bad(const struct blob *b, const char *text)
{
    struct elf_image out;

    CU_ASSERT_EQUAL(parse(b, &out), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err, text));
    CU_ASSERT_PTR_NULL(strchr(err, '\n'));
    if (!strstr(err, text))
        printf("\"%s\" instead of \"%s\"\n", err, text);
}

static bool parses(const struct blob *b, struct elf_image *out)
{
    int rc = parse(b, out);

    CU_ASSERT_EQUAL(rc, 0);
    if (rc != 0)
        printf("unexpected: %s\n", err);
    return rc == 0;
}

static struct blob elf_with(struct blob notes)
{
    struct blob b = elf_build(&notes);

    blob_free(&notes);
    return b;
}

static void test_linux_like(void)
{
    struct blob notes = notes_minimal(), b;
    struct elf_image e;
    const u64 mask_value[] = { 1, 1 };

    note_add_text(&notes, XEN_ELFNOTE_XEN_VERSION, "xen-3.0");
    note_add_text(&notes, XEN_ELFNOTE_GUEST_OS, "linux");
    note_add_text(&notes, XEN_ELFNOTE_GUEST_VERSION, "2.6");
    note_add_text(&notes, XEN_ELFNOTE_LOADER, "generic");
    note_add_text(&notes, XEN_ELFNOTE_PAE_MODE, "yes");
    note_add_text(&notes, XEN_ELFNOTE_FEATURES, "!writable_page_tables|pae_pgdir_above_4gb");
    note_add_u64(&notes, XEN_ELFNOTE_HV_START_LOW, 0xffff800000000000);
    note_add(&notes, 4, "Xen", XEN_ELFNOTE_L1_MFN_VALID, mask_value, sizeof(mask_value));
    note_add_u32(&notes, XEN_ELFNOTE_SUSPEND_CANCEL, 1);
    note_add_u64(&notes, XEN_ELFNOTE_INIT_P2M, 0x8000000000);
    note_add_u32(&notes, XEN_ELFNOTE_MOD_START_PFN, 1);
    note_add_u32(&notes, XEN_ELFNOTE_SUPPORTED_FEATURES, 0x8801);
    note_add_u64(&notes, XEN_ELFNOTE_PHYS32_ENTRY, 0x1000850);
    note_add(&notes, 4, "GNU", 3, "12345678", 8);
    b = elf_with(notes);

    if (parses(&b, &e)) {
        CU_ASSERT_EQUAL(e.entry, TEST_ENTRY);
        CU_ASSERT_EQUAL(e.virt_base, TEST_VIRT_BASE);
        CU_ASSERT_EQUAL(e.paddr_offset, 0);
        CU_ASSERT_STRING_EQUAL(e.xen_version, "xen-3.0");
        CU_ASSERT_STRING_EQUAL(e.guest_os, "linux");
        CU_ASSERT_STRING_EQUAL(e.guest_version, "2.6");
        CU_ASSERT_STRING_EQUAL(e.loader, "generic");
        CU_ASSERT_STRING_EQUAL(e.pae_mode, "yes");
        CU_ASSERT_STRING_EQUAL(e.features, "!writable_page_tables|pae_pgdir_above_4gb");
        CU_ASSERT(e.has_hv_start_low && e.hv_start_low == 0xffff800000000000);
        CU_ASSERT(e.has_l1_mfn_valid && e.l1_mfn_mask == 1 && e.l1_mfn_value == 1);
        CU_ASSERT(e.suspend_cancel && e.mod_start_pfn);
        CU_ASSERT(e.has_init_p2m && e.init_p2m == 0x8000000000);
        CU_ASSERT(e.has_supported_features && e.supported_features == 0x8801);
        CU_ASSERT_FALSE(e.has_hypercall_page);

        CU_ASSERT_EQUAL(e.paddr_start, TEST_TEXT_PADDR);
        CU_ASSERT_EQUAL(e.paddr_end, 0x1018000);
        CU_ASSERT_EQUAL(e.va_start, 0xffffffff81000000);
        CU_ASSERT_EQUAL(e.va_end, 0xffffffff81018000);
        CU_ASSERT_EQUAL_FATAL(e.nr_segments, 4);
        for (unsigned i = 0; i < 4; i++) {
            const Elf64_Phdr *p = elf_phdr(&b, i);

            CU_ASSERT_EQUAL(e.segment[i].gpa, p->p_paddr);
            CU_ASSERT_EQUAL(e.segment[i].offset, p->p_offset);
            CU_ASSERT_EQUAL(e.segment[i].filesz, p->p_filesz);
            CU_ASSERT_EQUAL(e.segment[i].memsz, p->p_memsz);
        }
    }
    blob_free(&b);
}

/* A small kernel: only a note without meaning to us, linked at 0. */
static void test_defaults(void)
{
    struct blob notes = { 0 }, b;
    struct elf_image e;

    note_add_text(&notes, XEN_ELFNOTE_GUEST_OS, "Mini-OS");
    b = elf_with(notes);
    for (unsigned i = 0; i < TEST_NOTE; i++)
        elf_phdr(&b, i)->p_paddr -= TEST_TEXT_PADDR;
    elf_header(&b)->e_entry = 0x40;
    if (parses(&b, &e)) {
        CU_ASSERT_EQUAL(e.entry, 0x40);
        CU_ASSERT_EQUAL(e.virt_base, 0);
        CU_ASSERT_EQUAL(e.paddr_offset, 0);
        CU_ASSERT_EQUAL(e.va_start, 0);
        CU_ASSERT_EQUAL(e.va_end, 0x18000);
        CU_ASSERT(!e.has_init_p2m && !e.mod_start_pfn && !e.has_hypercall_page && !e.has_supported_features);
        CU_ASSERT(!e.suspend_cancel && !e.has_hv_start_low && !e.has_l1_mfn_valid);
        CU_ASSERT_STRING_EQUAL(e.loader, "");
    }
    blob_free(&b);
}

/* Old kernels put the virtual address into p_paddr. */
static void test_paddr_offset(void)
{
    struct blob notes = notes_minimal(), b;
    struct elf_image e;

    note_add_u64(&notes, XEN_ELFNOTE_PADDR_OFFSET, TEST_VIRT_BASE);
    b = elf_with(notes);
    for (unsigned i = 0; i < TEST_NOTE; i++)
        elf_phdr(&b, i)->p_paddr += TEST_VIRT_BASE;
    if (parses(&b, &e)) {
        CU_ASSERT_EQUAL(e.segment[TEST_TEXT].gpa, TEST_TEXT_PADDR);
        CU_ASSERT_EQUAL(e.paddr_start, TEST_VIRT_BASE + TEST_TEXT_PADDR);
        CU_ASSERT_EQUAL(e.va_start, TEST_VIRT_BASE + TEST_TEXT_PADDR);
    }
    blob_free(&b);
}

/* Notes padded to 8 bytes, as their segment's alignment then says. */
static void test_note_alignment(void)
{
    struct blob notes = { 0 }, b;
    struct elf_image e;

    note_add(&notes, 8, "GNU\0", 5, "0123456789ab", 12);
    note_add(&notes, 8, "Xen", XEN_ELFNOTE_ENTRY, &(u64){ TEST_ENTRY }, 8);
    note_add(&notes, 8, "Xen", XEN_ELFNOTE_VIRT_BASE, &(u64){ TEST_VIRT_BASE }, 8);
    b = elf_with(notes);
    elf_phdr(&b, TEST_NOTE)->p_align = 8;
    if (parses(&b, &e)) {
        CU_ASSERT_EQUAL(e.entry, TEST_ENTRY);
        CU_ASSERT_EQUAL(e.virt_base, TEST_VIRT_BASE);
    }
    blob_free(&b);
}

/* Numbers may have 4 or 8 bytes, the last value may lack its padding, empty segments do not count. */
static void test_tolerated(void)
{
    struct blob notes = notes_minimal(), b;
    struct elf_image e;

    note_add_u64(&notes, XEN_ELFNOTE_MOD_START_PFN, 1);
    note_add_u32(&notes, XEN_ELFNOTE_INIT_P2M, 0x80000000);
    note_add(&notes, 4, "Xen", XEN_ELFNOTE_GUEST_OS, "four", 4);
    note_add_text(&notes, XEN_ELFNOTE_GUEST_VERSION, "a");
    notes.size -= 2;
    b = elf_with(notes);
    elf_phdr(&b, TEST_PERCPU)->p_filesz = elf_phdr(&b, TEST_PERCPU)->p_memsz = 0;
    elf_phdr(&b, TEST_PERCPU)->p_paddr = 0;
    if (parses(&b, &e)) {
        CU_ASSERT(e.mod_start_pfn && e.init_p2m == 0x80000000);
        CU_ASSERT_STRING_EQUAL(e.guest_os, "four");
        CU_ASSERT_STRING_EQUAL(e.guest_version, "a");
        CU_ASSERT_EQUAL(e.nr_segments, 3);
        CU_ASSERT_EQUAL(e.paddr_start, TEST_TEXT_PADDR);
    }
    blob_free(&b);
}

static void test_hypercall_page(void)
{
    static const struct { u64 va; const char *text; } bad[] = {
        { 0xffffffff81000800, "HYPERCALL_PAGE 0xffffffff81000800 is not page-aligned" },
        { 0xffffffff81006000, "HYPERCALL_PAGE 0xffffffff81006000 is in no loaded segment" },
        { 0xffffffff81018000, "is in no loaded segment of the image 0xffffffff81000000-0xffffffff81017fff" },
        { 0x1000, "is in no loaded segment" },
    };
    struct blob notes, b;
    struct elf_image e;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        notes = notes_minimal();
        note_add_u64(&notes, XEN_ELFNOTE_HYPERCALL_PAGE, bad[i].va);
        b = elf_with(notes);
        check_bad(&b, bad[i].text);
        blob_free(&b);
    }
    notes = notes_minimal();
    note_add_u64(&notes, XEN_ELFNOTE_HYPERCALL_PAGE, 0xffffffff81017000);
    b = elf_with(notes);
    if (parses(&b, &e))
        CU_ASSERT(e.has_hypercall_page && e.hypercall_page == 0xffffffff81017000);
    blob_free(&b);
}

/* One bad number in an otherwise good kernel. */
static void test_bad_note_values(void)
{
    static const struct { u32 type; u64 v; const char *text; } cases[] = {
        { XEN_ELFNOTE_ENTRY, 0, "entry point 0 is in no loaded segment" },
        { XEN_ELFNOTE_ENTRY, 0xffffffff80ffffff, "entry point 0xffffffff80ffffff is in no loaded segment" },
        { XEN_ELFNOTE_ENTRY, 0xffffffff81006800, "entry point 0xffffffff81006800 is in no loaded segment" },
        { XEN_ELFNOTE_ENTRY, 0xffffffff81018000, "entry point 0xffffffff81018000 is in no loaded segment" },
        { XEN_ELFNOTE_VIRT_BASE, 0x800000000000, "VIRT_BASE 0x800000000000 is not canonical" },
        { XEN_ELFNOTE_VIRT_BASE, 0xffff7fffffffffff, "VIRT_BASE 0xffff7fffffffffff is not canonical" },
        { XEN_ELFNOTE_VIRT_BASE, 0xffff800000000000,
          "VIRT_BASE 0xffff800000000000 is in the hypervisor's range" },
        { XEN_ELFNOTE_VIRT_BASE, 0xffff87ffc0000000, "range 0xffff800000000000-0xffff87ffffffffff" },
        { XEN_ELFNOTE_VIRT_BASE, 0xffffffff80000800, "VIRT_BASE 0xffffffff80000800 is not page-aligned" },
        { XEN_ELFNOTE_VIRT_BASE, 0xffffffffff000000, "image ends 0x1018000 bytes above VIRT_BASE" },
        { XEN_ELFNOTE_VIRT_BASE, 0xffffffff80000000 - PAGE_SIZE, "beyond its GiB from 0xffffffff40000000" },
        { XEN_ELFNOTE_PADDR_OFFSET, TEST_TEXT_PADDR + 1, "starts below its PADDR_OFFSET 0x1000001" },
        { XEN_ELFNOTE_INIT_P2M, 0xffff870000000000,
          "INIT_P2M 0xffff870000000000 is in the hypervisor's range" },
        { XEN_ELFNOTE_INIT_P2M, 0x8000000000000, "INIT_P2M 0x8000000000000 is not canonical" },
        { XEN_ELFNOTE_INIT_P2M, 0x8000000008, "INIT_P2M 0x8000000008 is not page-aligned" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct blob notes = notes_minimal(), b;

        note_add_u64(&notes, cases[i].type, cases[i].v);
        b = elf_with(notes);
        check_bad(&b, cases[i].text);
        blob_free(&b);
    }
}

/* One note whose value has the wrong size or text. */
static void test_bad_note_sizes(void)
{
    static const char too_long[ELF_FEATURES_MAX + 1] = { [0 ... ELF_FEATURES_MAX - 1] = 'x' };
    static const struct { u32 type; const char *value; u32 size; const char *text; } cases[] = {
        { XEN_ELFNOTE_ENTRY, "", 0, "Xen note 1 has 0 bytes, not 4 or 8" },
        { XEN_ELFNOTE_ENTRY, "12345", 5, "Xen note 1 has 5 bytes, not 4 or 8" },
        { XEN_ELFNOTE_VIRT_BASE, "123456789", 9, "Xen note 3 has 9 bytes, not 4 or 8" },
        { XEN_ELFNOTE_MOD_START_PFN, "1", 1, "Xen note 16 has 1 bytes, not 4 or 8" },
        { XEN_ELFNOTE_SUSPEND_CANCEL, "12", 2, "Xen note 14 has 2 bytes, not 4 or 8" },
        { XEN_ELFNOTE_SUPPORTED_FEATURES, "123", 3, "Xen note 17 has 3 bytes, not 4 or 8" },
        { XEN_ELFNOTE_INIT_P2M, "1234567", 7, "Xen note 15 has 7 bytes, not 4 or 8" },
        { XEN_ELFNOTE_L1_MFN_VALID, "12345678", 8,
          "Xen note 13 has 8 bytes, not mask and value pairs of 16" },
        { XEN_ELFNOTE_L1_MFN_VALID, "", 0, "Xen note 13 has 0 bytes" },
        { XEN_ELFNOTE_FEATURES, too_long, sizeof(too_long),
          "Xen note 10 is a string of 256 bytes, longer than 255" },
        { XEN_ELFNOTE_GUEST_OS, too_long, ELF_TEXT_MAX,
          "Xen note 6 is a string of 64 bytes, longer than 63" },
        { XEN_ELFNOTE_GUEST_OS, "a\nb", 4, "Xen note 6 has the byte 0xa in its string" },
        { XEN_ELFNOTE_GUEST_OS, "\xff", 2, "Xen note 6 has the byte 0xff in its string" },
        { XEN_ELFNOTE_LOADER, "grub", 5, "Xen note 8 is \"grub\", not \"generic\"" },
        { XEN_ELFNOTE_XEN_VERSION, "xen-9.9", 8, "Xen note 5 is \"xen-9.9\", not \"xen-3.0\"" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct blob notes = notes_minimal(), b;

        note_add(&notes, 4, "Xen", cases[i].type, cases[i].value, cases[i].size);
        b = elf_with(notes);
        check_bad(&b, cases[i].text);
        blob_free(&b);
    }
}

static void test_no_notes(void)
{
    struct blob notes = { 0 }, b;

    note_add(&notes, 4, "GNU", 3, "12345678", 8);
    note_add(&notes, 4, "Xe", XEN_ELFNOTE_ENTRY, "12345678", 8);
    note_add(&notes, 4, "Xen4", XEN_ELFNOTE_ENTRY, "12345678", 8);
    b = elf_with(notes);
    check_bad(&b, "no Xen ELF notes");
    elf_phdr(&b, TEST_NOTE)->p_type = PT_NULL;
    check_bad(&b, "no Xen ELF notes");
    blob_free(&b);
}

/* Note headers that point beyond their segment. */
static void test_note_bounds(void)
{
    struct blob b = elf_with(notes_minimal());
    Elf64_Phdr *p = elf_phdr(&b, TEST_NOTE);
    Elf64_Nhdr *n = (Elf64_Nhdr *)(b.p + p->p_offset);
    const u64 size = p->p_filesz, offset = p->p_offset;

    for (u64 cut = 1; cut < size; cut++) {
        struct elf_image e;

        /* Between notes the rest is simply missing. */
        p->p_filesz = cut;
        if (cut == 24 || cut == 48) {
            CU_ASSERT(parse(&b, &e) == 0 || strstr(err, "entry point"));
        } else {
            check_bad(&b, cut % 24 < 12 ? "is cut short" : "beyond its segment");
        }
    }
    p->p_filesz = size;
    n->n_descsz = 0xffffffff;
    check_bad(&b, "value size 4294967295 ends beyond its segment");
    n->n_descsz = (u32)size - 15;
    check_bad(&b, "ends beyond its segment");
    n->n_descsz = 8;
    n->n_namesz = 0xffffffff;
    check_bad(&b, "name size 4294967295");
    n->n_namesz = 0xfffffff0;
    check_bad(&b, "name size 4294967280");
    n->n_descsz = 0;
    check_bad(&b, "name size 4294967280 and value size 0 ends beyond its segment");
    n->n_descsz = 8;
    n->n_namesz = 4;
    p->p_filesz = b.size - offset + 1;
    check_bad(&b, "note segment 4 at offset");
    p->p_filesz = UINT64_MAX;
    check_bad(&b, "exceeds file size");
    p->p_filesz = size;
    p->p_offset = UINT64_MAX - 4;
    check_bad(&b, "note segment 4 at offset 0xfffffffffffffffb");
    blob_free(&b);
}

static void test_bad_header(void)
{
    static const struct { size_t at; u8 v; const char *text; } cases[] = {
        { 0, 'x', "magic is 78 45 4c 46" },
        { EI_CLASS, ELFCLASS32, "class 1, not 2" },
        { EI_DATA, ELFDATA2MSB, "data encoding 2, not 1" },
        { EI_VERSION, 0, "version 0, not 1" },
        { offsetof(Elf64_Ehdr, e_type), ET_DYN, "type 3, not 2" },
        { offsetof(Elf64_Ehdr, e_machine), EM_386, "machine 3, not 62" },
        { offsetof(Elf64_Ehdr, e_phentsize), 32, "program headers of 32 bytes, not 56" },
        { offsetof(Elf64_Ehdr, e_phnum), 0, "no program headers" },
        { offsetof(Elf64_Ehdr, e_phnum) + 1, 0xff, "65285 program headers at offset 0x40 exceed file size" },
        { offsetof(Elf64_Ehdr, e_phoff) + 7, 0xff, "program headers at offset 0xff00000000000040 exceed" },
        { offsetof(Elf64_Ehdr, e_phoff) + 2, 0x10, "program headers at offset 0x100040 exceed" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct blob b = elf_with(notes_minimal());

        put_u8(&b, cases[i].at, cases[i].v);
        check_bad(&b, cases[i].text);
        blob_free(&b);
    }
}

static void test_bad_segments(void)
{
    struct blob b = elf_with(notes_minimal());
    Elf64_Phdr *text = elf_phdr(&b, TEST_TEXT), *init = elf_phdr(&b, TEST_INIT);
    const Elf64_Phdr good_text = *text, good_init = *init;

    text->p_filesz = text->p_memsz + 1;
    check_bad(&b, "segment 0 has file size 0x4e21 above memory size 0x4e20");
    *text = good_text;
    init->p_filesz = init->p_memsz = 12001;
    check_bad(&b, "segment 3 at offset");
    *init = good_init;
    init->p_filesz = init->p_memsz = UINT64_MAX;
    check_bad(&b, "exceeds file size");
    *init = good_init;
    init->p_offset = UINT64_MAX - 100;
    check_bad(&b, "segment 3 at offset 0xffffffffffffff9b with file size 0x2ee0 exceeds file size");
    *init = good_init;
    init->p_memsz = UINT64_MAX;
    check_bad(&b, "segment 3 at address 0x1008000 with memory size 0xffffffffffffffff wraps");
    init->p_memsz = 0x40000000;
    check_bad(&b, "image ends 0x41008000 bytes above VIRT_BASE");
    *init = good_init;
    init->p_paddr = UINT64_MAX - 100;
    check_bad(&b, "wraps");
    init->p_paddr = TEST_TEXT_PADDR + 19999;
    check_bad(&b, "segment 3 at address 0x1004e1f, size 0x10000, overlaps the one at 0x1000000, size 0x4e20");
    init->p_paddr = 0x1007000 - 0xffff;
    check_bad(&b, "overlaps");
    init->p_paddr = 0x100000000;
    check_bad(&b, "image ends 0x100010000 bytes above VIRT_BASE");
    *init = good_init;
    for (unsigned i = 0; i < TEST_NOTE; i++)
        elf_phdr(&b, i)->p_type = PT_NULL;
    check_bad(&b, "no segment to load among 5 program headers");
    blob_free(&b);
}

static void test_many_segments(void)
{
    struct blob notes = notes_minimal(), b, more;
    struct elf_image e;
    Elf64_Phdr p;

    b = elf_with(notes);
    more = blob_copy(b.p, b.size);
    elf_header(&more)->e_phoff = more.size;
    for (unsigned i = 0; i < TEST_PHDRS; i++)
        blob_append(&more, elf_phdr(&b, i), sizeof(p));
    p = *elf_phdr(&b, TEST_DATA);
    while (elf_header(&more)->e_phnum < ELF_MAX_SEGMENTS + 1) {
        p.p_paddr += 0x100000;
        blob_append(&more, &p, sizeof(p));
        elf_header(&more)->e_phnum++;
    }
    if (parses(&more, &e))
        CU_ASSERT_EQUAL(e.nr_segments, ELF_MAX_SEGMENTS);
    p.p_paddr += 0x100000;
    blob_append(&more, &p, sizeof(p));
    elf_header(&more)->e_phnum++;
    check_bad(&more, "more than 16 segments");
    blob_free(&more);
    blob_free(&b);
}

static void test_truncated(void)
{
    struct blob b = elf_with(notes_minimal());

    for (size_t n = 0; n < b.size; n += n < 700 || n + 100 > b.size ? 1 : 37) {
        struct blob cut = blob_copy(b.p, n);

        check_bad(&cut, n < sizeof(Elf64_Ehdr) ? "header is 64" : "file size");
        blob_free(&cut);
    }
    blob_free(&b);
}

/* What an accepted image promises, whatever the file said. */
static void check_promises(const struct blob *b, const struct elf_image *e)
{
    bool entry_found = false;

    CU_ASSERT(e->nr_segments >= 1 && e->nr_segments <= ELF_MAX_SEGMENTS);
    CU_ASSERT(e->paddr_end - e->paddr_offset <= 1ull << 30);
    CU_ASSERT(e->virt_base < 0xffff800000000000 || e->virt_base > 0xffff87ffffffffff);
    CU_ASSERT_EQUAL(e->virt_base >> 30, (e->va_end - 1) >> 30);
    for (u32 i = 0; i < e->nr_segments; i++) {
        const struct elf_segment *s = &e->segment[i];

        CU_ASSERT(s->filesz <= s->memsz && s->memsz > 0 && s->offset + s->filesz <= b->size);
        CU_ASSERT(s->filesz <= b->size && s->gpa + s->memsz <= e->paddr_end - e->paddr_offset);
        CU_ASSERT(s->gpa >= e->paddr_start - e->paddr_offset);
        entry_found |= e->entry - e->virt_base - s->gpa < s->memsz;
        for (u32 k = 0; k < i; k++)
            CU_ASSERT(s->gpa >= e->segment[k].gpa + e->segment[k].memsz ||
                      e->segment[k].gpa >= s->gpa + s->memsz);
    }
    CU_ASSERT(entry_found);
}

/* Random changes of the headers and notes. */
static void test_random_changes(void)
{
    struct blob notes = notes_minimal(), b;
    unsigned accepted = 0, refused = 0;
    u32 seed = 12345;
    size_t end;

    note_add_text(&notes, XEN_ELFNOTE_FEATURES, "!writable_page_tables");
    note_add_u64(&notes, XEN_ELFNOTE_INIT_P2M, 0x8000000000);
    b = elf_with(notes);
    end = elf_phdr(&b, TEST_TEXT)->p_offset;
    for (int round = 0; round < 200000; round++) {
        struct elf_image e;
        size_t at[3];
        u8 old[3];

        for (int i = 0; i < 3; i++) {
            seed = seed * 1664525 + 1013904223;
            at[i] = (seed >> 8) % end;
            old[i] = b.p[at[i]];
            seed = seed * 1664525 + 1013904223;
            b.p[at[i]] = seed & 0x800000 ? (u8)(seed >> 24) : (u8)(b.p[at[i]] ^ 1 << (seed >> 24) % 8);
        }
        if (parse(&b, &e) == 0) {
            accepted++;
            check_promises(&b, &e);
        } else {
            refused++;
            CU_ASSERT(err[0] != '\0' && strchr(err, '\n') == NULL);
        }
        for (int i = 3; i-- > 0;)
            b.p[at[i]] = old[i];
    }
    CU_ASSERT(accepted > 1000 && refused > 1000);
    blob_free(&b);
}

int main(void)
{
    CU_pSuite suite;
    unsigned failures;

    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    suite = CU_add_suite("loader_elf", NULL, NULL);
    CU_ADD_TEST(suite, test_linux_like);
    CU_ADD_TEST(suite, test_defaults);
    CU_ADD_TEST(suite, test_paddr_offset);
    CU_ADD_TEST(suite, test_note_alignment);
    CU_ADD_TEST(suite, test_tolerated);
    CU_ADD_TEST(suite, test_hypercall_page);
    CU_ADD_TEST(suite, test_bad_note_values);
    CU_ADD_TEST(suite, test_bad_note_sizes);
    CU_ADD_TEST(suite, test_no_notes);
    CU_ADD_TEST(suite, test_note_bounds);
    CU_ADD_TEST(suite, test_bad_header);
    CU_ADD_TEST(suite, test_bad_segments);
    CU_ADD_TEST(suite, test_many_segments);
    CU_ADD_TEST(suite, test_truncated);
    CU_ADD_TEST(suite, test_random_changes);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
