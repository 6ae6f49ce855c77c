#include "api/handlers/handlers.h"
#include "api/wire/checksum.h"
#include "api/wire/next_page.h"

/* ------------------------------------------------------------------ post */

/* Too large for its queue; what the server allows was asked before. */
static enum status
refuse_size(struct call *call, int64_t max)
{
    return call_refuse(call, ST_TOO_LARGE,
                       "a request that posts to queue %.*s may have %lld bytes "
                       "(_max_messages_post_size)",
                       (int)call->queue.name.len, call->queue.name.data, (long long)max);
}

/* The queue's own limit, or the server's where it has none or the version ignores it. */
static int64_t
post_limit(struct call *call)
{
    struct store_queues found = STORE_QUEUES_INIT;
    int64_t max = STORE_UNSET;

    if (call->version->queue_settings &&
        store_queue_get(call->store, call->req->now_ms, &call->queue, &found) == ST_OK)
        max = found.queues[0].metadata.settings.max_post_bytes;
    store_queues_release(&found);
    return max == STORE_UNSET ? call->limits->max_messages_post_size : max;
}

/*
 * A body too large for its queue is refused for that even when it cannot be decoded. The
 * store compares on the good path; here nothing will be posted, so asking it is cheap.
 */
static enum status
refuse_post(struct call *call, enum status st, const struct reason *why)
{
    int64_t max = post_limit(call);

    if (call->req->body.len > (size_t)max)
        return refuse_size(call, max);
    return call_explain(call, st, why);
}

/*
 * What the answer to a post is made of; all of it is there before the store is asked. A
 * Location that a head has no room for (claimd/api/api.h) is replaced by the path of the
 * collection: the body has all ids anyway.
 */
struct posted {
    struct bytes collection; /* path of the queue's messages */
    struct store_id *ids;
    size_t count;
    char *location; /* room for the longest; NULL: the ids cannot but be too many */
};

static const struct bytes ids_mark = BYTES_LIT("?ids=");

/* Reserve: once the store has posted, nothing may fail any more. */
static enum status
posted_reserve(struct call *call, size_t count, struct posted *out)
{
    struct arena *arena = call->req->arena;
    size_t room;

    *out = (struct posted){.count = count};
    out->collection = call_path(call, "/messages", BYTES_NONE);
    out->ids = arena_array(arena, count, sizeof(*out->ids));
    if (!bytes_present(out->collection) || out->ids == NULL)
        return ST_NO_MEMORY;
    /* How long the ids are is not known yet; each has a comma or the mark before it. */
    if (count <= RESPONSE_VALUE_MAX / 2) {
        out->location = arena_alloc(arena, RESPONSE_VALUE_MAX + 1);
        if (out->location == NULL)
            return ST_NO_MEMORY;
    }
    room = count * (out->collection.len + sizeof(*out->ids) + 4) + 64;
    return buf_reserve(&call->res->body, room) ? ST_OK : ST_NO_MEMORY;
}

static struct bytes
posted_location(const struct posted *posted)
{
    static const struct bytes comma = BYTES_LIT(",");
    size_t len = posted->collection.len;

    if (posted->location == NULL)
        return posted->collection;
    memcpy(posted->location, posted->collection.data, len);
    for (size_t i = 0; i < posted->count; i++) {
        struct bytes id = store_id_bytes(&posted->ids[i]);
        struct bytes mark = i == 0 ? ids_mark : comma;

        if (len + mark.len + id.len > RESPONSE_VALUE_MAX)
            return posted->collection;
        memcpy(posted->location + len, mark.data, mark.len);
        memcpy(posted->location + len + mark.len, id.data, id.len);
        len += mark.len + id.len;
    }
    posted->location[len] = '\0';
    return bytes_of(posted->location, len);
}

static enum status
posted_write(struct call *call, const struct posted *posted)
{
    struct buf *out = &call->res->body;

    buf_str(out, "{\"resources\":[");
    for (size_t i = 0; i < posted->count; i++) {
        buf_str(out, i == 0 ? "\"" : ",\"");
        buf_bytes(out, posted->collection);
        buf_byte(out, '/');
        buf_bytes(out, store_id_bytes(&posted->ids[i]));
        buf_byte(out, '"');
    }
    buf_str(out, call->version->tells_partial ? "],\"partial\":false}" : "]}");
    call_header(call, "Location", posted_location(posted));
    return call_json(call, 201);
}

/*
 * The checksums are made once, here, where they cost what the request has brought; a page
 * of a few long bodies would take a second to show them. NULL if nobody wants any.
 */
static enum status
add_checksums(struct call *call, const struct decoded_post *post,
              const struct store_checksum **out)
{
    struct store_checksum *all;
    enum status st = ST_OK;

    *out = NULL;
    if (!call->limits->enable_checksum)
        return ST_OK;
    all = arena_array(call->req->arena, post->count, sizeof(*all));
    if (all == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; st == ST_OK && i < post->count; i++)
        st = checksum_of(post->drafts[i].body, call->res->body.mem, &all[i]);
    *out = all;
    return st;
}

/* POST .../messages */
enum status
handle_message_post(struct call *call)
{
    const struct request *req = call->req;
    const struct version *v = call->version;
    struct decoded_post decoded;
    struct store_post post;
    const struct store_checksum *checksums;
    struct posted posted;
    struct reason why;
    enum status st = call_body_within(call, call->limits->max_messages_post_size,
                                      "max_messages_post_size");

    if (st != ST_OK)
        return st;
    reason_init(&why);
    st = decode_post(req->body, v->post, call->limits, req->arena, &decoded, &why);
    if (st != ST_OK)
        return refuse_post(call, st, &why);
    st = posted_reserve(call, decoded.count, &posted);
    if (st == ST_OK)
        st = add_checksums(call, &decoded, &checksums);
    if (st != ST_OK)
        return st;
    post = (struct store_post){
        .drafts = decoded.drafts,
        .count = decoded.count,
        .client = call->client,
        .request_bytes = v->queue_settings ? req->body.len : 0,
        .create_queue = v->posts_make_queue,
        .checksums = checksums,
    };
    st = store_message_post(call->store, req->now_ms, &call->queue, &post, posted.ids);
    if (st == ST_TOO_LARGE)
        return refuse_size(call, post_limit(call));
    if (st == ST_NOT_FOUND)
        return call_refuse_queue(call);
    return st == ST_OK ? posted_write(call, &posted) : st;
}

/* ------------------------------------------------------------------ list */

/* The parameters of a listing; those given are repeated in the link. */
struct listing {
    struct store_filter filter;
    bool echo;
};

static enum status
read_listing(struct call *call, struct listing *out)
{
    const struct api_limits *l = call->limits;
    struct store_filter *f = &out->filter;
    enum status st;

    *out = (struct listing){.filter = {.marker = query_get(&call->query, "marker"),
                                       .limit = (size_t)l->default_page,
                                       .client = call->client}};
    st = call_limit(call, "limit", l->max_messages_per_page, "max_messages_per_page",
                    &f->limit);
    if (st != ST_OK)
        return st;
    st = call_bool(call, "echo", &out->echo);
    if (st != ST_OK)
        return st;
    f->hide_client = !out->echo;
    st = call_bool(call, "include_claimed", &f->include_claimed);
    if (st != ST_OK || !call->version->lists_delayed)
        return st;
    return call_bool(call, "include_delayed", &f->include_delayed);
}

static void
write_next_page(struct call *call, const struct message_form *form,
                const struct listing *listing, const struct store_batch *batch)
{
    const struct query *q = &call->query;
    struct next_page next;

    if (batch->count == 0) {
        next_page_none(&call->res->body);
        return;
    }
    next_page_begin(&next, &call->res->body, form->href);
    if (bytes_present(query_get(q, "limit")))
        next_page_number(&next, "limit", listing->filter.limit);
    if (bytes_present(query_get(q, "echo")))
        next_page_bool(&next, "echo", listing->echo);
    if (bytes_present(query_get(q, "include_claimed")))
        next_page_bool(&next, "include_claimed", listing->filter.include_claimed);
    if (call->version->lists_delayed && bytes_present(query_get(q, "include_delayed")))
        next_page_bool(&next, "include_delayed", listing->filter.include_delayed);
    next_page_text(&next, bytes_str("marker"), store_id_bytes(&batch->next));
    next_page_end(&next);
}

static enum status
write_page(struct call *call, const struct listing *listing,
           const struct store_batch *batch)
{
    struct buf *out = &call->res->body;
    struct message_form form;
    enum status st = call_message_form(call, &form);

    if (st != ST_OK)
        return st;
    if (batch->count == 0 && call->version->empty_is_204)
        return call_empty(call, 204);
    buf_str(out, "{\"messages\":");
    message_write_all(out, &form, batch->messages, batch->count);
    write_next_page(call, &form, listing, batch);
    buf_byte(out, '}');
    return call_json(call, 200);
}

static enum status
list_page(struct call *call)
{
    struct store_batch batch = STORE_BATCH_INIT;
    struct listing listing;
    enum status st = read_listing(call, &listing);

    if (st != ST_OK)
        return st;
    memcpy(batch.resume, call->progress->resume, sizeof(batch.resume));
    st = store_message_list(call->store, call->req->now_ms, &call->queue, &listing.filter,
                            &batch);
    if (st == ST_AGAIN)
        memcpy(call->progress->resume, batch.resume, sizeof(batch.resume));
    if (st == ST_OK)
        st = write_page(call, &listing, &batch);
    store_batch_release(&batch);
    return st;
}

/* ------------------------------------------------------------------ get */

static enum status
write_found(struct call *call, const struct store_batch *batch)
{
    struct buf *out = &call->res->body;
    struct message_form form;
    enum status st = call_message_form(call, &form);

    if (st != ST_OK)
        return st;
    if (!call->version->bare_arrays)
        buf_str(out, "{\"messages\":");
    message_write_all(out, &form, batch->messages, batch->count);
    if (!call->version->bare_arrays)
        buf_byte(out, '}');
    return call_json(call, 200);
}

static enum status
list_ids(struct call *call, const struct bytes *ids, size_t count)
{
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st = store_message_get(call->store, call->req->now_ms, &call->queue, ids,
                                       count, &batch);

    if (st == ST_OK && batch.count > 0)
        st = write_found(call, &batch);
    else if (st == ST_OK && call->version->empty_is_204)
        st = call_empty(call, 204);
    else if (st == ST_OK)
        st = call_refuse(call, ST_NOT_FOUND, "queue %.*s has none of these messages",
                         (int)call->queue.name.len, call->queue.name.data);
    store_batch_release(&batch);
    return st;
}

/* GET .../messages, a page or those named by ids */
enum status
handle_message_list(struct call *call)
{
    struct bytes *ids = NULL;
    size_t count = 0;
    enum status st = call_list(call, "ids", call->limits->max_messages_per_page,
                               "max_messages_per_page", &ids, &count);

    if (st != ST_OK)
        return st;
    return count > 0 ? list_ids(call, ids, count) : list_page(call);
}

/* GET .../messages/{id} */
enum status
handle_message_get(struct call *call)
{
    struct store_batch batch = STORE_BATCH_INIT;
    struct message_form form;
    enum status st = call_message_form(call, &form);

    if (st != ST_OK)
        return st;
    st = store_message_get(call->store, call->req->now_ms, &call->queue, &call->id, 1,
                           &batch);
    if (st == ST_OK && batch.count == 0)
        st =
            call_refuse(call, ST_NOT_FOUND, "queue %.*s has no live message with this id",
                        (int)call->queue.name.len, call->queue.name.data);
    if (st == ST_OK) {
        message_write(&call->res->body, &form, &batch.messages[0]);
        st = call_json(call, 200);
    }
    store_batch_release(&batch);
    return st;
}
