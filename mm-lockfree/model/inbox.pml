/* SPDX-License-Identifier: MIT */
/* TLB inboxes (tlb.h, pairs T1, T3, T4): CPUs remove an entry and make the others drop it; each serves its own inbox while it
 * waits, by its IPI, or in passing.
 *
 * run: clean -DNC=2 -DROUNDS=2
 * run: clean -DNC=3 -DROUNDS=2 -DONE_TARGET
 * fault: BUG_LATE     end state -DNC=3 -DROUNDS=1 -DONE_TARGET  pending is cleared after the flush: a combined request is lost
 * fault: BUG_ACK      assertion   the acknowledgement is stored before the flush
 * fault: BUG_GEN      assertion -DNC=3 -DROUNDS=1 -DONE_TARGET  the acknowledgement names the newest generation instead of the one that was taken
 * fault: BUG_TIME     assertion   the flush time is read after the flush
 * fault: BUG_NO_POLL  end state   who waits does not serve its own inbox
 * fault: BUG_NO_IPI   end state   nobody is told */
#ifndef NC
#define NC 2
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
byte gen[NC], ack[NC];
bit pend[NC], ipi[NC];
bit pte[NC];                     /* the entry that requester i maps and removes */
bit stale[NC * NC];              /* [target * NC + i]: target's TLB has entry i */
bit after[NC * NC];              /* target's newest flush_time is later than the removal of entry i */
bit began[NC * NC];              /* the flush under way has read a time later than the removal of entry i */
/* ONE_TARGET: all others ask CPU 0, which asks nobody. */
#ifdef ONE_TARGET
#define ASKS(me)      ((me) != 0)
#define TARGET(me, c) ((c) == 0)
#else
#define ASKS(me)      1
#define TARGET(me, c) ((c) != (me))
#endif
#define AT(t, i) ((t) * NC + (i))

#if NC == 2
#define ALL(x, v) x[AT(me, 0)] = v; x[AT(me, 1)] = v
#else
#define ALL(x, v) x[AT(me, 0)] = v; x[AT(me, 1)] = v; x[AT(me, 2)] = v
#endif
/* flush_time becomes the time that the flush read: later removals are not covered by it. */
#define COPY(i) after[AT(me, i)] = began[AT(me, i)]
#if NC == 2
#define COPY_ALL COPY(0); COPY(1)
#else
#define COPY_ALL COPY(0); COPY(1); COPY(2)
#endif

/* tlb_flush_local() */
inline flush() {
#ifdef BUG_TIME
    d_step { ALL(stale, 0) };
    d_step { ALL(began, 1) };
#else
    d_step { ALL(began, 1) };                                 /* reads the TSC */
    d_step { ALL(stale, 0) };                                 /* MOV CR3 */
#endif
    d_step { COPY_ALL }
}

/* tlb_poll_slow() */
inline serve() {
#ifdef BUG_LATE
    g = gen[me]; flush(); atomic { pend[me] = 0 }; ack[me] = g
#else
    atomic { pend[me] = 0; g = gen[me] };                     /* T3 */
#ifdef BUG_ACK
    ack[me] = g; flush()
#else
    flush();
#ifdef BUG_GEN
    ack[me] = gen[me]
#else
    ack[me] = g                                               /* T4 */
#endif
#endif
#endif
}

proctype cpu(byte me) {
    byte n, g, c, want;
    bit sent, asked[NC];
    if :: !ASKS(me) -> n = ROUNDS :: else fi;
    do
    :: n < ROUNDS ->
        atomic { n++; pte[me] = 1 };
        d_step {                                              /* the removal: nothing that is not newer covers it */
            pte[me] = 0;
            after[AT(0, me)] = 0; began[AT(0, me)] = 0; after[AT(1, me)] = 0; began[AT(1, me)] = 0;
            after[AT(NC - 1, me)] = 0; began[AT(NC - 1, me)] = 0 };
        c = 0;
        do
        :: c < NC && TARGET(me, c) && after[AT(c, me)] ->           /* tlb_collect(): flushed since */
            assert(!stale[AT(c, me)]); c++
        :: c < NC && TARGET(me, c) && !after[AT(c, me)] ->
            atomic { gen[c]++; sent = pend[c]; pend[c] = 1; asked[c] = 1 };
#ifndef BUG_NO_IPI
            if :: !sent -> ipi[c] = 1 :: else fi;
#endif
            c++
        :: c < NC && !TARGET(me, c) ->
#ifndef ONE_TARGET
            flush();
#endif
            c++
        :: c == NC -> break
        od;
        c = 0;
        do
        :: c < NC && !asked[c] -> c++
        :: c < NC && asked[c] ->
            want = gen[c];                                    /* ours or a later one */
            do
            :: atomic { ack[c] >= want -> break }
#ifndef BUG_NO_POLL
            :: ack[c] < want && pend[me] -> serve()
#endif
            od;
            assert(!stale[AT(c, me)]);
            atomic { asked[c] = 0; want = 0; c++ }
        :: c == NC -> break
        od;
        atomic { c = 0; g = 0; sent = 0 }
    /* Between rounds: interrupts on, or a poll in passing, or any other CR3 load. */
    :: atomic { ipi[me] -> ipi[me] = 0 }; if :: pend[me] -> serve() :: else fi; g = 0
    :: n < ROUNDS && pend[me] -> serve(); g = 0
#ifndef ONE_TARGET
    :: n < ROUNDS -> flush()
#endif
    :: atomic { n == ROUNDS -> break }
    od;
end:
    do
    :: atomic { ipi[me] -> ipi[me] = 0 }; if :: pend[me] -> serve() :: else fi; g = 0
#ifdef ONE_TARGET
    :: me == 0 && pend[me] -> serve(); g = 0
#endif
    od
}

proctype mmu(byte me) {
end:
    do
    :: atomic { pte[0] && !stale[AT(me, 0)] -> stale[AT(me, 0)] = 1 }
    :: atomic { pte[1] && !stale[AT(me, 1)] -> stale[AT(me, 1)] = 1 }
    :: atomic { pte[NC - 1] && !stale[AT(me, NC - 1)] -> stale[AT(me, NC - 1)] = 1 }
    od
}

init {
    atomic {
        byte i;
        do
        :: i < NC ->
            run cpu(i);
#ifdef ONE_TARGET
            if :: i == 0 -> run mmu(i) :: else fi;
#else
            run mmu(i);
#endif
            i++
        :: else -> break
        od
    }
}
