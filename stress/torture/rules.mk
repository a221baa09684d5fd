# SPDX-License-Identifier: MIT
# `make stress SECONDS=n`: the lock-free code with real threads, as it is and under the sanitizers.
.PHONY: stress
stress: deps
	@CC="$(CC)" stress/torture/run.sh $(BUILD)/stress $(SECONDS)
