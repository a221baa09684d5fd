/* SPDX-License-Identifier: MIT */
/* The audit of a running system. */
#ifndef PT_AUDIT_HV_H
#define PT_AUDIT_HV_H

#include "base/types.h"

/* Audits the initial domain and says what was found, when it was asked for or the option check=full says so.  Called
 * with the world stopped; @stopped false: it would not stop, which is a failure by itself. */
void audit_stopped(bool stopped, bool asked);

#endif
