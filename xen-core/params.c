/* SPDX-License-Identifier: MIT */
/* Boot options (Xen's names and grammar where Xen has them). */
#include "params.h"

#include "arch/layout.h"
#include "boot/boot.h"
#include "console.h"
#include "pt_string.h"
#include "vsnprintf.h"

bool opt_smep = true, opt_smap = true, opt_noreboot, opt_stats_json, opt_ptwr, opt_check, opt_pv_l1tf;
u32 opt_maxcpus = NR_CPUS, opt_dom0_max_vcpus, opt_loglvl = 2;
const char *opt_dom0_mem;
u16 opt_com1_port = 0x3f8;
u32 opt_com1_baud = 115200;

static bool console_serial = true, opt_numa = true;

/* Whole-string number, decimal or 0x; false when it is none. */
static bool number(const char *s, u64 *v)
{
    u64 base = 10, x = 0;

    if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
        base = 16;
        s += 2;
    }
    if (!*s)
        return false;
    for (; *s; s++) {
        u64 d = *s >= '0' && *s <= '9' ? (u64)(*s - '0') : (*s | 32) >= 'a' && (*s | 32) <= 'f' ? (u64)((*s | 32) - 'a' + 10) : 99;

        if (d >= base || x > (~0ull - d) / base)
            return false;
        x = x * base + d;
    }
    *v = x;
    return true;
}

static const char *set_bool(const char *v, void *to)
{
    static const char *const on[] = { "", "1", "on", "yes", "true", "enable" }, *const off[] = { "0", "off", "no", "false", "disable" };

    for (unsigned i = 0; i < ARRAY_SIZE(on); i++)
        if (!strcmp(v, on[i]))
            return *(bool *)to = true, NULL;
    for (unsigned i = 0; i < ARRAY_SIZE(off); i++)
        if (!strcmp(v, off[i]))
            return *(bool *)to = false, NULL;
    return "one of on, off";
}

static const char *set_cpus(const char *v, void *to)
{
    u64 n;

    if (!number(v, &n) || !n || n > NR_CPUS)
        return "a number from 1 to 1024";
    *(u32 *)to = (u32)n;
    return NULL;
}

static const char *set_vcpus(const char *v, void *to)
{
    u64 n;

    if (!number(v, &n) || !n || n > 512)
        return "a number from 1 to 512";
    *(u32 *)to = (u32)n;
    return NULL;
}

static const char *set_string(const char *v, void *to)
{
    if (!*v)
        return "a value is needed";
    *(const char **)to = v;
    return NULL;
}

static const char *set_mode(const char *v, void *to)
{
    if (!strcmp(v, "ptwr"))
        *(bool *)to = true;
    else if (!strcmp(v, "emulate"))
        *(bool *)to = false;
    else
        return "one of emulate, ptwr";
    return NULL;
}

static const char *set_stats(const char *v, void *to)
{
    if (!strcmp(v, "json"))
        *(bool *)to = true;
    else if (!strcmp(v, "off"))
        *(bool *)to = false;
    else
        return "one of json, off";
    return NULL;
}

static const char *set_console(const char *v, void *to)
{
    if (!strcmp(v, "com1") || !strcmp(v, "com1,vga") || !strcmp(v, "vga,com1"))
        *(bool *)to = true;
    else if (!strcmp(v, "none"))
        *(bool *)to = false;
    else
        return "one of com1, none";
    return NULL;
}

/* <baud>[,8n1[,<port>[,<irq>]]] */
static const char *set_com1(const char *v, void *to)
{
    char buf[64], *p = buf, *field[4];
    unsigned n = 0;
    u64 baud, port = 0x3f8;

    (void)to;
    if (strlen(v) >= sizeof(buf))
        return "<baud>,8n1,<port>,<irq>";
    memcpy(buf, v, strlen(v) + 1);
    while (n < 4) {
        field[n++] = p;
        p = strchr(p, ',');
        if (!p)
            break;
        *p++ = 0;
    }
    if (!number(field[0], &baud) || !baud || baud > 115200 || 115200 % baud)
        return "the baud rate divides 115200";
    if (n > 1 && strcmp(field[1], "8n1"))
        return "the format is 8n1";
    if (n > 2 && (!number(field[2], &port) || !port || port > 0xfff8))
        return "the port is an I/O address";
    opt_com1_baud = (u32)baud;
    opt_com1_port = (u16)port;
    return NULL;
}

static const char *set_loglvl(const char *v, void *to)
{
    static const char *const word[] = { "none", "error", "warning", "info", "debug" };

    for (u32 i = 0; i < ARRAY_SIZE(word); i++)
        if (!strcmp(v, word[i]))
            return *(u32 *)to = i, NULL;
    if (!strcmp(v, "all"))
        return *(u32 *)to = 4, NULL;
    return "one of none, error, warning, info, debug, all";
}

static const char *set_check(const char *v, void *to)
{
    if (!strcmp(v, "full"))
        *(bool *)to = true;
    else if (!strcmp(v, "off"))
        *(bool *)to = false;
    else
        return "one of full, off";
    return NULL;
}

static const struct param {
    const char *name;
    const char *(*set)(const char *value, void *to);    /* the broken rule, or NULL */
    void *to;
} params[] = {
    { "console", set_console, &console_serial },
    { "com1", set_com1, NULL },
    { "dom0_mem", set_string, &opt_dom0_mem },
    { "dom0_max_vcpus", set_vcpus, &opt_dom0_max_vcpus },
    { "maxcpus", set_cpus, &opt_maxcpus },
    { "numa", set_bool, &opt_numa },
    { "smap", set_bool, &opt_smap },
    { "smep", set_bool, &opt_smep },
    { "loglvl", set_loglvl, &opt_loglvl },
    { "noreboot", set_bool, &opt_noreboot },
    { "pt_update", set_mode, &opt_ptwr },
    { "stats", set_stats, &opt_stats_json },
    { "check", set_check, &opt_check },
    { "pv-l1tf", set_bool, &opt_pv_l1tf },
};

/* The first pass over the command line sets up the console; only the second, with the console there, complains. */
static bool reporting;

void param_bad(const char *name, const char *value, const char *rule)
{
    /* Piece by piece: a buffer would have a size, and a longer option would be lost.  Only the boot CPU runs. */
    const char *const piece[] = { "ptarmigan: option ", name, value ? "=" : "", value ? value : "", ": ", rule, "\n" };

    if (!reporting)
        return;
    for (unsigned i = 0; i < ARRAY_SIZE(piece); i++)
        console_write(piece[i], strlen(piece[i]));
}

static void one(char *word)
{
    char *eq = strchr(word, '=');
    const char *value = eq ? eq + 1 : "", *rule;

    if (eq)
        *eq = 0;
    if (!strcmp(word, "placeholder"))
        return;
    for (unsigned i = 0; i < ARRAY_SIZE(params); i++) {
        if (strcmp(word, params[i].name) &&
            !(params[i].set == set_bool && !strncmp(word, "no-", 3) && !strcmp(word + 3, params[i].name)))
            continue;
        rule = strcmp(word, params[i].name) ? params[i].set("off", params[i].to) : params[i].set(value, params[i].to);
        if (rule)
            param_bad(word, eq ? value : NULL, rule);
        return;
    }
    param_bad(word, eq ? value : NULL, "unknown option");
}

void params_parse(const char *cmdline)
{
    static char buf[2048];
    char *p = buf;

    pt_snprintf(buf, sizeof(buf), "%s", cmdline);
    for (bool first = true; *p; first = false) {
        char *w = p;

        while (*p && *p != ' ' && *p != '\t')
            p++;
        if (*p)
            *p++ = 0;
        if (!*w || (first && (strchr(w, '/') || !strcmp(w, "ptarmigan"))))
            continue;                          /* the loader's path */
        one(w);
    }
    if (!console_serial)
        opt_com1_port = 0;
}

void params_report(void)
{
    reporting = true;
    params_parse(boot_info.cmdline);
    if (boot_info.cmdline_cut)
        printk("options: the command line is longer than %u characters, the rest was not read\n",
               (unsigned)sizeof(boot_info.cmdline) - 1);
    printk("options: pt_update=%s smap=%s smep=%s maxcpus=%u dom0_mem=%s dom0_max_vcpus=%u numa=%s stats=%s check=%s%s\n",
           opt_ptwr ? "ptwr" : "emulate", opt_smap ? "on" : "off", opt_smep ? "on" : "off", opt_maxcpus,
           opt_dom0_mem ? opt_dom0_mem : "all", opt_dom0_max_vcpus, opt_numa ? "on" : "off",
           opt_stats_json ? "json" : "off", opt_check ? "full" : "off", opt_noreboot ? " noreboot" : "");
}
