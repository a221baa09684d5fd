# SPDX-License-Identifier: MIT
# `make storm MINUTES=n MODE=m`: a long storm in a stock guest under -icount.
.PHONY: storm
storm: guest image
	@python3 stress/storm/storm.py --minutes $(or $(MINUTES),30) --mode $(or $(MODE),emulate)
