#include "redis/batch.h"
#include "claimd/base/invariant.h"
#include "redis/waiting.h"

/* The memory of a batch: its views, and the response that they point into. */
struct batch_pin {
    redisReply *response;
    struct store_details *details; /* behind the messages, as many */
    int64_t now_ms;
    size_t capacity; /* of `messages` */
    struct store_message messages[];
};

struct batch_pin *
batch_pin_new(struct redis_store *s, size_t count)
{
    struct batch_pin *pin =
        mem_alloc(s->config.mem, sizeof(*pin) + count * (sizeof(struct store_message) +
                                                         sizeof(struct store_details)));

    if (pin == NULL)
        return NULL;
    pin->capacity = count;
    pin->details = (struct store_details *)(pin->messages + count);
    return pin;
}

/* `details`: space for those of the message. */
static void
message_view_fill(const struct call *c, size_t at, struct store_message *out,
                  struct store_details *details)
{
    const struct message_head head = call_head(c, at + 1);
    const struct bytes claim = call_item(c, at + 3);

    *out =
        (struct store_message){.body = call_item(c, at + 2), .checksum = head.checksum};
    message_id_write(call_item(c, BATCH_TAG), (uint64_t)call_integer(c, at),
                     head.original_id, &out->id);
    ENSURE(claim.len < sizeof(out->claim_id.text));
    memcpy(out->claim_id.text, claim.data, claim.len);
    out->ttl_s = (head.expires_ms - head.posted_ms) / 1000;
    out->age_s = (call_integer(c, BATCH_NOW) - head.posted_ms) / 1000;
    out->posted_ms = head.posted_ms;
    out->expires_ms = head.expires_ms;
    out->delayed_until_ms = head.ready_ms;
    out->claim_count = head.claim_count;
    if (message_head_details(&head, details))
        out->details = details;
}

size_t
batch_message_count(const struct call *c, size_t from)
{
    size_t count = 0;

    while (call_integer(c, from + 4 * count) > 0)
        count++;
    return count;
}

/* Fills a batch with the messages from word `from` on. The batch takes ownership of the
 * space and the response. */
static void
batch_fill(struct call *c, size_t from, struct batch_pin *pin, struct store_batch *out)
{
    const size_t count = batch_message_count(c, from);

    out->count = 0;
    out->capacity = 0;
    out->opened = NULL;
    if (count == 0) {
        mem_free(c->store->config.mem, pin);
        return;
    }
    ENSURE(count <= pin->capacity);
    for (size_t i = 0; i < count; i++)
        message_view_fill(c, from + 4 * i, &pin->messages[i], &pin->details[i]);
    pin->now_ms = call_integer(c, BATCH_NOW);
    pin->response = call_take_response(c);
    out->store = &c->store->store;
    out->messages = pin->messages;
    out->count = count;
}

enum status
batch_fill_new(struct call *c, size_t from, struct store_batch *out)
{
    struct batch_pin *pin = batch_pin_new(c->store, batch_message_count(c, from));

    if (pin == NULL)
        return ST_NO_MEMORY;
    batch_fill(c, from, pin, out);
    return ST_OK;
}

enum status
batch_fill_keyed(struct call *c, size_t from, struct batch_pin *pin, enum status st,
                 struct store_batch *out)
{
    if (c->key == NULL) {
        batch_fill(c, from, pin, out);
        return st;
    }
    mem_free(c->store->config.mem, pin);
    return batch_fill_new(c, from, out) == ST_OK ? st : ST_NO_MEMORY;
}

void
redis_batch_release(const struct store *s, struct store_batch *batch)
{
    struct redis_store *store = redis_of((struct store *)(uintptr_t)s);
    struct batch_pin *pin = container_of(batch->messages, struct batch_pin, messages[0]);

    wire_free_response(&store->cluster.wire, pin->response);
    mem_free(store->config.mem, pin);
}

enum status
batch_note_paused(struct store_op *op, enum status st, struct store_batch *out)
{
    op->paused = st == ST_PAUSED;
    if (!op->paused)
        return st;
    out->capacity = 0;
    out->opened = NULL;
    return ST_OK;
}

enum status
batch_finish_delivery(struct redis_store *s, struct store_op *op,
                      const struct store_queue *where, size_t limit,
                      enum store_counter which, const struct store_batch *out)
{
    const struct batch_pin *pin;

    if (out->count == 0)
        return waiting_found_nothing(s, op, where, limit);
    counters_add(s, where, which, out->count);
    pin = container_of(out->messages, struct batch_pin, messages[0]);
    for (size_t i = 0; i < out->count; i++)
        if (out->messages[i].claim_count <= 1)
            counters_span(s, where, STORE_SPAN_WAITED,
                          pin->now_ms - out->messages[i].posted_ms);
    waiting_served(s, op, where);
    return ST_OK;
}

void
call_add_limits(struct call *c, const struct store_op *op, size_t limit,
                const struct store_batch *batch)
{
    const size_t reserved = waiting_reserved(c->store, op, c->where, &limit);

    call_limit(c, limit);
    call_number(c, (int64_t)reserved);
    call_number(c, (int64_t)batch->capacity);
}

void
call_add_decrypted_ids(struct call *c, const struct store_batch *opened)
{
    if (opened == NULL)
        call_text(c, "-");
    for (size_t i = 0; opened != NULL && i < opened->count; i++)
        call_text(c, opened->messages[i].id.text);
}
