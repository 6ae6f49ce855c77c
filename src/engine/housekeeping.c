#include "engine/housekeeping.h"
#include "claimd/base/invariant.h"
#include "engine/changelog.h"
#include "engine/claim.h"
#include "engine/subscription.h"

/* ------------------------------------------------------------------ expiry */

/* After so many slices an operation lets others of its thread go first. */
enum { SLICES = 4 };

void
message_detach(struct shard *sh, struct message *m)
{
    struct claim *holder = m->claim;

    lock_assert_held(&sh->lock);
    ENSURE(m->backlog != NULL);
    if (m->backlog->queue != NULL)
        directory_give(&m->backlog->queue->entry, 1, m->body_len);
    wheel_disarm(sh->message_wheel, &m->due);
    backlog_remove(m->backlog, &sh->pool, m);
    if (holder != NULL)
        claim_lose(sh, holder);
    seqmap_pool_trim(&sh->pool);
}

/* Takes what was done off a budget. */
static void
spend(size_t *budget, size_t done)
{
    *budget -= done < *budget ? done : *budget;
}

bool
expire_claims(struct shard *sh, int64_t now_ms, size_t *budget)
{
    bool whole = wheel_advance(sh->claim_wheel, now_ms, *budget);

    while (*budget > 0) {
        struct deadline *d = wheel_drain(sh->claim_wheel);
        struct claim *c;

        if (d == NULL)
            return whole;
        c = claim_of(d);
        spend(budget, 1 + c->held);
        if (c->backlog->queue != NULL)
            figures_count(&sh->figures, STORE_COUNT_BACK_EXPIRED, c->held);
        if (has_log(sh->core) && c->backlog->queue != NULL)
            (void)changelog_claim(c->backlog->queue, STORE_CHANGE_CLAIM_OVER, c, now_ms);
        claim_end(sh, c);
    }
    return false;
}

/* Counts a message that expires in q. */
static void
count_expired(struct shard *sh, const struct queue *q, const struct message *m)
{
    struct store_expired *of_queue =
        metrics_slots_expired(&sh->core->metrics_slots, q->metrics_slot);
    struct store_expired *counts = of_queue == NULL ? &sh->figures.rest : of_queue;

    figures_count(&sh->figures, STORE_COUNT_EXPIRED, 1);
    counts->messages++;
    counts->unread += m->claim_count == 0 && !feed_listens(q->feed);
    counts->dead_letters += m->original != NULL;
}

/* The end of a message's delay or life has come. */
static void
message_due(struct shard *sh, struct message *m, int64_t now_ms)
{
    struct queue *q = m->backlog->queue; /* NULL: dead already */
    bool told = has_log(sh->core) && q != NULL;

    if (!message_live(m, now_ms)) {
        if (q != NULL)
            count_expired(sh, q, m);
        if (told)
            (void)changelog_single(q, STORE_CHANGE_EXPIRED, m, now_ms);
        message_detach(sh, m);
        message_unpin(sh->core->mem, m);
        return;
    }
    backlog_end_delay(m->backlog, m);
    shard_arm_message(sh, &m->due, m->expires_ms);
    if (told)
        (void)changelog_single(q, STORE_CHANGE_DELAY_OVER, m, now_ms);
    if (q != NULL)
        queue_wake_waiters(q);
}

bool
expire_messages(struct shard *sh, int64_t now_ms, size_t *budget)
{
    bool whole = wheel_advance(sh->message_wheel, now_ms, *budget);

    while (*budget > 0) {
        struct deadline *d = wheel_drain(sh->message_wheel);

        if (d == NULL)
            return whole;
        spend(budget, 1);
        message_due(sh, message_of(d), now_ms);
    }
    return false;
}

static bool
expire_slice(struct shard *sh, int64_t now_ms, enum expiry which)
{
    size_t claims = EXPIRE_SLICE, messages = EXPIRE_SLICE;

    return (which < EXPIRE_CLAIMS || expire_claims(sh, now_ms, &claims)) &&
           (which < EXPIRE_ALL || expire_messages(sh, now_ms, &messages));
}

enum status
expire_enter(struct shard *sh, int64_t *now_ms, enum expiry which)
{
    for (int i = 0; i < SLICES; i++) {
        *now_ms = shard_enter(sh, *now_ms);
        if (expire_slice(sh, *now_ms, which))
            return ST_OK;
        shard_leave(sh); /* much is due: let others in between the slices */
    }
    return ST_AGAIN;
}

/* ------------------------------------------------------------------ reclaiming */

/* Takes a dead backlog over; an empty one is freed. */
static void
reclaim_add(struct shard *sh, struct backlog *b)
{
    if (backlog_live(b) == 0) {
        backlog_free(sh->core->mem, b);
        return;
    }
    backlog_count_in(b, &sh->reclaiming);
    list_add_before(&sh->reclaim_list, &b->reclaim_link);
    shard_wake_at(sh, sh->now_ms);
}

/* What the queue has is its project's no more. */
static void
forget_all(const struct queue *q)
{
    directory_give(&q->entry, backlog_live(q->backlog), q->backlog->bytes);
}

void
reclaim_queue(struct shard *sh, struct queue *q)
{
    forget_all(q);
    feed_detach_all(sh, q);
    shard_unlink(sh, q);
    reclaim_add(sh, queue_replace_backlog(q, NULL));
    queue_free(sh->core->mem, q);
}

void
reclaim_backlog(struct shard *sh, struct queue *q, struct backlog *fresh)
{
    lock_assert_held(&sh->lock);
    forget_all(q);
    reclaim_add(sh, queue_replace_backlog(q, fresh));
}

bool
reclaim_empty(const struct shard *sh)
{
    return list_empty(&sh->reclaim_list);
}

/* Frees messages of the oldest dead backlog, and when it is empty the backlog. */
static void
free_messages(struct shard *sh, size_t *budget)
{
    struct backlog *b = container_of(sh->reclaim_list.next, struct backlog, reclaim_link);

    for (; *budget > 0; --*budget) {
        uint64_t seq = 0;
        struct message *m = backlog_next_live(b, &seq);

        if (m == NULL) {
            list_remove(&b->reclaim_link);
            backlog_free(sh->core->mem, b);
            --*budget;
            return;
        }
        message_detach(sh, m);
        message_unpin(sh->core->mem, m);
    }
}

bool
reclaim_slice(struct shard *sh, size_t *budget)
{
    lock_assert_held(&sh->lock);
    while (*budget > 0 && !reclaim_empty(sh))
        free_messages(sh, budget);
    return reclaim_empty(sh);
}

bool
reclaim_audit(const struct shard *sh)
{
    const struct list *link;
    size_t count = 0;

    for (link = sh->reclaim_list.next; link != &sh->reclaim_list; link = link->next) {
        const struct backlog *b = container_of(link, const struct backlog, reclaim_link);

        if (b->queue != NULL || !backlog_audit(b) || !claims_audit(b))
            return false;
        count += backlog_live(b);
    }
    return count == sh->reclaiming.messages;
}

/* ------------------------------------------------------------------ slices */

/* A part of housekeeping, as far as the budget goes. True when none of it is left. */
typedef bool chore_fn(struct shard *sh, int64_t now_ms, size_t *budget);

static bool
reclaim_garbage(struct shard *sh, int64_t now_ms, size_t *budget)
{
    (void)now_ms; /* what lies there has no time any more */
    return reclaim_slice(sh, budget);
}

int64_t
housekeep_shard(struct shard *sh, int64_t now_ms, size_t *budget)
{
    static chore_fn *const chores[] = {expire_claims, expire_messages, reclaim_garbage,
                                       expire_subscriptions, feed_chores};
    int64_t next_ms, messages_ms;
    bool settled = true;

    now_ms = shard_enter(sh, now_ms);
    for (size_t i = 0; i < sizeof(chores) / sizeof(chores[0]); i++) {
        size_t slice = *budget < EXPIRE_SLICE ? *budget : EXPIRE_SLICE, left = slice;

        settled = chores[i](sh, now_ms, &left) && settled;
        *budget -= slice - left;
    }
    seqmap_pool_trim(&sh->pool);
    next_ms = wheel_next_ms(sh->claim_wheel);
    messages_ms = wheel_next_ms(sh->message_wheel);
    if (next_ms > messages_ms)
        next_ms = messages_ms;
    if (sh->subscription_wheel != NULL && next_ms > wheel_next_ms(sh->subscription_wheel))
        next_ms = wheel_next_ms(sh->subscription_wheel);
    if (!settled)
        next_ms = now_ms;
    atomic_store(&sh->next_ms, next_ms);
    shard_leave(sh); /* may lower it */
    return next_ms;
}
