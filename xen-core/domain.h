/* SPDX-License-Identifier: MIT */
/* Domains and vCPUs: the state of a PV guest. */
#ifndef PT_DOMAIN_H
#define PT_DOMAIN_H

#include "base/errno.h"
#include "base/types.h"

#include <xen/xen.h>
#include <xen/event_channel.h>
#include <xen/sched.h>
#include <xen/vcpu.h>

#include "arch/cpu.h"
#include "base/atomic.h"
#include "sched.h"

#define DOM_MAX_VCPUS   512
#define NR_EVTCHN       4096      /* 2-level ABI, 64-bit guest */

/* One event channel of a domain.  State changes under the domain's evtchn_lock; send reads it without. */
struct evtchn {
    u8 state;                     /* ECS_* */
    u8 pad;
    u16 virq;                     /* ECS_VIRQ */
    u32 vcpu;                     /* the vCPU notified */
    u16 remote_dom;               /* ECS_UNBOUND, ECS_INTERDOMAIN */
    u16 pad2;
    u32 remote_port;              /* ECS_INTERDOMAIN */
};
enum { ECS_FREE, ECS_RESERVED, ECS_UNBOUND, ECS_INTERDOMAIN, ECS_VIRQ, ECS_IPI };

struct trap_entry { u64 address; u8 flags; };     /* flags: bits 0-1 DPL, bit 2 mask events */
struct callback { u64 address; bool mask, set; };

struct vcpu {
    struct cpu_regs regs;         /* when not running; otherwise at the top of the CPU's stack */
    struct domain *domain;
    u32 id;
    u32 dt_slot;                  /* index of its VCPU_DT area */
    u64 *dt_pte;                  /* the 64 L1 entries of that area */
    struct sched_entity se;       /* run state; see sched/sched.h */

    /* Own CPU only, or while the vCPU is not initialised. */
    bool initialised;
    bool guest_kernel;            /* virtual kernel mode (both modes run at CPL 3) */
    u16 ds, es, fs, gs;           /* selectors, saved at switch-out */
    u64 fs_base, gs_base_kernel, gs_base_user;   /* inactive GS base is always current; active ones at switch-out */
    u64 kernel_sp, kernel_ss;
    struct trap_entry trap[256];
    struct callback cb_event, cb_failsafe, cb_syscall, cb_syscall32, cb_sysenter;
    u64 cr2, cr4;                 /* virtual */
    mfn_t root_kernel, root_user; /* L4 frames, each holding a typed reference; root_user may be MFN_INVALID */
    mfn_t gdt_frame[14];
    u32 gdt_ents;
    u64 ldt_base;
    u32 ldt_ents;
    u64 dr[8];
    u64 xcr0;
    u8 *xsave;                    /* 64-byte aligned */
    u32 tsc_aux;
    u8 iopl;
    u64 iobmp;                    /* guest address of the I/O bitmap, 0 none */
    u32 iobmp_ports;

    /* Event delivery.  @info points to the shared page (static or registered area). */
    vcpu_info_t *info;            /* changed by its own registration only */
    mfn_t info_mfn;               /* the registered frame, or MFN_INVALID */
    u32 poll_nr;                  /* SCHEDOP_poll: ports in poll_port, 0 = not polling */
    u32 poll_port[8];
    u16 virq_port[NR_VIRQS];      /* per-vCPU VIRQs, 0 = unbound */

    /* Time. */
    u64 singleshot_ns;            /* absolute, ~0 = off */
    u64 runstate_guest;           /* guest address of vcpu_runstate_info, 0 none */
    struct vcpu_runstate_info runstate;
    u64 time_area;                /* guest address of the secondary vcpu_time_info, 0 none */
    bool down;                    /* VCPUOP_down, or never up */

    u8 *scratch_context;          /* two pages, for VCPUOP_initialise */
    void *mm;                     /* mm-lockfree's per-vCPU part: soft TLB, decode cache */
    struct pt_work *work;         /* its type changes under way */
    struct { bool set; u64 a[3]; } cont;   /* the first arguments of the hypercall that is to be issued again */
};

struct domain {
    u16 domid;
    bool is_initial;              /* dom0 */
    bool dying;
    u32 shutdown_code;
    u32 max_vcpus;
    struct vcpu **vcpu;           /* [max_vcpus] */
    u64 nr_pages;
    shared_info_t *shared;
    mfn_t shared_mfn;
    struct evtchn *evtchn;        /* [NR_EVTCHN] */
    u32 nr_polling;               /* vCPUs in SCHEDOP_poll */
    u32 evtchn_lock;              /* bind/close only, never on send: see abi/evtchn.c */
    u16 global_virq_port[NR_VIRQS];
    struct mm_domain *mm;         /* mm-lockfree's per-domain part */
    u64 grant_mfn[32];            /* frames of the grant table, allocated on demand */
    u32 nr_grant_frames;
};

extern struct domain *dom0;

static inline struct domain *current_domain(void) { return current_vcpu()->domain; }

/* Kills the domain of the current vCPU: prints the reason and registers, and never lets it run again.
 * Returns; the caller unwinds to the exit path, which picks something else. */
void domain_crash(struct domain *d, const char *fmt, ...) __printf(2, 3);
/* The guest asked to stop (SHUTDOWN_*): stops all its vCPUs; the initial domain takes the machine along, at the next safe
 * point (stop.h).  Returns. */
void domain_shutdown(struct domain *d, u32 reason);
/* The end of the machine with its initial domain: powers off, reboots or halts.  The world is stopped. */
void domain_end(struct domain *d) __noreturn;

/* Guest memory of the current vCPU (its kernel root is loaded).  0, or -EFAULT when the range touches the
 * hypervisor or is not mapped with the needed rights; a partial copy may have happened. */
int copy_from_guest(void *dst, u64 src, size_t len);
int copy_to_guest(u64 dst, const void *src, size_t len);

/* Makes event port @port of @d pending; wakes or kicks its vCPU if it must notice.  Any CPU, no lock. */
void evtchn_set_pending(struct domain *d, u32 port);
/* Sends a per-vCPU VIRQ (or, for v == NULL, the domain-wide one). */
void send_vcpu_virq(struct vcpu *v, u32 virq);
void send_global_virq(struct domain *d, u32 virq);
/* Runs at VCPUOP_initialise: lead's context code. */
int vcpu_set_context(struct vcpu *v, const struct vcpu_guest_context *ctx);

/* A hypercall: five register arguments; the result goes to rax.  -XEN_ERESTART: the guest issues it again, at once or after
 * what is pending for it; with the arguments of hypercall_again() if that was called. */
typedef long hypercall_fn(u64 a1, u64 a2, u64 a3, u64 a4, u64 a5);
static inline long hypercall_again(u64 a1, u64 a2, u64 a3)
{
    struct vcpu *v = current_vcpu();

    v->cont.set = true;
    v->cont.a[0] = a1;
    v->cont.a[1] = a2;
    v->cont.a[2] = a3;
    return -XEN_ERESTART;
}

#endif
