/* SPDX-License-Identifier: MIT */
/* Builds the initial domain from the boot modules. */
#ifndef PT_BUILD_DOM0_H
#define PT_BUILD_DOM0_H

#include "base/types.h"

struct domain;
struct vcpu;

/* Loads module 0 (kernel) and module 1 (initrd, if any) into a new domain 0, and makes its vCPU 0 runnable.
 * Boot CPU, interrupts off, once; after SMP boot and with every free RAM range given to the domain pool.
 * Does not return when that is impossible: the machine stops with one line that says why. */
void start_domains(void);

/* Needed from the memory code.  Boot CPU, before the first vCPU runs.  The domain pool is the RAM that is
 * neither the hypervisor's nor a boot module's. */

/* The next free frame, zeroed, owned by @d and typed none; MFN_INVALID when the pool is empty. */
mfn_t dom_alloc_frame(struct domain *d);
/* Frames in the pool. */
u64 dom_free_frames(void);
/* Takes @frames contiguous frames out of the pool, without an owner and with any contents; the first one,
 * or MFN_INVALID when there is no such run. */
mfn_t dom_take_range(u64 frames);
/* Gives frame @mfn, which is RAM outside the pool and without an owner, to @d with its contents.  False: it is not. */
bool dom_assign_frame(struct domain *d, mfn_t mfn);
/* Puts ownerless RAM frames [start, end) into the pool. */
void dom_add_free_range(u64 start_mfn, u64 end_mfn);
/* Moves @frames frames from the pool to the hypervisor's own allocator. */
void hv_heap_reserve(u64 frames);

/* A domain with @max_vcpus vCPUs that are down, shared_info filled in, and no memory; NULL: out of memory. */
struct domain *domain_create(u16 domid, u32 max_vcpus);
/* Sets the machine-to-physical entry of @mfn. */
void m2p_set(mfn_t mfn, u64 pfn);
/* Validates and types the tree below @l4 from its bytes and pins it, as MMUEXT_PIN_L4_TABLE does.  0 or -errno. */
int pt_adopt_root(struct domain *d, mfn_t l4);
/* Makes @l4 the kernel page table of @v, with a typed reference.  0 or -errno. */
int vcpu_set_initial_root(struct vcpu *v, mfn_t l4);

#endif
