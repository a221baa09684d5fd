/* SPDX-License-Identifier: MIT */
/* Code patching at boot: sites recorded in .altsites get their final instruction before other CPUs start. */
#include "alt.h"

#include "arch/asm.h"
#include "arch/cpu.h"
#include "guest_copy.h"

struct alt_site { u64 addr, kind; };
extern const struct alt_site __altsites_start[], __altsites_end[];

/* Text is mapped read-only; the direct map's alias is writable. */
static void patch(u64 addr, const u8 *bytes, unsigned n)
{
    u8 *p = (u8 *)(DIRECTMAP_VIRT + (addr - HV_IMAGE_VIRT + HV_IMAGE_PHYS));

    for (unsigned i = 0; i < n; i++)
        ((volatile u8 *)p)[i] = bytes[i];
}

void alt_patch(bool smap, bool ptwr)
{
    static const u8 stac[3] = { 0x0f, 0x01, 0xcb }, clac[3] = { 0x0f, 0x01, 0xca };

    for (const struct alt_site *s = __altsites_start; s < __altsites_end; s++) {
        if (s->kind == ALT_STAC && smap)
            patch(s->addr, stac, 3);
        if (s->kind == ALT_CLAC && smap)
            patch(s->addr, clac, 3);
        if (s->kind >= ALT_JUMP && ptwr) {
            /* A 5-byte NOP becomes JMP to the target stored in the record. */
            u32 rel = (u32)(s->kind - (s->addr + 5));
            u8 jmp[5] = { 0xe9, (u8)rel, (u8)(rel >> 8), (u8)(rel >> 16), (u8)(rel >> 24) };

            patch(s->addr, jmp, 5);
        }
    }
    write_cr3(read_cr3());                   /* serialises, too */
}
