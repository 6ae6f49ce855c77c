/* Subscriptions of a pair, and what both lease of them. */
#include "model/pair_private.h"
#include "model/twin.h"

#include <inttypes.h>

bool
pair_subscribe(struct pair *p, const struct store_queue *queue,
               const struct store_subscription_draft *draft, struct id_pair *id)
{
    struct store_subscribed twin, engine;

    pair_note(p, queue, "subscribe %.*s ttl %" PRId64, (int)draft->subscriber.len,
              draft->subscriber.data, draft->ttl_s);
    (void)pair_agree_status(
        p, store_subscription_create(p->twin, STORE_AT(p->now_ms), queue, draft, &twin),
        store_subscription_create(p->engine, STORE_AT(p->now_ms), queue, draft, &engine));
    pair_agree(p, "created", twin.created, engine.created);
    pair_agree(p, "confirmed", twin.confirmed, engine.confirmed);
    *id = (struct id_pair){twin.id, engine.id};
    if (twin.created)
        pair_learn(p, id);
    else
        pair_agree_id(p, "subscription", &twin.id, &engine.id);
    return twin.created;
}

/* How many messages a subscription has had in front of it: which of those that have
 * expired it has been found to have lost may differ. */
static int64_t
fed(const struct store_progress *progress)
{
    return (int64_t)(progress->delivered + progress->permanent_failures +
                     progress->dropped + progress->behind);
}

static void
agree_view(const struct pair *p, const struct store_subscription *twin,
           const struct store_subscription *engine)
{
    pair_agree_id(p, "subscription", &twin->id, &engine->id);
    pair_agree_bytes(p, "subscriber", twin->subscriber, engine->subscriber);
    pair_agree_bytes(p, "options", twin->options, engine->options);
    pair_agree(p, "ttl of a subscription", twin->ttl_s, engine->ttl_s);
    pair_agree(p, "age of a subscription", twin->age_s, engine->age_s);
    pair_agree(p, "confirmed", twin->confirmed, engine->confirmed);
    pair_agree(p, "delivered", (int64_t)twin->progress.delivered,
               (int64_t)engine->progress.delivered);
    pair_agree(p, "permanent failures", (int64_t)twin->progress.permanent_failures,
               (int64_t)engine->progress.permanent_failures);
    pair_agree(p, "fed", fed(&twin->progress), fed(&engine->progress));
    pair_agree(p, "failures", (int64_t)twin->progress.failures,
               (int64_t)engine->progress.failures);
    pair_agree(p, "leased", twin->progress.leased, engine->progress.leased);
}

void
pair_see_subscription(struct pair *p, const struct store_queue *queue,
                      const struct id_pair *id)
{
    struct store_subscriptions twin = STORE_SUBSCRIPTIONS_INIT,
                               engine = STORE_SUBSCRIPTIONS_INIT;
    enum status st;

    pair_note(p, queue, "subscription %s/%s", id->left.text, id->right.text);
    st = pair_agree_status(p,
                           store_subscription_get(p->twin, STORE_AT(p->now_ms), queue,
                                                  store_id_bytes(&id->left), &twin),
                           store_subscription_get(p->engine, STORE_AT(p->now_ms), queue,
                                                  store_id_bytes(&id->right), &engine));
    if (st == ST_OK)
        agree_view(p, &twin.views[0], &engine.views[0]);
    store_subscriptions_release(&twin);
    store_subscriptions_release(&engine);
}

void
pair_list_subscriptions(struct pair *p, const struct store_queue *queue, size_t limit)
{
    struct store_subscriptions twin, engine;
    struct id_pair marker = {{""}, {""}};
    size_t count;

    pair_note(p, queue, "list subscriptions, %zu a page", limit);
    do {
        (void)pair_agree_status(
            p,
            store_subscription_list(p->twin, STORE_AT(p->now_ms), queue,
                                    store_id_bytes(&marker.left), limit, &twin),
            store_subscription_list(p->engine, STORE_AT(p->now_ms), queue,
                                    store_id_bytes(&marker.right), limit, &engine));
        count = twin.count;
        pair_agree(p, "subscriptions", (int64_t)count, (int64_t)engine.count);
        for (size_t i = 0; i < count; i++)
            agree_view(p, &twin.views[i], &engine.views[i]);
        marker = (struct id_pair){twin.next, engine.next};
        store_subscriptions_release(&twin);
        store_subscriptions_release(&engine);
    } while (count > 0);
}

void
pair_change_subscription(struct pair *p, const struct store_queue *queue,
                         const struct id_pair *id,
                         const struct store_subscription_draft *draft)
{
    pair_note(p, queue, "change %s/%s to %.*s ttl %" PRId64, id->left.text,
              id->right.text, (int)draft->subscriber.len, draft->subscriber.data,
              draft->ttl_s);
    (void)pair_agree_status(p,
                            store_subscription_update(p->twin, STORE_AT(p->now_ms), queue,
                                                      store_id_bytes(&id->left), draft),
                            store_subscription_update(p->engine, STORE_AT(p->now_ms),
                                                      queue, store_id_bytes(&id->right),
                                                      draft));
}

void
pair_confirm(struct pair *p, const struct store_queue *queue, const struct id_pair *id,
             bool confirmed)
{
    pair_note(p, queue, "confirm %s/%s: %d", id->left.text, id->right.text, confirmed);
    (void)pair_agree_status(
        p,
        store_subscription_confirm(p->twin, STORE_AT(p->now_ms), queue,
                                   store_id_bytes(&id->left), confirmed),
        store_subscription_confirm(p->engine, STORE_AT(p->now_ms), queue,
                                   store_id_bytes(&id->right), confirmed));
}

void
pair_unsubscribe(struct pair *p, const struct store_queue *queue,
                 const struct id_pair *id)
{
    pair_note(p, queue, "unsubscribe %s/%s", id->left.text, id->right.text);
    (void)pair_agree_status(p,
                            store_subscription_delete(p->twin, STORE_AT(p->now_ms), queue,
                                                      store_id_bytes(&id->left)),
                            store_subscription_delete(p->engine, STORE_AT(p->now_ms),
                                                      queue, store_id_bytes(&id->right)));
}

/* ---------------------------------------------------------------------- delivery */

static void
agree_leased(const struct pair *p, const struct store_delivery *twin,
             const struct store_delivery *engine)
{
    pair_agree(p, "notice", twin->notice, engine->notice);
    pair_agree_bytes(p, "subscriber", twin->subscriber, engine->subscriber);
    pair_agree_bytes(p, "options", twin->options, engine->options);
    pair_agree_bytes(p, "metadata", twin->metadata, engine->metadata);
    pair_agree_bytes(p, "body", twin->body, engine->body);
    pair_agree(p, "ttl", twin->ttl_s, engine->ttl_s);
    pair_agree(p, "delay", twin->delay_s, engine->delay_s);
    pair_agree(p, "failed", twin->failed, engine->failed);
    pair_agree(p, "end of the subscription", twin->expires_ms, engine->expires_ms);
}

bool
pair_lease_next(struct pair *p)
{
    struct pair_lease *leased = &p->leased[p->leased_count];
    const struct store_id *id;
    enum status st;

    if (p->leased_count == PAIR_LEASES)
        return false;
    while (pair_housekeep(p) <= p->now_ms)
        continue;
    pair_note(p, NULL, "lend");
    st = store_delivery_next(p->engine, STORE_AT(p->now_ms), &leased->engine);
    if (st == ST_NOT_FOUND) {
        pair_agree(p, "something is due", twin_has_due(p->twin, p->now_ms), false);
        return false;
    }
    pair_agree_status(p, ST_OK, st);
    id = idmap_left(&p->ids, &leased->engine.subscription);
    if (id == NULL || !twin_lease(p->twin, &leased->engine.queue, store_id_bytes(id),
                                  p->now_ms, &leased->twin))
        pair_fail(p, "the engine leases what is not due");
    agree_leased(p, &leased->twin, &leased->engine);
    p->leased_count++;
    return true;
}

void
pair_give(struct pair *p, size_t i, enum store_outcome outcome, int64_t again_ms)
{
    struct pair_lease leased = p->leased[i];

    pair_note(p, &leased.engine.queue, "give back %s: %d",
              leased.engine.subscription.text, (int)outcome);
    p->leased[i] = p->leased[--p->leased_count];
    store_delivery_done(p->twin, STORE_AT(p->now_ms), &leased.twin, outcome, again_ms);
    store_delivery_done(p->engine, STORE_AT(p->now_ms), &leased.engine, outcome,
                        again_ms);
}
