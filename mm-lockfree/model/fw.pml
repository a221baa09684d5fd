/* SPDX-License-Identifier: MIT */
/* The frame word (frame.h): one frame that CPUs map writable, type as a table of one of two levels, update as a table, and let go,
 * while their MMUs cache what they can.  Every transition of frame.c is one atomic step here.
 *
 * run: clean -DNC=2 -DNS=1
 * run: clean -DNC=2 -DNS=2 -DONE_LEVEL
 * run: clean -DNC=3 -DNS=1 -DONE_LEVEL -DNO_FAIL
 * fault: BUG_STAMP    assertion   the stamp is taken before the count reaches zero
 * fault: BUG_FLUSH    assertion   the flush comes before the CAS that claims the type change
 * fault: BUG_W_EARLY  assertion   a former table is writable before it was flushed
 * fault: BUG_K        assertion   going down does not wait for updates in flight
 * fault: BUG_K_ENTER  assertion   an update enters a frame that is still being validated
 * fault: BUG_FAIL     assertion   a refused page is idle without a note that it may be cached as a table
 * fault: BUG_LEVEL    assertion   a table of one level becomes one of another without a flush */
#ifndef NC
#define NC 2
#endif
#ifndef NS
#define NS 1
#endif
#define NONE 0
#define W    1
#define L1   2
#define L2   3
#define TABLE(t) ((t) >= L1)

/* The word, and frame.meta as far as it matters: noted = "ty is NONE, but somebody may have cached it". */
bit busy, valid, pin, noted;
byte ty, T, K;

bit slot[NS];       /* entries elsewhere that map the frame writable */
bit tw[NC];         /* this CPU's TLB has a writable translation of it */
byte tp[NC];        /* its paging-structure cache uses it as a table of this level */
bit fl[NC];         /* flush_time > stamp */
bit st[NC];         /* a flush that has read its time after the stamp is under way */
bit scan;           /* its entries are being counted or dropped */
byte inside;        /* updates between check and write */

#define MAPPED (slot[0] || slot[NS - 1])
inline stamp() { atomic { fl[0] = 0; st[0] = 0; fl[1] = 0; st[1] = 0; fl[NC - 1] = 0; st[NC - 1] = 0 } }

/* tlb_collect() and tlb_flush_set(): who has not flushed since the stamp. */
inline flush() {
    c = 0;
    do
    :: c < NC -> if :: !fl[c] -> atomic { tw[c] = 0; tp[c] = 0; fl[c] = 1 } :: else fi; c++
    :: else -> break
    od;
    c = 0
}

inline needs_flush() {
    d_step {
        if :: last == NONE -> need = noted :: else -> need = (last != want) fi;
#ifdef BUG_LEVEL
        if :: TABLE(last) && TABLE(want) -> need = 0 :: else fi
#endif
    }
}

/* frame_get_t() and up_leaf().  ok: the reference is held. */
inline get(t) {
    want = t; ok = 0;
#ifdef BUG_FLUSH
    if :: !busy && T == 0 -> last = ty; needs_flush(); if :: need -> flush() :: else fi :: else fi;
#endif
    if                                             /* busy, going idle or becoming what we want: wait */
    :: atomic { T > 0 && ty != want }
    :: atomic { !busy && T > 0 && ty == want -> T++; ok = 1 }
    :: atomic { !busy && T == 0 && ty == W && want == W -> T = 1; valid = 1; ok = 1 }
#ifdef BUG_W_EARLY
    :: atomic { !busy && T == 0 && ty != W && want == W -> last = ty; ty = W; T = 1; valid = 1; ok = 1 };
       needs_flush(); if :: need -> flush() :: else fi
    :: atomic { !busy && T == 0 && want != W -> last = ty; ty = want; T = 1; busy = 1; ok = 2 }
#else
    :: atomic { !busy && T == 0 && !(ty == W && want == W) -> last = ty; ty = want; T = 1; busy = 1; ok = 2 }
#endif
    fi;
    if
    :: ok == 2 ->
#ifndef BUG_FLUSH
        needs_flush(); if :: need -> flush() :: else fi;
#endif
        if
        :: TABLE(want) -> scan = 1; scan = 0;
            if
            :: skip
#ifndef NO_FAIL
            :: ok = 0                                  /* a bad entry: frame_up_failed() */
#endif
            fi
        :: else
        fi;
        if
        :: ok == 2 -> atomic { busy = 0; valid = 1; noted = 0; ok = 1 }
        :: else -> stamp();
#ifdef BUG_FAIL
            atomic { noted = 0; busy = 0; T = 0; ty = NONE }
#else
            atomic { noted = 1; busy = 0; T = 0; ty = NONE }
#endif
        fi
    :: else
    fi;
    atomic { last = 0; need = 0; want = 0 }
}

/* frame_put_t() and pt_put_type(). */
inline put() {
#ifdef BUG_STAMP
    do
    :: atomic { assert(T > 0); T > 1 -> T--; break }
    :: atomic { T == 1 && !busy && ty == W }; stamp();
        if :: atomic { T == 1 && !busy && ty == W -> T = 0; valid = 0; break } :: atomic { T != 1 || busy } fi
    :: atomic { T == 1 && !busy && TABLE(ty) -> T = 0; busy = 1; valid = 0 }; K == 0; scan = 1; scan = 0; stamp(); busy = 0; break
    od
#else
    atomic {
        assert(T > 0 && !busy);                        /* BUG_ON() of frame_put_t() */
        if :: T > 1 -> T--; ok = 1 :: else -> T = 0; busy = 1; valid = 0; ok = 2 fi
    };
    if
    :: ok == 2 ->
        if
        :: TABLE(ty) ->
#ifndef BUG_K
            K == 0;
#endif
            scan = 1; scan = 0
        :: else
        fi;
        stamp(); busy = 0
    :: else
    fi
#endif
}

proctype cpu(byte me) {
    byte ok, last, c, want, s; bit need, old;
end:
    do
    :: atomic { if :: s = 0 :: s = NS - 1 fi };                      /* map writable */
        get(W);
        if :: ok == 1 -> atomic { old = slot[s]; slot[s] = 1 }; if :: old -> put() :: else fi :: else fi;
        atomic { ok = 0; old = 0; s = 0 }
    :: atomic { slot[0] -> slot[0] = 0 }; put(); ok = 0              /* unmap */
    :: atomic { slot[NS - 1] -> slot[NS - 1] = 0 }; put(); ok = 0
    :: atomic { !pin };                                              /* pin */
        get(L1);
        if :: ok == 1 -> atomic { ok = pin; pin = 1 }; if :: ok -> put() :: else fi :: else fi;
        ok = 0
#ifndef ONE_LEVEL
    :: atomic { !pin };
        get(L2);
        if :: ok == 1 -> atomic { ok = pin; pin = 1 }; if :: ok -> put() :: else fi :: else fi;
        ok = 0
#endif
    :: atomic { pin && !busy -> pin = 0 }; put(); ok = 0             /* unpin */
#ifdef BUG_K_ENTER
    :: atomic { TABLE(ty) && T > 0 -> K++; inside++ }; inside--; K--
#else
    :: atomic { valid && !busy && TABLE(ty) -> K++; inside++ }; inside--; K--
#endif
    :: st[me] = 1; atomic { tw[me] = 0; tp[me] = 0 }; atomic { if :: st[me] -> fl[me] = 1 :: else fi; st[me] = 0 }
    od
}

proctype mmu(byte c) {
end:
    do
    :: atomic { MAPPED && !tw[c] -> tw[c] = 1 }
    :: atomic { valid && !busy && TABLE(ty) && tp[c] != ty -> tp[c] = ty }
    od
}

#define SOME_TW (tw[0] || tw[1] || tw[NC - 1])
#define SOME_TP (tp[0] || tp[1] || tp[NC - 1])
#define OTHER(c) (tp[c] && tp[c] != ty)
proctype monitor() {
end:
    atomic {
        if
        :: SOME_TW && (scan || (valid && TABLE(ty))) -> assert(false)              /* writable while a table */
        :: SOME_TP && MAPPED -> assert(false)                                      /* used as a table while writable */
        :: valid && TABLE(ty) && (OTHER(0) || OTHER(1) || OTHER(NC - 1)) -> assert(false)  /* as one of another level */
        :: scan && inside > 0 -> assert(false)                                     /* updated while scanned */
        :: MAPPED && T > 0 && ty != W -> assert(false)                             /* counted as two things */
        fi
    }
}

init { atomic { byte i; do :: i < NC -> run cpu(i); run mmu(i); i++ :: else -> break od; run monitor() } }
