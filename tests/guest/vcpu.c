/* SPDX-License-Identifier: MIT */
/* The other vCPUs: bringing them up, and giving them work. */
#include "guest.h"

bool vcpu_started[NR_VCPUS];
volatile u32 stop;

void vcpu_main(struct cpu *c)
{
    register_traps();
    HC(stack_switch, 0xe02b, stacks[NR_VCPUS + c->id + 1]);
    for (;;) {
        void (*fn)(void *) = __atomic_load_n(&c->work, __ATOMIC_ACQUIRE);

        if (!fn && c->id < 2) {
            pause_();
            continue;
        }
        if (!fn) {
            struct sched_poll p = { .timeout = now_ns() + 1000000 };    /* most tests do without it: off the CPU */

            HC(sched_op, SCHEDOP_poll, &p);
            continue;
        }
        run_guarded(fn, c->work_arg, &c->test_sp);
        c->test_sp = 0;
        c->info->evtchn_upcall_mask = 1;
        __atomic_store_n(&c->work, NULL, __ATOMIC_RELEASE);
    }
}

void vcpu_context(struct vcpu_guest_context *ctx, unsigned id)
{
    memset(ctx, 0, sizeof(*ctx));
    ctx->flags = VGCF_in_kernel;
    ctx->user_regs.rip = (u64)vcpu_start;
    ctx->user_regs.rsp = (u64)stacks[id + 1];
    ctx->user_regs.rdi = (u64)&cpus[id];
    ctx->user_regs.rflags = 0x1000;
    ctx->user_regs.cs = 0xe030;
    ctx->user_regs.ss = 0xe028;
    ctx->kernel_ss = 0xe028;
    ctx->kernel_sp = (u64)stacks[NR_VCPUS + id + 1];
    ctx->ctrlreg[3] = mfn_of((void *)si->pt_base) << 12;
    for (unsigned v = 0; v < 32; v++) {
        ctx->trap_ctxt[v].vector = (u8)v;
        ctx->trap_ctxt[v].flags = 4;
        ctx->trap_ctxt[v].cs = 0xe033;
        ctx->trap_ctxt[v].address = (u64)trap_stubs[v];
    }
    ctx->event_callback_eip = (u64)event_entry;
    ctx->failsafe_callback_eip = (u64)failsafe_entry;
}

bool vcpu_start_one(unsigned id)
{
    static struct vcpu_guest_context ctx;

    if (vcpu_started[id])
        return true;
    vcpu_context(&ctx, id);
    cpus[id].info->evtchn_upcall_mask = 1;
    if (!EQ(HC(vcpu_op, VCPUOP_initialise, id, &ctx), 0) || !EQ(HC(vcpu_op, VCPUOP_up, id), 0))
        return false;
    vcpu_started[id] = true;
    return true;
}

void vcpu_run(unsigned id, void (*fn)(void *), void *arg)
{
    REQUIRE(vcpu_start_one(id));
    cpus[id].work_arg = arg;
    __atomic_store_n(&cpus[id].work, fn, __ATOMIC_RELEASE);
}

void vcpu_wait(unsigned id)
{
    while (__atomic_load_n(&cpus[id].work, __ATOMIC_ACQUIRE))
        pause_();
}

void vcpu1_run(void (*fn)(void *), void *arg)
{
    stop = 0;
    vcpu_run(1, fn, arg);
}

void vcpus_run(void (*fn)(void *), void *arg)
{
    stop = 0;
    for (unsigned id = 1; id < nr_vcpus; id++)
        vcpu_run(id, fn, arg);
}

void vcpus_wait(void)
{
    for (unsigned id = 1; id < nr_vcpus; id++)
        vcpu_wait(id);
}
