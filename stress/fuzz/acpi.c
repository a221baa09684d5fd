/* SPDX-License-Identifier: MIT */
/* Fuzzes the ACPI tables.  The input's first two bytes are options, the rest is one page of firmware memory, which also is the
 * last page that the direct map covers: a table there ends where nothing can be read.  Sums are put right unless the input
 * wants them wrong, or no table would ever be read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim_acpi.h"

#include "arch/cpu.h"
#include "boot/boot.h"
#include "boot/boot_internal.h"
#include "console.h"
#include "params.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define AREA   0x80000ull              /* where the search for the RSDP begins */
#define ROOM   PAGE_SIZE
#define LIMIT  (1ull << 32)            /* what the direct map covers on a small machine */
#define WRONG_SUMS(flags)  (((flags) & 0xb8) == 0xb8)
#define LONG_TABLES(flags) (((flags) & 0xb8) == 0xb0)    /* seldom: adding up megabytes takes its time */

u64 fuzz_directmap;
struct boot_info boot_info;
struct cpu_caps cpu_caps;
u32 opt_maxcpus = NR_CPUS;

void printk(const char *fmt, ...) { (void)fmt; }

/* What the physical address @pa is in the page; false: elsewhere. */
static bool in_page(u64 pa, u32 *off)
{
    *off = (u32)(pa & (ROOM - 1));
    return pa - *off == AREA || pa - *off == LIMIT - ROOM;
}

/* Makes the bytes from @p on add up to 0, through the one at @at. */
static void put_sum(u8 *p, u32 len, u32 at)
{
    u8 s = 0;

    for (u32 i = 0; i < len; i++)
        s = (u8)(s + p[i]);
    p[at] = (u8)(p[at] - s);
}

/* Sums of the tables that a table of tables at @off names (@width: of an address), and its own.  @cut: none is longer than
 * the page. */
static void put_sums(u8 *page, u32 off, u32 width, bool cut)
{
    u32 len, sub;

    if (off > ROOM - 36)
        return;
    memcpy(&len, page + off + 4, 4);
    if (cut && len > ROOM - off) {
        len = (u32)ROOM - off;
        memcpy(page + off + 4, &len, 4);
    }
    if (len < 36 || len > ROOM - off)
        return;
    for (u32 at = 36; width && at + width <= len && at < 36 + 16 * width; at += width) {
        u64 pa = 0;
        u32 dsdt;

        memcpy(&pa, page + off + at, width);
        if (!in_page(pa, &sub))
            continue;
        put_sums(page, sub, 0, cut);
        if (sub > ROOM - 44 || memcmp(page + sub, "FACP", 4))
            continue;
        memcpy(&dsdt, page + sub + 40, 4);
        if (in_page(dsdt, &sub))
            put_sums(page, sub, 0, cut);
    }
    put_sum(page + off, len, 9);
}

static void put_all_sums(u8 *page, bool cut)
{
    u32 rsdt, off;
    u64 xsdt;

    memcpy(&rsdt, page + 16, 4);
    memcpy(&xsdt, page + 24, 8);
    if (in_page(rsdt, &off))
        put_sums(page, off, 4, cut);
    if (in_page(xsdt, &off))
        put_sums(page, off, 8, cut);
    put_sum(page, 20, 8);
    put_sum(page, 36, 32);
}

static u8 *open_machine(void)
{
    /* Behind the direct map nothing can be read. */
    u8 *m = mmap(NULL, LIMIT + (1u << 25), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_FIXED, fd;
    FILE *page = tmpfile();

    fd = page ? fileno(page) : -1;
    if (m == MAP_FAILED || mprotect(m, LIMIT, prot) || ftruncate(fd, ROOM) ||
        mmap(m + AREA, ROOM, prot, flags, fd, 0) == MAP_FAILED ||
        mmap(m + LIMIT - ROOM, ROOM, prot, flags, fd, 0) == MAP_FAILED)
        abort();
    fuzz_directmap = (u64)m;
    return m + AREA;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    static u8 *page;

    if (!page)
        page = open_machine();
    if (size < 2 || size - 2 > ROOM - 8)
        return 0;
    memset(page, 0, ROOM);
    memcpy(page, "RSD PTR ", 8);
    memcpy(page + 8, data + 2, size - 2);
    if (!WRONG_SUMS(data[0]))
        put_all_sums(page, !LONG_TABLES(data[0]));
    cpu_caps.x2apic = data[0] & 2;
    opt_maxcpus = data[0] & 4 ? NR_CPUS : 1u + data[1];
    nr_possible_cpus = 1;
    acpi_setup();
    if (nr_possible_cpus > NR_CPUS || nr_possible_cpus > MAX(opt_maxcpus, 1u))
        abort();
    return 0;
}
