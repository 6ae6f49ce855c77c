/*
 * redrive: moves dead letters back to their queues or to another one (docs/api.md 25.3).
 * Declared in handlers.h. The store moves a slice in each call. handle_redrive() adds up
 * the results, and responds with what has moved even if a later slice fails.
 * Read store_redrive() in claimd/store/store.h next.
 */
#include "api/handlers/handlers.h"
#include "api/response.h"
#include "api/wire/decode.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <stdlib.h>

enum { REDRIVE_MOST = 1000, TARGETS_MOST = 64 };

enum { TO, LIMIT, DRY_RUN, RESET, IDS, MEMBERS };

static const char *const member_names[MEMBERS] = {"to", "limit", "dry_run", "reset",
                                                  "ids"};

/* The result of all slices. */
struct totals {
    size_t moved, unknown_origin, key_held;
    uint64_t remaining;
    struct target {
        struct bytes name; /* from the arena */
        size_t count;
    } targets[TARGETS_MOST];
    size_t target_count;
};

/* ------------------------------------------------------------------ reading */

/* Reads "origin", a queue name, or {"queue": NAME}. */
static enum status
read_target(struct context *ctx, const struct json_scan_value *value, struct bytes *out)
{
    struct json_scan_value name = *value;
    enum status st;

    if (json_left_out(value))
        return ST_OK;
    if (value->kind == SCAN_OBJECT)
        name = json_member(value->text, "queue");
    if (name.kind != SCAN_STRING)
        return context_refuse(ctx, ST_BAD_BODY,
                              "to is %s. It must be \"origin\", the name of a queue, or "
                              "an object with the member queue",
                              json_received(value).text);
    st = decode_string(&name, ctx->req->arena, out);
    if (st != ST_OK)
        return st;
    if (value->kind == SCAN_STRING && bytes_equal_str(*out, "origin")) {
        *out = BYTES_NONE;
        return ST_OK;
    }
    return context_check_name(ctx, *out);
}

/* By text, then in the order of the list. */
static int
compare_ids(const void *a, const void *b)
{
    const struct bytes *x = *(const struct bytes *const *)a;
    const struct bytes *y = *(const struct bytes *const *)b;
    const int order = bytes_compare(*x, *y);

    return order != 0 ? order : x < y ? -1 : x > y;
}

/* Drops repeated ids, because the dry run of a store counts each. O(n log n).
 * ST_NO_MEMORY. */
static enum status
drop_repeated_ids(struct arena *arena, struct bytes *ids, size_t *count)
{
    struct bytes **sorted = arena_array(arena, *count + 1, sizeof(*sorted));
    size_t kept = 0;

    if (sorted == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < *count; i++)
        sorted[i] = &ids[i];
    qsort(sorted, *count, sizeof(*sorted), compare_ids);
    for (size_t i = *count; i > 1; i--)
        if (bytes_equal(*sorted[i - 2], *sorted[i - 1]))
            *sorted[i - 1] = BYTES_NONE;
    for (size_t i = 0; i < *count; i++)
        if (bytes_present(ids[i]))
            ids[kept++] = ids[i];
    *count = kept;
    return ST_OK;
}

static enum status
read_ids(struct context *ctx, const struct json_scan_value *list,
         struct store_redrive *out)
{
    enum status st = ST_OK;
    struct json_scan scan;
    struct bytes *ids;

    if (json_left_out(list))
        return ST_OK;
    json_scan_begin(&scan, list->text);
    if (!json_scan_enter(&scan, SCAN_ARRAY))
        return context_refuse(ctx, ST_BAD_BODY, "ids must be an array of strings");
    ids = arena_array(ctx->req->arena, REDRIVE_MOST, sizeof(*ids));
    if (ids == NULL)
        return ST_NO_MEMORY;
    while (st == ST_OK && json_scan_item(&scan)) {
        struct json_scan_value value;

        (void)json_scan_value(&scan, &value);
        if (value.kind != SCAN_STRING)
            return context_refuse(ctx, ST_BAD_BODY, "ids must be an array of strings");
        if (out->id_count == REDRIVE_MOST)
            return context_refuse(ctx, ST_BAD_VALUE,
                                  "ids has more than %d messages. That is the maximum",
                                  REDRIVE_MOST);
        st = decode_string(&value, ctx->req->arena, &ids[out->id_count]);
        out->id_count += st == ST_OK;
    }
    out->ids = ids;
    return st == ST_OK ? drop_repeated_ids(ctx->req->arena, ids, &out->id_count) : st;
}

static enum status
read_redrive(struct context *ctx, struct store_redrive *out)
{
    const struct integer_range range = {1, REDRIVE_MOST, "the maximum of a request"};
    struct json_scan_value m[MEMBERS] = {{SCAN_NONE, BYTES_NONE}};
    int64_t limit = REDRIVE_MOST;
    bool reset = true;
    enum status st = context_read_body(ctx);

    if (st == ST_OK && ctx->req->body.len > 0)
        st = context_read_members(ctx, member_names, MEMBERS, m);
    if (st != ST_OK)
        return st;
    st = decode_integer(&m[LIMIT], &range, &limit);
    if (st != ST_OK)
        return integer_refuse(ctx->why, st, "limit", &m[LIMIT], &range);
    out->limit = (size_t)limit;
    st = read_target(ctx, &m[TO], &out->to);
    if (st == ST_OK)
        st = context_read_flag(ctx, &m[DRY_RUN], "dry_run", &out->dry_run);
    if (st == ST_OK)
        st = context_read_flag(ctx, &m[RESET], "reset", &reset);
    out->keeps_count = !reset;
    return st == ST_OK ? read_ids(ctx, &m[IDS], out) : st;
}

/* ------------------------------------------------------------------ responding */

/* Adds a slice to the result. False: the result has no space for another target, or there
 * is no memory for the name of this one. */
static bool
add_slice(struct context *ctx, struct totals *t, const struct store_redriven *slice)
{
    size_t i = 0;

    t->moved += slice->moved; /* also if the result cannot say where to */
    t->unknown_origin += slice->unknown_origin;
    t->key_held += slice->key_held;
    t->remaining = slice->remaining;
    if (slice->moved == 0)
        return true;
    while (i < t->target_count && !bytes_equal(t->targets[i].name, slice->target))
        i++;
    if (i == t->target_count) {
        char *copy = arena_alloc(ctx->req->arena, slice->target.len + 1);

        if (copy == NULL)
            return false;
        memcpy(copy, slice->target.data, slice->target.len);
        t->targets[i].name = bytes_of(copy, slice->target.len);
        t->targets[i].count = 0;
        t->target_count++;
    }
    t->targets[i].count += slice->moved;
    return t->target_count < TARGETS_MOST;
}

static enum status
write_result(struct context *ctx, const struct totals *t,
             const struct store_redrive *which)
{
    struct buf *out = &ctx->res->body;

    buf_byte(out, '{');
    json_write_u64(out, "moved", t->moved);
    json_write_u64(out, "remaining",
                   which->dry_run ? t->remaining - t->moved : t->remaining);
    json_write_u64(out, "without_origin", t->unknown_origin);
    json_write_u64(out, "key_held", t->key_held);
    json_write_raw(out, "by_target", bytes_str("{"));
    for (size_t i = 0; i < t->target_count; i++) {
        json_write_comma(out);
        json_string_write(out, t->targets[i].name);
        buf_byte(out, ':');
        buf_u64(out, t->targets[i].count);
    }
    buf_str(out, "}}");
    return response_json(ctx, 200);
}

/* POST /claimd/queues/{queue}/redrive */
enum status
handle_redrive(struct context *ctx)
{
    enum { RESPONSE = 1024 + TARGETS_MOST * (STORE_METRICS_NAME + 32) };

    struct store_redrive which = {.to = BYTES_NONE};
    struct totals t = {.moved = 0};
    struct store_redriven slice = {.more = true};
    enum status st = read_redrive(ctx, &which);
    const size_t limit = which.limit;

    if (st == ST_OK && !buf_reserve(&ctx->res->body, RESPONSE))
        st = ST_NO_MEMORY;
    while (st == ST_OK && slice.more && t.moved < limit) {
        which.limit = limit - t.moved;
        st = store_redrive(ctx->store, &ctx->op, &ctx->queue, &which, &slice);
        if (st == ST_OK && !add_slice(ctx, &t, &slice))
            break;
    }
    if (st != ST_OK && t.moved > 0) /* the response says how far it came */
        st = ST_OK;
    if (st == ST_NOT_FOUND)
        return context_refuse_queue(ctx);
    if (st == ST_CONFLICT)
        return context_refuse(
            ctx, st, "queue %.*s is the source. Dead letters cannot go back to it",
            (int)ctx->queue.name.len, ctx->queue.name.data);
    return st == ST_OK ? write_result(ctx, &t, &which) : st;
}
