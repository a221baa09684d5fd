/* SPDX-License-Identifier: MIT */
/* Shared by the parts of the world: world.c builds it, world_env.c is the machine below the ABI code, world_mmu.c reads and
 * writes guest memory, world_run.c runs vCPUs on the CPUs, world_check.c judges. */
#ifndef PT_FUZZ_WORLD_INTERNAL_H
#define PT_FUZZ_WORLD_INTERNAL_H

#include "domain.h"
#include "pt.h"
#include "world.h"

#define FRAMES (DOM_FRAMES + HEAP_FRAMES)
#define CPUS   2u
#define VCPUS  3u                      /* the last one is not initialised */
#define NO_ROOT (~0ull)

extern u8 world_memory[FRAMES][PAGE_SIZE];
extern struct domain world_domain;
extern struct mm_domain world_mm;
extern struct vcpu world_vcpu[VCPUS];
extern u64 fuzz_cr3[CPUS];             /* the root that is loaded, NO_ROOT: the hypervisor's own */
extern unsigned world_heap_left;
extern unsigned world_preempt;         /* long work is suspended at one of so many points, 0: nowhere */
extern u64 world_clock;                /* ns */

/* The vCPU that the scheduler has for the CPU the caller is on; false: none. */
bool world_schedule(void);

#endif
