/*
 * pause: pauses and resumes claims or posts of a queue (docs/api.md 28). The pause is a
 * part of the metadata. Declared in handlers.h.
 */
#include "api/handlers/handlers.h"
#include "api/response.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

/* Attempts to change the settings while other clients change them, too. */
enum { ATTEMPTS = 16 };

enum { CLAIMS, POSTS, MEMBERS };

static const char *const member_names[MEMBERS] = {"claims", "posts"};
static const enum store_pause bits[MEMBERS] = {STORE_PAUSE_CLAIMS, STORE_PAUSE_POSTS};

/* The changes of a request. */
struct pause {
    unsigned set, clear; /* of enum store_pause */
};

static enum status
read_pause(struct context *ctx, struct pause *out)
{
    const struct bytes body = ctx->req->body;
    struct json_scan_value m[MEMBERS];
    enum status st = context_read_body(ctx);

    *out = (struct pause){.set = body.len == 0 ? STORE_PAUSE_CLAIMS : 0};
    if (st != ST_OK || body.len == 0)
        return st;
    st = context_read_members(ctx, member_names, MEMBERS, m);
    for (size_t i = 0; st == ST_OK && i < MEMBERS; i++) {
        bool pauses = false;

        st = context_read_flag(ctx, &m[i], member_names[i], &pauses);
        if (!json_left_out(&m[i]))
            *(pauses ? &out->set : &out->clear) |= bits[i];
    }
    return st;
}

void
pause_write(struct buf *out, unsigned paused)
{
    buf_byte(out, '{');
    for (size_t i = 0; i < MEMBERS; i++)
        json_write_flag(out, member_names[i], (paused & bits[i]) != 0);
    buf_byte(out, '}');
}

/* Writes the response before it changes the store, so that nothing can fail
 * afterwards. */
static enum status
change_once(struct context *ctx, const struct pause *pause)
{
    struct store_queues found = STORE_QUEUES_INIT;
    enum status st = store_queue_get(ctx->store, &ctx->op, &ctx->queue, &found);

    if (st == ST_OK) {
        struct store_metadata changed = found.queues[0].metadata;

        changed.settings.paused |= pause->set;
        changed.settings.paused &= ~pause->clear;
        ctx->res->body.len = 0;
        pause_write(&ctx->res->body, changed.settings.paused);
        if (ctx->res->body.failed)
            st = ST_NO_MEMORY;
        else if (changed.settings.paused != found.queues[0].metadata.settings.paused)
            st = store_queue_update(ctx->store, &ctx->op, &ctx->queue,
                                    found.queues[0].version, &changed);
    }
    store_queues_release(&found);
    return st;
}

/* POST /claimd/queues/{queue}/pause */
enum status
handle_queue_pause(struct context *ctx)
{
    struct pause pause;
    enum status st = read_pause(ctx, &pause);

    if (st != ST_OK)
        return st;
    st = ST_CHANGED;
    for (int i = 0; i < ATTEMPTS && st == ST_CHANGED; i++)
        st = change_once(ctx, &pause);
    if (st == ST_NOT_FOUND)
        return context_refuse_queue(ctx);
    return st == ST_OK ? response_json(ctx, 200) : st;
}
