/* Clocks of front ends that are minutes apart change nothing: the time is that of
 * Redis. */
#include "support/check_main.h"
#include "support/redis_server.h"

#include "claimd/base/clock.h"
#include "claimd/redis/redis.h"

enum { APART_MS = 600000, FRONTS = 2 };

static struct redis_server server;
static struct mem *mem;
static struct store *fronts[FRONTS]; /* the second one is ten minutes ahead */
static const struct store_queue queue = {
    .project = BYTES_LIT("p"), .name = BYTES_LIT("q"), .kind = STORE_QUEUE};

static void
open_fronts(void)
{
    struct redis_config config = {
        .message_ttl_s = 3600, .max_message_ttl_s = 1209600, .threads = 1};
    struct reason why;

    redis_server_start(&server);
    mem = mem_new(0);
    ck_assert_ptr_nonnull(mem);
    config.mem = mem;
    config.url = server.url;
    for (int i = 0; i < FRONTS; i++)
        ck_assert_msg(redis_open(&config, &fronts[i], &why) == ST_OK, "%s", why.text);
}

static void
close_fronts(void)
{
    for (int i = 0; i < FRONTS; i++)
        store_close(fronts[i]);
    ck_assert_uint_eq(mem_used(mem), 0);
    mem_destroy(mem);
    redis_server_stop(&server);
}

/* The time as front i has it. */
static int64_t
now_ms(int i)
{
    struct clock clock;

    clock_init_system(&clock);
    return clock_now_ms(&clock) + (i == 0 ? 0 : APART_MS);
}

static void
post(int front, int64_t ttl_s, int64_t delay_s)
{
    const struct store_draft draft = {bytes_str("1"), ttl_s, delay_s};
    const struct store_post request = {
        .drafts = &draft, .count = 1, .create_queue = true};
    struct store_id id;

    ck_assert_int_eq(
        store_message_post(fronts[front], STORE_AT(now_ms(front)), &queue, &request, &id),
        ST_OK);
}

/* How many messages a front claims, for a minute. */
static size_t
claim(int front)
{
    const struct store_terms terms = {60, 60};
    struct store_batch batch = STORE_BATCH_INIT;
    size_t count;

    ck_assert_int_eq(store_claim_create(fronts[front], STORE_AT(now_ms(front)), &queue,
                                        &terms, 10, &batch),
                     ST_OK);
    count = batch.count;
    store_batch_release(&batch);
    return count;
}

TEST_CASE("clocks", .setup = open_fronts, .teardown = close_fronts);

LOOP_TEST(lives_delays_and_claims_are_as_long_at_each, FRONTS)
{
    const int other = 1 - _i;
    struct store_stats stats;

    post(_i, 60, 0);    /* it would be over at the one that is ahead, */
    post(_i, 301, 300); /* and this delay, too */
    for (int i = 0; i < FRONTS; i++) {
        ck_assert_int_eq(
            store_queue_stats(fronts[i], STORE_AT(now_ms(i)), &queue, &stats), ST_OK);
        ck_assert_uint_eq(stats.total, 2);
        ck_assert_int_lt(stats.oldest.age_s, 5);
    }
    ck_assert_uint_eq(claim(_i), 1);
    ck_assert_uint_eq(claim(other), 0); /* it is held, at the other one too */
    ck_assert_uint_eq(claim(_i), 0);
}

LOOP_TEST(a_failed_delivery_backs_off_equally_on_each_node, FRONTS)
{
    const struct store_subscription_draft draft = {bytes_str("http://a"), bytes_str("{}"),
                                                   600};
    struct store_subscriptions seen = STORE_SUBSCRIPTIONS_INIT;
    struct store_delivery delivery = {.store = NULL};
    struct store_op op = {.now_ms = now_ms(_i)};
    struct store_subscribed made;

    ck_assert_int_eq(store_subscription_create(fronts[_i], &op, &queue, &draft, &made),
                     ST_OK);
    post(1 - _i, 60, 0);
    while (store_delivery_next(fronts[_i], &op, &delivery) != ST_OK)
        op.now_ms = now_ms(_i);
    ck_assert_int_gt(delivery.expires_ms, op.now_ms + 590000);
    ck_assert_int_lt(delivery.expires_ms, op.now_ms + 601000);
    store_delivery_done(fronts[_i], &op, &delivery, STORE_OUTCOME_FAILED,
                        op.now_ms + 100000);
    for (int i = 0; i < FRONTS; i++) {
        const int64_t here_ms = now_ms(i);

        ck_assert_int_eq(store_subscription_get(fronts[i], STORE_AT(here_ms), &queue,
                                                store_id_bytes(&made.id), &seen),
                         ST_OK);
        ck_assert_int_gt(seen.views[0].progress.next_try_ms, here_ms + 90000);
        ck_assert_int_lt(seen.views[0].progress.next_try_ms, here_ms + 101000);
        store_subscriptions_release(&seen);
    }
}
