/*
 * history: shows the history, and waits for expectations on queues (docs/api.md 23.5,
 * 23.6). Declared in handlers.h, with what the other handlers of this folder share. The
 * entries are in claimd/testapi/history.h.
 */
#include "api/response.h"
#include "api/testapi/handlers.h"
#include "api/wire/query.h"
#include "claimd/base/clock.h"
#include "claimd/json/string.h"

#include <inttypes.h>

/* ------------------------------------------------------------------ shared */

enum status
testapi_read_body(struct context *ctx, json_t **out)
{
    enum status st = context_read_body(ctx);

    if (st != ST_OK)
        return st;
    st = json_tree_read(ctx->req->body, out);
    if (st == ST_BAD_BODY)
        return json_tree_refuse(ctx->req->body, ctx->why);
    if (st == ST_OK && !json_is_object(*out)) {
        json_decref(*out);
        return context_refuse(ctx, ST_BAD_BODY, "the body must be an object");
    }
    return st;
}

struct bytes
testapi_project(const struct context *ctx)
{
    struct bytes named = query_get(&ctx->query, "project");

    return bytes_present(named) ? named : ctx->req->headers[API_HEADER_PROJECT_ID];
}

/* ------------------------------------------------------------------ history */

/* Appends an entry as an object. */
static void
history_write(struct buf *out, const struct history_entry *e)
{
    buf_byte(out, '{');
    json_write_u64(out, "number", e->number);
    json_write_text(out, "event", bytes_str(history_event_names[e->event]));
    json_write_time(out, "at", e->at_ms);
    json_write_i64(out, "at_ms", e->at_ms);
    if (bytes_present(e->queue.name)) {
        json_write_text(out, "project", e->queue.project);
        json_write_text(out, e->queue.kind == STORE_TOPIC ? "topic" : "queue",
                        e->queue.name);
        if (e->event == HISTORY_DEAD_LETTER)
            json_write_text(out, "to", e->target.name);
    }
    json_write_text(out, "client", e->client);
    json_write_text(out, "action", bytes_str(e->action));
    json_write_text(out, "claim", e->claim);
    if (e->ends_ms != 0)
        json_write_i64(out, "ends_ms", e->ends_ms);
    if (e->status != 0)
        json_write_i64(out, "status", e->status);
    json_write_text(out, "text", e->text);
    if (e->count > 0) {
        json_write_u64(out, "messages", e->count);
        json_write_list(out, "ids", e->ids, ' ');
    }
    buf_byte(out, '}');
}

/* Reads a comma-separated list of events into a set of bits. False: an unknown name. */
static bool
history_read_events(struct bytes text, uint32_t *out)
{
    uint32_t set = 0;

    while (bytes_present(text)) {
        struct bytes name = bytes_trim(bytes_cut(&text, ','));
        unsigned i = 0;

        while (i < HISTORY_EVENTS && !bytes_equal_str(name, history_event_names[i]))
            i++;
        if (i == HISTORY_EVENTS)
            return false;
        set |= UINT32_C(1) << i;
    }
    *out = set;
    return true;
}

static bool
write_entry(void *arg, const struct history_entry *e)
{
    struct testapi_page *page = arg;

    if ((page->events & UINT32_C(1) << e->event) == 0 ||
        (bytes_present(page->project) && bytes_present(e->queue.project) &&
         !bytes_equal(page->project, e->queue.project)) ||
        (bytes_present(page->queue) && !bytes_equal(page->queue, e->queue.name) &&
         !bytes_equal(page->queue, e->target.name)))
        return true;
    page->more = page->count == page->limit;
    if (page->more)
        return false;
    if (page->count++ > 0)
        buf_byte(page->out, ',');
    history_write(page->out, e);
    page->last = e->number;
    return true;
}

/* The names of a set of events, as a parameter has them. Absent without memory. */
static struct bytes
name_events(struct arena *arena, uint32_t events)
{
    struct bytes text = bytes_str("");

    for (unsigned i = 0; i < HISTORY_EVENTS && bytes_present(text); i++)
        if ((events & UINT32_C(1) << i) != 0)
            text = arena_printf(arena, "%.*s%s%s", (int)text.len, text.data,
                                text.len > 0 ? "," : "", history_event_names[i]);
    return text;
}

void
testapi_write_page(struct context *ctx, struct testapi_page *page)
{
    struct next_page next;

    buf_byte(page->out, '[');
    history_read(testapi_history(ctx->config->testapi), page->since, write_entry, page);
    buf_byte(page->out, ']');
    if (!page->more)
        return;
    next_page_begin(&next, page->out, bytes_str("/claimd/history"));
    next_page_number(&next, "since", page->last);
    next_page_number(&next, "limit", page->limit);
    if (page->events != UINT32_MAX)
        next_page_text(&next, bytes_str("event"),
                       name_events(ctx->req->arena, page->events));
    if (bytes_present(page->project))
        next_page_text(&next, bytes_str("project"), page->project);
    if (bytes_present(page->queue))
        next_page_text(&next, bytes_str("queue"), page->queue);
    next_page_end(&next);
}

/* Reads a number of at least 0. If it is absent, *out stays. */
static enum status
read_count(struct context *ctx, const char *name, int64_t *out)
{
    int64_t number = 0;
    enum status st = query_i64(&ctx->query, name, &number);

    if (st == ST_OK && number >= 0) {
        if (bytes_present(query_get(&ctx->query, name)))
            *out = number;
        return ST_OK;
    }
    return st == ST_NO_MEMORY
               ? st
               : context_refuse(
                     ctx, ST_BAD_PARAMETER,
                     "the parameter %s is \"%s\". It must be an integer of at least 0",
                     name, received(query_get(&ctx->query, name)).text);
}

/* GET /claimd/history */
enum status
handle_history(struct context *ctx)
{
    struct history *h = testapi_history(ctx->config->testapi);
    struct testapi_page page = {.out = &ctx->res->body,
                                .events = UINT32_MAX,
                                .project = testapi_project(ctx),
                                .queue = query_get(&ctx->query, "queue"),
                                .limit = TESTAPI_PAGE};
    struct bytes events = query_get(&ctx->query, "event");
    int64_t since = 0;
    enum status st =
        context_read_limit(ctx, "limit", TESTAPI_PAGE_MOST, "fixed", &page.limit);

    if (st == ST_OK)
        st = read_count(ctx, "since", &since);
    if (st != ST_OK)
        return st;
    if (bytes_present(events) && !history_read_events(events, &page.events)) {
        const struct bytes allowed = name_events(ctx->req->arena, UINT32_MAX);

        return context_refuse(
            ctx, ST_BAD_PARAMETER,
            "the parameter event is \"%s\". It must be a comma-separated list of %.*s",
            received(events).text, (int)allowed.len, allowed.data);
    }
    page.since = (uint64_t)since;
    buf_printf(page.out,
               "{\"last\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"history\":", history_last(h),
               history_lost(h));
    testapi_write_page(ctx, &page);
    buf_byte(page.out, '}');
    return response_json(ctx, 200);
}

/* ------------------------------------------------------------------ expectations */

/* The expected numbers of a queue; STORE_UNSET: any. */
struct expected {
    int64_t messages, claimed, free, wait_s;
};

static enum status
read_expected(struct context *ctx, struct expected *out)
{
    enum status st;

    *out = (struct expected){STORE_UNSET, STORE_UNSET, STORE_UNSET, 0};
    st = read_count(ctx, "messages", &out->messages);
    if (st == ST_OK)
        st = read_count(ctx, "claimed", &out->claimed);
    if (st == ST_OK)
        st = read_count(ctx, "free", &out->free);
    if (st == ST_OK)
        st = read_count(ctx, "wait", &out->wait_s);
    if (st != ST_OK)
        return st;
    if (out->messages == STORE_UNSET && out->claimed == STORE_UNSET &&
        out->free == STORE_UNSET)
        return context_refuse(ctx, ST_BAD_PARAMETER,
                              "the query is \"%s\". It must have at least one of "
                              "messages, claimed and free",
                              received(ctx->req->query).text);
    if (out->wait_s > ctx->limits->max_wait)
        out->wait_s = ctx->limits->max_wait;
    return ST_OK;
}

static bool
is_met(int64_t expected, uint64_t found)
{
    return expected == STORE_UNSET || (uint64_t)expected == found;
}

/* If the request may wait, has each entry of the history notify it. False: it must not
 * wait. */
static bool
watch_history(struct context *ctx, const struct expected *wanted)
{
    struct waiting *waiting = ctx->req->waiting;

    if (waiting == NULL || wanted->wait_s == 0 || waiting->end != WAITING_ON)
        return false;
    if (waiting->watched == NULL) {
        waiting->watched = testapi_history(ctx->config->testapi);
        history_watch(waiting->watched, &waiting->listener);
        waiting->wait_ms = wanted->wait_s * 1000;
    }
    return true;
}

/* GET /claimd/expect */
enum status
handle_expect(struct context *ctx)
{
    struct bytes project = testapi_project(ctx);
    struct expected wanted;
    struct store_stats found;
    enum status st = read_expected(ctx, &wanted);
    bool waits;

    if (st != ST_OK)
        return st;
    ctx->queue.name = query_get(&ctx->query, "queue");
    ctx->queue.project = bytes_present(project) ? project : bytes_str("");
    if (!bytes_present(ctx->queue.name))
        return context_refuse(ctx, ST_BAD_PARAMETER, "the parameter queue is required");
    /* Before the check, so that no change is missed. */
    waits = watch_history(ctx, &wanted);
    st = store_queue_stats(ctx->store, &ctx->op, &ctx->queue, &found);
    if (st != ST_OK && st != ST_NOT_FOUND)
        return st;
    if (is_met(wanted.messages, found.total) && is_met(wanted.claimed, found.claimed) &&
        is_met(wanted.free, found.total - found.claimed)) {
        buf_printf(&ctx->res->body,
                   "{\"messages\":%" PRIu64 ",\"claimed\":%" PRIu64 ",\"free\":%" PRIu64
                   "}",
                   found.total, found.claimed, found.total - found.claimed);
        return response_json(ctx, 200);
    }
    if (waits)
        return ST_WAIT;
    return context_refuse(ctx, ST_CONFLICT,
                          "queue %.*s%s has messages=%" PRIu64 ", claimed=%" PRIu64
                          ", free=%" PRIu64,
                          (int)ctx->queue.name.len, ctx->queue.name.data,
                          st == ST_NOT_FOUND ? " (which does not exist)" : "",
                          found.total, found.claimed, found.total - found.claimed);
}
