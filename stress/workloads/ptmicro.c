// SPDX-License-Identifier: MIT
// ptmicro: latencies of single operations in TSC ticks (under -icount: instructions), the median of repeated batches.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#define BATCHES 7
static unsigned long long tsc(void) { unsigned a; return __rdtscp(&a); }
static int zero_fd, a[2], b[2];
static char *area;

static void op_null(void) { syscall(SYS_getppid); }
static void op_read(void) { char c; if (read(zero_fd, &c, 1) != 1) exit(2); }
static void handler(int s) { (void)s; }
static void op_signal(void) { raise(SIGUSR1); }

static void op_anon(void)
{
    madvise(area, 64 << 12, MADV_DONTNEED);
    for (int i = 0; i < 64; i++)
        ((volatile char *)area)[i << 12] = 1;
}

static void op_mmap(void)
{
    char *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    *(volatile char *)p = 1;
    munmap(p, 4096);
}

static void op_protect(void)
{
    mprotect(area, 4096, PROT_READ);
    mprotect(area, 4096, PROT_READ | PROT_WRITE);
    *(volatile char *)area = 1;
}

static void op_pipe(void)
{
    char c = 0;

    if (write(a[1], &c, 1) != 1 || read(b[0], &c, 1) != 1)
        exit(2);
}

static int cmp(const void *x, const void *y)
{
    double d = *(const double *)x - *(const double *)y;

    return d < 0 ? -1 : d > 0;
}

static void measure(const char *name, void (*op)(void), int n, int per)
{
    double v[BATCHES];

    for (int i = 0; i < n / 4 + 1; i++)
        op();
    for (int k = 0; k < BATCHES; k++) {
        unsigned long long t = tsc();

        for (int i = 0; i < n; i++)
            op();
        v[k] = (double)(tsc() - t) / n / per;
    }
    qsort(v, BATCHES, sizeof(v[0]), cmp);
    printf("PTRES micro %s ticks lower %.1f\n", name, v[BATCHES / 2]);
    fflush(stdout);
}

int main(void)
{
    char c;
    pid_t p;

    signal(SIGUSR1, handler);
    zero_fd = open("/dev/zero", O_RDONLY);
    area = mmap(0, 64 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (zero_fd < 0 || area == MAP_FAILED || pipe(a) || pipe(b))
        return 2;
    measure("null_call", op_null, 2000, 1);
    measure("read", op_read, 2000, 1);
    measure("signal", op_signal, 500, 1);
    measure("page_fault_anon", op_anon, 20, 64);
    measure("mmap_touch_munmap", op_mmap, 300, 1);
    measure("mprotect_twice", op_protect, 300, 1);
    p = fork();
    if (!p) {
        close(a[1]);
        while (read(a[0], &c, 1) == 1)
            if (write(b[1], &c, 1) != 1)
                break;
        _exit(0);
    }
    measure("pipe_round_trip", op_pipe, 500, 1);
    close(a[1]);
    waitpid(p, 0, 0);
    return 0;
}
