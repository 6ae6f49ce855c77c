/* The subscribers of the ledger, as deliveries come and go. */
#include "sim/ledger.h"

/* It has nothing to do with what was posted until now. */
static void
begin_behind(const struct known_queue *q, struct known_subscription *s)
{
    s->first = s->low = s->at = q->post_count;
    s->done_count = s->missed = 0;
    s->unlogged = false;
}

void
ledger_listen(struct ledger *l, struct known_subscription *s, bool listens)
{
    const struct known_queue *q = &l->queues[s->place];

    if (s->listens == listens)
        return;
    if (s->listens)
        s->fed += q->post_count - s->first;
    if (s->listens && (s->at < q->post_count || !s->exact))
        s->exact = s->adds_up = false; /* nothing is known of these counts */
    s->listens = listens;
    begin_behind(q, s);
    s->leased_post = false;
    s->failed = 0;
    s->again_ms = 0;
}

void
ledger_notify(struct ledger *l, struct known_subscription *s, int notice)
{
    s->notice = notice;
    s->old = s->maybe = 0;
    s->failed = 0;
    s->again_ms = 0;
    ledger_hurry(l);
}

/* A leased delivery comes again, unless a later one has overtaken it. */
static bool
comes_again(const struct known_subscription *s)
{
    if (s->leased_notice == 0)
        return s->leased_post && s->notice == 0;
    return s->notice == 0 &&
           !(s->confirmed && s->leased_notice == 1 + STORE_NOTICE_CONFIRM);
}

/* It failed, or was not tried. */
static void
back_off(struct known_subscription *s, bool failed, int64_t now_ms, int64_t again_ms)
{
    bool other = s->notice != 0, again = comes_again(s);

    if (failed) {
        s->failures++;
        s->failed = s->changed || !again ? 0 : s->failed + 1;
    }
    if (again)
        s->notice = s->leased_notice;
    s->again_ms = s->changed || other || again_ms <= now_ms ? 0 : again_ms;
}

static void
note_done(struct known_subscription *s)
{
    if (s->done_count == AGAIN_MOST)
        memmove(s->done, s->done + 1, --s->done_count * sizeof(s->done[0]));
    s->done[s->done_count++] = s->at;
}

/* It was delivered, or never will be. */
static void
finish(struct known_subscription *s, int was, bool delivered)
{
    s->failed = 0;
    if (was != 0) {
        s->old = was;
        return;
    }
    *(delivered ? &s->delivered : &s->permanent_failures) += 1;
    if (!s->leased_post)
        return; /* it has begun anew meanwhile */
    s->dropped += s->missed;
    s->missed = 0;
    note_done(s);
    s->low = ++s->at;
}

void
ledger_delivered(struct ledger *l, int place, const char *id, enum store_outcome outcome,
                 int64_t now_ms, int64_t again_ms, bool starved)
{
    struct known_subscription *s;

    ledger_advance(l, now_ms);
    s = ledger_subscription(l, place, id);
    if (s == NULL || !s->leased)
        return;
    s->leased = false;
    s->unlogged = s->unlogged || starved;
    ledger_hurry(l);
    if (outcome == STORE_OUTCOME_GONE)
        ledger_unsubscribe(l, s, ENDING_DELETED);
    else if (outcome == STORE_OUTCOME_FAILED || outcome == STORE_OUTCOME_BACKED_OFF)
        back_off(s, outcome == STORE_OUTCOME_FAILED, now_ms, again_ms);
    else
        finish(s, s->leased_notice, outcome == STORE_OUTCOME_DELIVERED);
}

/* ---------------------------------------------------------------------- restarts */

/* From where on posts may be delivered again. */
static size_t
earliest(const struct known_subscription *s)
{
    size_t low = s->at;

    if (s->unlogged || s->done_count < AGAIN_MOST)
        return s->first;
    for (size_t i = 0; i < s->done_count; i++)
        low = s->done[i] < low ? s->done[i] : low;
    return low;
}

static void
begin_again(const struct known_queue *q, struct known_subscription *s)
{
    if (s->leased && comes_again(s))
        s->notice = s->leased_notice; /* no log has that it was delivered */
    if (s->old != 0)
        s->maybe = s->old;
    if (s->notice != 0)
        s->maybe = 0;
    s->leased = false;
    s->again_ms = 0;
    s->failed = 0;
    s->failures = 0;
    s->missed = 0;
    s->exact = false;
    if (q->transient)
        s->adds_up = false;
    if (q->transient)
        begin_behind(q, s);
    else
        s->low = earliest(s);
}

void
ledger_restart(struct ledger *l)
{
    for (size_t i = 0; i < l->effect_count; i++) /* a queue in memory forgets its keys */
        if (l->queues[l->effects[i].place].transient)
            l->effects[i].incarnation = 0;
    for (int place = 0; place < PLACES; place++) {
        struct known_queue *q = &l->queues[place];

        if (q->transient)
            ledger_purge(l, place, STORE_PURGE_MESSAGES);
        q->waiter_count = 0;
        for (size_t i = 0; i < q->subscription_count; i++)
            begin_again(q, q->subscriptions[i]);
    }
    memset(l->dismissed, 0, sizeof(l->dismissed));
    ledger_hurry(l);
}
