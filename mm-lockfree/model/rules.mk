# SPDX-License-Identifier: MIT
# `make model`: Spin models of the lock-free protocols, with their seeded faults.
.PHONY: model
model: deps
	@python3 mm-lockfree/model/run.py
