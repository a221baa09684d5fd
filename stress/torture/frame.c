/* SPDX-License-Identifier: MIT */
/* Tortures frame words: all transitions from all CPUs on a few frames, each CPU knowing what it holds.  Checked all the
 * time: a held reference keeps type and life, a type change has one owner, a frame dies once; at rest: the counts. */
#include <string.h>

#include "rcu.h"
#include "torture.h"

#define FRAMES 6

struct hold { u32 u, t; enum frame_type ty; bool pin; };

static struct frame_note {
    u32 changing;                            /* CPU + 1 that owns the type change */
    u32 dead;                                /* raised by the one that killed it */
    struct rcu_head rcu;
} note[FRAMES];
static struct hold held[64][FRAMES];
static u64 ops, ups, downs, deaths, retries;

static void begin_change(unsigned i)
{
    u32 was = atomic_xchg32(&note[i].changing, env_cpu() + 1);

    if (was)
        impossible("two CPUs own a type change", was);
}

static void end_change(unsigned i)
{
    u32 was = atomic_xchg32(&note[i].changing, 0);

    if (was != env_cpu() + 1)
        impossible("a type change was ended by another CPU", was);
}

static void reborn(struct rcu_head *h)
{
    struct frame_note *n = container_of(h, struct frame_note, rcu);

    if (atomic_xchg32(&n->dead, 0) != 1)
        impossible("a frame was reborn that was not dead", (u64)(n - note));
    frame_assign(frame_of(MFN((u64)(n - note))), HOST_DOM);
}

static void dead(unsigned i)
{
    if (atomic_xchg32(&note[i].dead, 1))
        impossible("a frame died twice", i);
    if (load_relaxed(&frame_of(MFN(i))->fw) & FW_REFS)
        impossible("a dead frame has references", load_relaxed(&frame_of(MFN(i))->fw));
    atomic_faa64(&deaths, 1);
    call_rcu(&note[i].rcu, reborn);
}

static void put_t(unsigned i, struct frame *f)
{
    if (frame_put_t(f) != PUT_NEED_DOWN)
        return;
    begin_change(i);
    atomic_faa64(&downs, 1);
    frame_drain_k(f);
    end_change(i);
    if (frame_down_done(f, load_relaxed(&f->meta)))
        dead(i);
}

static void get_t(unsigned i, struct frame *f, struct hold *h, u64 *seed)
{
    enum frame_type ty = h->t ? h->ty : FT_W + host_below(seed, 6), last;

    switch (frame_get_t(f, ty, &last)) {
    case GET_OK:
        break;
    case GET_NEED_UP:
        begin_change(i);
        atomic_faa64(&ups, 1);
        end_change(i);
        if (!host_below(seed, 4)) {
            if (frame_up_failed(f))
                dead(i);
            return;
        }
        f->meta = 0;
        frame_up_done(f, false);
        break;
    case GET_BUSY:
        atomic_faa64(&retries, 1);
        return;
    case GET_REFUSED:
        if (h->t)
            impossible("a second reference of the same type was refused", f->fw);
        return;
    }
    h->ty = ty;
    h->t++;
}

/* What CPU @self holds must be visible in the word. */
static void check(const struct frame *f, const struct hold *h)
{
    u64 w = load_acquire(&f->fw);

    if ((h->t || h->u || h->pin) && (w & FW_DEAD))
        impossible("a frame died while it was held", w);
    if (h->u > (w & FW_U))
        impossible("fewer untyped references than one CPU holds", w);
    if (h->t && (!(w & FW_VALID) || fw_type(w) != h->ty || fw_t(w) < h->t))
        impossible("a typed reference did not keep the type", w);
    if ((w & FW_VALID) && (w & FW_BUSY))
        impossible("valid and changing", w);
    if ((w & FW_VALID) && !(w & FW_T))
        impossible("valid without a typed reference", w);
}

static void one(unsigned self, u64 *seed)
{
    unsigned i = host_below(seed, FRAMES);
    struct frame *f = frame_of(MFN(i));
    struct hold *h = &held[self][i];

    switch (host_below(seed, 9)) {
    case 0:
        if (h->u < 2)
            h->u += frame_get_u(f);
        break;
    case 1:
        if (h->u) {
            h->u--;
            if (frame_put_u(f))
                dead(i);
        }
        break;
    case 2:
        if (h->t < 3)
            get_t(i, f, h, seed);
        break;
    case 3: case 4:
        if (h->t && (h->t > 1 || !h->pin)) {
            h->t--;
            put_t(i, f);
        }
        break;
    case 5:
        if (h->t > 1 && !h->pin)
            h->pin = frame_pin(f);           /* one of our references is the pin's now */
        break;
    case 6:
        if (h->pin) {
            if (!frame_unpin(f))
                impossible("our pin was gone", f->fw);
            h->pin = false;
        }
        break;
    case 7: {
        enum frame_type ty = FT_L1 + host_below(seed, 4);

        if (frame_k_enter(f, ty)) {
            u64 w = load_acquire(&f->fw);

            if (fw_type(w) != ty || !(w & FW_K) || (w & FW_DEAD))
                impossible("the type changed under an update in flight", w);
            frame_k_exit(f);
        }
        break;
    }
    case 8:
        if (!host_below(seed, 8) && frame_release(f) == 1)
            dead(i);
        break;
    }
    check(f, h);
}

/* At rest each count is what the CPUs hold. */
static void at_rest(void)
{
    for (unsigned i = 0; i < FRAMES; i++) {
        u64 w = frame_of(MFN(i))->fw, u = 0, t = 0;
        bool pin = false;

        for (unsigned c = 0; c < torture_cpus; c++) {
            u += held[c][i].u;
            t += held[c][i].t;
            pin |= held[c][i].pin;
        }
        if ((w & FW_U) != u || fw_t(w) != t || !!(w & FW_PIN) != pin || (w & (FW_K | FW_BUSY)))
            impossible("counts at rest", w);
        if (!(w & FW_DEAD) && !(w & FW_REFS))
            impossible("alive without a reference at rest", w);
        if (!!(w & FW_DEAD) != note[i].dead)
            impossible("dead or not at rest", w);
    }
}

static void drop_all(unsigned self)
{
    for (unsigned i = 0; i < FRAMES; i++) {
        struct frame *f = frame_of(MFN(i));
        struct hold *h = &held[self][i];

        if (h->pin && !frame_unpin(f))
            impossible("our pin was gone", f->fw);
        h->pin = false;
        for (; h->t; h->t--)
            put_t(i, f);
        for (; h->u; h->u--)
            if (frame_put_u(f))
                dead(i);
    }
}

static void cpu(unsigned self, u64 *seed)
{
    u64 n = 0;

    do {
        for (unsigned i = 0; i < 20000; i++) {
            one(self, seed);
            n++;
            if (!(i & 15)) {
                rcu_quiescent();
                if (!host_below(seed, 2))
                    drop_all(self);
            }
        }
    } while (!torture_rest(at_rest));
    drop_all(self);
    atomic_faa64(&ops, n);
    torture_rest(at_rest);
}

int main(int argc, char **argv)
{
    char detail[160];

    torture_init(argc, argv, FRAMES, 0);
    torture_run(cpu, NULL);
    snprintf(detail, sizeof(detail), "%llu operations, %llu ups, %llu downs, %llu deaths, %llu met a change", (unsigned long long)ops,
             (unsigned long long)ups, (unsigned long long)downs, (unsigned long long)deaths, (unsigned long long)retries);
    if (!ups || !downs || !deaths)
        impossible("nothing happened", ops);
    return torture_end(detail);
}
