/* SPDX-License-Identifier: MIT */
/* Guest accesses through the MMU model, with the page-fault handler (xen-core/arch/traps.c, abi/ptfault.c). */
#include "mc.h"

#include "base/errno.h"

#include "ptwalk.h"

/* emulate_pte_write(): a write to a read-only mapping of an L1.  False: the guest gets its fault. */
static bool write_fault(struct cpu *c, unsigned v, unsigned idx, u64 val)
{
    struct pte_insn i = { .len = 4, .op = PTE_OP_MOV, .size = 8, .reg = REGS_RBX };
    u64 regs[MC_REGS] = { 0 }, e, addr = mc_va[v] + idx * 8;
    struct frame *f;
    mfn_t l1;
    int rc;

    if (!pt_walk_table(&mc_dom, c->root_kernel, addr, 1, &l1))
        return false;
    e = load_relaxed((u64 *)env_map(l1) + pt_index(addr, 1));
    if (!(e & PTE_P) || pte_mfn(e).v >= max_mfn)
        return false;
    if (e & PTE_RW) {
        mmu_invlpg(env_cpu(), v);
        return true;
    }
    f = frame_of(pte_mfn(e));
    if (load_relaxed(&f->owner) != mc_dom.owner || fw_type(load_acquire(&f->fw)) != FT_L1)
        return false;
    if (env_ptwr_on && ptwr_open_fault(&mc_dom, c->root_kernel, f, addr)) {
        mmu_invlpg(env_cpu(), v);
        return true;
    }
    regs[REGS_RBX / 8] = val;
    rc = pt_emulate(&mc_dom, f, idx * 8, &i, regs);
    if (rc == -XEN_ERESTART) {
        pt_work_start();
        (void)pt_work_resume(&mc_dom);
    }
    if (env_ptwr_on)
        ptwr_exit(&mc_dom);
    if (rc == -XEN_EAGAIN || rc == -XEN_ERESTART) {
        mmu_invlpg(env_cpu(), v);
        return true;
    }
    return false;                        /* done, or refused */
}

void guest_access(struct cpu *c, unsigned v, bool write, unsigned idx, u64 val)
{
    for (unsigned tries = 0; tries < 5; tries++) {
        mfn_t root = c->guest_kernel ? c->root_kernel : c->root_user;
        unsigned error;
        bool again;

        guest_point();
        error = mmu_access(v, write, idx, val);
        if (!error)
            return;
        TRACE("c%u page fault on page %u, error %u", env_cpu(), v, error);
        hv_enter();
        if (env_ptwr_on && ptwr_fault(&mc_dom, root, mc_va[v] + idx * 8, error)) {
            mmu_invlpg(env_cpu(), v);
            again = true;
        } else {
            again = c->guest_kernel && (error & 3) == 3 && write_fault(c, v, idx, val);
        }
        if (!again && !write && mc.steady >> v & 1)
            mc_violation("the guest gets a fault on page %u, which is mapped all the time", v);
        hv_exit();
        if (!again)
            return;
    }
}

/* The hypervisor reads guest memory through the guest's tables. */
void hv_copy(unsigned v)
{
    enum ptwr_access how;

    hv_enter();
    if (env_ptwr_on) {
        how = ptwr_access_begin(&mc_dom);
        for (unsigned i = 0; i < 4; i++)         /* the copy takes its time */
            if (load_relaxed(&mc_dom.ptwr->slot[i & 1].f))
                mc_violation("a table is open while the hypervisor reads page %u", v);
        ptwr_access_end(&mc_dom, how);
    }
    hv_exit();
}
