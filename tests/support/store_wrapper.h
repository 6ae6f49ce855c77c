/*
 * store_wrapper: the operations of a store that calls another one. patient.c and
 * slow_store.c include it once. The function of an operation has the prefix `wrapped_`,
 * and wrapper_ops and wrapper_state_ops have them all. The file defines before it
 *
 *   wrapped_store(s)               the store inside
 *   WRAP(name, parameters, ...)    the function of an operation with these arguments
 *
 * and wrapped_queue_stats() and wrapped_close() behind it. Batches, queues and records
 * are released by the store that made them.
 */
#include "claimd/store/store.h"

#define WHERE struct store *s, struct store_op *op, const struct store_queue *q

WRAP(queue_create, (WHERE, const struct store_metadata *m, bool *made), op, q, m, made)
WRAP(queue_get, (WHERE, struct store_queues *out), op, q, out)
WRAP(queue_update, (WHERE, uint64_t version, const struct store_metadata *m), op, q,
     version, m)
WRAP(queue_delete, (WHERE), op, q)
WRAP(queue_list,
     (struct store * s, struct store_op *op, const struct store_page *page,
      struct store_queues *out),
     op, page, out)
WRAP(project_list,
     (struct store * s, struct store_op *op, const struct store_page *page,
      struct store_queues *out),
     op, page, out)
WRAP(queue_purge, (WHERE, enum store_purge what), op, q, what)
WRAP(read, (WHERE, struct store_records *records), op, q, records)
WRAP(apply, (WHERE, const struct store_record *records, size_t count), op, q, records,
     count)
WRAP(message_post, (WHERE, const struct store_post *post, struct store_id *ids), op, q,
     post, ids)
WRAP(message_list, (WHERE, const struct store_filter *f, struct store_batch *out), op, q,
     f, out)
WRAP(message_get, (WHERE, const struct bytes *ids, size_t count, struct store_batch *out),
     op, q, ids, count, out)
WRAP(message_find, (WHERE, struct bytes key, struct store_batch *out), op, q, key, out)
WRAP(message_delete, (WHERE, const struct store_delete *which), op, q, which)
WRAP(message_pop, (WHERE, size_t limit, struct store_batch *out), op, q, limit, out)
WRAP(claim_create,
     (WHERE, const struct store_terms *terms, size_t limit, struct store_batch *out), op,
     q, terms, limit, out)
WRAP(claim_get, (WHERE, struct bytes claim, struct store_batch *out), op, q, claim, out)
WRAP(claim_list, (WHERE, struct store_claim_page *page), op, q, page)
WRAP(claim_renew,
     (WHERE, struct bytes claim, const struct store_terms *terms, uint64_t *number), op,
     q, claim, terms, number)
WRAP(claim_release, (WHERE, struct bytes claim, enum store_release why), op, q, claim,
     why)
WRAP(claim_finish, (WHERE, struct store_finish *finish), op, q, finish)
WRAP(redrive, (WHERE, struct store_redrive *which, struct store_redriven *out), op, q,
     which, out)
WRAP(subscription_create,
     (WHERE, const struct store_subscription_draft *draft, struct store_subscribed *out),
     op, q, draft, out)
WRAP(subscription_get, (WHERE, struct bytes id, struct store_subscriptions *out), op, q,
     id, out)
WRAP(subscription_list,
     (WHERE, struct bytes marker, size_t limit, struct store_subscriptions *out), op, q,
     marker, limit, out)
WRAP(subscription_update,
     (WHERE, struct bytes id, const struct store_subscription_draft *draft), op, q, id,
     draft)
WRAP(subscription_delete, (WHERE, struct bytes id), op, q, id)
WRAP(subscription_confirm, (WHERE, struct bytes id, bool confirmed), op, q, id, confirmed)
WRAP(delivery_next, (struct store * s, struct store_op *op, struct store_delivery *out),
     op, out)
WRAP(totals, (struct store * s, struct store_op *op, struct store_totals *out), op, out)
WRAP(metrics, (struct store * s, struct store_op *op, struct store_metrics *out), op, out)
WRAP(queue_metrics,
     (struct store * s, struct store_op *op, size_t *at, struct store_queue_metrics *out),
     op, at, out)
WRAP(queue_survey, (struct store * s, struct store_op *op, struct store_survey *survey),
     op, survey)
WRAP(ping, (struct store * s, struct store_op *op), op)

/* A leased delivery goes back to the store that leased it: `delivery->store`. */
static void
wrapped_delivery_done(struct store *s, struct store_op *op,
                      struct store_delivery *delivery, enum store_outcome outcome,
                      int64_t again_ms)
{
    store_delivery_done(wrapped_store(s), op, delivery, outcome, again_ms);
}

static void
wrapped_delivery_watch(struct store *s, struct store_listener *listener)
{
    store_delivery_watch(wrapped_store(s), listener);
}

static void
wrapped_waiter_leave(struct store *s, struct store_waiter *waiter)
{
    store_waiter_leave(wrapped_store(s), waiter);
}

static void
wrapped_housekeep(struct store *s, int64_t now_ms, int64_t *next_ms)
{
    store_housekeep(wrapped_store(s), now_ms, next_ms);
}

static int64_t
wrapped_next_ms(struct store *s)
{
    return store_next_ms(wrapped_store(s));
}

static bool
wrapped_audit(struct store *s)
{
    return store_audit(wrapped_store(s));
}

static store_queue_stats_fn wrapped_queue_stats;
static store_close_fn wrapped_close;

#define wrapped_batch_release         NULL
#define wrapped_queues_release        NULL
#define wrapped_subscriptions_release NULL
#define WRAPPED(name)                 .name = wrapped_##name,

static const struct store_vtable wrapper_ops = {STORE_OPERATIONS(WRAPPED)};
static const struct store_state_vtable wrapper_state_ops = {.read = wrapped_read,
                                                            .apply = wrapped_apply};
