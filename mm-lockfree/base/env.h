/* SPDX-License-Identifier: MIT */
/* Everything that mm-lockfree, sched and numa need from outside.  On the metal these are inline; in a
 * hosted build a CPU is a thread and the functions live in tests/host/env.c.  This is the only header
 * that may ask which build it is in. */
#ifndef PT_BASE_ENV_H
#define PT_BASE_ENV_H

#include "base/types.h"

#ifdef HV_HOSTED

unsigned env_cpu(void);                /* number of the calling CPU, 0..env_nr_cpus()-1 */
unsigned env_nr_cpus(void);
u64 env_tsc(void);                     /* time stamp, ordered after every earlier access */
void *env_map(mfn_t mfn);              /* the frame's bytes */
mfn_t env_mfn_of(const void *page);    /* the inverse, for pages from env_page_alloc() */
void env_flush_local(void);            /* drops every guest translation of this CPU */
void env_invlpg_local(u64 va);         /* drops the translations of one page on this CPU */
void env_send_tlb_ipi(unsigned cpu);   /* makes @cpu call tlb_poll() soon */
bool env_preempt(void);                /* a test wants long work suspended now; on the metal never */
void env_kick(unsigned cpu);           /* makes @cpu pass a quiescent point and look for work soon */
u64 env_now(void);                     /* ns since boot */
#ifdef HV_MC
#define ENV_MAX_CPUS 4
#else
#define ENV_MAX_CPUS 1024
#endif
struct frame;
#define ENV_BUDGET host_budget
extern u64 host_budget;
struct pt_work *env_work(void);        /* the work item of the vCPU that runs on this CPU */
extern struct frame *env_frame_table;
#define FRAME_TABLE env_frame_table
#define ENV_STATS_MAX 128
extern u64 env_stats[ENV_MAX_CPUS][ENV_STATS_MAX];
#define ENV_OWN_STATS  (env_stats[env_cpu()])
#define ENV_STATS(cpu) (env_stats[cpu])

#else

#include "arch/env_metal.h"
#define ENV_MAX_CPUS NR_CPUS

#endif

/* One page of hypervisor memory, zeroed by the caller if need be; NULL when none is left.  Any CPU. */
void *env_page_alloc(void);
void env_page_free(void *page);

/* RCU period @period has been waiting for @age_ns for the CPUs in the bitmap @late.  Called once a period. */
void env_rcu_stall(u64 period, u64 age_ns, const u64 *late);

#endif
