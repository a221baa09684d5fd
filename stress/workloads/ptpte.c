/* SPDX-License-Identifier: MIT */
/*
 * ptpte: what page-table operations cost a page: each is done on several page counts, repeated, and the slope of the
 * line through the medians is printed.  Meant for QEMU's -icount, where the TSC counts instructions.
 *
 * An extra argument prints every median too.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "ptbench.h"

#define REPS 3
#define PAGE 4096ul
static const int sizes[] = { 1000, 3000, 6000, 10000 };
#define NSIZES (int)(sizeof(sizes) / sizeof(sizes[0]))

enum op {
    FORK, CHILD_EXIT, CHILD_EXIT_OWNER, MUNMAP, MPROTECT_RO, MPROTECT_RW, MREMAP, FIRST_TOUCH, POPULATE, ZERO_READ,
    COW_BREAK, COW_COPY, DONTNEED, NR_OPS
};
static const char *const names[NR_OPS] = {
    "fork", "child_exit", "child_exit_owner", "munmap", "mprotect_ro", "mprotect_rw", "mremap", "first_touch", "populate",
    "zero_page_read", "cow_break", "cow_copy", "madv_dontneed",
};
static double sample[NR_OPS][NSIZES][REPS];

/* Times an expression into sample[@op] of the current size and repetition. */
#define TIME(op, what)                                \
    do {                                              \
        double t_ = ticks();                          \
        what;                                         \
        sample[op][size][rep] = ticks() - t_;         \
    } while (0)

static char *map(int n, int flags)
{
    char *p = mmap(NULL, (size_t)n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    if (p == MAP_FAILED)
        die("mmap");
    return p;
}

static char *map_small(int n)
{
    char *p = map(n, 0);

    if (madvise(p, (size_t)n * PAGE, MADV_NOHUGEPAGE))
        die("madvise");
    return p;
}

static void unmap(char *p, int n)
{
    if (munmap(p, (size_t)n * PAGE))
        die("munmap");
}

static void protect(char *p, int n, int prot)
{
    if (mprotect(p, (size_t)n * PAGE, prot))
        die("mprotect");
}

static void write_pages(char *p, int n)
{
    for (int i = 0; i < n; i++)
        ((volatile char *)p)[(size_t)i * PAGE] = 1;
}

static void read_pages(const char *p, int n)
{
    for (int i = 0; i < n; i++)
        (void)((const volatile char *)p)[(size_t)i * PAGE];
}

/* A child that waits for a byte, then exits. */
static int go[2];

static pid_t fork_waiting(void)
{
    pid_t c = fork();
    char b;

    if (c < 0)
        die("fork");
    if (!c)
        _exit(read(go[0], &b, 1) != 1);
    return c;
}

static void let_exit(pid_t c)
{
    char b = 0;
    int status;

    if (write(go[1], &b, 1) != 1)
        die("write");
    if (waitpid(c, &status, 0) != c || status)
        die("child");
}

/* Written pages, from birth to death. */
static void life_of_pages(int size, int rep)
{
    int n = sizes[size];
    char *p = map_small(n);
    pid_t c;

    TIME(FIRST_TOUCH, write_pages(p, n));
    TIME(MPROTECT_RO, protect(p, n, PROT_READ));
    TIME(MPROTECT_RW, protect(p, n, PROT_READ | PROT_WRITE));
    write_pages(p, n);                              /* writable entries again, for fork to protect */
    TIME(FORK, c = fork_waiting());
    TIME(CHILD_EXIT, let_exit(c));
    TIME(COW_BREAK, write_pages(p, n));             /* each page has one owner again: no copy */
    c = fork_waiting();
    TIME(COW_COPY, write_pages(p, n));              /* the old pages are the child's alone now */
    TIME(CHILD_EXIT_OWNER, let_exit(c));
    TIME(DONTNEED, madvise(p, (size_t)n * PAGE, MADV_DONTNEED));
    write_pages(p, n);
    TIME(MUNMAP, unmap(p, n));
}

static void zero_pages(int size, int rep)
{
    int n = sizes[size];
    char *p = map_small(n);

    TIME(ZERO_READ, read_pages(p, n));
    unmap(p, n);
}

static void populate(int size, int rep)
{
    int n = sizes[size];
    char *p;

    TIME(POPULATE, p = map(n, MAP_POPULATE));
    unmap(p, n);
}

/* The target is off by one page from a whole number of tables, so that entries move one by one, not table by table. */
static void move_pages(int size, int rep)
{
    size_t reach = 512 * PAGE, len = (size_t)sizes[size] * PAGE, room = 2 * len + 4 * reach;
    char *area = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *p, *to;
    void *got;

    if (area == MAP_FAILED)
        die("mmap");
    p = (char *)(((size_t)area + reach - 1) & -reach);
    to = (char *)(((size_t)p + len + reach - 1) & -reach) + PAGE;
    if (mmap(p, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != p ||
        madvise(p, len, MADV_NOHUGEPAGE))
        die("mmap");
    write_pages(p, sizes[size]);
    TIME(MREMAP, got = mremap(p, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to));
    if (got != to)
        die("mremap");
    munmap(area, room);
}

static double slope(enum op op, bool show)
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0;

    for (int k = 0; k < NSIZES; k++) {
        double x = sizes[k], y = median(sample[op][k], REPS);

        if (show)
            printf("# %s %d pages: %.0f %s\n", names[op], sizes[k], y, unit());
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    return (NSIZES * sxy - sx * sy) / (NSIZES * sxx - sx * sx);
}

int main(int argc, char **argv)
{
    static void (*const part[])(int, int) = { life_of_pages, zero_pages, populate, move_pages };
    char per[32];

    (void)argv;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (pipe(go))
        die("pipe");
    for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
        part[i](0, 0);                              /* warm; overwritten by the first repetition */
        for (int rep = 0; rep < REPS; rep++)
            for (int size = 0; size < NSIZES; size++)
                part[i](size, rep);
    }
    snprintf(per, sizeof(per), "%s/page", unit());
    for (int op = 0; op < NR_OPS; op++)
        result("pte", names[op], per, "lower", slope(op, argc > 1));
    return 0;
}
