#include "sim/judge.h"

struct known_queue *
judging_queue(const struct judging *j)
{
    return &j->ledger->queues[j->op->place];
}

bool
judge_code(struct judging *j, int expected, enum promise p)
{
    if (j->response->code == expected)
        return true;
    return verdict_break(j->verdict, p, "the response is %d, but must be %d",
                         j->response->code, expected);
}

enum promise
judge_missing(struct judging *j, const struct known_message *m)
{
    bool by_time = m->freed_by_time || m->ready_ms > m->posted_ms;

    if (j->verdict->broken == PROMISE_NONE) {
        j->verdict->missing = m->id;
        j->verdict->withheld = by_time         ? PROMISE_ON_TIME
                               : m->given_back ? PROMISE_GONE_IS_GONE
                                               : PROMISE_OLDEST_FIRST;
    }
    return j->now_ms >= m->own_expires_ms ? PROMISE_GRACE : PROMISE_NOTHING_LOST;
}

enum promise
promise_of_gone(enum ending ending)
{
    switch (ending) {
    case ENDING_EXPIRED:
        return PROMISE_ON_TIME;
    case ENDING_RELEASED:
        return PROMISE_ONE_HOLDER;
    default:
        return PROMISE_CONTRACT;
    }
}

/* ---------------------------------------------------------------------- documents */

static bool
judge_holder(struct judging *j, const struct known_message *m,
             const struct seen_message *seen)
{
    const char *holder = m->claim == NULL ? "" : m->claim->id.text;
    enum ending ending;

    if (strcmp(holder, seen->claim.text) == 0)
        return true;
    ending = ledger_ending(j->ledger, j->op->place, seen->claim.text);
    return verdict_break(
        j->verdict, ending == ENDING_EXPIRED ? PROMISE_ON_TIME : PROMISE_ONE_HOLDER,
        "message %s is shown with the claim \"%s\" (%s), but is held by \"%s\"",
        m->id.text, seen->claim.text,
        seen->claim.text[0] == '\0' ? "none" : ending_text(ending), holder);
}

static bool
judge_times(struct judging *j, const struct known_message *m,
            const struct seen_message *seen)
{
    int64_t ttl_s = (m->expires_ms - m->posted_ms) / 1000;
    int64_t age_s = (j->now_ms - m->posted_ms) / 1000;

    if (seen->ttl_s != ttl_s)
        return verdict_break(j->verdict,
                             m->expires_ms > m->own_expires_ms ? PROMISE_GRACE
                                                               : PROMISE_CONTRACT,
                             "message %s has ttl %lld, but must have %lld", m->id.text,
                             (long long)seen->ttl_s, (long long)ttl_s);
    if (seen->age_s != age_s)
        return verdict_break(j->verdict, PROMISE_ON_TIME,
                             "message %s has age %lld, but must have %lld", m->id.text,
                             (long long)seen->age_s, (long long)age_s);
    return true;
}

bool
judge_document(struct judging *j, const struct known_message *m,
               const struct seen_message *seen)
{
    if (!bytes_equal(seen->body, bytes_of(m->body, m->body_len)))
        return verdict_break(j->verdict, PROMISE_NOTHING_LOST,
                             "message %s has not the body that was posted", m->id.text);
    if (j->op->kind == OP_POP && seen->claim_count != m->claim_count)
        return verdict_break(j->verdict,
                             m->given_back ? PROMISE_GONE_IS_GONE : PROMISE_CONTRACT,
                             "message %s has claim count %lld, but must have %u",
                             m->id.text, (long long)seen->claim_count, m->claim_count);
    return judge_times(j, m, seen) && (j->op->kind == OP_POP || judge_holder(j, m, seen));
}

/* ---------------------------------------------------------------------- sequences */

/* A message is shown that does not belong here at all. */
static bool
judge_stranger(struct judging *j, const struct seen_message *seen)
{
    const struct known_message *m =
        ledger_message(j->ledger, j->op->place, seen->id.text);
    enum ending ending = ledger_ending(j->ledger, j->op->place, seen->id.text);

    if (m == NULL)
        return verdict_break(j->verdict, promise_of_gone(ending),
                             "message %s is shown, but %s", seen->id.text,
                             ending_text(ending));
    if (j->op->kind == OP_CLAIM_SHOW)
        return verdict_break(j->verdict, PROMISE_ONE_HOLDER,
                             "message %s is shown by a claim that does not hold it",
                             m->id.text);
    if (j->op->kind == OP_LIST)
        return verdict_break(j->verdict, PROMISE_CONTRACT,
                             "message %s is listed, but was not requested", m->id.text);
    if (m->claim != NULL)
        return verdict_break(j->verdict, PROMISE_ONE_HOLDER,
                             "message %s is given out, but claim %s holds it", m->id.text,
                             m->claim->id.text);
    if (j->now_ms < m->ready_ms)
        return verdict_break(j->verdict,
                             m->retried ? PROMISE_LATER_IN_PLACE : PROMISE_ON_TIME,
                             "message %s is given out %lld ms before its delay is over",
                             m->id.text, (long long)(m->ready_ms - j->now_ms));
    return verdict_break(j->verdict, PROMISE_CONTRACT,
                         "message %s does not belong into this response", m->id.text);
}

static bool
is_among(struct known_message *const *expected, size_t count, const char *id)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(expected[i]->id.text, id) == 0)
            return true;
    return false;
}

static bool
is_seen(const struct sim_response *a, const char *id)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->messages[i].id.text, id) == 0)
            return true;
    return false;
}

static bool
is_repeated(const struct sim_response *a, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(a->messages[i].id.text, a->messages[at].id.text) == 0)
            return true;
    return false;
}

/* Judges another message at the place of the i-th expected one. */
static bool
judge_other(struct judging *j, struct known_message *const *expected, size_t count,
            size_t i)
{
    const struct known_message *m = expected[i];
    const char *id = j->response->messages[i].id.text;
    const struct known_message *other = ledger_message(j->ledger, j->op->place, id);
    bool takes = j->op->kind == OP_CLAIM || j->op->kind == OP_POP;
    enum promise p;

    /* One from behind the end of what was expected may stand here: one is left out. */
    if (!is_among(expected, count, id) &&
        (other == NULL || other->order < m->order ||
         (takes && (other->claim != NULL || j->now_ms < other->ready_ms))))
        return judge_stranger(j, &j->response->messages[i]);
    if (is_repeated(j->response, i))
        return verdict_break(j->verdict, takes ? PROMISE_ONE_HOLDER : PROMISE_CONTRACT,
                             "message %s is given out twice in one response", id);
    if (is_seen(j->response, m->id.text))
        return verdict_break(j->verdict,
                             m->retried ? PROMISE_LATER_IN_PLACE : PROMISE_OLDEST_FIRST,
                             "message %s is shown before the older %s", id, m->id.text);
    p = judge_missing(j, m);
    if (p != PROMISE_GRACE)
        p = m->given_back ? PROMISE_GONE_IS_GONE
            : m->retried  ? PROMISE_LATER_IN_PLACE
                          : PROMISE_OLDEST_FIRST;
    return verdict_break(j->verdict, p, "message %s is passed over for the younger %s",
                         m->id.text, id);
}

size_t
judging_shown(const struct judging *j, size_t count)
{
    size_t shown = j->response->count;

    return j->starved && shown > 0 && shown < count ? shown : count;
}

bool
judge_sequence(struct judging *j, struct known_message *const *expected, size_t count)
{
    const struct sim_response *a = j->response;

    for (size_t i = 0; i < count && i < a->count; i++) {
        if (strcmp(expected[i]->id.text, a->messages[i].id.text) != 0)
            return judge_other(j, expected, count, i);
        if (!judge_document(j, expected[i], &a->messages[i]))
            return false;
    }
    if (a->count > count)
        return judge_stranger(j, &a->messages[count]);
    if (a->count < count)
        return verdict_break(j->verdict, judge_missing(j, expected[a->count]),
                             "message %s is not shown (%zu are, %zu must be)",
                             expected[a->count]->id.text, a->count, count);
    return true;
}

/* ---------------------------------------------------------------------- refusals */

/* Is it a post to a paused queue? A repeated one is not posted again. */
static bool
is_paused(const struct judging *j)
{
    const struct known_effect *effect =
        j->op->key == 0 ? NULL : ledger_effect(j->ledger, j->op->key);

    if (effect != NULL &&
        ledger_remembers(j->ledger, effect, j->now_ms, j->rules->key_window_ms))
        return false;
    if (j->op->kind == OP_FINISH)
        return judging_finish_paused(j);
    return j->op->kind == OP_POST && (judging_queue(j)->paused & STORE_PAUSE_POSTS) != 0;
}

/* 503 needs a reason, and says when to retry. */
static bool
judge_refusal(struct judging *j)
{
    const bool too_many_keys = j->op->key != 0 && j->rules->few_keys;

    if (!j->starved && !(j->tight && operation_adds(j->op)) && !too_many_keys &&
        !is_paused(j))
        return verdict_break(j->verdict, PROMISE_SAYS_SO,
                             "the response is 503, but nothing has run out");
    if (!j->response->retry_after)
        return verdict_break(j->verdict, PROMISE_SAYS_SO, "503 without Retry-After");
    return true;
}

bool
judge(struct judging *j)
{
    ledger_advance(j->ledger, j->now_ms);
    if (j->response->code >= 500 && j->response->code != 503)
        return verdict_break(j->verdict, PROMISE_SAYS_SO, "the response is %d",
                             j->response->code);
    if (j->response->code == 503 && !judge_refusal(j))
        return false;
    return j->op->key != 0 ? judge_keyed(j) : judge_first(j);
}

bool
judge_first(struct judging *j)
{
    if (j->response->code == 503 && (j->op->kind != OP_CLAIM || j->waiter != NONE))
        return true; /* and nothing has changed, as the next look will show */
    switch (j->op->kind) {
    case OP_CLAIM:
    case OP_POP:
        return judge_take(j);
    case OP_CLAIM_SHOW:
    case OP_CLAIM_RENEW:
    case OP_CLAIM_RELEASE:
        return judge_claim(j);
    case OP_FINISH:
        return judge_finish(j);
    case OP_REDRIVE:
        return judge_redrive(j);
    case OP_POST:
    case OP_LIST:
    case OP_GET_ONE:
    case OP_GET_MANY:
    case OP_DELETE_ONE:
    case OP_DELETE_MANY:
        return judge_message(j);
    case OP_SUBSCRIBE:
    case OP_SUBSCRIPTION_LIST:
    case OP_SUBSCRIPTION_PATCH:
    case OP_SUBSCRIPTION_CONFIRM:
    case OP_SUBSCRIPTION_DELETE:
    case OP_PROGRESS_LIST:
        return judge_subscription(j);
    case OP_SCHEDULE_SET:
    case OP_SCHEDULE_SHOW:
    case OP_SCHEDULE_PAUSE:
    case OP_SCHEDULE_DELETE:
    case OP_SCHEDULE_LIST:
        return judge_schedule(j);
    default:
        return judge_queue(j);
    }
}
