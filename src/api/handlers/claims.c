#include "api/handlers/handlers.h"
#include "api/handlers/take.h"

static enum status
decode(struct context *ctx, enum terms_form form, struct decoded_terms *out)
{
    const struct api_limits *l = ctx->limits;
    enum status st =
        context_body_within(ctx, l->max_queue_metadata, "max_queue_metadata");
    struct reason why;

    if (st != ST_OK)
        return st;
    reason_init(&why);
    st = decode_terms(ctx->req->body, form, l, out, &why);
    return st == ST_OK ? ST_OK : context_explain(ctx, st, &why);
}

static enum status
refuse_unknown(struct context *ctx)
{
    return context_refuse(ctx, ST_NOT_FOUND, "queue %.*s has no live claim with this id",
                          (int)ctx->queue.name.len, ctx->queue.name.data);
}

/* Messages of a claim always show the claim id. */
static enum status
claimed_form(const struct context *ctx, struct message_form *out)
{
    enum status st = context_message_form(ctx, out);

    if (st == ST_OK)
        out->hide_claim = false;
    return st;
}

/* What the answer to a claim is made of; all of it is there before the store is asked. */
struct claimed {
    struct message_form form;
    char *location; /* path of the queue's claims, with room for an id behind it */
};

static enum status
claimed_reserve(struct context *ctx, struct claimed *out)
{
    static const char id_room[STORE_ID_CAP] = {0};
    enum status st = claimed_form(ctx, &out->form);

    if (st != ST_OK)
        return st;
    out->location = context_path(ctx, "/claims/", bytes_of(id_room, sizeof(id_room)));
    return out->location != NULL ? ST_OK : ST_NO_MEMORY;
}

static enum status
write_claimed(struct context *ctx, struct claimed *claimed,
              const struct store_batch *batch)
{
    struct buf *out = &ctx->res->body;

    strcat(claimed->location, batch->claim_id.text);
    answer_header(ctx, "Location", claimed->location);
    if (!ctx->version->bare_arrays)
        buf_str(out, "{\"messages\":");
    message_write_all(out, &claimed->form, batch->messages, batch->count);
    if (!ctx->version->bare_arrays)
        buf_byte(out, '}');
    return answer_json(ctx, 201);
}

static enum status
take_claimed(struct context *ctx, const void *terms, size_t limit,
             struct store_batch *out)
{
    return store_claim_create(ctx->store, ctx->req->now_ms, &ctx->queue, terms, limit,
                              out);
}

/*
 * What to claim: the terms, and the limit, which some SDKs send in the body. The
 * parameter wins.
 */
static enum status
read_claim(struct context *ctx, struct decoded_terms *out)
{
    const struct api_limits *l = ctx->limits;
    int64_t most = l->max_messages_per_claim_or_pop;
    size_t limit = 0;
    enum status st =
        context_read_limit(ctx, "limit", most, "max_messages_per_claim_or_pop", &limit);

    if (st == ST_OK)
        st = decode(ctx, ctx->version->claim, out);
    if (st != ST_OK)
        return st;
    if (limit > 0)
        out->limit = limit;
    else if (out->limit == 0)
        out->limit = (size_t)(l->default_page < most ? l->default_page : most);
    return ST_OK;
}

/* POST .../claims?limit=N */
enum status
handle_claim_create(struct context *ctx)
{
    struct store_batch batch = STORE_BATCH_INIT;
    struct decoded_terms said;
    struct claimed claimed;
    enum status st = read_claim(ctx, &said);

    if (st != ST_OK)
        return st;
    st = claimed_reserve(ctx, &claimed);
    if (st != ST_OK)
        return st;
    st = take_messages(ctx, &claimed.form, take_claimed, &said.terms, said.limit, &batch);
    if (st != ST_OK)
        return st;
    if (batch.claim_id.text[0] == '\0')
        st = answer_empty(ctx, 204);
    else
        st = write_claimed(ctx, &claimed, &batch);
    store_batch_release(&batch);
    return st;
}

static enum status
write_claim(struct context *ctx, const struct store_batch *batch)
{
    struct buf *out = &ctx->res->body;
    const char *href = context_path(ctx, "/claims/", ctx->id);
    struct message_form form;

    if (href == NULL || claimed_form(ctx, &form) != ST_OK)
        return ST_NO_MEMORY;
    buf_str(out, "{\"age\":");
    buf_i64(out, batch->claim_age_s);
    buf_str(out, ",\"ttl\":");
    buf_i64(out, batch->claim_ttl_s);
    buf_str(out, ",\"href\":\"");
    buf_str(out, href); /* a live claim's id: nothing in it to escape */
    buf_str(out, "\",\"messages\":");
    message_write_all(out, &form, batch->messages, batch->count);
    buf_byte(out, '}');
    return answer_json(ctx, 200);
}

/* GET .../claims/{id} */
enum status
handle_claim_show(struct context *ctx)
{
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st =
        store_claim_get(ctx->store, ctx->req->now_ms, &ctx->queue, ctx->id, &batch);

    if (st == ST_NOT_FOUND)
        return refuse_unknown(ctx);
    if (st != ST_OK)
        return st;
    st = write_claim(ctx, &batch);
    store_batch_release(&batch);
    return st;
}

/* PATCH .../claims/{id} */
enum status
handle_claim_renew(struct context *ctx)
{
    struct decoded_terms said;
    enum status st = decode(ctx, ctx->version->renew, &said);

    if (st != ST_OK)
        return st;
    st = store_claim_renew(ctx->store, ctx->req->now_ms, &ctx->queue, ctx->id,
                           &said.terms);
    if (st == ST_NOT_FOUND)
        return refuse_unknown(ctx);
    return st == ST_OK ? answer_empty(ctx, 204) : st;
}

/* DELETE .../claims/{id} */
enum status
handle_claim_release(struct context *ctx)
{
    enum status st =
        store_claim_release(ctx->store, ctx->req->now_ms, &ctx->queue, ctx->id);

    return st == ST_OK ? answer_empty(ctx, 204) : st;
}
