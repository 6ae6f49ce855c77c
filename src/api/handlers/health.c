#include "api/caller.h"
#include "api/handlers/handlers.h"
#include "claimd/base/clock.h"

/* GET, HEAD .../ping; .../health in API v1 */
enum status
handle_ping(struct context *ctx)
{
    enum status st = store_ping(ctx->store, &ctx->op);

    return st == ST_OK ? response_empty(ctx, 204) : st;
}

/* GET, HEAD /livez */
enum status
handle_livez(struct context *ctx)
{
    return response_empty(ctx, 204);
}

const char *
health_reservation(const struct context *ctx)
{
    if (atomic_load(&ctx->condition->draining))
        return "the server is shutting down";
    if (atomic_load(&ctx->condition->closed))
        return "the server is in maintenance and accepts no posts";
    return NULL;
}

/* GET, HEAD /readyz, for load balancers */
enum status
handle_readyz(struct context *ctx)
{
    const char *why = health_reservation(ctx);

    return why != NULL ? context_refuse(ctx, ST_UNAVAILABLE, "%s", why)
                       : handle_ping(ctx);
}

/* ------------------------------------------------------------------ trial run */

/*
 * A trial posts, claims and deletes messages in a queue of its own, which no client sees: the name
 * of its project is too long for a request. Another trial has another queue.
 */
struct trial {
    struct store *store;
    struct store_op *op;
    struct store_queue queue;
    struct store_id ids[2];
    struct store_id claim;
};

static enum status
try_create(struct trial *t)
{
    const struct store_metadata none = {BYTES_NONE, STORE_SETTINGS_INIT};
    bool created;

    return store_queue_create(t->store, t->op, &t->queue, &none, &created);
}

static enum status
try_post(struct trial *t)
{
    const struct store_draft draft = {BYTES_LIT("\"trial\""), 60, 0};
    const struct store_draft drafts[] = {draft, draft};
    const struct store_post post = {.drafts = drafts, .count = 2};

    return store_message_post(t->store, t->op, &t->queue, &post, t->ids);
}

static enum status
try_claim(struct trial *t)
{
    const struct store_terms terms = {60, 60};
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st = store_claim_create(t->store, t->op, &t->queue, &terms, 2, &batch);

    t->claim = batch.claim_id;
    if (st == ST_OK && batch.count != 2)
        st = ST_INTERNAL;
    store_batch_release(&batch);
    return st;
}

static enum status
try_list(struct trial *t)
{
    const struct store_filter filter = {.limit = 2, .include_claimed = true};
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st = store_message_list(t->store, t->op, &t->queue, &filter, &batch);

    if (st == ST_OK && batch.count != 2)
        st = ST_INTERNAL;
    store_batch_release(&batch);
    return st;
}

static enum status
try_delete(struct trial *t)
{
    const struct bytes id = store_id_bytes(&t->ids[0]), claim = store_id_bytes(&t->claim);

    return store_message_delete(t->store, t->op, &t->queue,
                                &(struct store_delete){.rule = STORE_DELETE_HELD,
                                                       .ids = &id,
                                                       .count = 1,
                                                       .claim_ids = &claim,
                                                       .claim_count = 1});
}

static enum status
try_release(struct trial *t)
{
    return store_claim_release(t->store, t->op, &t->queue, store_id_bytes(&t->claim),
                               STORE_RELEASED);
}

static enum status
try_delete_many(struct trial *t)
{
    const struct bytes id = store_id_bytes(&t->ids[1]);

    return store_message_delete(t->store, t->op, &t->queue,
                                &(struct store_delete){.ids = &id, .count = 1});
}

static enum status
try_delete_queue(struct trial *t)
{
    return store_queue_delete(t->store, t->op, &t->queue);
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
    static const struct {
        const char *name;
        enum status (*run)(struct trial *);
    } steps[] = {
        {"create_queue", try_create},
        {"post_messages", try_post},
        {"claim_messages", try_claim},
        {"list_messages", try_list},
        {"delete_messages", try_delete},
        {"delete_claim", try_release},
        {"bulk_delete_messages", try_delete_many},
        {"delete_queue", try_delete_queue}, /* the last one, because it cleans up */
    };

    int again = 0;

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        int64_t start = clock_stopwatch_ns();
        enum status st;

        do
            st = steps[i].run(t);
        while (st == ST_AGAIN && ++again < TRIAL_SLICES);
        double seconds = (double)(clock_stopwatch_ns() - start) / 1e9;

        buf_printf(out, "%s\"%s\":{\"succeeded\":%s,\"seconds\":%.9f,\"ref\":null}",
                   i == 0 ? "" : ",", steps[i].name, st == ST_OK ? "true" : "false",
                   seconds);
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
