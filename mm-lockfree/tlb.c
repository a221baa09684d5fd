/* SPDX-License-Identifier: MIT */
/* TLB shootdown by per-CPU inboxes; the protocol is described in tlb.h. */
#include "tlb.h"

struct tlb_cpu tlb_cpu[ENV_MAX_CPUS];

static unsigned words(void) { return (env_nr_cpus() + 63) / 64; }

void tlb_set_clear(struct tlb_set *s)
{
    s->n = 0;
    for (unsigned i = 0; i < words(); i++)
        s->bits[i] = 0;
}

void tlb_collect(struct tlb_set *s, const struct frame *f, enum frame_type last)
{
    bool was_table = last >= FT_L1 && last <= FT_L4;
    u64 stamp = load_relaxed(&f->stamp), meta = load_relaxed(&f->meta);   /* F1, T1 */

    for (unsigned c = 0; c < env_nr_cpus(); c++) {
        const struct tlb_cpu *t = &tlb_cpu[c];
        u64 as = load_acquire(&t->as);                                /* T2 */
        u64 mode = load_acquire(&t->mode);                            /* T2 */
        u64 flushed = load_acquire(&t->flush_time);                   /* T1 */

        if (as == AS_NONE)
            stat_inc(tlb_skip_idle);
        else if (flushed > stamp)
            stat_inc(tlb_skip_time);
        else if (was_table && meta != AS_ANY && as != AS_ANY && as != meta)
            stat_inc(tlb_skip_root);
        else if (!was_table && !(mode & 1) && flushed > meta)
            stat_inc(tlb_skip_user);        /* runs user code, which saw no writable mapping since @flushed */
        else
            tlb_set_add(s, c);
    }
}

void tlb_flush_set(const struct tlb_set *s)
{
    unsigned self = env_cpu(), remote = 0;

    if (!s->n)
        return;
    stat_inc(tlb_request);
    for (unsigned i = 0; i < words(); i++) {
        for (u64 m = s->bits[i]; m; m &= m - 1) {
            unsigned c = i * 64 + (unsigned)__builtin_ctzll(m);
            u64 w;

            if (c == self)
                continue;
            remote++;
            w = load_relaxed(&tlb_cpu[c].word);
            while (!atomic_cas64(&tlb_cpu[c].word, &w, ((w >> 1) + 1) << 1 | 1))
                ;
            if (w & 1) {
                stat_inc(tlb_combined);                               /* T3: its flush has not started */
            } else {
                stat_inc(tlb_ipi);
                env_send_tlb_ipi(c);
            }
        }
    }
    if (s->bits[self / 64] >> (self % 64) & 1)
        tlb_flush_local();
    if (!remote)
        return;
    stat_inc(tlb_shootdown);
    for (unsigned i = 0; i < words(); i++) {
        for (u64 m = s->bits[i]; m; m &= m - 1) {
            unsigned c = i * 64 + (unsigned)__builtin_ctzll(m);
            u64 gen = load_relaxed(&tlb_cpu[c].word) >> 1;            /* ours or a later one */

            while (c != self && load_acquire(&tlb_cpu[c].ack) < gen) {  /* T4 */
                tlb_poll();
                cpu_relax();
            }
        }
    }
}

void tlb_poll_slow(void)
{
    struct tlb_cpu *t = &tlb_cpu[env_cpu()];
    u64 w = atomic_fetch_and64(&t->word, ~1ull);                      /* T3 */

    tlb_flush_local();
    store_release(&t->ack, w >> 1);                                   /* T4 */
}
