# SPDX-License-Identifier: MIT
"""Boots guests under QEMU, measures in them, and reports."""
