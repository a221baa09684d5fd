/* SPDX-License-Identifier: MIT */
/* Set-up and the test runner. */
#include "guest.h"

struct start_info *si;
shared_info_t *shared;
struct cpu cpus[NR_VCPUS];
char stacks[NR_VCPUS * 2][STACK_SIZE] __attribute__((aligned(STACK_SIZE)));
bool mode_ptwr;
u32 race_rounds = 10000;
unsigned nr_vcpus;

static char shared_page[PAGE] __attribute__((aligned(PAGE)));
extern const struct test tests_start[], tests_end[];

static unsigned failures;                       /* of the running test */
static char reason[200];

void fail_at(const char *file, int line, const char *fmt, ...)
{
    __builtin_va_list ap;
    char text[160];

    __builtin_va_start(ap, fmt);
    format_va(text, sizeof(text), fmt, ap);
    __builtin_va_end(ap);
    if (!this_cpu()->test_sp)
        say("TEST setup FAIL %s:%d: %s\n", file, line, text);
    if (!failures++)
        format(reason, sizeof(reason), "%s:%d: %s", file, line, text);
    else if (failures <= 5)
        say("  also %s:%d: %s\n", file, line, text);
}

bool check_at(const char *file, int line, const char *expr, bool ok)
{
    if (!ok)
        fail_at(file, line, "not true: %s", expr);
    return ok;
}

bool eq_at(const char *file, int line, const char *expr, long got, long want)
{
    if (got != want)
        fail_at(file, line, "%s = %#lx, expected %#lx", expr, got, want);
    return got == want;
}

void fail_trap(const struct regs *r, u64 cr2)
{
    FAIL("unexpected trap %lu, error %#lx, cr2 %#lx, rip %#lx, cs %#x", r->vec, r->err, cr2, r->rip, r->cs);
}

void abandon_test(void)
{
    struct cpu *c = this_cpu();

    if (!c->test_sp)
        shutdown(SHUTDOWN_crash);
    leave(c->test_sp);
}

static void init(struct start_info *info)
{
    char cmdline[1024];

    si = info;
    for (unsigned i = 0; i < NR_VCPUS; i++) {
        cpus[i].id = i;
        *(struct cpu **)stacks[i] = *(struct cpu **)stacks[NR_VCPUS + i] = &cpus[i];
    }
    shared = (shared_info_t *)shared_page;
    EQ(HC(update_va_mapping, shared_page, si->shared_info | P | RW | US | AC | DI, UVMF_INVLPG), 0);
    for (unsigned i = 0; i < NR_VCPUS; i++)
        cpus[i].info = &shared->vcpu_info[i];
    memset(shared->evtchn_mask, 0xff, sizeof(shared->evtchn_mask));
    register_traps();
    HC(stack_switch, 0xe02b, stacks[NR_VCPUS + 1]);
    mm_init();
    while (nr_vcpus < NR_VCPUS && HC(vcpu_op, VCPUOP_is_up, nr_vcpus) >= 0)
        nr_vcpus++;
    HC(xen_version, XENVER_commandline, cmdline);
    mode_ptwr = strstr_(cmdline, "pt_update=ptwr") != NULL;
}

static u32 number(const char *s)
{
    u32 v = 0;

    while (*s >= '0' && *s <= '9')
        v = v * 10 + (u32)(*s++ - '0');
    return v;
}

/* only=<name>:<prefix>*:... */
static bool selected(const char *name)
{
    const char *only = option("only");

    if (!only)
        return true;
    for (;; only++) {
        size_t n = 0;

        while (only[n] && only[n] != ' ' && only[n] != ':')
            n++;
        if (n && only[n - 1] == '*' ? !memcmp(only, name, n - 1) : n == strlen(name) && !memcmp(only, name, n))
            return true;
        only += n;
        if (*only != ':')
            return false;
    }
}

/* after=<name>: the tests behind that one. */
static bool started(const char *name)
{
    static bool on;
    const char *after = option("after");
    bool now = on || !after;
    size_t n = strlen(name);

    if (after && !memcmp(after, name, n) && (after[n] == ' ' || !after[n]))
        on = true;
    return now;
}

static void call_test(void *fn) { ((void (*)(void))fn)(); }

void guest_main(struct start_info *info)
{
    unsigned passed = 0, failed = 0;

    init(info);
    say("guest: %lu pages, %u vCPUs, %s, options '%s'\n", si->nr_pages, nr_vcpus,
        mode_ptwr ? "ptwr" : "emulate", (char *)si->cmd_line);
    if (option("rounds"))
        race_rounds = number(option("rounds"));
    if (option("crash"))
        run_crash(option("crash"));
    for (const struct test *t = tests_start; t < tests_end; t++) {
        unsigned pages = pages_free();
        u64 t0 = now_ns();

        if (!started(t->name) || !selected(t->name))
            continue;
        say("RUN %s\n", t->name);
        failures = 0;
        cpus[0].info->evtchn_upcall_mask = 1;
        run_guarded(call_test, (void *)t->fn, &cpus[0].test_sp);
        cpus[0].test_sp = 0;
        stop = 1;                               /* the test may not have come to that */
        vcpus_wait();
        cpus[0].info->evtchn_upcall_mask = 1;
        if (!failures && pages_free() != pages && memcmp(t->name, "vcpu_info", 9))
            FAIL("%u pages before the test, %u after", pages, pages_free());
        if (failures)
            failed++, say("TEST %s FAIL %s\n", t->name, reason);
        else
            passed++, say("TEST %s PASS %lu ms\n", t->name, (now_ns() - t0) / 1000000);
    }
    say("%u passed, %u failed\n", passed, failed);
    shutdown(SHUTDOWN_poweroff);
}
