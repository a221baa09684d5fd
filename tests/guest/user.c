/* SPDX-License-Identifier: MIT */
/* A user mode: page tables of its own with one page of code and one of data, and a way in. */
#include "guest.h"

bool user_space_make(struct user_space *u)
{
    u64 *t[4];

    for (unsigned i = 0; i < 4; i++)
        t[i] = page_alloc();
    u->data = page_alloc();
    u->l4 = t[0], u->l3 = t[1], u->l2 = t[2], u->l1 = t[3];
    for (unsigned i = 0; i < 3; i++)
        t[i][USER_CODE >> (39 - 9 * i) & 511] = pte(mfn_of(t[i + 1]), P | RW | US | AC | DI);
    t[3][USER_CODE >> 12 & 511] = pte(mfn_of(user_page), P | US | AC);
    t[3][USER_DATA >> 12 & 511] = pte(mfn_of(u->data), P | RW | US | AC | DI);
    for (unsigned i = 0; i < 4; i++)
        if (!EQ(make_ro(t[i]), 0))
            return false;
    return EQ(pin(4, mfn_of(u->l4)), 0) && EQ(mmuext(MMUEXT_NEW_USER_BASEPTR, mfn_of(u->l4), 0), 0);
}

void user_space_drop(struct user_space *u)
{
    EQ(mmuext(MMUEXT_NEW_USER_BASEPTR, 0, 0), 0);
    EQ(unpin(mfn_of(u->l4)), 0);
    page_free(u->l4);
    page_free(u->l3);
    page_free(u->l2);
    page_free(u->l1);
    page_free(u->data);
}

struct regs *enter_user(const char *entry, u64 rdi, u64 rsi)
{
    struct frame_iret f = {
        .rip = USER_RIP(entry), .cs = FLAT_CS, .ss = FLAT_SS, .rflags = 2, .rsp = USER_DATA + PAGE,
        .rax = 0xaaaa, .rcx = 0xcccc, .r11 = 0xbbbb,
    };

    return enter(&f, false, rdi, rsi);
}
