/* SPDX-License-Identifier: MIT */
/* Loads the boot modules into a new initial domain. */
#include "build/dom0.h"

#include "arch/asm.h"
#include "boot/boot.h"
#include "build/builder.h"
#include "build/bzimage.h"
#include "build/elf.h"
#include "console.h"
#include "domain.h"
#include "memory.h"
#include "params.h"
#include "pt.h"
#include "pt_string.h"

#define ULL(x) ((unsigned long long)(x))

/* The arguments of a module: what follows the loader's path. */
static const char *module_args(const struct boot_module *m)
{
    const char *s = m->cmdline;

    while (*s && *s != ' ')
        s++;
    while (*s == ' ')
        s++;
    return s;
}

void builder_write(struct builder *b, u64 gpa, const void *src, u64 len)
{
    const u8 *s = src;

    while (len) {
        u64 off = gpa & (PAGE_SIZE - 1), n = MIN(len, PAGE_SIZE - off);

        memcpy((u8 *)builder_map(b, gpa >> PAGE_SHIFT) + off, s, n);
        gpa += n;
        s += n;
        len -= n;
    }
}

/* Unpacks the kernel; the result and the memory it is in. */
static u8 *unpack_kernel(const struct boot_module *m, u64 *size, mfn_t *first, u64 *frames)
{
    static u64 tls[8];                          /* the libraries' stack-protector canary lives at %fs:0x28 */
    struct image_info info;
    char err[256];
    u64 scratch;
    u8 *mem;

    wrmsr(MSR_FS_BASE, (u64)tls);
    if (image_probe(env_map(MFN(m->start >> PAGE_SHIFT)), m->size, &info, err, sizeof(err)))
        boot_fatal("module 0 (kernel): %s", err);
    scratch = ROUND_UP(info.scratch_size, PAGE_SIZE);
    *frames = (ROUND_UP(info.unpacked_size, PAGE_SIZE) + scratch) >> PAGE_SHIFT;
    *first = dom_take_range(*frames);
    if (first->v == MFN_INVALID.v)
        boot_fatal("module 0 (kernel): unpacking needs %llu KiB of contiguous memory", ULL(*frames * 4));
    mem = env_map(*first);
    decompress_init(mem + ROUND_UP(info.unpacked_size, PAGE_SIZE), scratch);
    if (image_unpack(&info, mem, ROUND_UP(info.unpacked_size, PAGE_SIZE), size, err, sizeof(err)))
        boot_fatal("module 0 (kernel): %s", err);
    return mem;
}

static void give_initrd(struct builder *b, const struct boot_module *m)
{
    for (u64 i = 0; i < b->lo.mod_pages; i++) {
        mfn_t f = MFN((m->start >> PAGE_SHIFT) + i);

        if (!dom_assign_frame(b->d, f))
            boot_fatal("module 1 (initrd): frame %#llx is not free RAM", ULL(f.v));
        b->p2m[b->lo.mod_first_pfn + i] = f.v;
    }
}

void start_domains(void)
{
    const struct boot_module *km = &boot_info.module[0], *im = &boot_info.module[1];
    static struct builder b;
    struct layout_request rq = { 0 };
    struct layout_error why;
    struct mem_option opt = { 0 };
    struct elf_image elf;
    u64 size, frames, available, list_frames;
    char err[256];
    mfn_t first, l4;
    struct vcpu *v;
    u32 vcpus = opt_dom0_max_vcpus ? opt_dom0_max_vcpus : nr_cpus;
    u8 *file;

    if (!boot_info.nr_modules)
        boot_fatal("no module: module 0 must be the kernel of the initial domain");
    if (boot_info.nr_modules > 1 && (im->start & (PAGE_SIZE - 1)))
        boot_fatal("module 1 (initrd): address %#llx is not a multiple of 4096", ULL(im->start));
    file = unpack_kernel(km, &size, &first, &frames);
    if (elf_parse(file, size, &elf, err, sizeof(err)))
        boot_fatal("module 0 (kernel): %s", err);

    hv_heap_reserve(dom_free_frames() / 256 + 512 + vcpus * 16ull);
    b.d = domain_create(0, vcpus);
    if (!b.d)
        boot_fatal("memory: not enough for a domain with %u vCPUs", vcpus);
    b.d->is_initial = true;
    b.d->mm->io_ok = true;
    dom0 = b.d;

    rq.virt_base = elf.virt_base;
    rq.paddr_offset = elf.paddr_offset;
    rq.image_start = elf.paddr_start;
    rq.image_end = elf.paddr_end;
    rq.entry = elf.entry;
    rq.has_hypercall_page = elf.has_hypercall_page;
    rq.hypercall_page = elf.hypercall_page;
    rq.has_init_p2m = elf.has_init_p2m;
    rq.init_p2m = elf.init_p2m;
    rq.mod_start_pfn = elf.mod_start_pfn;
    rq.mod_size = boot_info.nr_modules > 1 ? im->size : 0;
    if (opt_dom0_mem && !mem_option_parse(opt_dom0_mem, &opt))
        printk("option dom0_mem=%s is malformed, all memory is used\n", opt_dom0_mem);
    available = dom_free_frames() + ((rq.mod_size + PAGE_SIZE - 1) >> PAGE_SHIFT);
    rq.nr_pages = mem_option_pages(&opt, available);
    if (layout_plan(&rq, &b.lo, &why))
        boot_fatal("dom0: %s: %llu (limit %llu)", why.rule, ULL(why.value), ULL(why.limit));
    b.d->nr_pages = b.lo.nr_pages;

    /* The p2m list first, contiguous, because everything else goes through it. */
    list_frames = b.lo.list_pages;
    b.list_mfn = dom_take_range(list_frames);
    if (b.list_mfn.v == MFN_INVALID.v)
        boot_fatal("dom0: no %llu contiguous frames for its p2m list", ULL(list_frames));
    b.p2m = env_map(b.list_mfn);
    memset(b.p2m, 0xff, list_frames << PAGE_SHIFT);
    for (u64 i = 0; i < list_frames; i++) {
        dom_assign_frame(b.d, MFN(b.list_mfn.v + i));
        b.p2m[b.lo.list_first_pfn + i] = b.list_mfn.v + i;
    }
    if (rq.mod_size)
        give_initrd(&b, im);
    for (u64 pfn = 0; pfn < b.lo.nr_pages; pfn++) {
        if (b.p2m[pfn] == ~0ull) {
            mfn_t m = dom_alloc_frame(b.d);

            if (m.v == MFN_INVALID.v)
                boot_fatal("dom0: memory ran out at page %llu of %llu", ULL(pfn), ULL(b.lo.nr_pages));
            b.p2m[pfn] = m.v;
        }
        m2p_set(MFN(b.p2m[pfn]), pfn);
    }
    for (unsigned i = 0; i < elf.nr_segments; i++)
        builder_write(&b, elf.segment[i].gpa, file + elf.segment[i].offset, elf.segment[i].filesz);
    if (elf.has_hypercall_page)
        builder_hypercall_page(builder_map(&b, (elf.hypercall_page - elf.virt_base) >> PAGE_SHIFT));
    builder_start_info(&b, module_args(km), rq.mod_size);
    l4 = builder_tables(&b);
    if (pt_adopt_root(b.d, l4))
        boot_fatal("dom0: its first page tables are not valid");

    v = b.d->vcpu[0];
    if (vcpu_set_initial_root(v, l4))
        boot_fatal("dom0: its first root table is not valid");
    v->regs.rip = elf.entry;
    v->regs.rsi = b.lo.start_info_va;
    v->regs.rsp = b.lo.stack_va;
    v->regs.rflags = RFLAGS_IF | 2;
    v->regs.cs = FLAT_CS64;
    v->regs.ss = FLAT_DS;
    v->initialised = true;
    v->down = false;
    printk("dom0: kernel %llu KiB, initrd %llu KiB, %llu MiB, %u vCPUs\n", ULL(elf.paddr_end - elf.paddr_start) >> 10,
           ULL(rq.mod_size) >> 10, ULL(b.lo.nr_pages) >> 8, vcpus);
    dom_add_free_range(first.v, first.v + frames);
    sched_wake(&v->se);
}
