# SPDX-License-Identifier: MIT
# The controlled-interleaving checker (stress/mc/README.md).  QUICK=1: the short forms.
MC_STEPS := $(if $(QUICK),40000000,400000000)
MC_ARGS  := $(if $(QUICK),--dfs 1000 --pct 300,--dfs 20000 --pct 3000)
MC_SEED  ?= 1

.PHONY: mc mc-build mutants
mc-build: deps
	@mkdir -p $(BUILD)/mc
	@CC="$(CC)" stress/mc/build.sh . $(BUILD)/mc/mc

mc: mc-build
	@$(BUILD)/mc/mc --steps $(MC_STEPS) --seed $(MC_SEED) --jobs 2 $(MC_ARGS)

mutants: mc-build
	@CC="$(CC)" python3 stress/mc/mutants.py $(if $(QUICK),--every 9 --steps 60000000)
