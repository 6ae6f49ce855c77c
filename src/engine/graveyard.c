#include "engine/graveyard.h"
#include "engine/claim.h"
#include "engine/settle.h"
#include "engine/subscription.h"

/* Takes a dead backlog over; an empty one is freed. */
static void
lay(struct shard *sh, struct backlog *b)
{
    if (backlog_live(b) == 0) {
        backlog_free(sh->core->mem, b);
        return;
    }
    backlog_count_in(b, &sh->buried);
    list_add_before(&sh->dead_backlogs, &b->grave);
    shard_wake_at(sh, sh->now_ms);
}

/* What the queue has is its project's no more. */
static void
forget_all(const struct queue *q)
{
    directory_give(&q->entry, backlog_live(q->backlog), q->backlog->bytes);
}

void
graveyard_bury(struct shard *sh, struct queue *q)
{
    forget_all(q);
    feed_bury(sh, q);
    shard_unlink(sh, q);
    lay(sh, queue_replace_backlog(q, NULL));
    queue_free(sh->core->mem, q);
}

void
graveyard_purge(struct shard *sh, struct queue *q, struct backlog *fresh)
{
    lock_assert_held(&sh->lock);
    forget_all(q);
    lay(sh, queue_replace_backlog(q, fresh));
}

bool
graveyard_empty(const struct shard *sh)
{
    return list_empty(&sh->dead_backlogs);
}

/* Frees messages of the oldest dead backlog, and when it is empty the backlog. */
static void
free_messages(struct shard *sh, size_t *budget)
{
    struct backlog *b = container_of(sh->dead_backlogs.next, struct backlog, grave);

    for (; *budget > 0; --*budget) {
        uint64_t seq = 0;
        struct message *m = backlog_next_live(b, &seq);

        if (m == NULL) {
            list_remove(&b->grave);
            backlog_free(sh->core->mem, b);
            --*budget;
            return;
        }
        settle_remove(sh, m);
        message_unpin(sh->core->mem, m);
    }
}

bool
graveyard_slice(struct shard *sh, size_t *budget)
{
    lock_assert_held(&sh->lock);
    while (*budget > 0 && !graveyard_empty(sh))
        free_messages(sh, budget);
    return graveyard_empty(sh);
}

bool
graveyard_audit(const struct shard *sh)
{
    const struct list *link;
    size_t buried = 0;

    for (link = sh->dead_backlogs.next; link != &sh->dead_backlogs; link = link->next) {
        const struct backlog *b = container_of(link, const struct backlog, grave);

        if (b->queue != NULL || !backlog_audit(b) || !claims_audit(b))
            return false;
        buried += backlog_live(b);
    }
    return buried == sh->buried.messages;
}
