/* SPDX-License-Identifier: MIT */
/* FPU, SSE and AVX state, switched with every vCPU. */
#include "arch/asm.h"
#include "memory.h"
#include "vcpu.h"

int fpu_init(struct vcpu *v)
{
    v->xsave = hv_zalloc_page();                 /* a page holds every state that is offered */
    v->xcr0 = cpu_caps.xsave ? 1 : 0;
    if (!v->xsave)
        return -1;
    *(u16 *)(void *)v->xsave = 0x37f;            /* FCW after reset */
    *(u32 *)(void *)(v->xsave + 24) = 0x1f80;    /* MXCSR */
    return 0;
}

static void set_xcr0(u64 x) { __asm__ volatile("xsetbv" :: "c"(0), "a"((u32)x), "d"((u32)(x >> 32))); }

void fpu_save(struct vcpu *v)
{
    if (!cpu_caps.xsave) {
        __asm__ volatile("fxsave64 (%0)" :: "r"(v->xsave) : "memory");
        return;
    }
    /* State the guest has switched off in XCR0 is saved as well: it may switch it on again. */
    set_xcr0(cpu_caps.xcr0_mask);
    __asm__ volatile("xsave64 (%0)" :: "r"(v->xsave), "a"(~0u), "d"(~0u) : "memory");
}

void fpu_load(struct vcpu *v)
{
    if (!cpu_caps.xsave) {
        __asm__ volatile("fxrstor64 (%0)" :: "r"(v->xsave) : "memory");
        return;
    }
    set_xcr0(cpu_caps.xcr0_mask);
    __asm__ volatile("xrstor64 (%0)" :: "r"(v->xsave), "a"(~0u), "d"(~0u) : "memory");
    set_xcr0(v->xcr0);
}
