/* SPDX-License-Identifier: MIT */
/* Included before every file of the image: external names are hidden, so that all references are RIP-relative and need
 * no GOT; and the fixed-width types that Xen's public headers expect. */
#ifndef PT_BASE_IMAGE_H
#define PT_BASE_IMAGE_H

#pragma GCC visibility push(hidden)
#include <stdint.h>

#endif
