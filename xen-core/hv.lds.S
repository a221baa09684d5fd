/* SPDX-License-Identifier: MIT */
/* Layout of the image: linked high, loaded at HV_IMAGE_PHYS; every part with other rights starts on a page. */
#define __ASSEMBLY__
#include "arch/layout.h"

OUTPUT_FORMAT("elf64-x86-64")
ENTRY(start_phys)

SECTIONS
{
    . = HV_IMAGE_VIRT;
    image_start = .;
    .text : AT(ADDR(.text) - HV_IMAGE_VIRT + HV_IMAGE_PHYS) {
        *(.multiboot)
        *(.text.boot)
        *(.text.fixup)
        *(.text .text.*)
    }
    . = ALIGN(4096);
    rodata_start = .;
    .rodata : AT(ADDR(.rodata) - HV_IMAGE_VIRT + HV_IMAGE_PHYS) {
        *(.rodata .rodata.*)
        *(.got .got.*)
        *(.data.rel.ro .data.rel.ro.*)
        . = ALIGN(8);
        __ex_table_start = .;
        KEEP(*(__ex_table))
        __ex_table_end = .;
        __altsites_start = .;
        KEEP(*(.altsites))
        __altsites_end = .;
        *(.eh_frame*)
    }
    . = ALIGN(4096);
    data_start = .;
    .data : AT(ADDR(.data) - HV_IMAGE_VIRT + HV_IMAGE_PHYS) {
        *(.data .data.*)
        *(.tdata .tbss)
    }
    .bss : AT(ADDR(.bss) - HV_IMAGE_VIRT + HV_IMAGE_PHYS) {
        bss_start = .;
        *(.bss .bss.* COMMON)
        . = ALIGN(4096);
    }
    image_end = .;
    start_phys = start - HV_IMAGE_VIRT + HV_IMAGE_PHYS;
    /DISCARD/ : { *(.note .note.* .comment .gnu.*) }
}
