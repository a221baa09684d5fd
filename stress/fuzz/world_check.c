/* SPDX-License-Identifier: MIT */
/* Judges a world at rest. */
#include <stdio.h>
#include <stdlib.h>

#include "audit.h"
#include "ptwr.h"
#include "pt_work.h"
#include "vcpu.h"
#include "world_internal.h"

/* More repetitions than any tree of these few tables can need. */
#define PATIENCE 200000u

static void refs(struct audit *a)
{
    const struct domain *d = &world_domain;

    audit_ref(a, d->shared_mfn, FT_W);
    for (u32 i = 0; i < d->nr_grant_frames; i++)
        audit_ref(a, MFN(d->grant_mfn[i]), FT_W);
    for (u32 i = 0; i < VCPUS; i++) {
        const struct vcpu *v = &world_vcpu[i];

        if (v->root_kernel.v != MFN_INVALID.v)
            audit_root(a, v->root_kernel, false);
        if (v->root_user.v != MFN_INVALID.v)
            audit_root(a, v->root_user, true);
        if (v->info_mfn.v != MFN_INVALID.v)
            audit_ref(a, v->info_mfn, FT_W);
        dt_refs(a, v);
    }
}

static void report(struct audit *a, const struct audit_finding *f)
{
    (void)a;
    fprintf(stderr, "audit: frame %#llx (word %#llx) entry %d: %s is %#llx, expected %#llx\n", (unsigned long long)f->mfn.v,
            f->mfn.v < max_mfn ? (unsigned long long)frame_of(f->mfn)->fw : 0, f->entry, f->what,
            (unsigned long long)f->found, (unsigned long long)f->expected);
}

static void audit(const char *when)
{
    struct audit a = { .d = &world_mm, .refs = refs, .report = report };

    if (ptwr_on()) {
        ptwr_enter(&world_mm, STAT_ptwr_flush_other);
        ptwr_exit(&world_mm);
    }
    if (audit_run(&a) && a.frames == world_domain.nr_pages + 1 + world_domain.nr_grant_frames)
        return;
    fprintf(stderr, "audit: failed %s: %llu frames\n", when, (unsigned long long)a.frames);
    abort();
}

/* What a vCPU has left over, as its next hypercalls would do it: whether it makes one or not. */
static void finish(struct pt_work *w)
{
    unsigned n = 0;
    int rc;

    cpu_info()->pt_work = w;
    do {
        BUG_ON(n++ == PATIENCE);
        pt_work_start();
        if (ptwr_on())
            ptwr_enter(&world_mm, STAT_ptwr_flush_other);
        rc = pt_work_resume(&world_mm);
        if (!rc)
            pt_work_settle(&world_mm);
        if (ptwr_on())
            ptwr_exit(&world_mm);
        world_rest();
    } while (rc || pt_work_attention());
}

void world_check(void)
{
    if (!cpu_info()->pt_work)
        cpu_info()->pt_work = world_vcpu[0].work;
    audit("with what is suspended");
    for (u32 i = 0; i < VCPUS; i++)
        finish(world_vcpu[i].work);
    audit("when all is done");
    for (u64 m = 0; m < max_mfn; m++)
        BUG_ON(frame_of(MFN(m))->fw & FW_BUSY);
}
