/* The rules for subscriptions: docs/api.md 18. */
#include "claimd/base/clock.h"
#include "sim/judge.h"

/* ---------------------------------------------------------------------- change */

static void
enter(struct judging *j)
{
    struct known_subscription *s =
        ledger_subscribe(j->ledger, j->op->place, j->response->subscribed.text);

    s->subscriber = j->op->subscriber;
    s->options = j->op->options;
    s->started_ms = j->now_ms;
    s->ttl_s = j->op->ttl_s;
    ledger_listen(j->ledger, s, !j->rules->require_confirmation);
    if (j->rules->require_confirmation)
        ledger_notify(j->ledger, s, 1 + STORE_NOTICE_CONFIRM);
}

static bool
judge_admitted(struct judging *j)
{
    if (!j->tight)
        return true;
    return verdict_break(j->verdict, PROMISE_SAYS_SO,
                         "accepted although the memory budget is used up");
}

static bool
judge_subscribe(struct judging *j)
{
    const char *id = j->response->subscribed.text;
    struct known_subscription *s =
        ledger_subscriber(j->ledger, j->op->place, j->op->subscriber);

    if (s != NULL && s->confirmed)
        return judge_code(j, 409, PROMISE_NOTHING_LOST);
    if (!judge_code(j, 201, PROMISE_CONTRACT) || !judge_admitted(j))
        return false;
    if (s == NULL &&
        (id[0] == '\0' || ledger_subscription(j->ledger, j->op->place, id) != NULL))
        return verdict_break(j->verdict, PROMISE_CONTRACT, "id %s is not new", id);
    if (s != NULL && strcmp(s->id.text, id) != 0)
        return verdict_break(j->verdict, PROMISE_NOTHING_LOST,
                             "subscription %s has been forgotten, %s is new", s->id.text,
                             id);
    if (!judging_queue(j)->exists)
        ledger_make_queue(j->ledger, j->op->place);
    if (s == NULL)
        enter(j);
    else if (j->rules->require_confirmation)
        ledger_notify(j->ledger, s, 1 + STORE_NOTICE_CONFIRM);
    return true;
}

static void
move(struct judging *j, struct known_subscription *s)
{
    s->subscriber = j->op->subscriber;
    s->failed = 0;
    s->again_ms = 0;
    if (!j->rules->require_confirmation)
        return;
    s->confirmed = false;
    ledger_listen(j->ledger, s, false);
    ledger_notify(j->ledger, s, 1 + STORE_NOTICE_CONFIRM);
}

/* A change as such goes to the log, with its pending notice. */
static void
note_change(struct judging *j, struct known_subscription *s)
{
    s->changed = true;
    s->old = 0;
    ledger_hurry(j->ledger);
}

static bool
judge_patch(struct judging *j)
{
    const struct operation *op = j->op;
    struct known_subscription *s = ledger_subscription(j->ledger, op->place, op->id.text);
    struct known_subscription *other =
        op->subscriber == NONE ? NULL
                               : ledger_subscriber(j->ledger, op->place, op->subscriber);

    if (s == NULL)
        return judge_code(
            j, 404, promise_of_gone(ledger_ending(j->ledger, op->place, op->id.text)));
    if (other != NULL && other != s)
        return judge_code(j, 409, PROMISE_CONTRACT);
    if (!judge_code(j, 204, PROMISE_NOTHING_LOST) || !judge_admitted(j))
        return false;
    if (op->options != STORE_UNSET)
        s->options = op->options;
    if (op->ttl_s != STORE_UNSET) {
        s->ttl_s = op->ttl_s;
        s->started_ms = j->now_ms;
    }
    note_change(j, s);
    if (op->subscriber != NONE && op->subscriber != s->subscriber)
        move(j, s);
    return true;
}

static bool
judge_confirm(struct judging *j)
{
    const struct operation *op = j->op;
    struct known_subscription *s = ledger_subscription(j->ledger, op->place, op->id.text);

    if (s == NULL)
        return judge_code(
            j, 404, promise_of_gone(ledger_ending(j->ledger, op->place, op->id.text)));
    if (!judge_code(j, 204, PROMISE_NOTHING_LOST))
        return false;
    s->confirmed = op->confirmed;
    s->old = 0;
    if (j->rules->require_confirmation)
        ledger_listen(j->ledger, s, op->confirmed);
    if (!op->confirmed)
        ledger_notify(j->ledger, s, 1 + STORE_NOTICE_UNSUBSCRIBED);
    else if (s->notice == 1 + STORE_NOTICE_CONFIRM ||
             s->maybe == 1 + STORE_NOTICE_CONFIRM)
        ledger_notify(j->ledger, s, 0);
    ledger_hurry(j->ledger);
    return true;
}

static bool
judge_delete(struct judging *j)
{
    struct known_subscription *s =
        ledger_subscription(j->ledger, j->op->place, j->op->id.text);

    if (!judge_code(j, 204, PROMISE_CONTRACT))
        return false;
    if (s != NULL)
        ledger_unsubscribe(j->ledger, s, ENDING_DELETED);
    return true;
}

/* ---------------------------------------------------------------------- show */

static bool
judge_plain(struct judging *j, const struct known_subscription *s,
            const struct seen_subscription *seen)
{
    struct mem *mem = mem_new(0);
    struct buf options;
    bool same;

    buf_init(&options, mem);
    options_body(&options, s->options);
    same = bytes_equal(seen->options, buf_view(&options)) &&
           bytes_equal_str(seen->subscriber, subscriber_uri(s->subscriber));
    buf_fini(&options);
    mem_destroy(mem);
    return same || verdict_break(j->verdict, PROMISE_NOTHING_LOST,
                                 "subscription %s is shown with other texts", s->id.text);
}

static bool
judge_number(struct judging *j, const struct known_subscription *s, const char *name,
             uint64_t expected, int64_t seen)
{
    if (seen == (int64_t)expected)
        return true;
    return verdict_break(j->verdict, PROMISE_ADDS_UP,
                         "subscription %s: %s is %lld, but must be %llu", s->id.text,
                         name, (long long)seen, (unsigned long long)expected);
}

/* Each message posted for it has been delivered, has failed or was dropped, or is to
 * come. */
static bool
judge_counts(struct judging *j, const struct known_subscription *s,
             const struct seen_subscription *seen)
{
    uint64_t fed = s->fed + (s->listens ? judging_queue(j)->post_count - s->first : 0);
    int64_t all =
        seen->delivered + seen->permanent_failures + seen->dropped + seen->behind;

    if (!judge_number(j, s, "failures", s->failures, seen->failures) ||
        !judge_number(j, s, "delivering", s->leased, seen->leased))
        return false;
    if (s->adds_up && !judge_number(j, s, "what it was to get", fed, all))
        return false;
    if (!s->exact)
        return true;
    if (seen->dropped < (int64_t)s->dropped)
        return judge_number(j, s, "fallen_out", s->dropped, seen->dropped);
    return judge_number(j, s, "delivered", s->delivered, seen->delivered) &&
           judge_number(j, s, "given_up", s->permanent_failures,
                        seen->permanent_failures);
}

static bool
judge_progress(struct judging *j, const struct known_subscription *s,
               const struct seen_subscription *seen)
{
    char next_try[CLOCK_TEXT_CAP] = "";

    if (s->again_ms > j->now_ms)
        clock_text(s->again_ms + j->ahead_ms, next_try);
    if (strcmp(seen->next_try, next_try) != 0)
        return verdict_break(j->verdict, PROMISE_ADDS_UP,
                             "subscription %s is tried again at \"%s\", but must be at "
                             "\"%s\"",
                             s->id.text, seen->next_try, next_try);
    return judge_counts(j, s, seen);
}

static bool
judge_one(struct judging *j, const struct known_subscription *s,
          const struct seen_subscription *seen)
{
    if (strcmp(s->id.text, seen->id.text) != 0)
        return verdict_break(j->verdict, PROMISE_NOTHING_LOST,
                             "subscription %s is shown where %s must be", seen->id.text,
                             s->id.text);
    if (seen->confirmed != s->confirmed || seen->ttl_s != s->ttl_s)
        return verdict_break(j->verdict, PROMISE_NOTHING_LOST,
                             "subscription %s is shown with what it was before",
                             s->id.text);
    if (seen->age_s != (j->now_ms - s->started_ms) / 1000)
        return verdict_break(j->verdict, PROMISE_ON_TIME, "subscription %s is %lld s old",
                             s->id.text, (long long)seen->age_s);
    return j->op->kind == OP_PROGRESS_LIST ? judge_progress(j, s, seen)
                                           : judge_plain(j, s, seen);
}

static bool
judge_list(struct judging *j)
{
    const struct known_queue *q = judging_queue(j);
    const struct sim_response *a = j->response;

    if (!judge_code(j, 200, PROMISE_CONTRACT))
        return false;
    if (a->subscription_count != q->subscription_count)
        return verdict_break(j->verdict,
                             a->subscription_count < q->subscription_count
                                 ? PROMISE_NOTHING_LOST
                                 : PROMISE_ON_TIME,
                             "%zu subscriptions are shown, there are %zu",
                             a->subscription_count, q->subscription_count);
    for (size_t i = 0; i < q->subscription_count; i++)
        if (!judge_one(j, q->subscriptions[i], &a->subscriptions[i]))
            return false;
    return true;
}

bool
judge_subscription(struct judging *j)
{
    switch (j->op->kind) {
    case OP_SUBSCRIBE:
        return judge_subscribe(j);
    case OP_SUBSCRIPTION_PATCH:
        return judge_patch(j);
    case OP_SUBSCRIPTION_CONFIRM:
        return judge_confirm(j);
    case OP_SUBSCRIPTION_DELETE:
        return judge_delete(j);
    default:
        return judge_list(j);
    }
}
