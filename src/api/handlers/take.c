#include "api/handlers/take.h"

enum {
    FIRST_GUESS = 4096, /* bytes of bodies; most claims are of small messages */
    FRAME = 256         /* more than what stands around the messages of any answer */
};

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
        *out = (struct store_batch)STORE_BATCH_INIT;
        out->room = bodies;
        st = take(ctx, terms, limit, out);
        if (st != ST_NO_ROOM)
            return st;
        bodies = out->room > bodies ? out->room : 2 * bodies;
    }
}
