/* SPDX-License-Identifier: MIT */
/* Event channels, blocking, timers, and time itself. */
#include "event.h"

TEST(event_self)
{
    u32 port = bind_ipi(0), n = cpus[0].upcalls;

    mask(port);
    EQ(send(port), 0);
    EQ(pending(port), 1);
    EQ(count(port), 0);
    set_mask(0);
    poke();
    EQ(count(port), 0);                         /* the port is masked */
    set_mask(1);
    EQ(unmask(port), 0);
    EQ(cpus[0].info->evtchn_upcall_pending, 1);
    EQ(count(port), 0);
    set_mask(0);
    poke();
    EQ(count(port), 1);
    EQ(cpus[0].upcalls, n + 1);
    EQ(cpus[0].upcall.mask, 0);
    EQ(cpus[0].upcall.rflags & 0x200, 0x200);
    EQ(cpus[0].upcall.cs & 3, 0);
    EQ(cpus[0].info->evtchn_upcall_mask, 0);
    EQ(pending(port), 0);
    EQ(send(port), 0);                          /* unmasked: at once */
    EQ(count(port), 2);
    set_mask(1);
    EQ(send(port), 0);
    EQ(send(port), 0);
    set_mask(0);
    poke();
    EQ(count(port), 3);                         /* the two were one */
    set_mask(1);
    EQ(close(port), 0);
    mask(port);
}

/* An iret that unmasks delivers in front of the first instruction. */
TEST(event_on_iret)
{
    u32 port = bind_ipi(0);
    struct frame_iret f = { .rip = (u64)shutdown, .cs = FLAT_CS & ~3ul, .ss = FLAT_SS, .rflags = 0x202,
                            .rsp = (u64)stacks[NR_VCPUS] + STACK_SIZE - 2048 };
    struct regs *r;

    EQ(unmask(port), 0);
    EQ(send(port), 0);
    EQ(count(port), 0);
    r = enter(&f, true, 0, 0);
    EQ(r->vec, VEC_EVENT);
    EQ(r->rip, f.rip);
    EQ(count(port), 1);
    EQ(r->mask, 0);
    EQ(close(port), 0);
    mask(port);
}

TEST(event_in_user)
{
    struct user_space u;
    struct frame_iret f = { .rip = USER_RIP(user_spin), .cs = FLAT_CS, .ss = FLAT_SS, .rflags = 0x202,
                            .rsp = USER_DATA + PAGE };
    struct evtchn_bind_virq b = { .virq = VIRQ_TIMER, .vcpu = 0 };
    struct vcpu_set_singleshot_timer t = { 0 };
    struct regs *r;

    REQUIRE(user_space_make(&u));
    EQ(HC(event_channel_op, EVTCHNOP_bind_virq, &b), 0);
    EQ(unmask(b.port), 0);
    /* On a busy machine the time may be over before user mode gets to run. */
    for (u64 ns = 3000000; !*(volatile u64 *)u.data && ns < 3000000000; ns *= 4) {
        t.timeout_abs_ns = now_ns() + ns;
        EQ(HC(vcpu_op, VCPUOP_set_singleshot_timer, 0, &t), 0);
        r = enter(&f, true, USER_DATA, 0);
        EQ(r->vec, VEC_EVENT);
        EQ(r->cs & 3, 3);
        EQ(r->rsp, f.rsp);
        CHECK(now_ns() >= t.timeout_abs_ns);
    }
    CHECK(*(volatile u64 *)u.data > 0);
    EQ(close(b.port), 0);
    mask(b.port);
    user_space_drop(&u);
}

TEST(event_errors)
{
    static const u32 bad[] = { 0, 60, 4095, 4096, 100000, 0x80000000, ~0u };
    struct evtchn_bind_ipi ipi = { .vcpu = nr_vcpus };
    struct evtchn_bind_virq v = { .virq = VIRQ_TIMER, .vcpu = 0 };
    struct evtchn_status st = { .dom = DOMID_SELF };
    struct evtchn_bind_vcpu bv = { 0 };
    struct evtchn_alloc_unbound au = { .dom = 5, .remote_dom = DOMID_SELF };
    struct evtchn_bind_interdomain bi = { .remote_dom = DOMID_SELF };
    u32 port = bind_ipi(0), first;

    for (unsigned i = 0; i < COUNT(bad); i++) {
        EQ(send(bad[i]), -EINVAL);
        EQ(close(bad[i]), -EINVAL);
        if (bad[i] == 0 || bad[i] > 4095)
            EQ(unmask(bad[i]), -EINVAL);
        bv.port = bad[i];
        EQ(HC(event_channel_op, EVTCHNOP_bind_vcpu, &bv), -EINVAL);
        bi.remote_port = bad[i];
        EQ(HC(event_channel_op, EVTCHNOP_bind_interdomain, &bi), -EINVAL);
    }
    EQ(HC(event_channel_op, EVTCHNOP_bind_ipi, &ipi), -ENOENT);
    ipi.vcpu = ~0u;
    EQ(HC(event_channel_op, EVTCHNOP_bind_ipi, &ipi), -ENOENT);
    EQ(HC(event_channel_op, EVTCHNOP_bind_virq, &v), 0);
    first = v.port;
    EQ(HC(event_channel_op, EVTCHNOP_bind_virq, &v), -EEXIST);
    EQ(send(first), -EINVAL);                   /* a VIRQ port is not for sending */
    bv.port = first;
    EQ(HC(event_channel_op, EVTCHNOP_bind_vcpu, &bv), -EINVAL);
    bv.port = port;
    EQ(HC(event_channel_op, EVTCHNOP_bind_vcpu, &bv), -EINVAL);
    v.virq = 24;
    EQ(HC(event_channel_op, EVTCHNOP_bind_virq, &v), -EINVAL);
    v.virq = ~0u;
    EQ(HC(event_channel_op, EVTCHNOP_bind_virq, &v), -EINVAL);
    v.virq = VIRQ_TIMER;
    v.vcpu = nr_vcpus;
    EQ(HC(event_channel_op, EVTCHNOP_bind_virq, &v), -ENOENT);
    v.virq = VIRQ_CONSOLE;
    v.vcpu = 1;
    EQ(HC(event_channel_op, EVTCHNOP_bind_virq, &v), -EINVAL);
    EQ(HC(event_channel_op, EVTCHNOP_alloc_unbound, &au), -ESRCH);
    st.port = first;
    EQ(HC(event_channel_op, EVTCHNOP_status, &st), 0);
    EQ(st.status, EVTCHNSTAT_virq);
    st.port = port;
    EQ(HC(event_channel_op, EVTCHNOP_status, &st), 0);
    EQ(st.status, EVTCHNSTAT_ipi);
    st.port = 4096;
    EQ(HC(event_channel_op, EVTCHNOP_status, &st), -EINVAL);
    st.dom = 7;
    EQ(HC(event_channel_op, EVTCHNOP_status, &st), -ESRCH);
    EQ(close(first), 0);
    EQ(close(first), -EINVAL);
    EQ(close(port), 0);
}

/* Loopback: a port of ours bound to another of ours. */
TEST(event_interdomain_self)
{
    struct evtchn_alloc_unbound au = { .dom = DOMID_SELF, .remote_dom = DOMID_SELF };
    struct evtchn_bind_interdomain bi = { .remote_dom = DOMID_SELF };

    EQ(HC(event_channel_op, EVTCHNOP_alloc_unbound, &au), 0);
    EQ(send(au.port), 0);
    bi.remote_port = au.port;
    EQ(HC(event_channel_op, EVTCHNOP_bind_interdomain, &bi), 0);
    clear(au.port);
    clear(bi.local_port);
    EQ(send(au.port), 0);
    EQ(pending(bi.local_port), 1);
    EQ(pending(au.port), 0);
    EQ(send(bi.local_port), 0);
    EQ(pending(au.port), 1);
    EQ(HC(event_channel_op, EVTCHNOP_bind_interdomain, &bi), -EINVAL);
    EQ(close(au.port), 0);
    EQ(send(bi.local_port), 0);                 /* the other end went */
    EQ(close(bi.local_port), 0);
    clear(au.port);
    clear(bi.local_port);
}

/* Every port can be had, and none twice. */
TEST(event_all_ports)
{
    struct evtchn_alloc_unbound au = { .dom = DOMID_SELF, .remote_dom = DOMID_SELF };
    u32 n = 0, last = 0;

    while (HC(event_channel_op, EVTCHNOP_alloc_unbound, &au) == 0 && n < 5000) {
        CHECK(au.port > last && au.port < 4096);
        last = au.port;
        n++;
    }
    CHECK(n > 1000 && n < 4096);
    for (u32 p = 1; p < 4096; p++)
        if (close(p) == 0)
            n--;
    EQ(n, 0);
}

TEST(poll)
{
    u32 port = bind_ipi(0), list[2] = { port, 4096 };
    struct sched_poll p = { .nr_ports = 1 };
    u64 t0;

    mask(port);
    set_xen_guest_handle(p.ports, list);
    EQ(send(port), 0);
    EQ(HC(sched_op, SCHEDOP_poll, &p), 0);      /* pending already: no time-out needed */
    EQ(pending(port), 1);
    clear(port);
    t0 = now_ns();
    p.timeout = t0 + 5000000;
    for (unsigned i = 0; i < 5 && now_ns() < p.timeout; i++)    /* it may come back for nothing, but not for ever */
        EQ(HC(sched_op, SCHEDOP_poll, &p), 0);
    CHECK(now_ns() >= p.timeout);
    p.timeout = t0;
    EQ(HC(sched_op, SCHEDOP_poll, &p), 0);      /* past */
    p.nr_ports = 2;
    EQ(HC(sched_op, SCHEDOP_poll, &p), -EINVAL);
    p.nr_ports = 129;
    EQ(HC(sched_op, SCHEDOP_poll, &p), -EINVAL);
    p.nr_ports = 1;
    set_xen_guest_handle(p.ports, (void *)0x1000);
    EQ(HC(sched_op, SCHEDOP_poll, &p), -EFAULT);
    set_xen_guest_handle(p.ports, (void *)0xffff830000000000);
    EQ(HC(sched_op, SCHEDOP_poll, &p), -EFAULT);
    EQ(close(port), 0);
}

TEST(block_with_timer)
{
    struct evtchn_bind_virq b = { .virq = VIRQ_TIMER, .vcpu = 0 };
    struct vcpu_set_singleshot_timer t = { 0 };

    EQ(HC(event_channel_op, EVTCHNOP_bind_virq, &b), 0);
    port_count[b.port] = 0;
    EQ(unmask(b.port), 0);
    for (unsigned i = 0; i < 10; i++) {
        t.timeout_abs_ns = now_ns() + 1000000;
        EQ(HC(vcpu_op, VCPUOP_set_singleshot_timer, 0, &t), 0);
        while (count(b.port) == i)
            HC(sched_op, SCHEDOP_block, 0);     /* unmasks */
        CHECK(now_ns() >= t.timeout_abs_ns);
        EQ(count(b.port), i + 1);
        set_mask(1);
    }
    /* Past times fire at once. */
    t.timeout_abs_ns = 1;
    EQ(HC(vcpu_op, VCPUOP_set_singleshot_timer, 0, &t), 0);
    while (count(b.port) == 10)
        HC(sched_op, SCHEDOP_block, 0);
    set_mask(1);
    t.flags = VCPU_SSHOTTMR_future;
    EQ(HC(vcpu_op, VCPUOP_set_singleshot_timer, 0, &t), -ETIME);
    EQ(HC(vcpu_op, VCPUOP_set_singleshot_timer, 1, &t), -EINVAL);
    /* Stopped: does not fire. */
    t.flags = 0;
    t.timeout_abs_ns = now_ns() + 2000000;
    EQ(HC(vcpu_op, VCPUOP_set_singleshot_timer, 0, &t), 0);
    EQ(HC(vcpu_op, VCPUOP_stop_singleshot_timer, 0, 0), 0);
    while (now_ns() < t.timeout_abs_ns + 3000000)
        pause_();
    EQ(pending(b.port), 0);
    EQ(HC(set_timer_op, now_ns() + 1000000), 0);
    while (count(b.port) == 11)
        HC(sched_op, SCHEDOP_block, 0);
    set_mask(1);
    EQ(close(b.port), 0);
    mask(b.port);
}
