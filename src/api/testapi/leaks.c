/*
 * leaks: finds messages and claims that tests have left behind (docs/api.md 23.8).
 * Declared in handlers.h. It checks queue after queue, in slices.
 */
#include "api/response.h"
#include "api/testapi/handlers.h"
#include "api/wire/query.h"
#include "claimd/api/dump.h"
#include "claimd/json/string.h"
#include "claimd/testapi/history.h"

/* Messages and listings that one response checks; messages of a listing. */
enum { CHECKS_MOST = 10000, LISTING = 64 };

/* The progress and the results of a page. */
struct scan {
    struct context *ctx;
    struct bytes only; /* the project; absent: all */
    struct dump walk;
    struct store_queue at;  /* absent name: before the first queue */
    struct store_id behind; /* the last message that was checked */
    struct leak *found;
    size_t count, limit, checked;
    struct store_id claim; /* the last one that was checked */
    bool ended;            /* there are no more queues */
};

/* ------------------------------------------------------------------ leaks */

static struct leak *
add_leak(struct scan *s, enum leak_kind kind, struct store_id id, int64_t age_s)
{
    struct leak *leak = &s->found[s->count++];

    *leak = (struct leak){.kind = kind,
                          .queue = s->at,
                          .id = id,
                          .at_ms = s->ctx->op.now_ms - age_s * 1000};
    return leak;
}

/* Adds a claim at its oldest message, so once. */
static enum status
check_claim(struct scan *s, const struct store_message *m)
{
    struct store_batch claimed = STORE_BATCH_INIT;
    struct bytes id = store_id_bytes(&m->claim_id);
    enum status st;

    if (bytes_equal(id, store_id_bytes(&s->claim)))
        return ST_OK;
    s->claim = m->claim_id;
    st = store_claim_get(s->ctx->store, &s->ctx->op, &s->at, id, &claimed);
    if (st == ST_OK && claimed.count > 0 &&
        bytes_equal(store_id_bytes(&claimed.messages[0].id), store_id_bytes(&m->id)))
        add_leak(s, LEAK_CLAIM, m->claim_id, claimed.claim_age_s)->messages =
            claimed.count;
    store_batch_release(&claimed);
    return st == ST_NOT_FOUND ? ST_OK : st; /* it may have ended meanwhile */
}

/* ------------------------------------------------------------------ the walk */

static bool
is_full(const struct scan *s)
{
    return s->count == s->limit || s->checked >= CHECKS_MOST;
}

/* The store ends a slice: what was checked is a page. Otherwise the request is called
 * again. */
static enum status
end_slice(struct scan *s, const struct store_batch *batch)
{
    struct progress *p = s->ctx->progress;

    if (s->checked > 0) {
        s->checked = CHECKS_MOST;
        return ST_OK;
    }
    if (s->at.name.len > sizeof(p->name))
        return ST_AGAIN;
    memcpy(p->name, s->at.name.data, s->at.name.len);
    p->name_len = s->at.name.len;
    memcpy(p->resume, batch->resume, sizeof(p->resume));
    return ST_AGAIN;
}

/* Checks some messages of the queue. *end: there are no more. */
static enum status
check_some(struct scan *s, bool *end)
{
    const size_t left = s->limit - s->count;
    const struct store_filter filter = {.marker = store_id_bytes(&s->behind),
                                        .limit = left < LISTING ? left : LISTING,
                                        .include_claimed = true,
                                        .include_delayed = true};
    const struct progress *p = s->ctx->progress;
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st;

    /* Only the first listing of a page continues where the store has ended its slice. */
    if (s->checked == 0 && bytes_equal(s->at.name, bytes_of(p->name, p->name_len)))
        memcpy(batch.resume, p->resume, sizeof(batch.resume));
    st = store_message_list(s->ctx->store, &s->ctx->op, &s->at, &filter, &batch);
    if (st == ST_AGAIN)
        return end_slice(s, &batch);
    for (size_t i = 0; i < batch.count && st == ST_OK; i++) {
        const struct store_message *m = &batch.messages[i];

        if (m->claim_id.text[0] != '\0')
            st = check_claim(s, m);
        else if (m->claim_count == 0)
            (void)add_leak(s, LEAK_UNREAD, m->id, m->age_s);
    }
    s->checked += batch.count + 1;
    *end = batch.count == 0;
    if (batch.count > 0)
        s->behind = batch.next;
    store_batch_release(&batch);
    return st;
}

static enum status
check_queue(struct scan *s)
{
    enum status st = ST_OK;
    bool end = false;

    while (st == ST_OK && !end && !is_full(s))
        st = check_some(s, &end);
    return st;
}

/* Goes to the next queue, and copies its names for the leaks in it. */
static enum status
go_to_next_queue(struct scan *s)
{
    struct context *ctx = s->ctx;
    enum status st = dump_next(ctx->store, &ctx->op, s->only, &s->walk);
    struct store_queue queue = dump_queue(&s->walk);

    s->behind = (struct store_id){""};
    s->ended = s->walk.done || queue.kind != STORE_QUEUE;
    s->at.project = arena_copy(ctx->req->arena, queue.project);
    s->at.name = arena_copy(ctx->req->arena, queue.name);
    if (st == ST_OK && (!bytes_present(s->at.project) || !bytes_present(s->at.name)))
        st = ST_NO_MEMORY;
    return st;
}

static enum status
check_queues(struct scan *s)
{
    enum status st = ST_OK;

    if (bytes_present(s->at.name))
        st = check_queue(s);
    while (st == ST_OK && !s->ended && !is_full(s)) {
        st = go_to_next_queue(s);
        if (st == ST_OK && !s->ended)
            st = check_queue(s);
    }
    return st;
}

/* ------------------------------------------------------------------ the response */

static void
write_text(struct buf *out, const char *name, struct bytes value)
{
    if (bytes_present(value))
        json_write_text(out, name, value);
    else
        json_write_raw(out, name, bytes_str("null"));
}

static void
write_leak(struct buf *out, const struct leak *leak)
{
    buf_byte(out, '{');
    json_write_text(out, "kind", bytes_str(leak_kind_names[leak->kind]));
    write_text(out, "project", leak->queue.project);
    write_text(out, "queue", leak->queue.name);
    if (leak->kind == LEAK_DEAD_LETTER)
        write_text(out, "from", leak->from);
    write_text(out, leak->kind == LEAK_CLAIM ? "claim" : "id", store_id_bytes(&leak->id));
    if (leak->kind == LEAK_CLAIM)
        json_write_u64(out, "messages", leak->messages);
    write_text(out, "client", leak->client);
    json_write_time(out, "at", leak->at_ms);
    json_write_i64(out, "at_ms", leak->at_ms);
    buf_byte(out, '}');
}

/* The marker is "jobs/52a9.../project". The names of queues and ids have no slash. */
static enum status
write_next_page(const struct scan *s)
{
    struct context *ctx = s->ctx;
    struct bytes marker = arena_printf(
        ctx->req->arena, "%.*s/%s/%.*s", (int)s->at.name.len, s->at.name.data,
        s->behind.text, (int)s->at.project.len, s->at.project.data);
    struct next_page next;

    if (!bytes_present(marker))
        return ST_NO_MEMORY;
    next_page_begin(&next, &ctx->res->body, bytes_str("/claimd/leaks"));
    if (bytes_present(s->only))
        next_page_text(&next, bytes_str("project"), s->only);
    next_page_number(&next, "limit", s->limit);
    next_page_text(&next, bytes_str("marker"), marker);
    next_page_end(&next);
    return ST_OK;
}

static enum status
respond_found(const struct scan *s)
{
    struct buf *out = &s->ctx->res->body;
    enum status st = ST_OK;

    buf_str(out, "{\"leaks\":[");
    for (size_t i = 0; i < s->count; i++) {
        if (s->found[i].kind == LEAK_NONE)
            continue;
        json_write_comma(out);
        write_leak(out, &s->found[i]);
    }
    buf_byte(out, ']');
    if (!s->ended)
        st = write_next_page(s);
    buf_byte(out, '}');
    return st == ST_OK ? response_json(s->ctx, 200) : st;
}

static enum status
refuse_marker(struct context *ctx)
{
    return context_refuse(ctx, ST_BAD_PARAMETER,
                          "the parameter marker must be from the next link of a page");
}

static enum status
read_marker(struct scan *s)
{
    struct bytes rest = query_get(&s->ctx->query, "marker"), id;

    if (!bytes_present(rest))
        return ST_OK;
    if (memchr(rest.data, '/', rest.len) == NULL)
        return refuse_marker(s->ctx);
    s->at.name = bytes_cut(&rest, '/');
    if (s->at.name.len == 0 || memchr(rest.data, '/', rest.len) == NULL)
        return refuse_marker(s->ctx);
    id = bytes_cut(&rest, '/');
    if (id.len >= sizeof(s->behind.text))
        return refuse_marker(s->ctx);
    memcpy(s->behind.text, id.data, id.len);
    s->at.project = bytes_present(rest) ? rest : bytes_str("");
    if ((bytes_present(s->only) && !bytes_equal(s->only, s->at.project)) ||
        s->at.project.len > DUMP_PROJECT || s->at.name.len > DUMP_NAME)
        return refuse_marker(s->ctx);
    s->walk = (struct dump){.in_project = true,
                            .behind_queue = true,
                            .project_len = s->at.project.len,
                            .name_len = s->at.name.len};
    memcpy(s->walk.project, s->at.project.data, s->at.project.len);
    memcpy(s->walk.name, s->at.name.data, s->at.name.len);
    return ST_OK;
}

/* GET /claimd/leaks */
enum status
handle_leaks(struct context *ctx)
{
    struct scan s = {.ctx = ctx, .only = testapi_project(ctx), .limit = TESTAPI_PAGE};
    enum status st =
        context_read_limit(ctx, "limit", TESTAPI_PAGE_MOST, "fixed", &s.limit);

    if (st == ST_OK)
        st = read_marker(&s);
    if (st != ST_OK)
        return st;
    s.found = arena_array(ctx->req->arena, s.limit, sizeof(*s.found));
    if (s.found == NULL)
        return ST_NO_MEMORY;
    st = check_queues(&s);
    if (st == ST_OK)
        st = leak_look_up(testapi_history(ctx->config->testapi), ctx->req->arena, s.found,
                          s.count);
    return st == ST_OK ? respond_found(&s) : st;
}
