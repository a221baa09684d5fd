/* SPDX-License-Identifier: MIT */
/* Collected pins (pt_work.c): two CPUs pin two L1s and two L2s that name them, in any order within one batch each; a parked frame
 * stays BUSY until its CPU commits.  Nobody may wait for ever, and no page is validated that somebody can still write.
 *
 * run: clean
 * fault: BUG_NO_COMMIT end state   who waits for a frame keeps its own collected pins
 * fault: BUG_TOP_DOWN  end state   a batch is validated from the root down
 * fault: BUG_NO_POLL   end state   who waits for a frame does not answer shootdowns
 * fault: BUG_NO_FLUSH  assertion   parked frames are validated without the shootdown
 * fault: BUG_FLUSHED   assertion   frames that are changed during a commit count as flushed
 * fault: BUG_NO_END    end state   the end of the multicall leaves its pins undone */
#define NF 4                  /* frames 0, 1: L1s; 2, 3: L2s; frame 2 names 0, frame 3 names 1 */
#define CHILD(f) ((f) - 2)
#define IS_L2(f) ((f) > 1)

bit busy[NF], valid[NF];
byte T[NF];
bit pin[NF];
bit tw[2 * NF];               /* [cpu * NF + frame]: writable translation from before the frame was claimed */
bit ask[2], flushed[2];       /* inbox: a request from the other CPU; served */
#define TW(c, f) tw[(c) * NF + (f)]

inline drop(c) { TW(c, 0) = 0; TW(c, 1) = 0; TW(c, 2) = 0; TW(c, 3) = 0 }

/* tlb_poll() */
inline poll() { atomic { if :: ask[me] -> ask[me] = 0; drop(me); flushed[me] = 1 :: else fi } }

/* tlb_flush_set() of both CPUs. */
inline shootdown() {
    atomic { flushed[1 - me] = 0; ask[1 - me] = 1; drop(me) };
    do
    :: atomic { flushed[1 - me] -> break }
    :: atomic { !flushed[1 - me] && ask[me] }; poll()
    od
}

/* frame_get_t() for the type that frame @f is to have: 1 held, 2 ours to change. */
inline try(f) {
    atomic {
        if
        :: busy[f] -> got = 0
        :: !busy[f] && T[f] > 0 -> T[f]++; got = 1
        :: else -> T[f] = 1; busy[f] = 1; got = 2
        fi
    }
}

/* up_leaf() of an L1 whose translations are gone. */
inline validate_l1(f) {
    assert(!TW(0, f) && !TW(1, f));
    atomic { busy[f] = 0; valid[f] = 1 }
}

/* get_t_wait() and up_leaf() of the child of L2 @f; then @f is published.  The batch is empty here. */
inline validate_l2(f) {
    assert(!TW(0, f) && !TW(1, f));
    do
    :: try(CHILD(f));
        if
        :: got == 0 ->
            if
            :: atomic { !busy[CHILD(f)] }
#ifndef BUG_NO_POLL
            :: atomic { busy[CHILD(f)] && ask[me] }; poll()
#endif
            fi
        :: got == 1 -> break
        :: got == 2 ->
#ifndef BUG_FLUSHED
            shootdown();
#endif
            validate_l1(CHILD(f)); break
        fi
    od;
    atomic { busy[f] = 0; valid[f] = 1; got = 0 }
}

/* pt_batch_commit(): @mine says which frames are parked. */
inline commit() {
    if
    :: mine[0] || mine[1] || mine[2] || mine[3] ->
        atomic { todo[0] = mine[0]; todo[1] = mine[1]; todo[2] = mine[2]; todo[3] = mine[3];
                 mine[0] = 0; mine[1] = 0; mine[2] = 0; mine[3] = 0 };
#ifndef BUG_NO_FLUSH
        shootdown();
#endif
#ifdef BUG_TOP_DOWN
        if :: todo[2] -> validate_l2(2); pin[2] = 1 :: else fi;
        if :: todo[3] -> validate_l2(3); pin[3] = 1 :: else fi;
#endif
        if :: todo[0] -> validate_l1(0); pin[0] = 1 :: else fi;
        if :: todo[1] -> validate_l1(1); pin[1] = 1 :: else fi;
#ifndef BUG_TOP_DOWN
        if :: todo[2] -> validate_l2(2); pin[2] = 1 :: else fi;
        if :: todo[3] -> validate_l2(3); pin[3] = 1 :: else fi;
#endif
        atomic { todo[0] = 0; todo[1] = 0; todo[2] = 0; todo[3] = 0 }
    :: else
    fi
}

/* One multicall: pins of up to three frames. */
proctype cpu(byte me) {
    byte n, f, got; bit mine[NF], todo[NF];
    do
    :: n < 3 ->
        atomic { n++; if :: f = 0 :: f = 1 :: f = 2 :: f = 3 fi };
        do
        :: try(f);                                            /* pt_pin() */
            if
            :: got == 0 ->
#ifndef BUG_NO_COMMIT
                commit();
#endif
                if
                :: atomic { !busy[f] }
#ifndef BUG_NO_POLL
                :: atomic { busy[f] && ask[me] }; poll()
#endif
                fi
            :: got == 1 -> atomic { if :: pin[f] -> T[f]-- :: else -> pin[f] = 1 fi }; break
            :: got == 2 -> mine[f] = 1; break                 /* parked: the frame was writable before */
            fi
        od;
        atomic { f = 0; got = 0 }
    :: break
    od;
#ifndef BUG_NO_END
    commit();
#endif
    /* In the guest: interrupts are on. */
end:
    do
    :: atomic { ask[me] }; poll()
    :: atomic { busy[0] || busy[1] || busy[2] || busy[3] }; rest:
        (!busy[0] && !busy[1] && !busy[2] && !busy[3]) || ask[me]
    od
}

/* A frame that nobody has claimed may be mapped writable at any time, and cached so: here by CPU 0, by
 * symmetry that is enough. */
#define IDLE(f) (T[f] == 0 && !busy[f])
proctype mmu(byte c) {
end:
    do
    :: atomic { IDLE(0) && !TW(c, 0) -> TW(c, 0) = 1 }
    :: atomic { IDLE(1) && !TW(c, 1) -> TW(c, 1) = 1 }
    :: atomic { IDLE(2) && !TW(c, 2) -> TW(c, 2) = 1 }
    :: atomic { IDLE(3) && !TW(c, 3) -> TW(c, 3) = 1 }
    od
}

init { atomic { run cpu(0); run cpu(1); run mmu(0) } }
