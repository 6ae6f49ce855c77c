#include "crash/replica.h"

#include <stdlib.h>
#include <string.h>

/* Makes room for one more element. */
static void *
grow(void *elements, size_t count, size_t *room, size_t size)
{
    void *grown;

    if (count < *room)
        return elements;
    *room = 2 * *room + 8;
    grown = realloc(elements, *room * size);
    if (grown == NULL)
        abort();
    return grown;
}

/* ---------------------------------------------------------------------- queues */

static struct replica_queue *
find(const struct replica *r, uint32_t tag)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->queues[i].tag == tag)
            return &r->queues[i];
    return NULL;
}

static void
queue_empty(struct replica_queue *q)
{
    q->count = q->claim_count = 0;
}

static void
queue_fini(struct replica_queue *q)
{
    free(q->messages);
    free(q->claims);
}

static void
put_queue(struct replica *r, const struct told *t)
{
    struct replica_queue *q = find(r, t->tag);

    if (q == NULL) {
        r->queues = grow(r->queues, r->count, &r->room, sizeof(*q));
        q = &r->queues[r->count++];
        *q = (struct replica_queue){.tag = t->tag, .fence_base = t->fence_base};
        memcpy(q->name, t->name, sizeof(q->name));
    }
    q->metadata = t->metadata;
}

static void
remove_queue(struct replica *r, uint32_t tag)
{
    struct replica_queue *q = find(r, tag);

    if (q == NULL)
        return;
    queue_fini(q);
    *q = r->queues[--r->count];
}

/* ---------------------------------------------------------------------- messages */

/* Where the message with this number stands, or would stand. */
static size_t
place_of(const struct replica_queue *q, uint64_t number)
{
    size_t low = 0, high = q->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (q->messages[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct told_message *
message_of(const struct replica_queue *q, uint64_t number)
{
    size_t i = place_of(q, number);

    return i < q->count && q->messages[i].number == number ? &q->messages[i] : NULL;
}

static void
remove_message(struct replica_queue *q, uint64_t number)
{
    struct told_message *m = q == NULL ? NULL : message_of(q, number);

    if (m == NULL)
        return;
    q->count--;
    memmove(m, m + 1, (size_t)(q->messages + q->count - m) * sizeof(*m));
}

static void
add_message(struct replica_queue *q, const struct told_message *m)
{
    size_t i = place_of(q, m->number);

    if (q->count > 0 && message_of(q, m->number) != NULL)
        abort(); /* a number was given twice */
    q->messages = grow(q->messages, q->count, &q->room, sizeof(*m));
    memmove(&q->messages[i + 1], &q->messages[i], (q->count - i) * sizeof(*m));
    q->messages[i] = *m;
    q->count++;
}

/* What is over long since is forgotten. */
static void
forget_the_dead(struct replica_queue *q, int64_t now_ms)
{
    size_t kept = 0;

    for (size_t i = 0; i < q->count; i++)
        if (replica_lives(&q->messages[i], now_ms))
            q->messages[kept++] = q->messages[i];
    q->count = kept;
    kept = 0;
    for (size_t i = 0; i < q->claim_count; i++)
        if (q->claims[i].ends_ms > now_ms)
            q->claims[kept++] = q->claims[i];
    q->claim_count = kept;
}

/* ---------------------------------------------------------------------- claims */

static struct replica_claim *
claim_of(const struct replica_queue *q, uint64_t number)
{
    for (size_t i = 0; i < q->claim_count; i++)
        if (q->claims[i].number == number)
            return &q->claims[i];
    return NULL;
}

const struct replica_claim *
replica_holder(const struct replica_queue *q, const struct told_message *m,
               int64_t now_ms)
{
    const struct replica_claim *c = m->claim == 0 ? NULL : claim_of(q, m->claim);

    return c != NULL && c->ends_ms > now_ms ? c : NULL;
}

static void
set_life(const struct replica_queue *q, const struct told *t, uint64_t claim)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct told_message *told = &t->messages[i];
        struct told_message *m = message_of(q, told->number);

        if (m == NULL)
            continue;
        m->claim = claim;
        m->claim_count = told->claim_count;
        m->expires_ms = told->expires_ms;
        m->delayed_until_ms = 0;
    }
}

static void
put_claim(struct replica_queue *q, const struct told *t)
{
    struct replica_claim *c = claim_of(q, t->claim);

    if (c == NULL) {
        q->claims = grow(q->claims, q->claim_count, &q->claim_room, sizeof(*c));
        c = &q->claims[q->claim_count++];
    }
    *c = (struct replica_claim){t->claim, t->claim_id, t->started_ms, t->ends_ms};
    set_life(q, t, t->claim);
}

static void
release_claim(struct replica_queue *q, const struct told *t)
{
    struct replica_claim *c = claim_of(q, t->claim);

    set_life(q, t, 0);
    if (c != NULL)
        *c = q->claims[--q->claim_count];
}

/* ---------------------------------------------------------------------- the whole */

static void
move(const struct replica *r, const struct told *t)
{
    struct replica_queue *from = find(r, t->tag), *to = find(r, t->target_tag);

    for (size_t i = 0; i < t->count; i++) {
        remove_message(from, t->messages[i].old_number);
        if (to != NULL && !t->target_transient)
            add_message(to, &t->messages[i]);
    }
}

static void
change_messages(struct replica_queue *q, const struct told *t)
{
    forget_the_dead(q, t->now_ms);
    switch (t->kind) {
    case STORE_CHANGE_POST:
        for (size_t i = 0; i < t->count; i++)
            add_message(q, &t->messages[i]);
        break;
    case STORE_CHANGE_DELETE:
        for (size_t i = 0; i < t->count; i++)
            remove_message(q, t->messages[i].number);
        break;
    case STORE_CHANGE_CLAIM:
    case STORE_CHANGE_RENEW:
        put_claim(q, t);
        break;
    case STORE_CHANGE_RELEASE:
        release_claim(q, t);
        break;
    case STORE_CHANGE_PURGE:
        queue_empty(q);
        break;
    case STORE_CHANGE_META:
        q->metadata = t->metadata;
        break;
    default:
        abort();
    }
}

void
replica_apply(struct replica *r, const struct told *told)
{
    struct replica_queue *q = find(r, told->tag);

    if (r->now_ms < told->now_ms)
        r->now_ms = told->now_ms;
    if (told->kind == STORE_CHANGE_QUEUE)
        put_queue(r, told);
    else if (told->kind == STORE_CHANGE_QUEUE_GONE)
        remove_queue(r, told->tag);
    else if (told->kind == STORE_CHANGE_MOVE)
        move(r, told);
    else if (q != NULL)
        change_messages(q, told);
    else
        abort(); /* of a queue that nobody was told of */
}

static void *
copy_of(const void *from, size_t size)
{
    void *to = size == 0 ? NULL : malloc(size);

    if (size == 0)
        return NULL;
    if (to == NULL)
        abort();
    return memcpy(to, from, size);
}

void
replica_copy(struct replica *to, const struct replica *from)
{
    replica_fini(to);
    *to = *from;
    to->room = to->count;
    to->queues = copy_of(from->queues, from->count * sizeof(from->queues[0]));
    for (size_t i = 0; i < to->count; i++) {
        struct replica_queue *q = &to->queues[i];

        q->messages = copy_of(q->messages, q->count * sizeof(q->messages[0]));
        q->room = q->count;
        q->claims = copy_of(q->claims, q->claim_count * sizeof(q->claims[0]));
        q->claim_room = q->claim_count;
    }
}

void
replica_fini(struct replica *r)
{
    for (size_t i = 0; i < r->count; i++)
        queue_fini(&r->queues[i]);
    free(r->queues);
    *r = (struct replica){.queues = NULL};
}
