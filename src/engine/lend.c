#include "engine/lend.h"

enum status
lend_reserve(struct queue *q, uint64_t messages, uint64_t claims)
{
    if (!has_log(q->shard->core) || !queue_transient(q) ||
        (q->last_seq + messages <= q->lent_seq &&
         q->last_claim + claims <= q->lent_claim))
        return ST_OK;
    return changelog_reserve(q->shard, STORE_CHANGE_QUEUE, 0,
                             queue_bytes(&q->where, &q->metadata->document));
}

void
lend_commit(struct queue *q, int64_t now_ms)
{
    if (!has_log(q->shard->core) || !queue_transient(q) ||
        (q->last_seq <= q->lent_seq && q->last_claim <= q->lent_claim))
        return;
    queue_lend(q);
    (void)changelog_queue(q, STORE_CHANGE_QUEUE, now_ms);
}
