// SPDX-License-Identifier: MIT
// The smallest program to exec.
int main(void) { return 0; }
