# SPDX-License-Identifier: MIT
# Builds the hypervisor image; `make bench` and `make check` do everything that they need by themselves.

BUILD   := build
ifeq ($(origin CC),default)
CC      := gcc
endif

CPPFLAGS := -Imm-lockfree -Ixen-core -Isched -Inuma
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
# See mm-lockfree/base/image.h for what is included first.
HVFLAGS  := -include base/image.h -D__XEN_INTERFACE_VERSION__=0x00040e00 -std=gnu17 -O2 -g -ffreestanding -fPIE -fvisibility=hidden -mno-red-zone -mgeneral-regs-only \
            -fno-stack-protector -fno-asynchronous-unwind-tables -fcf-protection=none -fno-strict-aliasing \
            -fno-omit-frame-pointer -fno-jump-tables $(WARN) $(EXTRA)

HV_C   := $(wildcard xen-core/*.c xen-core/*/*.c mm-lockfree/*.c mm-lockfree/*/*.c sched/*.c numa/*.c)
HV_S   := $(wildcard xen-core/*/*.S)
HV_OBJ := $(HV_C:%.c=$(BUILD)/hv/%.o) $(HV_S:%.S=$(BUILD)/hv/%.o)
HV_LIB := -l:liblzma.a -l:liblz4.a -l:libzstd.a -l:libz.a

.PHONY: all bench check run check-guest deps guest image clean hv
all: hv
hv: $(BUILD)/ptarmigan

$(BUILD)/hv/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo '  CC   $<' >&2
	@$(CC) $(HVFLAGS) $(CPPFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/hv/%.o: %.S
	@mkdir -p $(@D)
	@echo '  AS   $<' >&2
	@$(CC) $(CPPFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/hv.lds: xen-core/hv.lds.S xen-core/arch/layout.h
	@mkdir -p $(@D)
	@$(CC) $(CPPFLAGS) -E -P -x assembler-with-cpp $< -o $@

$(BUILD)/ptarmigan.elf: $(HV_OBJ) $(BUILD)/hv.lds
	@echo '  LD   $@' >&2
	@$(CC) -nostdlib -static -Wl,-T,$(BUILD)/hv.lds -Wl,-z,max-page-size=4096 -Wl,--build-id=none \
	    -Wl,-z,noexecstack -Wl,--no-warn-rwx-segments -o $@ $(HV_OBJ) $(HV_LIB)

# QEMU's and GRUB's multiboot loaders want a 32-bit ELF; the addresses they use are the physical ones.
$(BUILD)/ptarmigan: $(BUILD)/ptarmigan.elf
	@objcopy -O elf32-i386 -S $< $@

# Set-up steps: packages, the guest's kernel, its root.  Each does nothing when its result is there.
deps:
	@stress/deps.sh

guest: deps
	@[ -n "$(KERNEL)" ] || stress/fetch.sh $(BUILD)/guest
	@if echo "$(PEERS)" | grep -q xen; then stress/fetch.sh $(BUILD)/guest xen; fi
	@stress/mkinitramfs.sh $(BUILD)/initramfs.cpio $(BUILD)

# The headers that the sources need come with deps, so the image is built by a second make.
image: deps
	@$(MAKE) --no-print-directory hv

bench: guest image
	@python3 stress/bench.py

run: guest image
	@stress/run.sh

check: guest image
	@tests/check.sh

# The PV test guest that checks the ABI and attacks the page-table rules, alone.
check-guest: image
	@python3 tests/guest/run.py

# Each kind of proof has its own rules beside its sources.
include $(wildcard */*/rules.mk)

clean:
	rm -rf $(BUILD)

-include $(HV_OBJ:.o=.d)
