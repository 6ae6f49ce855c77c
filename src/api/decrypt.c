#include "api/decrypt.h"

#include <assert.h> /* static_assert */

static_assert((int)STORE_SEALED_MARK == (int)SEAL_MARK,
              "the store and the seal mark sealed bodies alike");

static struct seal_scope
scope_of(const struct context *ctx)
{
    return (struct seal_scope){ctx->queue.project, (uint32_t)ctx->queue.kind};
}

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
    const struct seal_scope scope = scope_of(ctx);
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
decrypt_reuse(struct store_batch *batch, const struct store_batch *opened)
{
    size_t at = 0;

    for (size_t i = 0; i < batch->count; i++) {
        struct store_message *m = &batch->messages[i];

        if (!store_is_sealed(m->body))
            continue;
        while (at < opened->count &&
               strcmp(opened->messages[at].id.text, m->id.text) != 0)
            at++; /* both are in the order of the queue */
        if (at == opened->count)
            return ST_UNCONFIRMED;
        m->body = opened->messages[at].body;
    }
    return ST_OK;
}

static enum status
seal_draft(struct context *ctx, struct store_draft *draft)
{
    const struct seal_scope scope = scope_of(ctx);
    size_t len = draft->body.len + SEAL_OVERHEAD;
    char *to = arena_alloc(ctx->req->arena, len);
    enum status st =
        to == NULL ? ST_NO_MEMORY : seal_close(ctx->seal, &scope, draft->body, to);

    if (st == ST_OK)
        draft->body = bytes_of(to, len);
    return st;
}

enum status
encrypt_post(struct context *ctx, struct store_post *post)
{
    struct store_draft *drafts =
        arena_array(ctx->req->arena, post->count, sizeof(*drafts));
    enum status st = drafts == NULL ? ST_NO_MEMORY : ST_OK;

    if (st == ST_OK && ctx->seal == NULL)
        st = ST_NO_KEY;
    for (size_t i = 0; st == ST_OK && i < post->count; i++) {
        drafts[i] = post->drafts[i];
        st = seal_draft(ctx, &drafts[i]);
    }
    if (st == ST_NO_KEY)
        return context_refuse(ctx, st,
                              "queue %.*s encrypts its messages, but the server has no "
                              "key (encryption_keys)",
                              (int)ctx->queue.name.len, ctx->queue.name.data);
    if (st == ST_OK)
        post->drafts = drafts;
    return st;
}

enum status
encrypt_check(struct context *ctx, const struct store_settings *settings)
{
    if (!settings->encrypt || (ctx->seal != NULL && seal_ready(ctx->seal)))
        return ST_OK;
    return context_refuse(ctx, ST_BAD_VALUE,
                          "_enable_encrypt_messages must be false. The server has no key "
                          "to encrypt with (encryption_keys)");
}

/* ------------------------------------------------------------------ delivering */

enum {
    FIRST_GUESS = 4096, /* bytes of bodies; most claims are of small messages */
    ROUNDS = 8,         /* in which others may deliver what was decrypted for this one */
    FRAME = 256         /* more than what stands around the messages of any answer */
};

/*
 * Delivers what fits, and decrypts what is encrypted before it does. Others may deliver that
 * meanwhile. Then there is more to decrypt, and after some rounds their turn comes.
 */
static enum status
deliver_decrypted(struct context *ctx, deliver_fn *deliver, const void *terms,
                  size_t limit, size_t room, struct store_batch *out)
{
    struct store_batch opened = STORE_BATCH_INIT;
    enum status st = ST_SEALED;

    for (int i = 0; st == ST_SEALED && i < ROUNDS; i++) {
        *out = (struct store_batch)STORE_BATCH_INIT;
        out->room = room;
        out->opened = &opened;
        st = deliver(ctx, terms, limit, out);
        if (st != ST_SEALED)
            break;
        store_batch_release(&opened);
        opened = *out;
        *out = (struct store_batch)STORE_BATCH_INIT;
        st = decrypt_batch(ctx, &opened, opened.count);
        st = st == ST_OK ? ST_SEALED : st;
    }
    if (st == ST_OK)
        st = decrypt_reuse(out, &opened);
    if (st == ST_UNCONFIRMED)
        store_batch_release(out);
    out->opened = NULL;
    store_batch_release(&opened);
    return st == ST_SEALED ? ST_AGAIN : st;
}

enum status
deliver_messages(struct context *ctx, const struct message_form *form,
                 deliver_fn *deliver, const void *terms, size_t limit,
                 struct store_batch *out)
{
    size_t bodies = FIRST_GUESS;
    enum status st;

    /*
     * Each round has more space than the one before, or delivers fewer messages: it ends, whatever
     * others do. Fewer are better than none: when memory is short, workers make room.
     */
    for (;;) {
        size_t documents = message_room(form, limit) + FRAME;

        if (bodies > SIZE_MAX - documents ||
            !buf_reserve(&ctx->res->body, documents + bodies)) {
            if (limit == 1)
                return ST_NO_MEMORY;
            limit /= 2;
            bodies = FIRST_GUESS;
            buf_reset(&ctx->res->body, SIZE_MAX);
            continue;
        }
        st = deliver_decrypted(ctx, deliver, terms, limit, bodies, out);
        if (st != ST_NO_ROOM)
            return st;
        bodies = out->room > bodies ? out->room : 2 * bodies;
    }
}
