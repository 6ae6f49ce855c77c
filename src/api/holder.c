#include "api/holder.h"
#include "api/wire/message.h"
#include "claimd/base/utf8.h"

#include <assert.h> /* static_assert */

static_assert(HOLDER_CLIENT_MAX + HOLDER_ADDRESS_MAX + HOLDER_WORKER_MAX + 2 ==
                  STORE_CLIENT_MAX,
              "the store keeps the longest holder");

static bool
is_shown(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] < ' ' || text.data[i] > '~')
            return false;
    return true;
}

static struct bytes
cut(struct bytes text, size_t most)
{
    return text.len <= most ? text : bytes_of(text.data, most);
}

/* Replaces bytes that are not UTF-8: in JSON, they would take more space than others. */
static void
replace_invalid(char *text, size_t len)
{
    uint32_t point;

    for (size_t at = 0, n; at < len; at += n) {
        n = utf8_next(bytes_of(text + at, len - at), &point);
        if (n == 0) {
            text[at] = '?';
            n = 1;
        }
    }
}

enum status
holder_text(struct context *ctx, struct bytes *out)
{
    const struct bytes mark = BYTES_LIT("\n");
    const struct bytes worker = ctx->req->headers[API_HEADER_WORKER];
    struct bytes client = ctx->req->headers[API_HEADER_CLIENT_ID];
    const struct bytes *last = worker.len > 0 ? &worker : &ctx->req->address;
    char *at;

    if (worker.len > HOLDER_WORKER_MAX || !is_shown(worker))
        return context_refuse(ctx, ST_BAD_VALUE,
                              "the header Claimd-Worker is \"%s\". It must be at most %d "
                              "visible ASCII characters and spaces",
                              received(worker).text, HOLDER_WORKER_MAX);
    client = cut(client, HOLDER_CLIENT_MAX);
    at = arena_alloc(ctx->req->arena, STORE_CLIENT_MAX);
    if (at == NULL)
        return ST_NO_MEMORY;
    out->data = at;
    (void)bytes_copy_to(&at, client);
    if (!ctx->limits->client_id_strict) /* else it is a UUID */
        replace_invalid(at - client.len, client.len);
    if (last->len > 0) {
        (void)bytes_copy_to(&at, mark);
        (void)bytes_copy_to(&at, cut(ctx->req->address, HOLDER_ADDRESS_MAX));
    }
    if (worker.len > 0) {
        (void)bytes_copy_to(&at, mark);
        (void)bytes_copy_to(&at, worker);
    }
    out->len = (size_t)(at - out->data);
    return ST_OK;
}
