/* The operations of the seam: each is one call into the implementation. */
#include "claimd/store/store.h"

enum status
store_queue_create(struct store *s, int64_t now_ms, const struct store_queue *queue,
                   const struct store_metadata *metadata, bool *created)
{
    return s->ops->queue_create(s, now_ms, queue, metadata, created);
}

enum status
store_queue_get(struct store *s, int64_t now_ms, const struct store_queue *queue,
                struct store_queues *out)
{
    return s->ops->queue_get(s, now_ms, queue, out);
}

enum status
store_queue_update(struct store *s, int64_t now_ms, const struct store_queue *queue,
                   uint64_t version, const struct store_metadata *metadata)
{
    return s->ops->queue_update(s, now_ms, queue, version, metadata);
}

enum status
store_queue_delete(struct store *s, int64_t now_ms, const struct store_queue *queue)
{
    return s->ops->queue_delete(s, now_ms, queue);
}

enum status
store_queue_list(struct store *s, int64_t now_ms, struct bytes project,
                 struct bytes marker, size_t limit, bool with_metadata,
                 struct store_queues *out)
{
    return s->ops->queue_list(s, now_ms, project, marker, limit, with_metadata, out);
}

enum status
store_queue_stats(struct store *s, int64_t now_ms, const struct store_queue *queue,
                  struct store_stats *out)
{
    return s->ops->queue_stats(s, now_ms, queue, out);
}

enum status
store_queue_purge(struct store *s, int64_t now_ms, const struct store_queue *queue)
{
    return s->ops->queue_purge(s, now_ms, queue);
}

enum status
store_message_post(struct store *s, int64_t now_ms, const struct store_queue *queue,
                   const struct store_post *post, struct store_id *ids)
{
    return s->ops->message_post(s, now_ms, queue, post, ids);
}

enum status
store_message_list(struct store *s, int64_t now_ms, const struct store_queue *queue,
                   const struct store_filter *filter, struct store_batch *out)
{
    return s->ops->message_list(s, now_ms, queue, filter, out);
}

enum status
store_message_get(struct store *s, int64_t now_ms, const struct store_queue *queue,
                  const struct bytes *ids, size_t count, struct store_batch *out)
{
    return s->ops->message_get(s, now_ms, queue, ids, count, out);
}

enum status
store_message_delete(struct store *s, int64_t now_ms, const struct store_queue *queue,
                     struct bytes id, struct bytes claim_id)
{
    return s->ops->message_delete(s, now_ms, queue, id, claim_id);
}

enum status
store_message_delete_many(struct store *s, int64_t now_ms,
                          const struct store_queue *queue, const struct bytes *ids,
                          size_t count, const struct bytes *claim_ids, size_t claim_count)
{
    return s->ops->message_delete_many(s, now_ms, queue, ids, count, claim_ids,
                                       claim_count);
}

enum status
store_message_pop(struct store *s, int64_t now_ms, const struct store_queue *queue,
                  size_t limit, struct store_batch *out)
{
    return s->ops->message_pop(s, now_ms, queue, limit, out);
}

enum status
store_claim_create(struct store *s, int64_t now_ms, const struct store_queue *queue,
                   const struct store_terms *terms, size_t limit, struct store_batch *out)
{
    return s->ops->claim_create(s, now_ms, queue, terms, limit, out);
}

enum status
store_claim_get(struct store *s, int64_t now_ms, const struct store_queue *queue,
                struct bytes claim_id, struct store_batch *out)
{
    return s->ops->claim_get(s, now_ms, queue, claim_id, out);
}

enum status
store_claim_renew(struct store *s, int64_t now_ms, const struct store_queue *queue,
                  struct bytes claim_id, const struct store_terms *terms)
{
    return s->ops->claim_renew(s, now_ms, queue, claim_id, terms);
}

enum status
store_claim_release(struct store *s, int64_t now_ms, const struct store_queue *queue,
                    struct bytes claim_id)
{
    return s->ops->claim_release(s, now_ms, queue, claim_id);
}

enum status
store_ping(struct store *s, int64_t now_ms)
{
    return s->ops->ping(s, now_ms);
}

enum status
store_totals(struct store *s, int64_t now_ms, struct store_totals *out)
{
    return s->ops->totals(s, now_ms, out);
}

void
store_housekeep(struct store *s, int64_t now_ms, int64_t *next_ms)
{
    s->ops->housekeep(s, now_ms, next_ms);
}

int64_t
store_next_ms(struct store *s)
{
    return s->ops->next_ms(s);
}

bool
store_audit(struct store *s)
{
    return s->ops->audit(s);
}

void
store_close(struct store *s)
{
    if (s != NULL)
        s->ops->close(s);
}

void
store_batch_release(struct store_batch *batch)
{
    if (batch->store != NULL)
        batch->store->ops->batch_release(batch->store, batch);
    *batch = (struct store_batch)STORE_BATCH_INIT;
}

void
store_queues_release(struct store_queues *queues)
{
    if (queues->store != NULL)
        queues->store->ops->queues_release(queues->store, queues);
    *queues = (struct store_queues)STORE_QUEUES_INIT;
}
