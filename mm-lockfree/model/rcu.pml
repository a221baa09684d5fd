/* SPDX-License-Identifier: MIT */
/* Grace periods (rcu.h) with a tree of two levels: leaves of two CPUs, one inner node.  CPU 0 unlinks what the others read, queues
 * a callback and drives periods on; everybody passes quiescent points, sleeps, and may start periods of its own.  The unlinking
 * store sits in a store buffer until drained (x86-TSO); the store that ends a period is a step of its own, which may be late.
 *
 * run: clean -DNC=3 -DPERIODS=3
 * fault: BUG_NO_FENCE  assertion   the period to wait for is read before the unlinking is visible
 * fault: BUG_SAME      assertion   a callback waits for the period that was running when it was queued
 * fault: BUG_EARLY_UP  assertion   the first CPU of a leaf that passes reports the whole leaf
 * fault: BUG_REARM    end state   a starter that was held up arms a leaf for a period that is over
 * fault: BUG_IDLE_EXIT assertion   the idle bit is cleared after the first read
 * fault: BUG_IDLE_UP   end state   the last CPU of a leaf to go idle does not report to the parent
 * fault: BUG_IDLE_ARM  end state   idle CPUs are waited for */
#ifndef NC
#define NC 3
#endif
#ifndef PERIODS
#define PERIODS 3                  /* as many as may start */
#endif
#define LEAVES 2
#define LEAF(c) ((c) / 2)
#define BIT(c)  (1 << ((c) % 2))
#define ALL(i)  (i == 0 -> 3 : (NC > 3 -> 3 : 1))

byte seq;                          /* rcu_gp_seq */
byte fin;                          /* gp_done */
byte leaf_seq[LEAVES], leaf_idle[LEAVES], leaf_wait[LEAVES];
byte root_seq, root_wait;

byte linked = 1;                   /* the pointer in memory: 1 names the object */
bit buffered;                      /* CPU 0's store buffer holds linked = 0 */
bit holds[NC];                     /* this CPU has loaded the pointer and may use the object */
bit freed;

inline drain() { linked = 0; buffered = 0 }
/* A locked operation of CPU @me: its stores are visible before it. */
#define LOCKED if :: me == 0 && buffered -> drain() :: else fi

/* report(1, 0, bits, g): the root. */
inline report_root(bits) {
    atomic {
        LOCKED;
        if :: root_seq > g -> w = 0 :: root_seq < g -> w = 3 :: else -> w = root_wait fi;
        if
        :: root_seq > g || (root_seq == g && !(w & (bits))) -> up = 0
        :: else -> root_seq = g; root_wait = w & ~(bits); up = (root_wait == 0)
        fi
    };
    if :: up -> fin = g :: else fi
}

/* report(0, i, bits, g): a leaf, and on to the root when it becomes empty. */
inline report(i, bits) {
    atomic {
        LOCKED;
        if
#ifdef BUG_REARM
        :: leaf_seq[i] != g -> w = ALL(i) & ~leaf_idle[i]
#else
        :: leaf_seq[i] > g -> w = 0
#ifdef BUG_IDLE_ARM
        :: leaf_seq[i] < g -> w = ALL(i)
#else
        :: leaf_seq[i] < g -> w = ALL(i) & ~leaf_idle[i]
#endif
#endif
        :: else -> w = leaf_wait[i]
        fi;
        if
#ifdef BUG_REARM
        :: leaf_seq[i] == g && !(w & (bits)) -> up = 0
#else
        :: leaf_seq[i] > g || (leaf_seq[i] == g && !(w & (bits))) -> up = 0
#endif
        :: else -> leaf_seq[i] = g;
            leaf_wait[i] = w & ~(bits);
#ifdef BUG_EARLY_UP
            up = ((bits) != 0 || leaf_wait[i] == 0)
#else
            up = (leaf_wait[i] == 0)
#endif
        fi
    };
    if :: up -> report_root(1 << (i)) :: else fi;
    atomic { w = 0; up = 0 }
}

/* pass() */
inline pass() {
    g = seq;
    if :: passed != g -> report(LEAF(me), BIT(me)); passed = g :: else fi;
    g = 0
}

/* start(g), for g finished and g the newest; then every leaf is armed. */
inline start() {
    g = seq;
    if
    :: fin == g && g < PERIODS ->
        atomic { LOCKED; if :: seq == g -> seq = g + 1; up = 1 :: else -> up = 0 fi };
        if
        :: up -> atomic { up = 0; g++ }; report(0, 0); report(1, 0)
        :: else
        fi
    :: else
    fi;
    g = 0
}

inline idle() {
    atomic {                                                          /* rcu_idle_enter() */
        LOCKED;
        up = (leaf_wait[LEAF(me)] == BIT(me));
        leaf_idle[LEAF(me)] = leaf_idle[LEAF(me)] | BIT(me);
        leaf_wait[LEAF(me)] = leaf_wait[LEAF(me)] & ~BIT(me);
        g = leaf_seq[LEAF(me)]
    };
#ifndef BUG_IDLE_UP
    if :: up -> report_root(1 << LEAF(me)) :: else fi;
#endif
    atomic { up = 0; w = 0; g = 0 }
}

inline wake() { atomic { LOCKED; leaf_idle[LEAF(me)] = leaf_idle[LEAF(me)] & ~BIT(me) } }

/* Reads the pointer; what it got it may use until its next quiescent point. */
inline read() { atomic { if :: linked -> assert(!freed); holds[me] = 1 :: else fi } }

/* The quiescent points of readers and of who starts periods for reasons of its own. */
proctype cpu(byte me) {
    byte g, w, passed, n; bit up;
    do
    :: n < 3 -> n++;
        if
        :: read()
        :: start()
        :: skip
        fi;
        if
        :: holds[me] = 0; pass()
        :: holds[me] = 0; idle();
            if
#ifdef BUG_IDLE_EXIT
            :: read(); wake()
#else
            :: wake()
#endif
            :: n = 4
            fi
        fi
    :: n == 3 -> holds[me] = 0; idle(); n = 4
    :: n == 4 -> break
    od
    /* Asleep for good: its idle bit stays set. */
}

/* call_rcu() and what follows: callbacks(), advance(). */
proctype updater(byte me) {
    byte g, w, passed, want; bit up;
    if :: start() :: skip fi;
    buffered = 1;
#ifdef BUG_NO_FENCE
    want = seq + 1;
#else
    atomic { LOCKED; want = seq };
#ifdef BUG_SAME
    if :: want == 0 -> want = 1 :: else fi;
#else
    want++;
#endif
#endif
    do
    :: fin >= want -> break
    :: else ->
        if :: seq < want -> start() :: else fi;
        pass();
        /* Nothing to do until a period ends or another one has started. */
        (fin >= want || fin == seq || passed != seq)
    od;
    atomic { freed = 1; assert(!holds[1] && !holds[NC - 1]) };
    idle();
    fin == seq                                                        /* nobody's period hangs */
}

proctype buffer() { end: do :: atomic { buffered -> drain() } od }

init { atomic { byte i = 1; run updater(0); do :: i < NC -> run cpu(i); i++ :: else -> break od; run buffer() } }
