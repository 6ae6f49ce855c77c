/*
 * claims: the requests on claims of a queue, and the claim of the first of several
 * queues that has a message.
 *
 *     1. read_claim() checks the terms and the limit.
 *     2. claim_first() claims from the queue, or from each queue in turn (claim_one()).
 *     3. deliver_messages() makes the response possible, and calls the store (deliver.h).
 *     4. write_claimed() writes the response, which cannot fail.
 *     5. If there is no message, the request waits (wait.h), or gets 204.
 *
 * Declared in handlers.h. Read deliver.h and store_claim_create() in
 * claimd/store/store.h next.
 */
#include "api/caller.h"
#include "api/handlers/deliver.h"
#include "api/handlers/handlers.h"
#include "api/holder.h"
#include "api/key.h"
#include "api/response.h"
#include "api/wait.h"
#include "claimd/json/string.h"

enum { NUMBER_CAP = DECIMAL_CAP + 1 }; /* with a NUL */

static enum status
read_terms(struct context *ctx, enum terms_form form, struct decoded_terms *out)
{
    static const char *const known[] = {"ttl", "grace", "limit"};
    const bool renews = form == TERMS_RENEW || form == TERMS_RENEW_V1;
    enum status st = context_read_body(ctx);

    if (st == ST_OK)
        st = decode_terms(ctx->req->body, form, ctx->limits, out, ctx->why);
    if (st == ST_OK && bytes_present(out->unknown))
        context_warn_member(ctx, out->unknown, known,
                            sizeof(known) / sizeof(known[0]) - renews);
    return st;
}

/* The form of claimed messages, which always show the claim id. */
static enum status
claimed_form(const struct context *ctx, struct message_form *out)
{
    enum status st = context_message_form(ctx, out);

    if (st == ST_OK)
        out->hide_claim = false;
    return st;
}

/* A claim that a request wants. */
struct wanted_claim {
    struct decoded_terms said;
    bool raw; /* the response is the body of the only message */
};

/* The parts of the response to a claim, reserved before the store is called. */
struct claimed {
    struct message_form form;
    char *location; /* path of the queue's claims, with space for an id behind it */
    char *message;  /* raw: path of the queue's messages, with space for both ids */
    char *number;   /* claim_number_reserve() */
};

char *
claim_number_reserve(struct context *ctx)
{
    return arena_alloc(ctx->req->arena, NUMBER_CAP);
}

void
claim_number_add(struct context *ctx, char *text, uint64_t number)
{
    text[decimal_write(text, number)] = '\0';
    response_add_header(ctx, "Claim-Number", text);
}

/* The path with which a worker deletes its message. */
static void
add_message_path(struct context *ctx, char *path, const struct store_message *m)
{
    strcat(path, m->id.text);
    strcat(path, "?claim_id=");
    strcat(path, m->claim_id.text);
    response_add_header(ctx, "Content-Location", path);
}

static enum status
write_claimed(struct context *ctx, struct claimed *claimed, bool raw,
              const struct store_batch *batch)
{
    size_t len = strlen(claimed->location);

    strcat(claimed->location + len, batch->claim_id.text);
    ctx->res->claim_queue = ctx->queue;
    ctx->res->claim_id = bytes_str(claimed->location + len);
    ctx->res->claim_stays = ctx->op.key != NULL;
    response_add_header(ctx, "Location", claimed->location);
    claim_number_add(ctx, claimed->number, batch->claim_number);
    key_mark_repeated(ctx);
    if (raw) {
        add_message_path(ctx, claimed->message, &batch->messages[0]);
        return raw_write(ctx, batch->messages[0].body);
    }
    write_messages(ctx, &claimed->form, batch);
    return response_json(ctx, 201);
}

static enum status
deliver_claimed(struct context *ctx, const void *terms, size_t limit,
                struct store_batch *out)
{
    return store_claim_create(ctx->store, &ctx->op, &ctx->queue, terms, limit, out);
}

/* Reads the terms and the limit, which some SDKs send in the body. The parameter has
 * priority. */
static enum status
read_claim(struct context *ctx, struct decoded_terms *out)
{
    const struct api_limits *l = ctx->limits;
    int64_t most = l->max_messages_per_claim_or_pop;
    size_t limit = 0;
    enum status st =
        context_read_limit(ctx, "limit", most, "max_messages_per_claim_or_pop", &limit);

    if (st == ST_OK)
        st = read_terms(ctx, ctx->version->claim, out);
    if (st != ST_OK)
        return st;
    if (limit > 0)
        out->limit = limit;
    else if (out->limit == 0)
        out->limit = (size_t)limits_page(l, most);
    return ST_OK;
}

/* Claims messages of the context's queue, the request's i-th. *made: it wrote the
 * response. */
static enum status
claim_one(struct context *ctx, size_t i, const struct wanted_claim *wanted, bool *made)
{
    static const char no_id[STORE_ID_CAP] = {0}, no_ids[3 * STORE_ID_CAP] = {0};
    const struct decoded_terms *said = &wanted->said;
    struct store_batch batch = STORE_BATCH_INIT;
    struct claimed claimed = {
        .location = context_path(ctx, "/claims/", bytes_of(no_id, sizeof(no_id))),
        .number = claim_number_reserve(ctx)};
    enum status st = claimed_form(ctx, &claimed.form);

    *made = false;
    if (wanted->raw)
        claimed.message =
            context_path(ctx, "/messages/", bytes_of(no_ids, sizeof(no_ids)));
    if (st != ST_OK || claimed.location == NULL || claimed.number == NULL ||
        (wanted->raw && claimed.message == NULL))
        return ST_NO_MEMORY;
    ctx->op.waiter = wait_waiter(ctx, i);
    st = deliver_messages(ctx, &claimed.form, deliver_claimed, &said->terms, said->limit,
                          &batch);
    ctx->op.waiter = NULL;
    if (st == ST_OK && batch.claim_id.text[0] != '\0') {
        *made = true;
        st = write_claimed(ctx, &claimed, wanted->raw, &batch);
    }
    store_batch_release(&batch);
    return st;
}

/* Claims messages of the first queue that has any, or waits. */
static enum status
claim_first(struct context *ctx, const struct bytes *names, size_t count,
            const struct wanted_claim *wanted)
{
    enum status st = holder_text(ctx, &ctx->op.client);
    bool queued = true, paused = false;

    if (st == ST_OK)
        st = key_begin(ctx);
    if (st == ST_OK)
        st = wait_begin(ctx, count);
    for (size_t i = 0; st == ST_OK && i < count && !wait_abandoned(ctx); i++) {
        bool made;

        ctx->queue.name = names[i];
        st = claim_one(ctx, i, wanted, &made);
        if (st != ST_OK || made)
            return st;
        queued = queued && ctx->op.waits;
        paused = paused || ctx->op.paused;
    }
    if (st == ST_OK)
        st = wait_result(ctx, queued);
    if (st == ST_OK && paused)
        response_add_header(ctx, "Claimd-Paused", "claims");
    return st == ST_OK ? response_empty(ctx, 204) : st;
}

/* POST .../claims?limit=N */
enum status
handle_claim_create(struct context *ctx)
{
    const struct bytes name = ctx->queue.name;
    struct wanted_claim wanted = {.raw = false};
    enum status st = read_claim(ctx, &wanted.said);

    return st == ST_OK ? claim_first(ctx, &name, 1, &wanted) : st;
}

enum status
claim_raw(struct context *ctx)
{
    const struct bytes name = ctx->queue.name;
    struct wanted_claim wanted = {.raw = true};
    enum status st = read_claim(ctx, &wanted.said);

    wanted.said.limit = 1;
    return st == ST_OK ? claim_first(ctx, &name, 1, &wanted) : st;
}

enum { ANY_QUEUES_MAX = 32 }; /* queues of a request */

/* Drops names that appear twice. */
static void
drop_repeated(struct bytes *names, size_t *count)
{
    size_t kept = 0;

    for (size_t i = 0; i < *count; i++) {
        size_t k = 0;

        while (k < kept && !bytes_equal(names[k], names[i]))
            k++;
        if (k == kept)
            names[kept++] = names[i];
    }
    *count = kept;
}

static enum status
read_queues(struct context *ctx, struct bytes **names, size_t *count)
{
    enum status st = query_list(&ctx->query, "queue", false, ANY_QUEUES_MAX,
                                ctx->req->arena, names, count);

    if (st == ST_BAD_VALUE)
        return context_refuse(ctx, st,
                              "the parameter queue is given %zu times. The maximum is %d",
                              *count, ANY_QUEUES_MAX);
    if (st == ST_OK && *count == 0)
        return context_refuse(
            ctx, ST_MISSING_PARAMETER,
            "the parameter queue is required. Give it once for each queue");
    for (size_t i = 0; st == ST_OK && i < *count; i++)
        st = context_check_name(ctx, (*names)[i]);
    if (st == ST_OK)
        drop_repeated(*names, count);
    return st;
}

/* POST /claimd/claims?queue=A&queue=B&limit=N */
enum status
handle_claim_any(struct context *ctx)
{
    struct wanted_claim wanted = {.raw = false};
    struct bytes *names;
    size_t count;
    enum status st = read_queues(ctx, &names, &count);

    if (st == ST_OK && count > 1 && key_is_sent(ctx))
        st = context_refuse(ctx, ST_BAD_VALUE,
                            "the header Idempotency-Key can be used only with one queue");
    if (st == ST_OK)
        st = read_claim(ctx, &wanted.said);
    if (st != ST_OK)
        return st;
    st = context_set_base(ctx, version_v2.base, BYTES_NONE);
    return st == ST_OK ? claim_first(ctx, names, count, &wanted) : st;
}

static enum status
write_claim(struct context *ctx, const struct store_batch *batch)
{
    struct buf *out = &ctx->res->body;
    const char *href = context_path(ctx, "/claims/", ctx->id);
    char *number = claim_number_reserve(ctx);
    struct message_form form;

    if (href == NULL || number == NULL || claimed_form(ctx, &form) != ST_OK)
        return ST_NO_MEMORY;
    claim_number_add(ctx, number, batch->claim_number);
    buf_byte(out, '{');
    json_write_i64(out, "age", batch->claim_age_s);
    json_write_i64(out, "ttl", batch->claim_ttl_s);
    json_write_text(out, "href", bytes_str(href));
    json_write_name(out, "messages");
    message_write_all(out, &form, batch->messages, batch->count);
    buf_byte(out, '}');
    return response_json(ctx, 200);
}

/* GET .../claims/{id} */
enum status
handle_claim_show(struct context *ctx)
{
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st = store_claim_get(ctx->store, &ctx->op, &ctx->queue, ctx->id, &batch);

    if (st == ST_NOT_FOUND)
        return context_refuse_id(ctx, "claim", true);
    if (st != ST_OK)
        return st;
    st = decrypt_batch(ctx, &batch, batch.count);
    if (st == ST_OK)
        st = write_claim(ctx, &batch);
    store_batch_release(&batch);
    return st;
}

/* PATCH .../claims/{id} */
enum status
handle_claim_renew(struct context *ctx)
{
    char *text = claim_number_reserve(ctx);
    struct decoded_terms said;
    uint64_t number;
    enum status st = read_terms(ctx, ctx->version->renew, &said);

    if (st == ST_OK)
        st = holder_text(ctx, &ctx->op.client);
    if (st != ST_OK)
        return st;
    if (text == NULL)
        return ST_NO_MEMORY;
    st = store_claim_renew(ctx->store, &ctx->op, &ctx->queue, ctx->id, &said.terms,
                           &number);
    if (st == ST_NOT_FOUND)
        return context_refuse_id(ctx, "claim", true);
    if (st != ST_OK)
        return st;
    claim_number_add(ctx, text, number);
    return response_empty(ctx, 204);
}

/* DELETE .../claims/{id} */
enum status
handle_claim_release(struct context *ctx)
{
    enum status st =
        store_claim_release(ctx->store, &ctx->op, &ctx->queue, ctx->id, STORE_RELEASED);

    return st == ST_OK ? response_empty(ctx, 204) : st;
}
