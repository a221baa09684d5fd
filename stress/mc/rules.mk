# SPDX-License-Identifier: MIT
# The controlled-interleaving checker (stress/mc/README.md).  QUICK=1: the short forms.
MC_ARGS  := $(if $(QUICK),--steps 100000000 --dfs 1000 --pct 300,--steps 2000000000 --dfs 6000 --pct 2000)
MC_SEED  ?= 1

.PHONY: mc mc-build mutants
mc-build: deps
	@mkdir -p $(BUILD)/mc
	@CC="$(CC)" stress/mc/build.sh . $(BUILD)/mc/mc

mc: mc-build
	@$(BUILD)/mc/mc --seed $(MC_SEED) --jobs 2 $(MC_ARGS)

mutants: mc-build
	@CC="$(CC)" python3 stress/mc/mutants.py $(if $(QUICK),--every 9)
