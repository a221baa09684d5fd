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

/* Needed from the domain code, beside what memory.h offers. */

/* A domain with @max_vcpus vCPUs that are down, shared_info filled in, and no memory; NULL: out of memory. */
struct domain *domain_create(u16 domid, u32 max_vcpus);
/* Validates and types the tree below @l4 from its bytes and pins it, as MMUEXT_PIN_L4_TABLE does.  0 or
 * -errno. */
int pt_adopt_root(struct domain *d, mfn_t l4);
/* Makes @l4 the kernel page table of @v, with a typed reference.  0 or -errno. */
int vcpu_set_initial_root(struct vcpu *v, mfn_t l4);

#endif
