// SPDX-License-Identifier: MIT
// ptpte: cost of page-table operations a page, as the slope over page counts.  Times with RDTSC: under QEMU's -icount
// that counts instructions.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#define REPS 5
static const int sizes[] = { 500, 1000, 2000, 4000, 8000 };
#define NSIZES (int)(sizeof(sizes) / sizeof(sizes[0]))

static char *map(int n, int flags)
{
    char *p = mmap(0, (size_t)n << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    if (p == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    madvise(p, (size_t)n << 12, MADV_NOHUGEPAGE);
    return p;
}

static void touch(char *p, int n)
{
    for (int i = 0; i < n; i++)
        ((volatile char *)p)[(size_t)i << 12] = 1;
}

static unsigned long long tsc(void) { unsigned a; return __rdtscp(&a); }

// Each returns the ticks of one operation on @n pages.
static unsigned long long t_fork(int n)
{
    char *p = map(n, 0);
    unsigned long long t;
    pid_t c;

    touch(p, n);
    t = tsc();
    c = fork();
    if (!c)
        _exit(0);
    t = tsc() - t;
    waitpid(c, 0, 0);
    munmap(p, (size_t)n << 12);
    return t;
}

static unsigned long long t_exit(int n)
{
    unsigned long long t;
    int fd[2], go[2];
    char b = 0;
    pid_t c;

    if (pipe(fd) || pipe(go))
        exit(2);
    c = fork();
    if (!c) {
        touch(map(n, 0), n);
        if (write(fd[1], &b, 1) != 1 || read(go[0], &b, 1) != 1)
            _exit(1);
        _exit(0);
    }
    if (read(fd[0], &b, 1) != 1)
        exit(2);
    t = tsc();
    if (write(go[1], &b, 1) != 1)
        exit(2);
    waitpid(c, 0, 0);
    t = tsc() - t;
    close(fd[0]); close(fd[1]); close(go[0]); close(go[1]);
    return t;
}

static unsigned long long t_munmap(int n)
{
    char *p = map(n, 0);
    unsigned long long t;

    touch(p, n);
    t = tsc();
    munmap(p, (size_t)n << 12);
    return tsc() - t;
}

static unsigned long long protect(int n, int back)
{
    char *p = map(n, 0);
    unsigned long long t0, t1, t2;

    touch(p, n);
    t0 = tsc();
    mprotect(p, (size_t)n << 12, PROT_READ);
    t1 = tsc();
    mprotect(p, (size_t)n << 12, PROT_READ | PROT_WRITE);
    t2 = tsc();
    munmap(p, (size_t)n << 12);
    return back ? t2 - t1 : t1 - t0;
}

static unsigned long long t_protect_ro(int n) { return protect(n, 0); }
static unsigned long long t_protect_rw(int n) { return protect(n, 1); }

static unsigned long long t_touch(int n)
{
    char *p = map(n, 0);
    unsigned long long t = tsc();

    touch(p, n);
    t = tsc() - t;
    munmap(p, (size_t)n << 12);
    return t;
}

static unsigned long long t_populate(int n)
{
    unsigned long long t = tsc();
    char *p = map(n, MAP_POPULATE);

    t = tsc() - t;
    munmap(p, (size_t)n << 12);
    return t;
}

static unsigned long long t_zero(int n)
{
    char *p = map(n, 0);
    unsigned long long t = tsc();
    int s = 0;

    for (int i = 0; i < n; i++)
        s += ((volatile char *)p)[(size_t)i << 12];
    t = tsc() - t + (unsigned)s;
    munmap(p, (size_t)n << 12);
    return t;
}

static unsigned long long t_cow(int n)
{
    char *p = map(n, 0);
    unsigned long long t;
    int go[2];
    char b = 0;
    pid_t c;

    touch(p, n);
    if (pipe(go))
        exit(2);
    c = fork();
    if (!c)
        _exit(read(go[0], &b, 1) != 1);
    t = tsc();
    touch(p, n);
    t = tsc() - t;
    if (write(go[1], &b, 1) != 1)
        exit(2);
    waitpid(c, 0, 0);
    close(go[0]); close(go[1]);
    munmap(p, (size_t)n << 12);
    return t;
}

static unsigned long long t_mremap(int n)
{
    // Moved by less than a table's reach, so that entries move one by one.
    size_t len = (size_t)n << 12;
    char *area = mmap(0, 2 * len + (4u << 20), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *p, *q;
    unsigned long long t;

    p = mmap(area, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    madvise(p, len, MADV_NOHUGEPAGE);
    touch(p, n);
    t = tsc();
    q = mremap(p, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, area + len + 8192);
    t = tsc() - t;
    if (q == MAP_FAILED) {
        perror("mremap");
        exit(2);
    }
    munmap(area, 2 * len + (4u << 20));
    return t;
}

static unsigned long long t_dontneed(int n)
{
    char *p = map(n, 0);
    unsigned long long t;

    touch(p, n);
    t = tsc();
    madvise(p, (size_t)n << 12, MADV_DONTNEED);
    t = tsc() - t;
    munmap(p, (size_t)n << 12);
    return t;
}

static int cmp(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void measure(const char *name, unsigned long long (*f)(int))
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0;

    f(sizes[0]);                                           // warm
    for (int k = 0; k < NSIZES; k++) {
        double v[REPS], x = sizes[k], y;

        for (int r = 0; r < REPS; r++)
            v[r] = (double)f(sizes[k]);
        qsort(v, REPS, sizeof(v[0]), cmp);
        y = v[REPS / 2];
        sx += x; sy += y; sxx += x * x; sxy += x * y;
    }
    printf("PTRES pte %s ticks/page lower %.1f\n", name, (NSIZES * sxy - sx * sy) / (NSIZES * sxx - sx * sx));
    fflush(stdout);
}

int main(void)
{
    measure("fork", t_fork);
    measure("exit", t_exit);
    measure("munmap", t_munmap);
    measure("mprotect_ro", t_protect_ro);
    measure("mprotect_rw", t_protect_rw);
    measure("first_touch", t_touch);
    measure("populate", t_populate);
    measure("cow_break", t_cow);
    measure("zero_read", t_zero);
    measure("mremap", t_mremap);
    measure("dontneed", t_dontneed);
    return 0;
}
