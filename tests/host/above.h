/* SPDX-License-Identifier: MIT */
/* What mm-lockfree expects from the layers above it, as hosted tests provide it. */
#ifndef PT_HOST_ABOVE_H
#define PT_HOST_ABOVE_H

#include "pt.h"

extern struct mm_domain host_dom;            /* owns the frames of host_start() */
extern bool host_io_allowed;                 /* may it map what is not RAM? */
extern bool host_segdesc_ok;
extern u64 host_dead;                        /* frames that died */
extern void (*host_on_dead)(struct frame *f);
extern u64 host_batch_failed;                /* collected pins that failed */
extern u64 host_last_token;                  /* of the last of them */

#endif
