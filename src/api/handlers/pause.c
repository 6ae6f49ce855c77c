/*
 * pause: pauses and resumes claims or posts of a queue, and shows the last pause
 * (docs/api.md 28). The pause is a part of the metadata. Declared in handlers.h.
 */
#include "api/handlers/handlers.h"
#include "api/holder.h"
#include "api/response.h"
#include "api/wire/message.h"
#include "claimd/base/clock.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <inttypes.h>

enum { CLAIMS, POSTS, MEMBERS };

static const char *const member_names[MEMBERS] = {"claims", "posts"};
static const enum store_pause bits[MEMBERS] = {STORE_PAUSE_CLAIMS, STORE_PAUSE_POSTS};

/* The changes of a request. */
struct pause {
    unsigned set, clear; /* of enum store_pause */
    struct bytes by;     /* for store_settings.paused_by */
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
    for (size_t i = 0; i < MEMBERS; i++)
        json_write_flag(out, member_names[i], (paused & bits[i]) != 0);
}

/* Writes what is paused, and the last pause. */
static void
write_state(struct buf *out, const struct store_settings *set)
{
    char at[CLOCK_TEXT_CAP];
    struct paused_by by;

    buf_byte(out, '{');
    pause_write(out, set->paused);
    json_write_name(out, "last_pause");
    if (paused_by_read(set->paused_by, &by)) {
        clock_text(by.at_ms, at);
        buf_byte(out, '{');
        json_write_text(out, "at", bytes_str(at));
        holder_write(out, "", by.holder);
        buf_byte(out, '}');
    } else {
        buf_str(out, "null");
    }
    buf_byte(out, '}');
}

static enum status
change_pause(struct context *ctx, const void *how, const struct store_metadata *old,
             struct store_metadata *changed)
{
    const struct pause *pause = how;
    struct store_settings *set = &changed->settings;

    *changed = *old;
    set->paused |= pause->set;
    set->paused &= ~pause->clear;
    if (set->paused == 0)
        set->paused_by = BYTES_NONE;
    else if ((set->paused & ~old->settings.paused) != 0)
        set->paused_by = pause->by;
    write_state(&ctx->res->body, set);
    return ST_OK;
}

/* Makes the text of a pause by the client of the request. */
static enum status
make_paused_by(struct context *ctx, struct bytes *out)
{
    struct bytes holder;
    enum status st = holder_text(ctx, &holder);

    if (st == ST_OK)
        *out = arena_printf(ctx->req->arena, "%" PRId64 "%c%.*s",
                            context_shown_ms(ctx, ctx->op.now_ms), HOLDER_MARK,
                            (int)holder.len, holder.data);
    return st == ST_OK && !bytes_present(*out) ? ST_NO_MEMORY : st;
}

/* POST /claimd/queues/{queue}/pause */
enum status
handle_queue_pause(struct context *ctx)
{
    struct pause pause;
    enum status st = read_pause(ctx, &pause);

    if (st == ST_OK)
        st = make_paused_by(ctx, &pause.by);
    if (st == ST_OK)
        st = queue_change(ctx, change_pause, &pause);
    return st == ST_OK ? response_json(ctx, 200) : st;
}

/* GET /claimd/queues/{queue}/pause */
enum status
handle_pause_show(struct context *ctx)
{
    struct store_queues found = STORE_QUEUES_INIT;
    enum status st = store_queue_get(ctx->store, &ctx->op, &ctx->queue, &found);

    if (st == ST_OK)
        write_state(&ctx->res->body, &found.queues[0].metadata.settings);
    store_queues_release(&found);
    if (st == ST_NOT_FOUND)
        return context_refuse_queue(ctx);
    return st == ST_OK ? response_json(ctx, 200) : st;
}
