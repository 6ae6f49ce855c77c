#include "api/handlers/take.h"

enum {
    FIRST_GUESS = 4096, /* bytes of bodies; most claims are of small messages */
    FRAME = 256         /* more than what stands around the messages of any answer */
};

enum status
take_messages(struct context *ctx, const struct message_form *form, take_fn *take,
              const void *terms, size_t limit, struct store_batch *out)
{
    size_t documents = message_room(form, limit) + FRAME;
    size_t bodies = FIRST_GUESS;
    enum status st;

    /* Each round has more room than the one before: it ends, whatever others do. */
    for (;;) {
        if (bodies > SIZE_MAX - documents ||
            !buf_reserve(&ctx->res->body, documents + bodies))
            return ST_NO_MEMORY;
        *out = (struct store_batch)STORE_BATCH_INIT;
        out->room = bodies;
        st = take(ctx, terms, limit, out);
        if (st != ST_NO_ROOM)
            return st;
        bodies = out->room > bodies ? out->room : 2 * bodies;
    }
}
