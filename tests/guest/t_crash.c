/* SPDX-License-Identifier: MIT */
/* What must end the guest, and only the guest: one boot each, chosen by crash=<name>. */
#include "guest.h"

static void bad_stack(u64 sp)
{
    __asm__ volatile("mov %0, %%rsp\n ud2" :: "r"(sp));
}

static void iret_from(u64 sp)
{
    __asm__ volatile("mov %0, %%rsp\n mov $23, %%eax\n syscall\n ud2" :: "r"(sp));
}

static void iret_no_user(void)
{
    struct frame_iret f = { .rip = USER_CODE, .cs = FLAT_CS, .ss = FLAT_SS, .rflags = 2, .rsp = USER_DATA };

    enter(&f, false, 0, 0);
}

static void stack_unmapped(void) { bad_stack(SCRATCH + 4096); }
static void stack_hypervisor(void) { bad_stack(0xffff830000100000); }
static void stack_noncanonical(void) { bad_stack(0x0000800000000100); }
static void stack_m2p(void) { bad_stack((u64)M2P + 0x1000); }

static void stack_read_only(void)
{
    char *p = page_alloc();

    make_ro(p);
    bad_stack((u64)p + PAGE);
}

/* A page table is no stack: the frame would be entries that nobody checked. */
static void stack_page_table(void)
{
    char *p = table_page();

    pin(1, mfn_of(p));
    bad_stack((u64)p + PAGE);
}

static struct user_space us;

static void user_with_stack(u64 sp)
{
    REQUIRE(user_space_make(&us));
    HC(stack_switch, FLAT_SS, sp);
    enter_user(user_syscall, 0, 0);
}
static void kernel_stack_hypervisor(void) { user_with_stack(0xffff830000100000); }
static void kernel_stack_noncanonical(void) { user_with_stack(0x8000000000000000); }
static void kernel_stack_zero(void) { user_with_stack(0); }
static void kernel_stack_user_only(void) { user_with_stack(USER_DATA + PAGE); }

static void no_handler(void)
{
    HC(set_trap_table, 0);
    __asm__ volatile("ud2");
}

static void no_gp_handler(void)
{
    struct frame_iret f = { .rip = 0x8000000000000000, .cs = FLAT_CS & ~3ul, .ss = FLAT_SS, .rflags = 2,
                            .rsp = (u64)stacks[NR_VCPUS] + STACK_SIZE - 2048 };

    HC(set_trap_table, 0);
    enter(&f, true, 0, 0);
}

static void iret_unmapped(void) { iret_from(SCRATCH); }
static void iret_hypervisor(void) { iret_from(0xffff830000100000); }
static void iret_noncanonical(void) { iret_from(0x7fffffffffffffff); }
static void iret_top(void) { iret_from(~0ul - 15); }

static void no_event_callback(void)
{
    struct evtchn_bind_ipi b = { .vcpu = 0 };
    struct evtchn_send s;
    struct evtchn_unmask u;

    HC(event_channel_op, EVTCHNOP_bind_ipi, &b);
    s.port = u.port = b.port;
    HC(event_channel_op, EVTCHNOP_unmask, &u);
    HC(set_callbacks, 0, 0, 0);
    cpus[0].info->evtchn_upcall_mask = 0;
    HC(event_channel_op, EVTCHNOP_send, &s);
}

static void say_crash(void) { shutdown(SHUTDOWN_crash); }

/* The crash of one vCPU while the other is in the hypervisor most of the time. */
static void busy(void *arg)
{
    (void)arg;
    for (;;)
        mmuext(MMUEXT_TLB_FLUSH_ALL, 0, 0);
}

static void crash_of_two(void)
{
    vcpu1_run(busy, NULL);
    for (unsigned i = 0; i < 1000; i++)
        mmuext(MMUEXT_TLB_FLUSH_ALL, 0, 0);
    bad_stack(SCRATCH + 4096);
}

static void crash_on_1(void *arg)
{
    (void)arg;
    bad_stack(SCRATCH + 4096);
}

/* The others are anywhere in the life of a table when the guest ends. */
static void busy_tables(void *arg)
{
    static char page[NR_VCPUS][2][PAGE] __attribute__((aligned(PAGE)));
    u64 *t[2] = { (u64 *)page[this_cpu()->id][0], (u64 *)page[this_cpu()->id][1] };

    (void)arg;
    for (;;) {
        make_rw(t[1]);
        t[1][3] = pte(mfn_of(t[0]), RWE);
        make_ro(t[0]);
        make_ro(t[1]);
        pin(2, mfn_of(t[1]));
        t[0][5] = pte(mfn_of(stacks[0]), ROE);
        mmu_update(ma(t[0], 6), pte(mfn_of(stacks[1]), ROE));
        unpin(mfn_of(t[1]));
        make_rw(t[0]);
        t[0][5] = t[0][6] = 0;
    }
}

static void crash_while_busy(void)
{
    vcpus_run(busy_tables, NULL);
    for (u64 t0 = now_ns(); now_ns() < t0 + 20000000; )
        pause_();
    bad_stack(SCRATCH + 4096);
}

static void crash_of_vcpu1(void)
{
    vcpu1_run(crash_on_1, NULL);
    busy(NULL);
}

/* Only with writable page tables: what is found when the table is taken back. */
static void ptwr_bad_entry(void)
{
    u64 *t = table_page();

    pin(1, mfn_of(t));
    t[3] = pte(foreign_mfn(0), P | RW | US);
    mmuext(MMUEXT_TLB_FLUSH_LOCAL, 0, 0);
}

/* The same entry, used before that: neither vCPU may get anywhere through it.  Who does stays where it is, for any
 * hypercall would have the table looked at: the boot then does not end. */
static void got_in(void)
{
    for (;;)
        pause_();
}

static u64 *live_table(void)
{
    u64 *t = table_page();

    pin(1, mfn_of(t));
    hook(SCRATCH, 2, t);
    return t;
}

/* The hypervisor itself must not get in either: neither by writing a result there, nor by reading an argument. */
static void ptwr_1a8bbf93_copy_to_bad_entry(void)
{
    u64 *t = live_table();

    t[3] = pte(foreign_mfn(0), P | RW | US);
    HC(xen_version, XENVER_extraversion, SCRATCH + 3 * PAGE);
}

static void ptwr_1a8bbf93_copy_from_bad_entry(void)
{
    u64 *t = live_table();

    t[3] = pte(foreign_mfn(0), P | RW | US);
    HC(mmu_update, SCRATCH + 3 * PAGE, 1, 0, DOMID_SELF);
}

static void ptwr_bad_entry_used(void)
{
    u64 *t = live_table(), v;

    t[3] = pte(foreign_mfn(0), P | RW | US);
    if (!try_read((void *)(SCRATCH + 3 * PAGE), &v) || !try_write((void *)(SCRATCH + 3 * PAGE), 0x41))
        got_in();
}

static volatile bool inside;

static void probe(void *arg)
{
    (void)arg;
    while (try_read((void *)(SCRATCH + 3 * PAGE), NULL))
        ;
    inside = true;
    got_in();
}

static void ptwr_bad_entry_other(void)
{
    u64 *t = live_table();

    vcpu1_run(probe, NULL);
    for (u64 t0 = now_ns(); now_ns() < t0 + 5000000; )
        pause_();
    while (try_write(&t[3], pte(foreign_mfn(0), P | RW | US)))
        ;                                       /* a write that is emulated is refused at once; one to an open table counts */
    for (u64 t0 = now_ns(); now_ns() < t0 + 1000000000; )
        pause_();
    if (inside)
        got_in();
}

/* Not a crash: the end comes while the other vCPU has a table open (ed80a0a1), or builds and drops them. */
static u64 *open_table;

static void keep_open(void *arg)
{
    (void)arg;
    for (unsigned i = 0; ; i++)
        *(volatile u64 *)&open_table[i & 511] = i & 512 ? pte(mfn_of(stacks[0]), ROE) : 0;
}

static void ptwr_ed80a0a1_end_while_open(void)
{
    open_table = live_table();
    vcpu1_run(keep_open, NULL);
    for (u64 t0 = now_ns(); now_ns() < t0 + 20000000; )
        pause_();
    shutdown(SHUTDOWN_poweroff);
}

static void end_while_busy(void)
{
    vcpus_run(busy_tables, NULL);
    for (u64 t0 = now_ns(); now_ns() < t0 + 20000000; )
        pause_();
    shutdown(SHUTDOWN_poweroff);
}

static const struct { const char *name; void (*fn)(void); } crash[] = {
#define CRASH(n) { #n, n }
    CRASH(iret_no_user), CRASH(stack_unmapped), CRASH(stack_hypervisor), CRASH(stack_noncanonical), CRASH(stack_m2p),
    CRASH(stack_read_only), CRASH(stack_page_table), CRASH(kernel_stack_hypervisor), CRASH(kernel_stack_noncanonical),
    CRASH(kernel_stack_zero), CRASH(kernel_stack_user_only), CRASH(no_handler), CRASH(no_gp_handler), CRASH(iret_unmapped),
    CRASH(iret_hypervisor), CRASH(iret_noncanonical), CRASH(iret_top), CRASH(no_event_callback), CRASH(say_crash),
    CRASH(crash_of_two), CRASH(crash_of_vcpu1), CRASH(ptwr_bad_entry),
    CRASH(ptwr_ed80a0a1_end_while_open), CRASH(end_while_busy), CRASH(crash_while_busy),
    CRASH(ptwr_1a8bbf93_copy_to_bad_entry), CRASH(ptwr_1a8bbf93_copy_from_bad_entry), CRASH(ptwr_bad_entry_used),
    CRASH(ptwr_bad_entry_other),
};

void run_crash(const char *name)
{
    for (unsigned i = 0; i < COUNT(crash); i++) {
        size_t n = strlen(crash[i].name);

        if (memcmp(name, crash[i].name, n) || (name[n] != ' ' && name[n]))
            continue;
        say("CRASH %s\n", crash[i].name);
        crash[i].fn();
        say("SURVIVED %s\n", crash[i].name);
        shutdown(SHUTDOWN_poweroff);
    }
    say("unknown crash %s\n", name);
    shutdown(SHUTDOWN_poweroff);
}
