#include "claimd/store/store.h"

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

void
store_records_release(struct store_records *records)
{
    struct store_records left = {.more = records->more};

    memcpy(left.resume, records->resume, sizeof(left.resume));
    if (records->store != NULL)
        records->store->state->release(records->store, records);
    *records = left;
}
