/* SPDX-License-Identifier: MIT */
/* Address-space marks (pt_meta.c, pt.c, pair M2): an L1 hangs in two L2s, which are being hung into the roots of two spaces; a
 * CPU runs in one of them and its MMU caches the way to the L1.  When the L1 becomes a writable page, only CPUs are told whose
 * space its mark names (tlb_collect(), here without the filter by time).
 *
 * run: clean -DNC=2
 * fault: BUG_DRAIN   assertion   a join does not wait for updates that read the old marks
 * fault: BUG_RECHECK assertion   an update does not look again at the marks of its table
 * fault: BUG_ORDER   assertion   the entry is written before the join
 * fault: BUG_SHALLOW assertion   a join does not reach the tables below
 * fault: BUG_FIRST   assertion   a table of two spaces keeps the first mark
 * fault: BUG_FORGET  assertion   a table that is typed again without a flush forgets where it hung
 * fault: BUG_NO_K    assertion   the marks of a table that may be going down are touched without K */
#ifndef NC
#define NC 2
#endif
#define NONE 0               /* 1, 2: the spaces */
#define ANY  3

byte m_as[2], m_k[2];        /* the L2s: mark, updates in flight */
bit slot[2];                 /* L2 m names the L1 */
bit link[2];                 /* the root of space 1 reaches L2 m; space 2 is the same by symmetry, its MMU is left out */
bit valid, busy, w;          /* the L1: a valid table; changing; mapped writable */
byte T, k, as, idle_as;      /* its references, updates in flight, mark; the mark it left in frame.meta */
bit was_table, meta;         /* its last type; frame.meta is a pointer */
bit tp;                      /* the MMU in space 1 caches the way to it */
byte inside;

#define JOINED(old, new) ((old) == NONE -> (new) : ((new) == NONE || (new) == (old) -> (old) : ANY))
#ifdef BUG_FIRST
#define MERGE(old, new) ((old) == NONE -> (new) : (old))
#else
#define MERGE(old, new) JOINED(old, new)
#endif

/* pt_join() of the L1. */
inline join_l1(mark) {
#ifdef BUG_NO_K
    if
    :: valid -> atomic { assert(meta); as = MERGE(as, mark) }         /* fw was looked at, then frame.meta is followed */
    :: else
    fi
#else
    if
    :: atomic { valid && !busy -> k++ };
        atomic { assert(meta); as = MERGE(as, mark) };
        k--
    :: atomic { !valid || busy }
    fi
#endif
}

/* The L1's reference: frame_get_t(), up_leaf(). */
inline get_l1() {
    if
    :: atomic { w -> ok = 0 }
    :: atomic { !w && !busy && T > 0 -> T++; ok = 1 }
    :: atomic { !w && !busy && T == 0 -> T = 1; busy = 1; ok = 1; up = 1 }
    fi;
    if
    :: up ->
#ifdef BUG_FORGET
        as = NONE;
#else
        as = (was_table -> idle_as : NONE);
#endif
        atomic { meta = 1; valid = 1; busy = 0; was_table = 1; up = 0 }
    :: else
    fi
}

/* pt_put_type(). */
inline put_l1() {
    atomic { assert(T > 0 && !busy); if :: T > 1 -> T-- :: else -> T = 0; busy = 1; valid = 0; up = 1 fi };
    if
    :: up -> atomic { k == 0 -> idle_as = (as == NONE -> ANY : as); as = NONE; meta = 0; busy = 0; up = 0 }
    :: else
    fi
}

proctype cpu() {
    byte m, mark; bit ok, up;
end:
    do
    :: atomic { if :: m = 0 :: m = 1 fi; inside++ };                  /* hang the L1 into an L2: update() */
retry:
        get_l1();
        if :: !ok -> goto out :: else fi;
        mark = m_as[m];                                               /* under K */
#ifndef BUG_ORDER
        join_l1((mark == NONE -> ANY : mark));
#endif
        m_k[m]++;
#ifndef BUG_RECHECK
        if :: m_as[m] != mark -> m_k[m]--; put_l1(); goto retry :: else fi;
#endif
        if
        :: atomic { !slot[m] -> slot[m] = 1 }; m_k[m]--
        :: atomic { slot[m] -> m_k[m]-- }; put_l1()
        fi;
#ifdef BUG_ORDER
        join_l1((mark == NONE -> ANY : mark));
#endif
out:    atomic { inside--; m = 0; mark = 0; ok = 0 }
    :: atomic { slot[0] -> slot[0] = 0 }; put_l1()                    /* take it out */
    :: atomic { slot[1] -> slot[1] = 0 }; put_l1()
    :: atomic { !w && !busy && T == 0 && was_table -> busy = 1 };     /* map it writable: tlb_collect(), flush */
        if :: idle_as == ANY || idle_as == 1 -> tp = 0 :: else fi;
        atomic { busy = 0; w = 1; was_table = 0 };
        atomic { w = 0 }
    od
}

/* Hangs an L2 into a root: pt_join() with its search, then the entry. */
proctype linker() {
    byte m, space, n, new; bit changed;
    do
    :: n < 2 -> n++;
        atomic { if :: m = 0 :: m = 1 fi; if :: space = 1 :: space = 2 fi; inside++ };
        atomic { new = MERGE(m_as[m], space); changed = (new != m_as[m]); m_as[m] = new };
        if
        :: changed ->
#ifndef BUG_DRAIN
            m_k[m] == 0;                                              /* M2 */
#endif
#ifndef BUG_SHALLOW
            if :: slot[m] -> join_l1(new) :: else fi
#endif
        :: else
        fi;
        atomic { if :: space == 1 -> link[m] = 1 :: else fi };
        atomic { m = 0; space = 0; new = 0; changed = 0; inside-- }
    :: n == 2 -> break
    od
}

proctype mmu() {
end:
    do
    :: atomic { T > 0 && !tp && ((link[0] && slot[0]) || (link[1] && slot[1])) -> tp = 1 }
    :: atomic { tp -> tp = 0 }                                        /* any CR3 load */
    od
}

#define COVERS(mark) ((mark) == NONE || as == (mark) || as == ANY)
proctype monitor() {
end:
    atomic {
        if
        :: w && tp -> assert(false)
        :: inside == 0 && valid && ((slot[0] && !COVERS(m_as[0])) || (slot[1] && !COVERS(m_as[1]))) -> assert(false)
        fi
    }
}

init { atomic { byte i; do :: i < NC -> run cpu(); i++ :: else -> break od; run linker(); run mmu(); run monitor() } }
