/*
 * health: the requests of load balancers and monitors: ping, /livez, /readyz and health
 * (docs/api.md 6.3 to 6.5). Declared in handlers.h. Health tries all operations on a
 * queue of its own (trial_run()) and measures each. health_reservation() says why
 * clients should not send requests. metrics.c shows it, too.
 */
#include "api/caller.h"
#include "api/handlers/handlers.h"
#include "api/response.h"
#include "claimd/base/clock.h"

/* GET, HEAD .../ping; .../health in API v1 */
enum status
handle_ping(struct context *ctx)
{
    enum status st = store_ping(ctx->store, &ctx->op);

    return st == ST_OK ? response_empty(ctx, 204) : st;
}

/* 200 with a body, because load balancers of Google and Azure take no other status for
 * healthy. */
static enum status
response_healthy(struct context *ctx)
{
    buf_str(&ctx->res->body, "ok\n");
    return response_typed(ctx, 200, "text/plain; charset=utf-8");
}

/* GET, HEAD /livez */
enum status
handle_livez(struct context *ctx)
{
    return response_healthy(ctx);
}

const char *
health_reservation(const struct context *ctx)
{
    if (atomic_load(&ctx->config->condition->draining))
        return "the server is shutting down";
    if (atomic_load(&ctx->config->condition->closed))
        return "the server is in maintenance and accepts no posts";
    return NULL;
}

/* GET, HEAD /readyz, for load balancers */
enum status
handle_readyz(struct context *ctx)
{
    const char *why = health_reservation(ctx);
    enum status st;

    if (why != NULL)
        return context_refuse(ctx, ST_UNAVAILABLE, "%s", why);
    st = store_ping(ctx->store, &ctx->op);
    return st == ST_OK ? response_healthy(ctx) : st;
}

/* ------------------------------------------------------------------ trial run */

/*
 * A trial posts, claims and deletes messages in a queue of its own, which no client sees:
 * the name of its project is too long for a request. Another trial has another queue.
 */
struct trial {
    struct store *store;
    struct store_op *op;
    struct store_queue queue;
    struct store_id ids[2];
    struct store_id claim;
};

enum trial_step {
    TRY_CREATE,
    TRY_POST,
    TRY_CLAIM,
    TRY_LIST,
    TRY_DELETE,
    TRY_RELEASE,
    TRY_DELETE_MANY,
    TRY_DELETE_QUEUE, /* the last one, because it cleans up */
    TRIAL_STEPS
};

static enum status
trial_run(struct trial *t, enum trial_step step)
{
    static const struct store_metadata none = {.settings = STORE_SETTINGS_INIT};
    static const struct store_draft draft = {BYTES_LIT("\"trial\""), 60, 0};
    static const struct store_terms terms = {60, 60};
    static const struct store_filter filter = {.limit = 2, .include_claimed = true};
    const struct store_draft drafts[] = {draft, draft};
    const struct store_post post = {.drafts = drafts, .count = 2};
    const struct bytes claim = store_id_bytes(&t->claim);
    const bool claimed = step == TRY_DELETE;
    const struct bytes id = store_id_bytes(&t->ids[claimed ? 0 : 1]);
    struct store_batch batch = STORE_BATCH_INIT;
    bool created;
    enum status st;

    switch (step) {
    case TRY_CREATE:
        return store_queue_create(t->store, t->op, &t->queue, &none, &created);
    case TRY_POST:
        return store_message_post(t->store, t->op, &t->queue, &post, t->ids);
    case TRY_CLAIM:
        st = store_claim_create(t->store, t->op, &t->queue, &terms, 2, &batch);
        t->claim = batch.claim_id;
        break;
    case TRY_LIST:
        st = store_message_list(t->store, t->op, &t->queue, &filter, &batch);
        break;
    case TRY_DELETE:
    case TRY_DELETE_MANY:
        return store_message_delete(
            t->store, t->op, &t->queue,
            &(struct store_delete){.rule = claimed ? STORE_DELETE_HELD : STORE_DELETE_ANY,
                                   .ids = &id,
                                   .count = 1,
                                   .claim_ids = &claim,
                                   .claim_count = claimed});
    case TRY_RELEASE:
        return store_claim_release(t->store, t->op, &t->queue, claim, STORE_RELEASED);
    default:
        return store_queue_delete(t->store, t->op, &t->queue);
    }
    if (st == ST_OK && batch.count != 2)
        st = ST_INTERNAL;
    store_batch_release(&batch);
    return st;
}

static enum status
trial_init(struct trial *t, struct context *ctx)
{
    char *project = arena_alloc(ctx->req->arena, CALLER_PROJECT_MAX + 1);
    /* The address of the context is unique among the running requests. */
    struct bytes name = arena_printf(ctx->req->arena, "trial-%p", (const void *)ctx);

    if (project == NULL || !bytes_present(name))
        return ST_NO_MEMORY;
    memset(project, 'h', CALLER_PROJECT_MAX + 1);
    *t = (struct trial){
        .store = ctx->store,
        .op = &ctx->op,
        .queue = {.project = bytes_of(project, CALLER_PROJECT_MAX + 1), .name = name},
    };
    return ST_OK;
}

/* ------------------------------------------------------------------ document */

/* Slices of due work that a trial does before it fails. */
enum { TRIAL_SLICES = 16 };

static void
write_trial(struct buf *out, struct trial *t)
{
    static const char *const names[TRIAL_STEPS] = {
        "create_queue",    "post_messages", "claim_messages",       "list_messages",
        "delete_messages", "delete_claim",  "bulk_delete_messages", "delete_queue"};
    int again = 0;

    for (int i = 0; i < TRIAL_STEPS; i++) {
        const int64_t start_ns = clock_stopwatch_ns();
        enum status st;

        do
            st = trial_run(t, (enum trial_step)i);
        while (st == ST_AGAIN && ++again < TRIAL_SLICES);
        buf_printf(out, "%s\"%s\":{\"succeeded\":%s,\"seconds\":%.9f,\"ref\":null}",
                   i == 0 ? "" : ",", names[i], st == ST_OK ? "true" : "false",
                   (double)(clock_stopwatch_ns() - start_ns) / 1e9);
    }
}

/* GET .../health */
enum status
handle_health_show(struct context *ctx)
{
    struct buf *out = &ctx->res->body;
    struct store_totals totals;
    struct trial trial;
    enum status st = store_ping(ctx->store, &ctx->op);

    if (st == ST_OK) /* before the trial has messages of its own */
        st = store_totals(ctx->store, &ctx->op, &totals);
    if (st == ST_OK)
        st = trial_init(&trial, ctx);
    if (st != ST_OK)
        return st;
    buf_str(out, "{\"storage_reachable\":true,\"operation_status\":{");
    write_trial(out, &trial);
    /* Of the whole server. Delayed messages count as free. */
    buf_printf(out,
               "},\"message_volume\":{\"free\":%llu,\"claimed\":%llu,\"total\":%llu}}",
               (unsigned long long)(totals.messages - totals.claimed),
               (unsigned long long)totals.claimed, (unsigned long long)totals.messages);
    return response_json(ctx, 200);
}
