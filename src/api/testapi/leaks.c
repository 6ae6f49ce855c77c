/*
 * leaks: finds messages and claims that tests have left behind (docs/api.md 23.8).
 * Declared in handlers.h. A listing begins with those that the store no longer has
 * (claimd/testapi/leaks.h). Then it checks queue after queue, in slices.
 */
#include "api/response.h"
#include "api/testapi/handlers.h"
#include "api/wire/query.h"
#include "claimd/api/dump.h"
#include "claimd/json/string.h"

#include <inttypes.h>

/* Messages and listings that one response checks; messages of a listing. */
enum { CHECKS_MOST = 10000, LISTING = 64 };

/* Leaks of a queue that a reset looks up at a time. */
enum { KEEPS_MOST = 256 };

/* The progress and the results of a page. */
struct scan {
    struct context *ctx;
    struct bytes only; /* the project; absent: all */
    struct dump walk;
    struct store_queue at;  /* absent name: before the first queue */
    struct store_id behind; /* the last message that was checked */
    struct leak *found;
    size_t past_count; /* the first ones: the store no longer has them */
    uint64_t past;     /* the number of the last of these */
    bool past_ended;   /* there are no more of these */
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

/* ------------------------------------------------------------------ past leaks */

static bool
copy_past(void *arg, uint64_t number, const struct leak *leak)
{
    struct scan *s = arg;
    struct arena *arena = s->ctx->req->arena;
    struct leak copy = *leak;

    if (bytes_present(s->only) && !bytes_equal(s->only, leak->queue.project))
        return true;
    s->past_ended = s->count < s->limit;
    if (!s->past_ended)
        return false;
    copy.queue.project = arena_copy(arena, leak->queue.project);
    copy.queue.name = arena_copy(arena, leak->queue.name);
    copy.client = arena_copy(arena, leak->client);
    copy.from = arena_copy(arena, leak->from);
    s->found[s->count++] = copy;
    s->past = number;
    return true;
}

/* Copies the leaks that the store no longer has. Texts for which there is no memory are
 * absent. */
static enum status
read_past(struct scan *s)
{
    struct leaks *leaks = testapi_leaks(s->ctx->config->testapi);
    enum status st =
        leaks_settle(leaks, testapi_history(s->ctx->config->testapi), s->ctx->req->arena);

    if (st != ST_OK || s->past_ended)
        return st;
    s->past_ended = true;
    leaks_read(leaks, s->past, copy_past, s);
    s->past_count = s->count;
    return ST_OK;
}

enum status
testapi_read_forget(struct context *ctx, bool *forget)
{
    struct bytes text = query_get(&ctx->query, "leaks");

    *forget = bytes_equal_str(text, "forget");
    if (*forget || !bytes_present(text))
        return ST_OK;
    return context_refuse(ctx, ST_BAD_PARAMETER,
                          "the parameter leaks is \"%s\". It must be forget",
                          received(text).text);
}

/* Looks up what was found, and records what leaked. */
static enum status
keep_found(struct scan *s)
{
    struct context *ctx = s->ctx;
    struct testapi *testapi = ctx->config->testapi;
    struct arena arena;
    enum status st;

    arena_init(&arena, ctx->config->mem);
    st = leak_look_up(testapi_history(testapi), &arena, s->found, s->count);
    for (size_t i = 0; st == ST_OK && i < s->count; i++) {
        s->found[i].end = LEAK_END_RESET;
        s->found[i].ended_ms = ctx->op.now_ms;
        if (s->found[i].kind != LEAK_NONE)
            leaks_add(testapi_leaks(testapi), &s->found[i]);
    }
    arena_fini(&arena);
    s->count = 0;
    return st;
}

enum status
testapi_keep_leaks(struct context *ctx, const struct store_queue *queue)
{
    struct progress *p = ctx->progress;
    struct scan s = {.ctx = ctx, .at = *queue, .limit = KEEPS_MOST};
    enum status st = ST_OK;
    bool end = queue->kind != STORE_QUEUE;

    if (end)
        return ST_OK;
    s.found = mem_calloc(ctx->config->mem, s.limit, sizeof(*s.found));
    if (s.found == NULL)
        return ST_NO_MEMORY;
    while (!end && (st == ST_OK || st == ST_AGAIN)) {
        if (st == ST_OK)
            p->name_len = 0; /* the next listing is a new one */
        s.checked = 0;
        st = check_some(&s, &end);
        if (st == ST_OK && (end || s.count == s.limit))
            st = keep_found(&s);
    }
    p->name_len = 0;
    mem_free(ctx->config->mem, s.found);
    return st;
}

enum status
testapi_keep_all_leaks(struct context *ctx, struct bytes project)
{
    struct dump walk = {.begun = false};
    enum status st = ST_OK;

    while (st == ST_OK) {
        struct store_queue queue;

        st = dump_next(ctx->store, &ctx->op, project, &walk);
        if (walk.done)
            break;
        queue = dump_queue(&walk);
        if (st == ST_OK)
            st = testapi_keep_leaks(ctx, &queue);
    }
    return st;
}

/* ------------------------------------------------------------------ the response */

static void
write_leak(struct buf *out, const struct leak *leak)
{
    buf_byte(out, '{');
    json_write_text(out, "kind", bytes_str(leak_kind_names[leak->kind]));
    json_write_text_or_null(out, "project", leak->queue.project);
    json_write_text_or_null(out, "queue", leak->queue.name);
    if (leak->kind == LEAK_DEAD_LETTER)
        json_write_text_or_null(out, "from", leak->from);
    json_write_text_or_null(out, leak->kind == LEAK_CLAIM ? "claim" : "id",
                            store_id_bytes(&leak->id));
    if (leak->kind == LEAK_CLAIM)
        json_write_u64(out, "messages", leak->messages);
    json_write_text_or_null(out, "client", leak->client);
    json_write_time(out, "at", leak->at_ms);
    json_write_i64(out, "at_ms", leak->at_ms);
    if (leak->end != LEAK_END_NONE) {
        json_write_text(out, "ended_by", bytes_str(leak_end_names[leak->end]));
        json_write_time(out, "ended_at", leak->ended_ms);
        json_write_i64(out, "ended_at_ms", leak->ended_ms);
    }
    buf_byte(out, '}');
}

/* The marker is "jobs/52a9.../project", or "17" behind a leak that the store no longer
 * has. The names of queues and ids have no slash. */
static enum status
write_next_page(const struct scan *s)
{
    struct context *ctx = s->ctx;
    struct bytes marker =
        bytes_present(s->at.name)
            ? arena_printf(ctx->req->arena, "%.*s/%s/%.*s", (int)s->at.name.len,
                           s->at.name.data, s->behind.text, (int)s->at.project.len,
                           s->at.project.data)
            : arena_printf(ctx->req->arena, "%" PRIu64, s->past);
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
    const bool first = !bytes_present(query_get(&s->ctx->query, "marker"));
    const uint64_t left_out = first && !bytes_present(s->only)
                                  ? leaks_left_out(testapi_leaks(s->ctx->config->testapi))
                                  : 0;
    enum status st = ST_OK;

    buf_str(out, "{\"leaks\":[");
    for (size_t i = 0; i < s->count; i++) {
        if (s->found[i].kind == LEAK_NONE)
            continue;
        json_write_comma(out);
        write_leak(out, &s->found[i]);
    }
    buf_byte(out, ']');
    if (left_out > 0)
        json_write_u64(out, "left_out", left_out);
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
    int64_t number;

    if (!bytes_present(rest))
        return ST_OK;
    if (bytes_to_i64(rest, &number) && number >= 0) {
        s->past = (uint64_t)number;
        return ST_OK;
    }
    s->past_ended = true;
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
    st = read_past(&s);
    if (st == ST_OK && s.past_ended)
        st = check_queues(&s);
    if (st == ST_OK)
        st = leak_look_up(testapi_history(ctx->config->testapi), ctx->req->arena,
                          s.found + s.past_count, s.count - s.past_count);
    return st == ST_OK ? respond_found(&s) : st;
}
