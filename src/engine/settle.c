#include "engine/settle.h"
#include "claimd/base/invariant.h"
#include "engine/changelog.h"
#include "engine/claim.h"
#include "engine/feed.h"

/* After so many slices an operation lets others of its thread go first. */
enum { SLICES = 4 };

void
settle_remove(struct shard *sh, struct message *m)
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
settle_claims(struct shard *sh, int64_t now_ms, size_t *budget)
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
            (void)changelog_message(q, STORE_CHANGE_EXPIRED, m, now_ms);
        settle_remove(sh, m);
        message_unpin(sh->core->mem, m);
        return;
    }
    backlog_end_delay(m->backlog, m);
    shard_arm_message(sh, &m->due, m->expires_ms);
    if (told)
        (void)changelog_message(q, STORE_CHANGE_DELAY_OVER, m, now_ms);
    if (q != NULL)
        queue_wake_waiters(q);
}

bool
settle_messages(struct shard *sh, int64_t now_ms, size_t *budget)
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
settle_slice(struct shard *sh, int64_t now_ms, enum settle settle)
{
    size_t claims = SETTLE_SLICE, messages = SETTLE_SLICE;

    return (settle < SETTLE_CLAIMS || settle_claims(sh, now_ms, &claims)) &&
           (settle < SETTLE_ALL || settle_messages(sh, now_ms, &messages));
}

enum status
settle_enter(struct shard *sh, int64_t *now_ms, enum settle settle)
{
    for (int i = 0; i < SLICES; i++) {
        *now_ms = shard_enter(sh, *now_ms);
        if (settle_slice(sh, *now_ms, settle))
            return ST_OK;
        shard_leave(sh); /* much is due: let others in between the slices */
    }
    return ST_AGAIN;
}
