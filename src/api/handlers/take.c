#include "api/handlers/take.h"

#include "api/opening.h"

enum {
    FIRST_GUESS = 4096, /* bytes of bodies; most claims are of small messages */
    ROUNDS = 8,         /* in which others may take what was opened for this one */
    FRAME = 256         /* more than what stands around the messages of any answer */
};

/*
 * Takes what fits the room, and opens what is sealed before it does. Others may take that
 * meanwhile: then there is more to be opened, and after some rounds their turn comes.
 */
static enum status
take_opened(struct context *ctx, take_fn *take, const void *terms, size_t limit,
            size_t room, struct store_batch *out)
{
    struct store_batch opened = STORE_BATCH_INIT;
    enum status st = ST_SEALED;

    for (int i = 0; st == ST_SEALED && i < ROUNDS; i++) {
        *out = (struct store_batch)STORE_BATCH_INIT;
        out->room = room;
        out->opened = &opened;
        st = take(ctx, terms, limit, out);
        if (st != ST_SEALED)
            break;
        store_batch_release(&opened);
        opened = *out;
        *out = (struct store_batch)STORE_BATCH_INIT;
        st = opening_show(ctx, &opened, opened.count);
        st = st == ST_OK ? ST_SEALED : st;
    }
    if (st == ST_OK)
        st = opening_adopt(out, &opened);
    if (st == ST_UNCONFIRMED)
        store_batch_release(out);
    out->opened = NULL;
    store_batch_release(&opened);
    return st == ST_SEALED ? ST_AGAIN : st;
}

enum status
take_messages(struct context *ctx, const struct message_form *form, take_fn *take,
              const void *terms, size_t limit, struct store_batch *out)
{
    size_t bodies = FIRST_GUESS;
    enum status st;

    /*
     * Each round has more room than the one before, or takes fewer messages: it ends, whatever
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
        st = take_opened(ctx, take, terms, limit, bodies, out);
        if (st != ST_NO_ROOM)
            return st;
        bodies = out->room > bodies ? out->room : 2 * bodies;
    }
}
