/* SPDX-License-Identifier: MIT */
/*
 * What the in-guest programs share: the clock, the result lines, and the marks between which the host reads the
 * hypervisor's counters.  Everything that the host parses starts with "PT" and is one line on standard output.
 */
#ifndef PTBENCH_H
#define PTBENCH_H

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

/* Under QEMU's -icount the TSC counts instructions; the host says so with PTBENCH_ICOUNT=1. */
static inline bool icount(void)
{
    static int known = -1;

    if (known < 0) {
        const char *v = getenv("PTBENCH_ICOUNT");

        known = v && *v == '1';
    }
    return known;
}

static inline const char *unit(void) { return icount() ? "instructions" : "ns"; }

/* The time in unit()s. */
static inline double ticks(void)
{
    struct timespec t;

    if (icount())
        return (double)__rdtsc();
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* One result; @better is "lower" or "higher". */
static inline void result(const char *workload, const char *metric, const char *per, const char *better, double value)
{
    printf("PTRES %s %s %s %s %.6g\n", workload, metric, per, better, value);
    fflush(stdout);
}

/*
 * Says that the counters since the last mark belong to @ops operations of @what ("-": to nobody), and waits, at most
 * ten seconds, until the host has read them and answers with a line.  Does nothing without PTBENCH_MARKS=1.
 */
static inline void mark(const char *what, double ops)
{
    const char *v = getenv("PTBENCH_MARKS");
    struct pollfd p = { .fd = 0, .events = POLLIN };
    char line[64];

    if (!v || *v != '1')
        return;
    printf("PTMARK %s %.0f\n", what, ops);
    fflush(stdout);
    if (poll(&p, 1, 10000) != 1 || read(0, line, sizeof(line)) <= 0)
        printf("PTFAIL marks no answer from the host\n");
}

static inline void die(const char *what)
{
    perror(what);
    exit(2);
}

static inline int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static inline double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(v[0]), compare_doubles);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

#endif
