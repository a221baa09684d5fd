/* SPDX-License-Identifier: MIT */
/* What must end the guest, and only the guest: one boot each, chosen by crash=<name>. */
#include "guest.h"

void run_crash(const char *name)
{
    say("unknown crash %s\n", name);
    shutdown(SHUTDOWN_poweroff);
}
