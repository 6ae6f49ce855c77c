/* The operations of the seam: each is one call into the implementation. */
#include "claimd/store/store.h"

enum status
store_queue_create(struct store *s, struct store_visit *visit,
                   const struct store_queue *queue, const struct store_metadata *metadata,
                   bool *created)
{
    return s->ops->queue_create(s, visit, queue, metadata, created);
}

enum status
store_queue_get(struct store *s, struct store_visit *visit,
                const struct store_queue *queue, struct store_queues *out)
{
    return s->ops->queue_get(s, visit, queue, out);
}

enum status
store_queue_update(struct store *s, struct store_visit *visit,
                   const struct store_queue *queue, uint64_t version,
                   const struct store_metadata *metadata)
{
    return s->ops->queue_update(s, visit, queue, version, metadata);
}

enum status
store_queue_delete(struct store *s, struct store_visit *visit,
                   const struct store_queue *queue)
{
    return s->ops->queue_delete(s, visit, queue);
}

enum status
store_queue_list(struct store *s, struct store_visit *visit,
                 const struct store_page *page, struct store_queues *out)
{
    return s->ops->queue_list(s, visit, page, out);
}

enum status
store_project_list(struct store *s, struct store_visit *visit,
                   const struct store_page *page, struct store_queues *out)
{
    return s->ops->project_list(s, visit, page, out);
}

enum status
store_queue_stats(struct store *s, struct store_visit *visit,
                  const struct store_queue *queue, struct store_stats *out)
{
    return s->ops->queue_stats(s, visit, queue, out);
}

enum status
store_queue_purge(struct store *s, struct store_visit *visit,
                  const struct store_queue *queue, enum store_purge what)
{
    return s->ops->queue_purge(s, visit, queue, what);
}

enum status
store_queue_image(struct store *s, struct store_visit *visit,
                  const struct store_queue *queue, struct store_image *image)
{
    return s->ops->queue_image(s, visit, queue, image);
}

enum status
store_queue_load(struct store *s, struct store_visit *visit,
                 const struct store_queue *queue, const struct store_image *image)
{
    return s->ops->queue_load(s, visit, queue, image);
}

enum status
store_message_post(struct store *s, struct store_visit *visit,
                   const struct store_queue *queue, const struct store_post *post,
                   struct store_id *ids)
{
    return s->ops->message_post(s, visit, queue, post, ids);
}

enum status
store_message_list(struct store *s, struct store_visit *visit,
                   const struct store_queue *queue, const struct store_filter *filter,
                   struct store_batch *out)
{
    return s->ops->message_list(s, visit, queue, filter, out);
}

enum status
store_message_get(struct store *s, struct store_visit *visit,
                  const struct store_queue *queue, const struct bytes *ids, size_t count,
                  struct store_batch *out)
{
    return s->ops->message_get(s, visit, queue, ids, count, out);
}

enum status
store_message_delete(struct store *s, struct store_visit *visit,
                     const struct store_queue *queue, struct bytes id,
                     struct bytes claim_id)
{
    return s->ops->message_delete(s, visit, queue, id, claim_id);
}

enum status
store_message_delete_many(struct store *s, struct store_visit *visit,
                          const struct store_queue *queue, const struct bytes *ids,
                          size_t count, const struct bytes *claim_ids, size_t claim_count)
{
    return s->ops->message_delete_many(s, visit, queue, ids, count, claim_ids,
                                       claim_count);
}

enum status
store_message_pop(struct store *s, struct store_visit *visit,
                  const struct store_queue *queue, size_t limit, struct store_batch *out)
{
    return s->ops->message_pop(s, visit, queue, limit, out);
}

enum status
store_claim_create(struct store *s, struct store_visit *visit,
                   const struct store_queue *queue, const struct store_terms *terms,
                   size_t limit, struct store_batch *out)
{
    return s->ops->claim_create(s, visit, queue, terms, limit, out);
}

enum status
store_claim_get(struct store *s, struct store_visit *visit,
                const struct store_queue *queue, struct bytes claim_id,
                struct store_batch *out)
{
    return s->ops->claim_get(s, visit, queue, claim_id, out);
}

enum status
store_claim_renew(struct store *s, struct store_visit *visit,
                  const struct store_queue *queue, struct bytes claim_id,
                  const struct store_terms *terms, uint64_t *number)
{
    return s->ops->claim_renew(s, visit, queue, claim_id, terms, number);
}

enum status
store_claim_release(struct store *s, struct store_visit *visit,
                    const struct store_queue *queue, struct bytes claim_id)
{
    return s->ops->claim_release(s, visit, queue, claim_id);
}

enum status
store_claim_give_back(struct store *s, struct store_visit *visit,
                      const struct store_queue *queue, struct bytes claim_id,
                      bool uncount)
{
    return s->ops->claim_give_back(s, visit, queue, claim_id, uncount);
}

enum status
store_subscription_create(struct store *s, struct store_visit *visit,
                          const struct store_queue *queue,
                          const struct store_subscription_draft *draft,
                          struct store_subscribed *out)
{
    return s->ops->subscription_create(s, visit, queue, draft, out);
}

enum status
store_subscription_get(struct store *s, struct store_visit *visit,
                       const struct store_queue *queue, struct bytes id,
                       struct store_subscriptions *out)
{
    return s->ops->subscription_get(s, visit, queue, id, out);
}

enum status
store_subscription_list(struct store *s, struct store_visit *visit,
                        const struct store_queue *queue, struct bytes marker,
                        size_t limit, struct store_subscriptions *out)
{
    return s->ops->subscription_list(s, visit, queue, marker, limit, out);
}

enum status
store_subscription_update(struct store *s, struct store_visit *visit,
                          const struct store_queue *queue, struct bytes id,
                          const struct store_subscription_draft *draft)
{
    return s->ops->subscription_update(s, visit, queue, id, draft);
}

enum status
store_subscription_delete(struct store *s, struct store_visit *visit,
                          const struct store_queue *queue, struct bytes id)
{
    return s->ops->subscription_delete(s, visit, queue, id);
}

enum status
store_subscription_confirm(struct store *s, struct store_visit *visit,
                           const struct store_queue *queue, struct bytes id,
                           bool confirmed)
{
    return s->ops->subscription_confirm(s, visit, queue, id, confirmed);
}

enum status
store_delivery_next(struct store *s, struct store_visit *visit,
                    struct store_delivery *out)
{
    return s->ops->delivery_next(s, visit, out);
}

void
store_delivery_done(struct store *s, struct store_visit *visit,
                    struct store_delivery *delivery, enum store_outcome outcome,
                    int64_t again_ms)
{
    s->ops->delivery_done(s, visit, delivery, outcome, again_ms);
}

void
store_delivery_watch(struct store *s, struct store_watcher *watcher)
{
    s->ops->delivery_watch(s, watcher);
}

void
store_waiter_leave(struct store *s, struct store_waiter *waiter)
{
    s->ops->waiter_leave(s, waiter);
}

enum store_fate
store_fate(struct store *s, uint64_t position)
{
    return s->ops->fate(s, position);
}

void
store_flush(struct store *s)
{
    s->ops->flush(s);
}

void
store_watch(struct store *s, struct store_watcher *watcher)
{
    s->ops->watch(s, watcher);
}

void
store_unwatch(struct store *s, struct store_watcher *watcher)
{
    s->ops->unwatch(s, watcher);
}

enum status
store_ping(struct store *s, struct store_visit *visit)
{
    return s->ops->ping(s, visit);
}

enum status
store_totals(struct store *s, struct store_visit *visit, struct store_totals *out)
{
    return s->ops->totals(s, visit, out);
}

enum status
store_figures(struct store *s, struct store_visit *visit, struct store_figures *out)
{
    return s->ops->figures(s, visit, out);
}

enum status
store_queue_figures(struct store *s, struct store_visit *visit, size_t *at,
                    struct store_queue_figures *out)
{
    return s->ops->queue_figures(s, visit, at, out);
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

void
store_subscriptions_release(struct store_subscriptions *subscriptions)
{
    if (subscriptions->store != NULL)
        subscriptions->store->ops->subscriptions_release(subscriptions->store,
                                                         subscriptions);
    *subscriptions = (struct store_subscriptions)STORE_SUBSCRIPTIONS_INIT;
}
