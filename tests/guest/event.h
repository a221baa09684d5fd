/* SPDX-License-Identifier: MIT */
/* Shorthand for event channels. */
#ifndef TEST_GUEST_EVENT_H
#define TEST_GUEST_EVENT_H

#include "guest.h"

static inline u32 bind_ipi(u32 vcpu)
{
    struct evtchn_bind_ipi b = { .vcpu = vcpu };

    REQUIRE(EQ(HC(event_channel_op, EVTCHNOP_bind_ipi, &b), 0));
    REQUIRE(b.port && b.port < 64);
    port_count[b.port] = 0;
    return b.port;
}

static inline long send(u32 port)
{
    struct evtchn_send s = { port };

    return HC(event_channel_op, EVTCHNOP_send, &s);
}

static inline long close(u32 port)
{
    struct evtchn_close c = { port };

    return HC(event_channel_op, EVTCHNOP_close, &c);
}

static inline long unmask(u32 port)
{
    struct evtchn_unmask u = { port };

    return HC(event_channel_op, EVTCHNOP_unmask, &u);
}

static inline u64 count(u32 port) { return __atomic_load_n(&port_count[port], __ATOMIC_SEQ_CST); }
static inline bool pending(u32 port) { return load(&shared->evtchn_pending[port / 64]) >> (port & 63) & 1; }
static inline void mask(u32 port)
{
    __atomic_fetch_or(&shared->evtchn_mask[port / 64], 1ul << (port & 63), __ATOMIC_SEQ_CST);
}

static inline void clear(u32 port)
{
    __atomic_fetch_and(&shared->evtchn_pending[port / 64], ~(1ul << (port & 63)), __ATOMIC_SEQ_CST);
}

static inline void set_mask(u8 m) { __atomic_store_n(&this_cpu()->info->evtchn_upcall_mask, m, __ATOMIC_SEQ_CST); }
static inline void poke(void) { HC(xen_version, XENVER_version, 0); }     /* takes what became pending while masked */

#endif
