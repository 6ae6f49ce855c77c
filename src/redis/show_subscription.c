#include "redis/show_subscription.h"

#include <stdio.h>

/* What views of ours hold. */
struct shown_subscriptions {
    redisReply *answer;
    struct store_subscription views[];
};

size_t
show_subscription_count(const struct call *c)
{
    return (call_count(c) - SHOWN_FIRST) / SHOWN_WORDS;
}

void
show_subscription_id(struct bytes text, struct store_id *out)
{
    (void)snprintf(out->text, sizeof(out->text), "%.*s", (int)text.len,
                   text.len == 0 ? "" : text.data);
}

/* A time of Redis, as ours is just now; 0: none. */
static int64_t
here_ms(const struct call *c, const struct store_visit *visit, int64_t ms)
{
    return ms == 0 ? 0 : ms - call_integer(c, SHOWN_NOW) + visit->now_ms;
}

static void
show(const struct call *c, size_t at, const struct store_visit *visit,
     struct store_subscription *out)
{
    *out = (struct store_subscription){
        .subscriber = call_item(c, at + SHOWN_SUBSCRIBER),
        .options = call_item(c, at + SHOWN_OPTIONS),
        .ttl_s = call_integer(c, at + SHOWN_TTL),
        .age_s =
            (call_integer(c, SHOWN_NOW) - call_integer(c, at + SHOWN_STARTED)) / 1000,
        .confirmed = call_integer(c, at + SHOWN_CONFIRMED) != 0,
        .progress = {.delivered = (uint64_t)call_integer(c, at + SHOWN_DELIVERED),
                     .given_up = (uint64_t)call_integer(c, at + SHOWN_GIVEN_UP),
                     .fallen_out = (uint64_t)call_integer(c, at + SHOWN_FALLEN_OUT),
                     .behind = (uint64_t)call_integer(c, at + SHOWN_BEHIND),
                     .failures = (uint64_t)call_integer(c, at + SHOWN_FAILURES),
                     .failed = (uint32_t)call_integer(c, at + SHOWN_FAILED),
                     .lent = call_integer(c, at + SHOWN_LENT) != 0,
                     .next_try_ms =
                         here_ms(c, visit, call_integer(c, at + SHOWN_AGAIN))}};
    show_subscription_id(call_item(c, at + SHOWN_ID), &out->id);
}

enum status
show_subscriptions(struct call *c, const struct store_visit *visit,
                   struct store_subscriptions *out)
{
    const size_t count = show_subscription_count(c);
    struct shown_subscriptions *shown;

    *out = (struct store_subscriptions)STORE_SUBSCRIPTIONS_INIT;
    if (count == 0)
        return ST_OK;
    shown =
        mem_alloc(c->store->config.mem, sizeof(*shown) + count * sizeof(shown->views[0]));
    if (shown == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        show(c, SHOWN_FIRST + i * SHOWN_WORDS, visit, &shown->views[i]);
    (void)snprintf(out->next.text, sizeof(out->next.text), "%lld",
                   (long long)call_integer(c, SHOWN_FIRST + (count - 1) * SHOWN_WORDS));
    out->store = &c->store->store;
    out->views = shown->views;
    out->count = count;
    shown->answer = call_take_answer(c);
    return ST_OK;
}

void
redis_subscriptions_release(const struct store *store,
                            struct store_subscriptions *subscriptions)
{
    struct redis_store *s = redis_of((struct store *)(uintptr_t)store);
    struct shown_subscriptions *shown =
        container_of(subscriptions->views, struct shown_subscriptions, views[0]);

    redis_answer_free(s, shown->answer);
    mem_free(s->config.mem, shown);
}
