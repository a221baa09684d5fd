/* SPDX-License-Identifier: MIT */
/* Machine memory after boot: the hypervisor's heap of pages, and frames for domains. */
#include "memory.h"

#include <xen/errno.h>

#include "arch/asm.h"
#include "base/page_stack.h"
#include "boot/boot.h"
#include "console.h"
#include "pt.h"

#define RANGES_MAX 256
static struct { u64 start, end; } range[RANGES_MAX];
static unsigned nr_ranges;
static u64 free_frames, ram;

static page_stack heap = PAGE_STACK_INIT;
static u64 heap_pages;

#define U64_M2P ((u64 *)M2P_RW_VIRT)
void m2p_set(mfn_t mfn, u64 pfn) { store_relaxed(&U64_M2P[mfn.v], pfn); }
u64 m2p_get(mfn_t mfn) { return load_relaxed(&U64_M2P[mfn.v]); }

void dom_add_free_range(u64 start_mfn, u64 end_mfn)
{
    if (!start_mfn)
        start_mfn = 1;                           /* no domain gets frame 0: as a root it would be the address space "none" */
    if (start_mfn >= end_mfn)
        return;
    if (nr_ranges == RANGES_MAX) {
        printk("memory: more than %u ranges, %llu pages from %#llx left unused\n", RANGES_MAX,
               (unsigned long long)(end_mfn - start_mfn), (unsigned long long)start_mfn);
        return;
    }
    range[nr_ranges].start = start_mfn;
    range[nr_ranges].end = end_mfn;
    nr_ranges++;
    free_frames += end_mfn - start_mfn;
}

static void add_range(u64 start, u64 end, void *arg)
{
    (void)arg;
    dom_add_free_range(start, end);
}

void memory_init(void)
{
    for (unsigned i = 0; i < boot_info.nr_e820; i++) {
        const struct e820_entry *e = &boot_info.e820[i];

        if (e->type != E820_RAM)
            continue;
        for (u64 m = ROUND_UP(e->addr, PAGE_SIZE) >> PAGE_SHIFT; m < (e->addr + e->size) >> PAGE_SHIFT; m++)
            frame_of(MFN(m))->owner = OWNER_HV;
        ram += e->size >> PAGE_SHIFT;
    }
    boot_alloc_end(add_range, NULL);
    /* A first stock, so that domain creation can allocate; the builder reserves what it computes. */
    hv_heap_reserve(MIN(free_frames / 512 + 64, free_frames));
}

void *env_page_alloc(void) { return page_pop(&heap); }
void env_page_free(void *page) { page_push(&heap, page); }

void hv_heap_reserve(u64 frames)
{
    while (frames && nr_ranges) {
        unsigned last = nr_ranges - 1;

        if (range[last].start == range[last].end) {
            nr_ranges--;
            continue;
        }
        env_page_free(env_map(MFN(--range[last].end)));
        free_frames--;
        heap_pages++;
        frames--;
    }
}

u64 dom_free_frames(void) { return free_frames; }
u64 ram_frames(void) { return ram; }

static void zero_page(void *p)
{
    u64 n = PAGE_SIZE / 8;

    __asm__ volatile("rep stosq" : "+D"(p), "+c"(n) : "a"(0ull) : "memory");
}

/* Most of a machine's memory is zero at boot: reading it costs less than writing, and leaves a host's pages untouched. */
static void clear_page(u64 *p)
{
    for (unsigned i = 0; i < PAGE_SIZE / 8; i++) {
        if (p[i]) {
            zero_page(p);
            return;
        }
    }
}

void *hv_zalloc_page(void)
{
    void *p = env_page_alloc();

    if (p)
        zero_page(p);
    return p;
}

mfn_t dom_alloc_frame(struct domain *d)
{
    static unsigned cur;

    while (cur < nr_ranges && range[cur].start == range[cur].end)
        cur++;
    if (cur >= nr_ranges)
        return MFN_INVALID;

    mfn_t m = MFN(range[cur].start++);

    free_frames--;
    clear_page(env_map(m));
    frame_assign(frame_of(m), d->mm->owner);
    return m;
}

mfn_t dom_take_range(u64 frames)
{
    for (unsigned i = nr_ranges; i-- > 0;) {
        if (range[i].end - range[i].start < frames)
            continue;
        range[i].end -= frames;
        free_frames -= frames;
        return MFN(range[i].end);
    }
    return MFN_INVALID;
}

void *boot_pages(u64 n)
{
    mfn_t m = dom_take_range(n);

    if (m.v == MFN_INVALID.v)
        return NULL;
    for (u64 i = 0; i < n; i++)
        zero_page(env_map(MFN(m.v + i)));
    return env_map(m);
}

bool dom_assign_frame(struct domain *d, mfn_t mfn)
{
    if (mfn.v >= max_mfn || frame_of(mfn)->owner != OWNER_HV)
        return false;
    frame_assign(frame_of(mfn), d->mm->owner);
    return true;
}

int mm_share_hv_page(struct domain *d, void *page)
{
    struct frame *f = frame_of(env_mfn_of(page));
    enum frame_type last;

    frame_assign(f, d->mm->owner);
    if (frame_get_t(f, FT_W, &last) == GET_NEED_UP)
        frame_up_done(f, false);
    m2p_set(env_mfn_of(page), ~0ull >> 1);
    return 0;
}

int mm_get_rw_page(struct domain *d, u64 mfn) { return pt_get_type(d->mm, MFN(mfn), FT_W); }
void mm_put_rw_page(struct domain *d, u64 mfn) { pt_put_type(d->mm, MFN(mfn)); }

int mm_release_page(struct domain *d, u64 mfn)
{
    struct frame *f;
    int r;

    if (mfn >= max_mfn)
        return -XEN_EINVAL;
    f = frame_of(MFN(mfn));
    if (load_relaxed(&f->owner) != d->mm->owner)
        return -XEN_EINVAL;
    r = frame_release(f);
    if (r < 0)
        return -XEN_EINVAL;
    if (r)
        env_frame_dead(f);
    return 0;
}

/* A frame that a guest gave back.  Until there is a second domain to hand it to, nobody asks for it again: it stays
 * dead, unreachable for everyone. */
void env_frame_dead(struct frame *f) { m2p_set(frame_mfn(f), ~0ull >> 1); }

/* Device pages that belong to the hypervisor: local APICs, I/O APICs, message-signalled interrupts. */
bool env_io_allowed(struct mm_domain *d, mfn_t mfn)
{
    (void)d;
    if (mfn.v < max_mfn && frame_of(mfn)->owner != OWNER_NONE)
        return false;
    return !(mfn.v >= 0xfec00 && mfn.v <= 0xfec0f) && !(mfn.v >= 0xfee00 && mfn.v <= 0xfeeff);
}
