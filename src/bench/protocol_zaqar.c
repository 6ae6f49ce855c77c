#include "bench/protocol.h"

/*
 * Requests are put together from ready pieces and answers are searched for the one text
 * that matters, "/messages/{id}", instead of being parsed: bodies are our own and never
 * hold it (and in DELIVERY for "n", the number in the bodies, which nothing else has as a
 * text of its own). The load generator must stay cheaper than what it measures.
 */

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

/* `wait` is what the request prefers the server to wait, in seconds; 0: nothing. */
static void
add_body_head(const struct plan *plan, int64_t wait, size_t length, struct buf *out)
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
ask_post(const struct plan *plan, struct actor *a, const struct step *step,
         struct buf *out)
{
    static const char open[] = "{\"messages\": [";
    static const char item[] = "{\"body\": ";
    static const char ttl[] = ", \"ttl\": ";
    size_t each =
        sizeof item - 1 + plan_body_len(plan) + sizeof ttl - 1 + digits_of(step->ttl) + 1;

    add_path(plan, a, "POST", "/messages", out);
    add_body_head(plan, 0,
                  sizeof open - 1 + each * step->count + 2 * (step->count - 1) + 2, out);
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
ask_claim(const struct plan *plan, const struct actor *a, const struct step *step,
          struct buf *out)
{
    static const char ttl[] = "{\"ttl\": ";
    static const char grace[] = ", \"grace\": ";

    add_path(plan, a, "POST", "/claims?limit=", out);
    buf_u64(out, step->count);
    add_body_head(plan, plan->wait,
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
zaqar_ask(const struct plan *plan, struct actor *a, const struct step *step,
          struct buf *out)
{
    switch (step->op) {
    case OP_POST:
        ask_post(plan, a, step, out);
        return 1;
    case OP_CLAIM:
        ask_claim(plan, a, step, out);
        return 1;
    case OP_DROP:
        add_path(plan, a, "DELETE", "", out);
        break;
    case OP_CREATE:
        add_path(plan, a, "PUT", "", out);
        break;
    case OP_DELETE:
        add_path(plan, a, "DELETE", "/messages/", out);
        buf_bytes(out, token_view(&a->ids[a->next]));
        buf_str(out, "?claim_id=");
        buf_bytes(out, token_view(&a->claim));
        break;
    case OP_BULK_DELETE:
        add_path(plan, a, "DELETE", "/messages?ids=", out);
        for (unsigned i = 0; i < step->count; i++) {
            if (i > 0)
                buf_byte(out, ',');
            buf_bytes(out, token_view(&a->ids[a->next + i]));
        }
        buf_str(out, "&claim_ids=");
        buf_bytes(out, token_view(&a->claim));
        break;
    case OP_RELEASE:
        add_path(plan, a, "DELETE", "/claims/", out);
        buf_bytes(out, token_view(&a->claim));
        break;
    case OP_LIST:
        add_path(plan, a, "GET", "/messages?echo=true&limit=", out);
        buf_u64(out, step->count);
        break;
    case OP_HELLO:
    case OP_COUNT:
        return 0;
    }
    buf_bytes(out, plan->http_tail); /* these have no body */
    buf_str(out, "\r\n");
    return 1;
}

/*
 * Finds the next "/messages/{id}" at or behind *at; the id is cut at the end of the text
 * or of the path. Moves *at behind it.
 */
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

/* Finds the number of the next body at or behind *at, and moves *at behind its name. */
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
        /* A server may write the document anew, with spaces of its own. */
        while (start < text.len && memchr(": \"", text.data[start], 3) != NULL)
            start++;
        if (text.len - start >= BODY_NUMBER &&
            hex_read(bytes_of(text.data + start, BODY_NUMBER), number))
            return true;
    }
    return false;
}

/*
 * Takes the claim and its messages into the actor's hand. Location is ".../claims/{id}", perhaps with
 * a host in front.
 */
static bool
take_claim(struct actor *a, const struct http_answer *answer)
{
    struct bytes where = answer->location, id;
    const char *slash = where.len == 0 ? NULL : memrchr(where.data, '/', where.len);
    size_t at = 0;

    if (slash == NULL ||
        !token_set(&a->claim, slash + 1, where.len - (size_t)(slash - where.data) - 1))
        return false;
    while (a->held < BATCH_MAX && next_id(answer->body, &at, &id)) {
        if (!token_set(&a->ids[a->held], id.data, id.len))
            return false;
        a->held++;
    }
    return true;
}

static bool
apply_answer(const struct plan *plan, struct actor *a, const struct step *step,
             const struct http_answer *answer, struct reply *out)
{
    bool refused = answer->status < 200 || answer->status > 299;
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
        actor_drop_held(a);
        if (answer->status == 201 && !take_claim(a, answer))
            return false;
        a->arrived = 0; /* the bodies of DELIVERY say when they were due */
        while (plan->scenario == SCENARIO_DELIVERY && a->arrived < BATCH_MAX &&
               next_number(answer->body, &at, &number))
            a->arrived_due_ns[a->arrived++] = (int64_t)number;
        out->messages = a->held;
        break;
    case OP_LIST:
        while (next_id(answer->body, &at, &id))
            out->messages++;
        break;
    case OP_DROP:
        refused = refused && answer->status != 404;
        break;
    default:
        break;
    }
    actor_move_on(a, step);
    out->refused = refused ? answer->status : 0;
    return true;
}

static enum reading
zaqar_read(const struct plan *plan, struct actor *a, const struct step *step,
           struct bytes *rest, bool ended, struct reply *out)
{
    struct http_answer answer;
    enum reading r = http_answer_read(*rest, ended, &answer);

    if (r != READING_DONE)
        return r;
    *rest = bytes_of(rest->data + answer.length, rest->len - answer.length);
    out->close = answer.close;
    return apply_answer(plan, a, step, &answer, out) ? READING_DONE : READING_BROKEN;
}

const struct protocol protocol_zaqar = {
    .name = "zaqar",
    .ask = zaqar_ask,
    .read = zaqar_read,
};
