/* SPDX-License-Identifier: MIT */
/* The audit on the metal: which references are held outside of tables, and how findings are told. */
#include "audit_hv.h"

#include "abi/abi_mm.h"
#include "audit.h"
#include "console.h"
#include "domain.h"
#include "params.h"
#include "ptwr.h"
#include "vcpu.h"
#include "vsnprintf.h"

typedef unsigned long long ull;

static void vcpu_refs(struct audit *a, const struct vcpu *v)
{
    if (v->root_kernel.v != MFN_INVALID.v)
        audit_root(a, v->root_kernel, false);
    if (v->root_user.v != MFN_INVALID.v)
        audit_root(a, v->root_user, true);
    if (v->info_mfn.v != MFN_INVALID.v)
        audit_ref(a, v->info_mfn, FT_W);
    dt_refs(a, v);
}

static void refs(struct audit *a)
{
    const struct domain *d = a->arg;

    /* Pages of the hypervisor's that the guest may map: writable for ever. */
    audit_ref(a, d->shared_mfn, FT_W);
    for (u32 i = 0; i < d->nr_grant_frames; i++)
        audit_ref(a, MFN(d->grant_mfn[i]), FT_W);
    for (u32 i = 0; i < d->max_vcpus; i++)
        vcpu_refs(a, d->vcpu[i]);
}

static void report(struct audit *a, const struct audit_finding *f)
{
    ull w = f->mfn.v < max_mfn ? frame_of(f->mfn)->fw : 0;
    char at[24] = "";

    (void)a;
    if (f->entry >= 0)
        pt_snprintf(at, sizeof(at), " entry %d:", f->entry);
    printk("audit: frame %#llx (word %#llx):%s %s is %#llx, expected %#llx\n", (ull)f->mfn.v, w, at, f->what,
           (ull)f->found, (ull)f->expected);
}

static void audit_domain(struct domain *d)
{
    struct audit a = { .d = d->mm, .refs = refs, .report = report, .arg = d };
    u64 begun = d->nr_pages + 1 + d->nr_grant_frames;

    if (opt_ptwr) {
        ptwr_enter(d->mm, STAT_ptwr_flush_other);
        ptwr_exit(d->mm);
    }
    if (audit_run(&a) && a.frames == begun) {
        printk("audit: %llu frames, clean\n", (ull)a.frames);
    } else {
        if (a.frames != begun)
            printk("audit: the domain has %llu frames, expected %llu\n", (ull)a.frames, (ull)begun);
        printk("audit: %llu frames, %llu disagreements\naudit: FAILED\n", (ull)a.frames, (ull)a.wrong);
    }
    printk("audit: %llu tables, %llu frames given back, %llu of them still referenced\n", (ull)a.tables,
           (ull)(a.dead + a.limbo), (ull)a.limbo);
}

void audit_stopped(bool stopped, bool asked)
{
    if (!asked && !opt_check)
        return;
    if (!stopped)
        printk("audit: a CPU did not stop\naudit: FAILED\n");
    else if (dom0)
        audit_domain(dom0);
}
