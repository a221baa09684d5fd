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

#define PF_WRITE (1u << 1)
#define PF_USER  (1u << 2)
#define PF_RSVD  (1u << 3)
#define PF_FETCH (1u << 4)

bool pt_walk_permits(struct mm_domain *d, mfn_t root, u64 addr, u32 error)
{
    u64 all = PTE_P | PTE_US | (error & PF_WRITE ? PTE_RW : 0);

    if ((error & PF_RSVD) || !(error & PF_USER))
        return false;                           /* the latter is QEMU's, see the ring-3 IRETQ in traps.c */
    for (int l = 4; l >= 1; l--) {
        mfn_t t;
        u64 e;

        if (!pt_walk_table(d, root, addr, l, &t))
            return false;
        e = load_relaxed((u64 *)env_map(t) + pt_index(addr, l));
        if ((e & all) != all || ((error & PF_FETCH) && (e & PTE_NX)))
            return false;
    }
    return true;
}
