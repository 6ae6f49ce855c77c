/* The store's operations on subscriptions. */
#include "redis/delivery.h"
#include "redis/names.h"
#include "redis/show_subscription.h"

/* ---------------------------------------------------------------------- create */

enum status
redis_subscription_create(struct store *store, struct store_visit *visit,
                          const struct store_queue *where,
                          const struct store_subscription_draft *draft,
                          struct store_subscribed *out)
{
    enum { TAG = 1, UNLISTED, ID, CREATED, CONFIRMED };
    struct redis_store *s = redis_of(store);
    char tag[TAG_DIGITS], secret[SECRET_DIGITS];
    struct call c;
    enum status st = redis_digits(s, tag, sizeof(tag));

    if (st == ST_OK)
        st = redis_digits(s, secret, sizeof(secret));
    if (st != ST_OK)
        return st;
    call_begin(&c, s, visit, where);
    call_word(&c, bytes_of(tag, sizeof(tag)));
    call_number(&c, s->config.require_confirmation);
    call_word(&c, bytes_of(secret, sizeof(secret)));
    call_word(&c, draft->subscriber);
    call_word(&c, draft->options);
    call_number(&c, draft->ttl_s);
    st = call_run(&c, SCRIPT_subscription_create, CALL_CHANGES);
    if (st == ST_OK) {
        *out = (struct store_subscribed){.created = call_integer(&c, CREATED) != 0,
                                         .confirmed = call_integer(&c, CONFIRMED) != 0};
        show_subscription_id(call_item(&c, ID), &out->id);
        delivery_is_due(s, visit, where, 0);
        if (call_integer(&c, UNLISTED) != 0)
            st = names_enter(s, visit, where, call_item(&c, TAG));
    }
    call_end(&c);
    return st;
}

/* ---------------------------------------------------------------------- read */

enum status
redis_subscription_get(struct store *store, struct store_visit *visit,
                       const struct store_queue *where, struct bytes id,
                       struct store_subscriptions *out)
{
    struct call c;
    enum status st;

    call_begin(&c, redis_of(store), visit, where);
    call_id(&c, id);
    st = call_run(&c, SCRIPT_subscription_get, CALL_LOOKS);
    if (st == ST_OK)
        st = show_subscriptions(&c, visit, out);
    call_end(&c);
    return st;
}

enum status
redis_subscription_list(struct store *store, struct store_visit *visit,
                        const struct store_queue *where, struct bytes marker,
                        size_t limit, struct store_subscriptions *out)
{
    struct call c;
    enum status st;

    call_begin(&c, redis_of(store), visit, where);
    call_marker(&c, marker);
    call_limit(&c, limit);
    call_text(&c, "");
    st = call_run(&c, SCRIPT_subscription_list, CALL_LOOKS);
    if (st == ST_OK)
        st = show_subscriptions(&c, visit, out);
    call_end(&c);
    return st;
}

/* ---------------------------------------------------------------------- change */

/* Runs what changes one that is there; something may be due then. */
static enum status
run_change(struct call *c, enum script script, const struct store_visit *visit,
           const struct store_queue *where)
{
    struct redis_store *s = c->store;
    int64_t when_ms = -1;
    enum status st = call_run(c, script, CALL_CHANGES);

    if (st == ST_OK)
        when_ms = call_integer(c, 1);
    call_end(c);
    delivery_is_due(s, visit, where, when_ms);
    return st;
}

enum status
redis_subscription_update(struct store *store, struct store_visit *visit,
                          const struct store_queue *where, struct bytes id,
                          const struct store_subscription_draft *draft)
{
    struct redis_store *s = redis_of(store);
    struct call c;

    call_begin(&c, s, visit, where);
    call_id(&c, id);
    call_number(&c, s->config.require_confirmation);
    call_number(&c, bytes_present(draft->subscriber));
    call_word(&c, draft->subscriber);
    call_number(&c, bytes_present(draft->options));
    call_word(&c, draft->options);
    call_number(&c, draft->ttl_s);
    return run_change(&c, SCRIPT_subscription_update, visit, where);
}

enum status
redis_subscription_confirm(struct store *store, struct store_visit *visit,
                           const struct store_queue *where, struct bytes id,
                           bool confirmed)
{
    struct redis_store *s = redis_of(store);
    struct call c;

    call_begin(&c, s, visit, where);
    call_id(&c, id);
    call_number(&c, s->config.require_confirmation);
    call_number(&c, confirmed);
    return run_change(&c, SCRIPT_subscription_confirm, visit, where);
}

enum status
redis_subscription_delete(struct store *store, struct store_visit *visit,
                          const struct store_queue *where, struct bytes id)
{
    struct call c;
    enum status st;

    call_begin(&c, redis_of(store), visit, where);
    call_id(&c, id);
    st = call_run(&c, SCRIPT_subscription_delete, CALL_CHANGES);
    call_end(&c);
    return st;
}
