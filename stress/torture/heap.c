/* SPDX-License-Identifier: MIT */
/* Tortures the heap of pages: CPUs take some, fill them with their number, look whether that is still there, and give them
 * back in another order.  Impossible: a page of two owners, a page changed by another, a page lost. */
#include "base/page_stack.h"

#include <string.h>

#include "torture.h"

#define PAGES 48
#define HOLD  16

static page_stack heap = PAGE_STACK_INIT;
static u32 owner[PAGES];
static u64 taken, empty;

static unsigned number(const void *page) { return (unsigned)env_mfn_of(page).v; }

static u64 *take(void)
{
    u64 *p = page_pop(&heap);

    if (!p) {
        atomic_faa64(&empty, 1);
        return NULL;
    }
    atomic_faa64(&taken, 1);
    if (number(p) >= PAGES)
        impossible("what was taken is no page", (u64)p);
    else if (atomic_xchg32(&owner[number(p)], env_cpu() + 1))
        impossible("a page has two owners", number(p));
    for (unsigned i = 1; i < PAGE_SIZE / 8; i++)     /* the first word was the link */
        p[i] = env_cpu() << 16 | i;
    return p;
}

static void give(u64 *p)
{
    for (unsigned i = 1; i < PAGE_SIZE / 8; i++)
        if (p[i] != (env_cpu() << 16 | i))
            impossible("a page was changed by another", p[i]);
    if (atomic_xchg32(&owner[number(p)], 0) != env_cpu() + 1)
        impossible("a page changed its owner", number(p));
    page_push(&heap, p);
}

static void all_there(void)
{
    u64 *kept[PAGES];
    unsigned n = 0;

    while (n < PAGES && (kept[n] = take()))
        n++;
    if (n != PAGES || page_pop(&heap))
        impossible("pages are lost, or too many", n);
    while (n)
        give(kept[--n]);
}

static void cpu(unsigned self, u64 *seed)
{
    u64 *mine[HOLD] = { NULL };

    if (!self)
        for (u64 m = 0; m < PAGES; m++)
            page_push(&heap, env_map(MFN(m)));
    torture_rest(NULL);
    do {
        for (unsigned i = 0; i < 2000; i++) {
            unsigned k = host_below(seed, HOLD);

            if (mine[k])
                give(mine[k]);
            mine[k] = host_below(seed, 3) ? take() : NULL;
        }
        for (unsigned k = 0; k < HOLD; k++) {
            if (mine[k])
                give(mine[k]);
            mine[k] = NULL;
        }
    } while (!torture_rest(all_there));
}

int main(int argc, char **argv)
{
    char detail[100];

    torture_init(argc, argv, PAGES, 0);
    torture_run(cpu, NULL);
    if (!taken)
        impossible("nothing happened", taken);
    snprintf(detail, sizeof(detail), "%llu pages taken, %llu times none was left", (unsigned long long)taken,
             (unsigned long long)empty);
    return torture_end(detail);
}
