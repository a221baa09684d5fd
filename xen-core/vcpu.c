/* SPDX-License-Identifier: MIT */
/* A CPU's life: switching between vCPUs, idling, and what must happen before a guest runs. */
#include "vcpu.h"

#include "abi/abi.h"
#include "arch/apic.h"
#include "arch/asm.h"
#include "arch/machine.h"
#include "arch/time.h"
#include "arch/traps.h"
#include "base/stats.h"
#include "console.h"
#include "guest_copy.h"
#include "pt.h"
#include "stop.h"

struct domain *dom0;

/* Loads a segment register; a selector the CPU refuses becomes null, and the guest hears of it through its failsafe
 * callback. */
#define LOAD_SEG(reg, sel, bad) \
    __asm__ volatile("1: mov %[s], %%" #reg "\n2:\n" \
                     ".pushsection .text.fixup, \"ax\"\n3: mov $1, %[b]\n xor %k[s], %k[s]\n mov %[s], %%" #reg "\n jmp 2b\n" \
                     ".popsection\n" EX_TABLE("1b", "3b") : [b] "+r"(bad), [s] "+r"(sel))
#define SAVE_SEG(reg, sel) __asm__ volatile("mov %%" #reg ", %0" : "=r"(sel))

static void save_segments(struct vcpu *v)
{
    u64 active, inactive;

    SAVE_SEG(ds, v->ds);
    SAVE_SEG(es, v->es);
    SAVE_SEG(fs, v->fs);
    SAVE_SEG(gs, v->gs);
    v->fs_base = rdmsr(MSR_FS_BASE);
    active = rdmsr(MSR_GS_BASE);
    inactive = rdmsr(MSR_KERNEL_GS_BASE);
    v->gs_base_kernel = v->guest_kernel ? active : inactive;
    v->gs_base_user = v->guest_kernel ? inactive : active;
}

static bool load_segments(struct vcpu *v)
{
    u16 ds = v->ds, es = v->es, fs = v->fs, gs = v->gs;
    u32 bad = 0;

    LOAD_SEG(ds, ds, bad);
    LOAD_SEG(es, es, bad);
    LOAD_SEG(fs, fs, bad);
    LOAD_SEG(gs, gs, bad);
    wrmsr(MSR_FS_BASE, v->fs_base);
    wrmsr(MSR_GS_BASE, v->guest_kernel ? v->gs_base_kernel : v->gs_base_user);
    wrmsr(MSR_KERNEL_GS_BASE, v->guest_kernel ? v->gs_base_user : v->gs_base_kernel);
    return !bad;
}

/* The failsafe frame: ds, es, fs, gs below a bounce frame's rcx and r11 (Xen public arch-x86 headers). */
static void failsafe(struct vcpu *v, struct cpu_regs *regs)
{
    u64 sel[4] = { v->ds, v->es, v->fs, v->gs }, head[2];

    if (!v->cb_failsafe.set) {
        domain_crash(v->domain, "segment selectors %#x %#x %#x %#x cannot be loaded and there is no failsafe callback",
                     v->ds, v->es, v->fs, v->gs);
        return;
    }
    bounce_callback(v, regs, &v->cb_failsafe);
    /* bounce_callback left rcx, r11, rip, ... at rsp: the selectors go between r11 and rip. */
    if (copy_from_guest(head, regs->rsp, 16) || copy_to_guest(regs->rsp - 16, sel, 32) ||
        copy_to_guest(regs->rsp - 32, head, 16)) {
        domain_crash(v->domain, "cannot write the failsafe frame at %#llx", (unsigned long long)regs->rsp);
        return;
    }
    regs->rsp -= 32;
}

static void load_debug(struct vcpu *v)
{
    if (!(v->dr[7] & 0xff))
        return;
    __asm__ volatile("mov %0, %%dr0; mov %1, %%dr1; mov %2, %%dr2; mov %3, %%dr3"
                     :: "r"(v->dr[0]), "r"(v->dr[1]), "r"(v->dr[2]), "r"(v->dr[3]));
    __asm__ volatile("mov %0, %%dr7" :: "r"(v->dr[7]));
}

static void save_context(struct vcpu *v, const struct cpu_regs *regs)
{
    v->regs = *regs;
    save_segments(v);
    fpu_save(v);
    if (v->dr[7] & 0xff)
        __asm__ volatile("mov %0, %%dr7" :: "r"(0x400ul));
    runstate_update(v, v->se.state == SE_BLOCKED ? RUNSTATE_blocked : RUNSTATE_runnable, now_ns());
}

/* Makes @v this CPU's vCPU. */
static void load_context(struct vcpu *v, struct cpu_regs *regs)
{
    *regs = v->regs;
    regs->vector = 0;
    cpu_info()->current = v;
    cpu_info()->pt_work = v->work;
    load_root(v);
    dt_load(v);
    fpu_load(v);
    load_debug(v);
    if (cpu_caps.rdtscp)
        wrmsr(MSR_TSC_AUX, v->tsc_aux);
    if (!load_segments(v))
        failsafe(v, regs);
    if (v->poll_nr)
        poll_done(v);
    runstate_update(v, RUNSTATE_running, now_ns());
    if (v->guest_kernel)
        runstate_publish(v);
}

/* Loads the hypervisor's own root: this CPU then holds nothing of any guest. */
static void unload_root(void)
{
    struct tlb_cpu *t = &tlb_cpu[this_cpu()];

    store_release(&t->as, AS_ANY);
    write_cr3((u64)hv_l4 - DIRECTMAP_VIRT);
    store_release(&t->as, AS_NONE);                                   /* T2 */
    store_release(&t->mode, t->mode & ~1ull);
}

/* True while CPU @cpu is in its idle loop; a hint for placing woken vCPUs. */
static u8 idle_flag[NR_CPUS];
bool sched_cpu_idle(unsigned cpu) { return load_relaxed(&idle_flag[cpu]); }

/* Sleeps until there is something to run. */
static struct sched_entity *idle(void)
{
    struct cpu_info *info = cpu_info();
    struct sched_entity *next;
    u64 until, wake;

    stat_inc(sched_idle);
    store_relaxed(&idle_flag[info->cpu], 1);
    for (;;) {
        rcu_quiescent();
        tlb_poll();
        info->work = 0;
        safe_point();
        /* Timers first: one that fires may queue something here. */
        until = sched_tick(now_ns());
        next = sched_pick(NULL, now_ns());
        if (next)
            break;
        wake = rcu_next_ns(now_ns());
        if (wake <= now_ns())
            continue;                           /* more callbacks are due than run at once */
        until = MIN(until, wake);
        rcu_idle_enter();
        sched_arm(until);
        /* A kick that comes between the pick and HLT stays pending until STI takes effect, after HLT began. */
        __asm__ volatile("sti; hlt; cli" ::: "memory");
        rcu_idle_exit();
    }
    store_relaxed(&idle_flag[info->cpu], 0);
    return next;
}

void env_rcu_stall(u64 period, u64 age_ns, const u64 *late)
{
    printk("RCU: period %llu waits since %llu ms for CPU", (unsigned long long)period, (unsigned long long)age_ns / 1000000);
    for (unsigned c = 0; c < nr_cpus; c++)
        if (late[c / 64] >> (c % 64) & 1)
            printk(" %u", c);
    printk("\n");
}

static void schedule(struct cpu_regs *regs)
{
    struct cpu_info *info = cpu_info();
    struct vcpu *prev = info->current, *next;
    struct sched_entity *se;

    info->work &= ~WORK_RESCHED;
    safe_point();
    if (prev && unlikely(prev->domain->dying))
        while (!sched_block(&prev->se))
            ;
    se = sched_pick(prev ? &prev->se : NULL, now_ns());
    if (prev && se == &prev->se) {
        if (prev->poll_nr)
            poll_done(prev);
        sched_arm(sched_tick(now_ns()));
        return;
    }
    if (prev) {
        save_context(prev, regs);
        info->current = NULL;
    }
    if (!se) {
        if (prev) {
            unload_root();
            sched_switched(&prev->se);
        }
        se = idle();
    } else {
        /* The old root may be torn down by whoever runs prev next: leave it before letting prev go. */
        if (prev) {
            unload_root();
            sched_switched(&prev->se);
        }
    }
    stat_inc(sched_switch);
    next = container_of(se, struct vcpu, se);
    load_context(next, regs);
    sched_arm(sched_tick(now_ns()));
}

static __attribute__((noinline)) void exit_work(struct cpu_regs *regs)
{
    struct cpu_info *info = cpu_info();
    struct vcpu *v;

    for (;;) {
        while (unlikely(info->work) || unlikely(info->current->domain->dying))
            schedule(regs);
        v = info->current;
        tlb_poll();
        rcu_quiescent();
        if (likely(!event_deliverable(v)))
            return;
        if (!v->cb_event.set) {
            domain_crash(v->domain, "event pending, unmasked, and no event callback");
            continue;
        }
        stat_inc(bounce_event);
        bounce_callback(v, regs, &v->cb_event);
        if (likely(!v->domain->dying))
            return;
    }
}

void exit_to_guest(struct cpu_regs *regs)
{
    const struct cpu_info *info = cpu_info();
    const struct vcpu *v = info->current;

    if (unlikely(info->work | v->domain->dying) || unlikely(tlb_pending()) || unlikely(rcu_behind()) ||
        event_deliverable(v))
        exit_work(regs);
}

void cpu_run(void)
{
    struct cpu_info *info = cpu_info();

    info->current = NULL;
    unload_root();
    schedule(&info->regs);
    exit_to_guest(&info->regs);
    resume_frame(&info->regs);
}

void timer_interrupt(void)
{
    sched_arm(sched_tick(now_ns()));
    if (sched_need_resched())
        cpu_info()->work |= WORK_RESCHED;
    if (console_poll_input())
        console_input_ready();
}

void serial_interrupt(void)
{
    if (console_poll_input())
        console_input_ready();
}
