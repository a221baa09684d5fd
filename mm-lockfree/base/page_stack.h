/* SPDX-License-Identifier: MIT */
/* Free pages, linked through their own first bytes: Concurrency Kit's stack, any CPU, lock-free.  A pop is safe against a page
 * that went and came back, by the generation beside the head; it may read the link of a page that was popped meanwhile, which
 * stays readable memory. */
#ifndef PT_BASE_PAGE_STACK_H
#define PT_BASE_PAGE_STACK_H

#include <ck_stack.h>

typedef ck_stack_t page_stack;
#define PAGE_STACK_INIT CK_STACK_INITIALIZER

static inline void page_push(page_stack *s, void *page) { ck_stack_push_upmc(s, page); }
static inline void *page_pop(page_stack *s) { return ck_stack_pop_mpmc(s); }    /* NULL: none is left */

#endif
