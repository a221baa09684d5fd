/* SPDX-License-Identifier: MIT */
/* vCPUs: bringing them up with good and bad contexts, stopping them, their registered areas. */
#include "guest.h"

static struct vcpu_guest_context ctx;

/* In front of everything that needs the second vCPU. */
TEST(vcpu_bad_contexts)
{
    u64 *gdt, *l4;

    REQUIRE(!vcpu_started[1]);
    EQ(HC(vcpu_op, VCPUOP_is_up, 0), 1);
    EQ(HC(vcpu_op, VCPUOP_is_up, 1), 0);
    EQ(HC(vcpu_op, VCPUOP_is_up, nr_vcpus), -ENOENT);
    EQ(HC(vcpu_op, VCPUOP_is_up, ~0ul), -ENOENT);
    EQ(HC(vcpu_op, VCPUOP_is_up, 1ul << 32), -ENOENT);
    EQ(HC(vcpu_op, VCPUOP_up, 1), -EINVAL);
    EQ(HC(vcpu_op, VCPUOP_up, nr_vcpus), -ENOENT);

#define BAD(change) ({ vcpu_context(&ctx, 1); change; EQ(HC(vcpu_op, VCPUOP_initialise, 1, &ctx), -EINVAL); })
    BAD(ctx.flags = 0);
    BAD(ctx.user_regs.rip = 0x8000000000000000);
    BAD(ctx.fs_base = 0x8000000000000000);
    BAD(ctx.gs_base_kernel = 0x0000800000000000);
    BAD(ctx.gs_base_user = 0x0000800000000000);
    BAD(ctx.ctrlreg[3] = mfn_of(&ctx) << 12);
    BAD(ctx.ctrlreg[3] = foreign_mfn(0) << 12);
    BAD(ctx.ctrlreg[3] = ~0ul);
    BAD(ctx.ctrlreg[3] = 0xfee00000);
    BAD(ctx.ctrlreg[1] = mfn_of(&ctx) << 12);
    BAD(ctx.gdt_ents = 8000);
    BAD(ctx.gdt_ents = 1ul << 32 | 16);
    BAD(A(ctx.gdt_ents = 16, ctx.gdt_frames[0] = mfn_of(&ctx)));        /* it is writable */
    BAD(A(ctx.gdt_ents = 16, ctx.gdt_frames[0] = max_page() + 1));
    BAD(A(ctx.gdt_ents = 16, ctx.gdt_frames[0] = foreign_mfn(0)));
    BAD(ctx.event_callback_eip = 0x8000000000000000);
    BAD(ctx.failsafe_callback_eip = 0x8000000000000000);
    BAD(ctx.syscall_callback_eip = 0x8000000000000000);
    /* A good descriptor table and then a bad root: the page must come back. */
    gdt = page_alloc();
    REQUIRE(EQ(make_ro(gdt), 0));
    BAD(A(ctx.gdt_ents = 16, ctx.gdt_frames[0] = mfn_of(gdt), ctx.ctrlreg[3] = mfn_of(&ctx) << 12));
    EQ(make_rw(gdt), 0);
    EQ(make_ro(gdt), 0);
    page_free(gdt);
    /* A good kernel root and then a bad user root: the kernel root must not have kept a reference. */
    l4 = page_alloc();
    memcpy(l4, (void *)si->pt_base, PAGE);
    REQUIRE(EQ(make_ro(l4), 0));
    BAD(A(ctx.ctrlreg[3] = mfn_of(l4) << 12, ctx.ctrlreg[1] = mfn_of(&ctx) << 12));
    page_free(l4);
    EQ(HC(vcpu_op, VCPUOP_up, 1), -EINVAL);
    EQ(HC(vcpu_op, VCPUOP_is_up, 1), 0);
    CHECK(vcpu_start_one(1));
    EQ(HC(vcpu_op, VCPUOP_is_up, 1), 1);
    vcpu_context(&ctx, 1);
    EQ(HC(vcpu_op, VCPUOP_initialise, 1, &ctx), -EEXIST);
    EQ(HC(vcpu_op, VCPUOP_initialise, 0, &ctx), -EEXIST);
    EQ(HC(vcpu_op, VCPUOP_up, 1), 0);           /* is up: nothing happens */
}

static volatile u32 steps;

static void stop_self(void *arg)
{
    (void)arg;
    steps = 1;
    HC(vcpu_op, VCPUOP_down, 1);
    steps = 2;
}

TEST(vcpu_down_up)
{
    for (unsigned i = 0; i < 20; i++) {
        u64 t0;

        steps = 0;
        vcpu1_run(stop_self, NULL);
        while (HC(vcpu_op, VCPUOP_is_up, 1))
            pause_();
        t0 = now_ns();
        while (now_ns() < t0 + 200000)
            pause_();
        EQ(steps, 1);
        EQ(HC(vcpu_op, VCPUOP_up, 1), 0);
        vcpu1_wait();
        EQ(steps, 2);
    }
    EQ(HC(vcpu_op, VCPUOP_down, nr_vcpus), -ENOENT);
}

/* Events for a vCPU that is down wait for it. */
TEST(vcpu_event_while_down)
{
    struct evtchn_bind_ipi b = { .vcpu = 1 };
    struct evtchn_send s;
    struct evtchn_unmask u;

    EQ(HC(event_channel_op, EVTCHNOP_bind_ipi, &b), 0);
    s.port = u.port = b.port;
    EQ(HC(event_channel_op, EVTCHNOP_unmask, &u), 0);
    steps = 0;
    vcpu1_run(stop_self, NULL);
    while (HC(vcpu_op, VCPUOP_is_up, 1))
        pause_();
    EQ(HC(event_channel_op, EVTCHNOP_send, &s), 0);
    EQ(HC(vcpu_op, VCPUOP_is_up, 1), 0);
    for (u64 t0 = now_ns(); now_ns() < t0 + 1000000; )
        pause_();
    EQ(steps, 1);
    EQ(HC(vcpu_op, VCPUOP_up, 1), 0);
    vcpu1_wait();
    EQ(cpus[1].info->evtchn_upcall_pending, 1);
    HC(event_channel_op, EVTCHNOP_close, &s);
    cpus[1].info->evtchn_upcall_pending = 0;
    cpus[1].info->evtchn_pending_sel = 0;
    __atomic_fetch_or(&shared->evtchn_mask[b.port / 64], 1ul << (b.port & 63), __ATOMIC_SEQ_CST);
}

TEST(runstate)
{
    static struct vcpu_runstate_info info, area;
    static struct vcpu_register_runstate_memory_area reg;
    u64 before;

    EQ(HC(vcpu_op, VCPUOP_get_runstate_info, 0, &info), 0);
    EQ(info.state, RUNSTATE_running);
    before = info.time[RUNSTATE_running];
    for (u64 t0 = now_ns(); now_ns() < t0 + 1000000; )
        pause_();
    EQ(HC(vcpu_op, VCPUOP_get_runstate_info, 0, &info), 0);
    CHECK(info.time[RUNSTATE_running] >= before + 900000);
    reg.addr.p = (u64)&area;
    EQ(HC(vcpu_op, VCPUOP_register_runstate_memory_area, 0, &reg), 0);
    CHECK(area.state_entry_time != 0);
    /* An area that goes away, or was never there, does no harm. */
    reg.addr.p = 0xffff830000000000;
    HC(vcpu_op, VCPUOP_register_runstate_memory_area, 0, &reg);
    reg.addr.p = 0x1000;
    HC(vcpu_op, VCPUOP_register_runstate_memory_area, 0, &reg);
    {
        struct sched_poll p = { .timeout = now_ns() + 1000000 };

        EQ(HC(sched_op, SCHEDOP_poll, &p), 0);
    }
    EQ(HC(vcpu_op, VCPUOP_get_runstate_info, 0, &info), 0);
    CHECK(info.time[RUNSTATE_blocked] > 0);
    EQ(HC(vcpu_op, VCPUOP_get_runstate_info, nr_vcpus, &info), -ENOENT);
}

/* Only once a vCPU: this test makes the move for both. */
TEST(vcpu_info_moves)
{
    struct vcpu_register_vcpu_info r = { 0 };
    char *page, *table;

    REQUIRE(cpus[0].info == &shared->vcpu_info[0]);
    page = page_alloc();
    table = table_page();
    r.mfn = mfn_of(page);
    r.offset = PAGE - 63;
    EQ(HC(vcpu_op, VCPUOP_register_vcpu_info, 0, &r), -EINVAL);
    r.offset = 1;
    EQ(HC(vcpu_op, VCPUOP_register_vcpu_info, 0, &r), -EINVAL);
    r.offset = ~0u & ~7u;
    EQ(HC(vcpu_op, VCPUOP_register_vcpu_info, 0, &r), -EINVAL);
    r.offset = 64;
    r.mfn = foreign_mfn(0);
    EQ(HC(vcpu_op, VCPUOP_register_vcpu_info, 0, &r), -EINVAL);
    r.mfn = max_page() + 5;
    EQ(HC(vcpu_op, VCPUOP_register_vcpu_info, 0, &r), -EINVAL);
    r.mfn = ~0ul;
    EQ(HC(vcpu_op, VCPUOP_register_vcpu_info, 0, &r), -EINVAL);
    EQ(pin(1, mfn_of(table)), 0);
    r.mfn = mfn_of(table);
    EQ(HC(vcpu_op, VCPUOP_register_vcpu_info, 0, &r), -EINVAL);
    EQ(unpin(mfn_of(table)), 0);
    page_free(table);
    r.mfn = mfn_of(page);
    EQ(HC(vcpu_op, VCPUOP_register_vcpu_info, nr_vcpus, &r), -ENOENT);
    EQ(HC(vcpu_op, VCPUOP_register_vcpu_info, 0, &r), 0);
    cpus[0].info = (vcpu_info_t *)(page + 64);
    EQ(cpus[0].info->evtchn_upcall_mask, 1);
    EQ(cpus[0].info->evtchn_upcall_pending, 1);
    CHECK(cpus[0].info->time.tsc_to_system_mul != 0);
    EQ(HC(vcpu_op, VCPUOP_register_vcpu_info, 0, &r), -EINVAL);
    /* It is written by the hypervisor from now on: no page table may be made of it. */
    EQ(make_ro(page), 0);
    EQ(pin(1, mfn_of(page)), -EINVAL);
    EQ(make_rw(page), 0);
    cpus[0].info->evtchn_upcall_mask = 0;
    HC(xen_version, 0, 0);
    EQ(cpus[0].info->evtchn_upcall_pending, 0);
    cpus[0].info->evtchn_upcall_mask = 1;
}
