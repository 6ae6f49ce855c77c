#include "api/handlers/deliver.h"
#include "claimd/base/sometimes.h"

#include <assert.h> /* static_assert */

static_assert((int)STORE_SEALED_MARK == (int)SEAL_MARK,
              "the store and the seal mark sealed bodies alike");

static enum status
refuse_message(struct context *ctx, enum status st, const struct store_message *message)
{
    if (st == ST_NO_KEY)
        return context_refuse(ctx, st,
                              "message %s is encrypted, but the server does not have its "
                              "key (encryption_keys)",
                              message->id.text);
    if (st == ST_DAMAGED)
        return context_refuse(ctx, st,
                              "message %s is encrypted, but its stored body is damaged",
                              message->id.text);
    return st;
}

static enum status
decrypt_one(struct context *ctx, struct store_message *message)
{
    const struct seal_scope scope = {ctx->queue.project, (uint32_t)ctx->queue.kind};
    size_t len = seal_open_len(message->body);
    enum status st = ST_NO_KEY;
    char *to;

    if (ctx->seal == NULL)
        return refuse_message(ctx, st, message);
    to = arena_alloc(ctx->req->arena, len);
    if (to == NULL)
        return ST_NO_MEMORY;
    st = seal_open(ctx->seal, &scope, message->body, to);
    if (st != ST_OK)
        return refuse_message(ctx, st, message);
    message->body = bytes_of(to, len);
    return ST_OK;
}

enum status
decrypt_batch(struct context *ctx, struct store_batch *batch, size_t count)
{
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < count; i++)
        if (store_is_sealed(batch->messages[i].body))
            st = decrypt_one(ctx, &batch->messages[i]);
    return st;
}

enum status
delivery_prepare(struct context *ctx, const struct message_form *form,
                 struct store_batch *batch)
{
    size_t space = message_space(form, batch->count) + DELIVERY_FRAME;

    for (size_t i = 0; i < batch->count; i++)
        space += batch->messages[i].body.len; /* an encrypted one is longer */
    return buf_reserve(&ctx->res->body, space) ? decrypt_batch(ctx, batch, batch->count)
                                               : ST_NO_MEMORY;
}

void
write_messages(struct context *ctx, const struct message_form *form,
               const struct store_batch *batch)
{
    struct buf *out = &ctx->res->body;

    if (!ctx->version->bare_arrays)
        buf_str(out, "{\"messages\":");
    message_write_all(out, form, batch->messages, batch->count);
    if (!ctx->version->bare_arrays)
        buf_byte(out, '}');
}
