// SPDX-License-Identifier: MIT
// ptfork CLIENTS SECONDS: fork+exit, fork+exec and fork+sh, one client process a vCPU, in operations per second.
// ptfork count CLIENTS: a fixed number of fork+exec+exit (64 a client), for counters per operation.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct shared { volatile int go, stop, ready; volatile long ops[256]; };
static struct shared *sh;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void one(int kind)
{
    pid_t p = fork();
    int st;

    if (p < 0) {
        perror("fork");
        exit(2);
    }
    if (!p) {
        if (kind == 1)
            execl("/bin/pttrue", "pttrue", (char *)0);
        else if (kind == 2)
            execl("/bin/sh", "sh", "-c", ":", (char *)0);
        _exit(kind ? 127 : 0);
    }
    if (waitpid(p, &st, 0) != p || st) {
        fprintf(stderr, "child of kind %d: status %#x\n", kind, st);
        exit(3);
    }
}

static void client(int n, int kind, long limit)
{
    __sync_fetch_and_add(&sh->ready, 1);
    while (!sh->go)
        sched_yield();
    for (long i = 0; !sh->stop && (!limit || i < limit); i++) {
        one(kind);
        sh->ops[n]++;
    }
    _exit(0);
}

// Runs clients; returns operations per second, or the total with a limit.
static double run(int clients, int kind, double secs, long limit)
{
    double t0, total = 0, dt;
    int bad = 0;

    memset((void *)sh, 0, sizeof(*sh));
    for (int i = 0; i < clients; i++)
        if (!fork())
            client(i, kind, limit);
    while (sh->ready < clients)
        sched_yield();
    t0 = now();
    sh->go = 1;
    if (!limit) {
        while (now() - t0 < secs)
            usleep(20000);
        for (int i = 0; i < clients; i++)
            total += (double)sh->ops[i];
        dt = now() - t0;
        sh->stop = 1;
    }
    for (int i = 0, st; i < clients; i++)
        if (wait(&st) < 0 || st)
            bad++;
    if (bad) {
        printf("PTFAIL forkexec %d of %d clients failed\n", bad, clients);
        exit(1);
    }
    if (!limit)
        return total / dt;
    for (int i = 0; i < clients; i++)
        total += (double)sh->ops[i];
    return total;
}

int main(int argc, char **argv)
{
    static const char *const name[] = { "fork_exit", "fork_exec", "fork_sh" };

    sh = mmap(0, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (argc != 3 || sh == MAP_FAILED)
        return 2;
    setbuf(stdout, 0);
    if (!strcmp(argv[1], "count")) {
        run(atoi(argv[2]), 1, 0, 4);                       // warm
        printf("PTCOUNT begin\n");
        printf("PTCOUNT end %.0f\n", run(atoi(argv[2]), 1, 0, 64));
        return 0;
    }
    for (int k = 0; k < 3; k++)
        printf("PTRES forkexec %s ops/s higher %.2f\n", name[k], run(atoi(argv[1]), k, atof(argv[2]), 0));
    return 0;
}
