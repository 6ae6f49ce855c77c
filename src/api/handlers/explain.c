/*
 * explain: says which state a message has, why, and what happens to it next
 * (docs/api.md 26.4). Declared in handlers.h, as are the parts that search.c uses for
 * its matches.
 */
#include "api/handlers/handlers.h"
#include "api/response.h"
#include "api/wire/message.h"
#include "claimd/base/plural.h"
#include "claimd/json/string.h"

#include <inttypes.h>

/* A message, its claim and the settings of its queue. */
struct explanation {
    struct store_batch batch;            /* of the message */
    const struct store_message *message; /* in it */
    struct store_claim_info claim;       /* valid if has_claim */
    bool has_claim;
    struct store_queues queues; /* of its queue */
    /* In them; NULL: the queue was deleted meanwhile. */
    const struct store_settings *settings;
    int64_t now_ms;
};

enum status
holder_read(struct context *ctx, const struct store_message *message,
            struct store_claim_info *claim, bool *held)
{
    struct store_claim_page page = {
        .id = store_id_bytes(&message->claim_id), .claims = claim, .limit = 1};
    enum status st = ST_OK;

    *held = false;
    if (page.id.len > 0)
        st = store_claim_list(ctx->store, &ctx->op, &ctx->queue, &page);
    *held = st == ST_OK && page.count > 0;
    return st;
}

/* The claim may end between the two calls. The message is read again then. */
enum { EXPLAIN_TRIES = 3 };

static enum status
explanation_read(struct context *ctx, struct explanation *e)
{
    enum status st = ST_OK;

    for (int i = 0; i < EXPLAIN_TRIES && st == ST_OK && !e->has_claim; i++) {
        store_batch_release(&e->batch);
        st = store_message_get(ctx->store, &ctx->op, &ctx->queue, &ctx->id, 1, &e->batch);
        if (st == ST_OK && e->batch.count == 0)
            return context_refuse_id(ctx, "message", true);
        if (st != ST_OK)
            break;
        e->message = &e->batch.messages[0];
        if (e->message->claim_id.text[0] == '\0')
            break;
        st = holder_read(ctx, e->message, &e->claim, &e->has_claim);
    }
    if (st == ST_OK)
        st = store_queue_get(ctx->store, &ctx->op, &ctx->queue, &e->queues);
    if (st == ST_OK)
        e->settings = &e->queues.queues[0].metadata.settings;
    return st == ST_NOT_FOUND ? context_refuse_id(ctx, "message", true) : st;
}

static bool
is_worn_out(const struct explanation *e)
{
    const struct store_settings *set = e->settings;

    return set->max_claim_count != STORE_UNSET && bytes_present(set->dead_letter) &&
           e->message->claim_count >= set->max_claim_count;
}

/* The end of a text about a message of a queue whose claims are paused. NULL: no
 * memory. */
static const char *
text_of_paused(struct context *ctx, const struct explanation *e)
{
    const char *rest = is_worn_out(e)
                           ? "the next one moves it to the dead-letter queue."
                           : "a claim delivers it after all older ready messages.";
    char at[CLOCK_TEXT_CAP];
    struct paused_by by;
    struct holder h;
    struct bytes name;

    if (!paused_by_read(e->settings->paused_by, &by))
        return arena_printf(ctx->req->arena,
                            "Claims of the queue are paused. When they resume, %s", rest)
            .data;
    clock_text(by.at_ms, at);
    h = holder_of(by.holder);
    name = h.worker.len > 0 ? h.worker : h.client;
    return arena_printf(ctx->req->arena,
                        "Claims of the queue are paused. The last pause was at %s, by "
                        "%s%.*s%s%.*s. When they resume, %s",
                        at,
                        h.worker.len > 0   ? "worker "
                        : h.client.len > 0 ? "client "
                                           : "a client",
                        (int)name.len, name.data, h.address.len > 0 ? " at " : "",
                        (int)h.address.len, h.address.data, rest)
        .data;
}

/* The same about a message that becomes ready. */
static const char *
text_of_ready(struct context *ctx, const struct explanation *e)
{
    const struct bytes name = e->settings->dead_letter;

    if ((e->settings->paused & STORE_PAUSE_CLAIMS) != 0)
        return text_of_paused(ctx, e);
    return is_worn_out(e)
               ? arena_printf(
                     ctx->req->arena,
                     "The next claim moves it to the dead-letter queue %.*s, because "
                     "it was delivered %" PRIu32
                     " time%s and _max_claim_count is %" PRId64 ".",
                     (int)name.len, name.data, e->message->claim_count,
                     plural_s(e->message->claim_count), e->settings->max_claim_count)
                     .data
               : "A claim delivers it after all older ready messages.";
}

static void
write_next(struct context *ctx, const char *what, int64_t at_ms, struct bytes text)
{
    struct buf *out = &ctx->res->body;

    json_write_name(out, "next");
    buf_byte(out, '{');
    json_write_text(out, "what", bytes_str(what));
    if (at_ms == 0)
        json_write_raw(out, "at", bytes_str("null"));
    else
        time_write(out, "at", at_ms, ctx->config->time_base);
    json_write_text(out, "text", text);
    buf_byte(out, '}');
}

/* The beginning of a sentence about the worker. Absent: no memory. */
static struct bytes
name_holder(struct context *ctx, const struct store_claim_info *claim)
{
    const struct holder h = holder_of(bytes_of(claim->client, claim->client_len));
    const struct bytes name = h.worker.len > 0 ? h.worker : h.client;

    return arena_printf(ctx->req->arena, "%s%.*s%s%.*s",
                        h.worker.len > 0   ? "Worker "
                        : h.client.len > 0 ? "Client "
                                           : "A worker",
                        (int)name.len, name.data, h.address.len > 0 ? " at " : "",
                        (int)h.address.len, h.address.data);
}

/* The text about a message that a worker holds until `at`. Absent: no memory. */
static struct bytes
text_of_claimed(struct context *ctx, const struct explanation *e, const char *at,
                const char *ready)
{
    const struct bytes name = e->settings->dead_letter;
    const struct bytes worker = name_holder(ctx, &e->claim);

    if (!bytes_present(worker))
        return BYTES_NONE;
    if (!is_worn_out(e))
        return arena_printf(ctx->req->arena,
                            "%.*s holds it. Unless that worker deletes it or renews the "
                            "claim, it is ready again at %s. %s",
                            (int)worker.len, worker.data, at, ready);
    return arena_printf(
        ctx->req->arena,
        "%.*s holds it. Unless that worker deletes it or renews the claim, it moves to "
        "the dead-letter queue %.*s at %s, because its delivery count is %" PRIu32
        " and _max_claim_count is %" PRId64 ".",
        (int)worker.len, worker.data, (int)name.len, name.data, at,
        e->message->claim_count, e->settings->max_claim_count);
}

/* Writes the next thing that happens unless a client does something. */
static enum status
explanation_write_next(struct context *ctx, const struct explanation *e)
{
    const struct store_message *m = e->message;
    const int64_t claim_ms = e->has_claim ? e->now_ms + e->claim.left_ms : 0;
    const int64_t event_ms = e->has_claim ? claim_ms : m->delayed_until_ms;
    const char *ready = text_of_ready(ctx, e);
    struct bytes text = BYTES_NONE;
    const char *what;
    char at[CLOCK_TEXT_CAP], expires[CLOCK_TEXT_CAP];

    clock_text(clock_to_wall_ms(ctx->config->time_base, event_ms), at);
    clock_text(clock_to_wall_ms(ctx->config->time_base, m->expires_ms), expires);
    if (event_ms != 0 && m->expires_ms <= event_ms) {
        what = "expire";
        text =
            arena_printf(ctx->req->arena, "Its lifetime ends before it is ready again. "
                                          "claimd deletes it then.");
        write_next(ctx, what, m->expires_ms, text);
        return bytes_present(text) ? ST_OK : ST_NO_MEMORY;
    }
    if (ready != NULL && e->has_claim) {
        what = "end_of_claim";
        text = text_of_claimed(ctx, e, at, ready);
    } else if (ready != NULL && m->delayed_until_ms != 0) {
        what = "end_of_delay";
        text = arena_printf(ctx->req->arena, "It is delayed, and ready at %s. %s", at,
                            ready);
    } else if (ready != NULL) {
        what = is_worn_out(e) ? "dead_letter" : "deliver";
        text = arena_printf(ctx->req->arena,
                            "It is ready. %s If no worker claims it, it expires at %s.",
                            ready, expires);
    } else {
        return ST_NO_MEMORY;
    }
    write_next(ctx, what, event_ms, text);
    return bytes_present(text) ? ST_OK : ST_NO_MEMORY;
}

static void
write_holder(struct buf *out, const struct store_claim_info *claim, int64_t now_ms,
             const struct clock *time_base)
{
    json_write_name(out, "claim");
    buf_byte(out, '{');
    json_write_text(out, "id", store_id_bytes(&claim->id));
    holder_write(out, "", bytes_of(claim->client, claim->client_len));
    json_write_u64(out, "number", claim->number);
    time_write(out, "ends_at", now_ms + claim->left_ms, time_base);
    buf_byte(out, '}');
}

void
explanation_write_facts(struct buf *out, const struct store_message *m,
                        const struct store_claim_info *holder, int64_t now_ms,
                        const struct clock *time_base)
{
    json_write_text(out, "id", store_id_bytes(&m->id));
    json_write_text(out, "state",
                    bytes_str(holder != NULL             ? "claimed"
                              : m->delayed_until_ms != 0 ? "delayed"
                                                         : "ready"));
    time_write(out, "created_at", m->posted_ms, time_base);
    time_write(out, "expires_at", m->expires_ms, time_base);
    json_write_u64(out, "delivery_count", m->claim_count);
    if (holder != NULL)
        write_holder(out, holder, now_ms, time_base);
    if (m->delayed_until_ms != 0)
        time_write(out, "delayed_until", m->delayed_until_ms, time_base);
    details_write(out, m->details, time_base);
}

static enum status
explanation_write(struct context *ctx, const struct explanation *e)
{
    struct buf *out = &ctx->res->body;
    enum status st;

    buf_byte(out, '{');
    explanation_write_facts(out, e->message, e->has_claim ? &e->claim : NULL, e->now_ms,
                            ctx->config->time_base);
    if (e->settings->max_claim_count == STORE_UNSET)
        json_write_raw(out, "max_claim_count", bytes_str("null"));
    else
        json_write_i64(out, "max_claim_count", e->settings->max_claim_count);
    st = explanation_write_next(ctx, e);
    buf_byte(out, '}');
    return st == ST_OK ? response_json(ctx, 200) : st;
}

/* GET /claimd/queues/{queue}/messages/{id} */
enum status
handle_message_explain(struct context *ctx)
{
    struct explanation e = {
        .batch = STORE_BATCH_INIT, .queues = STORE_QUEUES_INIT, .now_ms = ctx->op.now_ms};
    enum status st = explanation_read(ctx, &e);

    if (st == ST_OK)
        st = explanation_write(ctx, &e);
    store_batch_release(&e.batch);
    store_queues_release(&e.queues);
    return st;
}
