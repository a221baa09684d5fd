/* SPDX-License-Identifier: MIT */
/* Access to the current guest's memory through its own page tables; a fault is an error, not a crash. */
#include "guest_copy.h"

#include <xen/errno.h>

#include "ptwr.h"
#include "vcpu.h"

/* A copy with every writable page table closed. */
static size_t copy(void *dst, const void *src, size_t len)
{
    size_t left;

    if (ptwr_on()) {
        struct mm_domain *mm = current_domain()->mm;
        enum ptwr_access how = ptwr_access_begin(mm);

        left = raw_copy(dst, src, len);
        ptwr_access_end(mm, how);
        return left;
    }
    return raw_copy(dst, src, len);
}

size_t guest_read(void *dst, u64 src, size_t len) { return copy(dst, (const void *)src, len); }

int copy_from_guest(void *dst, u64 src, size_t len)
{
    if (!guest_range_ok(src, len))
        return -XEN_EFAULT;
    return copy(dst, (const void *)src, len) ? -XEN_EFAULT : 0;
}

int copy_to_guest(u64 dst, const void *src, size_t len)
{
    if (!guest_range_ok(dst, len))
        return -XEN_EFAULT;
    return copy((void *)dst, src, len) ? -XEN_EFAULT : 0;
}
