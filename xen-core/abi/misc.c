/* SPDX-License-Identifier: MIT */
/* console_io, xen_version, vm_assist, physdev_op, platform_op. */
#include <xen/errno.h>
#include <xen/features.h>
#include <xen/physdev.h>
#include <xen/platform.h>
#include <xen/version.h>

#include "abi/abi.h"
#include "arch/machine.h"
#include "boot/boot.h"
#include "boot/boot_internal.h"
#include "console.h"
#include "pt_string.h"
#include "pt_work.h"

#define CHUNK 128

long hc_console_io(u64 cmd, u64 count, u64 buf, u64 a4, u64 a5)
{
    char part[CHUNK];
    s32 n = (s32)count, done = 0;

    (void)a4; (void)a5;
    if (n < 0)
        return -XEN_EINVAL;
    switch (cmd) {
    case CONSOLEIO_write:
        while (done < n) {
            s32 len = MIN(n - done, CHUNK);

            if (copy_from_guest(part, buf + (u64)done, (size_t)len))
                return -XEN_EFAULT;
            console_write(part, (size_t)len);
            done += len;
            tlb_poll();
            if (load_relaxed(&current_domain()->dying))
                break;
            pt_charge(20000);
            if (pt_spent() && done < n)
                return hypercall_again(cmd, (u64)(n - done), buf + (u64)done);
        }
        return 0;
    case CONSOLEIO_read:
        while (done < n) {
            size_t len = console_read(part, (size_t)MIN(n - done, CHUNK));

            if (!len)
                break;
            if (copy_to_guest(buf + (u64)done, part, len))
                return -XEN_EFAULT;
            done += (s32)len;
            tlb_poll();
        }
        return done;
    default:
        return -XEN_ENOSYS;
    }
}

void console_input_ready(void)
{
    if (dom0)
        send_global_virq(dom0, VIRQ_CONSOLE);
}

static long put_string(u64 arg, const char *s, size_t size)
{
    char buf[1024] = { 0 };
    size_t n = strlen(s);

    memcpy(buf, s, MIN(n, sizeof(buf) - 1));
    return copy_to_guest(arg, buf, size);
}

long hc_xen_version(u64 cmd, u64 arg, u64 a3, u64 a4, u64 a5)
{
    (void)a3; (void)a4; (void)a5;
    switch (cmd) {
    case XENVER_version:
        return 4 << 16 | 17;                     /* the ABI's version, as Xen 4.17 offers it */
    case XENVER_extraversion:
        return put_string(arg, "-ptarmigan", sizeof(xen_extraversion_t));
    case XENVER_compile_info: {
        static const struct xen_compile_info info = { "gcc", "ptarmigan", "ptarmigan", "none" };

        return copy_to_guest(arg, &info, sizeof(info));
    }
    case XENVER_capabilities:
        return put_string(arg, "xen-3.0-x86_64 ", sizeof(xen_capabilities_info_t));
    case XENVER_changeset:
        return put_string(arg, "unavailable", sizeof(xen_changeset_info_t));
    case XENVER_platform_parameters: {
        struct xen_platform_parameters p = { .virt_start = HV_START };

        return copy_to_guest(arg, &p, sizeof(p));
    }
    case XENVER_get_features: {
        struct xen_feature_info f;

        if (copy_from_guest(&f, arg, sizeof(f)))
            return -XEN_EFAULT;
        f.submap = 0;
        if (!f.submap_idx)
            f.submap = 1u << XENFEAT_pae_pgdir_above_4gb | 1u << XENFEAT_mmu_pt_update_preserve_ad |
                       1u << XENFEAT_highmem_assist | 1u << XENFEAT_gnttab_map_avail_bits |
                       (current_domain()->is_initial ? 1u << XENFEAT_dom0 : 0);
        return copy_to_guest(arg, &f, sizeof(f));
    }
    case XENVER_pagesize:
        return PAGE_SIZE;
    case XENVER_guest_handle: {
        xen_domain_handle_t h = { 0 };

        return copy_to_guest(arg, h, sizeof(h));
    }
    case XENVER_commandline:
        return put_string(arg, boot_info.cmdline, sizeof(xen_commandline_t));
    default:
        return -XEN_ENOSYS;
    }
}

/* Each of these is how things are here in any case: page-table writes are always trapped, segments are flat. */
long hc_vm_assist(u64 cmd, u64 type, u64 a3, u64 a4, u64 a5)
{
    (void)a3; (void)a4; (void)a5;
    if (cmd != VMASST_CMD_enable && cmd != VMASST_CMD_disable)
        return -XEN_ENOSYS;
    switch (type) {
    case VMASST_TYPE_4gb_segments:
    case VMASST_TYPE_writable_pagetables:
    case VMASST_TYPE_pae_extended_cr3:
        return 0;
    default:
        return -XEN_EINVAL;
    }
}

long hc_physdev_op(u64 cmd, u64 arg, u64 a3, u64 a4, u64 a5)
{
    struct vcpu *v = current_vcpu();

    (void)a3; (void)a4; (void)a5;
    switch (cmd) {
    case PHYSDEVOP_set_iopl: {
        struct physdev_set_iopl s;

        if (copy_from_guest(&s, arg, sizeof(s)))
            return -XEN_EFAULT;
        if (s.iopl > 3)
            return -XEN_EINVAL;
        v->iopl = (u8)s.iopl;
        return 0;
    }
    case PHYSDEVOP_set_iobitmap: {
        struct physdev_set_iobitmap s;

        if (copy_from_guest(&s, arg, sizeof(s)))
            return -XEN_EFAULT;
        if (s.nr_ports > 65536)
            return -XEN_EINVAL;
        v->iobmp = s.nr_ports ? (u64)s.bitmap.p : 0;
        v->iobmp_ports = s.nr_ports;
        return 0;
    }
    default:
        return -XEN_ENOSYS;                      /* no device interrupts yet: Linux goes on without */
    }
}

long hc_platform_op(u64 arg, u64 a2, u64 a3, u64 a4, u64 a5)
{
    struct xen_platform_op op;

    (void)a2; (void)a3; (void)a4; (void)a5;
    if (!current_domain()->is_initial)
        return -XEN_EPERM;
    if (copy_from_guest(&op, arg, sizeof(op)))
        return -XEN_EFAULT;
    switch (op.cmd) {
    case XENPF_settime32:
    case XENPF_settime64:
        return 0;                                /* the RTC is not written: the next boot reads it again */
    case XENPF_enter_acpi_sleep:
        if (op.u.enter_acpi_sleep.sleep_state != 5)
            return -XEN_EOPNOTSUPP;
        domain_shutdown(current_domain(), SHUTDOWN_poweroff);
        return 0;
    case XENPF_get_cpuinfo: {
        u32 id = op.u.pcpu_info.xen_cpuid;

        op.u.pcpu_info.max_present = nr_cpus - 1;
        op.u.pcpu_info.flags = id < nr_cpus ? XEN_PCPU_FLAGS_ONLINE : XEN_PCPU_FLAGS_INVALID;
        op.u.pcpu_info.apic_id = id < nr_cpus ? cpu_apicid[id] : 0;
        op.u.pcpu_info.acpi_id = id < nr_cpus ? id : 0;
        return copy_to_guest(arg, &op, sizeof(op));
    }
    default:
        return -XEN_ENOSYS;
    }
}
