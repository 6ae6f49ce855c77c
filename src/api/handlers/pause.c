/*
 * pause: pauses and resumes claims or posts of a queue (docs/api.md 28). The pause is a
 * part of the metadata. Declared in handlers.h.
 */
#include "api/handlers/handlers.h"
#include "api/response.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

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

static enum status
change_pause(struct context *ctx, const void *how, const struct store_metadata *old,
             struct store_metadata *changed)
{
    const struct pause *pause = how;

    *changed = *old;
    changed->settings.paused |= pause->set;
    changed->settings.paused &= ~pause->clear;
    pause_write(&ctx->res->body, changed->settings.paused);
    return ST_OK;
}

/* POST /claimd/queues/{queue}/pause */
enum status
handle_queue_pause(struct context *ctx)
{
    struct pause pause;
    enum status st = read_pause(ctx, &pause);

    if (st == ST_OK)
        st = queue_change(ctx, change_pause, &pause);
    return st == ST_OK ? response_json(ctx, 200) : st;
}
