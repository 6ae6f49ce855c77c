/*
 * state: resets, shows and replaces the whole state of a project, for tests
 * (docs/api.md 23.3, 23.4). Declared in handlers.h. Read claimd/api/dump.h and state.h
 * next.
 */
#include "api/handlers/handlers.h"
#include "api/response.h"
#include "api/testapi/handlers.h"

/* Queues that a slice deletes. */
enum { RESET_SLICE = 64 };

/*
 * POST /claimd/reset: ends long polling, then deletes the queues and records what leaked
 * there. For all projects, it also deletes the fault rules. Queues that are created
 * meanwhile may remain.
 */
enum status
handle_reset(struct context *ctx)
{
    struct bytes project = testapi_project(ctx);
    struct dump walk = {.begun = false};
    bool forget = false;
    enum status st = testapi_read_forget(ctx, &forget);

    if (st != ST_OK)
        return st;
    if (!ctx->progress->begun)
        testapi_end_waits(ctx->config->testapi, project);
    ctx->progress->begun = true;
    if (!testapi_retries_are_done(ctx->config->testapi))
        return ST_AGAIN;
    for (int i = 0; st == ST_OK && i < RESET_SLICE && !walk.done; i++) {
        st = dump_next(ctx->store, &ctx->op, project, &walk);
        if (st == ST_OK && !walk.done) {
            const struct store_queue queue = dump_queue(&walk);

            if (!forget)
                st = testapi_keep_leaks(ctx, &queue);
            if (st == ST_OK)
                st = store_queue_delete(ctx->store, &ctx->op, &queue);
        }
    }
    if (st != ST_OK)
        return st;
    if (!walk.done)
        return ST_AGAIN;
    if (forget)
        leaks_forget(testapi_leaks(ctx->config->testapi), project);
    if (!bytes_present(project)) /* faults_replace() without rules cannot fail */
        (void)faults_replace(testapi_faults(ctx->config->testapi), NULL, 0);
    history_add(testapi_history(ctx->config->testapi),
                &(const struct history_entry){.at_ms = ctx->op.now_ms,
                                              .event = HISTORY_RESET,
                                              .queue.project = project});
    return response_empty(ctx, 204);
}

/* ------------------------------------------------------------------ state */

/* GET /claimd/state */
enum status
handle_state_show(struct context *ctx)
{
    enum status st =
        state_write(ctx->store, &ctx->op, testapi_project(ctx), &ctx->res->body);

    return st == ST_OK ? response_typed(ctx, 200, "application/jsonl") : st;
}

/* Checks the whole state before it changes anything. */
static enum status
replace_state(struct context *ctx, bool forget)
{
    struct bytes project = testapi_project(ctx);
    struct record_load l = load_of_request(ctx);
    enum status st;

    l.reader.project = project;
    l.reader.only = bytes_present(project);
    st = load_read(&l, ctx->req->body);
    if (st == ST_OK)
        st = state_check(&l);
    if (st == ST_OK && !forget)
        st = testapi_keep_all_leaks(ctx, project);
    if (st == ST_OK)
        st = state_replace(&l, project);
    load_ended(ctx, &l);
    if (st != ST_OK)
        return load_refusal(&l, st);
    if (forget)
        leaks_forget(testapi_leaks(ctx->config->testapi), project);
    return response_empty(ctx, 204);
}

/* PUT /claimd/state: one request at a time. */
enum status
handle_state_set(struct context *ctx)
{
    bool forget = false;
    enum status st = testapi_read_forget(ctx, &forget);

    if (st != ST_OK)
        return st;
    if (ctx->req->body_too_large || ctx->req->body.len > API_SEED_MOST)
        return context_refuse(ctx, ST_TOO_LONG,
                              "the body is too large. The maximum is %d bytes",
                              API_SEED_MOST);
    if (ctx->req->body.len == 0)
        return context_refuse(ctx, ST_BAD_BODY, "a body is required");
    if (!testapi_begin_load(ctx->config->testapi))
        return ST_AGAIN;
    st = replace_state(ctx, forget);
    testapi_end_load(ctx->config->testapi);
    return st;
}
