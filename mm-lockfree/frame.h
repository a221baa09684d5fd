/* SPDX-License-Identifier: MIT */
/* The frame table: who owns each machine frame, what it is used as, and how often.
 *
 * State       struct frame.fw, one word, every change one CAS:
 *             63 DEAD   no references, reclaim in progress      54:52 TY  NONE W L1 L2 L3 L4 SEG
 *             62 ALLOC  the owner still holds the frame         51:41 K   table updates in flight
 *             61 PIN    the owner pinned the type               40:19 T   typed references
 *             60 BUSY   exclusive: type change in progress      18:0  U   untyped references
 *             59 VALID  contents validated for TY               57 NC, 56:55 CM: reserved
 *             58 SUSP   besides BUSY: the change is suspended, see pt_work.h
 *             idle(t): T=0, !BUSY, TY = last type.  up(t): T=1, BUSY, !VALID.  valid(t): T>=1, VALID.
 *             down(t): T=0, BUSY.
 *             U saturates: at its maximum it sticks, the frame is then never freed (safe, counted).
 * Roles       get/put, k_enter/k_exit, pin: any CPU.  Between the CAS that sets BUSY and the one that
 *             clears it the frame belongs to one CPU.
 * Commits at  type change: the CAS into up(t).  Usable: the CAS that sets VALID.  Last typed reference:
 *             the CAS into down(t).  Death: the CAS that sets DEAD.
 * Pairs       F1: entry removed (locked) -> stamp stored -> BUSY cleared (CAS), seen by the CAS into
 *             up(t) -> stamp loaded.  F2: scan and fix-ups -> VALID (CAS), seen by k_enter (CAS).
 * Reclaim     a dead frame passes a grace period before it gets another owner.
 * Progress    lock-free, except that who needs a frame that is BUSY waits for that type change, or comes back if it is SUSP; it is
 *             bounded and never waits for a lower level's user (levels strictly decrease).
 * Tested by   tests/unit/test_frame.c, tests/guest */
#ifndef PT_FRAME_H
#define PT_FRAME_H

#include "base/atomic.h"
#include "base/bug.h"
#include "base/env.h"
#include "base/stats.h"
#include "base/types.h"

struct frame {
    u64 fw;        /* the state word */
    u32 owner;     /* domid + 1, or OWNER_*; changes only while DEAD: cleared first, given anew a grace period later */
    u32 hint;      /* advisory, for hot-frame counting */
    u64 stamp;     /* TSC when T last reached 0; written under BUSY or DEAD only */
    u64 meta;      /* valid table: struct pt_meta *; idle after a table: its address space (see pt.h);
                    * otherwise: TSC of the last removal of a mapping that user mode could have cached */
};
_Static_assert(sizeof(struct frame) == 32, "two frames share a cache line; see the memory budget");

#define OWNER_NONE 0u              /* a hole in the machine's memory map */
#define OWNER_HV   0xffff0001u     /* the hypervisor's own RAM */
#define OWNER_IO   0xffff0002u     /* not RAM */

enum frame_type { FT_NONE, FT_W, FT_L1, FT_L2, FT_L3, FT_L4, FT_SEG };

#define FW_DEAD     (1ull << 63)
#define FW_ALLOC    (1ull << 62)
#define FW_PIN      (1ull << 61)
#define FW_BUSY     (1ull << 60)
#define FW_VALID    (1ull << 59)
#define FW_SUSP     (1ull << 58)
#define FW_CM       (3ull << 55)
#define FW_TY_SHIFT 52
#define FW_TY       (7ull << FW_TY_SHIFT)
#define FW_K_ONE    (1ull << 41)
#define FW_K        (0x7ffull << 41)
#define FW_T_ONE    (1ull << 19)
#define FW_T        (0x3fffffull << 19)
#define FW_T_LIMIT  (0x3fffffull - 2048)
#define FW_U        ((1ull << 19) - 1)
#define FW_REFS     (FW_ALLOC | FW_PIN | FW_BUSY | FW_K | FW_T | FW_U | FW_CM)

static inline enum frame_type fw_type(u64 w) { return (w & FW_TY) >> FW_TY_SHIFT; }
static inline u64 fw_t(u64 w) { return (w & FW_T) >> 19; }
static inline u64 fw_set_type(u64 w, enum frame_type t) { return (w & ~FW_TY) | (u64)t << FW_TY_SHIFT; }

extern u64 max_mfn;                /* frames at and above it are not RAM; constant after boot */

static inline struct frame *frame_of(mfn_t m) { return FRAME_TABLE + m.v; }
static inline mfn_t frame_mfn(const struct frame *f) { return MFN((u64)(f - FRAME_TABLE)); }
static inline void *frame_map(const struct frame *f) { return env_map(frame_mfn(f)); }

enum get_result {
    GET_OK,
    GET_NEED_UP,     /* the caller now owns the type change: finish with frame_up_done/_failed */
    GET_BUSY,        /* another CPU's type change: wait (frame_wait) and try again */
    GET_REFUSED,     /* other type, not live, or a count at its limit */
};

/* Takes an untyped (read-only) reference.  False when the frame is not live.  The caller has checked the
 * owner in the same read section. */
bool frame_get_u(struct frame *f);
/* Drops one.  True: the last reference of any kind went, the caller now owns the dead frame. */
bool frame_put_u(struct frame *f);

/* Takes a typed reference.  @last gets the frame's previous type for GET_NEED_UP. */
enum get_result frame_get_t_slow(struct frame *f, enum frame_type ty, enum frame_type *last);
/* The common case of it: the frame is valid as @ty already.  False: nothing happened, ask frame_get_t. */
static inline bool frame_get_t_fast(struct frame *f, enum frame_type ty)
{
    u64 w = load_acquire(&f->fw);

    return likely((w & (FW_VALID | FW_TY)) == (FW_VALID | (u64)ty << FW_TY_SHIFT) && fw_t(w) < FW_T_LIMIT) &&
           likely(atomic_cas64(&f->fw, &w, w + FW_T_ONE));
}
static inline enum get_result frame_get_t(struct frame *f, enum frame_type ty, enum frame_type *last)
{
    return frame_get_t_fast(f, ty) ? GET_OK : frame_get_t_slow(f, ty, last);
}

enum put_result {
    PUT_OK,
    PUT_NEED_DOWN,   /* T reached 0 and the frame is BUSY for this CPU: finish with frame_down_done */
};
/* Drops a typed reference. */
enum put_result frame_put_t(struct frame *f);
/* The common case of it: it is not the last one.  False: nothing happened, call frame_put_t. */
static inline bool frame_put_t_fast(struct frame *f)
{
    u64 w = load_relaxed(&f->fw);

    return likely(!(w & FW_BUSY) && fw_t(w) > 1) && likely(atomic_cas64(&f->fw, &w, w - FW_T_ONE));
}

/* Ends a type change: publishes the type, with @pin also pinned (the reference then belongs to the pin). */
void frame_up_done(struct frame *f, bool pin);      /* F2 */
/* Ends a failed type change: the frame becomes idle without a type.  True: it also died. */
bool frame_up_failed(struct frame *f);
/* Ends a table's life after its entries were dropped: stamps the frame.  @meta is left in it.  True: died. */
bool frame_down_done(struct frame *f, u64 meta);    /* F1 */

/* The change of @f, which the caller owns, waits in a parked work item.  Ends with the change. */
void frame_suspend(struct frame *f);

/* Waits for in-flight updates of a BUSY frame to leave (they never wait). */
static inline void frame_drain_k(struct frame *f)
{
    while (load_acquire(&f->fw) & FW_K)
        cpu_relax();
}

/* Enters an update of an entry in a valid table of type @ty; false when it is not one (any more). */
static inline bool frame_k_enter(struct frame *f, enum frame_type ty)
{
    u64 w = load_acquire(&f->fw);

    do {
        if (unlikely((w & (FW_VALID | FW_BUSY | FW_TY)) != (FW_VALID | (u64)ty << FW_TY_SHIFT)))
            return false;
    } while (unlikely(!atomic_cas64(&f->fw, &w, w + FW_K_ONE)));
    return true;
}
static inline void frame_k_exit(struct frame *f) { atomic_faa64(&f->fw, -FW_K_ONE); }

/* Marks a valid typed frame pinned; the caller's typed reference becomes the pin's.  False: already pinned. */
bool frame_pin(struct frame *f);
/* Takes the pin off; the caller then drops the typed reference.  False: not pinned. */
bool frame_unpin(struct frame *f);

/* Gives a free frame to @owner, held by it.  Boot, or a dead frame after its grace period. */
void frame_assign(struct frame *f, u32 owner);
/* The owner lets go.  -1: it did not hold the frame; 1: the frame died; 0: references remain. */
int frame_release(struct frame *f);

#endif
