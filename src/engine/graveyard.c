#include "engine/graveyard.h"
#include "engine/claim.h"
#include "engine/shard.h"

void
graveyard_add_backlog(struct shard *sh, struct backlog *b)
{
    b->queue = NULL;
    backlog_count_in(b, &sh->buried);
    list_add_before(&sh->dead_backlogs, &b->grave);
    shard_wake_at(sh, sh->now_ms);
}

void
graveyard_add_queue(struct shard *sh, struct queue *q)
{
    list_add_before(&sh->dead_queues, &q->grave);
    shard_wake_at(sh, sh->now_ms);
}

bool
graveyard_empty(const struct shard *sh)
{
    return list_empty(&sh->dead_backlogs) && list_empty(&sh->dead_queues);
}

/* Frees messages of the oldest dead backlog; returns what is left of the budget. */
static size_t
free_messages(struct shard *sh, size_t budget)
{
    struct backlog *b = container_of(sh->dead_backlogs.next, struct backlog, grave);

    for (; budget > 0; budget--) {
        uint64_t seq = 0;
        struct message *m = seqmap_next_live(&b->messages, &seq);

        if (m == NULL) {
            list_remove(&b->grave);
            backlog_free(sh->engine->mem, b);
            return budget - 1;
        }
        shard_remove_message(sh, m);
        message_unpin(sh->engine->mem, m);
    }
    return 0;
}

/* Frees claims of the oldest dead queue; returns what is left of the budget. */
static size_t
free_claims(struct shard *sh, size_t budget)
{
    struct queue *q = container_of(sh->dead_queues.next, struct queue, grave);

    for (; budget > 0; budget--) {
        uint64_t number = 0;
        struct claim *c = seqmap_next_live(&q->claims, &number);

        if (c == NULL) {
            list_remove(&q->grave);
            queue_free(q);
            return budget - 1;
        }
        claim_end(sh, c);
    }
    return 0;
}

bool
graveyard_slice(struct shard *sh, size_t budget)
{
    lock_assert_held(&sh->lock);
    while (budget > 0 && !list_empty(&sh->dead_backlogs))
        budget = free_messages(sh, budget);
    while (budget > 0 && !list_empty(&sh->dead_queues))
        budget = free_claims(sh, budget);
    return graveyard_empty(sh);
}

bool
graveyard_audit(const struct shard *sh)
{
    const struct list *link;

    for (link = sh->dead_backlogs.next; link != &sh->dead_backlogs; link = link->next) {
        const struct backlog *b = container_of(link, const struct backlog, grave);

        if (b->queue != NULL || !backlog_audit(b))
            return false;
    }
    for (link = sh->dead_queues.next; link != &sh->dead_queues; link = link->next) {
        const struct queue *q = container_of(link, const struct queue, grave);

        if (!q->dead || q->backlog != NULL || q->shard != sh || !queue_audit_claims(q))
            return false;
    }
    return true;
}
