/* SPDX-License-Identifier: MIT */
/* The pages that a PV kernel reads first: start_info, and the hypercall page for kernels that ask for one. */
#include <stdint.h>
#include <xen/xen.h>

#include "build/builder.h"
#include "console.h"
#include "domain.h"

/* Copies a string of at most @max - 1 characters into zeroed memory. */
static void copy_string(char *dst, const char *src, size_t max)
{
    size_t i;

    for (i = 0; i + 1 < max && src[i]; i++)
        dst[i] = src[i];
    if (src[i])
        printk("dom0: kernel command line cut at %lu characters\n", (unsigned long)i);
}

void builder_start_info(struct builder *b, const char *cmdline, u64 mod_size)
{
    const struct layout *lo = &b->lo;
    struct start_info *si = builder_map(b, lo->start_info_pfn);
    struct dom0_vga_console_info *vga = (void *)(si + 1);

    _Static_assert(sizeof(*si) + sizeof(*vga) <= PAGE_SIZE, "both are in one page");
    copy_string(si->magic, "xen-3.0-x86_64", sizeof(si->magic));
    si->nr_pages = lo->nr_pages;
    si->shared_info = b->d->shared_mfn.v << PAGE_SHIFT;
    si->flags = lo->flags;
    si->pt_base = lo->pt_va;
    si->nr_pt_frames = lo->nr_pt;
    si->mfn_list = lo->list_va;
    si->mod_start = lo->mod_start;
    si->mod_len = mod_size;
    si->first_p2m_pfn = lo->p2m_first_pfn;
    si->nr_p2m_frames = lo->p2m_frames;
    copy_string((char *)si->cmd_line, cmdline, sizeof(si->cmd_line));

    /* A frame buffer without pixels: the kernel would otherwise assume a VGA text screen and trap thousands
     * of times writing to it, and the domain has no such device. */
    vga->video_type = XEN_VGATYPE_EFI_LFB;
    si->console.dom0.info_off = sizeof(*si);
    si->console.dom0.info_size = sizeof(*vga);
}

void builder_hypercall_page(u8 page[PAGE_SIZE])
{
    static const u8 call[] = {
        0x51,                   /* push %rcx */
        0x41, 0x53,             /* push %r11 */
        0xb8, 0, 0, 0, 0,       /* mov $nr, %eax */
        0x0f, 0x05,             /* syscall */
        0x41, 0x5b,             /* pop %r11 */
        0x59,                   /* pop %rcx */
        0xc3,                   /* ret */
    };
    static const u8 iret[] = {  /* does not come back; the frame on the stack holds rax, r11 and rcx too */
        0x51,                   /* push %rcx */
        0x41, 0x53,             /* push %r11 */
        0x50,                   /* push %rax */
        0xb8, 0, 0, 0, 0,       /* mov $nr, %eax */
        0x0f, 0x05,             /* syscall */
    };

    for (unsigned nr = 0; nr < PAGE_SIZE / 32; nr++) {
        const u8 *code = nr == __HYPERVISOR_iret ? iret : call;
        unsigned len = nr == __HYPERVISOR_iret ? sizeof(iret) : sizeof(call);
        u8 *slot = page + nr * 32;

        for (unsigned i = 0; i < 32; i++)
            slot[i] = i < len ? code[i] : 0xcc;
        slot[code == iret ? 5 : 4] = nr;
    }
}
