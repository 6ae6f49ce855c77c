/*
 * finish: the request that ends work on messages of a claim and posts messages, in one
 * step (docs/api.md 25.1). Declared in handlers.h.
 *
 *     1. read_finish() checks the whole body, and the permission for each part
 *        (check_parts()).
 *     2. reserve_response() reserves the memory of the response, because nothing may
 *        fail after the step.
 *     3. key_begin() looks for another request with the same Idempotency-Key.
 *     4. finish_in_store() calls the store. If a post needs encryption, it encrypts that
 *        one and calls again.
 *     5. handle_claim_finish() writes the result of each message and post.
 *        refuse_finish() explains a refusal.
 *
 * Read store_claim_finish() in claimd/store/store.h next.
 */
#include "api/check.h"
#include "api/handlers/handlers.h"
#include "api/key.h"
#include "api/response.h"
#include "api/wire/decode.h"
#include "api/wire/message.h"
#include "claimd/base/nearest.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <stdlib.h>

enum { DELETE, RELEASE, DEAD_LETTER, POST, RENEW, ATOMIC, MEMBERS };

static const char *const member_names[MEMBERS] = {"delete", "release", "dead_letter",
                                                  "post",   "renew",   "atomic"};

/*
 * The action of the plain request for each part. A renewal needs that of the route. The
 * plain way into the dead-letter queue is to release a message until it was delivered too
 * often.
 */
static const enum action part_actions[] = {[DELETE] = ACTION_MESSAGES_DELETE,
                                           [RELEASE] = ACTION_CLAIMS_DELETE,
                                           [DEAD_LETTER] = ACTION_CLAIMS_DELETE,
                                           [POST] = ACTION_MESSAGES_CREATE};

/* The request of a finish. */
struct decoded_finish {
    struct context *ctx;
    struct json_scan_value members[MEMBERS];
    struct store_finish request;
    struct store_terms terms;
    const char *collections[STORE_FINISH_POSTS]; /* paths of the messages of the posts */
};

/* ------------------------------------------------------------------ reading */

static enum status
refuse_kind(struct decoded_finish *f, const char *name, const char *what)
{
    return context_refuse(f->ctx, ST_BAD_BODY, "%s must be %s", name, what);
}

/* The number of items of an array, which is valid JSON. */
static size_t
count_items(const struct json_scan_value *array)
{
    struct json_scan scan;
    size_t count = 0;

    json_scan_begin(&scan, array->text);
    if (json_scan_enter(&scan, SCAN_ARRAY))
        for (; json_scan_item(&scan); count++)
            (void)json_scan_value(&scan, NULL);
    return count;
}

/* Refuses parts that the caller may not do by the plain requests. */
static enum status
check_parts(const struct decoded_finish *f)
{
    enum status st = ST_OK;

    if (f->ctx->config->access == NULL)
        return ST_OK;
    for (size_t i = DELETE; st == ST_OK && i <= POST; i++)
        if (count_items(&f->members[i]) > 0)
            st = check_action(f->ctx, part_actions[i]);
    return st;
}

static enum status
read_id(struct decoded_finish *f, const char *list, const struct json_scan_value *value,
        struct bytes *out)
{
    if (value->kind != SCAN_STRING)
        return context_refuse(f->ctx, ST_BAD_BODY,
                              "an id in %s is %s. It must be a string", list,
                              json_received(value).text);
    return decode_string(value, f->ctx->req->arena, out);
}

static enum status
read_reason(struct decoded_finish *f, const char *list,
            const struct json_scan_value *value, struct bytes *out)
{
    enum status st;

    if (json_left_out(value))
        return ST_OK;
    if (value->kind != SCAN_STRING)
        return context_refuse(f->ctx, ST_BAD_BODY,
                              "a reason in %s is %s. It must be a string", list,
                              json_received(value).text);
    st = decode_string(value, f->ctx->req->arena, out);
    if (st != ST_OK)
        return st;
    if (out->len > STORE_REASON_MAX)
        return context_refuse(f->ctx, ST_BAD_VALUE,
                              "a reason in %s is %zu bytes long. The maximum is %d bytes",
                              list, out->len, STORE_REASON_MAX);
    if (out->len > 0 && memchr(out->data, '\0', out->len) != NULL)
        return context_refuse(f->ctx, ST_BAD_VALUE,
                              "a reason in %s contains a NUL character", list);
    return ST_OK;
}

/* Reads {"id": ..., "delay": ..., "reason": ..., "counted": ...}, or only the id as a
 * string. */
static enum status
read_item(struct decoded_finish *f, size_t which, const struct json_scan_value *value,
          struct store_finish_item *out)
{
    enum { ID, REASON, DELAY, COUNTED, ITEM_MEMBERS };

    static const char *const names[] = {"id", "reason", "delay", "counted"};
    const struct integer_range delay = {0, f->ctx->limits->max_release_delay,
                                        "max_release_delay, max_message_ttl"};
    const char *list = member_names[which];
    const size_t count = which == RELEASE ? ITEM_MEMBERS : DELAY;
    struct json_scan_value m[ITEM_MEMBERS] = {{SCAN_NONE, BYTES_NONE}};
    struct json_names seen;
    bool counted = true;
    enum status st;

    if (which == DELETE || value->kind == SCAN_STRING)
        return read_id(f, list, value, &out->id);
    if (json_members_read(value->text, names, count, m, &seen) != ST_OK)
        return context_refuse(f->ctx, ST_BAD_BODY,
                              "an item of %s is %s. It must be an object with an id",
                              list, json_received(value).text);
    if (bytes_present(seen.unknown))
        return context_refuse(
            f->ctx, ST_BAD_BODY, "an item of %s has the unknown member \"%s\"%s", list,
            received(seen.unknown).text, nearest_hint(seen.unknown, names, count).text);
    st = read_id(f, list, &m[ID], &out->id);
    if (st == ST_OK)
        st = read_reason(f, list, &m[REASON], &out->reason);
    if (st != ST_OK || which != RELEASE)
        return st;
    st = decode_integer(&m[DELAY], &delay, &out->delay_s);
    if (st != ST_OK)
        return integer_refuse(f->ctx->why, st, "delay", &m[DELAY], &delay);
    st = context_read_flag(f->ctx, &m[COUNTED], "counted", &counted);
    out->uncounted = !counted;
    return st;
}

/* Reads the items of a list behind those that were read. */
static enum status
read_items(struct decoded_finish *f, size_t which)
{
    static const enum store_finish_action actions[] = {
        STORE_FINISH_DELETE, STORE_FINISH_RELEASE, STORE_FINISH_DEAD_LETTER};
    const struct json_scan_value *list = &f->members[which];
    enum status st = ST_OK;
    struct json_scan scan;
    size_t count = 0;

    if (json_left_out(list))
        return ST_OK;
    json_scan_begin(&scan, list->text);
    if (!json_scan_enter(&scan, SCAN_ARRAY))
        return refuse_kind(f, member_names[which], "an array");
    for (; st == ST_OK && json_scan_item(&scan); count++) {
        struct store_finish_item *item = &f->request.items[f->request.count];
        struct json_scan_value value;

        (void)json_scan_value(&scan, &value); /* the whole body is valid JSON */
        *item = (struct store_finish_item){.action = actions[which]};
        st = read_item(f, which, &value, item);
        f->request.count += st == ST_OK;
    }
    if (st == ST_OK && which == DEAD_LETTER && count > STORE_FINISH_DEAD_LETTERS)
        return context_refuse(f->ctx, ST_BAD_VALUE,
                              "dead_letter has %zu messages. The maximum is %d", count,
                              STORE_FINISH_DEAD_LETTERS);
    return st;
}

static int
compare_ids(const void *a, const void *b)
{
    return bytes_compare(*(const struct bytes *)a, *(const struct bytes *)b);
}

/* Refuses a message that is named twice. */
static enum status
check_ids(struct decoded_finish *f)
{
    const size_t count = f->request.count;
    struct bytes *ids = arena_array(f->ctx->req->arena, count + 1, sizeof(*ids));

    if (ids == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        ids[i] = f->request.items[i].id;
    qsort(ids, count, sizeof(*ids), compare_ids);
    for (size_t i = 1; i < count; i++)
        if (bytes_equal(ids[i - 1], ids[i]))
            return context_refuse(f->ctx, ST_BAD_VALUE, "the message %s is named twice",
                                  received(ids[i]).text);
    return ST_OK;
}

static void
drop_name(struct unknown_names *names, struct bytes name)
{
    size_t kept = 0;

    for (size_t i = 0; i < names->count; i++)
        if (!bytes_equal(names->all[i], name))
            names->all[kept++] = names->all[i];
    names->count = kept;
}

/* Reads {"key": ..., "until": "claimed"} of a post with so many messages. */
static enum status
read_unique(struct decoded_finish *f, const struct json_scan_value *value, size_t count,
            const struct store_unique **out)
{
    enum { KEY, UNTIL, UNIQUE_MEMBERS };

    static const char *const names[] = {"key", "until"};
    struct context *ctx = f->ctx;
    struct store_unique *unique = arena_alloc(ctx->req->arena, sizeof(*unique));
    struct json_scan_value m[UNIQUE_MEMBERS];
    struct bytes until = bytes_str("deleted");
    struct json_names seen;
    enum status st;

    if (unique == NULL)
        return ST_NO_MEMORY;
    if (json_members_read(value->text, names, UNIQUE_MEMBERS, m, &seen) != ST_OK ||
        bytes_present(seen.unknown) || m[KEY].kind != SCAN_STRING ||
        (!json_left_out(&m[UNTIL]) && m[UNTIL].kind != SCAN_STRING))
        return refuse_kind(f, "unique",
                           "an object with the members key and until, which are strings");
    *unique = (struct store_unique){.until_claimed = false};
    st = decode_string(&m[KEY], ctx->req->arena, &unique->key);
    if (st == ST_OK && !json_left_out(&m[UNTIL]))
        st = decode_string(&m[UNTIL], ctx->req->arena, &until);
    if (st != ST_OK)
        return st;
    unique->until_claimed = bytes_equal_str(until, "claimed");
    if (!unique->until_claimed && !bytes_equal_str(until, "deleted"))
        return context_refuse(ctx, ST_BAD_VALUE,
                              "until is \"%s\". It must be \"claimed\" or \"deleted\"",
                              received(until).text);
    if (count > 1)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "an item of post has %zu messages. With unique it must "
                              "have one",
                              count);
    *out = unique;
    return unique_key_check(ctx, "the key of unique", unique->key);
}

/* Reads {"queue": ..., "messages": [...], "unique": ...}. */
static enum status
read_post(struct decoded_finish *f, const struct json_scan_value *value)
{
    enum { QUEUE, MESSAGES, UNIQUE, POST_MEMBERS };

    static const char *const names[] = {"queue", "messages", "unique"};
    struct context *ctx = f->ctx;
    struct store_finish_post *p = &f->request.posts[f->request.post_count];
    struct json_scan_value m[POST_MEMBERS];
    const struct store_checksum *checksums;
    struct decoded_post decoded;
    const struct store_unique *unique = NULL;
    struct json_names seen;
    enum status st;

    if (json_members_read(value->text, names, POST_MEMBERS, m, &seen) != ST_OK ||
        bytes_present(seen.unknown) || m[QUEUE].kind != SCAN_STRING)
        return refuse_kind(f, "an item of post",
                           "an object with the members queue, messages and unique");
    *p = (struct store_finish_post){.pending = false};
    st = decode_string(&m[QUEUE], ctx->req->arena, &p->queue);
    if (st == ST_OK)
        st = context_check_name(ctx, p->queue);
    if (st == ST_OK)
        st = decode_post(value->text, POST_V2, ctx->limits, ctx->req->arena, &decoded,
                         ctx->why);
    if (st == ST_OK)
        st = post_checksums(ctx, &decoded, &checksums);
    if (st == ST_OK && !json_left_out(&m[UNIQUE]))
        st = read_unique(f, &m[UNIQUE], decoded.count, &unique);
    if (st != ST_OK)
        return st;
    drop_name(&decoded.unknown, bytes_str(names[QUEUE]));
    drop_name(&decoded.unknown, bytes_str(names[UNIQUE]));
    post_warn(ctx, POST_V2, &decoded.unknown);
    for (size_t i = 0; i < f->request.post_count; i++)
        if (bytes_equal(f->request.posts[i].queue, p->queue))
            return context_refuse(ctx, ST_BAD_VALUE,
                                  "post names the queue %.*s twice. Put all messages for "
                                  "a queue into one item",
                                  (int)p->queue.len, p->queue.data);
    p->ids = arena_array(ctx->req->arena, decoded.count, sizeof(*p->ids));
    if (p->ids == NULL)
        return ST_NO_MEMORY;
    p->post = (struct store_post){.drafts = decoded.drafts,
                                  .count = decoded.count,
                                  .client = ctx->client,
                                  .request_bytes = value->text.len,
                                  .create_queue = true,
                                  .checksums = checksums,
                                  .unique = unique};
    f->request.post_count++;
    return ST_OK;
}

static enum status
read_posts(struct decoded_finish *f)
{
    const struct json_scan_value *list = &f->members[POST];
    const size_t count = json_left_out(list) ? 0 : count_items(list);
    struct context *ctx = f->ctx;
    struct json_scan scan;
    enum status st = ST_OK;

    if (json_left_out(list))
        return ST_OK;
    if (list->kind != SCAN_ARRAY)
        return refuse_kind(f, "post", "an array");
    if (count > STORE_FINISH_POSTS)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "post has %zu items. The maximum is %d queues", count,
                              STORE_FINISH_POSTS);
    if (count > 0 &&
        atomic_load_explicit(&ctx->config->condition->closed, memory_order_relaxed))
        return context_refuse(ctx, ST_UNAVAILABLE,
                              "the server is in maintenance and accepts no posts");
    f->request.posts = arena_array(ctx->req->arena, count + 1, sizeof(*f->request.posts));
    if (f->request.posts == NULL)
        return ST_NO_MEMORY;
    json_scan_begin(&scan, list->text);
    (void)json_scan_enter(&scan, SCAN_ARRAY);
    while (st == ST_OK && json_scan_item(&scan)) {
        struct json_scan_value value;

        (void)json_scan_value(&scan, &value);
        st = read_post(f, &value);
    }
    return st;
}

static enum status
read_finish(struct decoded_finish *f)
{
    struct context *ctx = f->ctx;
    struct decoded_terms renewed;
    size_t items = 0;
    enum status st = context_body_within(ctx, ctx->limits->max_messages_post_size,
                                         "max_messages_post_size");

    if (st == ST_OK)
        st = context_read_members(ctx, member_names, MEMBERS, f->members);
    if (st == ST_OK)
        st = check_parts(f);
    if (st != ST_OK)
        return st;
    for (size_t i = DELETE; i <= DEAD_LETTER; i++)
        items += count_items(&f->members[i]);
    f->request.items = arena_array(ctx->req->arena, items + 1, sizeof(*f->request.items));
    if (f->request.items == NULL)
        return ST_NO_MEMORY;
    for (size_t i = DELETE; st == ST_OK && i <= DEAD_LETTER; i++)
        st = read_items(f, i);
    if (st == ST_OK)
        st = check_ids(f);
    if (st == ST_OK)
        st = read_posts(f);
    if (st == ST_OK && !json_left_out(&f->members[RENEW])) {
        st = decode_terms(f->members[RENEW].text, TERMS_RENEW, ctx->limits, &renewed,
                          ctx->why);
        f->terms = renewed.terms;
        f->request.renew = &f->terms;
    }
    if (st == ST_OK)
        st = context_read_flag(ctx, &f->members[ATOMIC], "atomic", &f->request.atomic);
    if (st != ST_OK)
        return st;
    if (f->request.count == 0 && f->request.post_count == 0 && f->request.renew == NULL)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "the body names no message, no post and no renewal");
    return ST_OK;
}

/* ------------------------------------------------------------------ responding */

/* Reserves all memory of the response, because nothing may fail afterwards. */
static enum status
reserve_response(struct decoded_finish *f)
{
    enum { RESULT = 64, FRAME = 256 };

    struct context *ctx = f->ctx;
    const struct bytes own = ctx->queue.name;
    size_t space = FRAME + f->request.count * (RESULT + STORE_ID_CAP);

    for (size_t i = 0; i < f->request.post_count; i++) {
        const struct store_finish_post *p = &f->request.posts[i];

        ctx->queue.name = p->queue;
        f->collections[i] = context_path(ctx, "/messages", BYTES_NONE);
        ctx->queue.name = own;
        if (f->collections[i] == NULL)
            return ST_NO_MEMORY;
        space += FRAME + p->queue.len +
                 p->post.count * (strlen(f->collections[i]) + STORE_ID_CAP + 8);
    }
    return buf_reserve(&ctx->res->body, space) ? ST_OK : ST_NO_MEMORY;
}

static void
write_results(struct decoded_finish *f, struct buf *out)
{
    static const char *const done[] = {[STORE_FINISH_DELETE] = "deleted",
                                       [STORE_FINISH_RELEASE] = "released",
                                       [STORE_FINISH_DEAD_LETTER] = "dead_lettered"};

    json_write_raw(out, "results", bytes_str("["));
    for (size_t i = 0; i < f->request.count; i++) {
        const struct store_finish_item *item = &f->request.items[i];

        buf_str(out, i == 0 ? "{" : ",{");
        json_write_text(out, "id", item->id);
        json_write_text(
            out, "result",
            bytes_str(
                !item->held
                    ? "not_held"
                    : done[item->exhausted ? STORE_FINISH_DEAD_LETTER : item->action]));
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

static void
write_posted(struct decoded_finish *f, struct buf *out)
{
    json_write_raw(out, "posted", bytes_str("["));
    for (size_t i = 0; i < f->request.post_count; i++) {
        const struct store_finish_post *p = &f->request.posts[i];

        buf_str(out, i == 0 ? "{" : ",{");
        json_write_text(out, "queue", p->queue);
        if (p->pending) {
            json_write_text(out, "posted", bytes_str("pending"));
            buf_byte(out, '}');
            continue;
        }
        if (p->existing)
            json_write_flag(out, "existing", true);
        json_write_raw(out, "resources", bytes_str("["));
        for (size_t k = 0; k < p->post.count; k++) {
            buf_str(out, k == 0 ? "\"" : ",\"");
            buf_str(out, f->collections[i]);
            buf_byte(out, '/');
            buf_bytes(out, store_id_bytes(&p->ids[k]));
            buf_byte(out, '"');
        }
        buf_str(out, "]}");
    }
    buf_byte(out, ']');
}

/* 409, with the ids of the messages that the claim does not hold. */
static enum status
write_not_held(struct decoded_finish *f)
{
    struct context *ctx = f->ctx;
    struct buf *out = &ctx->res->body;

    buf_byte(out, '{');
    json_write_text(out, "title", bytes_str("Resource conflict"));
    json_write_text(out, "description",
                    bytes_str("the claim does not hold these messages, so nothing has "
                              "changed"));
    json_write_raw(out, "not_held", bytes_str("["));
    for (size_t i = 0; i < f->request.count; i++) {
        if (f->request.items[i].held)
            continue;
        json_write_comma(out);
        json_string_write(out, f->request.items[i].id);
    }
    buf_str(out, "]}");
    return response_json(ctx, 409);
}

static enum status
refuse_finish(struct decoded_finish *f, enum status st)
{
    struct context *ctx = f->ctx;
    const struct bytes queue = f->request.failed_post < f->request.post_count
                                   ? f->request.posts[f->request.failed_post].queue
                                   : ctx->queue.name;
    struct store_queue target = ctx->queue;

    switch (st) {
    case ST_NOT_CLAIMED:
        return write_not_held(f);
    case ST_NOT_FOUND:
        return context_refuse_id(ctx, "claim", true);
    case ST_CONFLICT:
        return context_refuse(ctx, st,
                              "queue %.*s has no dead-letter queue (_dead_letter_queue)",
                              (int)queue.len, queue.data);
    case ST_TOO_LARGE:
        return context_refuse(ctx, st,
                              "the post to queue %.*s is larger than its "
                              "_max_messages_post_size allows",
                              (int)queue.len, queue.data);
    case ST_NEVER_READY:
        target.name = queue;
        return post_refuse_delay(ctx, &target,
                                 &f->request.posts[f->request.failed_post].post);
    case ST_PAUSED:
        return context_refuse(ctx, st, "posts to queue %.*s are paused", (int)queue.len,
                              queue.data);
    case ST_BEYOND_LOG:
        return context_refuse(
            ctx, st,
            "the request is too large for one write to the journal. The "
            "maximum is %zu bytes. Finish fewer messages at once",
            ctx->op.log_most);
    default:
        return st;
    }
}

/* Calls the store, and encrypts posts to queues that need it. */
static enum status
finish_in_store(struct decoded_finish *f)
{
    struct context *ctx = f->ctx;
    const struct bytes own = ctx->queue.name;
    enum status st = ST_NOT_SEALED;

    /* Each round encrypts one post. */
    for (size_t i = 0; st == ST_NOT_SEALED && i <= f->request.post_count; i++) {
        st = store_claim_finish(ctx->store, &ctx->op, &ctx->queue, &f->request);
        if (st != ST_NOT_SEALED)
            break;
        ctx->queue.name = f->request.posts[f->request.failed_post].queue;
        st = post_encrypt(ctx, &f->request.posts[f->request.failed_post].post);
        ctx->queue.name = own;
        if (st == ST_OK)
            st = ST_NOT_SEALED;
    }
    return st;
}

/* POST /claimd/queues/{queue}/claims/{id}/finish */
enum status
handle_claim_finish(struct context *ctx)
{
    struct decoded_finish f = {.ctx = ctx,
                               .request = {.claim_id = ctx->id, .atomic = true}};
    struct buf *out = &ctx->res->body;
    char *number = claim_number_reserve(ctx);
    enum status st;

    f.request.client = ctx->req->headers[API_HEADER_CLIENT_ID];
    if (f.request.client.len > STORE_CLIENT_MAX)
        f.request.client.len = STORE_CLIENT_MAX;
    st = read_finish(&f);
    if (st == ST_OK)
        st = context_set_base(ctx, version_v2.base, BYTES_NONE);
    if (st == ST_OK && number == NULL)
        st = ST_NO_MEMORY;
    if (st == ST_OK)
        st = reserve_response(&f);
    if (st == ST_OK)
        st = key_begin(ctx);
    if (st != ST_OK)
        return st;
    st = finish_in_store(&f);
    if (st != ST_OK)
        return refuse_finish(&f, st);
    buf_byte(out, '{');
    write_results(&f, out);
    if (f.request.post_count > 0)
        write_posted(&f, out);
    if (f.request.renew != NULL)
        json_write_flag(out, "renewed", f.request.number != 0);
    buf_byte(out, '}');
    if (f.request.number != 0)
        claim_number_add(ctx, number, f.request.number);
    key_mark_repeated(ctx);
    return response_json(ctx, 200);
}
