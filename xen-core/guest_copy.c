/* SPDX-License-Identifier: MIT */
/* Access to the current guest's memory through its own page tables; a fault is an error, not a crash. */
#include "guest_copy.h"

#include <xen/errno.h>

#include "vcpu.h"

int copy_from_guest(void *dst, u64 src, size_t len)
{
    if (!guest_range_ok(src, len))
        return -XEN_EFAULT;
    return raw_copy(dst, (const void *)src, len) ? -XEN_EFAULT : 0;
}

int copy_to_guest(u64 dst, const void *src, size_t len)
{
    if (!guest_range_ok(dst, len))
        return -XEN_EFAULT;
    return raw_copy((void *)dst, src, len) ? -XEN_EFAULT : 0;
}
