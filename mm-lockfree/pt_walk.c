/* SPDX-License-Identifier: MIT */
/* Software page walks. */
#include "ptwalk.h"

bool pt_walk_table(struct mm_domain *d, mfn_t root, u64 va, int level, mfn_t *table)
{
    mfn_t m = root;

    for (int l = 4; l > level; l--) {
        u64 e = load_relaxed((u64 *)env_map(m) + pt_index(va, l)), w;
        struct frame *f;

        if (!(e & PTE_P) || pte_mfn(e).v >= max_mfn)
            return false;
        m = pte_mfn(e);
        f = frame_of(m);
        w = load_acquire(&f->fw);
        if (load_relaxed(&f->owner) != d->owner || !(w & FW_VALID) || fw_type(w) != (enum frame_type)(FT_L1 + l - 2))
            return false;
    }
    *table = m;
    return true;
}
