/* message_ops: the operations of the store on messages and claims. */
#include "claimd/base/invariant.h"
#include "redis/call.h"
#include "redis/outbox.h"
#include "redis/subscription_ops.h"
#include "redis/waiting.h"

#include <inttypes.h>
#include <stdio.h>

/* Words of responses with messages. */
enum { NOW = 1, TAG };

/* ---------------------------------------------------------------------- views */

/* The memory of a batch: its views, and the response that they point into. */
struct batch_pin {
    redisReply *response;
    struct store_details *details; /* behind the messages, as many */
    int64_t now_ms;
    size_t capacity; /* of `messages` */
    struct store_message messages[];
};

/* Makes space for `count` views. An operation that delivers messages does so before it calls the script, so
 * that it can return what it delivers. NULL: no memory. */
static struct batch_pin *
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
    message_id_write(call_item(c, TAG), (uint64_t)call_integer(c, at), head.original_id,
                     &out->id);
    ENSURE(claim.len < sizeof(out->claim_id.text));
    memcpy(out->claim_id.text, claim.data, claim.len);
    out->ttl_s = (head.expires_ms - head.posted_ms) / 1000;
    out->age_s = (call_integer(c, NOW) - head.posted_ms) / 1000;
    out->posted_ms = head.posted_ms;
    out->expires_ms = head.expires_ms;
    out->delayed_until_ms = head.ready_ms;
    out->claim_count = head.claim_count;
    if (message_head_details(&head, details))
        out->details = details;
}

/* The number of messages from word `from` on. Each has four words (number, head, body, claim). The list ends at
 * the end of the response or at an empty number. call_run() has checked that there are no more than requested.
 * */
static size_t
response_message_count(const struct call *c, size_t from)
{
    size_t count = 0;

    while (call_integer(c, from + 4 * count) > 0)
        count++;
    return count;
}

/* Fills a batch with the messages from word `from` on. The batch takes ownership of the space and the response.
 * */
static void
batch_fill(struct call *c, size_t from, struct batch_pin *pin, struct store_batch *out)
{
    const size_t count = response_message_count(c, from);

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
    pin->now_ms = call_integer(c, NOW);
    pin->response = call_take_response(c);
    out->store = &c->store->store;
    out->messages = pin->messages;
    out->count = count;
}

/* Likewise, with new space. ST_NO_MEMORY. */
static enum status
batch_fill_new(struct call *c, size_t from, struct store_batch *out)
{
    struct batch_pin *pin = batch_pin_new(c->store, response_message_count(c, from));

    if (pin == NULL)
        return ST_NO_MEMORY;
    batch_fill(c, from, pin, out);
    return ST_OK;
}

/* Likewise, in the space of `pin` unless the call has a key: an earlier call may have got more messages, and a client
 * that gets none repeats its request. Returns st, or ST_NO_MEMORY. */
static enum status
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

/* Notes that claims are paused: the batch is empty then. */
static enum status
note_paused(struct store_op *op, enum status st, struct store_batch *out)
{
    op->paused = st == ST_PAUSED;
    if (!op->paused)
        return st;
    out->capacity = 0;
    out->opened = NULL;
    return ST_OK;
}

/* Ends an operation that delivers messages: counts them, or enters the waiter. */
static enum status
finish_delivery(struct redis_store *s, struct store_op *op,
                const struct store_queue *where, size_t limit, enum store_counter which,
                const struct store_batch *out)
{
    const struct batch_pin *pin;

    if (out->count == 0)
        return waiting_found_nothing(s, op, where, limit);
    counters_add(s, which, out->count);
    pin = container_of(out->messages, struct batch_pin, messages[0]);
    for (size_t i = 0; i < out->count; i++)
        if (out->messages[i].claim_count <= 1)
            counters_span(s, STORE_SPAN_WAITED, pin->now_ms - out->messages[i].posted_ms);
    waiting_served(s, op, where);
    return ST_OK;
}

/* Adds the limits of scripts that deliver messages: their number, and the number reserved for earlier
 * waiters. */
static void
call_add_limits(struct call *c, const struct store_op *op, size_t limit)
{
    const size_t reserved = waiting_reserved(c->store, op, c->where, &limit);

    call_limit(c, limit);
    call_number(c, (int64_t)reserved);
}

/* Adds what the caller of a pop can pass on (struct store_batch): the bytes of bodies, and the ids of the messages
 * that it has decrypted. */
static void
call_add_capacity(struct call *c, const struct store_batch *batch)
{
    const struct store_batch *opened = batch->opened;

    call_number(c, (int64_t)batch->capacity);
    if (opened == NULL)
        call_text(c, "-");
    for (size_t i = 0; opened != NULL && i < opened->count; i++)
        call_text(c, opened->messages[i].id.text);
}

enum status
redis_message_post(struct store *store, struct store_op *op,
                   const struct store_queue *where, const struct store_post *post,
                   struct store_id *ids)
{
    enum { POSTED_TAG = 1, FIRST, UNLISTED, DELIVERY_DUE };
    struct redis_store *s = redis_of(store);
    struct call c = call_begin(s, op, where);
    enum status st;

    if (post->create_queue)
        call_random_digits(&c, TAG_DIGITS);
    else
        call_text(&c, "");
    call_raw(&c, &post->client, sizeof(post->client));
    call_number(&c, (int64_t)post->request_bytes);
    call_number(&c, s->config.message_ttl_s);
    call_number(&c, s->config.message_delay_s);
    call_number(&c, (int64_t)s->config.feed_bytes);
    for (size_t i = 0; i < post->count; i++) {
        call_number(&c, post->drafts[i].ttl_s);
        call_number(&c, post->drafts[i].delay_s);
        call_word(&c, post->drafts[i].body);
        call_checksum(&c, post->checksums == NULL ? NULL : &post->checksums[i]);
    }
    call_key(&c, op->key);
    st = call_run(&c, CALL_SCRIPT(&c, message_post), CALL_CHANGE);
    op->repeated = c.repeated;
    for (size_t i = 0; st == ST_OK && i < post->count; i++)
        message_id_write(call_item(&c, POSTED_TAG), (uint64_t)call_integer(&c, FIRST) + i,
                         BYTES_NONE, &ids[i]);
    if (st == ST_OK && !c.repeated)
        counters_add(s, STORE_COUNT_POSTED, post->count);
    if (st == ST_OK && call_integer(&c, DELIVERY_DUE) != 0)
        delivery_mark_due(s, op, where, 0);
    if (st == ST_OK && call_integer(&c, UNLISTED) != 0)
        st = queue_index_add(s, op, where, call_item(&c, POSTED_TAG));
    call_end(&c);
    waiting_wake(s, op, where);
    return st;
}

/* ---------------------------------------------------------------------- reading */

enum { LAST = 3, LISTED, GOT = 3 };

enum status
redis_message_list(struct store *store, struct store_op *op,
                   const struct store_queue *where, const struct store_filter *filter,
                   struct store_batch *out)
{
    struct call c = call_begin(redis_of(store), op, where);
    uint64_t last;
    enum status st;

    call_marker(&c, filter->marker);
    call_number(&c, (int64_t)out->resume[0]);
    call_limit(&c, filter->limit);
    call_number(&c, filter->include_claimed);
    call_number(&c, filter->include_delayed);
    call_raw(&c, &filter->client, filter->hide_client ? sizeof(filter->client) : 0);
    st = call_run(&c, SCRIPT_message_list, CALL_READ);
    last = (uint64_t)call_integer(&c, LAST);
    if (st == ST_AGAIN)
        out->resume[0] = last;
    if (st == ST_OK)
        st = batch_fill_new(&c, LISTED, out);
    if (st == ST_OK && out->count > 0)
        (void)snprintf(out->next.text, sizeof(out->next.text), "%" PRIu64, last);
    call_end(&c);
    return st;
}

enum status
redis_message_get(struct store *store, struct store_op *op,
                  const struct store_queue *where, const struct bytes *ids, size_t count,
                  struct store_batch *out)
{
    struct call c = call_begin(redis_of(store), op, where);
    enum status st;

    for (size_t i = 0; i < count; i++)
        call_id(&c, ids[i]);
    c.most = count;
    st = call_run(&c, SCRIPT_message_get, CALL_READ);
    if (st == ST_OK)
        st = batch_fill_new(&c, GOT, out);
    call_end(&c);
    return st;
}

/* ---------------------------------------------------------------------- deletion */

/* Counts deleted messages. Of claimed ones it also counts the time since the claim, and the number of claims.
 * */
static void
count_deleted(const struct call *c, enum status st, bool with_claim)
{
    enum { COUNT = 1, SPANS };

    if (with_claim && (st == ST_CLAIMED || st == ST_NOT_CLAIMED))
        counters_add(c->store, STORE_COUNT_LATE_DELETES, 1);
    if (st != ST_OK || call_integer(c, COUNT) == 0)
        return;
    counters_add(c->store, STORE_COUNT_DELETED, (uint64_t)call_integer(c, COUNT));
    for (size_t i = SPANS; call_has(c, i + 1); i += 2) {
        counters_span(c->store, STORE_SPAN_WORKED, call_integer(c, i));
        counters_span(c->store, STORE_SPAN_ATTEMPTS, call_integer(c, i + 1));
    }
}

enum status
redis_message_delete(struct store *store, struct store_op *op,
                     const struct store_queue *where, const struct store_delete *which)
{
    struct call c = call_begin(redis_of(store), op, where);
    enum status st;

    call_number(&c, which->rule);
    call_number(&c, (int64_t)which->claim_count);
    for (size_t i = 0; i < which->claim_count; i++)
        call_id(&c, which->claim_ids[i]);
    for (size_t i = 0; i < which->count; i++)
        call_id(&c, which->ids[i]);
    c.most = which->count;
    st = call_run(&c, SCRIPT_message_delete, CALL_CHANGE);
    count_deleted(&c, st, which->rule == STORE_DELETE_HELD);
    call_end(&c);
    return st;
}

enum status
redis_message_pop(struct store *store, struct store_op *op,
                  const struct store_queue *where, size_t limit, struct store_batch *out)
{
    struct redis_store *s = redis_of(store);
    struct batch_pin *pin = batch_pin_new(s, limit);
    struct call c;
    enum status st;

    if (pin == NULL)
        return ST_NO_MEMORY;
    c = call_begin(s, op, where);
    call_add_limits(&c, op, limit);
    call_add_capacity(&c, out);
    call_key(&c, op->key);
    st = call_run(&c, CALL_SCRIPT(&c, message_pop), CALL_CHANGE);
    op->repeated = c.repeated;
    if (st == ST_OVER_CAPACITY)
        out->capacity = (size_t)call_integer(&c, 1);
    if (st == ST_OK || st == ST_SEALED)
        st = batch_fill_keyed(&c, GOT, pin, st, out);
    else
        mem_free(s->config.mem, pin);
    call_end(&c);
    st = note_paused(op, st, out);
    if (st == ST_OK && op->repeated)
        waiting_served(s, op, where);
    return st != ST_OK || op->repeated
               ? st
               : finish_delivery(s, op, where, limit, STORE_COUNT_POPPED, out);
}

/* ---------------------------------------------------------------------- claims */

/* Words of the responses of claim_create and claim_get. */
enum { NUMBER = 3, BASE, CREATED_MESSAGES, STARTED = 5, ENDS, GOT_MESSAGES };

/* The default of the server is negative, because that of the queue has priority over it. */
static void
call_term(struct call *c, int64_t own_s, int64_t server_s)
{
    call_number(c, own_s == STORE_UNSET ? -1 - server_s : own_s);
}

void
call_claim_terms(struct call *c, const struct store_terms *terms)
{
    const struct redis_config *config = &c->store->config;

    call_term(c, terms->ttl_s, config->claim_ttl_s);
    call_term(c, terms->grace_s, config->claim_grace_s);
    call_number(c, config->max_message_ttl_s);
}

void
call_client(struct call *c, const struct store_op *op)
{
    const struct bytes client = op->client;

    call_word(c, client.len <= STORE_CLIENT_CAP
                     ? client
                     : bytes_of(client.data, STORE_CLIENT_CAP));
}

uint64_t
fencing_token(const struct call *c, size_t number, size_t base)
{
    enum { BASE_SHIFT = 12 };

    return ((uint64_t)call_integer(c, base) << BASE_SHIFT) +
           (uint64_t)call_integer(c, number);
}

static void
write_claim_id(const struct call *c, struct store_id *out)
{
    (void)snprintf(out->text, sizeof(out->text), "%.*s%012llx", SECRET_DIGITS, c->digits,
                   (unsigned long long)call_integer(c, NUMBER));
}

/* Fills the batch with the claimed messages. Transfers dead letters. */
static enum status
claim_fill_batch(struct call *c, struct batch_pin *pin, enum status st,
                 const struct store_op *op, struct store_batch *out)
{
    const size_t end = CREATED_MESSAGES + 4 * response_message_count(c, CREATED_MESSAGES);
    const bool claimed = st == ST_OK && call_integer(c, NUMBER) > 0;

    (void)outbox_deliver(c, end + 1, op,
                         c->where); /* if this fails, a later claim does it */
    if (st != ST_OK) {
        mem_free(c->store->config.mem, pin);
        return st;
    }
    if (claimed) {
        write_claim_id(c, &out->claim_id);
        out->claim_number = fencing_token(c, NUMBER, BASE);
    }
    st = batch_fill_keyed(c, CREATED_MESSAGES, pin, st, out);
    if (st != ST_OK)
        return st;
    if (c->repeated && out->count > 0)
        out->claim_id = out->messages[0].claim_id;
    for (size_t i = 0; claimed && i < out->count; i++)
        out->messages[i].claim_id = out->claim_id;
    return st;
}

/* Releases a claim that was not confirmed, because no client will learn of it. */
static void
release_unconfirmed(const struct call *c, const struct store_op *op)
{
    struct store_op again = {.now_ms = op->now_ms};
    struct store_id id;

    if (call_integer(c, NUMBER) <= 0)
        return;
    write_claim_id(c, &id);
    (void)redis_claim_release(&c->store->store, &again, c->where, store_id_bytes(&id),
                              STORE_NOT_SEEN);
}

enum status
redis_claim_create(struct store *store, struct store_op *op,
                   const struct store_queue *where, const struct store_terms *terms,
                   size_t limit, struct store_batch *out)
{
    struct redis_store *s = redis_of(store);
    struct batch_pin *pin = batch_pin_new(s, limit);
    struct call c;
    enum status st;

    if (pin == NULL)
        return ST_NO_MEMORY;
    c = call_begin(s, op, where);
    call_random_digits(&c, SECRET_DIGITS);
    call_claim_terms(&c, terms);
    call_add_limits(&c, op, limit);
    call_word(&c, where->name);
    call_number(&c, s->config.dead_letter_ttl_s);
    call_client(&c, op);
    call_key(&c, op->key);
    st = call_run(&c, CALL_SCRIPT(&c, claim_create), CALL_CHANGE);
    op->repeated = c.repeated;
    if (st == ST_UNCONFIRMED && op->key == NULL) /* else the client repeats it */
        release_unconfirmed(&c, op);
    if (st != ST_UNCONFIRMED && call_has(&c, BASE))
        st = claim_fill_batch(&c, pin, st, op, out);
    else
        mem_free(s->config.mem, pin);
    call_end(&c);
    st = note_paused(op, st, out);
    if (st == ST_OK && op->repeated)
        waiting_served(s, op, where);
    if (st != ST_OK || op->repeated)
        return st;
    if (out->count > 0)
        counters_add(s, STORE_COUNT_CLAIMS, 1);
    return finish_delivery(s, op, where, limit, STORE_COUNT_CLAIMED, out);
}

enum status
redis_claim_get(struct store *store, struct store_op *op, const struct store_queue *where,
                struct bytes claim_id, struct store_batch *out)
{
    struct call c;
    enum status st;

    if (!store_id_good(claim_id))
        return ST_NOT_FOUND; /* the batch cannot hold such an id */
    c = call_begin(redis_of(store), op, where);
    call_id(&c, claim_id);
    st = call_run(&c, SCRIPT_claim_get, CALL_READ);
    if (st == ST_OK) {
        const int64_t started = call_integer(&c, STARTED);

        memcpy(out->claim_id.text, claim_id.data, claim_id.len);
        out->claim_id.text[claim_id.len] = '\0';
        out->claim_number = fencing_token(&c, NUMBER, BASE);
        out->claim_ttl_s = (call_integer(&c, ENDS) - started) / 1000;
        out->claim_age_s = (call_integer(&c, NOW) - started) / 1000;
        st = batch_fill_new(&c, GOT_MESSAGES, out);
    }
    call_end(&c);
    return st;
}

/* Markers of listings: time of the creation of a claim and its number, 12 hexadecimal digits each. */
enum { MARKER_DIGITS = 12 };

static void
claim_marker_read(struct bytes marker, uint64_t *created_ms, uint64_t *number)
{
    if (marker.len == 2 * MARKER_DIGITS &&
        hex_read(bytes_of(marker.data, MARKER_DIGITS), created_ms) &&
        hex_read(bytes_of(marker.data + MARKER_DIGITS, MARKER_DIGITS), number))
        return;
    *created_ms = *number = 0;
}

/* Words of a claim in the response of claim_list. */
enum {
    CLAIM_NUMBER,
    CLAIM_ID,
    CLAIM_CREATED,
    CLAIM_ENDS,
    CLAIM_LEFT,
    CLAIM_CLIENT,
    CLAIM_WORDS
};

static void
claim_info_fill(const struct call *c, size_t at, struct store_claim_info *out)
{
    enum { LIST_BASE = 2 };
    const struct bytes id = call_item(c, at + CLAIM_ID);
    const struct bytes client = call_item(c, at + CLAIM_CLIENT);
    const int64_t now_ms = call_integer(c, NOW);

    out->id.text[0] = '\0';
    if (id.len < sizeof(out->id.text)) {
        memcpy(out->id.text, id.data, id.len);
        out->id.text[id.len] = '\0';
    }
    out->client_len = client.len < STORE_CLIENT_CAP ? client.len : STORE_CLIENT_CAP;
    if (out->client_len > 0)
        memcpy(out->client, client.data, out->client_len);
    out->number = fencing_token(c, at + CLAIM_NUMBER, LIST_BASE);
    out->age_ms = now_ms - call_integer(c, at + CLAIM_CREATED);
    out->left_ms = call_integer(c, at + CLAIM_ENDS) - now_ms;
    out->messages = (uint64_t)call_integer(c, at + CLAIM_LEFT);
}

enum status
redis_claim_list(struct store *store, struct store_op *op,
                 const struct store_queue *where, struct store_claim_page *page)
{
    enum { MORE = 3, FIRST };
    struct redis_store *s = redis_of(store);
    uint64_t created_ms, number;
    struct call c;
    size_t at = FIRST;
    enum status st;

    page->count = 0;
    page->next.text[0] = '\0';
    c = call_begin(s, op, where);
    claim_marker_read(page->marker, &created_ms, &number);
    if (bytes_present(page->id))
        call_id(&c, page->id);
    else
        call_text(&c, "");
    call_limit(&c, page->limit);
    call_number(&c, (int64_t)created_ms);
    call_number(&c, (int64_t)number);
    st = call_run(&c, SCRIPT_claim_list, CALL_READ);
    for (; st == ST_OK && call_has(&c, at); at += CLAIM_WORDS)
        claim_info_fill(&c, at, &page->claims[page->count++]);
    if (st == ST_OK && call_integer(&c, MORE) > 0 && at > FIRST)
        (void)snprintf(
            page->next.text, sizeof(page->next.text), "%012llx%012llx",
            (unsigned long long)call_integer(&c, at - CLAIM_WORDS + CLAIM_CREATED),
            (unsigned long long)call_integer(&c, at - CLAIM_WORDS));
    call_end(&c);
    return st;
}

enum status
redis_claim_renew(struct store *store, struct store_op *op,
                  const struct store_queue *where, struct bytes claim_id,
                  const struct store_terms *terms, uint64_t *number)
{
    enum { RENEWED_NUMBER = 1, RENEWED_BASE };
    struct redis_store *s = redis_of(store);
    struct call c = call_begin(s, op, where);
    enum status st;

    call_id(&c, claim_id);
    call_claim_terms(&c, terms);
    call_client(&c, op);
    st = call_run(&c, SCRIPT_claim_renew, CALL_CHANGE);
    if (st == ST_OK) {
        *number = fencing_token(&c, RENEWED_NUMBER, RENEWED_BASE);
        counters_add(s, STORE_COUNT_RENEWALS, 1);
    }
    call_end(&c);
    waiting_wake(s, op, where); /* the claim may end earlier now */
    return st;
}

enum status
redis_claim_release(struct store *store, struct store_op *op,
                    const struct store_queue *where, struct bytes claim_id,
                    enum store_release why)
{
    struct redis_store *s = redis_of(store);
    struct call c = call_begin(s, op, where);
    enum status st;

    call_id(&c, claim_id);
    call_number(&c, why == STORE_NOT_SEEN);
    st = call_run(&c, SCRIPT_claim_release, CALL_CHANGE);
    if (st == ST_OK)
        counters_add(s, store_release_counter(why), (uint64_t)call_integer(&c, 1));
    call_end(&c);
    waiting_wake(s, op, where);
    return st;
}
