/* SPDX-License-Identifier: MIT */
/*
 * ptstorm CLIENTS: processes that fork, exec, map, touch, protect, move and unmap at random until a line comes on standard
 * input, each checking that its memory holds what it wrote, before and after forks.  Prints what was done.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "ptbench.h"

#define REGIONS 8
#define PAGES   600                          /* of a region at most: more than one L1 */
#define PAGE    4096

enum { FORKS, MAPS, WRONG, COUNTS };
static struct { atomic_int stop; _Atomic long count[COUNTS]; } *sh;

struct region { char *at; int pages; uint64_t mark; bool written; };

static uint64_t random_of(uint64_t *s)
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * 0x2545f4914f6cdd1dull;
}

static int below(uint64_t *s, int n) { return (int)((random_of(s) >> 33) % (uint64_t)n); }

static void check(const struct region *r)
{
    for (int i = 0; r->written && i < r->pages; i++) {
        uint64_t found;

        memcpy(&found, r->at + (long)i * PAGE, 8);
        if (found != (r->mark ^ (uint64_t)i))
            sh->count[WRONG]++;
    }
}

static void fill(struct region *r, uint64_t mark)
{
    for (int i = 0; i < r->pages; i++) {
        uint64_t v = mark ^ (uint64_t)i;

        memcpy(r->at + (long)i * PAGE, &v, 8);
    }
    r->mark = mark;
    r->written = true;
}

static void unmap(struct region *r)
{
    if (r->at)
        munmap(r->at, (size_t)r->pages * PAGE);
    *r = (struct region){ 0 };
}

static void map(struct region *r, uint64_t *seed)
{
    unmap(r);
    r->pages = 1 + below(seed, PAGES);
    r->at = mmap(NULL, (size_t)r->pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (r->at == MAP_FAILED) {
        *r = (struct region){ 0 };
        return;
    }
    sh->count[MAPS]++;
    fill(r, random_of(seed));
}

static void move(struct region *r)
{
    char *to = mremap(r->at, (size_t)r->pages * PAGE, (size_t)r->pages * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);

    if (to == MAP_FAILED)
        return;
    munmap(r->at, (size_t)r->pages * PAGE);
    r->at = to;
}

/* The child looks at what it inherited and writes to some of it; the parent's must stay as it is. */
static void forked(struct region *region, uint64_t *seed)
{
    pid_t pid = fork();

    if (pid < 0)
        return;
    if (!pid) {
        struct region *r = &region[below(seed, REGIONS)];

        for (int i = 0; i < REGIONS; i++)
            check(&region[i]);
        if (r->at)
            fill(r, random_of(seed));
        if (below(seed, 2))
            execl("/bin/pttrue", "pttrue", (char *)NULL);
        _exit(0);
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    sh->count[FORKS]++;
}

static void client(uint64_t seed)
{
    struct region region[REGIONS] = { { 0 } };

    while (!sh->stop) {
        struct region *r = &region[below(&seed, REGIONS)];

        switch (below(&seed, 8)) {
        case 0: case 1:
            forked(region, &seed);
            break;
        case 2: case 3:
            map(r, &seed);
            break;
        case 4:
            check(r);
            unmap(r);
            break;
        case 5:
            if (r->at) {
                move(r);
                check(r);
            }
            break;
        case 6:
            if (r->at) {
                mprotect(r->at, (size_t)r->pages * PAGE, PROT_READ);
                check(r);
                mprotect(r->at, (size_t)r->pages * PAGE, PROT_READ | PROT_WRITE);
                fill(r, random_of(&seed));
            }
            break;
        default:
            if (r->at) {
                madvise(r->at, (size_t)r->pages * PAGE, MADV_DONTNEED);
                r->written = false;
            }
        }
    }
    for (int i = 0; i < REGIONS; i++) {
        check(&region[i]);
        unmap(&region[i]);
    }
}

int main(int argc, char **argv)
{
    int clients = argc > 1 ? atoi(argv[1]) : 1;
    struct pollfd input = { .fd = 0, .events = POLLIN };

    sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sh == MAP_FAILED)
        die("mmap");
    printf("PTSTORM begins\n");
    fflush(stdout);
    for (int i = 0; i < clients; i++) {
        pid_t pid = fork();

        if (pid < 0)
            die("fork");
        if (!pid) {
            client((uint64_t)(i + 1) * 0x9e3779b97f4a7c15ull);
            _exit(0);
        }
    }
    while (poll(&input, 1, 20000) == 0) {
        printf("PTSTORM %ld forks, %ld maps, %ld wrong\n", sh->count[FORKS], sh->count[MAPS], sh->count[WRONG]);
        fflush(stdout);
    }
    sh->stop = 1;
    while (wait(NULL) > 0)
        ;
    result("storm", "forks", "forks", "higher", (double)sh->count[FORKS]);
    result("storm", "maps", "maps", "higher", (double)sh->count[MAPS]);
    if (sh->count[WRONG])
        printf("PTFAIL storm %ld words of memory were not what was written\n", sh->count[WRONG]);
    return sh->count[WRONG] != 0;
}
