/* SPDX-License-Identifier: MIT */
/* ptmark NAME [OPS]: a counter mark (see ptbench.h) from a shell script. */
#include "ptbench.h"

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    mark(argv[1], argc > 2 ? atof(argv[2]) : 0);
    return 0;
}
