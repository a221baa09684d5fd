/* SPDX-License-Identifier: MIT */
/* Machine memory: heap pages for the hypervisor, frames for domains, the machine-to-physical array. */
#ifndef PT_MEMORY_H
#define PT_MEMORY_H

#include "domain.h"

void memory_init(void);                       /* boot CPU, after the frame table is mapped */
void *hv_zalloc_page(void);                   /* a cleared heap page, or NULL */
void hv_heap_reserve(u64 frames);             /* moves frames to the heap; boot CPU */
u64 dom_free_frames(void);
u64 ram_frames(void);                         /* all RAM of the machine */
void dom_add_free_range(u64 start_mfn, u64 end_mfn);
mfn_t dom_alloc_frame(struct domain *d);      /* cleared, owned by @d; MFN_INVALID when none is left; boot CPU */
/* @frames contiguous frames taken out of the pool, with any contents; MFN_INVALID: no such run.  Boot CPU. */
mfn_t dom_take_range(u64 frames);
void *boot_pages(u64 n);                      /* the same for the hypervisor's own use, cleared; NULL: no such run */
bool dom_assign_frame(struct domain *d, mfn_t mfn);
void m2p_set(mfn_t mfn, u64 pfn);
u64 m2p_get(mfn_t mfn);

/* Makes a heap page one that the guest may map writable and that can never become a table. */
int mm_share_hv_page(struct domain *d, void *page);
int mm_get_rw_page(struct domain *d, u64 mfn);  /* a writable reference, or -EINVAL */
void mm_put_rw_page(struct domain *d, u64 mfn);
int mm_release_page(struct domain *d, u64 mfn); /* the guest gives the frame back */

#endif
