#include "linear/search.h"

#include "claimd/base/hash.h"
#include "linear/model.h"
#include "linear/seen_order.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = LINEAR_OPERATIONS / 64 };

/* What Lowe's memory remembers. */
struct memory_entry {
    uint64_t done[WORDS]; /* bit n: operation n is in the order */
    struct model state;
};

struct memory {
    struct memory_entry *entries; /* owned */
    size_t count, room;
    uint32_t *slots; /* owned; 1 + index of an entry, 0: empty; linear probing */
    size_t mask;
};

/* A call or a reply, in a list in the order of time. */
struct event {
    struct event *next, *prev;
    struct event *reply; /* of a call: its reply; NULL in replies */
    size_t op;
    int64_t at_ns;
};

struct choice {
    struct event *call;
    struct model before;
};

/*
 * What is tried next of the operations under way: the one called first, or the one answered
 * first. Either may be wrong early and notice late; where one is lost the other seldom is.
 */
enum strategy { BY_CALL, BY_REPLY, STRATEGIES };

struct run {
    const struct operation *ops;
    enum strategy strategy;
    struct seen_order order;
    struct event head; /* of the events not in the order yet */
    struct event events[2 * LINEAR_OPERATIONS];
    struct memory memory;
    struct memory_entry now;
    struct choice chosen[LINEAR_OPERATIONS];
    size_t depth;
};

static void *
must(void *block)
{
    if (block == NULL)
        abort(); /* a test without memory ends */
    return block;
}

/* ---------------------------------------------------------------------- memory */

static uint64_t
entry_hash(const struct memory_entry *e)
{
    const unsigned char *bytes = (const unsigned char *)e;
    uint64_t hash = 0, word;

    for (size_t i = 0; i + sizeof(word) <= sizeof(*e); i += sizeof(word)) {
        memcpy(&word, bytes + i, sizeof(word));
        hash = hash_mix(hash + word) + i;
    }
    return hash;
}

static void
memory_index(struct memory *m, size_t entry)
{
    size_t slot = entry_hash(&m->entries[entry]) & m->mask;

    while (m->slots[slot] != 0)
        slot = (slot + 1) & m->mask;
    m->slots[slot] = (uint32_t)entry + 1;
}

static void
memory_grow(struct memory *m)
{
    m->room = m->room == 0 ? 1024 : m->room * 2;
    m->entries = must(realloc(m->entries, m->room * sizeof(*m->entries)));
    free(m->slots);
    m->mask = m->room * 2 - 1;
    m->slots = must(calloc(m->mask + 1, sizeof(*m->slots)));
    for (size_t i = 0; i < m->count; i++)
        memory_index(m, i);
}

/* False if it is known already. */
static bool
memory_learn(struct memory *m, const struct memory_entry *e)
{
    size_t slot;

    if (m->count == m->room)
        memory_grow(m);
    slot = entry_hash(e) & m->mask;
    for (; m->slots[slot] != 0; slot = (slot + 1) & m->mask)
        if (memcmp(&m->entries[m->slots[slot] - 1], e, sizeof(*e)) == 0)
            return false;
    m->entries[m->count] = *e;
    m->slots[slot] = (uint32_t)++m->count;
    return true;
}

/* ---------------------------------------------------------------------- events */

/* Calls before replies of the same instant: then the two overlap. */
static int
compare_events(const void *a, const void *b)
{
    const struct event *x = a, *y = b;

    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return (y->reply != NULL) - (x->reply != NULL);
}

static void
list_events(struct run *r, size_t count)
{
    struct event *replies[LINEAR_OPERATIONS] = {NULL};
    struct event *last = &r->head;

    for (size_t i = 0; i < count; i++) {
        struct event *call = &r->events[2 * i], *reply = call + 1;

        *call = (struct event){.op = i, .at_ns = r->ops[i].call_ns, .reply = reply};
        *reply = (struct event){.op = i, .at_ns = r->ops[i].reply_ns};
    }
    qsort(r->events, 2 * count, sizeof(r->events[0]), compare_events);
    for (size_t i = 0; i < 2 * count; i++) {
        struct event *e = &r->events[i];

        if (e->reply == NULL)
            replies[e->op] = e;
        e->prev = last;
        last->next = e;
        last = e;
    }
    last->next = NULL;
    for (size_t i = 0; i < 2 * count; i++) /* sorting has moved them */
        if (r->events[i].reply != NULL)
            r->events[i].reply = replies[r->events[i].op];
}

static void
unlink_event(struct event *e)
{
    e->prev->next = e->next;
    if (e->next != NULL)
        e->next->prev = e->prev;
}

static void
relink_event(struct event *e)
{
    e->prev->next = e;
    if (e->next != NULL)
        e->next->prev = e;
}

/* ---------------------------------------------------------------------- searching */

static void
toggle(struct run *r, size_t op)
{
    r->now.done[op / 64] ^= UINT64_C(1) << (op % 64);
}

/* Puts the operation next in the order, if it fits and leads somewhere new. */
static bool
choose(struct run *r, struct event *call)
{
    const struct operation *op = &r->ops[call->op];
    struct model before = r->now.state;

    if (op->kind == LINEAR_POST && !seen_order_allows(&r->order, op, before.posted))
        return false;
    toggle(r, call->op);
    if (!model_step(&r->now.state, op) || !memory_learn(&r->memory, &r->now)) {
        toggle(r, call->op);
        r->now.state = before;
        return false;
    }
    r->chosen[r->depth++] = (struct choice){call, before};
    unlink_event(call);
    unlink_event(call->reply);
    return true;
}

/*
 * The call to try after `tried` (NULL: the first) of those that come before any reply; a reply
 * when there is no other.
 */
static struct event *
next_event(const struct run *r, const struct event *tried)
{
    struct event *best = NULL, *e = r->head.next;

    if (r->strategy == BY_CALL)
        return tried == NULL ? e : tried->next;
    /* Events stand in an array in the order of time. */
    for (; e->reply != NULL; e = e->next)
        if ((tried == NULL || e->reply > tried->reply) &&
            (best == NULL || e->reply < best->reply))
            best = e;
    return best == NULL ? e : best;
}

/* Takes the last operation out of the order; returns the event to go on with. */
static struct event *
undo(struct run *r)
{
    const struct choice *last = &r->chosen[--r->depth];

    relink_event(last->call->reply);
    relink_event(last->call);
    toggle(r, last->call->op);
    r->now.state = last->before;
    return next_event(r, last->call);
}

static void
note_longest(const struct run *r, struct search_result *out)
{
    if (r->depth <= out->longest)
        return;
    out->longest = r->depth;
    memset(out->ordered, 0, sizeof(out->ordered));
    for (size_t i = 0; i < r->depth; i++)
        out->ordered[r->chosen[i].call->op] = true;
}

static enum verdict
run_search(struct run *r, struct search_result *out)
{
    struct event *e = next_event(r, NULL);

    for (size_t steps = 0; r->head.next != NULL; steps++) {
        if (steps == SEARCH_STEPS_MAX)
            return GAVE_UP;
        if (e->reply == NULL) { /* it must be in the order before this */
            if (r->depth == 0)
                return NOT_LINEARIZABLE;
            e = undo(r);
        } else if (choose(r, e)) {
            note_longest(r, out);
            e = r->head.next == NULL ? NULL : next_event(r, NULL);
        } else {
            e = next_event(r, e);
        }
    }
    return LINEARIZABLE;
}

static void
search_by(enum strategy strategy, const struct operation *ops, size_t count,
          struct search_result *out)
{
    struct run *r = must(calloc(1, sizeof(*r)));

    memset(out, 0, sizeof(*out));
    r->ops = ops;
    r->strategy = strategy;
    seen_order_learn(&r->order, ops, count);
    list_events(r, count);
    out->verdict = run_search(r, out);
    out->states = r->memory.count;
    free(r->memory.entries);
    free(r->memory.slots);
    free(r);
}

void
search(const struct operation *ops, size_t count, struct search_result *out)
{
    if (count > LINEAR_OPERATIONS)
        abort();
    out->verdict = GAVE_UP;
    for (int s = BY_CALL; s < STRATEGIES && out->verdict == GAVE_UP; s++)
        search_by((enum strategy)s, ops, count, out);
}
