#include "api/caller.h"
#include "api/handlers/handlers.h"
#include "api/key.h"
#include "claimd/base/sometimes.h"
#include "claimd/json/string.h"

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
decrypt_reuse(struct store_batch *batch, const struct store_batch *opened)
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

/* ------------------------------------------------------------------ delivering */

enum {
    FIRST_GUESS = 4096, /* bytes of bodies; most messages are small */
    ROUNDS = 8,         /* attempts to deliver decrypted messages */
    FRAME = 256         /* more than a response has besides its messages */
};

/*
 * Delivers messages that fit, and decrypts encrypted ones before. Another request may deliver those
 * meanwhile. Then there are others to decrypt, and after ROUNDS the request becomes a slice.
 */
static enum status
deliver_decrypted(struct context *ctx, deliver_fn *deliver, const void *terms,
                  size_t limit, size_t space, struct store_batch *out)
{
    struct store_batch opened = STORE_BATCH_INIT;
    enum status st = ST_SEALED;

    for (int i = 0; st == ST_SEALED && i < ROUNDS; i++) {
        *out = STORE_BATCH_INIT;
        out->capacity = space;
        out->opened = &opened;
        st = deliver(ctx, terms, limit, out);
        if (st != ST_SEALED)
            break;
        store_batch_release(&opened);
        opened = *out;
        *out = STORE_BATCH_INIT;
        st = decrypt_batch(ctx, &opened, opened.count);
        st = st == ST_OK ? ST_SEALED : st;
    }
    if (st == ST_OK)
        st = ctx->op.repeated ? decrypt_batch(ctx, out, out->count)
                              : decrypt_reuse(out, &opened);
    if (st == ST_UNCONFIRMED)
        store_batch_release(out);
    out->opened = NULL;
    store_batch_release(&opened);
    return st == ST_SEALED ? ST_AGAIN : st;
}

/* Reserves space for messages of an earlier request, of which there may be any number. */
static enum status
reserve_repeated(struct context *ctx, const struct message_form *form,
                 const struct store_batch *batch)
{
    size_t space = message_space(form, batch->count) + FRAME;

    for (size_t i = 0; i < batch->count; i++)
        space += batch->messages[i].body.len;
    return buf_reserve(&ctx->res->body, space) ? ST_OK : ST_NO_MEMORY;
}

enum status
deliver_messages(struct context *ctx, const struct message_form *form,
                 deliver_fn *deliver, const void *terms, size_t limit,
                 struct store_batch *out)
{
    size_t bodies = FIRST_GUESS;
    enum status st;

    /*
     * Each round has more space or delivers fewer messages, so this ends. Fewer messages are better
     * than none: when memory is short, workers free it.
     */
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
        st = deliver_decrypted(ctx, deliver, terms, limit, bodies, out);
        if (st == ST_OK && ctx->op.repeated)
            return reserve_repeated(ctx, form, out);
        if (st != ST_OVER_CAPACITY)
            return st;
        bodies = out->capacity > bodies ? out->capacity : 2 * bodies;
    }
}

/* ------------------------------------------------------------------ claims */

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

/* The parts of the response to a claim, reserved before the store is called. */
struct claimed {
    struct message_form form;
    char *location; /* path of the queue's claims, with space for an id behind it */
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

static enum status
write_claimed(struct context *ctx, struct claimed *claimed,
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
    write_messages(ctx, &claimed->form, batch);
    return response_json(ctx, 201);
}

static enum status
deliver_claimed(struct context *ctx, const void *terms, size_t limit,
                struct store_batch *out)
{
    return store_claim_create(ctx->store, &ctx->op, &ctx->queue, terms, limit, out);
}

/* Reads the terms and the limit, which some SDKs send in the body. The parameter has priority. */
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

/* Claims messages of the context's queue, the request's i-th. *made: it wrote the response. */
static enum status
claim_one(struct context *ctx, size_t i, const struct decoded_terms *said, bool *made)
{
    static const char no_id[STORE_ID_CAP] = {0};
    struct store_batch batch = STORE_BATCH_INIT;
    struct claimed claimed = {
        .location = context_path(ctx, "/claims/", bytes_of(no_id, sizeof(no_id))),
        .number = claim_number_reserve(ctx)};
    enum status st = claimed_form(ctx, &claimed.form);

    *made = false;
    if (st != ST_OK || claimed.location == NULL || claimed.number == NULL)
        return ST_NO_MEMORY;
    ctx->op.waiter = wait_waiter(ctx, i);
    st = deliver_messages(ctx, &claimed.form, deliver_claimed, &said->terms, said->limit,
                          &batch);
    ctx->op.waiter = NULL;
    if (st == ST_OK && batch.claim_id.text[0] != '\0') {
        *made = true;
        st = write_claimed(ctx, &claimed, &batch);
    }
    store_batch_release(&batch);
    return st;
}

/* Claims messages of the first queue that has any, or waits. */
static enum status
claim_first(struct context *ctx, const struct bytes *names, size_t count,
            const struct decoded_terms *said)
{
    enum status st = key_begin(ctx);
    bool queued = true, paused = false;

    if (st == ST_OK)
        st = wait_begin(ctx, count);
    for (size_t i = 0; st == ST_OK && i < count && !wait_abandoned(ctx); i++) {
        bool made;

        ctx->queue.name = names[i];
        st = claim_one(ctx, i, said, &made);
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
    struct decoded_terms said;
    enum status st = read_claim(ctx, &said);

    return st == ST_OK ? claim_first(ctx, &name, 1, &said) : st;
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
    struct decoded_terms said;
    struct bytes *names;
    size_t count;
    enum status st = read_queues(ctx, &names, &count);

    if (st == ST_OK && count > 1 && key_is_sent(ctx))
        st = context_refuse(ctx, ST_BAD_VALUE,
                            "the header Idempotency-Key can be used only with one queue");
    if (st == ST_OK)
        st = read_claim(ctx, &said);
    if (st != ST_OK)
        return st;
    st = context_set_base(ctx, version_v2.base, BYTES_NONE);
    return st == ST_OK ? claim_first(ctx, names, count, &said) : st;
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
