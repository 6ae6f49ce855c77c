#include "api/fault.h"

#include "api/problem.h"
#include "api/wire/fault.h"

#include <inttypes.h>

/* ------------------------------------------------------------------ finding */

static void
note(const struct context *ctx, const struct fault *fault)
{
    struct history_entry e = {.at_ms = ctx->visit.now_ms,
                              .event = HISTORY_FAULT,
                              .queue = ctx->queue,
                              .client = ctx->actor.client,
                              .action = ctx->actor.action,
                              .claim = ctx->actor.claim};
    char text[FAULT_TEXT_CAP];

    fault_text(fault, text);
    e.text = bytes_str(text);
    history_add(testapi_history(ctx->testapi), &e);
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

static bool
ask_rules(const struct context *ctx, struct fault *out)
{
    const struct fault_match request = {.action = bytes_str(ctx->actor.action),
                                        .method =
                                            bytes_str(api_method_name(ctx->req->method)),
                                        .queue = ctx->queue.name,
                                        .project = ctx->queue.project,
                                        .client = ctx->actor.client};

    return !ctx->version->open &&
           faults_strike(testapi_faults(ctx->testapi), &request, out);
}

/* What befalls it, for this and all further calls. */
static enum status
find(struct context *ctx, struct plight *plight)
{
    struct bytes header = ctx->req->headers[API_HEADER_FAULT];
    struct fault fault = {.kind = FAULT_NONE};
    enum status st = ST_OK;

    if (bytes_present(header))
        st = read_header(ctx, header, &fault);
    else
        (void)ask_rules(ctx, &fault); /* else it stays as it is */
    if (st != ST_OK)
        return st;
    if (fault.kind != FAULT_NONE)
        note(ctx, &fault);
    *plight = (struct plight){.found = true, .fault = fault};
    return ST_OK;
}

/* ------------------------------------------------------------------ before */

/* When the clock is there, the request is asked again, at that time. */
static enum status
move_clock(struct context *ctx, struct plight *plight)
{
    struct testapi_time time;

    if (plight->moved)
        return ST_OK;
    if (plight->until_ms == 0) {
        testapi_time(ctx->testapi, &time);
        plight->until_ms = time.now_ms + plight->fault.seconds * 1000;
    }
    plight->moved = testapi_move(ctx->testapi, plight->until_ms, UINT64_MAX);
    return ST_AGAIN;
}

static enum status
refuse(struct context *ctx, const struct fault *fault)
{
    return context_refuse(ctx,
                          fault->status == 429 ? ST_PROJECT_REQUESTS : ST_UNAVAILABLE,
                          "a test injected this fault");
}

enum status
fault_before(struct context *ctx)
{
    struct plight *plight = &ctx->progress->plight;
    enum status st = plight->found ? ST_OK : find(ctx, plight);

    if (st != ST_OK)
        return st;
    switch (plight->fault.kind) {
    case FAULT_STATUS:
        return refuse(ctx, &plight->fault);
    case FAULT_CUT_BEFORE:
        return ST_UNAVAILABLE;
    case FAULT_CLOCK:
        return move_clock(ctx, plight);
    default:
        return ST_OK;
    }
}

/* ------------------------------------------------------------------ after */

/* Without memory it stays as the server would say. */
static void
say_when(struct context *ctx, const struct fault *fault)
{
    struct bytes text;

    if (fault->retry_after_s < 0)
        return;
    text = arena_printf(ctx->req->arena, "%" PRId64, fault->retry_after_s);
    if (bytes_present(text))
        problem_retry(ctx->res, text.data);
}

static void
end_claim(struct context *ctx)
{
    struct response *res = ctx->res;
    enum status st;

    if (!bytes_present(res->claim_id))
        return;
    do
        st = store_claim_release(ctx->store, &ctx->visit, &res->claim_queue,
                                 res->claim_id, STORE_RELEASED);
    while (st == ST_AGAIN);
    /* Should it fail, the claim is over already, or ends when its time is over. */
    res->claim_id = BYTES_NONE;
}

void
fault_after(struct context *ctx, enum status st)
{
    const struct fault *fault = &ctx->progress->plight.fault;

    switch (fault->kind) {
    case FAULT_STATUS:
        say_when(ctx, fault);
        break;
    case FAULT_END_CLAIM:
        if (st == ST_OK)
            end_claim(ctx);
        break;
    case FAULT_CUT_AFTER:
    case FAULT_HALF: /* nobody hears of the claim, and it goes on */
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
