/* SPDX-License-Identifier: MIT */
/*
 * ptmicro: what single operations cost, in nanoseconds or (under -icount) instructions: the median of repeated batches,
 * each long enough to be timed.  Everything runs on vCPU 0, so that no result hangs on where a partner was placed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "ptbench.h"

#define BATCHES 5
#define BATCH_NS 5e6            /* the least time of a batch; under -icount 1 ns is 1 instruction */
#define FAULT_PAGES 256
#define BIG_PAGES 1024
#define PAGE 4096

static int zero_fd, file_fd;
static int ping[2], pong[2], own[2], sock[2];
static char *area;

static void op_null(void) { syscall(SYS_getppid); }

static void op_read(void)
{
    char c;

    if (read(zero_fd, &c, 1) != 1)
        die("read /dev/zero");
}

static void handler(int sig) { (void)sig; }

static void op_signal(void)
{
    if (kill(getpid(), SIGUSR1))
        die("kill");
}

static void touch(char *p, int pages, bool write_it)
{
    for (int i = 0; i < pages; i++) {
        volatile char *c = p + (size_t)i * PAGE;

        if (write_it)
            *c = 1;
        else
            (void)*c;
    }
}

static char *map(size_t len, int prot, int flags, int fd)
{
    char *p = mmap(NULL, len, prot, flags, fd, 0);

    if (p == MAP_FAILED)
        die("mmap");
    return p;
}

static void op_fault_anon(void)
{
    madvise(area, FAULT_PAGES * PAGE, MADV_DONTNEED);
    touch(area, FAULT_PAGES, true);
}

static void op_fault_file(void)
{
    char *p = map(FAULT_PAGES * PAGE, PROT_READ, MAP_PRIVATE, file_fd);

    touch(p, FAULT_PAGES, false);
    munmap(p, FAULT_PAGES * PAGE);
}

static void op_mmap_4m(void)
{
    char *p = map(BIG_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file_fd);

    touch(p, BIG_PAGES, true);
    munmap(p, BIG_PAGES * PAGE);
}

static void op_mmap_4k(void)
{
    char *p = map(PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

    touch(p, 1, true);
    munmap(p, PAGE);
}

static void op_mprotect(void)
{
    if (mprotect(area, PAGE, PROT_READ) || mprotect(area, PAGE, PROT_READ | PROT_WRITE))
        die("mprotect");
    touch(area, 1, true);
}

static void child(const char *path, char *const argv[])
{
    pid_t p = fork();
    int status;

    if (p < 0)
        die("fork");
    if (!p) {
        if (path)
            execv(path, argv);
        _exit(path ? 127 : 0);
    }
    if (waitpid(p, &status, 0) != p || status) {
        fprintf(stderr, "child %s failed\n", path ? path : "");
        exit(3);
    }
}

static void op_fork_exit(void) { child(NULL, NULL); }
static void op_fork_exec(void) { child("/bin/pttrue", (char *[]){ "pttrue", NULL }); }
static void op_fork_sh(void) { child("/bin/sh", (char *[]){ "sh", "-c", ":", NULL }); }

static void pass(int to, int from)
{
    char c = 0;

    if (write(to, &c, 1) != 1 || read(from, &c, 1) != 1)
        die("token");
}

static void op_own_pipe(void) { pass(own[1], own[0]); }
static void op_pipe(void) { pass(ping[1], pong[0]); }
static void op_unix(void) { pass(sock[0], sock[0]); }

static double batch(void (*op)(void), int n)
{
    double t = ticks();

    for (int i = 0; i < n; i++)
        op();
    return ticks() - t;
}

/* Cost of one operation, divided by @per when it does several. */
static double cost(void (*op)(void), int per)
{
    double v[BATCHES];
    int n = 1;

    while (batch(op, n) < BATCH_NS && n < 1 << 20)
        n *= 2;
    for (int k = 0; k < BATCHES; k++)
        v[k] = batch(op, n) / n / per;
    return median(v, BATCHES);
}

static void report(const char *name, double value) { result("micro", name, unit(), "lower", value); }

/* A child that returns each token until the end of input. */
static pid_t echo(int from, int to, int close_in_child)
{
    pid_t p = fork();
    char c;

    if (p < 0)
        die("fork");
    if (p)
        return p;
    close(close_in_child);
    while (read(from, &c, 1) == 1)
        if (write(to, &c, 1) != 1)
            break;
    _exit(0);
}

static void between_processes(void)
{
    double trip, own_cost;
    pid_t p;

    p = echo(ping[0], pong[1], ping[1]);
    own_cost = cost(op_own_pipe, 1);
    trip = cost(op_pipe, 1);
    report("pipe_round_trip", trip);
    report("context_switch_2p_0k", (trip - 2 * own_cost) / 2);      /* as lmbench: less what the pipes cost */
    close(ping[1]);
    waitpid(p, NULL, 0);

    p = echo(sock[1], sock[1], sock[0]);
    report("unix_round_trip", cost(op_unix, 1));
    close(sock[0]);
    waitpid(p, NULL, 0);
}

static void prepare(void)
{
    static const char path[] = "/tmp/ptmicro.data";
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(0, &set);
    if (sched_setaffinity(0, sizeof(set), &set))
        die("sched_setaffinity");
    signal(SIGUSR1, handler);
    zero_fd = open("/dev/zero", O_RDONLY);
    file_fd = open(path, O_RDWR | O_CREAT, 0600);
    if (zero_fd < 0 || file_fd < 0 || ftruncate(file_fd, BIG_PAGES * PAGE))
        die("open");
    unlink(path);
    area = map(FAULT_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    madvise(area, FAULT_PAGES * PAGE, MADV_NOHUGEPAGE);
    if (pipe(ping) || pipe(pong) || pipe(own) || socketpair(AF_UNIX, SOCK_STREAM, 0, sock))
        die("pipe");
}

int main(void)
{
    prepare();
    report("null_call", cost(op_null, 1));
    report("read", cost(op_read, 1));
    report("signal_catch", cost(op_signal, 1));
    report("page_fault_anon", cost(op_fault_anon, FAULT_PAGES));
    op_mmap_4m();                                   /* the file has its pages from now on */
    report("page_fault_file", cost(op_fault_file, FAULT_PAGES));
    report("mmap_4m_shared", cost(op_mmap_4m, 1));
    report("mmap_touch_munmap_4k", cost(op_mmap_4k, 1));
    report("mprotect_twice_touch_4k", cost(op_mprotect, 1));
    report("fork_exit", cost(op_fork_exit, 1));
    report("fork_exec", cost(op_fork_exec, 1));
    report("fork_sh", cost(op_fork_sh, 1));
    between_processes();
    return 0;
}
