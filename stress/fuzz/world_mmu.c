/* SPDX-License-Identifier: MIT */
/* Guest memory, through the tables that are loaded: a walk as a CPU without TLB does it, which also finds what must never be
 * true of the tables that a CPU can reach. */
#include <string.h>

#include "ptwr.h"
#include "pt_work.h"
#include "vcpu.h"
#include "world_internal.h"

void fuzz_write_cr3(u64 v)
{
    BUG_ON(v != NO_ROOT && ((v & ~PAGE_MASK) || v >> PAGE_SHIFT >= max_mfn));
    fuzz_cr3[fuzz_this] = v;
}

/* A table of @level that a CPU reads: valid as that, or something else could be written there. */
static u64 *table(mfn_t m, int level)
{
    struct frame *f;

    BUG_ON(m.v >= max_mfn);
    f = frame_of(m);
    BUG_ON(f->owner != world_mm.owner);
    BUG_ON((f->fw & (FW_VALID | FW_TY)) != (FW_VALID | (u64)(FT_L1 + level - 1) << FW_TY_SHIFT));
    return env_map(m);
}

/* An open table of pt_update=ptwr is the guest's to write. */
static bool open_table(u64 fw) { return ptwr_on() && (fw & FW_BUSY) && !(fw & FW_VALID) && fw_type(fw) == FT_L1; }

/* The byte at @va for an access of the guest or (@hv) for it; NULL: a page fault. */
static u8 *translate(u64 va, bool write, bool hv)
{
    mfn_t m = MFN(fuzz_cr3[fuzz_this] >> PAGE_SHIFT);
    u64 *e = NULL, all = PTE_P | (write ? PTE_RW : 0);
    bool user = true;
    u64 fw;

    BUG_ON(fuzz_cr3[fuzz_this] == NO_ROOT);
    for (int level = 4; level >= 1; level--) {
        e = table(m, level) + pt_index(va, level);
        if ((*e & all) != all)
            return NULL;
        user = user && (*e & PTE_US);
        if (!user && !hv)
            return NULL;
        BUG_ON(!user);                           /* the hypervisor would go through what is unhooked */
        *e |= PTE_A;
        m = pte_mfn(*e);
    }
    if (m.v >= max_mfn)
        return NULL;                             /* a device */
    BUG_ON(frame_of(m)->owner != world_mm.owner);
    fw = frame_of(m)->fw;
    BUG_ON(fw & FW_DEAD);
    if (write) {
        BUG_ON(((fw & FW_VALID) == 0 || fw_type(fw) != FT_W) && !(open_table(fw) && !hv));
        *e |= PTE_D;
    }
    return world_memory[m.v] + (va & ~PAGE_MASK);
}

/* Copies up to the first byte that cannot be had; returns how many are left. */
static size_t copy(u64 va, void *host, size_t len, bool write, bool hv)
{
    u8 *h = host;

    while (len) {
        u8 *g = translate(va, write, hv);
        size_t n = MIN(len, PAGE_SIZE - (va & (PAGE_SIZE - 1)));

        if (!g)
            return len;
        memcpy(write ? g : h, write ? h : g, n);
        va += n;
        h += n;
        len -= n;
    }
    return 0;
}

size_t fuzz_raw_copy(void *dst, const void *src, size_t len)
{
    BUG_ON(!guest_range_ok((u64)src, len));              /* the caller has checked it */
    return copy((u64)src, dst, len, false, true);
}

bool fuzz_raw_read_pair(u64 src, u64 *a, u64 *b)
{
    u64 v[2];

    BUG_ON(!guest_range_ok(src, 16));
    if (copy(src, v, 16, false, true))
        return false;
    *a = v[0];
    *b = v[1];
    return true;
}

bool fuzz_raw_write64(u64 dst, u64 v)
{
    BUG_ON(!guest_range_ok(dst, 8));
    return !copy(dst, &v, 8, true, true);
}

/* guest_copy.c, whose two directions cannot be told apart by addresses in a process ---------------------------------- */

static size_t closed_copy(u64 va, void *host, size_t len, bool write)
{
    enum ptwr_access how;
    size_t left;

    if (!ptwr_on())
        return copy(va, host, len, write, true);
    how = ptwr_access_begin(&world_mm);
    left = copy(va, host, len, write, true);
    ptwr_access_end(&world_mm, how);
    return left;
}

size_t guest_read(void *dst, u64 src, size_t len)
{
    BUG_ON(!guest_range_ok(src, len));
    return closed_copy(src, dst, len, false);
}

int copy_from_guest(void *dst, u64 src, size_t len)
{
    return guest_range_ok(src, len) && !closed_copy(src, dst, len, false) ? 0 : -XEN_EFAULT;
}

int copy_to_guest(u64 dst, const void *src, size_t len)
{
    return guest_range_ok(dst, len) && !closed_copy(dst, (void *)(uintptr_t)src, len, true) ? 0 : -XEN_EFAULT;
}

/* The guest's own stores ------------------------------------------------------------------------------------------------ */

#define PF_WRITE 3u                    /* present, write */
#define PF_USER  4u

void world_guest_store(u64 va, const void *p, size_t len)
{
    size_t left = copy(va, (void *)(uintptr_t)p, len, true, false);

    if (left && ptwr_on() && ptwr_fault(&world_mm, MFN(fuzz_cr3[fuzz_this] >> PAGE_SHIFT), va + len - left, PF_WRITE | PF_USER))
        (void)copy(va + len - left, (u8 *)(uintptr_t)p + len - left, left, true, false);
}
