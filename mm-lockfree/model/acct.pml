/* SPDX-License-Identifier: MIT */
/* Accounting (pt.c, update()): entries of valid tables that map one frame read-only or writable, changed by racing CPUs while the
 * MMU sets bits in them and the owner lets go.  Counts must match the entries whenever nobody is inside an update.
 *
 * run: clean -DNC=2 -DNS=1
 * run: clean -DNC=2 -DNS=2
 * run: clean -DNC=3 -DNS=1 -DNO_AD -DNO_WP
 * fault: BUG_LATE     assertion   the reference of the new entry is taken after the entry is published
 * fault: BUG_STORE    assertion   the entry is stored, the old value is what was read before
 * fault: BUG_EARLY    assertion   the old entry's reference is dropped before the entry is replaced
 * fault: BUG_UNDO     assertion   a lost race keeps the new entry's reference
 * fault: BUG_SAME_RW  assertion   making an entry writable counts as a change of flags
 * fault: BUG_DEAD     assertion   a frame without references is revived */
#ifndef NC
#define NC 2
#endif
#ifndef NS
#define NS 1
#endif
#define RO 1
#define RW 2
#define AD 4                        /* set by the MMU; carries no reference */
#define KIND(e) ((e) & 3)

short T, U;
bit A = 1, busy, dead;
byte slot[NS];
byte inside;                        /* CPUs inside an update */

#define REFS (A || busy || T > 0 || U > 0)
inline try_dead() { atomic { if :: !dead && !REFS -> dead = 1 :: else fi } }

inline get(e) {
    if
    :: e == RO ->
#ifdef BUG_DEAD
        atomic { U++; ok = 1 }
#else
        atomic { if :: !dead && REFS -> U++; ok = 1 :: else -> ok = 0 fi }
#endif
    :: e == RW ->
        if
        :: atomic { dead || !REFS -> ok = 0 }
        :: atomic { !dead && REFS && !busy -> T++; ok = 1 }          /* BUSY: it goes idle, wait */
        fi
    fi
}

inline put(e) {
    if
    :: e == RO -> atomic { assert(U > 0); U-- }; try_dead()
    :: e == RW -> atomic { assert(T > 0 && !busy); if :: T > 1 -> T-- :: else -> T = 0; busy = 1; ok = 3 fi };
        if :: ok == 3 -> busy = 0; try_dead() :: else fi
    :: else
    fi
}

/* new: 0, RO or RW; ro_only: it replaces a writable entry of the same frame (write protection), nothing else. */
proctype cpu() {
    byte s, old, new, ok; bit wp, same, fail;
end:
    do
    :: atomic {
        if :: s = 0 :: s = NS - 1 fi;
        if
        :: new = 0
        :: new = RO
        :: new = RW
#ifndef NO_WP
        :: new = RO; wp = 1
#endif
        fi;
        inside++ };
retry:
        old = slot[s];
        if :: wp && KIND(old) != RW -> goto out :: else fi;
        same = (KIND(old) == new || new == 0);
#ifdef BUG_SAME_RW
        if :: KIND(old) && new -> same = 1 :: else fi;
#endif
#ifndef BUG_LATE
        ok = 1;
        if :: !same -> get(new) :: else fi;
        if :: ok == 0 -> goto out :: else fi;
#endif
#ifdef BUG_EARLY
        if :: KIND(old) && KIND(old) != new -> put(KIND(old)) :: else fi;
#endif
#ifdef BUG_STORE
        slot[s] = new; fail = 0;
#else
        atomic { if :: slot[s] == old -> slot[s] = new; fail = 0 :: else -> fail = 1 fi };
#endif
        if
        :: fail ->
#if !defined(BUG_LATE) && !defined(BUG_UNDO)
            if :: !same -> put(new) :: else fi;
#endif
            goto retry
        :: else
        fi;
#ifdef BUG_LATE
        if :: !same -> get(new) :: else fi;
#endif
#if !defined(BUG_EARLY)
#ifdef BUG_SAME_RW
        if :: KIND(old) && new == 0 -> put(KIND(old)) :: else fi;
#else
        if :: KIND(old) && KIND(old) != new -> put(KIND(old)) :: else fi;
#endif
#endif
out:    atomic { inside--; s = 0; old = 0; new = 0; ok = 0; wp = 0; same = 0; fail = 0 }
    od
}

#ifndef NO_AD
proctype mmu() {
end:
    do
    :: atomic { slot[0] && !(slot[0] & AD) -> slot[0] = slot[0] | AD }
    :: atomic { slot[NS - 1] && !(slot[NS - 1] & AD) -> slot[NS - 1] = slot[NS - 1] | AD }
    od
}
#endif

proctype owner() { if :: atomic { A = 0 }; try_dead() :: skip fi }

#if NS == 1
#define N(k) (KIND(slot[0]) == k)
#else
#define N(k) ((KIND(slot[0]) == k) + (KIND(slot[1]) == k))
#endif
proctype monitor() {
end:
    atomic {
        if
        :: dead && (N(RO) > 0 || N(RW) > 0 || T > 0 || U > 0) -> assert(false)      /* freed while referenced */
        :: N(RW) > T + busy * NC -> assert(false)                                  /* mapped writable, not counted */
        :: inside == 0 && (T != N(RW) || U != N(RO)) -> assert(false)              /* at rest they agree */
        fi
    }
}

init {
    atomic {
        byte i;
        do :: i < NC -> run cpu(); i++ :: else -> break od;
#ifndef NO_AD
        run mmu();
#endif
        run owner(); run monitor()
    }
}
