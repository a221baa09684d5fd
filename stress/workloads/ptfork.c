/* SPDX-License-Identifier: MIT */
/*
 * ptfork CLIENTS SECONDS: fork+exit, fork+exec of a tiny static program and fork+sh, each by CLIENTS processes at once
 * for SECONDS, and fork+exec by one alone; prints operations per second by the wall clock.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "ptbench.h"

#define MAX_CLIENTS 512

struct client { _Atomic long ops; _Atomic double seconds; };    /* written by its client only */
static struct shared {
    atomic_int ready, go, stop;
    struct client client[MAX_CLIENTS];
} *sh;

static const struct kind { const char *name, *path, *argv[4]; int clients; } kinds[] = {     /* clients 0: as asked */
    { "fork_exit", NULL, { NULL }, 0 },
    { "fork_exec", "/bin/pttrue", { "pttrue", NULL }, 0 },
    { "fork_sh", "/bin/sh", { "sh", "-c", ":", NULL }, 0 },
    { "fork_exec_1client", "/bin/pttrue", { "pttrue", NULL }, 1 },
};

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void one_operation(const struct kind *k)
{
    pid_t p = fork();
    int status;

    if (p < 0)
        die("fork");
    if (!p) {
        if (k->path)
            execv(k->path, (char *const *)k->argv);
        _exit(k->path ? 127 : 0);
    }
    if (waitpid(p, &status, 0) != p)
        die("waitpid");
    if (status) {
        fprintf(stderr, "%s: the child's wait status is %#x\n", k->name, status);
        exit(3);
    }
}

static void client(struct client *me, const struct kind *k)
{
    double begin;

    atomic_fetch_add(&sh->ready, 1);
    while (!atomic_load(&sh->go))
        usleep(1000);
    begin = seconds();
    do {
        one_operation(k);
        atomic_fetch_add(&me->ops, 1);
    } while (!atomic_load(&sh->stop));
    atomic_store(&me->seconds, seconds() - begin);
    _exit(0);
}

/* Every client ends its last operation and is charged for the time it took: no rounding at low rates. */
static int run(const struct kind *k, int clients, double secs)
{
    double rate = 0, ops = 0;
    int bad = 0;

    *sh = (struct shared){ 0 };
    mark("-", 0);
    for (int i = 0; i < clients; i++) {
        pid_t p = fork();

        if (p < 0)
            die("fork");
        if (!p)
            client(&sh->client[i], k);
    }
    while (atomic_load(&sh->ready) < clients)
        usleep(1000);
    atomic_store(&sh->go, 1);
    usleep((useconds_t)(secs * 1e6));
    atomic_store(&sh->stop, 1);
    for (int i = 0, status; i < clients; i++)
        if (wait(&status) < 0 || status)
            bad++;
    for (int i = 0; i < clients; i++) {
        ops += (double)sh->client[i].ops;
        rate += (double)sh->client[i].ops / sh->client[i].seconds;
    }
    if (bad) {
        printf("PTFAIL forkexec %s: %d of %d clients failed\n", k->name, bad, clients);
        return 1;
    }
    mark(k->name, ops);
    result("forkexec", k->name, "ops/s", "higher", rate);
    return 0;
}

int main(int argc, char **argv)
{
    int clients = argc == 3 ? atoi(argv[1]) : 0, bad = 0;
    double secs = argc == 3 ? atof(argv[2]) : 0;

    if (clients < 1 || clients > MAX_CLIENTS || secs <= 0 || secs > 1000) {
        fprintf(stderr, "usage: ptfork CLIENTS(1-%d) SECONDS(0-1000)\n", MAX_CLIENTS);
        return 2;
    }
    sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sh == MAP_FAILED)
        die("mmap");
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        bad |= run(&kinds[i], kinds[i].clients ? kinds[i].clients : clients, secs);
    return bad;
}
