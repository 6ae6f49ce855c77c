/*
 * protocol_zaqar: the steps of a scenario as requests of the Zaqar API v2 (protocol.h).
 *
 * The load generator must cost less than the server, so it does not parse JSON. It
 * searches responses for "/messages/{id}" and, in DELIVERY, for the member "n" of bodies.
 * No other part of a response contains these texts.
 */
#include "load/protocol.h"

static void
add_path(const struct plan *plan, const struct actor *a, const char *method,
         const char *below, struct buf *out)
{
    buf_str(out, method);
    buf_str(out, " /v2/queues/");
    buf_str(out, plan->queue_base);
    buf_byte(out, '-');
    buf_u64(out, a->queue);
    buf_str(out, below);
}

/* wait: seconds for "Prefer: wait"; 0: none. */
static void
add_headers(const struct plan *plan, int64_t wait, size_t length, struct buf *out)
{
    buf_bytes(out, plan->http_tail);
    if (wait > 0) {
        buf_str(out, "Prefer: wait=");
        buf_i64(out, wait);
        buf_str(out, "\r\n");
    }
    buf_str(out, "Content-Type: application/json\r\nContent-Length: ");
    buf_u64(out, length);
    buf_str(out, "\r\n\r\n");
}

static size_t
digits_of(int64_t value)
{
    size_t digits = 1;

    for (; value >= 10; value /= 10)
        digits++;
    return digits;
}

/* {"messages": [{"body": B, "ttl": 300}, ...]} */
static void
build_post(const struct plan *plan, struct actor *a, const struct step *step,
           struct buf *out)
{
    static const char open[] = "{\"messages\": [";
    static const char item[] = "{\"body\": ";
    static const char ttl[] = ", \"ttl\": ";
    size_t each =
        sizeof item - 1 + plan_body_len(plan) + sizeof ttl - 1 + digits_of(step->ttl) + 1;

    add_path(plan, a, "POST", "/messages", out);
    add_headers(plan, 0, sizeof open - 1 + each * step->count + 2 * (step->count - 1) + 2,
                out);
    buf_add(out, open, sizeof open - 1);
    for (unsigned i = 0; i < step->count; i++) {
        if (i > 0)
            buf_add(out, ", ", 2);
        buf_add(out, item, sizeof item - 1);
        protocol_add_body(plan, a, out);
        buf_add(out, ttl, sizeof ttl - 1);
        buf_i64(out, step->ttl);
        buf_byte(out, '}');
    }
    buf_add(out, "]}", 2);
}

static void
build_claim(const struct plan *plan, const struct actor *a, const struct step *step,
            struct buf *out)
{
    static const char ttl[] = "{\"ttl\": ";
    static const char grace[] = ", \"grace\": ";

    add_path(plan, a, "POST", "/claims?limit=", out);
    buf_u64(out, step->count);
    add_headers(plan, plan->wait,
                sizeof ttl - 1 + digits_of(step->ttl) + sizeof grace - 1 +
                    digits_of(plan->claim_grace) + 1,
                out);
    buf_add(out, ttl, sizeof ttl - 1);
    buf_i64(out, step->ttl);
    buf_add(out, grace, sizeof grace - 1);
    buf_i64(out, plan->claim_grace);
    buf_byte(out, '}');
}

static unsigned
zaqar_build(const struct plan *plan, struct actor *a, const struct step *step,
            struct buf *out)
{
    switch (step->op) {
    case OP_POST:
        build_post(plan, a, step, out);
        return 1;
    case OP_CLAIM:
        build_claim(plan, a, step, out);
        return 1;
    case OP_DROP:
        add_path(plan, a, "DELETE", "", out);
        break;
    case OP_CREATE:
        add_path(plan, a, "PUT", "", out);
        break;
    case OP_DELETE:
        add_path(plan, a, "DELETE", "/messages/", out);
        buf_bytes(out, id_view(&a->ids[a->next]));
        buf_str(out, "?claim_id=");
        buf_bytes(out, id_view(&a->claim));
        break;
    case OP_BULK_DELETE:
        add_path(plan, a, "DELETE", "/messages?ids=", out);
        for (unsigned i = 0; i < step->count; i++) {
            if (i > 0)
                buf_byte(out, ',');
            buf_bytes(out, id_view(&a->ids[a->next + i]));
        }
        buf_str(out, "&claim_ids=");
        buf_bytes(out, id_view(&a->claim));
        break;
    case OP_RELEASE:
        add_path(plan, a, "DELETE", "/claims/", out);
        buf_bytes(out, id_view(&a->claim));
        break;
    case OP_LIST:
        add_path(plan, a, "GET", "/messages?echo=true&limit=", out);
        buf_u64(out, step->count);
        break;
    case OP_HELLO:
    case OP_COUNT:
        return 0;
    }
    buf_bytes(out, plan->http_tail); /* requests without a body */
    buf_str(out, "\r\n");
    return 1;
}

/* Finds the next "/messages/{id}" from *at on, and moves *at behind the id. */
static bool
next_id(struct bytes text, size_t *at, struct bytes *id)
{
    static const char mark[] = "/messages/";
    const char *found;
    size_t start;

    if (*at >= text.len)
        return false;
    found = memmem(text.data + *at, text.len - *at, mark, sizeof mark - 1);
    if (found == NULL)
        return false;
    start = (size_t)(found - text.data) + sizeof mark - 1;
    *at = start;
    while (*at < text.len && text.data[*at] != '"' && text.data[*at] != '?')
        ++*at;
    *id = bytes_of(text.data + start, *at - start);
    return true;
}

/* Finds the next member "n" from *at on, reads its number, and moves *at behind the
 * name. */
static bool
next_number(struct bytes text, size_t *at, uint64_t *number)
{
    static const char mark[] = "\"n\"";

    while (*at < text.len) {
        const char *found =
            memmem(text.data + *at, text.len - *at, mark, sizeof mark - 1);
        size_t start;

        if (found == NULL)
            return false;
        *at = start = (size_t)(found - text.data) + sizeof mark - 1;
        /* A server may write the body again, with other spaces. */
        while (start < text.len && memchr(": \"", text.data[start], 3) != NULL)
            start++;
        if (text.len - start >= BODY_NUMBER &&
            hex_read(bytes_of(text.data + start, BODY_NUMBER), number))
            return true;
    }
    return false;
}

/* Stores the ids of the claim and its messages in the actor. Location is
 * ".../claims/{id}". */
static bool
hold_claim(struct actor *a, const struct http_response *response)
{
    struct bytes where = response->location, id;
    const char *slash = where.len == 0 ? NULL : memrchr(where.data, '/', where.len);
    size_t at = 0;

    if (slash == NULL ||
        !id_set(&a->claim, slash + 1, where.len - (size_t)(slash - where.data) - 1))
        return false;
    while (a->held < BATCH_MAX && next_id(response->body, &at, &id)) {
        if (!id_set(&a->ids[a->held], id.data, id.len))
            return false;
        a->held++;
    }
    return true;
}

static bool
apply_response(const struct plan *plan, struct actor *a, const struct step *step,
               const struct http_response *response, struct reply *out)
{
    bool refused = response->status < 200 || response->status > 299;
    uint64_t number;
    struct bytes id;
    size_t at = 0;

    switch (step->op) {
    case OP_POST:
    case OP_DELETE:
    case OP_BULK_DELETE:
        out->messages = refused ? 0 : step->count;
        break;
    case OP_CLAIM:
        actor_drop_messages(a);
        if (response->status == 201 && !hold_claim(a, response))
            return false;
        a->arrived = 0;
        while (plan->scenario == SCENARIO_DELIVERY && a->arrived < BATCH_MAX &&
               next_number(response->body, &at, &number))
            a->arrived_due_ns[a->arrived++] = (int64_t)number;
        out->messages = a->held;
        break;
    case OP_LIST:
        while (next_id(response->body, &at, &id))
            out->messages++;
        break;
    case OP_DROP:
        refused = refused && response->status != 404;
        break;
    default:
        break;
    }
    actor_apply_step(a, step);
    out->refused = refused ? response->status : 0;
    return true;
}

static enum reading
zaqar_read(const struct plan *plan, struct actor *a, const struct step *step,
           struct bytes *rest, bool ended, struct reply *out)
{
    struct http_response response;
    enum reading r = http_response_read(*rest, ended, &response);

    if (r != READING_DONE)
        return r;
    *rest = bytes_of(rest->data + response.length, rest->len - response.length);
    out->close = response.close;
    return apply_response(plan, a, step, &response, out) ? READING_DONE : READING_BROKEN;
}

const struct protocol protocol_zaqar = {
    .name = "zaqar",
    .build = zaqar_build,
    .read = zaqar_read,
};
