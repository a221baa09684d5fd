/* SPDX-License-Identifier: MIT */
/* Error numbers of the Xen ABI, with the one that its header keeps from guests. */
#ifndef PT_BASE_ERRNO_H
#define PT_BASE_ERRNO_H

#include <xen/errno.h>

/* Never a result that a guest sees: the hypercall is issued again (domain.h, pt_work.h). */
#define XEN_ERESTART 85

#endif
