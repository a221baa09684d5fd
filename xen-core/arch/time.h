/* SPDX-License-Identifier: MIT */
/* System time from the TSC: nanoseconds since boot, one scale for all CPUs. */
#ifndef PT_ARCH_TIME_H
#define PT_ARCH_TIME_H

#include "base/types.h"

/* The vcpu_time_info scale: ns = ((tsc - tsc_base) shifted by shift) * mul >> 32. */
struct time_scale { u64 tsc_base; u32 mul; s8 shift; };
extern struct time_scale time_scale;
extern u64 wallclock_base_ns;          /* UTC at system time 0, from the RTC */

/* Busy wait on the calibrated TSC. */
void udelay(u64 us);
u64 now_ns(void);
/* The TSC value at system time @ns (rounded up); ~0 stays ~0. */
u64 ns_to_tsc(u64 ns);

#endif
