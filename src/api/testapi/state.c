/* The whole state of a project, for tests (docs/api.md 23.4). */
#include "api/state.h"
#include "api/testapi/handlers.h"

static struct state_keeper
keeper_of(struct context *ctx)
{
    return (struct state_keeper){ctx->store, ctx->mem, ctx->req->arena, &ctx->visit};
}

/* GET /claimd/state */
enum status
handle_state_show(struct context *ctx)
{
    struct state_keeper k = keeper_of(ctx);
    enum status st = state_write(&k, testapi_project(ctx), &ctx->res->body);

    return st == ST_OK ? answer_json(ctx, 200) : st;
}

/* All of it is checked before anything is changed. */
static enum status
replace(struct context *ctx)
{
    struct state_keeper k = keeper_of(ctx);
    struct bytes project = testapi_project(ctx);
    struct reason why;
    struct state_decoder decoder = {ctx->limits, ctx->mem, ctx->req->arena,
                                    ctx->visit.now_ms, &why};
    struct state wanted;
    enum status st;

    reason_init(&why);
    st = decode_state(&decoder, ctx->req->body, project, false, &wanted);
    if (st == ST_OK)
        st = state_replace(&k, project, &wanted, &why);
    if (st != ST_OK)
        return why.text[0] == '\0' ? st : context_explain(ctx, state_refusal(st), &why);
    return answer_empty(ctx, 204);
}

/* PUT /claimd/state: one after the other. */
enum status
handle_state_set(struct context *ctx)
{
    enum status st;

    if (ctx->req->body_too_large || ctx->req->body.len > API_SEED_MOST)
        return context_refuse(ctx, ST_TOO_LONG,
                              "the document is too large. The maximum is %d bytes",
                              API_SEED_MOST);
    if (!testapi_begin_exchange(ctx->testapi))
        return ST_AGAIN;
    st = replace(ctx);
    testapi_end_exchange(ctx->testapi);
    return st;
}
