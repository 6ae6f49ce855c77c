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

    if (ctx->config->seal == NULL)
        return refuse_message(ctx, st, message);
    to = arena_alloc(ctx->req->arena, len);
    if (to == NULL)
        return ST_NO_MEMORY;
    st = seal_open(ctx->config->seal, &scope, message->body, to);
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
reuse_decrypted(struct store_batch *batch, const struct store_batch *opened)
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

/*
 * A response that delivers messages must be possible before they are delivered. A popped
 * message is deleted, and a 503 must change nothing:
 *
 *     1. deliver_messages() reserves memory for the response, with a guess of the size of
 *        the bodies.
 *     2. `deliver` claims or pops. If the bodies are larger, the store tells their size:
 *        back to 1.
 *     3. If some are encrypted, the store shows them instead. deliver_decrypted()
 *        decrypts them, and calls `deliver` again with them. Meanwhile another request
 *        may get those, so there can be others to decrypt.
 *     4. The caller writes the response, which cannot fail.
 */
enum {
    FIRST_GUESS = 4096, /* bytes of bodies; most messages are small */
    ROUNDS = 8,         /* attempts to deliver decrypted messages */
    FRAME = 256         /* more than a response has besides its messages */
};

/* Step 3, after ST_SEALED. After ROUNDS the request becomes a slice. */
static enum status
deliver_decrypted(struct context *ctx, deliver_fn *deliver, const void *terms,
                  size_t limit, size_t space, struct store_batch *out)
{
    struct store_batch opened = STORE_BATCH_INIT;
    enum status st = ST_SEALED;

    for (int i = 0; st == ST_SEALED && i < ROUNDS; i++) {
        store_batch_release(&opened);
        opened = *out;
        *out = STORE_BATCH_INIT;
        st = decrypt_batch(ctx, &opened, opened.count);
        if (st != ST_OK)
            break;
        out->capacity = space;
        out->opened = &opened;
        st = deliver(ctx, terms, limit, out);
    }
    if (st == ST_OK && !ctx->op.repeated)
        st = reuse_decrypted(out, &opened);
    if (st == ST_SEALED || st == ST_UNCONFIRMED)
        store_batch_release(out);
    out->opened = NULL;
    store_batch_release(&opened);
    return st == ST_SEALED ? ST_AGAIN : st;
}

/* After ST_OK, for messages of an earlier request, of which there may be any number. */
static enum status
prepare_repeated(struct context *ctx, const struct message_form *form,
                 struct store_batch *batch)
{
    size_t space = message_space(form, batch->count) + FRAME;

    for (size_t i = 0; i < batch->count; i++)
        space += batch->messages[i].body.len;
    return buf_reserve(&ctx->res->body, space) ? decrypt_batch(ctx, batch, batch->count)
                                               : ST_NO_MEMORY;
}

enum status
deliver_messages(struct context *ctx, const struct message_form *form,
                 deliver_fn *deliver, const void *terms, size_t limit,
                 struct store_batch *out)
{
    static const struct store_batch none = {.store = NULL};
    size_t bodies = FIRST_GUESS;
    enum status st;

    /* Each round has more space or delivers fewer messages, so this ends. Fewer messages
     * are better than none: when memory is short, workers free it. */
    for (;;) {
        size_t documents = message_space(form, limit) + FRAME;

        if (bodies > SIZE_MAX - documents ||
            !buf_reserve(&ctx->res->body, documents + bodies)) {
            if (limit == 1)
                return ST_NO_MEMORY;
            SOMETIMES(CLAIM_PARTIAL);
            limit /= 2;
            bodies = FIRST_GUESS;
            buf_reset(&ctx->res->body, SIZE_MAX);
            continue;
        }
        *out = STORE_BATCH_INIT;
        out->capacity = bodies;
        out->opened = &none;
        st = deliver(ctx, terms, limit, out);
        if (st == ST_SEALED)
            st = deliver_decrypted(ctx, deliver, terms, limit, bodies, out);
        if (st == ST_OK && ctx->op.repeated)
            return prepare_repeated(ctx, form, out);
        if (st != ST_OVER_CAPACITY)
            return st;
        bodies = out->capacity > bodies ? out->capacity : 2 * bodies;
    }
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
