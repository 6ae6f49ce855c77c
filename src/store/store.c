#include "claimd/store/store.h"

void
store_close(struct store *s)
{
    if (s != NULL)
        s->vtable->close(s);
}

void
store_batch_release(struct store_batch *batch)
{
    if (batch->store != NULL)
        batch->store->vtable->batch_release(batch->store, batch);
    *batch = STORE_BATCH_INIT;
}

void
store_queues_release(struct store_queues *queues)
{
    if (queues->store != NULL)
        queues->store->vtable->queues_release(queues->store, queues);
    *queues = STORE_QUEUES_INIT;
}

void
store_subscriptions_release(struct store_subscriptions *subscriptions)
{
    if (subscriptions->store != NULL)
        subscriptions->store->vtable->subscriptions_release(subscriptions->store,
                                                            subscriptions);
    *subscriptions = STORE_SUBSCRIPTIONS_INIT;
}

void
store_records_release(struct store_records *records)
{
    struct store_records left = {.more = records->more};

    memcpy(left.resume, records->resume, sizeof(left.resume));
    if (records->store != NULL)
        records->store->state->records_release(records->store, records);
    *records = left;
}

/* From the reaction of an idle worker to a night. */
#define TIMES_MS                                                                         \
    {                                                                                    \
        14,                                                                              \
        {                                                                                \
            1, 5, 25, 100, 500, 1000, 5000, 15000, 60000, 300000, 900000, 3600000,       \
                14400000, 86400000                                                       \
        }                                                                                \
    }

const struct bucket_bounds store_span_bounds[STORE_SPANS] = {
    [STORE_SPAN_WAITED] = TIMES_MS,
    [STORE_SPAN_WORKED] = TIMES_MS,
    [STORE_SPAN_ATTEMPTS] = {6, {1, 2, 3, 5, 10, 20}},
};
