/* SPDX-License-Identifier: MIT */
/* Creating domains and vCPUs, and their end. */
#include "domain.h"

#include <xen/errno.h>

#include <stdarg.h>

#include "abi/abi.h"
#include "abi/abi_mm.h"
#include "arch/machine.h"
#include "arch/time.h"
#include "base/stats.h"
#include "console.h"
#include "memory.h"
#include "params.h"
#include "pt.h"
#include "pt_work.h"
#include "ptwr.h"
#include "stats_dump.h"
#include "stop.h"
#include "vcpu.h"
#include "vsnprintf.h"
#include "build/dom0.h"

/* Single pages come from the heap; larger objects from contiguous frames, since domains are built at boot. */
static void *zalloc(u64 size)
{
    return size <= PAGE_SIZE ? hv_zalloc_page() : boot_pages((size + PAGE_SIZE - 1) >> PAGE_SHIFT);
}

static struct vcpu *vcpu_create(struct domain *d, u32 id)
{
    struct vcpu *v = zalloc(sizeof(*v));

    if (!v)
        return NULL;
    v->domain = d;
    v->id = id;
    v->down = true;
    v->guest_kernel = true;
    v->root_kernel = v->root_user = MFN_INVALID;
    v->info_mfn = MFN_INVALID;
    v->singleshot_ns = ~0ull;
    v->dr[6] = 0xffff0ff0;
    v->dr[7] = 0x400;
    v->cr4 = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(v->gdt_frame); i++)
        v->gdt_frame[i] = MFN_INVALID;
    se_init(&v->se, id % nr_cpus);
    v->dt_slot = id;
    v->dt_pte = hv_map_vcpu_dt(v->dt_slot);
    if (!v->dt_pte || fpu_init(v))
        return NULL;
    dt_init_vcpu(v);
    v->mm = mm_vcpu_create();
    v->scratch_context = boot_pages(2);
    if (!v->mm)
        return NULL;
    v->work = d->mm->work[id] = mm_vcpu_work(v->mm);
    if (id < XEN_LEGACY_MAX_VCPUS) {
        v->info = &d->shared->vcpu_info[id];
    } else {
        v->info = hv_zalloc_page();
        if (!v->info)
            return NULL;
    }
    v->info->evtchn_upcall_mask = 1;
    vtime_init_vcpu(v);
    return v;
}

struct domain *domain_create(u16 domid, u32 max_vcpus)
{
    struct domain *d = zalloc(sizeof(*d));

    if (!d || max_vcpus > DOM_MAX_VCPUS)
        return NULL;
    d->domid = domid;
    d->max_vcpus = max_vcpus;
    d->mm = zalloc(sizeof(*d->mm));
    d->vcpu = zalloc(max_vcpus * sizeof(d->vcpu[0]));
    d->shared = hv_zalloc_page();
    d->evtchn = zalloc(NR_EVTCHN * sizeof(d->evtchn[0]));
    if (!d->mm || !d->vcpu || !d->shared || !d->evtchn)
        return NULL;
    d->mm->work = zalloc(max_vcpus * sizeof(d->mm->work[0]));
    if (!d->mm->work)
        return NULL;
    d->mm->owner = domid + 1u;
    if (opt_ptwr && !ptwr_init(d->mm, max_vcpus > 1))
        return NULL;
    d->shared_mfn = env_mfn_of(d->shared);
    mm_share_hv_page(d, d->shared);
    for (unsigned i = 0; i < XEN_LEGACY_MAX_VCPUS; i++)
        d->shared->vcpu_info[i].evtchn_upcall_mask = 1;
    vtime_init_domain(d);
    for (u32 i = 0; i < max_vcpus; i++) {
        d->vcpu[i] = vcpu_create(d, i);
        if (!d->vcpu[i])
            return NULL;
    }
    d->mm->nr_work = max_vcpus;
    return d;
}

int pt_adopt_root(struct domain *d, mfn_t l4)
{
    int rc;

    cpu_info()->pt_work = d->vcpu[0]->work;
    do {
        pt_work_start();
        rc = pt_work_resume(d->mm);
        if (!rc)
            rc = pt_pin(d->mm, l4, FT_L4);
    } while (rc == -XEN_ERESTART);
    return rc;
}

int vcpu_set_initial_root(struct vcpu *v, mfn_t l4) { return mm_initial_root(v, l4, false); }

/* Makes every CPU look for what it may run: nothing of a domain that is dying. */
static void stop_all(void)
{
    cpu_info()->work |= WORK_RESCHED;
    for (unsigned c = 0; c < nr_cpus; c++)
        if (c != this_cpu())
            env_kick(c);
}

void domain_crash(struct domain *d, const char *fmt, ...)
{
    char msg[200];
    va_list ap;

    va_start(ap, fmt);
    pt_vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    if (load_relaxed(&d->dying))
        return;
    printk("domain %u crashed by vCPU %u: %s\n", d->domid, current_vcpu() ? current_vcpu()->id : ~0u, msg);
    show_regs(&cpu_info()->regs);
    domain_shutdown(d, SHUTDOWN_crash);
}

void domain_shutdown(struct domain *d, u32 reason)
{
    static const char *const names[] = { "poweroff", "reboot", "suspend", "crash", "watchdog", "soft reset" };

    if (load_relaxed(&d->dying) || atomic_xchg8((u8 *)&d->dying, true))
        return;
    d->shutdown_code = reason;
    stop_all();
    printk("domain %u shut down: %s\n", d->domid, reason < ARRAY_SIZE(names) ? names[reason] : "unknown reason");
    if (d->is_initial)
        world_request(WORLD_END);
}

void domain_end(struct domain *d)
{
    u32 reason = d->shutdown_code;

    if (opt_stats_json)
        stats_dump_json();
    if (opt_noreboot && reason != SHUTDOWN_poweroff)
        machine_halt();
    if (reason == SHUTDOWN_poweroff || reason == SHUTDOWN_crash)
        machine_poweroff();
    machine_reboot();
}
