/* SPDX-License-Identifier: MIT */
/* Events between two vCPUs, and the time that both see. */
#include "event.h"

static u32 ping, pong;
#define ROUNDS 200

static void answer(void *arg)
{
    (void)arg;
    set_mask(0);
    poke();
    for (u64 n = 1; n <= ROUNDS; n++) {
        while (count(ping) < n)
            pause_();
        send(pong);
    }
    set_mask(1);
}

static void answer_blocking(void *arg)
{
    (void)arg;
    for (u64 n = 1; n <= ROUNDS; n++) {
        set_mask(1);
        while (count(ping) < n) {
            HC(sched_op, SCHEDOP_block, 0);
            set_mask(1);
        }
        send(pong);
    }
}

static void ping_pong(void (*other)(void *), bool block)
{
    ping = bind_ipi(1);
    pong = bind_ipi(0);
    EQ(unmask(ping), 0);
    EQ(unmask(pong), 0);
    vcpu1_run(other, NULL);
    set_mask(block);
    for (u64 n = 1; n <= ROUNDS; n++) {
        EQ(send(ping), 0);
        while (count(pong) < n) {
            if (block) {
                HC(sched_op, SCHEDOP_block, 0);
                set_mask(1);
            } else {
                pause_();
            }
        }
    }
    set_mask(1);
    vcpu1_wait();
    EQ(count(ping), ROUNDS);
    EQ(count(pong), ROUNDS);
    EQ(close(ping), 0);
    EQ(close(pong), 0);
    mask(ping);
    mask(pong);
}

TEST(ipi_spinning) { ping_pong(answer, false); }
TEST(ipi_blocking) { ping_pong(answer_blocking, true); }

static void poller(void *arg)
{
    u32 port = ping;
    struct sched_poll p = { .nr_ports = 1 };

    (void)arg;
    set_xen_guest_handle(p.ports, &port);
    for (unsigned n = 0; n < ROUNDS; n++) {
        while (!pending(ping))
            HC(sched_op, SCHEDOP_poll, &p);
        clear(ping);
        send(pong);
    }
}

TEST(poll_other_vcpu)
{
    u32 port;
    struct sched_poll p = { .nr_ports = 1 };

    ping = bind_ipi(1);
    port = pong = bind_ipi(0);
    mask(ping);
    mask(pong);
    set_xen_guest_handle(p.ports, &port);
    vcpu1_run(poller, NULL);
    for (unsigned n = 0; n < ROUNDS; n++) {
        EQ(send(ping), 0);
        while (!pending(pong))
            HC(sched_op, SCHEDOP_poll, &p);
        clear(pong);
    }
    vcpu1_wait();
    EQ(close(ping), 0);
    EQ(close(pong), 0);
}

/* Binding, sending and closing the same ports from two sides. */
static void port_storm(void *arg)
{
    for (u32 i = 0; i < race_rounds / 10; i++) {
        struct evtchn_bind_ipi b = { .vcpu = i & 1 };

        if (HC(event_channel_op, EVTCHNOP_bind_ipi, &b))
            continue;
        send(b.port);
        send(b.port ^ 1);
        close(b.port);
    }
    (void)arg;
}

TEST(race_ports)
{
    u32 port;

    vcpu1_run(port_storm, NULL);
    port_storm(NULL);
    vcpu1_wait();
    port = bind_ipi(0);
    CHECK(port < 8);                            /* none was lost */
    EQ(close(port), 0);
    memset(shared->evtchn_pending, 0, sizeof(shared->evtchn_pending));
}

/* Time ------------------------------------------------------------------------------------------------------- */

static volatile u64 latest;
static unsigned backwards;

static void watch_time(void *arg)
{
    u64 end = now_ns() + 20000000, t;

    (void)arg;
    do {
        u64 seen = latest;

        t = now_ns();
        if (t < seen)
            __atomic_fetch_add(&backwards, 1, __ATOMIC_SEQ_CST);
        while (seen < t && !__atomic_compare_exchange_n(&latest, &seen, t, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            ;
    } while (t < end);
}

TEST(time_monotonic)
{
    CHECK(shared->wc_sec > 1500000000);
    CHECK(cpus[0].info->time.tsc_to_system_mul != 0);
    latest = 0;
    backwards = 0;
    vcpu1_run(watch_time, NULL);
    watch_time(NULL);
    vcpu1_wait();
    EQ(backwards, 0);
}
