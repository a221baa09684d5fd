# SPDX-License-Identifier: MIT
# `make fuzz SECONDS=n`: fuzzes what reads input of guests, firmware, boot loaders and administrators.
.PHONY: fuzz
fuzz: deps
	@stress/fuzz/run.sh $(BUILD)/fuzz $(SECONDS)
