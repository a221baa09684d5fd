/* SPDX-License-Identifier: MIT */
/* The second vCPU: bringing it up, and giving it work. */
#include "guest.h"

bool vcpu1_started;
volatile u32 stop;

void vcpu_main(struct cpu *c)
{
    register_traps();
    HC(stack_switch, 0xe02b, stacks[NR_VCPUS + c->id + 1]);
    for (;;) {
        void (*fn)(void *) = __atomic_load_n(&c->work, __ATOMIC_ACQUIRE);

        if (!fn) {
            pause_();
            continue;
        }
        run_guarded(fn, c->work_arg, &c->test_sp);
        c->test_sp = 0;
        c->info->evtchn_upcall_mask = 1;
        __atomic_store_n(&c->work, NULL, __ATOMIC_RELEASE);
    }
}

void vcpu1_context(struct vcpu_guest_context *ctx)
{
    memset(ctx, 0, sizeof(*ctx));
    ctx->flags = VGCF_in_kernel;
    ctx->user_regs.rip = (u64)vcpu_start;
    ctx->user_regs.rsp = (u64)stacks[2];
    ctx->user_regs.rdi = (u64)&cpus[1];
    ctx->user_regs.rflags = 0x1000;
    ctx->user_regs.cs = 0xe030;
    ctx->user_regs.ss = 0xe028;
    ctx->kernel_ss = 0xe028;
    ctx->kernel_sp = (u64)stacks[NR_VCPUS + 2];
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

bool vcpu1_start(void)
{
    static struct vcpu_guest_context ctx;

    if (vcpu1_started)
        return true;
    vcpu1_context(&ctx);
    cpus[1].info->evtchn_upcall_mask = 1;
    if (!EQ(HC(vcpu_op, VCPUOP_initialise, 1, &ctx), 0) || !EQ(HC(vcpu_op, VCPUOP_up, 1), 0))
        return false;
    vcpu1_started = true;
    return true;
}

void vcpu1_run(void (*fn)(void *), void *arg)
{
    REQUIRE(vcpu1_start());
    stop = 0;
    cpus[1].work_arg = arg;
    __atomic_store_n(&cpus[1].work, fn, __ATOMIC_RELEASE);
}

void vcpu1_wait(void)
{
    while (__atomic_load_n(&cpus[1].work, __ATOMIC_ACQUIRE))
        pause_();
}
