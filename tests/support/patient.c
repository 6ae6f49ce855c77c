#include "support/patient.h"

#include <stdlib.h>

struct patient {
    struct store store; /* first: the seam's handle */
    struct store *hasty;
};

struct store *
patient_inside(struct store *s)
{
    return ((struct patient *)s)->hasty;
}

/* Defines the function of an operation: its name, its parameters and its arguments. */
#define PATIENT(name, parameters, ...)                                                   \
    static enum status patient_##name parameters                                         \
    {                                                                                    \
        enum status st;                                                                  \
                                                                                         \
        do                                                                               \
            st = store_##name(patient_inside(s), op, __VA_ARGS__);                       \
        while (st == ST_AGAIN);                                                          \
        return st;                                                                       \
    }

#define WHERE struct store *s, struct store_op *op, const struct store_queue *q

PATIENT(queue_create, (WHERE, const struct store_metadata *m, bool *made), q, m, made)
PATIENT(queue_get, (WHERE, struct store_queues *out), q, out)
PATIENT(queue_update, (WHERE, uint64_t version, const struct store_metadata *m), q,
        version, m)
PATIENT(queue_delete, (WHERE), q)
PATIENT(queue_list,
        (struct store * s, struct store_op *op, const struct store_page *page,
         struct store_queues *out),
        page, out)
PATIENT(project_list,
        (struct store * s, struct store_op *op, const struct store_page *page,
         struct store_queues *out),
        page, out)
PATIENT(queue_stats, (WHERE, struct store_stats *out), q, out)
PATIENT(queue_purge, (WHERE, enum store_purge what), q, what)
PATIENT(read, (WHERE, struct store_records *records), q, records)
PATIENT(apply, (WHERE, const struct store_record *records, size_t count), q, records,
        count)
PATIENT(message_post, (WHERE, const struct store_post *post, struct store_id *ids), q,
        post, ids)
PATIENT(message_list, (WHERE, const struct store_filter *f, struct store_batch *out), q,
        f, out)
PATIENT(message_get,
        (WHERE, const struct bytes *ids, size_t count, struct store_batch *out), q, ids,
        count, out)
PATIENT(message_delete, (WHERE, const struct store_delete *which), q, which)
PATIENT(message_pop, (WHERE, size_t limit, struct store_batch *out), q, limit, out)
PATIENT(claim_create,
        (WHERE, const struct store_terms *terms, size_t limit, struct store_batch *out),
        q, terms, limit, out)
PATIENT(claim_get, (WHERE, struct bytes claim, struct store_batch *out), q, claim, out)
PATIENT(claim_list, (WHERE, struct store_claim_page *page), q, page)
PATIENT(claim_renew,
        (WHERE, struct bytes claim, const struct store_terms *terms, uint64_t *number), q,
        claim, terms, number)
PATIENT(claim_release, (WHERE, struct bytes claim, enum store_release why), q, claim, why)
PATIENT(claim_finish, (WHERE, struct store_finish *finish), q, finish)
PATIENT(redrive, (WHERE, struct store_redrive *which, struct store_redriven *out), q,
        which, out)
PATIENT(subscription_create,
        (WHERE, const struct store_subscription_draft *draft,
         struct store_subscribed *out),
        q, draft, out)
PATIENT(subscription_get, (WHERE, struct bytes id, struct store_subscriptions *out), q,
        id, out)
PATIENT(subscription_list,
        (WHERE, struct bytes marker, size_t limit, struct store_subscriptions *out), q,
        marker, limit, out)
PATIENT(subscription_update,
        (WHERE, struct bytes id, const struct store_subscription_draft *draft), q, id,
        draft)
PATIENT(subscription_delete, (WHERE, struct bytes id), q, id)
PATIENT(subscription_confirm, (WHERE, struct bytes id, bool confirmed), q, id, confirmed)
PATIENT(delivery_next,
        (struct store * s, struct store_op *op, struct store_delivery *out), out)
PATIENT(totals, (struct store * s, struct store_op *op, struct store_totals *out), out)
PATIENT(metrics, (struct store * s, struct store_op *op, struct store_metrics *out), out)
PATIENT(queue_metrics,
        (struct store * s, struct store_op *op, size_t *at,
         struct store_queue_metrics *out),
        at, out)
PATIENT(queue_survey,
        (struct store * s, struct store_op *op, struct store_survey *survey), survey)

/* A leased delivery goes back to the store that leased it: `delivery->store`. */
static void
patient_delivery_done(struct store *s, struct store_op *op,
                      struct store_delivery *delivery, enum store_outcome outcome,
                      int64_t again_ms)
{
    store_delivery_done(patient_inside(s), op, delivery, outcome, again_ms);
}

static void
patient_delivery_watch(struct store *s, struct store_listener *listener)
{
    store_delivery_watch(patient_inside(s), listener);
}

static void
patient_waiter_leave(struct store *s, struct store_waiter *waiter)
{
    store_waiter_leave(patient_inside(s), waiter);
}

static enum status
patient_ping(struct store *s, struct store_op *op)
{
    return store_ping(patient_inside(s), op);
}

static void
patient_housekeep(struct store *s, int64_t now_ms, int64_t *next_ms)
{
    store_housekeep(patient_inside(s), now_ms, next_ms);
}

static int64_t
patient_next_ms(struct store *s)
{
    return store_next_ms(patient_inside(s));
}

static bool
patient_audit(struct store *s)
{
    return store_audit(patient_inside(s));
}

static void
patient_close(struct store *s)
{
    store_close(patient_inside(s));
    free(s);
}

/* Batches and queues are released by the store that made them. */
/* The store that read records releases them. */
static const struct store_state_vtable patient_state_ops = {.read = patient_read,
                                                            .apply = patient_apply};

static const struct store_vtable patient_ops = {
    .queue_create = patient_queue_create,
    .queue_get = patient_queue_get,
    .queue_update = patient_queue_update,
    .queue_delete = patient_queue_delete,
    .queue_list = patient_queue_list,
    .project_list = patient_project_list,
    .queue_stats = patient_queue_stats,
    .queue_purge = patient_queue_purge,
    .message_post = patient_message_post,
    .message_list = patient_message_list,
    .message_get = patient_message_get,
    .message_delete = patient_message_delete,
    .message_pop = patient_message_pop,
    .claim_create = patient_claim_create,
    .claim_get = patient_claim_get,
    .claim_list = patient_claim_list,
    .claim_renew = patient_claim_renew,
    .claim_release = patient_claim_release,
    .claim_finish = patient_claim_finish,
    .redrive = patient_redrive,
    .subscription_create = patient_subscription_create,
    .subscription_get = patient_subscription_get,
    .subscription_list = patient_subscription_list,
    .subscription_update = patient_subscription_update,
    .subscription_delete = patient_subscription_delete,
    .subscription_confirm = patient_subscription_confirm,
    .delivery_next = patient_delivery_next,
    .delivery_done = patient_delivery_done,
    .delivery_watch = patient_delivery_watch,
    .waiter_leave = patient_waiter_leave,
    .ping = patient_ping,
    .totals = patient_totals,
    .metrics = patient_metrics,
    .queue_metrics = patient_queue_metrics,
    .queue_survey = patient_queue_survey,
    .housekeep = patient_housekeep,
    .next_ms = patient_next_ms,
    .audit = patient_audit,
    .close = patient_close,
};

struct store *
patient_open(struct store *hasty)
{
    struct patient *p = calloc(1, sizeof(*p));

    if (p == NULL)
        abort();
    p->store.vtable = &patient_ops;
    p->store.state = &patient_state_ops;
    p->hasty = hasty;
    return &p->store;
}
