/* The whole state of a project, for tests (docs/api.md 23.4). */
#include "api/state.h"
#include "api/testapi/handlers.h"

/* GET /claimd/state */
enum status
handle_state_show(struct context *ctx)
{
    enum status st =
        state_write(ctx->store, &ctx->visit, testapi_project(ctx), &ctx->res->body);

    if (st != ST_OK)
        return st;
    answer_header(ctx, "Content-Type", "application/jsonl");
    ctx->res->code = 200;
    return ST_OK;
}

/* All of it is checked before anything is changed. */
static enum status
replace(struct context *ctx)
{
    struct bytes project = testapi_project(ctx);
    struct reason why;
    struct load l = {.store = ctx->store,
                     .visit = &ctx->visit,
                     .reader = {.limits = ctx->limits,
                                .mem = ctx->mem,
                                .arena = ctx->req->arena,
                                .now_ms = ctx->visit.now_ms,
                                .project = project,
                                .only = bytes_present(project),
                                .why = &why}};
    enum status st;

    reason_init(&why);
    st = load_read(&l, ctx->req->body);
    if (st == ST_OK)
        st = state_check(&l);
    if (st == ST_OK)
        st = state_replace(&l, project);
    if (st != ST_OK)
        return why.text[0] == '\0' ? st : context_explain(ctx, load_refusal(st), &why);
    return answer_empty(ctx, 204);
}

/* PUT /claimd/state: one after the other. */
enum status
handle_state_set(struct context *ctx)
{
    enum status st;

    if (ctx->req->body_too_large || ctx->req->body.len > API_SEED_MOST)
        return context_refuse(ctx, ST_TOO_LONG,
                              "the body is too large. The maximum is %d bytes",
                              API_SEED_MOST);
    if (ctx->req->body.len == 0)
        return context_refuse(ctx, ST_BAD_BODY, "a body is required");
    if (!testapi_begin_exchange(ctx->testapi))
        return ST_AGAIN;
    st = replace(ctx);
    testapi_end_exchange(ctx->testapi);
    return st;
}
