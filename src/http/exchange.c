#include "http/exchange.h"

#include "claimd/base/invariant.h"

/* ------------------------------------------------------------------ request ids */

enum { SOURCE_AT = 13, SOURCE = 4, COUNTER = 12 }; /* characters */

void
request_ids_init(struct request_ids *ids, const char *tag, unsigned source)
{
    memcpy(ids->prefix, "req-", 4);
    memcpy(ids->prefix + 4, tag, sizeof(ids->prefix) - 4);
    hex_write(ids->prefix + SOURCE_AT, source, SOURCE);
    ids->last = 0;
}

void
request_ids_next(struct request_ids *ids, char out[REQUEST_ID_CAP])
{
    memcpy(out, ids->prefix, sizeof(ids->prefix));
    hex_write(out + sizeof(ids->prefix), ++ids->last, COUNTER);
    out[sizeof(ids->prefix) + COUNTER] = '\0';
}

/* ------------------------------------------------------------------ exchanges */

/* Bytes reserved at once for a body of known length. A client may not send what it
 * announces. */
enum { FIRST_RESERVE = 16384 };

/*
 * Incomplete bodies count against the budget. Otherwise clients that send almost all of a
 * post could take any amount of memory. Only posts and metadata are larger than
 * BODY_FREE, so claims and deletions work when the budget is used up. Responses count,
 * too, because a client may not read them. Clients must be able to read while messages
 * use up the budget, so responses have a budget of their own (base/mem.h), and pages are
 * shorter when that is small.
 */
enum { BODY_FREE = 16384, RESPONSE_FREE = 65536 };

void
exchange_pool_init(struct exchange_pool *pool, struct mem *mem)
{
    *pool = (struct exchange_pool){.mem = mem};
}

static void
exchange_free(struct exchange_pool *pool, struct exchange *ex)
{
    buf_fini(&ex->body);
    buf_fini(&ex->response.body);
    arena_fini(&ex->arena);
    mem_free(pool->mem, ex);
}

void
exchange_pool_fini(struct exchange_pool *pool)
{
    while (pool->spare != NULL) {
        struct exchange *ex = pool->spare;

        pool->spare = ex->next;
        exchange_free(pool, ex);
    }
    pool->spare_count = 0;
}

static struct exchange *
exchange_new(struct exchange_pool *pool)
{
    struct exchange *ex = pool->spare;

    if (ex != NULL) {
        pool->spare = ex->next;
        pool->spare_count--;
        return ex;
    }
    ex = mem_calloc(pool->mem, 1, sizeof(*ex));
    if (ex == NULL)
        return NULL;
    arena_init(&ex->arena, pool->mem);
    buf_init(&ex->body, pool->mem);
    buf_init(&ex->response.body, pool->mem);
    buf_ration(&ex->body, BODY_FREE, MEM_DATA);
    buf_ration(&ex->response.body, RESPONSE_FREE, MEM_RESPONSES);
    return ex;
}

/* Splits a request target into path and query. */
static void
split_target(struct bytes target, struct bytes *path, struct bytes *query)
{
    struct bytes rest = target;

    *path = bytes_cut(&rest, '?');
    *query = rest;
    if (path->len > 0 && path->data[0] != '/') {
        const char *scheme = memmem(path->data, path->len, "://", 3);
        size_t skip;

        if (scheme == NULL)
            return;
        skip = (size_t)(scheme - path->data) + 3;
        while (skip < path->len && path->data[skip] != '/')
            skip++;
        *path = skip == path->len ? bytes_str("/")
                                  : bytes_of(path->data + skip, path->len - skip);
    }
}

struct exchange *
exchange_begin(struct exchange_pool *pool, struct conn *conn, const char *target)
{
    struct exchange *ex = exchange_new(pool);
    struct bytes copy;

    if (ex == NULL)
        return NULL;
    ex->raw_target = bytes_str(target);
    copy = arena_copy(&ex->arena, ex->raw_target);
    if (!bytes_present(copy)) {
        exchange_free(pool, ex);
        return NULL;
    }
    ENSURE(ex->conn == NULL && ex->state == EXCHANGE_HEAD);
    ex->conn = conn;
    ex->request.connection = &conn->quota;
    split_target(copy, &ex->request.path, &ex->request.query);
    ex->request.arena = &ex->arena;
    ex->response.route = NULL;
    ex->response.about = (struct response_subject){.queue = BYTES_NONE};
    ex->client_id = ex->traceparent = ex->forwarded = BYTES_NONE;
    ex->request.tls = conn->mhd.tls != NULL;
    ex->request.check_host = conn->check_host;
    ex->request.from_proxy = conn->from_proxy;
    ex->request.certificate = conn->certificate;
    ex->request.listener =
        conn->kind == LISTEN_METRICS ? API_LISTENER_METRICS : API_LISTENER_MAIN;
    return ex;
}

void
exchange_set_method(struct exchange *ex, struct bytes name)
{
    size_t len = name.len < sizeof(ex->method) ? name.len : sizeof(ex->method) - 1;

    ex->request.method = api_method(name);
    memcpy(ex->method, name.data, len);
    ex->method[len] = '\0';
}

void
exchange_end(struct exchange_pool *pool, struct exchange *ex)
{
    struct arena arena = ex->arena;
    struct buf body = ex->body, response = ex->response.body;

    ENSURE(ex->conn != NULL); /* in use */
    ENSURE(ex->fiber == NULL && !list_linked(&ex->commit) && !ex->counted);
    arena_reset(&arena);
    buf_reset(&body, EXCHANGE_KEEP);
    buf_reset(&response, EXCHANGE_KEEP);
    *ex = (struct exchange){.arena = arena, .body = body, .response.body = response};
    if (pool->spare_count >= EXCHANGE_SPARE) {
        exchange_free(pool, ex);
        return;
    }
    ex->next = pool->spare;
    pool->spare = ex;
    pool->spare_count++;
}

void
exchange_refuse_body(struct exchange *ex)
{
    ex->state = EXCHANGE_DISCARD;
    ex->request.body_too_large = true;
    buf_reset(&ex->body, 0);
}

void
exchange_append_body(struct exchange *ex, const char *data, size_t len, size_t limit)
{
    ex->received += len;
    if (ex->state == EXCHANGE_DISCARD)
        return;
    if (ex->received > limit) {
        exchange_refuse_body(ex);
        return;
    }
    if (ex->body.data == NULL && ex->head.content_length > len)
        (void)buf_reserve(&ex->body, ex->head.content_length < FIRST_RESERVE
                                         ? (size_t)ex->head.content_length
                                         : FIRST_RESERVE); /* buf_add() fails as well */
    buf_add(&ex->body, data, len);
    if (ex->body.failed) {
        ex->state = EXCHANGE_DISCARD;
        ex->no_memory = true;
        buf_reset(&ex->body, 0);
    }
}
