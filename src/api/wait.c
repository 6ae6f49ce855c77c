#include "api/wait.h"

#include "api/quota.h"

#include <ctype.h>
#include <inttypes.h>

static void
free_places(struct mem *mem, struct waiting *waiting)
{
    if (waiting->places != &waiting->one)
        mem_free(mem, waiting->places);
    waiting->places = NULL;
    waiting->place_count = 0;
}

/* Makes the places in the lines of so many queues, which last as long as the waiting. */
static enum status
make_places(struct context *ctx, size_t queues)
{
    struct waiting *waiting = ctx->req->waiting;
    struct store_listener *listener;
    enum status st;

    if (waiting->place_count > 0)
        return ST_OK; /* asked again */
    waiting->places = &waiting->one;
    if (queues > 1)
        waiting->places = mem_calloc(ctx->mem, queues, sizeof(*waiting->places));
    if (waiting->places == NULL)
        return ST_NO_MEMORY;
    st = quotas_wait_begin(ctx->quotas, ctx->queue.project, context_real_ms(ctx),
                           &waiting->tenant);
    if (st != ST_OK) {
        free_places(ctx->mem, waiting);
        return st;
    }
    listener = ctx->steps->listen(ctx);
    if (listener == NULL) {
        wait_done(ctx->store, ctx->mem, waiting);
        return ST_NO_MEMORY;
    }
    waiting->place_count = queues;
    for (size_t i = 0; i < queues; i++)
        waiting->places[i] = (struct store_waiter){.listener = listener};
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
    st = make_places(ctx, queues);
    ctx->wait_refused = st == ST_PROJECT_WAITERS;
    if (st != ST_OK)
        return ctx->wait_refused ? ST_OK : st; /* there may be something to take */
    answer_header(ctx, "Preference-Applied", applied.data);
    ctx->req->waiting->wait_ms = seconds * 1000;
    ctx->waits = true;
    return ST_OK;
}

struct store_waiter *
wait_place(const struct context *ctx, size_t i)
{
    return ctx->waits ? &ctx->req->waiting->places[i] : NULL;
}

bool
wait_abandoned(const struct context *ctx)
{
    return ctx->waits && ctx->req->waiting->end == WAITING_ABANDONED;
}

enum status
wait_on(const struct context *ctx, bool stands)
{
    if (ctx->wait_refused)
        return ST_PROJECT_WAITERS;
    return ctx->waits && stands && ctx->req->waiting->end == WAITING_ON ? ST_WAIT : ST_OK;
}

void
wait_done(struct store *store, struct mem *mem, struct waiting *waiting)
{
    for (size_t i = 0; i < waiting->place_count; i++)
        store_waiter_leave(store, &waiting->places[i]);
    free_places(mem, waiting);
    quotas_wait_end(waiting->tenant);
}

/* ------------------------------------------------------------------ the header Prefer */

/* Takes what stands in front of the next `mark` outside of quoted strings off *rest. */
static struct bytes
take_until(struct bytes *rest, char mark)
{
    bool quoted = false;
    struct bytes taken;
    size_t i = 0, used;

    for (; i < rest->len; i++) {
        char c = rest->data[i];

        if (c == '"')
            quoted = !quoted;
        else if (quoted && c == '\\' && i + 1 < rest->len)
            i++;
        else if (!quoted && c == mark)
            break;
    }
    taken = bytes_of(rest->data, i);
    used = i < rest->len ? i + 1 : i;
    *rest = bytes_of(rest->data + used, rest->len - used);
    return taken;
}

static bool
is_wait(struct bytes name)
{
    static const char wait[] = "wait";

    if (name.len != sizeof(wait) - 1)
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (tolower((unsigned char)name.data[i]) != wait[i])
            return false;
    return true;
}

/* delta-seconds: digits and nothing else. */
static int64_t
read_seconds(struct bytes text)
{
    int64_t seconds = 0;

    for (size_t i = 0; i < text.len; i++) {
        int digit = text.data[i] - '0';

        if (digit < 0 || digit > 9)
            return 0;
        seconds = seconds > (INT64_MAX - digit) / 10 ? INT64_MAX : seconds * 10 + digit;
    }
    return seconds;
}

int64_t
prefer_wait(struct bytes header)
{
    while (header.len > 0) {
        struct bytes preference = take_until(&header, ',');
        struct bytes value = take_until(&preference, ';'); /* without its parameters */
        struct bytes name = take_until(&value, '=');

        if (is_wait(bytes_trim(name)))
            return read_seconds(bytes_trim(value));
    }
    return 0;
}
