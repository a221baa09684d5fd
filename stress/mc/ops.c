/* SPDX-License-Identifier: MIT */
/* What a simulated CPU does: the guest's operations, and around mm-lockfree what the hypercalls, the page-fault handler
 * and the entry code do, with the same order of accesses (xen-core/abi/mmu.c, ptfault.c, arch/bounce.c, vcpu.c). */
#include "mc.h"

#include <string.h>
#include "base/errno.h"

u64 entry_of(unsigned frame, char how)
{
    u64 base = pte_make(MFN(frame), PTE_P | PTE_US | PTE_A);

    switch (how) {
    case 'o': return base;
    case 'w': case 'h': return base | PTE_RW;
    case 'd': return base | PTE_RW | PTE_D;
    case 'n': return pte_make(MFN(frame), PTE_RW | PTE_US);      /* not present */
    default:  return 0;
    }
}

static struct cpu *self(void) { return &cpus[mc.cpu]; }

void hv_enter(void)
{
    self()->in_hv = true;
    self()->idle = false;
}

/* On the way to the guest: exit_to_guest(). */
void hv_exit(void)
{
    struct cpu *c = self();

    if (c->batch)
        return;
    tlb_poll();
    c->section++;
    c->in_hv = false;
    rcu_quiescent();
}

/* load_root() of the entry code. */
void guest_load_root(struct cpu *c)
{
    struct tlb_cpu *t = &tlb_cpu[env_cpu()];
    mfn_t root = c->guest_kernel ? c->root_kernel : c->root_user;
    u64 as = load_relaxed(&pt_meta(&mc_frames[root.v])->as), now;
    bool change = as != load_relaxed(&t->as);

    if (change)
        store_release(&t->as, AS_ANY);
    if (c->guest_kernel)
        store_release(&t->mode, load_relaxed(&t->mode) | 1);
    now = env_tsc();
    mc_point();
    mc_drain_all();
    TRACE("c%u loads root %s", env_cpu(), world_name((unsigned)root.v));
    c->cr3 = root;
    mmu_flush(env_cpu());
    store_release(&t->flush_time, now);                               /* T1 */
    if (!c->guest_kernel)
        store_release(&t->mode, load_relaxed(&t->mode) & ~1ull);
    if (change)
        store_release(&t->as, as);
}

static void unload_root(struct cpu *c)
{
    struct tlb_cpu *t = &tlb_cpu[env_cpu()];

    store_release(&t->as, AS_ANY);
    mc_point();
    mc_drain_all();
    TRACE("c%u loads the hypervisor's root", env_cpu());
    c->cr3 = MFN_INVALID;
    mmu_flush(env_cpu());
    store_release(&t->as, AS_NONE);                                   /* T2 */
    store_release(&t->mode, load_relaxed(&t->mode) & ~1ull);
}

static void interrupt(struct cpu *c)
{
    TRACE("c%u takes the interrupt", mc.cpu);
    hv_enter();
    mc_drain_all();
    c->ipi_here = false;
    hv_exit();
}

/* Between two instructions of the guest. */
void guest_point(void)
{
    mc_point();
    while (self()->ipi_here)
        interrupt(self());
}

/* Hypercalls -------------------------------------------------------------------------------------------- */

static int plain_write(unsigned f, unsigned idx, u64 val, bool keep_ad)
{
    u64 *slot = mc_slot(f, idx), old;

    if (!frame_get_t_fast(&mc_frames[f], FT_W)) {
        int rc = pt_get_type(&mc_dom, MFN(f), FT_W);

        if (rc)
            return rc;
    }
    old = load_relaxed(slot);
    if (!keep_ad)
        store_relaxed(slot, val);
    else
        while (!atomic_cas64(slot, &old, val | (old & (PTE_A | PTE_D))))
            ;
    pt_put_type(&mc_dom, MFN(f));
    return 0;
}

static int update_entry(unsigned f, unsigned idx, u64 val, bool keep_ad)
{
    struct frame *fr = &mc_frames[f];

    if (load_relaxed(&fr->owner) != mc_dom.owner)
        return -XEN_EINVAL;
    for (unsigned tries = 0; ; tries++) {
        enum frame_type ty = fw_type(load_acquire(&fr->fw));
        bool table = (load_relaxed(&fr->fw) & (FW_T | FW_BUSY)) && ty >= FT_L1 && ty <= FT_L4;
        int rc = table ? pt_set(&mc_dom, fr, idx, (int)ty - FT_L1 + 1, val, keep_ad ? PT_PRESERVE_AD : PT_NORMAL)
                       : plain_write(f, idx, val, keep_ad);

        if (rc != -XEN_EAGAIN || tries == 1000000)
            return rc;
        tlb_poll();
        cpu_relax();
    }
}

static int new_root(struct cpu *c, unsigned f, bool user)
{
    mfn_t *root = user ? &c->root_user : &c->root_kernel, old = *root;
    int rc;

    if (old.v == f)
        return 0;
    rc = pt_get_type(&mc_dom, MFN(f), FT_L4);
    if (rc)
        return rc;
    if (user && pt_mark_user_root(&mc_dom, &mc_frames[f]))
        return -XEN_ERESTART;
    *root = MFN(f);
    if (!user)
        guest_load_root(c);
    pt_put_type(&mc_dom, old);
    return 0;
}

static int release(unsigned f)
{
    int r;

    if (load_relaxed(&mc_frames[f].owner) != mc_dom.owner)
        return -XEN_EINVAL;
    r = frame_release(&mc_frames[f]);
    if (r < 0)
        return -XEN_EINVAL;
    mc_released[f] = 1;
    if (r)
        env_frame_dead(&mc_frames[f]);
    return 0;
}

static void flush_all(void)
{
    struct tlb_set s;

    tlb_set_clear(&s);
    for (unsigned c = 0; c < mc.nr_cpus; c++)
        tlb_set_add(&s, c);
    tlb_flush_set(&s);
}

/* An instruction that writes entry @idx of the L1 @f, as the fault handler hands it to the emulator. */
static int emulate(const struct op *o)
{
    u64 regs[MC_REGS] = { 0 }, val = entry_of(o->c, (char)o->f);
    struct pte_insn i = { .len = 4, .size = 8, .reg = REGS_RBX };
    int rc;

    regs[REGS_RBX / 8] = val;
    switch (o->code) {
    case OP_XCHG: i.op = PTE_OP_XCHG; break;
    case OP_MOV:  i.op = PTE_OP_MOV; break;
    case OP_BTR:  i.op = PTE_OP_BTR; i.reg = REG_NONE; i.imm = 1; break;
    default:
        i.op = PTE_OP_CMPXCHG;
        regs[REGS_RAX / 8] = load_relaxed(mc_slot(o->a, o->b));
        guest_point();
        break;
    }
    rc = pt_emulate(&mc_dom, &mc_frames[o->a], o->b * 8u, &i, regs);
    if (!rc && o->code == OP_XCHG && regs[REGS_RBX / 8] & PTE_P && pte_mfn(regs[REGS_RBX / 8]).v >= FRAMES)
        mc_violation("an exchange returned an entry that never was there");
    return rc;
}

static int segments(unsigned f)
{
    int rc = pt_get_type(&mc_dom, MFN(f), FT_SEG);

    if (!rc)
        pt_put_type(&mc_dom, MFN(f));
    return rc;
}

static int call(struct cpu *c, const struct op *o)
{
    switch (o->code) {
    case OP_UPD:   return update_entry(o->a, o->b, entry_of(o->c, (char)o->f), false);
    case OP_UPDA:  return update_entry(o->a, o->b, entry_of(o->c, (char)o->f), true);
    case OP_PIN:   return pt_pin(&mc_dom, MFN(o->a), (enum frame_type)(FT_L1 + o->b - 1));
    case OP_UNPIN: return pt_unpin(&mc_dom, MFN(o->a));
    case OP_BASE:  return new_root(c, o->a, false);
    case OP_UBASE: return new_root(c, o->a, true);
    case OP_XCHG: case OP_BTR: case OP_MOV: case OP_CMPXCHG: return emulate(o);
    default:       return 0;
    }
}

/* In ptwr mode each operation on page tables is a critical section. */
static void critical(bool enter)
{
    if (env_ptwr_on && enter)
        ptwr_enter(&mc_dom, STAT_ptwr_flush_mmu_update);
    else if (env_ptwr_on)
        ptwr_exit(&mc_dom);
}

/* The start of a hypercall: what is left over from earlier ones goes first.  False: that is not done, the guest is to
 * issue it again. */
static bool call_begin(bool table)
{
    int rc = 0;

    hv_enter();
    pt_work_start();
    if (pt_work_attention()) {
        critical(true);
        rc = pt_work_resume(&mc_dom);
        critical(false);
    }
    if (!rc && table)
        critical(true);
    return !rc;
}

static void call_end(bool table, int rc)
{
    if (table)
        critical(false);
    if (pt_work_attention() && rc != -XEN_ERESTART) {
        critical(true);
        pt_work_settle(&mc_dom);
        critical(false);
    }
    TRACE("c%u   result %d", env_cpu(), rc);
}

/* The hypercall lets go: the guest takes interrupts, then issues it, or the rest of its multicall, again. */
static void call_again(struct cpu *c)
{
    bool batch = c->batch;

    if (batch)
        (void)pt_batch_end(&mc_dom);
    c->batch = false;
    TRACE("c%u   again", env_cpu());
    tlb_poll();
    hv_exit();
    guest_point();
    if (!batch)
        return;
    while (!call_begin(false)) {
        hv_exit();
        guest_point();
    }
    c->batch = true;
    if (!env_ptwr_on)
        pt_batch_begin();
}

static void table_op(struct cpu *c, const struct op *o)
{
    int rc = -XEN_ERESTART;

    for (;;) {
        if (call_begin(true)) {
            if (rc == -XEN_ERESTART)
                rc = call(c, o);
            call_end(true, rc);
        }
        if (rc != -XEN_ERESTART && !pt_work_attention())     /* a tree that was dropped is all taken down */
            break;
        call_again(c);
    }
    tlb_poll();
    hv_exit();
}

static void sleep_a_while(struct cpu *c)
{
    hv_enter();
    unload_root(c);
    c->section++;
    rcu_quiescent();
    c->section++;
    c->idle = true;
    rcu_idle_enter();
    mc_point();
    rcu_idle_exit();
    c->idle = false;
    guest_load_root(c);
    hv_exit();
}

static void other_op(struct cpu *c, const struct op *o)
{
    int rc = 0;

    while (!call_begin(false) || (c->batch && o->code != OP_FLUSH && o->code != OP_FLUSHME && pt_batch_commit(&mc_dom)))
        call_again(c);
    switch (o->code) {
    case OP_USER: case OP_KERNEL:
        if (c->guest_kernel == (o->code == OP_KERNEL))
            break;
        c->guest_kernel = !c->guest_kernel;
        guest_load_root(c);
        break;
    case OP_REL:     release(o->a); break;
    case OP_SEG:
        while ((rc = segments(o->a)) == -XEN_ERESTART) {
            do {
                call_again(c);
            } while (!call_begin(false));
        }
        break;
    case OP_FLUSH:   flush_all(); break;
    case OP_FLUSHME: tlb_flush_local(); break;
    default: break;
    }
    call_end(false, rc);
    hv_exit();
}

static void run_op(struct cpu *c, const struct op *o)
{
    switch (o->code) {
    case OP_GW:   guest_access(c, o->a, true, o->b, entry_of(o->c, (char)o->f)); break;
    case OP_GR:   guest_access(c, o->a, false, 0, 0); break;
    case OP_IDLE: sleep_a_while(c); break;
    case OP_COPY: hv_copy(o->a); break;
    case OP_BB:
        while (!call_begin(false))
            call_again(c);
        c->batch = true;
        if (!env_ptwr_on)
            pt_batch_begin();
        break;
    case OP_BE: {
        int rc = pt_batch_end(&mc_dom);

        c->batch = false;
        while (rc) {
            call_again(c);
            rc = !call_begin(false);
        }
        call_end(false, 0);
        hv_exit();
        break;
    }
    case OP_USER: case OP_KERNEL: case OP_REL: case OP_SEG: case OP_FLUSH: case OP_FLUSHME: case OP_NOP:
        other_op(c, o);
        break;
    default:
        table_op(c, o);
    }
}

void setup_program(const struct scenario *s)
{
    for (unsigned i = 0; i < s->n_setup; i++)
        run_op(&cpus[0], &s->setup[i]);
}

static bool all_at_rest(void)
{
    for (unsigned c = 0; c < mc.nr_cpus; c++)
        if (!cpus[c].at_rest)
            return false;
    return true;
}

/* The programs are over: open tables are closed, and everybody comes by until no callback is left. */
static void rest(struct cpu *c)
{
    do {
        while (!call_begin(true))
            hv_exit();
        call_end(true, 0);
        hv_exit();
    } while (pt_work_attention());
    c->rested = true;
    for (unsigned i = 0; i < 200; i++) {
        bool all = !mc_rcu_pending();

        for (unsigned k = 0; k < mc.nr_cpus; k++)
            all = all && cpus[k].rested;
        if (all)
            return;
        cpu_relax();
        hv_enter();
        hv_exit();
    }
    mc_violation("RCU callbacks never ran");
}

void cpu_program(unsigned cpu, const struct scenario *s)
{
    struct cpu *c = &cpus[cpu];

    for (unsigned i = 0; i < s->n[cpu]; i++) {
        if (!c->batch)
            guest_point();
        TRACE("c%u operation %u", cpu, i);
        run_op(c, &s->op[cpu][i]);
    }
    c->at_rest = true;
    if (all_at_rest()) {
        mc.calm = true;
        for (unsigned i = 0; i < mc.nr_cpus; i++)
            mc.enabled |= BIT(ACTOR_CPU(i));
    }
    while (!mc.calm) {
        if (!c->ipi_here) {
            mc.enabled &= ~BIT(ACTOR_CPU(cpu));
            mc_point();
        }
        while (c->ipi_here)
            interrupt(c);
    }
    rest(c);
}
