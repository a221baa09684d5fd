/* SPDX-License-Identifier: MIT */
/* Up-calls of mm-lockfree in hosted tests. */
#include "above.h"

#include "env.h"

struct mm_domain host_dom = { .owner = HOST_DOM };
bool host_io_allowed, host_segdesc_ok = true;
u64 host_dead, host_batch_failed, host_last_token;
void (*host_on_dead)(struct frame *f);

void env_frame_dead(struct frame *f)
{
    BUG_ON(!(load_relaxed(&f->fw) & FW_DEAD));
    atomic_faa64(&host_dead, 1);
    if (host_on_dead)
        host_on_dead(f);
}

void env_batch_failed(u64 token)
{
    atomic_faa64(&host_batch_failed, 1);
    store_relaxed(&host_last_token, token);
}

bool env_io_allowed(struct mm_domain *d, mfn_t mfn)
{
    (void)d;
    return host_io_allowed && mfn.v >= max_mfn;              /* never RAM */
}

bool pt_segdesc_ok(u64 *page)
{
    (void)page;
    return host_segdesc_ok;
}
