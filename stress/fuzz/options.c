/* SPDX-License-Identifier: MIT */
/* Fuzzes the command line: all boot options, and the grammar of dom0_mem=. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/layout.h"
#include "boot/boot.h"
#include "build/layout.h"
#include "console.h"
#include "params.h"
#include "vsnprintf.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

struct boot_info boot_info;
static volatile u8 sink;

/* Reads all that is written, so that a sanitizer sees what is not there. */
void console_write(const char *buf, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sink ^= (u8)buf[i];
}

void printk(const char *fmt, ...)
{
    char buf[512];
    va_list ap;

    va_start(ap, fmt);
    (void)pt_vsnprintf(buf, sizeof(buf), fmt, ap);
    va_end(ap);
    console_write(buf, strlen(buf));
}

static void memory(const char *s, u64 available)
{
    struct mem_option opt;

    if (mem_option_parse(s, &opt) && mem_option_pages(&opt, available) > available)
        abort();
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    char *s = malloc(size + 1);
    u64 available = 0;

    if (!s)
        return 0;
    memcpy(s, data, size);
    s[size] = 0;
    memcpy(&available, data, MIN(size, sizeof(available)));
    memory(s, available);
    memory(s, 1 << 19);
    params_parse(s);
    boot_info.cmdline_cut = size >= sizeof(boot_info.cmdline);
    pt_snprintf(boot_info.cmdline, sizeof(boot_info.cmdline), "%s", s);
    params_report();
    if (opt_maxcpus < 1 || opt_maxcpus > NR_CPUS || opt_dom0_max_vcpus > 512 || opt_loglvl > 4 ||
        !opt_com1_baud || opt_com1_baud > 115200)
        abort();
    if (opt_dom0_mem)
        memory(opt_dom0_mem, available);
    free(s);
    return 0;
}
