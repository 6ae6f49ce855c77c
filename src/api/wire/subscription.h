/*
 * subscription: the documents of subscriptions, as they go into answers (docs/api.md 18.1,
 * 18.7).
 *
 *   Cost     O(length of what was given)
 *   Memory   the buffer's
 */
#ifndef API_WIRE_SUBSCRIPTION_H
#define API_WIRE_SUBSCRIPTION_H

#include "claimd/base/buf.h"
#include "claimd/store/store.h"

/* What clients see; source: the name of its queue. */
void subscription_write(struct buf *out, struct bytes source,
                        const struct store_subscription *subscription);

/* What operators see: how far it has come. */
void subscription_write_progress(struct buf *out, int64_t now_ms,
                                 const struct store_subscription *subscription);

#endif
