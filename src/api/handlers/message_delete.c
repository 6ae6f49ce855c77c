#include "api/decrypt.h"
#include "api/handlers/handlers.h"
#include "api/wait.h"

/* DELETE .../messages/{id}?claim_id=C */
enum status
handle_message_delete(struct context *ctx)
{
    const struct bytes claim_id = query_get(&ctx->query, "claim_id");
    const bool held = bytes_present(claim_id);
    enum status st = store_message_delete(
        ctx->store, &ctx->visit, &ctx->queue,
        &(struct store_delete){.rule = held ? STORE_DELETE_HELD : STORE_DELETE_READY,
                               .ids = &ctx->id,
                               .count = 1,
                               .claim_ids = &claim_id,
                               .claim_count = held});

    if (st == ST_CLAIMED)
        return context_refuse(
            ctx, st, "a claim holds the message. Send the id of that claim as claim_id");
    if (st == ST_NOT_CLAIMED)
        return context_refuse(
            ctx, st,
            "the claim does not hold this message. It has ended, or it never held the "
            "message. Another worker may have the message now");
    return st == ST_OK ? answer_empty(ctx, 204) : st;
}

/* ------------------------------------------------------------------ by ids */

/* The messages to delete, and the claims of which one must hold each of them, if any. */
struct selection {
    struct bytes *ids, *claims;
    size_t count, claim_count;
    bool strict; /* message_delete_with_claim_id: there must be claims */
};

static enum status
read_selection(struct context *ctx, struct selection *out)
{
    const struct api_limits *l = ctx->limits;
    enum status st;

    *out = (struct selection){.strict = ctx->version->reads_claim_ids &&
                                        l->message_delete_with_claim_id};
    st = context_read_list(ctx, "ids", l->max_messages_per_page, "max_messages_per_page",
                           &out->ids, &out->count);
    if (st != ST_OK || !ctx->version->reads_claim_ids)
        return st;
    return context_read_list(ctx, "claim_ids", l->max_messages_per_page,
                             "max_messages_per_page", &out->claims, &out->claim_count);
}

static enum status
delete_ids(struct context *ctx, const struct selection *sel)
{
    enum status st = store_message_delete(
        ctx->store, &ctx->visit, &ctx->queue,
        &(struct store_delete){.rule = sel->claim_count > 0 ? STORE_DELETE_HELD
                                                            : STORE_DELETE_ANY,
                               .ids = sel->ids,
                               .count = sel->count,
                               .claim_ids = sel->claims,
                               .claim_count = sel->claim_count});

    /* 400 as for one message, but 403 where the contract says so. */
    if (st == ST_CLAIMED || st == ST_NOT_CLAIMED)
        return context_refuse(
            ctx, sel->strict ? ST_CLAIMED : ST_NOT_CLAIMED,
            "nothing was deleted. A claim in claim_ids must hold each message in ids. "
            "Delete the messages one by one to find those that another worker may have");
    return st == ST_OK ? answer_empty(ctx, 204) : st;
}

static enum status
refuse_ids(struct context *ctx, const struct selection *sel)
{
    bool pops = ctx->resource->variants[METHOD_DELETE] != NULL;

    if (sel->count == 0 && !pops)
        return context_refuse(ctx, ST_MISSING_PARAMETER, "the parameter ids is required");
    if (sel->count == 0)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "one of the parameters ids and pop is required");
    if (sel->strict && sel->claim_count == 0)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "the parameter claim_ids is required. Only the claim that "
                              "holds a message can delete it");
    return ST_OK;
}

/* DELETE .../messages?ids=A,B&claim_ids=C,D */
enum status
handle_message_delete_many(struct context *ctx)
{
    struct selection sel;
    enum status st = read_selection(ctx, &sel);

    if (st == ST_OK)
        st = refuse_ids(ctx, &sel);
    return st == ST_OK ? delete_ids(ctx, &sel) : st;
}

/* ------------------------------------------------------------------ pop */

static enum status
deliver_popped(struct context *ctx, const void *terms, size_t limit,
               struct store_batch *out)
{
    (void)terms; /* a pop has none */
    return store_message_pop(ctx->store, &ctx->visit, &ctx->queue, limit, out);
}

static enum status
pop(struct context *ctx, size_t limit)
{
    const struct message_form form = {.shape = MESSAGE_POP,
                                      .checksum = ctx->limits->enable_checksum};
    struct buf *out = &ctx->res->body;
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st = wait_begin(ctx, 1);

    ctx->visit.waiter = wait_place(ctx, 0);
    if (st == ST_OK && !wait_abandoned(ctx))
        st = deliver_messages(ctx, &form, deliver_popped, NULL, limit, &batch);
    if (st == ST_OK && batch.count == 0)
        st = wait_on(ctx, ctx->visit.waits);
    if (st != ST_OK) {
        store_batch_release(&batch);
        return st;
    }
    buf_str(out, "{\"messages\":");
    message_write_all(out, &form, batch.messages, batch.count);
    buf_byte(out, '}');
    store_batch_release(&batch);
    return answer_json(ctx, 200);
}

static enum status
refuse_pop(struct context *ctx, const struct selection *sel)
{
    if (sel->count > 0)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "the parameters ids and pop cannot be used together");
    if (sel->claim_count > 0)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "the parameter claim_ids can be used only with ids");
    return ST_OK;
}

/* DELETE .../messages?pop=N */
enum status
handle_message_pop(struct context *ctx)
{
    struct selection sel;
    size_t limit = 0;
    enum status st = read_selection(ctx, &sel);

    if (st == ST_OK)
        st = context_read_limit(ctx, "pop", ctx->limits->max_messages_per_claim_or_pop,
                                "max_messages_per_claim_or_pop", &limit);
    if (st == ST_OK)
        st = refuse_pop(ctx, &sel);
    return st == ST_OK ? pop(ctx, limit) : st;
}
