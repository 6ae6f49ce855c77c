/*
 * claim_ops: the operations of the store on claims. Declared in call.h.
 *
 *     1. redis_claim_create() runs scripts/claim_create.lua, which claims the messages,
 *        or moves dead letters out of their way into transfers.
 *     2. claim_fill_batch() has the outbox deliver the transfers (outbox.c), and makes
 *        the batch (batch.h).
 *     3. If Redis did not confirm the claim, release_unconfirmed() releases it.
 *     4. Without a message the waiter enters its wait queue (waiting.h).
 */
#include "redis/batch.h"
#include "redis/outbox.h"
#include "redis/waiting.h"

#include <inttypes.h>
#include <stdio.h>

/* Words of the responses of claim_create and claim_get. */
enum { NUMBER = 3, BASE, CREATED_MESSAGES, STARTED = 5, ENDS, GOT_MESSAGES };

/* The default of the server is negative, because that of the queue has priority over
 * it. */
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
    ENSURE(op->client.len <= STORE_CLIENT_MAX);
    call_word(c, op->client);
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

/* Fills the batch with the claimed messages, or with those that must be decrypted first.
 * Transfers dead letters. */
static enum status
claim_fill_batch(struct call *c, struct batch_pin *pin, enum status st,
                 const struct store_op *op, struct store_batch *out)
{
    const size_t end = CREATED_MESSAGES + 4 * batch_message_count(c, CREATED_MESSAGES);
    const bool claimed = st == ST_OK && call_integer(c, NUMBER) > 0;
    enum status filled;

    /* If this fails, a later claim does it. */
    (void)outbox_deliver(c, end + 1, op, c->where);
    if (st == ST_OVER_CAPACITY)
        out->capacity = (size_t)call_integer(c, NUMBER);
    if (st != ST_OK && st != ST_SEALED) {
        mem_free(c->store->config.mem, pin);
        return st;
    }
    if (claimed) {
        write_claim_id(c, &out->claim_id);
        out->claim_number = fencing_token(c, NUMBER, BASE);
    }
    filled = batch_fill_keyed(c, CREATED_MESSAGES, pin, st, out);
    if (filled != st)
        return filled;
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
    call_add_limits(&c, op, limit, out);
    call_word(&c, where->name);
    call_number(&c, s->config.dead_letter_ttl_s);
    call_client(&c, op);
    call_add_decrypted_ids(&c, out->opened);
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
    st = batch_note_paused(op, st, out);
    if (st == ST_OK && op->repeated)
        waiting_served(s, op, where);
    if (st != ST_OK || op->repeated)
        return st;
    if (out->count > 0)
        counters_add(s, where, STORE_COUNT_CLAIMS, 1);
    return batch_finish_delivery(s, op, where, limit, STORE_COUNT_CLAIMED, out);
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
        out->claim_age_s = (call_integer(&c, BATCH_NOW) - started) / 1000;
        st = batch_fill_new(&c, GOT_MESSAGES, out);
    }
    call_end(&c);
    return st;
}

/* Markers of listings: time of the creation of a claim and its number, 12 hexadecimal
 * digits each. */
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
    const int64_t now_ms = call_integer(c, BATCH_NOW);

    out->id.text[0] = '\0';
    if (id.len < sizeof(out->id.text)) {
        memcpy(out->id.text, id.data, id.len);
        out->id.text[id.len] = '\0';
    }
    out->client_len = client.len < STORE_CLIENT_MAX ? client.len : STORE_CLIENT_MAX;
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
        counters_add(s, where, STORE_COUNT_RENEWALS, 1);
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
        counters_add(s, where, store_release_counter(why), (uint64_t)call_integer(&c, 1));
    call_end(&c);
    waiting_wake(s, op, where);
    return st;
}
