/* SPDX-License-Identifier: MIT */
/* The controlled-interleaving checker: simulated CPUs with store buffers and MMUs that run the shipped mm-lockfree/
 * sources one shared access at a time.  See README.md. */
#ifndef MC_H
#define MC_H

#include "pt_work.h"
#include "ptwr.h"

#define CPUS     3                       /* at most */
#define NVA      8                       /* guest pages that the simulated MMUs know */
#define FRAMES   20                      /* guest frames 1..FRAMES-1; 0 stays unused */
#define HV_PAGES 12
#define SB_DEPTH 4
#define OPS_MAX  24                      /* operations of one CPU's program */

/* Actors: who can take a scheduling step.  The CPU itself, its oldest buffered store, the delivery of its pending
 * interrupt, the page walker of its MMU for one of the pages, and what makes it suspend long work where it may. */
#define ACTOR_CPU(c)   (c)
#define ACTOR_DRAIN(c) (CPUS + (c))
#define ACTOR_IPI(c)   (2 * CPUS + (c))
#define ACTOR_MMU(c, v) (3 * CPUS + (c) * NVA + (v))
#define ACTOR_PREEMPT(c) (3 * CPUS + CPUS * NVA + (c))
#define ACTORS         (4 * CPUS + CPUS * NVA)
#define BIT(n)         (1ull << (n))
#define CPU_MASK       (BIT(CPUS) - 1)
#define DRAIN_MASK     (CPU_MASK << CPUS)
#define IPI_MASK       (CPU_MASK << (2 * CPUS))

struct tlb_entry { u8 ok, frame, rw, us, dirty; };
struct psc_entry { u8 ok, frame, rw, us; };        /* paging-structure cache: the table of one level for one page */
struct walk { u8 level, frame, rw, us; };          /* level 0: none under way */

struct cpu {
    void *sp;                            /* of its coroutine while it does not run */
    struct { void *p; u64 v; u8 size; bool guest; } sb[SB_DEPTH];
    unsigned sb_n;
    bool blocked;                        /* in cpu_relax(), until somebody writes */
    bool at_rest;                        /* its program is over; wakes for interrupts */
    bool rested, finished;
    bool ipi_here;                       /* an interrupt waits for the CPU to be in guest mode */
    bool in_hv, idle;
    bool preempted;                      /* long work is to be suspended here */
    u8 preempts;                         /* how often that may still happen */
    u32 section;                         /* RCU read sections ended */
    mfn_t cr3;                           /* the loaded root; MFN_INVALID: the hypervisor's own */
    struct tlb_entry tlb[NVA];
    struct psc_entry psc[NVA][4];        /* [v][level]: the table of @level (1..3); v stands for all that share it */
    struct walk walk[NVA];
    u8 budget[NVA];                      /* walks that the MMU may still start on its own */
    /* The virtual CPU that runs on it. */
    mfn_t root_kernel, root_user;
    bool guest_kernel, batch;
};

enum op_code {
    OP_UPD, OP_UPDA, OP_XCHG, OP_BTR, OP_MOV, OP_CMPXCHG, OP_PIN, OP_UNPIN, OP_BASE, OP_UBASE, OP_USER, OP_KERNEL,
    OP_REL, OP_FLUSH, OP_FLUSHME, OP_BB, OP_BE, OP_GW, OP_GR, OP_SEG, OP_IDLE, OP_COPY, OP_NOP, OP_CODES
};
/* a: table, frame or page number; b: index or level; c: frame named by the entry; f: what entry (see entry_of()). */
struct op { u16 b; u8 code, a, c, f; };
struct scenario {
    char name[24];
    bool ptwr;
    u8 cpus, oom;                        /* oom: which allocation of a pt_meta fails, 0: none */
    u8 pages;                            /* that page walkers look at on their own, bits; 0: all */
    u8 preempts;                         /* how often long work of each CPU may be suspended */
    u8 steady;                           /* that nobody remaps: no read there may fault, bits */
    u8 watch[3];                         /* frames whose kernel mappings the MMUs look at */
    u8 n[CPUS], n_setup;
    struct op op[CPUS][OPS_MAX], setup[OPS_MAX];     /* setup: what CPU 0 did before, undisturbed */
};

/* The run in progress. */
struct run {
    u64 enabled;                         /* actors that can take a step */
    u64 clock, steps, limit;
    u32 jumps;                           /* times in a row that nobody could do anything but wait */
    unsigned cur;                        /* actor of the last step */
    unsigned cpu;                        /* CPU whose code runs */
    bool direct;                         /* building the world: no scheduling, no buffers */
    bool calm;                           /* the programs are over: the default order from here */
    bool resting;                        /* the audit, outside any CPU's code */
    bool failed;
    unsigned nr_cpus;
    u8 steady;
    char why[200];
};
extern struct run mc;
extern struct cpu cpus[CPUS];
extern bool mc_trace;                    /* print every step */

void mc_tracef(const char *fmt, ...) __printf(1, 2);
#define TRACE(...) do { if (unlikely(mc_trace)) mc_tracef(__VA_ARGS__); } while (0)

/* Ends the run as failed; does not return to the caller in a run. */
void mc_violation(const char *fmt, ...) __printf(1, 2);

/* sched.c */
enum strategy { BY_PCT, BY_RANDOM, BY_REPLAY, BY_DFS };
struct seg { u8 actor; u32 count; };
struct decisions { struct seg *seg; unsigned n, max; };
struct plan {
    enum strategy how;
    u64 seed;
    u8 eager;                            /* default order: buffered stores and interrupts first */
    u8 prefill;                          /* CPUs (bits) whose TLB is full at the start */
    u8 depth;                            /* priority changes, PCT */
    const struct decisions *replay;      /* BY_REPLAY; the default order follows */
    struct { u32 step; u8 actor; } dev[4];      /* BY_DFS: departures from the default order */
    unsigned ndev;
};
extern struct decisions mc_taken;        /* the schedule of the last run */
/* Runs @s once.  False: a violation, see mc.why. */
bool mc_run(const struct scenario *s, const struct plan *p);
void mc_point(void);                     /* any other actor may run now */
void mc_wake_waiters(unsigned except);
/* BY_DFS: the actors that could have run instead at step @i of the last run, 0 past its end. */
u64 mc_alternatives(u32 i);
u64 mc_random(u64 *state);

/* mem.c */
extern u8 mc_mem[FRAMES][PAGE_SIZE];
extern u8 mc_hv[HV_PAGES][PAGE_SIZE];
extern struct frame mc_frames[FRAMES];
extern char __start_mcstate[], __stop_mcstate[];
extern u8 mc_interesting[FRAMES][PT_ENTRIES];   /* slots that scenarios use; accesses to others take no step */
void mc_drain_one(unsigned cpu);
void mc_drain_all(void);                 /* of the running CPU, a step each */
void mc_commit(unsigned cpu, void *p, u64 v, unsigned size, bool guest);
void mc_undo(void);                      /* guest frames as they were at the last mc_undo() or mc_undo_mark() */
void mc_undo_mark(void);
void mc_store_guest(void *p, u64 v);
static inline u64 *mc_slot(unsigned frame, unsigned idx) { return (u64 *)(void *)mc_mem[frame] + idx; }
const char *mc_name(const void *p);      /* of an address, for traces */

/* mmu.c */
extern u64 mc_va[NVA];
extern u8 mc_writers[FRAMES];            /* cached user-accessible writable translations, all CPUs */
void mmu_reset(u8 pages);
void mmu_set_watch(const u8 *watch);
void mmu_step(unsigned cpu, unsigned v, bool write);   /* one step of a walk */
void mmu_flush(unsigned cpu);
void mmu_invlpg(unsigned cpu, unsigned v);
void mmu_prefill(unsigned cpu);
/* A guest access by the running CPU through its MMU.  0, or the error code of the fault. */
unsigned mmu_access(unsigned v, bool write, unsigned idx, u64 val);

/* oracle.c */
void oracle_reset(void);
void oracle_fw(unsigned frame, u64 old, u64 new, unsigned cpu);
void oracle_slot(unsigned frame, unsigned idx);          /* an entry changed, or is used by a walk */
void oracle_read(unsigned frame, unsigned cpu);          /* the hypervisor reads an entry of @frame */
void oracle_cached(unsigned frame);                      /* a translation to or through @frame was cached */
void oracle_guest_store(unsigned frame);
void oracle_rest(void);                                  /* at rest: counts, marks, leaks */
extern u8 oracle_users[FRAMES][5];                       /* cached user-accessible uses as table of a level, all CPUs */
extern u8 oracle_uses[FRAMES][5], oracle_maps[FRAMES];   /* the same with supervisor ones; any translations */

/* world.c */
extern struct mm_domain mc_dom;
extern u8 mc_released[FRAMES];
extern u64 mc_metas;                     /* struct pt_meta in use */
void world_init(void);
void world_reset(const struct scenario *s);
unsigned world_frame(const char *name, unsigned len);    /* 0: no such frame */
const char *world_name(unsigned frame);
void mc_call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head));
struct pt_meta *mc_meta_alloc(void);
bool mc_rcu_pending(void);

/* ops.c */
void setup_program(const struct scenario *s);
void cpu_program(unsigned cpu, const struct scenario *s);
void guest_load_root(struct cpu *c);
u64 entry_of(unsigned frame, char how);
void guest_point(void);                  /* between two instructions of the guest: takes what interrupts it */
void hv_enter(void);
void hv_exit(void);
#define MC_REGS 24                       /* saved registers that an emulated instruction sees, see emulate/insn.h */

/* guest.c */
void guest_access(struct cpu *c, unsigned v, bool write, unsigned idx, u64 val);
void hv_copy(unsigned v);

/* scenario.c */
bool scenario_parse(struct scenario *s, const char *text);
void scenario_print(const struct scenario *s, char *buf, size_t size);
void scenario_random(struct scenario *s, u64 seed);
extern const struct directed { const char *name, *text; } mc_directed[];
extern const unsigned mc_nr_directed;

#endif
