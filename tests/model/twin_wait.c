/* The twin's wait queues: store/waiter.h as an array and a loop. */
#include "model/twin.h"
#include "model/twin_state.h"

#include <stdlib.h>

static bool
waits_for(const struct twin_waiter *w, const struct store_queue *where)
{
    return bytes_equal(bytes_of(w->project, w->project_len), where->project) &&
           bytes_equal(bytes_of(w->name, w->name_len), where->name);
}

size_t
twin_waiters(const struct twin *t, const struct store_queue *where)
{
    size_t count = 0;

    for (size_t i = 0; i < t->waiter_count; i++)
        count += waits_for(&t->waiters[i], where);
    return count;
}

/* Where it stands in the array; waiter_count if it is outside. */
static size_t
place_of(const struct twin *t, const struct store_waiter *who)
{
    size_t i = 0;

    while (i < t->waiter_count && t->waiters[i].who != who)
        i++;
    return i;
}

static void
remove_at(struct twin *t, size_t i)
{
    if (i == t->waiter_count)
        return;
    t->waiters[i].who->waitqueue = NULL;
    free(t->waiters[i].project);
    free(t->waiters[i].name);
    for (t->waiter_count--; i < t->waiter_count; i++)
        t->waiters[i] = t->waiters[i + 1];
}

size_t
twin_ready_count(const struct twin *t, const struct store_queue *where, int64_t now_ms)
{
    const struct twin_queue *q = twin_find_queue(t, where);
    size_t n = 0;

    if (q != NULL && twin_claims_paused(q))
        return 0;
    for (size_t i = 0; q != NULL && i < q->message_count; i++)
        n += twin_ready(q, q->messages[i], now_ms);
    return n;
}

size_t
twin_share(struct twin *t, const struct store_op *op, const struct store_queue *where,
           size_t *from)
{
    const struct twin_queue *q = twin_find_queue(t, where);
    size_t ready = twin_ready_count(t, where, op->now_ms), reserved = 0;

    *from = 0;
    if (op->waiter == NULL || ready == 0)
        return ready;
    for (size_t i = 0; i < place_of(t, op->waiter); i++)
        if (waits_for(&t->waiters[i], where))
            reserved += t->waiters[i].who->wants;
    if (reserved >= STORE_RESERVED || ready <= reserved)
        return 0;
    for (size_t skipped = 0; skipped < reserved; ++*from)
        skipped += twin_ready(q, q->messages[*from], op->now_ms);
    return ready - reserved;
}

void
twin_wait(struct twin *t, struct store_op *op, const struct store_queue *where,
          size_t wants)
{
    struct twin_waiter *w;

    op->waits = op->waiter != NULL;
    if (!op->waits)
        return;
    op->waiter->wants = wants;
    if (place_of(t, op->waiter) < t->waiter_count)
        return;
    t->waiters = twin_grow(t->waiters, (t->waiter_count + 1) * sizeof(*t->waiters));
    w = &t->waiters[t->waiter_count++];
    *w = (struct twin_waiter){.who = op->waiter,
                              .project = twin_copy(where->project),
                              .project_len = where->project.len,
                              .name = twin_copy(where->name),
                              .name_len = where->name.len};
    op->waiter->waitqueue = t;
}

void
twin_served(struct twin *t, struct store_op *op)
{
    op->waits = false;
    remove_at(t, place_of(t, op->waiter));
}

void
twin_dismiss(struct twin *t, const struct twin_queue *q)
{
    const struct store_queue where = {.project = bytes_of(q->project, q->project_len),
                                      .name = bytes_of(q->name, q->name_len)};

    for (size_t i = t->waiter_count; i-- > 0;)
        if (waits_for(&t->waiters[i], &where))
            remove_at(t, i);
}

void
twin_waiter_leave(struct store *s, struct store_waiter *waiter)
{
    remove_at(twin_of(s), place_of(twin_of(s), waiter));
}

bool
twin_calls(struct store *s, const struct store_waiter *waiter, int64_t now_ms)
{
    struct twin *t = twin_of(s);
    size_t at = place_of(t, waiter);
    struct store_op op = {.now_ms = now_ms, .waiter = t->waiters[at].who};
    const struct store_queue where = {
        .project = bytes_of(t->waiters[at].project, t->waiters[at].project_len),
        .name = bytes_of(t->waiters[at].name, t->waiters[at].name_len)};
    size_t from;

    return twin_share(t, &op, &where, &from) > 0;
}
