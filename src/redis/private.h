/*
 * private: the store on Redis, as its operations see it.
 */
#ifndef REDIS_PRIVATE_H
#define REDIS_PRIVATE_H

#include "claimd/base/clock.h"
#include "claimd/base/entropy.h"
#include "claimd/redis/redis.h"
#include "redis/census.h"
#include "redis/cluster.h"
#include "redis/delivery.h"
#include "redis/done.h"
#include "redis/keeper.h"
#include "redis/script.h"
#include "redis/url.h"
#include "redis/waiting.h"

struct redis_store {
    struct store store;
    struct redis_config config; /* borrowed, but for `url` */
    struct url url;
    struct hiredis_library library;
    struct cluster cluster;
    _Atomic int64_t
        told_ns;      /* when it was said why Redis could not do something; 0: never */
    struct lock lock; /* of the entropy */
    struct entropy entropy;
    struct waiting waiting;
    struct delivery delivery;
    struct census census;
    struct done done;
    struct keeper *keeper; /* owned; NULL: there is none (tests) */
};

static inline struct redis_store *
redis_of(struct store *s)
{
    return container_of(s, struct redis_store, store);
}

/* What is measured here with: real time (ms of the stopwatch), but for tests: the visit's. */
static inline int64_t
redis_clock_ms(const struct redis_store *s, int64_t visit_ms)
{
    return s->config.test_clock ? visit_ms : clock_stopwatch_ns() / 1000000;
}

/* Eight hexadecimal digits, the first a letter: the tag of a new queue. Likewise twelve: what a claim
 * is known by. ST_UNAVAILABLE: no entropy. */
enum { TAG_DIGITS = 8, SECRET_DIGITS = 12 };
enum status redis_digits(struct redis_store *s, char *out, size_t count);

/* Has the text logged, once a second at most. */
void redis_warn(void *store, const char *text);

store_queue_create_fn redis_queue_create;
store_queue_get_fn redis_queue_get;
store_queue_update_fn redis_queue_update;
store_queue_delete_fn redis_queue_delete;
store_queue_list_fn redis_queue_list;
store_project_list_fn redis_project_list;
store_queue_stats_fn redis_queue_stats;
store_queue_purge_fn redis_queue_purge;
store_queues_release_fn redis_queues_release;
store_queue_image_fn redis_queue_image;
store_queue_load_fn redis_queue_load;
store_image_release_fn redis_image_release;
store_message_post_fn redis_message_post;
store_message_list_fn redis_message_list;
store_message_get_fn redis_message_get;
store_message_delete_fn redis_message_delete;
store_message_pop_fn redis_message_pop;
store_claim_create_fn redis_claim_create;
store_claim_get_fn redis_claim_get;
store_claim_renew_fn redis_claim_renew;
store_claim_release_fn redis_claim_release;
store_subscription_create_fn redis_subscription_create;
store_subscription_get_fn redis_subscription_get;
store_subscription_list_fn redis_subscription_list;
store_subscription_update_fn redis_subscription_update;
store_subscription_delete_fn redis_subscription_delete;
store_subscription_confirm_fn redis_subscription_confirm;
store_subscriptions_release_fn redis_subscriptions_release;
store_delivery_next_fn redis_delivery_next;
store_delivery_done_fn redis_delivery_done;
store_delivery_watch_fn redis_delivery_watch;
store_totals_fn redis_totals;
store_figures_fn redis_figures;
store_queue_figures_fn redis_queue_figures;
store_audit_fn redis_audit;
store_batch_release_fn redis_batch_release;
store_waiter_leave_fn redis_waiter_leave;

#endif
