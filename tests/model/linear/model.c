#include "model/linear/model.h"

#include <string.h>

/* A claim lives as long as it holds something. */
static bool
claim_alive(const struct model *m, uint8_t claim)
{
    for (size_t at = 0; at < m->count; at++)
        if (m->holder[at] == claim)
            return true;
    return false;
}

/* The place of a message, m->count if it is not there. */
static size_t
find(const struct model *m, uint8_t message)
{
    size_t at = 0;

    while (at < m->count && m->message[at] != message)
        at++;
    return at;
}

static void
take_out(struct model *m, size_t at)
{
    size_t behind = (size_t)(--m->count) - at;

    memmove(&m->message[at], &m->message[at + 1], behind);
    memmove(&m->holder[at], &m->holder[at + 1], behind);
    memmove(&m->key[at], &m->key[at + 1], behind);
    m->message[m->count] = m->holder[m->count] = m->key[m->count] = 0;
}

static void
add(struct model *m, const struct operation *op, uint8_t message)
{
    m->key[m->count] = op->unique | (op->until_claimed ? MODEL_UNTIL_CLAIMED : 0);
    m->message[m->count++] = message;
    m->posted |= UINT64_C(1) << (message - 1);
}

/* Which of the messages the claim holds, as bits. */
static uint8_t
held_bits(const struct model *m, const struct operation *op)
{
    uint8_t bits = 0;

    for (size_t i = 0; i < op->count; i++) {
        size_t at = find(m, op->messages[i]);

        if (at < m->count && m->holder[at] == op->claim)
            bits |= (uint8_t)(1u << i);
    }
    return bits;
}

/* True if the finish deletes the message. */
static bool
is_deleted(const struct model *m, const struct operation *op, uint8_t message)
{
    const uint8_t deleted = held_bits(m, op) & (uint8_t)~op->released;

    for (size_t i = 0; i < op->count; i++)
        if (op->messages[i] == message && (deleted & 1u << i) != 0)
            return true;
    return false;
}

/* The message that has the key of the post, or of the post of the finish, and that stays;
 * 0: none. */
static uint8_t
existing(const struct model *m, const struct operation *op)
{
    for (size_t at = 0; op->unique != 0 && at < m->count; at++)
        if ((m->key[at] & ~MODEL_UNTIL_CLAIMED) == op->unique)
            return op->kind == LINEAR_FINISH && is_deleted(m, op, m->message[at])
                       ? 0
                       : m->message[at];
    return 0;
}

/* True if the response names this message, or none if that is 0. */
static bool
names_existing(const struct operation *op, uint8_t message)
{
    return op->existing == message || (op->existing == LINEAR_UNKNOWN && message != 0);
}

static bool
post(struct model *m, const struct operation *op)
{
    if (op->code != 201 || (size_t)m->count + op->count > LINEAR_MESSAGES ||
        !names_existing(op, existing(m, op)))
        return false;
    for (size_t i = 0; i < op->count; i++)
        add(m, op, op->messages[i]);
    return true;
}

/* The response shows the first `limit` messages for which wanted() holds, and no
 * others. */
typedef bool
model_wanted_fn(const struct model *m, size_t at, const struct operation *op);

static bool
shows(const struct model *m, const struct operation *op, size_t limit,
      model_wanted_fn *wanted)
{
    size_t shown = 0;

    for (size_t at = 0; at < m->count && shown < limit; at++) {
        if (!wanted(m, at, op))
            continue;
        if (shown == op->count || op->messages[shown] != m->message[at])
            return false;
        shown++;
    }
    return shown == op->count;
}

static bool
is_free(const struct model *m, size_t at, const struct operation *op)
{
    (void)op; /* the client that sends it */
    return m->holder[at] == 0;
}

static bool
is_held(const struct model *m, size_t at, const struct operation *op)
{
    return m->holder[at] == op->claim;
}

static bool
is_listed(const struct model *m, size_t at, const struct operation *op)
{
    return op->include_claimed || m->holder[at] == 0;
}

/* The ready message behind so many others, or m->count. */
static size_t
free_behind(const struct model *m, size_t others)
{
    size_t at = 0;

    for (; at < m->count; at++)
        if (m->holder[at] == 0 && others-- == 0)
            break;
    return at;
}

/* The response shows the first messages behind so many reserved ones, up to the limit. */
static bool
takes_behind(const struct model *m, const struct operation *op, size_t reserved)
{
    size_t shown = 0, at = free_behind(m, reserved);

    if (m->paused)
        return op->count == 0;
    for (; at < m->count && shown < op->limit; at++) {
        if (m->holder[at] != 0)
            continue;
        if (shown == op->count || op->messages[shown] != m->message[at])
            return false;
        shown++;
    }
    return shown == op->count;
}

/*
 * The response shows what may be taken. An operation that waits may get nothing at any
 * time, since its waiting may have ended when all was reserved.
 */
static bool
takes(const struct model *m, const struct operation *op, struct reserved reserved)
{
    if (!op->waits)
        return takes_behind(m, op, 0);
    for (size_t n = reserved.least; op->count > 0 && n <= reserved.most; n++)
        if (takes_behind(m, op, n))
            return true;
    return op->count == 0;
}

static bool
claim(struct model *m, const struct operation *op, struct reserved reserved)
{
    if (op->code != (op->count == 0 ? 204 : 201) || !takes(m, op, reserved))
        return false;
    for (size_t i = 0; i < op->count; i++) {
        const size_t at = find(m, op->messages[i]);

        m->holder[at] = op->made;
        if ((m->key[at] & MODEL_UNTIL_CLAIMED) != 0)
            m->key[at] = 0;
    }
    return true;
}

static bool
query(const struct model *m, const struct operation *op)
{
    if (!claim_alive(m, op->claim))
        return op->code == 404;
    return op->code == 200 && shows(m, op, LINEAR_MESSAGES, is_held);
}

static bool
renew(const struct model *m, const struct operation *op)
{
    return op->code == (claim_alive(m, op->claim) ? 204 : 404);
}

static bool
release(struct model *m, const struct operation *op)
{
    for (size_t at = 0; at < m->count; at++)
        if (m->holder[at] == op->claim)
            m->holder[at] = 0;
    return op->code == 204;
}

/* The table of docs/api.md 8.6. */
static int
delete_code(const struct model *m, size_t at, const struct operation *op)
{
    if (at == m->count)
        return 204;
    if (op->claim == 0)
        return m->holder[at] == 0 ? 204 : 403;
    if (m->holder[at] == op->claim)
        return 204;
    return m->holder[at] != 0 && claim_alive(m, op->claim) ? 403 : 400;
}

static bool
delete_one(struct model *m, const struct operation *op)
{
    size_t at = find(m, op->message);
    int code = delete_code(m, at, op);

    if (code == 204 && at < m->count)
        take_out(m, at);
    return op->code == code;
}

/* Without a claim, or if it holds each of the messages that exist: 204; else 400. */
static int
delete_many_code(const struct model *m, const struct operation *op)
{
    for (size_t i = 0; op->claim != 0 && i < op->count; i++) {
        size_t at = find(m, op->messages[i]);

        if (at < m->count && m->holder[at] != op->claim)
            return 400;
    }
    return 204;
}

static bool
delete_many(struct model *m, const struct operation *op)
{
    int code = delete_many_code(m, op);

    if (code != 204)
        return op->code == code;
    for (size_t i = 0; i < op->count; i++) {
        size_t at = find(m, op->messages[i]);

        if (at < m->count)
            take_out(m, at);
    }
    return op->code == 204;
}

static bool
get(const struct model *m, const struct operation *op)
{
    return op->code == (find(m, op->message) < m->count ? 200 : 404);
}

static bool
stats(const struct model *m, const struct operation *op)
{
    size_t claimed = 0;

    for (size_t at = 0; at < m->count; at++)
        claimed += m->holder[at] != 0;
    return op->code == 200 && op->total == m->count && op->claimed == claimed;
}

static bool
pop(struct model *m, const struct operation *op, struct reserved reserved)
{
    if (op->code != 200 || !takes(m, op, reserved))
        return false;
    for (size_t i = 0; i < op->count; i++)
        take_out(m, find(m, op->messages[i]));
    return true;
}

static bool
purge(struct model *m, const struct operation *op)
{
    m->count = 0;
    memset(m->message, 0, sizeof(m->message));
    memset(m->holder, 0, sizeof(m->holder));
    memset(m->key, 0, sizeof(m->key));
    return op->code == 204;
}

static int
finish_code(const struct model *m, const struct operation *op, uint8_t held)
{
    if (op->atomic && held != (1u << op->count) - 1)
        return 409;
    return claim_alive(m, op->claim) ? 200 : 404;
}

/* Deletes and releases what the claim holds, and posts a message, in one step. */
static bool
finish(struct model *m, const struct operation *op)
{
    const uint8_t held = held_bits(m, op);

    if (op->code != finish_code(m, op, held) || (op->code == 200 && op->held != held))
        return false;
    if (op->code != 200)
        return true;
    if (!names_existing(op, existing(m, op)))
        return false;
    if (op->posted != 0 && op->existing == 0) {
        if (m->count == LINEAR_MESSAGES)
            return false;
        add(m, op, op->posted);
    }
    for (size_t i = 0; i < op->count; i++) {
        size_t at = find(m, op->messages[i]);

        if ((held & 1u << i) == 0)
            continue;
        if ((op->released & 1u << i) != 0)
            m->holder[at] = 0;
        else
            take_out(m, at);
    }
    return true;
}

static bool
pause_claims(struct model *m, const struct operation *op)
{
    m->paused = op->pauses;
    return op->code == 200;
}

bool
model_step(struct model *m, const struct operation *op, struct reserved reserved)
{
    switch (op->kind) {
    case LINEAR_POST:
        return post(m, op);
    case LINEAR_CLAIM:
        return claim(m, op, reserved);
    case LINEAR_QUERY:
        return query(m, op);
    case LINEAR_RENEW:
        return renew(m, op);
    case LINEAR_RELEASE:
        return release(m, op);
    case LINEAR_DELETE:
        return delete_one(m, op);
    case LINEAR_DELETE_MANY:
        return delete_many(m, op);
    case LINEAR_GET:
        return get(m, op);
    case LINEAR_LIST:
        return op->code == 200 && shows(m, op, op->limit, is_listed);
    case LINEAR_STATS:
        return stats(m, op);
    case LINEAR_POP:
        return pop(m, op, reserved);
    case LINEAR_FINISH:
        return finish(m, op);
    case LINEAR_PAUSE:
        return pause_claims(m, op);
    default:
        return purge(m, op);
    }
}

/* Takes the first `limit` that are ready. */
static void
response_forget(const struct model *m, struct operation *op)
{
    op->count = 0;
    for (size_t at = 0; !m->paused && at < m->count && op->count < op->limit; at++)
        if (is_free(m, at, op))
            op->messages[op->count++] = m->message[at];
}

struct operation
model_response(const struct model *m, const struct operation *op)
{
    struct operation done = *op;

    switch (op->kind) {
    case LINEAR_POST:
        done.existing = existing(m, op);
        done.count = done.existing == 0 ? op->count : 0;
        done.code = 201;
        break;
    case LINEAR_CLAIM:
        response_forget(m, &done);
        done.code = done.count == 0 ? 204 : 201;
        break;
    case LINEAR_POP:
        response_forget(m, &done);
        done.code = 200;
        break;
    case LINEAR_PAUSE:
        done.code = 200;
        break;
    case LINEAR_DELETE:
        done.code = delete_code(m, find(m, op->message), op);
        break;
    case LINEAR_DELETE_MANY:
        done.code = delete_many_code(m, op);
        break;
    case LINEAR_FINISH:
        done.held = held_bits(m, op);
        done.code = finish_code(m, op, done.held);
        done.existing = done.code == 200 ? existing(m, op) : 0;
        break;
    default: /* the others change all that they name, or nothing */
        done.code = 204;
        break;
    }
    return done;
}

bool
model_only_looks(const struct operation *op)
{
    switch (op->kind) {
    case LINEAR_QUERY:
    case LINEAR_RENEW:
    case LINEAR_GET:
    case LINEAR_LIST:
    case LINEAR_STATS:
        return true;
    case LINEAR_POST:
        return op->existing != 0;
    case LINEAR_CLAIM:
    case LINEAR_POP:
        return op->count == 0;
    case LINEAR_DELETE:
    case LINEAR_DELETE_MANY:
        return op->code != 204;
    case LINEAR_FINISH:
        return op->code != 200 ||
               (op->held == 0 && (op->posted == 0 || op->existing != 0));
    default:
        return false;
    }
}
