/* SPDX-License-Identifier: MIT */
/* Builds the world of the hypercall target and puts it back; described in world.h. */
#include "world.h"

#include <stdlib.h>
#include <string.h>

#include "abi/abi.h"
#include "abi/abi_mm.h"
#include "base/modes.h"
#include "boot/boot.h"
#include "memory.h"
#include "ptwr.h"
#include "vcpu.h"
#include "world_internal.h"

struct domain world_domain;
struct mm_domain world_mm;
struct vcpu world_vcpu[VCPUS];

static struct frame frames[FRAMES + 2] __attribute__((aligned(64)));
static struct vcpu *vcpu_list[VCPUS];
static struct pt_work *work_list[VCPUS];
static struct evtchn evtchn[NR_EVTCHN];
static u64 dt_pte[VCPUS][64];
static u8 scratch[VCPUS][2 * PAGE_SIZE];

#define ENTRY(mfn, flags) pte_make(MFN(mfn), PTE_P | PTE_US | (flags))
static u64 *table(unsigned mfn) { return (u64 *)(void *)world_memory[mfn]; }

/* The vCPU's hypercall: as often as it takes. */
#define UNTIL_DONE(call) while ((call) == -XEN_ERESTART) BUG_ON(pt_work_resume(&world_mm))

static void build_tables(void)
{
    for (unsigned m = 1; m <= DOM_FRAMES; m++)
        table(W_L1)[pt_index(GUEST_VA, 1) + m] = ENTRY(m, m >= W_FIRST_PLAIN ? PTE_RW : 0);
    table(W_L2)[pt_index(GUEST_VA, 2)] = ENTRY(W_L1, PTE_RW);
    table(W_L3)[0] = ENTRY(W_L2, PTE_RW);
    table(W_L4)[0] = ENTRY(W_L3, PTE_RW);
    table(W_L4B)[0] = ENTRY(W_L3, PTE_RW);
    table(W_FREE_L1)[5] = ENTRY(W_FIRST_PLAIN, PTE_RW);
    table(W_FREE_L2)[0] = ENTRY(W_FREE_L1, PTE_RW);
    table(W_FREE_L2)[511] = ENTRY(W_L1B, PTE_RW);
    table(W_FREE_L3)[3] = ENTRY(W_FREE_L2, PTE_RW);
    BUG_ON(pt_pin(&world_mm, MFN(W_L4), FT_L4) || pt_pin(&world_mm, MFN(W_L4B), FT_L4) ||
           pt_pin(&world_mm, MFN(W_L1B), FT_L1));
}

static void build_vcpu(unsigned i)
{
    struct vcpu *v = &world_vcpu[i];

    vcpu_list[i] = v;
    *v = (struct vcpu){ .domain = &world_domain, .id = i, .dt_slot = i, .dt_pte = dt_pte[i], .guest_kernel = true,
                        .down = i >= CPUS, .initialised = i < CPUS, .root_user = MFN_INVALID, .root_kernel = MFN_INVALID,
                        .info_mfn = MFN_INVALID, .singleshot_ns = ~0ull, .dr = { [6] = 0xffff0ff0, [7] = 0x400 },
                        .info = &world_domain.shared->vcpu_info[i], .scratch_context = scratch[i] };
    for (unsigned k = 0; k < ARRAY_SIZE(v->gdt_frame); k++)
        v->gdt_frame[k] = MFN_INVALID;
    v->regs = (struct cpu_regs){ .rsp = GUEST_VA + (DOM_FRAMES - i) * PAGE_SIZE, .cs = FLAT_CS64, .ss = FLAT_DS, .rflags = 0x202 };
    v->info->evtchn_upcall_mask = 1;
    se_init(&v->se, i % CPUS);
    dt_init_vcpu(v);
    v->mm = mm_vcpu_create();
    v->work = work_list[i] = mm_vcpu_work(v->mm);
    vtime_init_vcpu(v);
}

static void build(bool ptwr)
{
    env_frame_table = frames;
    max_mfn = FRAMES;
    pt_phys_mask = ~0ull >> 24;
    host_budget = ~0ull;
    for (unsigned i = 0; i < 16; i++)
        pt_hv_slots[i] = ENTRY(FRAMES + i, 0);
    for (unsigned m = FRAMES; m-- > DOM_FRAMES;)
        env_page_free(world_memory[m]);
    for (unsigned m = 0; m < FRAMES; m++)
        frames[m].owner = OWNER_HV;
    world_mm = (struct mm_domain){ .owner = 1, .io_ok = true, .work = work_list };
    for (unsigned m = 1; m < DOM_FRAMES; m++)
        frame_assign(&frames[m], 1);
    cpu_caps = (struct cpu_caps){ .amd = true, .rdtscp = true, .xsave = true, .xcr0_mask = 7, .xsave_size = 832 };
    boot_info.nr_e820 = 3;
    sched_init();
    world_domain = (struct domain){ .is_initial = true, .max_vcpus = VCPUS, .vcpu = vcpu_list, .nr_pages = DOM_FRAMES - 1,
                                    .evtchn = evtchn, .mm = &world_mm };
    dom0 = &world_domain;
    world_domain.shared = hv_zalloc_page();
    world_domain.shared_mfn = env_mfn_of(world_domain.shared);
    BUG_ON(world_domain.shared_mfn.v != DOM_FRAMES);
    mm_share_hv_page(&world_domain, world_domain.shared);
    vtime_init_domain(&world_domain);
    for (unsigned i = 0; i < CPUS; i++) {
        fuzz_cpu[i].cpu = i;
        fuzz_cr3[i] = NO_ROOT;
    }
    for (unsigned i = 0; i < VCPUS; i++)
        build_vcpu(i);
    world_mm.nr_work = VCPUS;
    cpu_info()->pt_work = work_list[0];
    build_tables();
    if (ptwr) {
        BUG_ON(!ptwr_init(&world_mm, true));
        env_ptwr_on = true;
    }
    for (unsigned i = 0; i < CPUS; i++) {
        fuzz_this = i;
        cpu_info()->pt_work = work_list[i];
        BUG_ON(mm_initial_root(&world_vcpu[i], MFN(i ? W_L4B : W_L4), false));
        sched_unpark(&world_vcpu[i].se);
    }
    for (unsigned i = 0; i < CPUS; i++) {
        fuzz_this = i;
        BUG_ON(!world_schedule() || current_vcpu() != &world_vcpu[i]);
    }
    fuzz_this = 0;
}

/* Putting back ------------------------------------------------------------------------------------------------------- */

extern u8 __start_hv_bss[], __stop_hv_bss[], __start_hv_data[], __stop_hv_data[];
/* The variables in each state that an input can begin with: before anything was built, and one for each mode. */
enum { EMPTY, EMULATE, PTWR, STATES };
static u64 *saved[STATES][2] __attribute__((section("fuzz_own")));

/* Word by word over redzones, which no sanitizer may judge. */
__attribute__((no_sanitize("address", "undefined"), noinline))
static void copy_words(volatile u64 *to, const volatile u64 *from, size_t bytes)
{
    for (size_t i = 0; i < bytes / 8; i++)
        to[i] = from[i];
}

static void save(unsigned state)
{
    u8 *from[2] = { __start_hv_bss, __start_hv_data }, *to[2] = { __stop_hv_bss, __stop_hv_data };

    for (unsigned i = 0; i < 2; i++) {
        saved[state][i] = malloc((size_t)(to[i] - from[i]) + 8);
        if (!saved[state][i])
            abort();
        copy_words(saved[state][i], (u64 *)(void *)from[i], (size_t)(to[i] - from[i]));
    }
}

static void put_back(unsigned state)
{
    u8 *from[2] = { __start_hv_bss, __start_hv_data }, *to[2] = { __stop_hv_bss, __stop_hv_data };

    for (unsigned i = 0; i < 2; i++)
        copy_words((u64 *)(void *)from[i], saved[state][i], (size_t)(to[i] - from[i]));
}

void world_open(void)
{
    save(EMPTY);
    for (unsigned state = EMULATE; state < STATES; state++) {
        put_back(EMPTY);
        build(state == PTWR);
        save(state);
        world_check();
    }
}

void world_reset(const struct world_mode *mode)
{
    put_back(mode->ptwr ? PTWR : EMULATE);
    host_budget = mode->budget;
    world_preempt = mode->preempt;
    world_heap_left = MIN(world_heap_left, mode->heap);
}
