/* SPDX-License-Identifier: MIT */
/* Reads what the multiboot loader left (multiboot 0.6.96), and hands out memory until the real allocators run. */
#include "boot/boot.h"

#include "arch/layout.h"
#include "boot/boot_internal.h"
#include "console.h"
#include "pt_string.h"

struct boot_info boot_info;

struct mb_info {
    u32 flags, mem_lower, mem_upper, boot_device, cmdline, mods_count, mods_addr, syms[4], mmap_length, mmap_addr;
} __attribute__((packed));
struct mb_module { u32 start, end, cmdline, reserved; };
struct mb_mmap { u32 size; u64 addr, len; u32 type; } __attribute__((packed));

#define MB_BOOT_MAGIC 0x2badb002u

extern char image_start[], image_end[];

/* Boot tables map the first 4 GiB at the direct map. */
static void *low(u32 phys) { return (void *)(DIRECTMAP_VIRT + phys); }

static char module_cmdline[MODULES_MAX][1024];

static bool copy_string(char *dst, size_t n, u32 phys)
{
    const char *s = low(phys);
    size_t i = 0;

    while (phys && i + 1 < n && s[i]) {
        dst[i] = s[i];
        i++;
    }
    dst[i] = 0;
    return phys && s[i];                         /* cut */
}

/* Sorts by address and cuts overlaps: of two that overlap the less usable type wins. */
static void clean_e820(void)
{
    struct boot_info *b = &boot_info;

    for (unsigned i = 1; i < b->nr_e820; i++)
        for (unsigned k = i; k && b->e820[k].addr < b->e820[k - 1].addr; k--) {
            struct e820_entry t = b->e820[k];

            b->e820[k] = b->e820[k - 1];
            b->e820[k - 1] = t;
        }
    for (unsigned i = 0; i + 1 < b->nr_e820; i++) {
        struct e820_entry *a = &b->e820[i], *c = &b->e820[i + 1];

        if (a->addr + a->size <= c->addr)
            continue;
        if (a->type == E820_RAM) {
            a->size = c->addr - a->addr;
        } else {
            u64 end = c->addr + c->size, aend = a->addr + a->size;

            c->addr = MIN(aend, end);
            c->size = end - c->addr;
        }
    }
    for (unsigned i = 0; i < b->nr_e820; i++)
        if (b->e820[i].type == E820_RAM && b->e820[i].size)
            b->max_mfn = MAX(b->max_mfn, (b->e820[i].addr + b->e820[i].size) >> PAGE_SHIFT);
    b->max_mfn = MIN(b->max_mfn, (DIRECTMAP_END - DIRECTMAP_VIRT) >> PAGE_SHIFT);
}

void boot_read_multiboot(u32 magic, u32 mbi_phys)
{
    const struct mb_info *mbi = low(mbi_phys);
    struct boot_info *b = &boot_info;

    if (magic != MB_BOOT_MAGIC)
        boot_fatal("boot loader magic %#x: a multiboot loader passes %#x", magic, MB_BOOT_MAGIC);
    if (mbi->flags & 4)
        b->cmdline_cut = copy_string(b->cmdline, sizeof(b->cmdline), mbi->cmdline);
    if (!(mbi->flags & 0x40))
        boot_fatal("boot loader flags %#x: no memory map (bit 6)", mbi->flags);
    for (u32 off = 0; off + sizeof(struct mb_mmap) <= mbi->mmap_length && b->nr_e820 < E820_MAX;) {
        const struct mb_mmap *m = low(mbi->mmap_addr + off);

        b->e820[b->nr_e820++] = (struct e820_entry){ m->addr, m->len, m->type };
        off += m->size + 4;
    }
    clean_e820();
    if (mbi->flags & 8) {
        if (mbi->mods_count > MODULES_MAX)
            printk("boot: %u modules, only the first %u are used\n", mbi->mods_count, MODULES_MAX);
        for (u32 i = 0; i < mbi->mods_count && i < MODULES_MAX; i++) {
            const struct mb_module *m = (const struct mb_module *)low(mbi->mods_addr) + i;

            if (copy_string(module_cmdline[i], sizeof(module_cmdline[i]), m->cmdline))
                printk("boot: the command line of module %u is longer than %u characters, the rest was not read\n", i,
                       (unsigned)sizeof(module_cmdline[i]) - 1);
            b->module[i] = (struct boot_module){ m->start, m->end > m->start ? m->end - m->start : 0, module_cmdline[i] };
            b->nr_modules++;
        }
    }
}

/* The boot allocator: free ranges are e820 RAM above 1 MiB less the image and the modules; taken from the top of the
 * highest range, so that low memory stays for domains. */
#define FREE_MAX (E820_MAX + MODULES_MAX + 4)
static struct { u64 start, end; } free_range[FREE_MAX];
static unsigned nr_free;
static u64 alloc_limit;

static void free_cut(u64 start, u64 end)
{
    unsigned n = nr_free;

    start = ROUND_DOWN(start, PAGE_SIZE);
    end = ROUND_UP(end, PAGE_SIZE);
    for (unsigned i = 0; i < n; i++) {
        u64 s = free_range[i].start, e = free_range[i].end;

        if (end <= s || start >= e)
            continue;
        free_range[i].end = MAX(s, MIN(e, start));
        if (end < e && nr_free < FREE_MAX) {
            free_range[nr_free].start = MAX(s, end);
            free_range[nr_free].end = e;
            nr_free++;
        }
    }
}

void boot_alloc_begin(void)
{
    for (unsigned i = 0; i < boot_info.nr_e820 && nr_free < FREE_MAX; i++) {
        const struct e820_entry *e = &boot_info.e820[i];

        if (e->type != E820_RAM)
            continue;
        free_range[nr_free].start = ROUND_UP(e->addr, PAGE_SIZE);
        free_range[nr_free].end = MIN(ROUND_DOWN(e->addr + e->size, PAGE_SIZE), boot_info.max_mfn << PAGE_SHIFT);
        if (free_range[nr_free].start < free_range[nr_free].end)
            nr_free++;
    }
    free_cut(0, 0x100000);
    free_cut(HV_IMAGE_PHYS, HV_IMAGE_PHYS + (u64)(image_end - image_start));
    for (unsigned i = 0; i < boot_info.nr_modules; i++)
        free_cut(boot_info.module[i].start, boot_info.module[i].start + boot_info.module[i].size);
    alloc_limit = 1ull << 32;                    /* what the boot tables map */
}

void boot_alloc_limit(u64 phys) { alloc_limit = phys; }

void *boot_alloc(u64 size, u64 align)
{
    u64 best = 0;
    int at = -1;

    size = ROUND_UP(size, PAGE_SIZE);
    align = MAX(align, PAGE_SIZE);
    for (unsigned i = 0; i < nr_free; i++) {
        u64 end = MIN(free_range[i].end, alloc_limit), s;

        if (end < size)
            continue;
        s = ROUND_DOWN(end - size, align);
        if (s >= free_range[i].start && s >= best) {
            best = s;
            at = (int)i;
        }
    }
    if (at < 0)
        boot_fatal("memory: no %llu KiB left for the hypervisor's own tables", (unsigned long long)size >> 10);
    if (best + size < free_range[at].end && nr_free < FREE_MAX) {
        free_range[nr_free].start = best + size;
        free_range[nr_free].end = free_range[at].end;
        nr_free++;
    }
    free_range[at].end = best;
    void *p = (void *)(DIRECTMAP_VIRT + best);

    memset(p, 0, size);
    return p;
}

void boot_alloc_end(void (*fn)(u64 start_mfn, u64 end_mfn, void *arg), void *arg)
{
    /* Ascending, so that what asks for the lowest free frame gets it. */
    for (;;) {
        unsigned lowest = nr_free;

        for (unsigned i = 0; i < nr_free; i++)
            if (free_range[i].start < free_range[i].end &&
                (lowest == nr_free || free_range[i].start < free_range[lowest].start))
                lowest = i;
        if (lowest == nr_free)
            break;
        fn(free_range[lowest].start >> PAGE_SHIFT, free_range[lowest].end >> PAGE_SHIFT, arg);
        free_range[lowest].end = free_range[lowest].start;
    }
    nr_free = 0;
}
