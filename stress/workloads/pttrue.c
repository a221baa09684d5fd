/* SPDX-License-Identifier: MIT */
/* The smallest static program: what fork+exec executes. */
int main(void) { return 0; }
