/*
 * messages: the requests on messages of a queue: post, list, get, delete and pop
 * (docs/api.md 8). Declared in handlers.h. finish.c uses post_encrypt() and other parts
 * of a post.
 *
 *     1. handle_message_post() reads the whole body and reserves the response.
 *     2. key_begin() looks for another request with the same Idempotency-Key.
 *     3. store_message_post() posts all messages or none. If the queue encrypts, it
 *        refuses with ST_NOT_SEALED. Then post_encrypt() encrypts, and the store is
 *        called again.
 *     4. posted_write() writes the response, which cannot fail.
 *
 * Read deliver.c (pops) and store_message_post() in claimd/store/store.h next.
 */
#include "api/handlers/deliver.h"
#include "api/handlers/handlers.h"
#include "api/key.h"
#include "api/prefer.h"
#include "api/response.h"
#include "api/steps.h"
#include "api/wait.h"
#include "api/wire/message.h"
#include "api/wire/query.h"
#include "claimd/base/plural.h"

/* ------------------------------------------------------------------ post */

/* Refuses a body beyond the limit of its queue. */
static enum status
refuse_size(struct context *ctx, int64_t max)
{
    return context_refuse(
        ctx, ST_TOO_LARGE,
        "the body is %zu bytes long. The maximum for posts to %s %.*s is "
        "%lld byte%s (_max_messages_post_size)",
        ctx->req->body.len, context_noun(ctx), (int)ctx->queue.name.len,
        ctx->queue.name.data, (long long)max, plural_s((uint64_t)max));
}

/* The limit of the queue, or of the server if the queue has none or the version ignores
 * it. */
static int64_t
post_limit(struct context *ctx)
{
    struct store_queues found = STORE_QUEUES_INIT;
    int64_t max = STORE_UNSET;

    if (ctx->version->queue_settings &&
        store_queue_get(ctx->store, &ctx->op, &ctx->queue, &found) == ST_OK)
        max = found.queues[0].metadata.settings.max_post_bytes;
    store_queues_release(&found);
    return max == STORE_UNSET ? ctx->limits->max_messages_post_size : max;
}

void
post_warn(struct context *ctx, enum post_form form, const struct unknown_names *unknown)
{
    /* Only version 2 has the last one. */
    static const char *const known[] = {"body", "ttl", "messages", "delay"};
    const size_t count = sizeof(known) / sizeof(known[0]) - (form != POST_V2);

    for (size_t i = 0; i < unknown->count; i++)
        context_warn_member(ctx, unknown->all[i], known, count);
}

/* A time in a refusal, and the member or option that gives it. */
static const char *
origin_of(int64_t own, int64_t of_queue, const char *member, const char *option)
{
    return own != STORE_UNSET ? "" : of_queue != STORE_UNSET ? member : option;
}

enum status
post_refuse_delay(struct context *ctx, const struct store_queue *where,
                  const struct store_post *post)
{
    const struct store_lifetime server = {ctx->limits->default_message_ttl,
                                          ctx->limits->default_message_delay};
    struct store_queues found = STORE_QUEUES_INIT;
    struct store_settings set = STORE_SETTINGS_INIT;
    const struct store_draft *draft = post->drafts;
    struct store_lifetime life;
    size_t i = 0;

    if (store_queue_get(ctx->store, &ctx->op, where, &found) == ST_OK)
        set = found.queues[0].metadata.settings;
    store_queues_release(&found);
    for (;; i++, draft++) { /* the settings may have changed since */
        life = store_draft_lifetime(draft, &set, server);
        if (!store_lifetime_is_useful(life) || i + 1 == post->count)
            break;
    }
    return context_refuse(
        ctx, ST_NEVER_READY,
        "messages[%zu] would expire before a worker can claim it. Its delay of %lld "
        "second%s%s is not shorter than its TTL of %lld second%s%s",
        i, (long long)life.delay_s, plural_s((uint64_t)life.delay_s),
        origin_of(draft->delay_s, set.message_delay_s, " (_default_message_delay)",
                  " (default_message_delay)"),
        (long long)life.ttl_s, plural_s((uint64_t)life.ttl_s),
        origin_of(draft->ttl_s, set.message_ttl_s, " (_default_message_ttl)",
                  " (default_message_ttl)"));
}

/*
 * The parts of the response to a post, reserved before the store is called. If the
 * Location does not fit into a head (claimd/api/api.h), it is the path of the collection.
 * The body has all ids.
 */
struct posted {
    const char *collection; /* path of the queue's messages */
    struct store_id *ids;
    size_t count;
    char *location; /* space for the longest; NULL: there are too many ids */
};

static const struct bytes ids_mark = BYTES_LIT("?ids=");

/* Reserves all memory, because nothing may fail after the store has posted. */
static enum status
posted_reserve(struct context *ctx, size_t count, struct posted *out)
{
    struct arena *arena = ctx->req->arena;
    size_t space;

    *out = (struct posted){.count = count};
    out->collection = context_path(ctx, "/messages", BYTES_NONE);
    out->ids = arena_array(arena, count, sizeof(*out->ids));
    if (out->collection == NULL || out->ids == NULL)
        return ST_NO_MEMORY;
    /* The lengths of the ids are not known yet. Each id has a comma or the mark before
     * it. */
    if (count <= RESPONSE_VALUE_MAX / 2) {
        out->location = arena_alloc(arena, RESPONSE_VALUE_MAX + 1);
        if (out->location == NULL)
            return ST_NO_MEMORY;
    }
    space = count * (strlen(out->collection) + sizeof(*out->ids) + 4) + 64;
    return buf_reserve(&ctx->res->body, space) ? ST_OK : ST_NO_MEMORY;
}

static const char *
posted_location(const struct posted *posted, size_t most)
{
    static const struct bytes comma = BYTES_LIT(",");
    size_t len = strlen(posted->collection);

    if (posted->location == NULL)
        return posted->collection;
    memcpy(posted->location, posted->collection, len);
    for (size_t i = 0; i < posted->count; i++) {
        struct bytes id = store_id_bytes(&posted->ids[i]);
        struct bytes mark = i == 0 ? ids_mark : comma;

        if (len + mark.len + id.len > most)
            return posted->collection;
        memcpy(posted->location + len, mark.data, mark.len);
        memcpy(posted->location + len + mark.len, id.data, id.len);
        len += mark.len + id.len;
    }
    posted->location[len] = '\0';
    return posted->location;
}

static enum status
posted_write(struct context *ctx, const struct posted *posted)
{
    struct buf *out = &ctx->res->body;

    buf_str(out, "{\"resources\":[");
    for (size_t i = 0; i < posted->count; i++) {
        buf_str(out, i == 0 ? "\"" : ",\"");
        buf_str(out, posted->collection);
        buf_byte(out, '/');
        buf_bytes(out, store_id_bytes(&posted->ids[i]));
        buf_byte(out, '"');
    }
    buf_str(out, ctx->version->tells_partial ? "],\"partial\":false}" : "]}");
    response_add_header(
        ctx, "Location",
        posted_location(posted, RESPONSE_VALUE_MAX - warnings_size(&ctx->warnings)));
    key_mark_repeated(ctx);
    if (__builtin_expect(ctx->op.existing, 0))
        response_add_header(ctx, "Claimd-Unique", "existing");
    return response_json(ctx, 201);
}

enum status
post_checksums(struct context *ctx, const struct decoded_post *post,
               const struct store_checksum **out)
{
    struct store_checksum *all;
    enum status st = ST_OK;

    *out = NULL;
    if (!ctx->limits->enable_checksum)
        return ST_OK;
    all = arena_array(ctx->req->arena, post->count, sizeof(*all));
    if (all == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; st == ST_OK && i < post->count; i++)
        st = checksum_of(post->drafts[i].body, ctx->res->body.mem, &all[i]);
    *out = all;
    return st;
}

enum status
post_encrypt(struct context *ctx, struct store_post *post)
{
    const struct seal_scope scope = {ctx->queue.project, (uint32_t)ctx->queue.kind};
    struct store_draft *drafts =
        arena_array(ctx->req->arena, post->count, sizeof(*drafts));
    enum status st = drafts == NULL ? ST_NO_MEMORY : ST_OK;

    if (st == ST_OK && ctx->config->seal == NULL)
        st = ST_NO_KEY;
    for (size_t i = 0; st == ST_OK && i < post->count; i++) {
        const struct bytes body = post->drafts[i].body;
        const size_t len = body.len + SEAL_OVERHEAD;
        char *to = arena_alloc(ctx->req->arena, len);

        st = to == NULL ? ST_NO_MEMORY : seal_close(ctx->config->seal, &scope, body, to);
        drafts[i] = post->drafts[i];
        drafts[i].body = bytes_of(to, len);
    }
    if (st == ST_NO_KEY)
        return context_refuse(ctx, st,
                              "queue %.*s encrypts its messages, but the server has no "
                              "key (encryption_keys)",
                              (int)ctx->queue.name.len, ctx->queue.name.data);
    if (st == ST_OK)
        post->drafts = drafts;
    return st;
}

/* Reads the header Claimd-Unique: a key, and perhaps "; until=claimed" (docs/api.md
 * 30). */
static enum status
read_unique(struct context *ctx, size_t count, struct store_unique *out)
{
    static const struct bytes claimed = BYTES_LIT("until=claimed"),
                              deleted = BYTES_LIT("until=deleted");
    const struct bytes text = ctx->req->headers[API_HEADER_UNIQUE];
    const char *end = memchr(text.data, ';', text.len);
    struct bytes until = deleted;

    *out = (struct store_unique){.key = text};
    if (end != NULL) {
        const size_t len = (size_t)(end - text.data);

        out->key = bytes_trim(bytes_of(text.data, len));
        until = bytes_trim(bytes_of(end + 1, text.len - len - 1));
    }
    out->until_claimed = bytes_equal(until, claimed);
    if (!out->until_claimed && !bytes_equal(until, deleted))
        return context_refuse(
            ctx, ST_BAD_VALUE,
            "the header Claimd-Unique has \"%s\" after its key. It must "
            "be until=claimed or until=deleted",
            received(until).text);
    if (memchr(text.data, ',', text.len) != NULL)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "the header Claimd-Unique has a comma. Send the header "
                              "once, with a key without commas");
    if (count > 1)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "the post has %zu messages. With the header Claimd-Unique "
                              "it must have one",
                              count);
    if (key_is_sent(ctx))
        return context_refuse(ctx, ST_BAD_VALUE,
                              "the post has the headers Claimd-Unique and "
                              "Idempotency-Key. Send one of them");
    if (ctx->queue.kind == STORE_TOPIC)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "messages of topics cannot have the header Claimd-Unique");
    return unique_key_check(ctx, "the key in the header Claimd-Unique", out->key);
}

/* Refuses a body that is too large for any queue, and all posts in maintenance. */
enum status
post_check(struct context *ctx)
{
    enum status st = context_body_within(ctx, ctx->limits->max_messages_post_size,
                                         "max_messages_post_size");

    if (st == ST_OK &&
        atomic_load_explicit(&ctx->config->condition->closed, memory_order_relaxed))
        st = context_refuse(ctx, ST_UNAVAILABLE,
                            "the server is in maintenance and accepts no posts");
    return st;
}

enum status
post_decoded(struct context *ctx, const struct decoded_post *decoded)
{
    const struct version *v = ctx->version;
    const size_t first =
        decoded->drafts[0].body.len; /* a raw text grows by its escapes */
    const size_t size = first > ctx->req->body.len ? first : ctx->req->body.len;
    struct store_post post;
    const struct store_checksum *checksums;
    struct store_unique unique;
    const bool is_unique = bytes_present(ctx->req->headers[API_HEADER_UNIQUE]);
    struct posted posted;
    enum status st = posted_reserve(ctx, decoded->count, &posted);

    if (st == ST_OK && is_unique)
        st = read_unique(ctx, decoded->count, &unique);
    if (st == ST_OK)
        st = key_begin(ctx);
    if (st == ST_OK)
        st = post_checksums(ctx, decoded, &checksums);
    if (st != ST_OK)
        return st;
    post = (struct store_post){
        .drafts = decoded->drafts,
        .count = decoded->count,
        .client = ctx->client,
        .request_bytes = v->queue_settings ? size : 0,
        .create_queue = v->posts_make_queue,
        .checksums = checksums,
        .unique = is_unique ? &unique : NULL,
    };
    st = store_message_post(ctx->store, &ctx->op, &ctx->queue, &post, posted.ids);
    if (st == ST_NOT_SEALED) { /* only then, so that other queues have no cost */
        st = post_encrypt(ctx, &post);
        if (st == ST_OK)
            st = store_message_post(ctx->store, &ctx->op, &ctx->queue, &post, posted.ids);
    }
    if (st == ST_TOO_LARGE)
        return refuse_size(ctx, post_limit(ctx));
    if (st == ST_NEVER_READY)
        return post_refuse_delay(ctx, &ctx->queue, &post);
    if (st == ST_BEYOND_LOG)
        /* docs/api.md, 8.2 */
        return context_refuse(ctx, st,
                              "these %zu messages are too large for one write to the "
                              "journal. The maximum is "
                              "%zu bytes, and each message needs up to %d bytes besides "
                              "its body. Post them "
                              "in several requests",
                              decoded->count, ctx->op.log_most, STORE_LOG_EACH);
    if (st == ST_NOT_FOUND)
        return context_refuse_queue(ctx);
    return st == ST_OK ? posted_write(ctx, &posted) : st;
}

/* POST .../messages */
enum status
handle_message_post(struct context *ctx)
{
    const struct request *req = ctx->req;
    const struct version *v = ctx->version;
    struct decoded_post decoded;
    enum status st = post_check(ctx);

    if (st != ST_OK)
        return st;
    st = decode_post(req->body, v->post, ctx->limits, req->arena, &decoded, ctx->why);
    if (st != ST_OK) { /* the limit of the queue has priority */
        const int64_t max = post_limit(ctx);

        return req->body.len > (size_t)max ? refuse_size(ctx, max) : st;
    }
    post_warn(ctx, v->post, &decoded.unknown);
    return post_decoded(ctx, &decoded);
}

/* ------------------------------------------------------------------ list */

struct message_listing {
    struct listing parameters;
    struct store_filter filter;
    bool echo;
};

static enum status
read_listing(struct context *ctx, struct message_listing *out)
{
    const struct api_limits *l = ctx->limits;
    struct store_filter *f = &out->filter;
    enum status st;

    *out = (struct message_listing){
        .parameters.parameters = {{"limit", .limit = &f->limit,
                                   .most = l->max_messages_per_page,
                                   .option = "max_messages_per_page"},
                                  {"echo", .flag = &out->echo},
                                  {"include_claimed", .flag = &f->include_claimed}},
        .filter = {.marker = query_get(&ctx->query, "marker"),
                   .limit = (size_t)limits_page(l, l->max_messages_per_page),
                   .client = ctx->client}};
    if (ctx->version->lists_delayed)
        out->parameters.parameters[3] =
            (struct parameter){"include_delayed", .flag = &f->include_delayed};
    st = context_read_listing(ctx, &out->parameters);
    f->hide_client = !out->echo && ctx->client != 0;
    return st;
}

/* More bytes than a page has besides its messages. */
enum { PAGE_FRAME = 2048 };

/*
 * Shortens a page for which there is no memory, and decrypts its messages. *out: the
 * number of messages that remain. The next page continues behind them. Clients must be
 * able to read when memory is short.
 */
static enum status
shorten_page(struct context *ctx, const struct message_form *form,
             struct store_batch *batch, size_t *out)
{
    struct buf *body = &ctx->res->body;
    size_t shown = batch->count;
    enum status st = ST_NO_MEMORY;

    for (; shown > 1; shown /= 2) {
        size_t space = message_space(form, shown) + PAGE_FRAME;

        for (size_t i = 0; i < shown; i++)
            space += batch->messages[i].body.len;
        if (buf_reserve(body, space))
            st = decrypt_batch(ctx, batch, shown);
        if (st != ST_NO_MEMORY)
            break;
        buf_reset(body, SIZE_MAX);
    }
    if (shown < batch->count)
        batch->next = batch->messages[shown - 1].id;
    *out = shown;
    return st == ST_NO_MEMORY ? decrypt_batch(ctx, batch, shown) : st;
}

static enum status
write_page(struct context *ctx, const struct message_listing *listing,
           struct store_batch *batch)
{
    struct buf *out = &ctx->res->body;
    struct message_form form;
    enum status st = context_message_form(ctx, &form);
    size_t shown;

    if (st != ST_OK)
        return st;
    if (batch->count == 0 && ctx->version->empty_is_204)
        return response_empty(ctx, 204);
    st = shorten_page(ctx, &form, batch, &shown);
    if (st != ST_OK)
        return st;
    buf_str(out, "{\"messages\":");
    message_write_all(out, &form, batch->messages, shown);
    next_page_write(out, form.href, &ctx->query, &listing->parameters,
                    batch->count == 0 ? BYTES_NONE : store_id_bytes(&batch->next));
    buf_byte(out, '}');
    ctx->api->steps->shown(ctx, batch->messages, shown);
    return response_json(ctx, 200);
}

static enum status
list_page(struct context *ctx)
{
    struct store_batch batch = STORE_BATCH_INIT;
    struct message_listing listing;
    enum status st = read_listing(ctx, &listing);

    if (st != ST_OK)
        return st;
    memcpy(batch.resume, ctx->progress->resume, sizeof(batch.resume));
    st = store_message_list(ctx->store, &ctx->op, &ctx->queue, &listing.filter, &batch);
    if (st == ST_AGAIN)
        memcpy(ctx->progress->resume, batch.resume, sizeof(batch.resume));
    if (st == ST_OK)
        st = write_page(ctx, &listing, &batch);
    store_batch_release(&batch);
    return st;
}

/* ------------------------------------------------------------------ get */

static enum status
write_found(struct context *ctx, const struct store_batch *batch)
{
    struct message_form form;
    enum status st = context_message_form(ctx, &form);

    if (st != ST_OK)
        return st;
    write_messages(ctx, &form, batch);
    ctx->api->steps->shown(ctx, batch->messages, batch->count);
    return response_json(ctx, 200);
}

static enum status
list_ids(struct context *ctx, const struct bytes *ids, size_t count)
{
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st =
        store_message_get(ctx->store, &ctx->op, &ctx->queue, ids, count, &batch);

    if (st == ST_OK)
        st = decrypt_batch(ctx, &batch, batch.count);
    if (st == ST_OK && batch.count > 0)
        st = write_found(ctx, &batch);
    else if (st == ST_OK && ctx->version->empty_is_204)
        st = response_empty(ctx, 204);
    else if (st == ST_OK)
        st = context_refuse(ctx, ST_NOT_FOUND, "%s %.*s has none of these messages",
                            context_noun(ctx), (int)ctx->queue.name.len,
                            ctx->queue.name.data);
    store_batch_release(&batch);
    return st;
}

/* GET .../messages, a page or the messages of `ids` */
enum status
handle_message_list(struct context *ctx)
{
    struct bytes *ids = NULL;
    size_t count = 0;
    enum status st = context_read_list(ctx, "ids", ctx->limits->max_messages_per_page,
                                       "max_messages_per_page", &ids, &count);

    if (st != ST_OK)
        return st;
    return count > 0 ? list_ids(ctx, ids, count) : list_page(ctx);
}

/* GET .../messages/{id} */
enum status
handle_message_get(struct context *ctx)
{
    struct store_batch batch = STORE_BATCH_INIT;
    struct message_form form;
    enum status st = context_message_form(ctx, &form);

    if (st != ST_OK)
        return st;
    st = store_message_get(ctx->store, &ctx->op, &ctx->queue, &ctx->id, 1, &batch);
    if (st == ST_OK && batch.count == 0)
        st = context_refuse_id(ctx, "message", true);
    if (st == ST_OK)
        st = decrypt_batch(ctx, &batch, 1);
    if (st == ST_OK) {
        message_write(&ctx->res->body, &form, &batch.messages[0]);
        ctx->api->steps->shown(ctx, batch.messages, 1);
        st = response_json(ctx, 200);
    }
    store_batch_release(&batch);
    return st;
}

/* ------------------------------------------------------------------ delete */

/* DELETE .../messages/{id}?claim_id=C */
enum status
handle_message_delete(struct context *ctx)
{
    const struct bytes claim_id = query_get(&ctx->query, "claim_id");
    const bool claimed = bytes_present(claim_id);
    enum status st = store_message_delete(
        ctx->store, &ctx->op, &ctx->queue,
        &(struct store_delete){.rule = claimed ? STORE_DELETE_HELD : STORE_DELETE_READY,
                               .ids = &ctx->id,
                               .count = 1,
                               .claim_ids = &claim_id,
                               .claim_count = claimed});

    if (st == ST_CLAIMED)
        return context_refuse(
            ctx, st, "a claim holds the message. Send the id of that claim as claim_id");
    if (st == ST_NOT_CLAIMED)
        return context_refuse(
            ctx, st,
            "the claim does not hold this message. It has ended, or it never held the "
            "message. Another worker may have the message now");
    return st == ST_OK ? response_empty(ctx, 204) : st;
}

/* ------------------------------------------------------------------ by ids */

/* The messages to delete, and the claims, one of which must hold each message, if any. */
struct delete_selection {
    struct bytes *ids, *claims;
    size_t count, claim_count;
    bool strict; /* message_delete_with_claim_id: there must be claims */
};

static enum status
read_selection(struct context *ctx, struct delete_selection *out)
{
    const struct api_limits *l = ctx->limits;
    enum status st;

    *out = (struct delete_selection){.strict = ctx->version->reads_claim_ids &&
                                               l->message_delete_with_claim_id};
    st = context_read_list(ctx, "ids", l->max_messages_per_page, "max_messages_per_page",
                           &out->ids, &out->count);
    if (st != ST_OK || !ctx->version->reads_claim_ids)
        return st;
    return context_read_list(ctx, "claim_ids", l->max_messages_per_page,
                             "max_messages_per_page", &out->claims, &out->claim_count);
}

static enum status
delete_ids(struct context *ctx, const struct delete_selection *sel)
{
    enum status st = store_message_delete(
        ctx->store, &ctx->op, &ctx->queue,
        &(struct store_delete){.rule = sel->claim_count > 0 ? STORE_DELETE_HELD
                                                            : STORE_DELETE_ANY,
                               .ids = sel->ids,
                               .count = sel->count,
                               .claim_ids = sel->claims,
                               .claim_count = sel->claim_count});

    /* 400 as for one message, but 403 with message_delete_with_claim_id. */
    if (st == ST_CLAIMED || st == ST_NOT_CLAIMED)
        return context_refuse(
            ctx, sel->strict ? ST_CLAIMED : ST_NOT_CLAIMED,
            "nothing was deleted. A claim in claim_ids must hold each message in ids. "
            "Delete the messages one by one to find those that another worker may have");
    return st == ST_OK ? response_empty(ctx, 204) : st;
}

/* DELETE .../messages?ids=A,B&claim_ids=C,D */
enum status
handle_message_delete_many(struct context *ctx)
{
    struct delete_selection sel;
    enum status st = read_selection(ctx, &sel);

    if (st != ST_OK)
        return st;
    if (sel.count == 0 && ctx->resource->variants[METHOD_DELETE] == NULL)
        return context_refuse(ctx, ST_MISSING_PARAMETER, "the parameter ids is required");
    if (sel.count == 0)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "one of the parameters ids and pop is required");
    if (sel.strict && sel.claim_count == 0)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "the parameter claim_ids is required. Only the claim that "
                              "holds a message can delete it");
    return delete_ids(ctx, &sel);
}

/* ------------------------------------------------------------------ pop */

static enum status
deliver_popped(struct context *ctx, const void *terms, size_t limit,
               struct store_batch *out)
{
    (void)terms; /* a pop has none */
    return store_message_pop(ctx->store, &ctx->op, &ctx->queue, limit, out);
}

static enum status
pop_messages(struct context *ctx, size_t limit)
{
    const struct message_form form = {
        .shape = MESSAGE_POP,
        .checksum = ctx->limits->enable_checksum,
        .details = prefer_details(ctx->req->headers[API_HEADER_PREFER]),
        .time_base = ctx->config->time_base};
    struct buf *out = &ctx->res->body;
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st = key_begin(ctx);

    if (st == ST_OK)
        st = wait_begin(ctx, 1);
    ctx->op.waiter = wait_waiter(ctx, 0);
    if (st == ST_OK && !wait_abandoned(ctx))
        st = deliver_messages(ctx, &form, deliver_popped, NULL, limit, &batch);
    if (st == ST_OK && batch.count == 0)
        st = wait_result(ctx, ctx->op.waits);
    if (st != ST_OK) {
        store_batch_release(&batch);
        return st;
    }
    if (batch.count == 0 && ctx->op.paused)
        response_add_header(ctx, "Claimd-Paused", "claims");
    buf_str(out, "{\"messages\":");
    message_write_all(out, &form, batch.messages, batch.count);
    buf_byte(out, '}');
    store_batch_release(&batch);
    key_mark_repeated(ctx);
    return response_json(ctx, 200);
}

/* DELETE .../messages?pop=N */
enum status
handle_message_pop(struct context *ctx)
{
    struct delete_selection sel;
    size_t limit = 0;
    enum status st = read_selection(ctx, &sel);

    if (st == ST_OK)
        st = context_read_limit(ctx, "pop", ctx->limits->max_messages_per_claim_or_pop,
                                "max_messages_per_claim_or_pop", &limit);
    if (st != ST_OK)
        return st;
    if (sel.count > 0)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "the parameters ids and pop cannot be used together");
    if (sel.claim_count > 0)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "the parameter claim_ids can be used only with ids");
    return pop_messages(ctx, limit);
}
