/* Whether every invariant of an engine holds; walks everything. */
#include "engine/claim.h"
#include "engine/graveyard.h"
#include "engine/instance.h"
#include "engine/subscription.h"

static bool
queue_audit(const struct shard *sh, const struct queue *q)
{
    const struct message *last = backlog_last(q->backlog);
    uint64_t number = q->last_claim + 1;

    if (q->shard != sh || q->backlog->queue != q || !backlog_audit(q->backlog))
        return false;
    if (last != NULL && last->seq > q->last_seq)
        return false;
    if (backlog_next_claim(q->backlog, &number) != NULL)
        return false;
    if (q->waitqueue != NULL &&
        (q->waitqueue->queue != q ||
         !waitqueue_audit(q->waitqueue, backlog_ready(q->backlog))))
        return false;
    if (q->feed != NULL && (q->feed->queue != q || q->feed->subscriptions.live == 0 ||
                            !feed_audit(sh, q->feed)))
        return false;
    return claims_audit(q->backlog);
}

/* Lines of queues that are not there are in the table, too. */
static bool
lines_audit(const struct shard *sh)
{
    const struct hashnode *node = NULL;

    if (!list_empty(&sh->dirty_waitqueues) || !hashmap_audit(&sh->waitqueues))
        return false;
    while ((node = hashmap_walk(&sh->waitqueues, node)) != NULL) {
        const struct waitqueue *waitqueue =
            container_of(node, const struct waitqueue, node);

        if (waitqueue->ended ||
            (waitqueue->queue == NULL ? !waitqueue_audit(waitqueue, 0)
                                      : waitqueue->queue->waitqueue != waitqueue))
            return false;
    }
    return true;
}

static bool
feeds_tally_audit(const struct shard *sh)
{
    const struct hashnode *node = NULL;
    uint64_t subscriptions = 0, bytes = 0;

    while ((node = hashmap_walk(&sh->queues, node)) != NULL) {
        const struct queue *q = container_of(node, const struct queue, node);

        if (q->feed == NULL)
            continue;
        subscriptions += q->feed->subscriptions.live;
        bytes += q->feed->bytes;
    }
    return subscriptions == sh->subscriptions && bytes == sh->feed_bytes;
}

/* The tally of the queues agrees with what they have. */
static bool
tally_audit(const struct shard *sh)
{
    const struct hashnode *node = NULL;
    struct tally sum = {0};

    while ((node = hashmap_walk(&sh->queues, node)) != NULL) {
        const struct queue *q = container_of(node, const struct queue, node);

        sum.messages += backlog_live(q->backlog);
        sum.claimed += q->backlog->claimed;
        sum.delayed += backlog_delayed(q->backlog);
        sum.original += q->backlog->original.count;
        sum.claims += q->backlog->claims.live;
        sum.bytes += q->backlog->bytes;
    }
    return feeds_tally_audit(sh) && sum.messages == sh->alive.messages &&
           sum.claimed == sh->alive.claimed && sum.delayed == sh->alive.delayed &&
           sum.original == sh->alive.original && sum.claims == sh->alive.claims &&
           sum.bytes == sh->alive.bytes;
}

static bool
shard_audit(struct shard *sh, struct directory_sum *sum)
{
    const struct hashnode *node = NULL;
    bool sound;

    lock_acquire(&sh->lock);
    sound = hashmap_audit(&sh->queues) && wheel_audit(sh->claim_wheel) &&
            wheel_audit(sh->message_wheel) &&
            (sh->subscription_wheel == NULL || wheel_audit(sh->subscription_wheel)) &&
            graveyard_audit(sh) && tally_audit(sh) && lines_audit(sh) && !sh->tells;
    sum->queues += sh->queues.count;
    sum->messages += sh->alive.messages;
    sum->bytes += sh->alive.bytes;
    while (sound && (node = hashmap_walk(&sh->queues, node)) != NULL)
        sound = queue_audit(sh, container_of(node, const struct queue, node));
    lock_release(&sh->lock);
    return sound;
}

bool
engine_audit(struct store *s)
{
    struct engine *e = engine_of(s);
    struct directory_sum sum = {0};

    for (size_t i = 0; i <= e->shard_mask; i++)
        if (!shard_audit(&e->shards[i], &sum))
            return false;
    return directory_audit(&e->core.directory, &sum);
}
