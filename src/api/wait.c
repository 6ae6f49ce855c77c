#include "api/wait.h"
#include "api/prefer.h"
#include "api/quota.h"
#include "api/response.h"
#include "api/steps.h"
#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"

#include <inttypes.h>
#include <stdio.h>

static void
free_waiters(struct mem *mem, struct waiting *waiting)
{
    if (waiting->waiters != &waiting->single)
        mem_free(mem, waiting->waiters);
    waiting->waiters = NULL;
    waiting->waiter_count = 0;
}

/* Makes the waiters of so many queues, which last as long as the waiting. */
static enum status
make_waiters(struct context *ctx, size_t queues)
{
    struct waiting *waiting = ctx->req->waiting;
    struct store_listener *listener;
    enum status st;

    if (waiting->waiter_count > 0)
        return ST_OK; /* not the first call */
    waiting->waiters = &waiting->single;
    if (queues > 1)
        waiting->waiters =
            mem_calloc(ctx->config->mem, queues, sizeof(*waiting->waiters));
    if (waiting->waiters == NULL)
        return ST_NO_MEMORY;
    st = quotas_wait_begin(ctx->api->quotas, ctx->queue.project, context_real_ms(ctx),
                           &waiting->tenant);
    if (st != ST_OK) {
        free_waiters(ctx->config->mem, waiting);
        return st;
    }
    listener = ctx->api->steps->listen(ctx);
    if (listener == NULL) {
        wait_done(ctx->store, ctx->config->mem, waiting);
        return ST_NO_MEMORY;
    }
    waiting->waiter_count = queues;
    for (size_t i = 0; i < queues; i++)
        waiting->waiters[i] = (struct store_waiter){.listener = listener};
    return ST_OK;
}

enum status
wait_begin(struct context *ctx, size_t queues)
{
    int64_t seconds = prefer_wait(ctx->req->headers[API_HEADER_PREFER]);
    struct bytes applied;
    enum status st;

    if (ctx->req->waiting == NULL || ctx->limits->max_wait == 0 || seconds == 0)
        return ST_OK;
    if (seconds > ctx->limits->max_wait)
        seconds = ctx->limits->max_wait;
    applied = arena_printf(ctx->req->arena, "wait=%" PRId64, seconds);
    if (!bytes_present(applied))
        return ST_NO_MEMORY;
    st = make_waiters(ctx, queues);
    ctx->wait_refused = st == ST_PROJECT_WAITERS;
    if (st != ST_OK)
        return ctx->wait_refused ? ST_OK : st; /* there may be messages without waiting */
    response_add_header(ctx, "Preference-Applied", applied.data);
    ctx->req->waiting->wait_ms = seconds * 1000;
    ctx->waits = true;
    return ST_OK;
}

struct store_waiter *
wait_waiter(const struct context *ctx, size_t i)
{
    return ctx->waits ? &ctx->req->waiting->waiters[i] : NULL;
}

bool
wait_abandoned(const struct context *ctx)
{
    return ctx->waits && ctx->req->waiting->end == WAITING_ABANDONED;
}

enum status
wait_result(const struct context *ctx, bool queued)
{
    if (ctx->wait_refused)
        return ST_PROJECT_WAITERS;
    return ctx->waits && queued && ctx->req->waiting->end == WAITING_ON ? ST_WAIT : ST_OK;
}

void
wait_done(struct store *store, struct mem *mem, struct waiting *waiting)
{
    for (size_t i = 0; i < waiting->waiter_count; i++)
        store_waiter_leave(store, &waiting->waiters[i]);
    free_waiters(mem, waiting);
    quotas_wait_end(waiting->tenant);
}
