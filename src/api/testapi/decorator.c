/*
 * decorator: the steps that the test API adds to a request (api/steps.h, docs/api.md 23).
 * Each wraps the plain step of dispatch.c. They inject faults, record refusals and shown
 * messages in the history, and count the notified waiters that have not retried yet.
 *
 *     1. find_fault() finds the fault of a request once, after the checks, by the
 *        request's header or by the rules. The progress of the request keeps it, so that
 *        a retry counts nothing twice.
 *     2. fault_pre() applies a fault that comes before the handler.
 *     3. fault_post() applies one that comes after it. For some faults the front end
 *        delays or cuts the response (response.fault).
 */
#include "api/context.h"
#include "api/problem.h"
#include "api/response.h"
#include "api/steps.h"
#include "api/testapi/handlers.h"

#include <inttypes.h>

/* ------------------------------------------------------------------ finding */

static void
note_fault(const struct context *ctx, const struct fault *fault)
{
    struct history_entry e = {.at_ms = ctx->op.now_ms,
                              .event = HISTORY_FAULT,
                              .queue = ctx->queue,
                              .client = ctx->actor.client,
                              .action = ctx->actor.action,
                              .claim = ctx->actor.claim};
    char text[FAULT_TEXT_CAP];

    fault_text(fault, text);
    e.text = bytes_str(text);
    history_add(testapi_history(ctx->config->testapi), &e);
}

static enum status
read_header(struct context *ctx, struct bytes header, struct fault *out)
{
    struct reason why;

    reason_init(&why);
    if (ctx->version->open)
        return context_refuse(
            ctx, ST_BAD_VALUE,
            "the header Claimd-Fault is not allowed on requests to the server itself");
    if (fault_read(header, out, &why) == ST_OK)
        return ST_OK;
    return context_refuse(ctx, ST_BAD_VALUE, "the header Claimd-Fault is wrong: %s",
                          why.text);
}

/* Finds the fault of a request, for this and all further calls. */
static enum status
find_fault(struct context *ctx, struct injected_fault *injected)
{
    struct bytes header = ctx->req->headers[API_HEADER_FAULT];
    struct fault fault = {.kind = FAULT_NONE};
    enum status st = ST_OK;

    if (bytes_present(header))
        st = read_header(ctx, header, &fault);
    else if (!ctx->version->open) /* without a matching rule, `fault` stays FAULT_NONE */
        (void)faults_strike(testapi_faults(ctx->config->testapi),
                            &(const struct fault_match){
                                .action = bytes_str(ctx->actor.action),
                                .method = bytes_str(api_method_name(ctx->req->method)),
                                .queue = ctx->queue.name,
                                .project = ctx->queue.project,
                                .client = ctx->actor.client},
                            &fault);
    if (st != ST_OK)
        return st;
    if (fault.kind != FAULT_NONE)
        note_fault(ctx, &fault);
    *injected = (struct injected_fault){.found = true, .fault = fault};
    return ST_OK;
}

/* ------------------------------------------------------------ before the handler */

/* Moves the clock. Then the request runs again, at that time. */
static enum status
move_clock(struct context *ctx, struct injected_fault *injected)
{
    struct testapi_time time;

    if (injected->moved)
        return ST_OK;
    if (injected->until_ms == 0) {
        testapi_time(ctx->config->testapi, &time);
        injected->until_ms = time.now_ms + injected->fault.seconds * 1000;
    }
    injected->moved = testapi_move(ctx->config->testapi, injected->until_ms, UINT64_MAX);
    return ST_AGAIN;
}

/* Before the handler. ST_AGAIN: the clock moves. */
static enum status
fault_pre(struct context *ctx)
{
    struct injected_fault *injected = &ctx->progress->injected;
    enum status st = injected->found ? ST_OK : find_fault(ctx, injected);

    if (st != ST_OK)
        return st;
    switch (injected->fault.kind) {
    case FAULT_STATUS:
        ctx->uncounted = true;
        return context_refuse(
            ctx, injected->fault.status == 429 ? ST_PROJECT_REQUESTS : ST_UNAVAILABLE,
            "a test injected this fault");
    case FAULT_CUT_BEFORE:
        return ST_UNAVAILABLE;
    case FAULT_CLOCK:
        return move_clock(ctx, injected);
    default:
        return ST_OK;
    }
}

/* ------------------------------------------------------------- after the handler */

static void
end_claim(struct context *ctx)
{
    struct response *res = ctx->res;
    enum status st;

    if (!bytes_present(res->claim_id))
        return;
    do
        st = store_claim_release(ctx->store, &ctx->op, &res->claim_queue, res->claim_id,
                                 STORE_RELEASED);
    while (st == ST_AGAIN);
    /* If the release fails, the claim has ended or expires. */
    res->claim_id = BYTES_NONE;
}

/* After the response for `st` is complete. */
static void
fault_post(struct context *ctx, enum status st)
{
    const struct fault *fault = &ctx->progress->injected.fault;
    struct bytes text;

    switch (fault->kind) {
    case FAULT_STATUS:
        text = arena_printf(ctx->req->arena, "%" PRId64, fault->retry_after_s);
        if (fault->retry_after_s >= 0 && bytes_present(text))
            problem_set_retry(ctx->res, text.data);
        break;
    case FAULT_END_CLAIM:
        if (st == ST_OK)
            end_claim(ctx);
        break;
    case FAULT_CUT_AFTER:
    case FAULT_HALF: /* the client does not learn of the claim, which stays */
        ctx->res->claim_id = BYTES_NONE;
        ctx->res->fault = *fault;
        break;
    case FAULT_CUT_BEFORE:
    case FAULT_LATENCY:
    case FAULT_SLOW:
        ctx->res->fault = *fault;
        break;
    case FAULT_CLOCK:
    case FAULT_NONE:
        break;
    }
}

/* ------------------------------------------------------------------ history */

/* The action of a route, by its name in a policy. NULL: none. */
static const char *
route_action_name(const struct route *route)
{
    return route == NULL || route->action == ACTION_OPEN ? NULL
                                                         : action_name(route->action);
}

/* Sets the actor of a request, by which rules match and the history records. */
static void
actor_fill(struct context *ctx)
{
    bool is_claim =
        ctx->resource->depth > 4 && bytes_equal_str(ctx->resource->words[3], "claims");

    ctx->actor = (struct store_actor){
        .client = ctx->req->headers[API_HEADER_CLIENT_ID],
        .action = route_action_name(ctx->route),
        .claim = is_claim ? ctx->id : query_get(&ctx->query, "claim_id"),
    };
    if (!bytes_present(ctx->actor.claim))
        ctx->actor.claim = query_get(&ctx->query, "claim_ids");
    ctx->op.actor = &ctx->actor;
}

/* Records that the request was refused, or that a notified waiter was served. */
static void
note_outcome(struct context *ctx, enum status st, bool was_notified)
{
    const struct response *res = ctx->res;
    struct history_entry e = {
        .at_ms = ctx->op.now_ms,
        .event = HISTORY_REFUSED,
        .queue = {res->about.project, res->about.queue, ctx->queue.kind},
        .client = ctx->req->headers[API_HEADER_CLIENT_ID],
        .action = route_action_name(ctx->route),
        .claim = res->about.claim,
        .status = res->code,
        .text = bytes_present(ctx->detail) ? ctx->detail : bytes_str(status_text(st))};

    if (ctx->version == NULL || ctx->version->open)
        return; /* a request to the server itself */
    if (res->fault.kind == FAULT_CUT_BEFORE)
        return; /* the client does not learn of a refusal */
    if (st == ST_OK) {
        if (!was_notified || res->code == 204)
            return;
        e.event = HISTORY_SERVED;
        e.status = 0;
        e.text = BYTES_NONE;
    }
    history_add(testapi_history(ctx->config->testapi), &e);
}

static void
note_shown_page(struct context *ctx, const struct store_message *messages, size_t count)
{
    struct history_entry e = {.at_ms = ctx->op.now_ms,
                              .event = HISTORY_SHOWN,
                              .queue = ctx->queue,
                              .client = ctx->req->headers[API_HEADER_CLIENT_ID],
                              .action = ctx->actor.action,
                              .count = count};
    struct buf ids;

    buf_init(&ids, ctx->config->mem);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_byte(&ids, ' ');
        buf_bytes(&ids, store_id_bytes(&messages[i].id));
    }
    e.ids = buf_view(&ids); /* without memory: the first ones */
    history_add(testapi_history(ctx->config->testapi), &e);
    buf_fini(&ids);
}

static void
note_shown(struct context *ctx, const struct store_message *messages, size_t count)
{
    for (size_t i = 0; i < count; i += HISTORY_IDS)
        note_shown_page(ctx, messages + i,
                        count - i < HISTORY_IDS ? count - i : HISTORY_IDS);
}

/* ------------------------------------------------------------------ steps */

/* Handles a request, or its retry as a waiter, and applies the fault to its response. */
static enum api_next
handle_with_fault(const struct api *api, struct request *req, struct context *ctx)
{
    const bool was_notified =
        req->waiting != NULL && testapi_waiter_begin_retry(req->waiting->testapi_waiter);
    enum api_next next = steps_plain.handle(api, req, ctx);

    if (next == API_SEND || next == API_HOLD) {
        const enum status st = ctx->res->status;

        fault_post(ctx, st);
        note_outcome(ctx, st, was_notified);
        next = response_complete(ctx);
    }
    if (was_notified)
        testapi_waiter_end_retry(ctx->config->testapi);
    return next;
}

static enum status
run_with_fault(struct context *ctx)
{
    enum status st;

    actor_fill(ctx);
    st = fault_pre(ctx);
    return st == ST_OK ? steps_plain.run(ctx) : st;
}

/* The listener of a waiter that the test API counts until it has retried. */
static struct store_listener *
listen_with_waiter(struct context *ctx)
{
    struct waiting *waiting = ctx->req->waiting;

    waiting->testapi_waiter =
        testapi_waiter_new(ctx->config->testapi, ctx->queue.project, &waiting->listener);
    return waiting->testapi_waiter == NULL
               ? NULL
               : testapi_waiter_listener(waiting->testapi_waiter);
}

static int64_t
real_ms(const struct context *ctx)
{
    return clock_now_ms(ctx->config->real);
}

static void
stop_waiting(const struct api *api, struct request *req)
{
    struct waiting *waiting = req->waiting;

    steps_plain.stop_waiting(api, req);
    if (waiting == NULL)
        return;
    testapi_waiter_free(waiting->testapi_waiter); /* the store has dropped it */
    waiting->testapi_waiter = NULL;
    if (waiting->watched != NULL)
        history_unwatch(waiting->watched, &waiting->listener);
    waiting->watched = NULL;
}

static bool
may_wait(const struct api *api, const struct request *req)
{
    return steps_plain.may_wait(api, req) || bytes_equal_str(req->path, "/claimd/expect");
}

static size_t
body_limit(const struct api *api, struct bytes path)
{
    return bytes_equal_str(path, "/claimd/state") ? API_SEED_MOST
                                                  : steps_plain.body_limit(api, path);
}

const struct api_steps steps_testapi = {
    .handle = handle_with_fault,
    .run = run_with_fault,
    .listen = listen_with_waiter,
    .shown = note_shown,
    .real_ms = real_ms,
    .stop_waiting = stop_waiting,
    .may_wait = may_wait,
    .body_limit = body_limit,
};
