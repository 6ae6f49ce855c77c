#include "redis/subscription_ops.h"
#include "claimd/base/invariant.h"
#include "redis/delivery_ops.h"
#include "redis/due.h"

#include <stdio.h>

/* ---------------------------------------------------------------------- views */

/* The memory of views, and the response that they point into. */
struct shown_subscriptions {
    redisReply *response;
    struct store_subscription views[];
};

size_t
subscription_response_count(const struct call *c)
{
    return (call_count(c) - SUB_FIRST) / SUB_WORDS;
}

static void
subscription_view_fill(const struct call *c, size_t at, const struct store_op *op,
                       struct store_subscription *out)
{
    const int64_t again_ms = call_integer(c, at + SUB_RETRY_AT);

    *out = (struct store_subscription){
        .subscriber = call_item(c, at + SUB_SUBSCRIBER),
        .options = call_item(c, at + SUB_OPTIONS),
        .ttl_s = call_integer(c, at + SUB_TTL),
        .age_s = (call_integer(c, SUB_NOW) - call_integer(c, at + SUB_STARTED)) / 1000,
        .confirmed = call_integer(c, at + SUB_CONFIRMED) != 0,
        .progress = {
            .delivered = (uint64_t)call_integer(c, at + SUB_DELIVERED),
            .permanent_failures = (uint64_t)call_integer(c, at + SUB_PERMANENT_FAILURES),
            .dropped = (uint64_t)call_integer(c, at + SUB_DROPPED),
            .behind = (uint64_t)call_integer(c, at + SUB_BEHIND),
            .failures = (uint64_t)call_integer(c, at + SUB_FAILURES),
            .failed = (uint32_t)call_integer(c, at + SUB_FAILED),
            .leased = call_integer(c, at + SUB_LEASED) != 0,
            /* Converts a time of Redis to the clock of this process. 0: none. */
            .next_try_ms =
                again_ms == 0 ? 0 : again_ms - call_integer(c, SUB_NOW) + op->now_ms}};
    call_copy_id(call_item(c, at + SUB_ID), &out->id);
}

/* Makes views of the response, which they own then, and the marker after the last one.
 * ST_NO_MEMORY. */
static enum status
subscriptions_fill(struct call *c, const struct store_op *op,
                   struct store_subscriptions *out)
{
    const size_t count = subscription_response_count(c);
    struct shown_subscriptions *shown;

    *out = STORE_SUBSCRIPTIONS_INIT;
    if (count == 0)
        return ST_OK;
    shown =
        mem_alloc(c->store->config.mem, sizeof(*shown) + count * sizeof(shown->views[0]));
    if (shown == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        subscription_view_fill(c, SUB_FIRST + i * SUB_WORDS, op, &shown->views[i]);
    (void)snprintf(out->next.text, sizeof(out->next.text), "%lld",
                   (long long)call_integer(c, SUB_FIRST + (count - 1) * SUB_WORDS));
    out->store = &c->store->store;
    out->views = shown->views;
    out->count = count;
    shown->response = call_take_response(c);
    return ST_OK;
}

void
redis_subscriptions_release(const struct store *store,
                            struct store_subscriptions *subscriptions)
{
    struct redis_store *s = redis_of((struct store *)(uintptr_t)store);
    struct shown_subscriptions *shown =
        container_of(subscriptions->views, struct shown_subscriptions, views[0]);

    wire_free_response(&s->cluster.wire, shown->response);
    mem_free(s->config.mem, shown);
}

enum status
redis_subscription_create(struct store *store, struct store_op *op,
                          const struct store_queue *where,
                          const struct store_subscription_draft *draft,
                          struct store_subscribed *out)
{
    enum { TAG = 1, UNLISTED, ID, CREATED, CONFIRMED };
    struct redis_store *s = redis_of(store);
    struct call c = call_begin(s, op, where);
    enum status st;

    call_random_digits(&c, TAG_DIGITS);
    call_number(&c, s->config.require_confirmation);
    call_random_digits(&c, SECRET_DIGITS);
    call_word(&c, draft->subscriber);
    call_word(&c, draft->options);
    call_number(&c, draft->ttl_s);
    st = call_run(&c, SCRIPT_subscription_create, CALL_CHANGE);
    if (st == ST_OK) {
        *out = (struct store_subscribed){.created = call_integer(&c, CREATED) != 0,
                                         .confirmed = call_integer(&c, CONFIRMED) != 0};
        call_copy_id(call_item(&c, ID), &out->id);
        delivery_mark_due(s, op, where, 0);
        if (call_integer(&c, UNLISTED) != 0)
            st = queue_index_add(s, op, where, call_item(&c, TAG));
    }
    call_end(&c);
    return st;
}

enum status
redis_subscription_get(struct store *store, struct store_op *op,
                       const struct store_queue *where, struct bytes id,
                       struct store_subscriptions *out)
{
    struct call c = call_begin(redis_of(store), op, where);
    enum status st;

    call_id(&c, id);
    st = call_run(&c, SCRIPT_subscription_get, CALL_READ);
    if (st == ST_OK)
        st = subscriptions_fill(&c, op, out);
    call_end(&c);
    return st;
}

enum status
redis_subscription_list(struct store *store, struct store_op *op,
                        const struct store_queue *where, struct bytes marker,
                        size_t limit, struct store_subscriptions *out)
{
    struct call c = call_begin(redis_of(store), op, where);
    enum status st;

    call_marker(&c, marker);
    call_limit(&c, limit);
    call_text(&c, "");
    st = call_run(&c, SCRIPT_subscription_list, CALL_READ);
    if (st == ST_OK)
        st = subscriptions_fill(&c, op, out);
    call_end(&c);
    return st;
}

/* ---------------------------------------------------------------------- changes */

/* Runs and ends a change of an existing subscription. A delivery may be due then. */
static enum status
subscription_change(struct call *c, enum script script, const struct store_op *op,
                    const struct store_queue *where)
{
    struct redis_store *s = c->store;
    int64_t when_ms = -1;
    enum status st = call_run(c, script, CALL_CHANGE);

    if (st == ST_OK)
        when_ms = call_integer(c, 1);
    call_end(c);
    delivery_mark_due(s, op, where, when_ms);
    return st;
}

enum status
redis_subscription_update(struct store *store, struct store_op *op,
                          const struct store_queue *where, struct bytes id,
                          const struct store_subscription_draft *draft)
{
    struct redis_store *s = redis_of(store);
    struct call c = call_begin(s, op, where);

    call_id(&c, id);
    call_number(&c, s->config.require_confirmation);
    call_number(&c, bytes_present(draft->subscriber));
    call_word(&c, draft->subscriber);
    call_number(&c, bytes_present(draft->options));
    call_word(&c, draft->options);
    call_number(&c, draft->ttl_s);
    return subscription_change(&c, SCRIPT_subscription_update, op, where);
}

enum status
redis_subscription_confirm(struct store *store, struct store_op *op,
                           const struct store_queue *where, struct bytes id,
                           bool confirmed)
{
    struct redis_store *s = redis_of(store);
    struct call c = call_begin(s, op, where);

    call_id(&c, id);
    call_number(&c, s->config.require_confirmation);
    call_number(&c, confirmed);
    return subscription_change(&c, SCRIPT_subscription_confirm, op, where);
}

enum status
redis_subscription_delete(struct store *store, struct store_op *op,
                          const struct store_queue *where, struct bytes id)
{
    struct call c = call_begin(redis_of(store), op, where);

    call_id(&c, id);
    return call_finish(&c, SCRIPT_subscription_delete, CALL_CHANGE);
}
