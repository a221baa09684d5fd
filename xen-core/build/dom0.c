/* SPDX-License-Identifier: MIT */
/* Turns the boot modules into a running initial domain. */
#include "build/dom0.h"

#include "arch/asm.h"
#include "boot/boot.h"
#include "build/kernel.h"
#include "console.h"
#include "domain.h"
#include "memory.h"
#include "params.h"
#include "pt.h"

typedef unsigned long long ull;

enum { MODULE_KERNEL, MODULE_INITRD, MODULES_USED };

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

static void check_modules(void)
{
    const struct boot_info *bi = &boot_info;
    const struct boot_module *im = &bi->module[MODULE_INITRD];

    if (bi->nr_modules == 0)
        boot_fatal("no module: module 0 must be the kernel of the initial domain");
    for (unsigned i = 0; i < bi->nr_modules; i++) {
        const struct boot_module *m = &bi->module[i];

        if (m->start >> PAGE_SHIFT >= bi->max_mfn || m->size > (bi->max_mfn << PAGE_SHIFT) - m->start)
            boot_fatal("module %u: %#llx bytes at %#llx are not below the end of RAM %#llx", i, (ull)m->size,
                       (ull)m->start, (ull)bi->max_mfn << PAGE_SHIFT);
        if (i >= MODULES_USED)
            printk("module %u (%s) is not used\n", i, m->cmdline);
    }
    /* Its frames become the domain's, so it must not share one with anything. */
    if (bi->nr_modules > MODULE_INITRD && (im->start & (PAGE_SIZE - 1)))
        boot_fatal("module 1 (initrd): address %#llx is not a multiple of %#llx", (ull)im->start, PAGE_SIZE);
}

static u64 initrd_size(void)
{
    return boot_info.nr_modules > MODULE_INITRD ? boot_info.module[MODULE_INITRD].size : 0;
}

/* Whole frames of a module that is no longer needed. */
static u64 module_first(const struct boot_module *m) { return ROUND_UP(m->start, PAGE_SIZE) >> PAGE_SHIFT; }
static u64 module_end(const struct boot_module *m) { return (m->start + m->size) >> PAGE_SHIFT; }

static u64 module_frames(const struct boot_module *m)
{
    return module_end(m) > module_first(m) ? module_end(m) - module_first(m) : 0;
}

/* Every frame that the domain can end up with. */
static u64 available_frames(const struct kernel *k)
{
    u64 n = dom_free_frames() + k->scratch_frames + (ROUND_UP(initrd_size(), PAGE_SIZE) >> PAGE_SHIFT);

    for (unsigned i = 0; i < boot_info.nr_modules; i++)
        if (i != MODULE_INITRD)
            n += module_frames(&boot_info.module[i]);
    return n;
}

/* The kernel was copied: its unpacked file and the modules can become the domain's memory. */
static void release_sources(struct kernel *k)
{
    kernel_close(k);
    for (unsigned i = 0; i < boot_info.nr_modules; i++)
        if (i != MODULE_INITRD)
            dom_add_free_range(module_first(&boot_info.module[i]), module_end(&boot_info.module[i]));
}

static u64 choose_pages(u64 available)
{
    struct mem_option opt = { 0 };

    if (opt_dom0_mem && !mem_option_parse(opt_dom0_mem, &opt))
        param_bad("dom0_mem", opt_dom0_mem, "[min:|max:]<n>[BKMGT%] with commas between; all memory is used");
    return mem_option_pages(&opt, available);
}

static void plan(struct layout *lo, const struct kernel *k)
{
    const struct elf_image *elf = &k->elf;
    u64 available = available_frames(k);
    struct layout_request rq = {
        .virt_base = elf->virt_base, .paddr_offset = elf->paddr_offset,
        .image_start = elf->paddr_start, .image_end = elf->paddr_end, .entry = elf->entry,
        .has_hypercall_page = elf->has_hypercall_page, .hypercall_page = elf->hypercall_page,
        .has_init_p2m = elf->has_init_p2m, .init_p2m = elf->init_p2m,
        .mod_start_pfn = elf->mod_start_pfn, .mod_size = initrd_size(),
        .nr_pages = choose_pages(available),
    };
    struct layout_error err;

    if (layout_plan(&rq, lo, &err) == 0)
        return;
    if (err.memory)
        boot_fatal("dom0: too little memory for %s: %llu KiB needed, %llu KiB given (dom0_mem=%s) "
                   "of %llu KiB", err.rule, (ull)err.value * 4, (ull)err.limit * 4,
                   opt_dom0_mem ? opt_dom0_mem : "all", (ull)available * 4);
    boot_fatal("module 0 (kernel): %s: %#llx, limit %#llx", err.rule, (ull)err.value, (ull)err.limit);
}

/* The heap's first stock (memory_init) is for what grows with memory; this is for what grows with vCPUs. */
#define HEAP_FRAMES 64
#define HEAP_FRAMES_VCPU 16

static struct domain *create(u32 vcpus)
{
    struct domain *d;

    hv_heap_reserve(HEAP_FRAMES + (u64)vcpus * HEAP_FRAMES_VCPU);
    d = domain_create(0, vcpus);
    if (!d)
        boot_fatal("dom0: too little memory for %u vCPUs: %llu KiB left", vcpus, (ull)dom_free_frames() * 4);
    d->is_initial = true;
    d->mm->io_ok = true;
    dom0 = d;
    return d;
}

static void start_vcpu(struct domain *d, const struct builder *b, u64 entry)
{
    struct vcpu *v = d->vcpu[0];
    mfn_t l4 = MFN(b->p2m[b->lo.pt_pfn]);
    int rc;

    rc = pt_adopt_root(d, l4);
    if (rc == 0)
        rc = vcpu_set_initial_root(v, l4);
    if (rc)
        boot_fatal("dom0: its first page tables were refused, error %d", rc);
    v->regs = (struct cpu_regs){
        .rip = entry, .rsi = b->lo.start_info_va, .rsp = b->lo.stack_va,
        .rflags = RFLAGS_IF | 2 /* always set */, .cs = FLAT_CS64, .ss = FLAT_DS,
    };
    v->guest_kernel = true;
    v->initialised = true;
    v->down = false;
    sched_wake(&v->se);
}

static void report(const struct kernel *k, const struct domain *d)
{
    u64 kernel = (k->elf.paddr_end - k->elf.paddr_start) * 10 >> 20, initrd = initrd_size() * 10 >> 20, own;

    printk("dom0: kernel %llu.%llu MiB, initrd %llu.%llu MiB, %llu MiB, %u vCPUs\n", (ull)kernel / 10,
           (ull)kernel % 10, (ull)initrd / 10, (ull)initrd % 10, (ull)d->nr_pages >> 8, d->max_vcpus);
    own = ram_frames() - d->nr_pages - dom_free_frames();
    printk("hypervisor: %llu KiB, %llu.%02llu %% of RAM\n", (ull)own * 4, (ull)own * 100 / ram_frames(),
           (ull)own * 10000 / ram_frames() % 100);
}

void start_domains(void)
{
    const struct boot_module *module = boot_info.module;
    static struct builder b;
    static struct kernel k;
    struct domain *d;
    u64 image_pages;

    check_modules();
    kernel_open(&k, &module[MODULE_KERNEL]);
    d = create(opt_dom0_max_vcpus ? opt_dom0_max_vcpus : MIN(nr_cpus, DOM_MAX_VCPUS));
    plan(&b.lo, &k);

    builder_begin(&b, d);
    if (b.lo.mod_pages)
        builder_give_initrd(&b, &module[MODULE_INITRD]);
    /* The image first: the memory that it comes from is then part of the rest. */
    image_pages = ROUND_UP(k.elf.paddr_end - k.elf.paddr_offset, PAGE_SIZE) >> PAGE_SHIFT;
    if (image_pages > dom_free_frames())
        boot_fatal("dom0: too little memory to copy the kernel: %llu KiB needed, %llu KiB free beside its "
                   "source", (ull)image_pages * 4, (ull)dom_free_frames() * 4);
    builder_populate(&b, image_pages);
    kernel_load(&k, &b);
    release_sources(&k);
    builder_populate(&b, b.lo.nr_pages);
    d->nr_pages = b.lo.nr_pages;

    builder_start_info(&b, module_args(&module[MODULE_KERNEL]), initrd_size());
    builder_tables(&b);
    report(&k, d);
    start_vcpu(d, &b, k.elf.entry);
}
