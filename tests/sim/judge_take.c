/*
 * The rules for requests that take messages, at once or after waiting: docs/api.md 11.
 *
 * A waiter is in the wait queue of each of its queues. The first ready messages are
 * reserved for the waiters in front of it, as many as they claim (store/waiter.h).
 */
#include "sim/judge.h"

size_t
judging_reserved(const struct judging *j)
{
    return j->waiter == NONE ? 0 : ledger_reserved(j->ledger, j->op->place, j->waiter);
}

size_t
judging_limit(const struct judging *j)
{
    return (size_t)(j->op->limit == 0 ? j->rules->page : j->op->limit);
}

/* All that is shown lies ready in this queue, to be handed out there. */
static bool
is_from_here(const struct judging *j)
{
    for (size_t i = 0; i < j->response->count; i++) {
        const struct known_message *m =
            ledger_message(j->ledger, j->op->place, j->response->messages[i].id.text);

        if (m == NULL || m->claim != NULL || j->now_ms < m->ready_ms ||
            (j->op->kind == OP_CLAIM && judging_letter(j, m)))
            return false;
    }
    return true;
}

/* Is any of the first so many ready messages shown? */
static bool
shows_any_of_first(const struct judging *j, size_t count)
{
    const struct known_queue *q = judging_queue(j);

    for (size_t i = 0; i < q->count && count > 0; i++) {
        const struct known_message *m = q->messages[i];

        if (m->claim != NULL || j->now_ms < m->ready_ms)
            continue;
        for (size_t k = 0; k < j->response->count; k++)
            if (strcmp(j->response->messages[k].id.text, m->id.text) == 0)
                return true;
        count--;
    }
    return false;
}

/* Has it taken a message of this queue that is reserved for a waiter in front of it? */
static bool
judge_turn(struct judging *j)
{
    size_t ready = ledger_ready(j->ledger, j->op->place, j->now_ms);
    size_t reserved = judging_reserved(j);
    const struct sim_response *a = j->response;

    if (reserved == 0 || a->count == 0 || !is_from_here(j))
        return true;
    if (reserved < ready && a->count <= ready - reserved &&
        !shows_any_of_first(j, reserved))
        return true;
    return verdict_break(
        j->verdict, PROMISE_FIRST_COME,
        "takes %zu of %zu messages, with %zu reserved for longer waiters", a->count,
        ready, reserved);
}

/* Is a message shown of a queue whose claims are paused? */
static bool
judge_pause(struct judging *j)
{
    if ((judging_queue(j)->paused & STORE_PAUSE_CLAIMS) == 0 || j->response->count == 0 ||
        !is_from_here(j))
        return true;
    return verdict_break(j->verdict, PROMISE_PAUSED, "message %s is given out",
                         j->response->messages[0].id.text);
}

static bool
judge_place(struct judging *j, bool *took)
{
    if (!judge_pause(j) || !judge_turn(j))
        return false;
    return j->op->kind == OP_CLAIM ? judge_claim_from(j, took) : judge_pop_from(j, took);
}

/* There was nothing that it could take. */
static bool
judge_nothing(struct judging *j)
{
    if (j->waiter != NONE && j->on)
        return j->waits || verdict_break(j->verdict, PROMISE_CONTRACT,
                                         "has the response %d although it may wait on",
                                         j->response->code);
    if (j->waits)
        return verdict_break(j->verdict, PROMISE_NO_WAITER_LEFT,
                             "waits on although its waiting is over");
    if (j->response->count > 0)
        return judge_sequence(j, NULL, 0);
    return judge_code(j, j->op->kind == OP_CLAIM ? 204 : 200, PROMISE_CONTRACT);
}

/* It must have taken something. */
static bool
judge_something(struct judging *j)
{
    if (j->waits)
        return verdict_break(j->verdict, PROMISE_NO_WAITER_LEFT,
                             "waits on although there is a message that it could take");
    return true;
}

static bool
judge_preference(struct judging *j)
{
    enum { MOST_S = 45 };
    int64_t wait_s = j->op->wait_s < MOST_S ? j->op->wait_s : MOST_S;

    return j->waits || j->waiter == NONE || j->response->code >= 300 ||
           j->response->applied_s == wait_s ||
           verdict_break(j->verdict, PROMISE_CONTRACT,
                         "%lld seconds of waiting are applied, must be %lld",
                         (long long)j->response->applied_s, (long long)wait_s);
}

/* Finds the place that the messages have to come from, the first that has any. */
static bool
judge_places(struct judging *j, bool *took)
{
    struct operation op = *j->op;
    struct judging here = *j;
    bool kept = true;

    here.op = &op;
    for (size_t i = 0; kept && !*took; i++) {
        op.place = operation_place(j->op, i);
        if (op.place == NOWHERE)
            return true;
        kept = judge_place(&here, took);
        if (kept && !*took && j->waiter != NONE)
            ledger_wait(j->ledger, op.place, j->waiter, judging_limit(j));
    }
    return kept;
}

bool
judge_take(struct judging *j)
{
    bool took = false, kept;

    if (j->gone && (j->response->count > 0 || j->response->code == 201))
        return verdict_break(j->verdict, PROMISE_GONE_IS_GONE,
                             "takes messages for a client that has hung up");
    kept = (j->gone || judge_places(j, &took)) && judge_preference(j);
    if (kept && j->response->code != 503)
        kept = took ? judge_something(j) : judge_nothing(j);
    return kept;
}
