/*
 * A pop deletes its messages, so the response must be possible before:
 *
 *     1. pop_prepared() reserves memory for the response, with a guess of the size of
 *        the bodies.
 *     2. pop_decrypted() pops. If the bodies are larger, the store tells their size:
 *        back to 1.
 *     3. If some are encrypted, the store shows them: decrypt them, and back to 2.
 *        Another request may pop those meanwhile, so there can be others to decrypt.
 *     4. pop_messages() writes the response, which cannot fail.
 *
 * Read store_message_pop() in claimd/store/store.h next.
 */
#include "api/handlers/pop.h"
#include "api/handlers/deliver.h"
#include "api/handlers/handlers.h"
#include "api/key.h"
#include "api/prefer.h"
#include "api/response.h"
#include "api/wait.h"

enum {
    FIRST_GUESS = 4096, /* bytes of bodies; most messages are small */
    ROUNDS = 8          /* attempts to pop decrypted messages */
};

enum status
pop_reuse_decrypted(struct store_batch *batch, const struct store_batch *opened)
{
    size_t at = 0;

    for (size_t i = 0; i < batch->count; i++) {
        struct store_message *m = &batch->messages[i];

        if (!store_is_sealed(m->body))
            continue;
        while (at < opened->count &&
               strcmp(opened->messages[at].id.text, m->id.text) != 0)
            at++; /* both batches are in the order of the queue */
        if (at == opened->count)
            return ST_UNCONFIRMED;
        m->body = opened->messages[at].body;
    }
    return ST_OK;
}

/* Steps 2 and 3. After ROUNDS, the request becomes a slice. */
static enum status
pop_decrypted(struct context *ctx, size_t limit, size_t space, struct store_batch *out)
{
    struct store_batch opened = STORE_BATCH_INIT;
    enum status st = ST_SEALED;

    for (int i = 0; st == ST_SEALED && i < ROUNDS; i++) {
        *out = STORE_BATCH_INIT;
        out->capacity = space;
        out->opened = &opened;
        st = store_message_pop(ctx->store, &ctx->op, &ctx->queue, limit, out);
        if (st != ST_SEALED)
            break;
        store_batch_release(&opened);
        opened = *out;
        *out = STORE_BATCH_INIT;
        st = decrypt_batch(ctx, &opened, opened.count);
        st = st == ST_OK ? ST_SEALED : st;
    }
    if (st == ST_OK && !ctx->op.repeated)
        st = pop_reuse_decrypted(out, &opened);
    if (st == ST_UNCONFIRMED)
        store_batch_release(out);
    out->opened = NULL;
    store_batch_release(&opened);
    return st == ST_SEALED ? ST_AGAIN : st;
}

/* Steps 1 to 3. */
static enum status
pop_prepared(struct context *ctx, const struct message_form *form, size_t limit,
             struct store_batch *out)
{
    size_t bodies = FIRST_GUESS;
    enum status st;

    /* Each round has more space or pops fewer messages, so this ends. Fewer messages are
     * better than none: when memory is short, workers free it. */
    for (;;) {
        size_t documents = message_space(form, limit) + DELIVERY_FRAME;

        if (bodies > SIZE_MAX - documents ||
            !buf_reserve(&ctx->res->body, documents + bodies)) {
            if (limit == 1)
                return ST_NO_MEMORY;
            limit /= 2;
            bodies = FIRST_GUESS;
            buf_reset(&ctx->res->body, SIZE_MAX);
            continue;
        }
        st = pop_decrypted(ctx, limit, bodies, out);
        if (st == ST_OK && ctx->op.repeated) /* any number, of an earlier request */
            return delivery_prepare(ctx, form, out);
        if (st != ST_OVER_CAPACITY)
            return st;
        bodies = out->capacity > bodies ? out->capacity : 2 * bodies;
    }
}

enum status
pop_messages(struct context *ctx, size_t limit)
{
    const struct message_form form = {
        .shape = MESSAGE_POP,
        .checksum = ctx->limits->enable_checksum,
        .details = prefer_details(ctx->req->headers[API_HEADER_PREFER]),
        .time_base = ctx->time_base};
    struct buf *out = &ctx->res->body;
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st = key_begin(ctx);

    if (st == ST_OK)
        st = wait_begin(ctx, 1);
    ctx->op.waiter = wait_waiter(ctx, 0);
    if (st == ST_OK && !wait_abandoned(ctx))
        st = pop_prepared(ctx, &form, limit, &batch);
    if (st == ST_OK && batch.count == 0)
        st = wait_result(ctx, ctx->op.waits);
    if (st != ST_OK) {
        store_batch_release(&batch);
        return st;
    }
    if (batch.count == 0 && ctx->op.paused)
        response_add_header(ctx, "Claimd-Paused", "claims");
    buf_str(out, "{\"messages\":");
    message_write_all(out, &form, batch.messages, batch.count);
    buf_byte(out, '}');
    store_batch_release(&batch);
    key_mark_repeated(ctx);
    return response_json(ctx, 200);
}
