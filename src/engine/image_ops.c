/*
 * Images of queues (store/image.h). A piece is in one allocation: room for the largest, and what
 * it pins besides.
 */
#include "engine/changelog.h"
#include "engine/subscription.h"
#include "engine/visit.h"

enum { SLICE_MESSAGES = 256, SLICE_BYTES = 64 * 1024, SLICE_SUBSCRIPTIONS = 64 };

enum stage { STAGE_QUEUE, STAGE_MESSAGES, STAGE_SUBSCRIPTIONS, STAGE_END };

struct piece {
    struct metadata *metadata; /* owned pin; NULL: not shown */
    struct store_image_claim claims[SLICE_MESSAGES];
    struct store_image_message messages[SLICE_MESSAGES];
    struct store_image_subscription subscriptions[SLICE_SUBSCRIPTIONS];
};

static enum status
open_piece(struct store *s, struct store_image *out)
{
    struct piece *p = mem_alloc(engine_of(s)->core.mem, sizeof(*p));

    if (p == NULL)
        return ST_NO_MEMORY;
    p->metadata = NULL;
    *out = (struct store_image){.store = s,
                                .claims = p->claims,
                                .messages = p->messages,
                                .subscriptions = p->subscriptions,
                                .pin = p};
    return ST_OK;
}

void
engine_image_release(const struct store *s, struct store_image *image)
{
    struct mem *mem = ((const struct engine *)s)->core.mem;
    struct piece *p = image->pin;

    for (size_t i = 0; i < image->message_count; i++)
        message_unpin(mem, image->messages[i].pin);
    for (size_t i = 0; i < image->subscription_count; i++)
        address_unpin(mem, image->subscriptions[i].pin);
    if (p->metadata != NULL)
        metadata_unpin(mem, p->metadata);
    mem_free(mem, p);
}

/* ------------------------------------------------------------------ showing */

static void
show_queue(const struct queue *q, struct store_image *out)
{
    struct piece *p = out->pin;

    p->metadata = metadata_pin(q->metadata);
    out->metadata = q->metadata->document;
    out->first = true;
}

/* 1 + index of a claim in the piece, where it is entered unless it is there. */
static size_t
show_claim(struct claim *c, struct store_image *out)
{
    struct store_id id;

    ident_write(&id, claim_ident(c));
    if (c->shown >= out->claim_count ||
        !bytes_equal(store_id_bytes(&out->claims[c->shown].id), store_id_bytes(&id))) {
        c->shown = (uint32_t)out->claim_count;
        out->claims[out->claim_count++] = (struct store_image_claim){
            .id = id, .started_ms = c->started_ms, .ends_ms = claim_ends_ms(c)};
    }
    return (size_t)c->shown + 1;
}

static void
show_message(struct message *m, uint32_t tag, struct store_image *out)
{
    struct store_image_message *view = &out->messages[out->message_count++];

    *view = (struct store_image_message){
        .claim = m->claim == NULL ? 0 : show_claim(m->claim, out),
        .body = message_body(m),
        .checksum = message_checksum(m),
        .client = m->client,
        .posted_ms = m->posted_ms,
        .expires_ms = m->expires_ms,
        .delayed_until_ms = m->delayed ? m->due.due_ms : 0,
        .claim_count = m->claim_count,
        .pin = m,
    };
    ident_write(&view->id, message_ident(m, tag));
    message_pin(m);
}

/* Shows messages from number *at on, which moves behind them; true: there are no more. */
static bool
show_messages(const struct queue *q, uint64_t *at, struct store_image *out)
{
    size_t bytes = 0;

    while (out->message_count < SLICE_MESSAGES && bytes < SLICE_BYTES) {
        struct message *m = backlog_next_live(q->backlog, at);

        if (m == NULL)
            return true;
        ++*at;
        bytes += m->body_len;
        show_message(m, q->tag, out);
    }
    return false;
}

static void
show_subscription(struct subscription *s, struct store_image *out)
{
    struct store_image_subscription *view =
        &out->subscriptions[out->subscription_count++];
    uint64_t after;

    *view = (struct store_image_subscription){
        .subscriber = s->address->subscriber,
        .options = s->address->options,
        .started_ms = s->started_ms,
        .ttl_s = s->ttl_s,
        .confirmed = s->confirmed,
        .asked = subscription_untold(s) == PENDING_CONFIRM,
        .delivered = s->delivered,
        .given_up = s->given_up,
        .fallen_out = s->fallen_out + feed_missed(s->feed, &s->cursor, &after),
        .pin = address_pin(s->address),
    };
    ident_write(&view->id, subscription_ident(s));
}

/* The same of subscriptions. */
static bool
show_subscriptions(const struct queue *q, int64_t now_ms, uint64_t *at,
                   struct store_image *out)
{
    while (q->feed != NULL && out->subscription_count < SLICE_SUBSCRIPTIONS) {
        struct subscription *s = seqmap_next_live(&q->feed->subscriptions, at);

        if (s == NULL)
            return true;
        ++*at;
        if (subscription_live(s, now_ms))
            show_subscription(s, out);
    }
    return q->feed == NULL;
}

/* Shows a piece of the queue, and notes where to go on. */
static void
show(const struct visit *v, enum stage stage, uint64_t at, struct store_image *out)
{
    const struct queue *q = v->queue;

    if (stage == STAGE_QUEUE) {
        show_queue(q, out);
        stage = STAGE_MESSAGES;
    }
    if (stage == STAGE_MESSAGES && show_messages(q, &at, out)) {
        stage = STAGE_SUBSCRIPTIONS;
        at = 0;
    }
    if (stage == STAGE_SUBSCRIPTIONS && show_subscriptions(q, v->now_ms, &at, out))
        stage = STAGE_END;
    out->resume[0] = q->tag;
    out->resume[1] = stage;
    out->resume[2] = at;
    out->more = stage != STAGE_END;
}

enum status
engine_queue_image(struct store *s, struct store_visit *outer,
                   const struct store_queue *where, struct store_image *image)
{
    const enum stage stage = (enum stage)image->resume[1];
    struct store_image piece;
    struct visit v;
    enum status st = open_piece(s, &piece);

    if (st != ST_OK)
        return st;
    st = visit_enter(&v, s, outer, where, SETTLE_ALL);
    if (st == ST_OK) {
        if (v.queue == NULL && stage == STAGE_QUEUE)
            st = ST_NOT_FOUND;
        else if (v.queue != NULL &&
                 (stage == STAGE_QUEUE || image->resume[0] == v.queue->tag))
            show(&v, stage, image->resume[2], &piece);
        visit_leave(&v);
    }
    if (st == ST_OK)
        *image = piece;
    else
        store_image_release(&piece);
    return st;
}
