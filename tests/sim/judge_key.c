/* The rules for requests with an Idempotency-Key: docs/api.md 27. */
#include "sim/judge.h"

static uint64_t
add_bytes(uint64_t digest, const void *data, size_t len)
{
    const unsigned char *at = data;

    for (size_t i = 0; i < len; i++)
        digest = (digest ^ at[i]) * 0x100000001b3; /* FNV-1a */
    return digest;
}

/* Of all that a repeated post, pop or finish shows again. */
static uint64_t
digest_of(const struct sim_response *a)
{
    uint64_t d = 0xcbf29ce484222325;

    for (size_t i = 0; i < a->posted_count; i++)
        d = add_bytes(d, &a->posted[i], sizeof(a->posted[i]));
    for (size_t i = 0; i < a->count; i++) {
        const struct seen_message *m = &a->messages[i];

        d = add_bytes(d, &m->id, sizeof(m->id));
        d = add_bytes(d, m->body.data, m->body.len);
        d = add_bytes(d, &m->claim_count, sizeof(m->claim_count));
    }
    d = add_bytes(d, a->results, a->result_count);
    d = add_bytes(d, a->existing, sizeof(a->existing));
    d = add_bytes(d, &a->claim_number, sizeof(a->claim_number));
    return add_bytes(d, &a->renewed, sizeof(a->renewed));
}

/* Has the request done something, so that its key is kept? */
static bool
has_effect(const struct judging *j)
{
    switch (j->op->kind) {
    case OP_POST:
    case OP_CLAIM:
        return j->response->code == 201;
    case OP_POP:
        return j->response->code == 200 && j->response->count > 0;
    default:
        return j->response->code == 200;
    }
}

/* The same claim with the messages that it still holds. */
static bool
judge_same_claim(struct judging *j, const struct known_claim *c)
{
    const struct known_queue *q = judging_queue(j);
    struct known_message *held[IDS_MAX];
    size_t count = 0;

    if (strcmp(j->response->location.text, c->id.text) != 0)
        return verdict_break(j->verdict, PROMISE_ONE_EFFECT,
                             "the claim %s is made, but %s was before",
                             j->response->location.text, c->id.text);
    if (!judge_claim_number(j, c))
        return false;
    for (size_t i = 0; i < q->count && count < IDS_MAX; i++)
        if (q->messages[i]->claim == c)
            held[count++] = q->messages[i];
    return judge_sequence(j, held, judging_shown(j, count));
}

/* A request that has had its effect. */
static bool
judge_repeated(struct judging *j, const struct known_effect *effect)
{
    const bool makes = j->op->kind == OP_POST || j->op->kind == OP_CLAIM;
    const struct known_claim *c =
        j->op->kind == OP_CLAIM
            ? ledger_claim(j->ledger, j->op->place, effect->claim.text)
            : NULL;

    if (j->response->code == 503)
        return true;
    if (j->op->kind == OP_CLAIM && c == NULL)
        return judge_code(j, 409, PROMISE_ONE_EFFECT);
    if (!judge_code(j, makes ? 201 : 200, PROMISE_ONE_EFFECT))
        return false;
    if (!j->response->replayed)
        return verdict_break(j->verdict, PROMISE_ONE_EFFECT,
                             "a repeated request is not said to be one");
    if (j->op->kind == OP_CLAIM)
        return judge_same_claim(j, c);
    return digest_of(j->response) == effect->digest ||
           verdict_break(j->verdict, PROMISE_ONE_EFFECT,
                         "a repeated request has another result");
}

bool
judge_keyed(struct judging *j)
{
    const struct known_effect *effect = ledger_effect(j->ledger, j->op->key);

    if (effect != NULL &&
        ledger_remembers(j->ledger, effect, j->now_ms, j->rules->key_window_ms))
        return judge_repeated(j, effect);
    if (j->response->replayed)
        return verdict_break(j->verdict, PROMISE_ONE_EFFECT,
                             "said to be repeated, but it has had no effect");
    if (!judge_first(j))
        return false;
    if (has_effect(j))
        ledger_keep_effect(j->ledger, &(struct known_effect){
                                          .key = j->op->key,
                                          .place = j->op->place,
                                          .incarnation = judging_queue(j)->incarnation,
                                          .made_ms = j->now_ms,
                                          .claim = j->response->location,
                                          .digest = digest_of(j->response)});
    return true;
}
