/* SPDX-License-Identifier: MIT */
/* The CPUID policy of PV guests. */
#ifndef PT_CPUID_H
#define PT_CPUID_H

#include "domain.h"

/* What the guest sees for @leaf, @sub: eax, ebx, ecx, edx in @r. */
void guest_cpuid(const struct vcpu *v, u32 leaf, u32 sub, u32 r[4]);

#endif
