/* SPDX-License-Identifier: MIT */
/* Scenarios as text, and drawn at random from sequences that make sense. */
#include "mc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Arguments: f frame, i index or page number, e entry (frame and kind: o read-only, w writable, d writable and dirty,
 * h hook, n not present, - empty). */
static const struct { const char *name, *args; u8 code, b; } ops[] = {
    { "upd", "fie", OP_UPD, 0 }, { "upda", "fie", OP_UPDA, 0 }, { "xchg", "fie", OP_XCHG, 0 },
    { "mov", "fie", OP_MOV, 0 },
    { "cmpx", "fie", OP_CMPXCHG, 0 }, { "btr", "fi", OP_BTR, 0 },
    { "pin1", "f", OP_PIN, 1 }, { "pin2", "f", OP_PIN, 2 }, { "pin3", "f", OP_PIN, 3 }, { "pin4", "f", OP_PIN, 4 },
    { "unpin", "f", OP_UNPIN, 0 }, { "base", "f", OP_BASE, 0 }, { "ubase", "f", OP_UBASE, 0 },
    { "user", "", OP_USER, 0 },
    { "kern", "", OP_KERNEL, 0 }, { "rel", "f", OP_REL, 0 }, { "flush", "", OP_FLUSH, 0 },
    { "flushme", "", OP_FLUSHME, 0 },
    { "bb", "", OP_BB, 0 }, { "be", "", OP_BE, 0 }, { "gw", "pie", OP_GW, 0 }, { "gr", "p", OP_GR, 0 },
    { "seg", "f", OP_SEG, 0 }, { "idle", "", OP_IDLE, 0 }, { "copy", "p", OP_COPY, 0 }, { "nop", "", OP_NOP, 0 },
};

/* Index arguments may be names too: the kernel's own table maps frame x at index x. */
static bool number(const char **p, unsigned *out)
{
    unsigned len = 0;

    while ((*p)[len] && !strchr(",() |:", (*p)[len]))
        len++;
    if (**p >= '0' && **p <= '9')
        *out = (unsigned)strtoul(*p, NULL, 10);
    else
        *out = **p == '-' ? 0 : world_frame(*p, len);
    if (!len || (!*out && **p != '0' && **p != '-'))
        return false;
    *p += len;
    return true;
}

static bool parse_op(struct op *o, const char **text)
{
    const char *p = *text, *a;
    unsigned len = 0, k, x;

    while (p[len] && !strchr("( |", p[len]))
        len++;
    for (k = 0; k < ARRAY_SIZE(ops); k++)
        if (strlen(ops[k].name) == len && !memcmp(ops[k].name, p, len))
            break;
    if (k == ARRAY_SIZE(ops))
        return false;
    *o = (struct op){ .code = ops[k].code, .b = ops[k].b, .f = '-' };
    p += len;
    if (*ops[k].args && *p++ != '(')
        return false;
    for (a = ops[k].args; *a; a++) {
        if (a != ops[k].args && *p++ != ',')
            return false;
        if (!number(&p, &x))
            return false;
        if (*a == 'f' ? x >= FRAMES : *a == 'p' ? x >= NVA : x >= PT_ENTRIES)
            return false;
        if (*a == 'e') {
            o->c = (u8)x;
            if (x) {
                if (*p++ != ',' || !*p)
                    return false;
                o->f = (u8)*p++;
            }
        } else if (a == ops[k].args) {
            o->a = (u8)x;
        } else {
            o->b = (u16)x;
        }
    }
    if (*ops[k].args && *p++ != ')')
        return false;
    *text = p;
    return true;
}

static bool parse_head(struct scenario *s, const char **text)
{
    const char *p = *text;
    unsigned x;

    if (!strchr(p, ':'))
        return true;
    while (*p != ':') {
        if (!strncmp(p, "ptwr", 4)) {
            s->ptwr = true;
            p += 4;
        } else if (!strncmp(p, "oom=", 4)) {
            p += 4;
            if (!number(&p, &x))
                return false;
            s->oom = (u8)x;
        } else if (!strncmp(p, "preempt=", 8)) {
            p += 8;
            if (!number(&p, &x))
                return false;
            s->preempts = (u8)x;
        } else if (!strncmp(p, "pages=", 6)) {
            for (p += 6; *p >= '0' && *p < '0' + NVA; p++)
                s->pages |= (u8)(1u << (*p - '0'));
        } else if (!strncmp(p, "steady=", 7)) {
            for (p += 7; *p >= '0' && *p < '0' + NVA; p++)
                s->steady |= (u8)(1u << (*p - '0'));
        } else if (!strncmp(p, "watch=", 6)) {
            p += 6;
            for (unsigned i = 0; i < 3; i++) {
                if (i && *p++ != ',')
                    return false;
                if (!number(&p, &x))
                    return false;
                s->watch[i] = (u8)x;
            }
        } else if (*p == ' ') {
            p++;
        } else {
            return false;
        }
    }
    *text = p + 1;
    return true;
}

bool scenario_parse(struct scenario *s, const char *text)
{
    unsigned cpu = 0;

    *s = (struct scenario){ .watch = { 10, 15, 14 } };
    if (!parse_head(s, &text))
        return false;
    for (; *text; ) {
        if (*text == ' ') {
            text++;
        } else if (!strncmp(text, ">>", 2)) {
            text += 2;
            if (cpu || s->n_setup)
                return false;
            memcpy(s->setup, s->op[0], sizeof(s->setup));
            s->n_setup = s->n[0];
            s->n[0] = 0;
        } else if (*text == '|') {
            text++;
            if (++cpu == CPUS)
                return false;
        } else {
            if (s->n[cpu] == OPS_MAX || !parse_op(&s->op[cpu][s->n[cpu]], &text))
                return false;
            s->n[cpu]++;
        }
    }
    s->cpus = (u8)(cpu + 1);
    return true;
}

static int print_op(char *buf, size_t size, const struct op *o)
{
    unsigned k = 0;
    int n;

    while (ops[k].code != o->code || (o->code == OP_PIN && ops[k].b != o->b))
        k++;
    n = snprintf(buf, size, " %s%s", ops[k].name, *ops[k].args ? "(" : "");
    for (const char *a = ops[k].args; *a; a++) {
        const char *comma = a == ops[k].args ? "" : ",";

        if (*a == 'f')
            n += snprintf(buf + n, size - (size_t)n, "%s%s", comma, world_name(o->a));
        else if (*a == 'e' && !o->c)
            n += snprintf(buf + n, size - (size_t)n, "%s-", comma);
        else if (*a == 'e')
            n += snprintf(buf + n, size - (size_t)n, "%s%s,%c", comma, world_name(o->c), o->f);
        else
            n += snprintf(buf + n, size - (size_t)n, "%s%u", comma, a == ops[k].args ? o->a : o->b);
    }
    return n + snprintf(buf + n, size - (size_t)n, "%s", *ops[k].args ? ")" : "");
}

static int print_set(char *buf, size_t size, const char *name, u8 set)
{
    int n;

    if (!set)
        return 0;
    n = snprintf(buf, size, "%s=", name);
    for (unsigned v = 0; v < NVA; v++)
        if (set >> v & 1)
            n += snprintf(buf + n, size - (size_t)n, "%u", v);
    return n + snprintf(buf + n, size - (size_t)n, " ");
}

void scenario_print(const struct scenario *s, char *buf, size_t size)
{
    int n = snprintf(buf, size, "%s", s->ptwr ? "ptwr " : "");

    if (s->oom)
        n += snprintf(buf + n, size - (size_t)n, "oom=%u ", s->oom);
    if (s->preempts)
        n += snprintf(buf + n, size - (size_t)n, "preempt=%u ", s->preempts);
    n += print_set(buf + n, size - (size_t)n, "pages", s->pages);
    n += print_set(buf + n, size - (size_t)n, "steady", s->steady);
    n += snprintf(buf + n, size - (size_t)n, "watch=%s,%s,%s:", world_name(s->watch[0]), world_name(s->watch[1]),
                  world_name(s->watch[2]));
    for (unsigned i = 0; i < s->n_setup; i++)
        n += print_op(buf + n, size - (size_t)n, &s->setup[i]);
    n += snprintf(buf + n, size - (size_t)n, "%s", s->n_setup ? " >>" : "");
    for (unsigned c = 0; c < s->cpus; c++) {
        n += snprintf(buf + n, size - (size_t)n, "%s", c ? " |" : "");
        for (unsigned i = 0; i < s->n[c] && (size_t)n + 64 < size; i++)
            n += print_op(buf + n, size - (size_t)n, &s->op[c][i]);
    }
}

/* Random scenarios: pieces that a guest would do in this order, with %d a data frame, %t a candidate for an L1 and so
 * on; some with one step left out or wrong. */
static const char *const pieces[] = {
    "upd(k1,%t,%t,o) pin1(%t)", "upd(k1,%t,%t,o) pin1(%t) upd(b0,1,%t,h)", "btr(k1,%t) pin1(%t)",
    "btr(k1,%t) bb pin1(%t) be", "unpin(%t) upd(k1,%t,%t,w)", "unpin(%t) xchg(k1,%t,%t,w)",
    "upd(b0,1,-)", "xchg(c0,0,-)", "upd(b0,1,%t,h)", "upd(b0,1,-) unpin(%t) upd(k1,%t,%t,w)", "pin1(%t)", "unpin(%t)",
    "btr(k1,b1) btr(k1,c1) upd(a0,1,b1,h)", "upd(a0,1,-)", "upd(r0,1,a1,h)",
    "btr(k1,a1) btr(k1,b1) btr(k1,c1) pin3(a1)",
    "upd(k1,r2,r2,o) upd(k1,a1,a1,o) upd(k1,b1,b1,o) upd(k1,c1,c1,o) pin4(r2) base(r2)", "base(r1)",
    "base(r0)", "base(r2)",
    "base(r1) unpin(r2)", "unpin(r1)", "unpin(r0)", "ubase(r2)", "ubase(u0)", "upd(a0,0,-)", "upd(a0,0,b0,h)",
    "upd(c0,0,%d,w)", "upd(c0,0,%d,o)", "upd(c0,0,-)", "xchg(c0,%i,-)", "btr(c0,%i)", "cmpx(c0,%i,%d,w)",
    "mov(c0,%i,%d,o)",
    "upda(c0,%i,%d,w)", "upd(c0,%i,%d,n)", "mov(c0,%i,%t,w)", "upd(k1,%d,-)", "upd(k1,%d,%d,o)", "upd(k1,%d,%d,w)",
    "btr(k1,%d) seg(%d)", "seg(%d)", "upd(k1,%d,-) rel(%d)", "rel(%d)", "upd(k1,%t,-) rel(%t)", "rel(%t)", "rel(c0)",
    "user", "kern", "user gr(0) kern", "user gw(0,0,-)", "gw(4,%i,%d,w)", "gw(0,%i,%d,w)", "gw(2,%i,%d,o)",
    "gr(%p)", "gw(%p,%i,-)",
    "flush", "flushme", "idle", "nop", "upd(%t,%i,%d,w)", "upd(%t,%i,-)", "upda(%t,%i,%d,o)", "upd(b1,0,%t,h)",
    "upd(b1,0,-)",
    "bb btr(k1,c1) pin1(c1) btr(k1,c2) pin1(c2) be", "bb upd(k1,c1,c1,o) pin1(c1) upd(b0,1,c1,h) be",
    "bb unpin(%t) upd(k1,%t,%t,w) be", "btr(k1,d3) pin1(d3)", "btr(k1,b1) pin2(b1)", "unpin(b1)", "pin2(b0)",
    "unpin(b0)",
    "upd(r1,0,a0,h)", "upd(r1,0,-)", "btr(k1,c1) upd(b0,1,c1,h) upd(b0,2,c1,h)", "unpin(c0)",
    "upd(b0,0,-) unpin(c0) upd(k1,c0,c0,w)", "pin1(c0)",
};
static const char *const ptwr_pieces[] = {
    "gw(5,%i,%d,w)", "gw(5,%i,%d,o)", "gw(5,%i,-)", "gw(5,%i,%d,w) gw(5,%i,-)", "gw(4,%i,%d,w)",
    "upd(k1,%t,%t,o) pin1(%t)",
    "upd(b0,1,%t,h)", "upd(b0,1,-)", "gr(0)", "gw(0,%i,-)", "gr(2)", "copy(0)", "unpin(%t) upd(k1,%t,%t,w)",
    "upd(c0,%i,%d,w)",
    "xchg(c0,%i,-)", "flush", "user gr(0) kern", "gw(5,%i,k1,w)", "gw(7,0,-)", "base(r1)", "base(r0)", "nop",
    "gw(5,%i,%d,n)",
    "idle", "upd(a0,0,-)", "upd(k1,c0,-)", "rel(%d)",
};

static void expand(char *out, size_t size, const char *piece, u64 *rng)
{
    static const char *const data[] = { "d0", "d1", "d2", "d3" }, *const table[] = { "c1", "c1", "c2", "d3" };
    const char *d = data[mc_random(rng) & 3], *t = table[mc_random(rng) & 3];
    size_t n = strlen(out);

    for (; *piece && n + 4 < size; piece++) {
        if (*piece != '%') {
            out[n++] = *piece;
            continue;
        }
        piece++;
        if (*piece == 'i' || *piece == 'p') {
            out[n++] = (char)('0' + mc_random(rng) % (*piece == 'i' ? 3 : NVA));
        } else {
            memcpy(out + n, *piece == 'd' ? d : t, 2);
            n += 2;
        }
    }
    out[n++] = ' ';
    out[n] = 0;
}

void scenario_random(struct scenario *s, u64 seed)
{
    u64 rng = seed;
    bool ptwr = mc_random(&rng) % 4 == 0;
    unsigned n = 2 + mc_random(&rng) % 3 / 2;
    const char *watch = mc_random(&rng) & 1 ? "watch=c1,d0,b1" : "watch=c1,c2,d0";
    char text[1024] = "";

    static const char *const preempt[] = { "", "", " preempt=1", " preempt=3" };

    snprintf(text, sizeof(text), "%s%s%s: ", ptwr ? "ptwr watch=c1,c0,k1" : watch, mc_random(&rng) % 16 ? "" : " oom=1",
             preempt[mc_random(&rng) % ARRAY_SIZE(preempt)]);
    for (unsigned c = 0; c < n; c++) {
        unsigned k = 1 + mc_random(&rng) % 3;

        for (; k; k--) {
            const char *p = ptwr ? ptwr_pieces[mc_random(&rng) % ARRAY_SIZE(ptwr_pieces)]
                                 : pieces[mc_random(&rng) % ARRAY_SIZE(pieces)];

            expand(text, sizeof(text), p, &rng);
        }
        if (c + 1 < n)
            strcat(text, "| ");
    }
    if (!scenario_parse(s, text)) {
        fprintf(stderr, "mc: cannot parse what was drawn: %s\n", text);
        exit(2);
    }
    snprintf(s->name, sizeof(s->name), "r%llu", (unsigned long long)seed);
}
