/* SPDX-License-Identifier: MIT */
/* What lies below the ABI code on the metal, as far as a fuzzed guest can notice it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/abi.h"
#include "arch/apic.h"
#include "arch/machine.h"
#include "arch/time.h"
#include "base/modes.h"
#include "boot/boot.h"
#include "boot/boot_internal.h"
#include "console.h"
#include "memory.h"
#include "params.h"
#include "ptwr.h"
#include "vcpu.h"
#include "world_internal.h"

struct cpu_info fuzz_cpu[CPUS];
unsigned fuzz_this;
u64 fuzz_cr3[CPUS];
struct frame *env_frame_table;
u64 env_stats[NR_CPUS][ENV_STATS_MAX] __attribute__((section("fuzz_stats")));  /* large, and of no effect */
u64 host_budget, world_clock;
unsigned world_heap_left, world_preempt;
bool env_ptwr_on;
struct domain *dom0;
struct boot_info boot_info;
struct cpu_caps cpu_caps;
struct time_scale time_scale = { 0, 1u << 31, 1 };
unsigned nr_cpus = CPUS;
u64 wallclock_base_ns;
u32 cpu_apicid[NR_CPUS];
u8 world_memory[FRAMES][PAGE_SIZE] __attribute__((aligned(4096)));

static u64 m2p[FRAMES], msr[4], tsc;
static unsigned asked;                 /* whether to suspend */
static void *heap;                     /* free pages, linked through their first words */
static u8 gdt_page[CPUS][PAGE_SIZE] __attribute__((aligned(4096)));
static volatile u8 sink;               /* all that is written is also read, so that a sanitizer sees what is not there */

unsigned env_cpu(void) { return fuzz_this; }
unsigned env_nr_cpus(void) { return CPUS; }
u64 env_tsc(void) { return ++tsc; }
u64 env_now(void) { return world_clock += 1000; }
u64 now_ns(void) { return world_clock += 1000; }
u64 ns_to_tsc(u64 ns) { return ns; }
void env_flush_local(void) { }
void env_invlpg_local(u64 va) { (void)va; }
struct pt_work *env_work(void) { return cpu_info()->pt_work; }
bool env_preempt(void) { return world_preempt && ++asked % world_preempt == 0; }
void env_rcu_stall(u64 period, u64 age, const u64 *late) { (void)period; (void)age; (void)late; }

void env_kick(unsigned cpu)
{
    BUG_ON(cpu >= CPUS);
    fuzz_cpu[cpu].work |= WORK_RESCHED;
}

void env_send_tlb_ipi(unsigned cpu)
{
    unsigned me = fuzz_this;

    BUG_ON(cpu >= CPUS);
    fuzz_this = cpu;                   /* it takes the interrupt at once */
    tlb_poll();
    fuzz_this = me;
}

void *env_map(mfn_t mfn)
{
    BUG_ON(mfn.v >= FRAMES);
    return world_memory[mfn.v];
}

mfn_t env_mfn_of(const void *page) { return MFN((u64)((const u8 *)page - (const u8 *)world_memory) >> PAGE_SHIFT); }

void *env_page_alloc(void)
{
    void *p = world_heap_left ? heap : NULL;

    if (p) {
        world_heap_left--;
        memcpy(&heap, p, sizeof(heap));
        memset(p, 0xa5, PAGE_SIZE);
    }
    return p;
}

void env_page_free(void *page)
{
    memcpy(page, &heap, sizeof(heap));
    heap = page;
    world_heap_left++;
}

void *hv_zalloc_page(void)
{
    void *p = env_page_alloc();

    return p ? memset(p, 0, PAGE_SIZE) : NULL;
}

void env_bug(const char *file, int line, const char *what)
{
    fprintf(stderr, "BUG: %s:%d: %s\n", file, line, what);
    abort();
}

void m2p_set(mfn_t mfn, u64 pfn)
{
    BUG_ON(mfn.v >= FRAMES);
    m2p[mfn.v] = pfn;
}

int mm_share_hv_page(struct domain *d, void *page)
{
    struct frame *f = frame_of(env_mfn_of(page));
    enum frame_type last;

    frame_assign(f, d->mm->owner);
    if (frame_get_t(f, FT_W, &last) == GET_NEED_UP)
        frame_up_done(f, false);
    return 0;
}

int mm_get_rw_page(struct domain *d, u64 mfn) { return pt_get_type(d->mm, MFN(mfn), FT_W); }

int mm_release_page(struct domain *d, u64 mfn)
{
    int r;

    if (mfn >= max_mfn || frame_of(MFN(mfn))->owner != d->mm->owner)
        return -XEN_EINVAL;
    r = frame_release(frame_of(MFN(mfn)));
    if (r < 0)
        return -XEN_EINVAL;
    if (r)
        env_frame_dead(frame_of(MFN(mfn)));
    return 0;
}

void env_frame_dead(struct frame *f) { BUG_ON((f->fw & (FW_DEAD | FW_REFS)) != FW_DEAD); }
bool env_io_allowed(struct mm_domain *d, mfn_t mfn) { return d && mfn.v >= max_mfn && mfn.v < 0xfec00; }

static u64 *msr_at(u32 n)
{
    BUG_ON((n < MSR_FS_BASE || n > MSR_TSC_AUX) && n != MSR_EFER);
    return n == MSR_EFER ? NULL : &msr[n - MSR_FS_BASE];
}

u64 fuzz_rdmsr(u32 n) { return msr_at(n) ? *msr_at(n) : EFER_SCE | EFER_LME | EFER_NXE; }

void fuzz_wrmsr(u32 n, u64 v)
{
    BUG_ON(!msr_at(n) || (n != MSR_TSC_AUX && !canonical(v)) || (n == MSR_TSC_AUX && v >> 32));     /* #GP on the metal */
    *msr_at(n) = v;
}

void apic_timer_arm(u64 at) { (void)at; }
mfn_t cpu_gdt_page(unsigned cpu) { return MFN(FRAMES + cpu); }
void *cpu_gdt_ptr(unsigned cpu) { return gdt_page[cpu]; }

void console_write(const char *buf, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sink ^= (u8)buf[i];
}

size_t console_read(char *buf, size_t max)
{
    memset(buf, 'x', max);
    return max;
}

void printk(const char *fmt, ...) { (void)fmt; }
void domain_crash(struct domain *d, const char *fmt, ...)
{
    (void)fmt;
    d->dying = true;
}
void domain_shutdown(struct domain *d, u32 reason)
{
    d->shutdown_code = reason;
    d->dying = true;
}
