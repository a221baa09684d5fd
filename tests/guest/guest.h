/* SPDX-License-Identifier: MIT */
/* The test guest: a PV kernel that does nothing but try the hypervisor's interfaces, and say what it found. */
#ifndef TEST_GUEST_H
#define TEST_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <xen/xen.h>
#include <xen/callback.h>
#include <xen/event_channel.h>
#include <xen/memory.h>
#include <xen/sched.h>
#include <xen/vcpu.h>
#include <xen/version.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#define PAGE 4096ul
#define VIRT_BASE 0xffffffff80000000ul
#define NR_VCPUS 4                          /* at most; nr_vcpus has how many there are */
#define STACK_SIZE 16384
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define EPERM 1
#define ENOENT 2
#define ESRCH 3
#define EFAULT 14
#define EBUSY 16
#define EEXIST 17
#define EINVAL 22
#define ENOSYS 38
#define ETIME 62

/* As trap_common leaves them; vec 256 upcall, 257 SYSCALL, 258 failsafe, 259 compatibility SYSCALL. */
struct regs {
    u64 r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
    u64 vec, err, rip;
    u32 cs, mask;                           /* the mask byte that was saved */
    u64 rflags, rsp, ss;
};

#define VEC_EVENT 256
#define VEC_SYSCALL 257
#define VEC_FAILSAFE 258
#define VEC_SYSCALL32 259

struct frame_iret { u64 rax, r11, rcx, flags, rip, cs, rflags, rsp, ss; };

struct cpu {
    u32 id;
    vcpu_info_t *info;
    u64 test_sp;                            /* where an unexpected trap continues; 0: nowhere */
    u64 frame_sp;                           /* where a trap from user mode, or one that enter() awaits, continues */
    bool catch_all;                         /* enter() awaits a trap from kernel mode as well */
    struct regs trap;                       /* the last trap that was expected */
    u64 trap_cr2;
    u64 trap_frame_end;                     /* first byte above its frame on the stack */
    u32 traps;                              /* how many there were */
    u32 upcalls;
    u64 upcall_ns;                              /* when the last one came */
    struct regs upcall;                     /* the frame of the last one */
    void (*work)(void *);                   /* vCPUs other than 0: what to run now */
    void *work_arg;
};

extern struct cpu cpus[NR_VCPUS];
extern char stacks[NR_VCPUS * 2][STACK_SIZE];
extern struct start_info *si;
extern shared_info_t *shared;
extern u64 port_count[64];                  /* upcalls by port */
extern bool mode_ptwr;                      /* the hypervisor runs with pt_update=ptwr */
extern u32 race_rounds;
extern unsigned nr_vcpus;

/* Found by the stack: the segment bases are what is being tested. */
static inline struct cpu *this_cpu(void)
{
    u64 sp;

    __asm__ volatile("mov %%rsp, %0" : "=r"(sp));
    return *(struct cpu **)(sp & ~(STACK_SIZE - 1ul));
}

static inline struct regs *last(void) { return &this_cpu()->trap; }

/* Hypercalls ------------------------------------------------------------------------------------------- */

static inline long hypercall(u64 nr, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5)
{
    register u64 r10 __asm__("r10") = a4;
    register u64 r8 __asm__("r8") = a5;
    long rc = (long)nr;

    __asm__ volatile("syscall" : "+a"(rc), "+D"(a1), "+S"(a2), "+d"(a3), "+r"(r10), "+r"(r8)
                     :: "rcx", "r11", "memory", "cc");
    return rc;
}
#define HC_(nr, a, b, c, d, e, ...) hypercall(nr, (u64)(a), (u64)(b), (u64)(c), (u64)(d), (u64)(e))
#define HC(name, ...) HC_(__HYPERVISOR_##name, __VA_ARGS__, 0, 0, 0, 0, 0)

/* Output and small things -------------------------------------------------------------------------------- */

void *memset(void *d, int c, size_t n);
void *memcpy(void *d, const void *s, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
const char *strstr_(const char *s, const char *what);
void format(char *buf, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void format_va(char *buf, size_t size, const char *fmt, __builtin_va_list ap);
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void shutdown(u32 reason) __attribute__((noreturn));
const char *option(const char *name);       /* value of name=value in the command line, ended by a blank; or NULL */
u64 now_ns(void);
static inline void pause_(void) { __asm__ volatile("pause" ::: "memory"); }
static inline u64 load(const void *p) { return *(const volatile u64 *)p; }

/* Traps ---------------------------------------------------------------------------------------------------- */

/* Runs one instruction (more may follow); true when it trapped: this_cpu()->trap says how.  A(...) protects commas. */
#define A(...) __VA_ARGS__
#define EX_TABLE(a, b) ".pushsection .ex_table, \"a\"\n .quad " a ", " b "\n .popsection\n"
#define TRY(insn, out, in) ({ \
    u32 f_ = 0; \
    __asm__ volatile("1: " insn "\n jmp 3f\n2: mov $1, %k[f_]\n3:\n" EX_TABLE("1b", "2b") \
                     : [f_] "+r"(f_) out : in : "memory", "cc"); \
    (bool)f_; })

/* The same for one instruction alone, with its address and the stack pointer. */
#define TRY_AT(insn, at, sp) ({ \
    u32 bad_ = 0; \
    __asm__ volatile("mov %%rsp, %[sp_]\n lea 1f(%%rip), %[at_]\n1: " insn "\n jmp 3f\n2: mov $1, %k[bad_]\n3:\n" \
                     EX_TABLE("1b", "2b") : [bad_] "+r"(bad_), [at_] "=&r"(at), [sp_] "=&r"(sp) :: "memory", "cc"); \
    (bool)bad_; })

static inline bool try_read(const void *p, u64 *v)
{
    u64 x = 0;
    bool bad = TRY("mov (%[p]), %[x]", A(, [x] "=&r"(x)), A([p] "r"(p)));

    if (v)
        *v = x;
    return bad;
}
static inline bool try_write(void *p, u64 v) { return TRY("movq %[v], (%[p])", , A([p] "r"(p), [v] "r"(v))); }

int run_guarded(void (*fn)(void *), void *arg, u64 *save_sp);
void leave(u64 sp) __attribute__((noreturn));
int enter_frame(const struct frame_iret *f, u64 *save_sp, u64 rdi, u64 rsi);
void call_preserving(u64 regs[14]);
void register_traps(void);
void trap_handler(struct regs *r);

/* Goes to @f by the iret hypercall and comes back at the next trap (from user mode; with @any from any mode). */
struct regs *enter(const struct frame_iret *f, bool any, u64 rdi, u64 rsi);

extern char trap_stubs[256][16], event_entry[], syscall_entry[], syscall32_entry[], failsafe_entry[], vcpu_start[];
extern char hypercall_page[];

/* Tests ----------------------------------------------------------------------------------------------------- */

struct test { const char *name; void (*fn)(void); };
#define TEST(name_) \
    static void test_##name_(void); \
    static const struct test entry_##name_ __attribute__((used, aligned(16), section(".tests"))) = \
        { #name_, test_##name_ }; \
    static void test_##name_(void)

void fail_at(const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool check_at(const char *file, int line, const char *expr, bool ok);
bool eq_at(const char *file, int line, const char *expr, long got, long want);
#define FAIL(...) fail_at(__FILE_NAME__, __LINE__, __VA_ARGS__)
#define CHECK(c) check_at(__FILE_NAME__, __LINE__, #c, (c))
#define EQ(got, want) eq_at(__FILE_NAME__, __LINE__, #got, (long)(got), (long)(want))
#define REQUIRE(c) ({ if (!CHECK(c)) abandon_test(); })
void abandon_test(void) __attribute__((noreturn));
void fail_trap(const struct regs *r, u64 cr2);

/* Checks the last expected trap. */
#define TRAPPED(vec_, err_) ({ EQ(this_cpu()->trap.vec, vec_); EQ(this_cpu()->trap.err, err_); })

/* Starts vCPU @id if need be; runs @fn on it; waits for it. */
void vcpu_run(unsigned id, void (*fn)(void *), void *arg);
void vcpu_wait(unsigned id);
extern volatile u32 stop;                   /* what it runs may have to come to an end; cleared by vcpu1_run */
bool vcpu_start_one(unsigned id);
void vcpu_context(struct vcpu_guest_context *ctx, unsigned id);
extern bool vcpu_started[NR_VCPUS];
/* The same for vCPU 1, which most tests mean by the other one; stop is cleared first. */
void vcpu1_run(void (*fn)(void *), void *arg);
static inline void vcpu1_wait(void) { vcpu_wait(1); }
/* For all but vCPU 0. */
void vcpus_run(void (*fn)(void *), void *arg);
void vcpus_wait(void);
void vcpu_main(struct cpu *c) __attribute__((noreturn));
void guest_main(struct start_info *info) __attribute__((noreturn));
void run_crash(const char *name);

/* Memory ------------------------------------------------------------------------------------------------------ */

#define P   1ul
#define RW  2ul
#define US  4ul
#define PWT 8ul
#define PCD 16ul
#define AC  32ul
#define DI  64ul
#define PSE 128ul
#define G   256ul
#define NX  (1ul << 63)
#define RWE (P | RW | US | AC | DI)         /* an entry for a writable page, as the hardware leaves it */
#define ROE (P | US | AC | DI)
#define MFN_MASK 0x000ffffffffff000ul
#define M2P ((const u64 *)0xffff800000000000ul)
#define HV_BASE 0xffff800000000000ul
#define HV_END 0xffff880000000000ul
#define FLAT_CS 0xe033ul
#define FLAT_SS 0xe02bul
#define SCRATCH (VIRT_BASE + 0x20000000ul)  /* 2 MiB steps without tables */

void mm_init(void);
void *page_alloc(void);                     /* zeroed, mapped writable */
void page_free(void *p);                    /* fails the test if it cannot be made writable */
void page_lose(void *p);                    /* its frame is gone for good */
unsigned pages_free(void);
u64 mfn_of(const void *va);
void *va_of(u64 mfn);
bool own_mfn(u64 mfn);
u64 max_page(void);
u64 foreign_mfn(unsigned n);                /* the n-th RAM frame that is not ours; 0: there are no more */
u64 pte_ma(u64 va, int level);              /* machine address of the entry that maps @va; 0: no table */
u64 pte_get(u64 va, int level);
static inline u64 pte(u64 mfn, u64 flags) { return mfn << 12 | flags; }
static inline u64 ma(const void *p, unsigned i) { return mfn_of(p) << 12 | i * 8; }        /* entry @i of the page @p */
static inline u64 root_mfn(void) { return mfn_of((void *)si->pt_base); }
static inline u64 table_mfn(u64 va, int level) { return pte_ma(va, level) >> 12; }
long mmu_update(u64 ptr, u64 val);
long mmuext(u32 cmd, u64 arg1, u64 arg2);
static inline long pin(int level, u64 mfn) { return mmuext(MMUEXT_PIN_L1_TABLE + (u32)level - 1, mfn, 0); }
static inline long unpin(u64 mfn) { return mmuext(MMUEXT_UNPIN_TABLE, mfn, 0); }
long map_va(u64 va, u64 entry);             /* update_va_mapping with a local flush of the page */
long make_ro(void *p);
long make_rw(void *p);
void *table_page(void);                     /* an empty page, mapped read-only */
void hook(u64 va, int level, void *table);  /* hangs a read-only page into the tables at @va; REQUIREs success */
void unhook(u64 va, int level);
extern u64 *scratch;                        /* an L1 at SCRATCH, between scratch_open and scratch_close */
void scratch_open(void);
void scratch_close(void);
/* Is the page free of all types: writable, pinnable, writable again?  Its contents are lost; false fails the test. */
bool usable(void *p);

/* A root for user mode: user_page at USER_CODE, a writable page at USER_DATA. */
#define USER_CODE 0x400000ul
#define USER_DATA 0x401000ul
struct user_space { void *l4, *l3, *l2, *l1, *data; };
bool user_space_make(struct user_space *u);
void user_space_drop(struct user_space *u);
extern char user_page[];
/* Runs user code from @entry with rdi, rsi; the trap that ended it. */
struct regs *enter_user(const char *entry, u64 rdi, u64 rsi);
#define USER_RIP(entry) (USER_CODE + (u64)((entry) - user_page))
extern char user_syscall[], user_ud2[], user_int3[], user_int80[], user_int20[], user_int0d[], user_read[],
    user_write[], user_lock[], user_rdmsr[], user_cpuid[], user_plain_cpuid[], user_in[], user_gs[], user_cr3[],
    user_spin[];

#endif
