#include "engine/engine_private.h"
enum status
engine_subscription_create(struct store *s, struct store_visit *v,
                           const struct store_queue *q,
                           const struct store_subscription_draft *d,
                           struct store_subscribed *o)
{
    (void)s, (void)v, (void)q, (void)d, (void)o;
    return ST_UNAVAILABLE;
}
enum status
engine_subscription_get(struct store *s, struct store_visit *v,
                        const struct store_queue *q, struct bytes i,
                        struct store_subscriptions *o)
{
    (void)s, (void)v, (void)q, (void)i, (void)o;
    return ST_UNAVAILABLE;
}
enum status
engine_subscription_list(struct store *s, struct store_visit *v,
                         const struct store_queue *q, struct bytes i, size_t l,
                         struct store_subscriptions *o)
{
    (void)s, (void)v, (void)q, (void)i, (void)o, (void)l;
    return ST_UNAVAILABLE;
}
enum status
engine_subscription_update(struct store *s, struct store_visit *v,
                           const struct store_queue *q, struct bytes i,
                           const struct store_subscription_draft *d)
{
    (void)s, (void)v, (void)q, (void)d, (void)i;
    return ST_UNAVAILABLE;
}
enum status
engine_subscription_delete(struct store *s, struct store_visit *v,
                           const struct store_queue *q, struct bytes i)
{
    (void)s, (void)v, (void)q, (void)i;
    return ST_UNAVAILABLE;
}
enum status
engine_subscription_confirm(struct store *s, struct store_visit *v,
                            const struct store_queue *q, struct bytes i, bool c)
{
    (void)s, (void)v, (void)q, (void)c, (void)i;
    return ST_UNAVAILABLE;
}
enum status
engine_delivery_next(struct store *s, struct store_visit *v, struct store_delivery *o)
{
    (void)s, (void)v, (void)o;
    return ST_NOT_FOUND;
}
void
engine_delivery_done(struct store *s, struct store_visit *v, struct store_delivery *d,
                     enum store_outcome o, int64_t a)
{
    (void)s, (void)v, (void)d, (void)o, (void)a;
}
void
engine_delivery_watch(struct store *s, struct store_watcher *w)
{
    (void)s, (void)w;
}
void
engine_subscriptions_release(const struct store *s, struct store_subscriptions *x)
{
    (void)s, (void)x;
}
