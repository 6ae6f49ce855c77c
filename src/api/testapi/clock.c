/*
 * clock: shows, sets and moves the clock of the test API (docs/api.md 23.2). Declared in
 * handlers.h. A move goes from one deadline to the next, in slices. Read
 * claimd/testapi/testapi.h next.
 */
#include "api/response.h"
#include "api/testapi/handlers.h"
#include "claimd/json/tree.h"

#include <inttypes.h>

/* A change of the clock: it stops or starts, and it moves. */
struct clock_request {
    enum { LEAVE, STOP, START } state;
    enum { STAY, TO_AHEAD, BY, TO_NEXT } move;
    int64_t ms;      /* TO_AHEAD: ahead of the wall clock; BY: by so much */
    bool may_expire; /* claims and messages of the project that expire are no leaks */
};

/* ------------------------------------------------------------------ showing */

static void
write_time(struct context *ctx)
{
    struct buf *out = &ctx->res->body;
    char text[CLOCK_TEXT_CAP];
    struct testapi_time time;

    testapi_time(ctx->config->testapi, &time);
    clock_text(time.now_ms, text);
    buf_printf(out,
               "\"now\":\"%s\",\"now_ms\":%" PRId64 ",\"state\":\"%s\","
               "\"ahead_ms\":%" PRId64,
               text, time.now_ms, time.stands ? "frozen" : "running", time.ahead_ms);
}

/* GET /claimd/clock */
enum status
handle_clock_show(struct context *ctx)
{
    buf_byte(&ctx->res->body, '{');
    write_time(ctx);
    buf_byte(&ctx->res->body, '}');
    return response_json(ctx, 200);
}

/* ------------------------------------------------------------------ reading */

/* How far the clock may be ahead of the wall clock, about 63 years. */
enum { AHEAD_MOST_S = 2000000000 };

static enum status
read_seconds(struct context *ctx, const json_t *value, const char *name, int64_t most,
             int64_t *out_ms)
{
    json_int_t seconds = json_integer_value(value);

    if (!json_is_integer(value) || seconds < 0 || seconds > most)
        return context_refuse(ctx, json_is_integer(value) ? ST_BAD_VALUE : ST_BAD_BODY,
                              "%s is %s. It must be an integer between 0 and %" PRId64,
                              name, json_tree_received(value).text, most);
    *out_ms = seconds * 1000;
    return ST_OK;
}

static enum status
read_state(struct context *ctx, const json_t *value, struct clock_request *out)
{
    const char *text = json_is_string(value) ? json_string_value(value) : "";

    if (strcmp(text, "frozen") == 0)
        out->state = STOP;
    else if (strcmp(text, "running") == 0)
        out->state = START;
    else
        return context_refuse(ctx, ST_BAD_VALUE,
                              "state is %s. It must be frozen or running",
                              json_tree_received(value).text);
    return ST_OK;
}

/* Reads the member may_expire, which may be missing. *known counts it. */
static enum status
read_may_expire(struct context *ctx, const json_t *body, struct clock_request *out,
                size_t *known)
{
    const json_t *value = json_object_get(body, "may_expire");

    if (value == NULL)
        return ST_OK;
    ++*known;
    out->may_expire = json_is_true(value);
    return json_is_boolean(value)
               ? ST_OK
               : context_refuse(ctx, ST_BAD_BODY,
                                "may_expire is %s. It must be true or false",
                                json_tree_received(value).text);
}

/* {"state": "frozen", "ahead_seconds": 60, "may_expire": true}, one or more members */
static enum status
read_setting(struct context *ctx, const json_t *body, struct clock_request *out)
{
    const json_t *state = json_object_get(body, "state");
    const json_t *ahead = json_object_get(body, "ahead_seconds");
    size_t known = (size_t)(state != NULL) + (ahead != NULL);
    enum status st = read_may_expire(ctx, body, out, &known);

    if (st != ST_OK)
        return st;
    if (known == 0 || json_object_size(body) != known)
        return context_refuse(ctx, ST_BAD_BODY,
                              "the body must have one or more of the members state, "
                              "ahead_seconds and may_expire");
    if (state != NULL)
        st = read_state(ctx, state, out);
    if (st != ST_OK || ahead == NULL)
        return st;
    out->move = TO_AHEAD;
    return read_seconds(ctx, ahead, "ahead_seconds", AHEAD_MOST_S, &out->ms);
}

/* {"seconds": 61} or {"to": "next"}, and may_expire */
static enum status
read_step(struct context *ctx, const json_t *body, struct clock_request *out)
{
    const json_t *seconds = json_object_get(body, "seconds");
    const json_t *to = json_object_get(body, "to");
    size_t known = 1;
    enum status st = read_may_expire(ctx, body, out, &known);

    if (st != ST_OK)
        return st;
    if (json_object_size(body) != known || (seconds == NULL && to == NULL))
        return context_refuse(ctx, ST_BAD_BODY,
                              "the body must be {\"seconds\": N} or {\"to\": \"next\"}, "
                              "and may have may_expire");
    if (seconds != NULL) {
        out->move = BY;
        return read_seconds(ctx, seconds, "seconds", TESTAPI_STEP_MOST_S, &out->ms);
    }
    out->move = TO_NEXT;
    if (json_is_string(to) && strcmp(json_string_value(to), "next") == 0)
        return ST_OK;
    return context_refuse(ctx, ST_BAD_VALUE, "to is %s. It must be next",
                          json_tree_received(to).text);
}

typedef enum status
read_fn(struct context *ctx, const json_t *body, struct clock_request *out);

/* ------------------------------------------------------------------ moving */

/* The last entry of the history before the move, which takes several calls. */
static uint64_t
history_before(const struct context *ctx)
{
    return ctx->progress->resume[1];
}

static void
note_move(const struct context *ctx, const struct clock_request *request)
{
    static const char *const states[] = {"", "frozen", "running"};
    struct bytes text = bytes_str(states[request->state]);
    struct history_entry e = {.at_ms = ctx->op.now_ms, .event = HISTORY_CLOCK};

    if (request->move == TO_NEXT)
        text = bytes_str("to the next");
    else if (request->move != STAY)
        text = arena_printf(ctx->req->arena, "%.*s%s%s %" PRId64 " s", (int)text.len,
                            text.data, text.len > 0 ? ", " : "",
                            request->move == BY ? "by" : "ahead by", request->ms / 1000);
    e.text = text;
    history_add(testapi_history(ctx->config->testapi), &e);
}

static enum status
move_begin(struct context *ctx, const struct clock_request *request)
{
    struct testapi_time time;
    int64_t until;

    testapi_time(ctx->config->testapi, &time);
    if (request->move == TO_AHEAD && request->ms < time.ahead_ms)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "ahead_seconds is %" PRId64 ". The clock is %" PRId64
                              " ms ahead of the wall clock and cannot go back",
                              request->ms / 1000, time.ahead_ms);
    note_move(ctx, request);
    if (request->state != LEAVE)
        testapi_freeze(ctx->config->testapi, request->state == STOP);
    until = time.now_ms;
    if (request->move == TO_AHEAD)
        until += request->ms - time.ahead_ms;
    else if (request->move == TO_NEXT)
        until = INT64_MAX;
    else
        until += request->ms;
    ctx->progress->resume[0] = (uint64_t)until;
    ctx->progress->resume[1] = history_last(testapi_history(ctx->config->testapi));
    ctx->progress->begun = true;
    return ST_OK;
}

/* Changes the clock. It is called again until the clock has reached its target. */
static enum status
handle_move(struct context *ctx, read_fn *read)
{
    struct clock_request request = {LEAVE, STAY, 0, false};
    struct testapi_page page;
    json_t *body;
    enum status st = testapi_read_body(ctx, &body);

    if (st != ST_OK)
        return st;
    st = read(ctx, body, &request);
    json_decref(body);
    if (st == ST_OK && !ctx->progress->begun)
        st = move_begin(ctx, &request);
    if (st != ST_OK)
        return st;
    if (!testapi_move(ctx->config->testapi, (int64_t)ctx->progress->resume[0],
                      request.move == TO_NEXT ? history_before(ctx) : UINT64_MAX,
                      (struct leaks_expected){.any = request.may_expire,
                                              .project = testapi_project(ctx)})) {
        /* Before there are too many suspects. Without memory, the next slice does it. */
        (void)leaks_settle(testapi_leaks(ctx->config->testapi),
                           testapi_history(ctx->config->testapi), ctx->req->arena);
        return ST_AGAIN;
    }
    /* The events that time has caused meanwhile. */
    page = (struct testapi_page){.out = &ctx->res->body,
                                 .events = TESTAPI_EVENTS_OF_TIME,
                                 .limit = TESTAPI_PAGE,
                                 .since = history_before(ctx)};
    buf_byte(&ctx->res->body, '{');
    write_time(ctx);
    buf_printf(page.out, ",\"lost\":%" PRIu64 ",\"events\":",
               history_missing(testapi_history(ctx->config->testapi), page.since));
    testapi_write_page(ctx, &page);
    buf_byte(&ctx->res->body, '}');
    return response_json(ctx, 200);
}

/* PUT /claimd/clock */
enum status
handle_clock_set(struct context *ctx)
{
    return handle_move(ctx, read_setting);
}

/* POST /claimd/clock/advance */
enum status
handle_clock_advance(struct context *ctx)
{
    return handle_move(ctx, read_step);
}
