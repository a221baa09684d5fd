/* SPDX-License-Identifier: MIT */
/* Boot-time code patching. */
#ifndef PT_ALT_H
#define PT_ALT_H

#include "base/types.h"

#define ALT_JUMP 0x1000ull   /* kinds from here on are jump targets (addresses) */

/* Patches every site for the chosen options.  Boot CPU, before any other CPU runs. */
void alt_patch(bool smap, bool ptwr);

#endif
