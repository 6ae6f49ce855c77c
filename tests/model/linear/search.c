#include "model/linear/search.h"

#include "claimd/base/hash.h"
#include "model/linear/model.h"
#include "model/linear/seen_order.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = LINEAR_OPERATIONS / 64 };

/* An entry of Lowe's memory. */
struct memory_entry {
    uint64_t done[WORDS]; /* bit n: operation n is in the order */
    struct model state;
};

struct memory {
    struct memory_entry *entries; /* owned */
    size_t count, capacity;
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
    int64_t latest_ns; /* before it */
    bool final;        /* if this was wrong, so is every other choice at this point */
};

/*
 * The next try among the operations under way: the one with the first response, or the
 * one called first. Either may be wrong early and notice late; where one is lost the
 * other seldom is. So neither is followed for long before the other has had a try.
 */
enum strategy { BY_REPLY, BY_CALL, STRATEGIES };

enum { FIRST_TRY = 128 }; /* of all steps that are allowed, one in so many */

struct run {
    const struct operation *ops;
    size_t count;
    enum strategy strategy;
    struct seen_order order;
    struct event head; /* of the events not in the order yet */
    struct event events[2 * LINEAR_OPERATIONS];
    struct memory memory;
    struct memory_entry now;
    struct choice chosen[LINEAR_OPERATIONS];
    size_t depth;
    size_t without_response[LINEAR_OPERATIONS], without_response_count;
    size_t due;        /* operations with a response that are not in the order yet */
    int64_t latest_ns; /* when the last of those in the order was called */
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
    m->capacity = m->capacity == 0 ? 1024 : m->capacity * 2;
    m->entries = must(realloc(m->entries, m->capacity * sizeof(*m->entries)));
    free(m->slots);
    m->mask = m->capacity * 2 - 1;
    m->slots = must(calloc(m->mask + 1, sizeof(*m->slots)));
    for (size_t i = 0; i < m->count; i++)
        memory_index(m, i);
}

/* False if it is known already. */
static bool
memory_learn(struct memory *m, const struct memory_entry *e)
{
    size_t slot;

    if (m->count == m->capacity)
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

static bool
has_response(const struct operation *op)
{
    return op->code != 0;
}

/* No operation has to be in the order by the end of an operation that may never have
 * happened. */
static int64_t
ends_ns(const struct operation *op)
{
    return has_response(op) ? op->response_ns : INT64_MAX;
}

static void
list_events(struct run *r, size_t count)
{
    struct event *replies[LINEAR_OPERATIONS] = {NULL};
    struct event *last = &r->head;

    for (size_t i = 0; i < count; i++) {
        struct event *call = &r->events[2 * i], *reply = call + 1;

        *call = (struct event){.op = i, .at_ns = r->ops[i].call_ns, .reply = reply};
        *reply = (struct event){.op = i, .at_ns = ends_ns(&r->ops[i])};
        if (has_response(&r->ops[i]))
            r->due++;
        else
            r->without_response[r->without_response_count++] = i;
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

static bool
is_done(const struct run *r, size_t op)
{
    return (r->now.done[op / 64] >> (op % 64) & 1) != 0;
}

/* Is it sure that `a` was in the wait queue before `b`? */
static bool
is_in_front(const struct operation *a, const struct operation *b)
{
    return a->queued_ns != 0 && a->queued_ns < b->call_ns;
}

/* The messages reserved for waiters in front of an operation that waits, if it comes
 * next. */
static struct reserved
reserved_before(const struct run *r, size_t next)
{
    const struct operation *op = &r->ops[next];
    struct reserved reserved = {0, 0};

    for (size_t i = 0; op->waits && i < r->count; i++) {
        const struct operation *other = &r->ops[i];

        if (i == next || !other->waits || other->call_ns > op->response_ns ||
            other->response_ns < op->call_ns || is_in_front(op, other))
            continue;
        reserved.most += other->limit;
        if (is_in_front(other, op) && other->count > 0 && !is_done(r, i))
            reserved.least += other->limit;
    }
    return reserved;
}

/* One without a response happens. False: it is too late, or it would make no
 * difference. */
static bool
happen(struct run *r, const struct operation *op)
{
    struct operation guess = model_response(&r->now.state, op);
    struct model before = r->now.state;

    return r->latest_ns <= op->response_ns &&
           model_step(&r->now.state, &guess, (struct reserved){0, 0}) &&
           memcmp(&before, &r->now.state, sizeof(before)) != 0;
}

/* Is something without a response too late when this operation is in the order? */
static bool
rules_out(const struct run *r, const struct operation *op)
{
    for (size_t i = 0; i < r->without_response_count; i++) {
        size_t n = r->without_response[i];

        if (r->ops[n].response_ns < op->call_ns &&
            r->ops[n].response_ns >= r->latest_ns && !is_done(r, n))
            return true;
    }
    return false;
}

enum fit { FITS, FITS_NOT, LEADS_NOWHERE /* neither does anything else at this point */ };

/*
 * Puts the operation next in the order, if it fits and leads somewhere new.
 *
 * One that only looks, and fits now, may as well be next: in any order of what is left it
 * can be taken from its place to the front, and nothing else notices. So it is never
 * tried later; unless it was called when something ended that may have happened and has
 * no response.
 */
static enum fit
choose(struct run *r, struct event *call)
{
    const struct operation *op = &r->ops[call->op];
    bool only_looks = has_response(op) && model_only_looks(op) && !rules_out(r, op);
    struct model before = r->now.state;
    const struct reserved reserved = reserved_before(r, call->op);
    enum fit fit = FITS_NOT;

    if (op->kind == LINEAR_POST && !seen_order_allows(&r->order, op, before.posted))
        return FITS_NOT;
    toggle(r, call->op);
    if (has_response(op) ? model_step(&r->now.state, op, reserved) : happen(r, op)) {
        if (only_looks && memcmp(&before, &r->now.state, sizeof(before)) != 0)
            abort(); /* the model contradicts itself */
        fit = memory_learn(&r->memory, &r->now) ? FITS
              : only_looks                      ? LEADS_NOWHERE
                                                : FITS_NOT;
    }
    if (fit != FITS) {
        toggle(r, call->op);
        r->now.state = before;
        return fit;
    }
    r->chosen[r->depth++] = (struct choice){call, before, r->latest_ns, only_looks};
    r->due -= has_response(op);
    if (op->call_ns > r->latest_ns)
        r->latest_ns = op->call_ns;
    unlink_event(call);
    unlink_event(call->reply);
    return FITS;
}

/*
 * The call to try after `tried` (NULL: the first) of those that come before any reply; a
 * reply when there is no other.
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

/*
 * Takes operations out of the order, up to the last that was a choice; returns the event
 * to go on with, NULL if there was no choice.
 */
static struct event *
undo(struct run *r)
{
    while (r->depth > 0) {
        const struct choice *last = &r->chosen[--r->depth];

        relink_event(last->call->reply);
        relink_event(last->call);
        toggle(r, last->call->op);
        r->now.state = last->before;
        r->latest_ns = last->latest_ns;
        r->due += has_response(&r->ops[last->call->op]);
        if (!last->final)
            return next_event(r, last->call);
    }
    return NULL;
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
run_search(struct run *r, size_t steps_max, struct search_result *out)
{
    struct event *e = next_event(r, NULL);

    for (size_t steps = 0; r->due > 0; steps++) {
        enum fit fit =
            LEADS_NOWHERE; /* a reply: its call must be in the order before it */

        if (steps == steps_max)
            return GAVE_UP;
        if (e->reply != NULL)
            fit = choose(r, e);
        if (fit == FITS) {
            note_longest(r, out);
            e = r->due == 0 ? NULL : next_event(r, NULL);
        } else if (fit == FITS_NOT) {
            e = next_event(r, e);
        } else {
            e = undo(r);
            if (e == NULL)
                return NOT_LINEARIZABLE;
        }
    }
    return LINEARIZABLE;
}

static void
search_by(enum strategy strategy, const struct operation *ops, size_t count,
          size_t steps_max, struct search_result *out)
{
    struct run *r = must(calloc(1, sizeof(*r)));

    memset(out, 0, sizeof(*out));
    r->ops = ops;
    r->count = count;
    r->strategy = strategy;
    seen_order_learn(&r->order, ops, count);
    list_events(r, count);
    out->verdict = run_search(r, steps_max, out);
    out->states = r->memory.count;
    free(r->memory.entries);
    free(r->memory.slots);
    free(r);
}

void
search_within(const struct operation *ops, size_t count, size_t steps_max,
              struct search_result *out)
{
    if (count > LINEAR_OPERATIONS)
        abort();
    out->verdict = GAVE_UP;
    for (int try = 0; try < 2 * STRATEGIES && out->verdict == GAVE_UP; try++)
        search_by((enum strategy)(try % STRATEGIES), ops, count,
                  try < STRATEGIES ? steps_max / FIRST_TRY : steps_max, out);
}

void
search(const struct operation *ops, size_t count, struct search_result *out)
{
    search_within(ops, count, SEARCH_STEPS_MAX, out);
}
