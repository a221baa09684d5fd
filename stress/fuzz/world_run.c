/* SPDX-License-Identifier: MIT */
/* vCPUs on CPUs, and what they do: the parts of vcpu.c and traps.c that are more than assembly. */
#include <string.h>

#include "abi/abi.h"
#include "abi/abi_mm.h"
#include "arch/time.h"
#include "arch/traps.h"
#include "pt_work.h"
#include "ptwr.h"
#include "vcpu.h"
#include "world_internal.h"

/* The hypercall of each vCPU that is to be issued again. */
static struct { bool set; struct cpu_regs regs; } again[VCPUS];

bool sched_cpu_idle(unsigned cpu) { return !fuzz_cpu[cpu].current; }

static void unload(struct vcpu *v)
{
    struct tlb_cpu *t = &tlb_cpu[fuzz_this];

    v->regs = cpu_info()->regs;
    runstate_update(v, v->se.state == SE_BLOCKED ? RUNSTATE_blocked : RUNSTATE_runnable, now_ns());
    cpu_info()->current = NULL;
    cpu_info()->pt_work = NULL;
    t->as = AS_NONE;
    t->mode &= ~1ull;
    fuzz_write_cr3(NO_ROOT);
    sched_switched(&v->se);
}

static void load(struct vcpu *v)
{
    BUG_ON(!v->initialised || v->down || v->root_kernel.v == MFN_INVALID.v);
    cpu_info()->regs = v->regs;
    cpu_info()->current = v;
    cpu_info()->pt_work = v->work;
    load_root(v);
    dt_load(v);
    if (v->poll_nr)
        poll_done(v);
    runstate_update(v, RUNSTATE_running, now_ns());
    if (v->guest_kernel)
        runstate_publish(v);
}

bool world_schedule(void)
{
    struct vcpu *prev = current_vcpu();
    struct sched_entity *se;

    cpu_info()->work = 0;
    (void)sched_tick(now_ns());
    se = sched_pick(prev ? &prev->se : NULL, now_ns());
    if (prev && se == &prev->se) {
        if (prev->poll_nr)
            poll_done(prev);
        return true;
    }
    if (prev)
        unload(prev);
    if (se)
        load(container_of(se, struct vcpu, se));
    return se;
}

/* What a guest goes on with: in ring 3, with interrupts on, without ports. */
static void check_regs(const struct cpu_regs *r)
{
    BUG_ON((r->cs & 3) != 3 || (r->ss & 3) != 3);
    BUG_ON((r->rflags & (RFLAGS_IF | RFLAGS_IOPL | RFLAGS_VM)) != RFLAGS_IF);
}

void exit_to_guest(struct cpu_regs *regs)
{
    struct vcpu *v;

    BUG_ON(regs != &cpu_info()->regs);
    if (world_domain.dying || (cpu_info()->work && !world_schedule()))
        return;
    tlb_poll();
    v = current_vcpu();
    /* A guest without a callback would die of it. */
    if (event_deliverable(v) && v->cb_event.set)
        bounce_callback(v, regs, &v->cb_event);
    check_regs(regs);
}

void world_rest(void)
{
    unsigned me = fuzz_this;

    for (fuzz_this = 0; fuzz_this < CPUS; fuzz_this++) {
        tlb_poll();
        rcu_quiescent();
    }
    fuzz_this = me;
}

static bool somebody_runs(void)
{
    for (unsigned c = 0; c < CPUS; c++)
        if (fuzz_cpu[c].current)
            return true;
    return false;
}

bool world_cpu(unsigned cpu)
{
    fuzz_this = cpu;
    if (world_domain.dying)
        return false;
    if ((current_vcpu() && !cpu_info()->work) || world_schedule())
        return !world_domain.dying;
    if (!somebody_runs())
        sched_wake(&world_vcpu[0].se);           /* an event from outside, for the next step */
    return false;
}

void world_time(u64 ns)
{
    world_clock += ns;
    (void)world_schedule();
}

u64 *world_reg(unsigned n)
{
    struct cpu_regs *r = &cpu_info()->regs;

    return n >= 15 ? &r->rsp : &((u64 *)(void *)r)[n];
}

void world_user_mode(bool user)
{
    struct vcpu *v = current_vcpu();

    if (user && v->root_user.v != MFN_INVALID.v && v->guest_kernel)
        toggle_to_user(v);
    else if (!user)
        toggle_to_kernel(v);
}

/* Results that are the guest's own to choose. */
static bool any_result(u64 nr) { return nr == __HYPERVISOR_iret || nr == __HYPERVISOR_get_debugreg; }

static bool issue(struct vcpu *v)
{
    struct cpu_regs *r = &cpu_info()->regs;
    u64 rip = r->rip, rax = r->rax;

    r->vector = 0x100;
    again[v->id].set = false;
    world_user_mode(false);
    (void)syscall_handler(r);
    BUG_ON(v->cont.set);
    /* Its RIP is before the instruction still, unless something else was delivered first. */
    if (!world_domain.dying && r->rip == rip - 2 && r->rax == rax && current_vcpu() == v) {
        r->rip = rip;
        again[v->id].set = true;
        again[v->id].regs = *r;
    }
    BUG_ON(current_vcpu() == v && r->vector == 0x100 && r->rax == (u64)-XEN_ERESTART && !any_result(rax) && rax != r->rax);
    return again[v->id].set;
}

bool world_hypercall(u64 nr, const u64 a[5])
{
    struct cpu_regs *r = &cpu_info()->regs;

    r->rax = nr;
    r->rdi = a[0];
    r->rsi = a[1];
    r->rdx = a[2];
    r->r10 = a[3];
    r->r8 = a[4];
    return issue(current_vcpu());
}

bool world_hypercall_again(void)
{
    struct vcpu *v = current_vcpu();

    if (!v || !again[v->id].set)
        return false;
    cpu_info()->regs = again[v->id].regs;
    return issue(v);
}

/* A write fault at @va by the instruction at @rip, as guest_page_fault() of traps.c takes it. */
void world_write_fault(u64 va, u64 rip)
{
    struct vcpu *v = current_vcpu();
    struct cpu_regs *r = &cpu_info()->regs;

    r->rip = rip;
    r->error_code = 7;
    r->vector = 14;
    if (ptwr_on() && guest_range_ok(va, 1) &&
        ptwr_fault(v->domain->mm, v->guest_kernel ? v->root_kernel : v->root_user, va, 7))
        return;
    if (!(v->guest_kernel && guest_range_ok(va, 1) && emulate_pte_write(v, r, va, 7)) && v->trap[14].address)
        inject_page_fault(v, r, va, 7);
    exit_to_guest(r);
}

/* A privileged instruction at @rip. */
void world_privileged(u64 rip, unsigned vector)
{
    struct cpu_regs *r = &cpu_info()->regs;

    r->rip = rip;
    r->error_code = vector == 13 ? (u32)r->rsi & 2 : 0;
    r->vector = vector;
    emulate_privileged(current_vcpu(), r, vector);
    exit_to_guest(r);
}
