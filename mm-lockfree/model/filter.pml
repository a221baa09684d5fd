/* SPDX-License-Identifier: MIT */
/* Who is spared a shootdown (tlb.h pairs T1 and T2, pt.h pair M3): a CPU switches between the kernel's and user mode's root, its
 * plain stores to mode and flush_time in a store buffer; another CPU hooks a table under user mode's root, a third removes that
 * table's writable entry for a frame and makes the frame a table.
 *
 * run: clean
 * fault: BUG_MODE_LATE  assertion   going to the kernel, mode is stored after the CR3 load
 * fault: BUG_MODE_EARLY assertion   going to user mode, mode is stored before the CR3 load
 * fault: BUG_LOAD_EARLY assertion   mode is loaded before the entry is removed
 * fault: BUG_USER_EARLY assertion   whether user mode reaches the table is read before the entry is removed
 * fault: BUG_HOOK_FIRST assertion   the table is hooked under user mode's root before it is marked
 * fault: BUG_NO_NOTE    assertion   the time of the removal is not noted
 * fault: BUG_TIME_LATE  assertion   flush_time is read from the clock after the CR3 load */
bit entry = 1;               /* the table's entry maps the frame writable */
bit user;                    /* meta->user of the table */
bit user_hook;               /* it hangs under user mode's root; it always hangs under the kernel's */

/* The watched CPU.  Times are known by what they are later than: the frame's stamp, the noted user drop. */
bit kernel_root = 1, tw;     /* root loaded; its TLB has the writable translation */
bit mode = 1;                /* in memory: odd (kernel translations possible) or even */
bit f_stamp, f_note = 1;     /* flush_time in memory: later than the stamp?  than the note? */
bit t_stamp, t_note;         /* the same of the time that the CPU holds in a register */
byte nbuf;                   /* its store buffer, oldest first: 1 mode = 0, 2 mode = 1, 3 flush_time */
byte buf[3];
bit b_stamp, b_note;         /* the buffered flush_time (one at a time) */
bit finished;

inline push(x) { atomic { nbuf < 3 -> buf[nbuf] = x; nbuf++; if :: x == 3 -> b_stamp = t_stamp; b_note = t_note :: else fi } }
inline clock() { atomic { t_stamp = 1; t_note = 1 } }          /* now is later than everything so far */
inline pop() {
    if
    :: buf[0] == 1 -> mode = 0
    :: buf[0] == 2 -> mode = 1
    :: buf[0] == 3 -> f_stamp = b_stamp; f_note = b_note
    fi;
    buf[0] = buf[1]; buf[1] = buf[2]; buf[2] = 0; nbuf--
}
proctype buffer() { end: do :: atomic { nbuf > 0 -> pop() } od }

/* MOV CR3 serialises: the buffer is empty before it. */
inline cr3(k) { atomic { nbuf == 0 -> kernel_root = k; tw = 0 } }

proctype target() {
end:
    do
    :: kernel_root ->                                          /* load_root() of user mode */
#ifdef BUG_MODE_EARLY
        push(1);
#endif
#ifdef BUG_TIME_LATE
        cr3(0); clock();
#else
        clock(); cr3(0);
#endif
        push(3);
#ifndef BUG_MODE_EARLY
        push(1)
#endif
    :: !kernel_root ->                                         /* load_root() of the kernel */
#ifndef BUG_MODE_LATE
        push(2);
#endif
#ifdef BUG_TIME_LATE
        cr3(1); clock();
#else
        clock(); cr3(1);
#endif
        push(3);
#ifdef BUG_MODE_LATE
        push(2)
#endif
    od
}

proctype mmu() { end: do :: atomic { entry && !tw && (kernel_root || user_hook) -> tw = 1 } od }

proctype hooker() {
#ifdef BUG_HOOK_FIRST
    user_hook = 1; user = 1
#else
    user = 1; user_hook = 1                                    /* pt_join(), then the entry */
#endif
}

proctype remover() {
    bit u, m;
#ifdef BUG_LOAD_EARLY
    m = mode;
#endif
#ifdef BUG_USER_EARLY
    u = user;
#endif
    entry = 0;                                                 /* update(): the CAS */
#ifndef BUG_USER_EARLY
    u = user;                                                  /* M3 */
#endif
#ifndef BUG_NO_NOTE
    if :: u -> atomic { f_note = 0; b_note = 0; t_note = 0 } :: else fi;
#endif
    atomic { f_stamp = 0; b_stamp = 0; t_stamp = 0 };          /* frame_down_done(), then the CAS into up(table) */
#ifndef BUG_LOAD_EARLY
    m = mode;                                                  /* tlb_collect(): T2 */
#endif
    if
    :: atomic { f_stamp }
    :: atomic { !f_stamp && !m && f_note }
    :: atomic { !f_stamp && (m || !f_note) -> tw = 0 }         /* shootdown */
    fi;
    finished = 1
}

proctype monitor() { end: atomic { finished && tw -> assert(false) } }

init { atomic { run target(); run buffer(); run mmu(); run hooker(); run remover(); run monitor() } }
