/* SPDX-License-Identifier: MIT */
/* Included before arch/acpi.c: the direct map lies where a process can have it. */
#ifndef PT_FUZZ_SHIM_ACPI_H
#define PT_FUZZ_SHIM_ACPI_H

#include "arch/layout.h"
#include "base/types.h"

#undef DIRECTMAP_VIRT
#define DIRECTMAP_VIRT fuzz_directmap
extern u64 fuzz_directmap;

#endif
