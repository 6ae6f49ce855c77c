/* message_ops: the operations of the store on messages. Read batch.h and
 * scripts/message_post.lua next. */
#include "redis/batch.h"
#include "redis/delivery_ops.h"
#include "redis/waiting.h"

#include <inttypes.h>
#include <stdio.h>

enum status
redis_message_post(struct store *store, struct store_op *op,
                   const struct store_queue *where, const struct store_post *post,
                   struct store_id *ids)
{
    enum { POSTED_TAG = 1, FIRST, UNLISTED, DELIVERY_DUE, EXISTING };
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
    call_unique(&c, post->unique, post->replaces, post->ready_ms);
    for (size_t i = 0; i < post->count; i++) {
        call_number(&c, post->drafts[i].ttl_s);
        call_number(&c, post->drafts[i].delay_s);
        call_word(&c, post->drafts[i].body);
        call_checksum(&c, post->checksums == NULL ? NULL : &post->checksums[i]);
    }
    call_key(&c, op->key);
    st = call_run(&c, CALL_SCRIPT(&c, message_post), CALL_CHANGE);
    op->repeated = c.repeated;
    op->existing = st == ST_OK && call_has(&c, EXISTING);
    if (op->existing)
        call_copy_id(call_item(&c, EXISTING), &ids[0]);
    for (size_t i = 0; st == ST_OK && !op->existing && i < post->count; i++)
        message_id_write(call_item(&c, POSTED_TAG), (uint64_t)call_integer(&c, FIRST) + i,
                         BYTES_NONE, &ids[i]);
    if (st == ST_OK && !c.repeated && !op->existing)
        counters_add(s, where, STORE_COUNT_POSTED, post->count);
    if (st == ST_OK && bytes_present(post->replaces))
        counters_add(s, where, STORE_COUNT_DELETED, 1);
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

enum status
redis_message_find(struct store *store, struct store_op *op,
                   const struct store_queue *where, struct bytes key,
                   struct store_batch *out)
{
    struct call c = call_begin(redis_of(store), op, where);
    enum status st;

    call_word(&c, key);
    st = call_run(&c, SCRIPT_message_find, CALL_READ);
    if (st == ST_OK)
        st = batch_fill_new(&c, GOT, out);
    call_end(&c);
    return st;
}

/* ---------------------------------------------------------------------- deletion */

/* Counts deleted messages. Of claimed ones it also counts the time since the claim, and
 * the number of claims. */
static void
count_deleted(const struct call *c, enum status st, bool with_claim)
{
    enum { COUNT = 1, SPANS };

    if (with_claim && (st == ST_CLAIMED || st == ST_NOT_CLAIMED))
        counters_add(c->store, c->where, STORE_COUNT_LATE_DELETES, 1);
    if (st != ST_OK || call_integer(c, COUNT) == 0)
        return;
    counters_add(c->store, c->where, STORE_COUNT_DELETED,
                 (uint64_t)call_integer(c, COUNT));
    for (size_t i = SPANS; call_has(c, i + 1); i += 2) {
        counters_span(c->store, c->where, STORE_SPAN_WORKED, call_integer(c, i));
        counters_span(c->store, c->where, STORE_SPAN_ATTEMPTS, call_integer(c, i + 1));
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
    call_add_limits(&c, op, limit, out);
    call_add_decrypted_ids(&c, out->opened);
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
    st = batch_note_paused(op, st, out);
    if (st == ST_OK && op->repeated)
        waiting_served(s, op, where);
    return st != ST_OK || op->repeated
               ? st
               : batch_finish_delivery(s, op, where, limit, STORE_COUNT_POPPED, out);
}
