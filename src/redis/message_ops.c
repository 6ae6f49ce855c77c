/* The store's operations on messages. */
#include "redis/delivery.h"
#include "redis/names.h"
#include "redis/show.h"

#include <inttypes.h>
#include <stdio.h>

/* ---------------------------------------------------------------------- post */

static void
add_messages(struct call *c, const struct store_post *post)
{
    for (size_t i = 0; i < post->count; i++) {
        const struct store_draft *draft = &post->drafts[i];

        call_number(c, draft->ttl_s);
        call_number(c, draft->delay_s);
        call_word(c, draft->body);
        call_word(c, post->checksums == NULL
                         ? bytes_str("")
                         : bytes_of((const char *)post->checksums[i].digest,
                                    sizeof(post->checksums[i].digest)));
    }
}

enum status
redis_message_post(struct store *store, struct store_visit *visit,
                   const struct store_queue *where, const struct store_post *post,
                   struct store_id *ids)
{
    enum { TAG = 1, FIRST, UNLISTED, TELLS };
    struct redis_store *s = redis_of(store);
    char tag[TAG_DIGITS], client[sizeof(post->client)];
    struct call c;
    enum status st = redis_digits(s, tag, sizeof(tag));

    if (st != ST_OK)
        return st;
    memcpy(client, &post->client, sizeof(client));
    call_begin(&c, s, visit, where);
    call_word(&c, bytes_of(tag, post->create_queue ? sizeof(tag) : 0));
    call_word(&c, bytes_of(client, sizeof(client)));
    call_number(&c, (int64_t)post->request_bytes);
    call_number(&c, s->config.message_ttl_s);
    call_number(&c, s->config.message_delay_s);
    call_number(&c, (int64_t)s->config.feed_bytes);
    add_messages(&c, post);
    st = call_run(&c, SCRIPT_message_post, CALL_CHANGES);
    for (size_t i = 0; st == ST_OK && i < post->count; i++)
        show_id(call_item(&c, TAG), (uint64_t)call_integer(&c, FIRST) + i, BYTES_NONE,
                &ids[i]);
    if (st == ST_OK)
        done_count(&s->done, STORE_COUNT_POSTED, post->count);
    if (st == ST_OK && call_integer(&c, TELLS) != 0)
        delivery_is_due(s, visit, where, 0);
    if (st == ST_OK && call_integer(&c, UNLISTED) != 0)
        st = names_enter(s, visit, where, call_item(&c, TAG));
    call_end(&c);
    waiting_stir(s, visit, where);
    return st;
}

/* ---------------------------------------------------------------------- show */

enum { NOW = 1, SHOWN_TAG, LAST, LISTED, GOT = 3 };

static struct bytes
client_of(const struct store_filter *filter, char out[sizeof(filter->client)])
{
    memcpy(out, &filter->client, sizeof(filter->client));
    return bytes_of(out, filter->hide_client ? sizeof(filter->client) : 0);
}

enum status
redis_message_list(struct store *store, struct store_visit *visit,
                   const struct store_queue *where, const struct store_filter *filter,
                   struct store_batch *out)
{
    char client[sizeof(filter->client)];
    uint64_t last;
    struct call c;
    enum status st;

    call_begin(&c, redis_of(store), visit, where);
    call_marker(&c, filter->marker);
    call_number(&c, (int64_t)out->resume[0]);
    call_limit(&c, filter->limit);
    call_number(&c, filter->include_claimed);
    call_number(&c, filter->include_delayed);
    call_word(&c, client_of(filter, client));
    st = call_run(&c, SCRIPT_message_list, CALL_LOOKS);
    last = (uint64_t)call_integer(&c, LAST);
    if (st == ST_AGAIN)
        out->resume[0] = last;
    if (st == ST_OK)
        st = show_messages(&c, LISTED, call_integer(&c, NOW), call_item(&c, SHOWN_TAG),
                           out);
    if (st == ST_OK && out->count > 0)
        (void)snprintf(out->next.text, sizeof(out->next.text), "%" PRIu64, last);
    call_end(&c);
    return st;
}

enum status
redis_message_get(struct store *store, struct store_visit *visit,
                  const struct store_queue *where, const struct bytes *ids, size_t count,
                  struct store_batch *out)
{
    struct call c;
    enum status st;

    call_begin(&c, redis_of(store), visit, where);
    for (size_t i = 0; i < count; i++)
        call_id(&c, ids[i]);
    c.asked = count;
    st = call_run(&c, SCRIPT_message_get, CALL_LOOKS);
    if (st == ST_OK)
        st = show_messages(&c, GOT, call_integer(&c, NOW), call_item(&c, SHOWN_TAG), out);
    call_end(&c);
    return st;
}

/* ---------------------------------------------------------------------- remove */

/* So many were deleted: of those that were claimed, how long ago, and how often they were. */
static void
count_deleted(const struct call *c, enum status st, bool with_claim)
{
    enum { COUNT = 1, SPANS };
    struct done *done = &c->store->done;

    if (with_claim && (st == ST_CLAIMED || st == ST_NOT_CLAIMED))
        done_count(done, STORE_COUNT_LATE_DELETES, 1);
    if (st != ST_OK || call_integer(c, COUNT) == 0)
        return;
    done_count(done, STORE_COUNT_DELETED, (uint64_t)call_integer(c, COUNT));
    for (size_t i = SPANS; call_has(c, i + 1); i += 2) {
        done_span(done, STORE_SPAN_WORKED, call_integer(c, i));
        done_span(done, STORE_SPAN_ATTEMPTS, call_integer(c, i + 1));
    }
}

enum status
redis_message_delete(struct store *store, struct store_visit *visit,
                     const struct store_queue *where, const struct store_delete *which)
{
    struct call c;
    enum status st;

    call_begin(&c, redis_of(store), visit, where);
    call_number(&c, which->rule);
    call_number(&c, (int64_t)which->claim_count);
    for (size_t i = 0; i < which->claim_count; i++)
        call_id(&c, which->claim_ids[i]);
    for (size_t i = 0; i < which->count; i++)
        call_id(&c, which->ids[i]);
    c.asked = which->count;
    st = call_run(&c, SCRIPT_message_delete, CALL_CHANGES);
    count_deleted(&c, st, which->rule == STORE_DELETE_HELD);
    call_end(&c);
    return st;
}

enum status
redis_message_pop(struct store *store, struct store_visit *visit,
                  const struct store_queue *where, size_t limit, struct store_batch *out)
{
    struct redis_store *s = redis_of(store);
    struct shown *room = show_room(s, limit);
    size_t most = limit, reserved;
    struct call c;
    enum status st;

    if (room == NULL)
        return ST_NO_MEMORY;
    call_begin(&c, s, visit, where);
    reserved = waiting_reserved(s, visit, where, &most);
    call_limit(&c, most);
    call_number(&c, (int64_t)reserved);
    call_number(&c, (int64_t)out->room);
    call_opened(&c, out->opened);
    st = call_run(&c, SCRIPT_message_pop, CALL_CHANGES);
    if (st == ST_NO_ROOM)
        out->room = (size_t)call_integer(&c, 1);
    if (st == ST_OK || st == ST_SEALED)
        show_in(room, &c, GOT, call_integer(&c, NOW), call_item(&c, SHOWN_TAG), out);
    else
        show_free(s, room);
    call_end(&c);
    if (st != ST_OK)
        return st;
    if (out->count == 0)
        return waiting_found_nothing(s, visit, where, limit);
    done_count(&s->done, STORE_COUNT_POPPED, out->count);
    show_waited(s, out);
    waiting_served(s, visit, where);
    return ST_OK;
}
