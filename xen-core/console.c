/* SPDX-License-Identifier: MIT */
/* 16550 serial console. */
#include "console.h"

#include <ck_spinlock.h>
#include <stdarg.h>

#include "arch/asm.h"
#include "arch/cpu.h"
#include "base/atomic.h"
#include "arch/machine.h"
#include "console_internal.h"
#include "params.h"
#include "pt_string.h"
#include "stats_dump.h"
#include "stop.h"
#include "vsnprintf.h"

#define RBR 0
#define IER 1
#define FCR 2
#define LCR 3
#define MCR 4
#define LSR 5
#define LSR_DATA 0x01
#define LSR_THRE 0x20

static ck_spinlock_t lock = CK_SPINLOCK_INITIALIZER;
static bool lock_off;              /* panicking: every line counts, order does not */
static unsigned room;              /* transmit FIFO bytes known to be free */

/* Input for the guest; one producer at a time (poll_lock), one consumer. */
static char in_buf[256];
static u32 in_head, in_tail;
static ck_spinlock_t poll_lock = CK_SPINLOCK_INITIALIZER;

void console_setup(void)
{
    u16 p = opt_com1_port;
    u32 div;

    if (!p)
        return;
    div = 115200 / opt_com1_baud;
    outb((u16)(p + IER), 0);
    outb((u16)(p + LCR), 0x80);
    outb(p, (u8)div);
    outb((u16)(p + 1), (u8)(div >> 8));
    outb((u16)(p + LCR), 3);
    outb((u16)(p + FCR), 7);
    outb((u16)(p + MCR), 3);
    if (inb((u16)(p + LSR)) == 0xff)
        opt_com1_port = 0;         /* no such device */
}

static void put(char c)
{
    u16 p = opt_com1_port;

    if (!room) {
        while (!(inb((u16)(p + LSR)) & LSR_THRE))
            cpu_relax();
        room = 16;
    }
    outb(p, (u8)c);
    room--;
}

static void write_locked(const char *s, size_t n)
{
    if (!opt_com1_port)
        return;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\n')
            put('\r');
        put(s[i]);
    }
}

static void console_lock(void)
{
    if (!lock_off)
        ck_spinlock_lock(&lock);
}

static void console_unlock(void)
{
    if (!lock_off)
        ck_spinlock_unlock(&lock);
}

void console_break_lock(void) { lock_off = true; }

void console_write(const char *buf, size_t len)
{
    console_lock();
    write_locked(buf, len);
    console_unlock();
}

void vprintk(const char *fmt, va_list ap)
{
    char line[512];
    size_t n = 5;

    memcpy(line, "(PT) ", 5);
    n += (size_t)MAX(pt_vsnprintf(line + n, sizeof(line) - n, fmt, ap), 0);
    console_write(line, MIN(n, sizeof(line) - 1));
}

void printk(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vprintk(fmt, ap);
    va_end(ap);
}

size_t console_read(char *buf, size_t max)
{
    size_t n = 0;

    while (n < max && in_tail != load_acquire(&in_head)) {
        buf[n++] = in_buf[in_tail % sizeof(in_buf)];
        store_release(&in_tail, in_tail + 1);
    }
    return n;
}

/* Ctrl-t, then a key, is for the hypervisor. */
#define ESCAPE 0x14

static void console_key(char c)
{
    switch (c) {
    case 's':
        stats_dump_json();
        break;
    case 'r':
        show_regs(&cpu_info()->regs);
        break;
    case 'a':
        world_request(WORLD_AUDIT);
        break;
    case 'q':
        machine_poweroff();
    default:
        printk("console keys after Ctrl-t: a audit of all frames, s counters, r registers, q power off, Ctrl-t itself\n");
    }
}

bool console_poll_input(void)
{
    static bool escaped;
    bool got = false;
    u16 p = opt_com1_port;

    if (!p || !ck_spinlock_trylock(&poll_lock))
        return false;
    while (inb((u16)(p + LSR)) & LSR_DATA) {
        char c = (char)inb(p);

        if (escaped && c != ESCAPE) {
            escaped = false;
            console_key(c);
            continue;
        }
        if (c == ESCAPE && !escaped) {
            escaped = true;
            continue;
        }
        escaped = false;
        if (in_head - load_relaxed(&in_tail) < sizeof(in_buf)) {
            in_buf[in_head % sizeof(in_buf)] = c;
            store_release(&in_head, in_head + 1);
        }
        got = true;
    }
    ck_spinlock_unlock(&poll_lock);
    return got;
}
