/* SPDX-License-Identifier: MIT */
/* Boot options: one table (params.c) with names, values, defaults and help; docs/boot-options.md repeats it. */
#ifndef PT_PARAMS_H
#define PT_PARAMS_H

#include "base/types.h"

extern bool opt_smep, opt_smap, opt_noreboot, opt_stats_json, opt_ptwr, opt_check, opt_pv_l1tf;
extern u32 opt_maxcpus, opt_dom0_max_vcpus;      /* 0: not given (dom0) */
extern u32 opt_loglvl;
extern const char *opt_dom0_mem;                 /* as given; NULL: not given */
extern u16 opt_com1_port;                        /* 0: no serial console */
extern u32 opt_com1_baud;

/* Parses the command line; what is wrong is reported once and left at its default. */
void params_parse(const char *cmdline);
/* One line with the values in effect. */
void params_report(void);
void param_bad(const char *name, const char *value, const char *rule);

#endif
