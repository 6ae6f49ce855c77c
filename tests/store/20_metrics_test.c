/* The metrics of a store (store/metrics.h). */
#include "support/dead_letters.h"
#include "support/subscriptions.h"

#include <stdio.h>

static struct store_metrics
metrics(struct fixture *f)
{
    struct store_metrics out;

    ck_assert_status(store_metrics(f->store, STORE_AT(f->now_ms), &out), ST_OK);
    return out;
}

/* The metrics of the fixture's queue; false: it is not shown. */
static bool
find_queue(struct fixture *f, struct store_queue_metrics *out)
{
    size_t at = 0;

    while (store_queue_metrics(f->store, STORE_AT(f->now_ms), &at, out) == ST_OK)
        if (bytes_equal_str(f->queue.name, out->name) &&
            bytes_equal_str(f->queue.project, out->project))
            return true;
    return false;
}

static struct store_queue_metrics
queue_metrics(struct fixture *f)
{
    struct store_queue_metrics out;

    ck_assert(find_queue(f, &out));
    return out;
}

static uint64_t
count_shown(struct fixture *f)
{
    struct store_queue_metrics out;
    uint64_t count = 0;
    size_t at = 0;

    while (store_queue_metrics(f->store, STORE_AT(f->now_ms), &at, &out) == ST_OK)
        count++;
    return count;
}

/* ------------------------------------------------------------------ population */

STORE_CASE("population");

STORE_TEST(messages_are_counted_by_their_state)
{
    struct store_queue_metrics q;
    struct store_metrics all;

    post(f, 5);
    post_with(f, 300, 60);
    (void)take(f, 2);
    all = metrics(f);
    ck_assert_uint_eq(all.all.ready, 3);
    ck_assert_uint_eq(all.all.claimed, 2);
    ck_assert_uint_eq(all.all.delayed, 1);
    ck_assert_uint_eq(all.all.claims, 1);
    ck_assert_uint_eq(all.all.bytes, 6); /* their numbers */
    wait_s(f, 60);
    q = queue_metrics(f);
    ck_assert_uint_eq(q.here.ready, 4);
    ck_assert_uint_eq(q.here.delayed, 0);
    wait_s(f, 240);
    q = queue_metrics(f);
    ck_assert_uint_eq(q.here.ready, 5); /* the claim is over, and so is a life */
    ck_assert_uint_eq(q.here.claims, 0);
    purge(f);
    q = queue_metrics(f);
    ck_assert_uint_eq(q.here.ready + q.here.claimed + q.here.bytes, 0);
}

STORE_TEST(a_queue_has_the_number_of_its_subscriptions)
{
    struct store_id id;

    post(f, 1);
    ck_assert_uint_eq(queue_metrics(f).subscriptions, 0);
    id = subscribe(f, "http://a", 3600);
    (void)subscribe(f, "http://b", 60);
    ck_assert_uint_eq(queue_metrics(f).subscriptions, 2);
    ck_assert_uint_eq(metrics(f).subscriptions, 2);
    unsubscribe(f, id);
    ck_assert_uint_eq(queue_metrics(f).subscriptions, 1);
}

STORE_TEST(the_age_is_that_of_the_oldest_message_that_can_be_claimed)
{
    struct store_queue_metrics q;
    struct store_id claim;

    make_queue(f, NULL);
    ck_assert(!queue_metrics(f).has_oldest);
    post(f, 1);
    wait_ms(f, 1500);
    post(f, 1);
    wait_ms(f, 10);
    q = queue_metrics(f);
    ck_assert(q.has_oldest);
    ck_assert_int_eq(q.age_ms, 1510);
    claim = take(f, 1);
    ck_assert_int_eq(queue_metrics(f).age_ms, 10);
    release(f, claim);
    ck_assert_int_eq(queue_metrics(f).age_ms, 1510);
    (void)take(f, 2);
    ck_assert(!queue_metrics(f).has_oldest);
}

STORE_TEST(dead_letters_are_counted_where_they_are)
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 3);
    wear_out(f, 3, 1);
    ck_assert(id_empty(take(f, 3)));
    ck_assert_uint_eq(queue_metrics(f).here.dead_letters, 0);
    use(f, "failed");
    ck_assert_uint_eq(queue_metrics(f).here.dead_letters, 3);
    pop(f, 1);
    ck_assert_uint_eq(queue_metrics(f).here.dead_letters, 2);
    ck_assert_uint_eq(metrics(f).all.dead_letters, 2);
}

STORE_TEST(the_age_of_the_oldest_claim_counts_from_its_creation)
{
    struct store_id first, second;

    post(f, 3);
    ck_assert_int_eq(queue_metrics(f).claimed_age_ms, 0);
    first = take_for(f, 1, 100, 60);
    wait_ms(f, 50500);
    second = take_for(f, 1, 100, 60);
    ck_assert_int_eq(queue_metrics(f).claimed_age_ms, 50500);
    ck_assert_status(renew(f, first, 100, 60), ST_OK);
    wait_ms(f, 49500);
    ck_assert_int_eq(queue_metrics(f).claimed_age_ms, 100000);
    ck_assert_status(delete_claimed(f, 1, first), ST_OK);
    ck_assert_int_eq(queue_metrics(f).claimed_age_ms, 49500);
    release(f, second);
    ck_assert_int_eq(queue_metrics(f).claimed_age_ms, 0);
    (void)take_for(f, 1, 60, 60); /* an old message in a new claim */
    wait_s(f, 59);
    ck_assert_int_eq(queue_metrics(f).claimed_age_ms, 59000);
    wait_s(f, 1);
    ck_assert_int_eq(queue_metrics(f).claimed_age_ms, 0);
    (void)take(f, 2);
    wait_s(f, 1);
    purge(f);
    ck_assert_int_eq(queue_metrics(f).claimed_age_ms, 0);
}

/* -------------------------------------------------------------- expired messages */

STORE_CASE("expired");

static void
ck_expired(struct fixture *f, uint64_t messages, uint64_t unread, uint64_t dead_letters)
{
    const struct store_queue_metrics q = queue_metrics(f);

    ck_assert_uint_eq(q.expired.messages, messages);
    ck_assert_uint_eq(q.expired.unread, unread);
    ck_assert_uint_eq(q.expired.dead_letters, dead_letters);
}

STORE_TEST(expired_messages_are_counted_by_queue_and_unread_ones_apart)
{
    post_with(f, 300, STORE_UNSET);
    post_with(f, 300, STORE_UNSET);
    post_with(f, 300, 200);
    release(f, take_for(f, 1, 60, 60));
    ck_expired(f, 0, 0, 0);
    wait_s(f, 300);
    ck_expired(f, 3, 2, 0);
    use(f, "other");
    post_with(f, 60, STORE_UNSET);
    wait_s(f, 60);
    ck_expired(f, 1, 1, 0);
    use(f, "q");
    ck_expired(f, 3, 2, 0);
}

STORE_TEST(messages_that_workers_finish_do_not_expire)
{
    struct store_id claim;

    post(f, 4);
    claim = take(f, 1);
    ck_assert_status(delete_claimed(f, 1, claim), ST_OK);
    ck_assert_status(delete_unclaimed(f, 2), ST_OK);
    pop(f, 1);
    purge(f);
    wait_s(f, 4000);
    ck_expired(f, 0, 0, 0);
}

STORE_TEST(a_claim_whose_response_was_lost_has_read_nothing)
{
    struct store_id claim;

    post_with(f, 300, STORE_UNSET);
    claim = take_for(f, 1, 60, 60);
    ck_assert_status(store_claim_release(f->store, STORE_AT(f->now_ms), &f->queue,
                                         store_id_bytes(&claim), STORE_NOT_SEEN),
                     ST_OK);
    wait_s(f, 300);
    ck_expired(f, 1, 1, 0);
}

STORE_TEST(expired_dead_letters_are_counted_in_their_queue)
{
    make_dead_lettering(f, "q", 1, "failed", 120);
    post(f, 3);
    wear_out(f, 2, 1);
    ck_assert(!id_empty(take_for(f, 3, 60, 60))); /* the third one */
    use(f, "failed");
    post_with(f, 60, STORE_UNSET);
    ck_expired(f, 0, 0, 0);
    wait_s(f, 120);
    ck_expired(f, 3, 3, 2);
    use(f, "q");
    ck_expired(f, 0, 0, 0);
}

STORE_TEST(a_subscriber_reads_what_no_worker_claims)
{
    const struct store_subscription_draft draft = {.subscriber =
                                                       BYTES_LIT("http://example.org/"),
                                                   .options = BYTES_LIT("{}"),
                                                   .ttl_s = 3600};
    struct store_subscribed subscribed;

    make_queue(f, NULL);
    ck_assert_status(store_subscription_create(f->store, STORE_AT(f->now_ms), &f->queue,
                                               &draft, &subscribed),
                     ST_OK);
    post_with(f, 60, STORE_UNSET);
    wait_s(f, 60);
    ck_expired(f, 1, 0, 0);
}

STORE_TEST(a_queue_that_is_created_again_starts_at_zero)
{
    post_with(f, 60, STORE_UNSET);
    wait_s(f, 60);
    ck_expired(f, 1, 1, 0);
    delete_queue(f);
    make_queue(f, NULL);
    ck_expired(f, 0, 0, 0);
}

/* ------------------------------------------------------------------ counters */

ENGINE_CASE("counts");

static void
ck_count(struct fixture *f, enum store_counter which, uint64_t expected)
{
    ck_assert_uint_eq(metrics(f).counts[which], expected);
}

STORE_TEST_WITH(operations_of_clients_are_counted, fixture_open(f, FIXTURE_ENGINE + _i))
{
    struct store_id claim;

    post(f, 6);
    ck_count(f, STORE_COUNT_POSTED, 6);
    claim = take(f, 3);
    ck_assert_status(renew(f, claim, 300, 60), ST_OK);
    ck_assert_status(delete_claimed(f, 1, claim), ST_OK);
    release(f, claim);
    ck_assert_status(delete_unclaimed(f, 2), ST_OK);
    pop(f, 2);
    ck_count(f, STORE_COUNT_CLAIMS, 1);
    ck_count(f, STORE_COUNT_CLAIMED, 3);
    ck_count(f, STORE_COUNT_RENEWALS, 1);
    ck_count(f, STORE_COUNT_DELETED, 2);
    ck_count(f, STORE_COUNT_BACK_RELEASED, 2);
    ck_count(f, STORE_COUNT_POPPED, 2);
    ck_count(f, STORE_COUNT_DROPPED, 0);
    purge(f);
    ck_count(f, STORE_COUNT_DROPPED, 2);
    post(f, 1);
    delete_queue(f);
    ck_count(f, STORE_COUNT_DROPPED, 3);
    ck_count(f, STORE_COUNT_QUEUES_MADE, 1);
    ck_count(f, STORE_COUNT_QUEUES_GONE, 1);
}

STORE_TEST_WITH(expirations_are_counted, fixture_open(f, FIXTURE_ENGINE + _i))
{
    post(f, 2);
    post_with(f, 500, STORE_UNSET);
    (void)take_for(f, 2, 60, 60);
    wait_s(f, 60);
    list_all(f);
    ck_count(f, STORE_COUNT_BACK_EXPIRED, 2);
    ck_count(f, STORE_COUNT_EXPIRED, 0);
    wait_s(f, 440);
    list_all(f);
    ck_count(f, STORE_COUNT_EXPIRED, 1);
}

STORE_TEST_WITH(messages_of_a_deleted_queue_are_counted_once,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    int64_t next_ms;

    post(f, 4);
    (void)take_for(f, 2, 60, 60);
    delete_queue(f);
    wait_s(f, 4000);
    do
        store_housekeep(f->store, f->now_ms, &next_ms);
    while (next_ms <= f->now_ms);
    ck_count(f, STORE_COUNT_DROPPED, 4);
    ck_count(f, STORE_COUNT_EXPIRED, 0);
    ck_count(f, STORE_COUNT_BACK_EXPIRED, 0);
    ck_assert_uint_eq(metrics(f).garbage, 0);
}

STORE_TEST_WITH(a_deletion_that_comes_too_late_is_counted,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    struct store_id claim;

    post(f, 2);
    claim = take_for(f, 1, 60, 60);
    ck_assert_status(delete_unclaimed(f, 1),
                     ST_CLAIMED); /* by a client that never had it */
    ck_count(f, STORE_COUNT_LATE_DELETES, 0);
    wait_s(f, 60);
    ck_assert_status(delete_claimed(f, 1, claim), ST_NOT_CLAIMED);
    (void)take_for(f, 1, 60, 60);
    ck_assert_status(delete_claimed(f, 1, claim), ST_NOT_CLAIMED);
    ck_count(f, STORE_COUNT_LATE_DELETES, 2);
    ck_count(f, STORE_COUNT_DELETED, 0);
}

STORE_TEST_WITH(a_claim_with_a_lost_response_is_counted_apart,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    struct store_id claim;

    post(f, 2);
    claim = take(f, 2);
    ck_assert_status(store_claim_release(f->store, STORE_AT(f->now_ms), &f->queue,
                                         store_id_bytes(&claim), STORE_NOT_SEEN),
                     ST_OK);
    ck_count(f, STORE_COUNT_BACK_GONE, 2);
    ck_count(f, STORE_COUNT_BACK_RELEASED, 0);
}

STORE_TEST_WITH(dead_letters_are_counted_when_they_move,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    make_dead_lettering(f, "q", 2, "failed", STORE_UNSET);
    post(f, 3);
    wear_out(f, 3, 2);
    ck_count(f, STORE_COUNT_DEAD_LETTERS, 0);
    ck_assert(id_empty(take(f, 3)));
    ck_count(f, STORE_COUNT_DEAD_LETTERS, 3);
    ck_count(f, STORE_COUNT_QUEUES_MADE, 2);
    ck_count(f, STORE_COUNT_DELETED, 0);
}

static uint64_t
bucket(struct fixture *f, enum store_span which, size_t i)
{
    const struct store_metrics all = metrics(f);

    return counter_read(&all.spans[which].counts[i]);
}

static uint64_t
sum(struct fixture *f, enum store_span which)
{
    const struct store_metrics all = metrics(f);

    return counter_read(&all.spans[which].sum);
}

STORE_TEST_WITH(times_fall_into_the_histograms, fixture_open(f, FIXTURE_ENGINE + _i))
{
    struct store_id claim;

    post(f, 3);
    wait_ms(f, 20);
    claim = take(f, 1);
    release(f, claim);
    wait_ms(f, 1000);
    claim = take(f, 2); /* the first one for the second time */
    ck_assert_uint_eq(bucket(f, STORE_SPAN_WAITED, 2), 1);   /* up to 25 ms */
    ck_assert_uint_eq(sum(f, STORE_SPAN_WAITED), 20 + 1020); /* not the second time */
    wait_s(f, 100);
    ck_assert_status(renew(f, claim, 300, 60), ST_OK);
    wait_s(f, 100);
    ck_assert_status(delete_claimed(f, 1, claim), ST_OK);
    ck_assert_status(delete_claimed(f, 2, claim), ST_OK);
    ck_assert_uint_eq(sum(f, STORE_SPAN_WORKED), 2 * 200000); /* from the claim */
    ck_assert_uint_eq(sum(f, STORE_SPAN_ATTEMPTS), 2 + 1);
    ck_assert_uint_eq(bucket(f, STORE_SPAN_ATTEMPTS, 0), 1);
    ck_assert_uint_eq(bucket(f, STORE_SPAN_ATTEMPTS, 1), 1);
    ck_assert_status(delete_unclaimed(f, 3), ST_OK); /* no worker had it */
    ck_assert_uint_eq(sum(f, STORE_SPAN_ATTEMPTS), 2 + 1);
}

STORE_TEST_WITH(a_pop_ends_the_waiting_too, fixture_open(f, FIXTURE_ENGINE + _i))
{
    post(f, 2);
    wait_s(f, 2);
    pop(f, 2);
    ck_assert_uint_eq(sum(f, STORE_SPAN_WAITED), 4000);
}

STORE_TEST_WITH(a_message_waits_once_also_if_it_was_claimed_before_its_pop,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    post(f, 1);
    wait_s(f, 2);
    (void)take_for(f, 1, 60, 60);
    wait_s(f, 60);
    pop(f, 1);
    ck_assert_uint_eq(sum(f, STORE_SPAN_WAITED), 2000);
}

STORE_TEST_WITH(overdue_expirations_show_as_lag_until_processed,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    int64_t next_ms;

    post_with(f, 60, STORE_UNSET);
    ck_assert_int_eq(metrics(f).lag_ms, 0);
    wait_s(f, 63);
    ck_assert_int_ge(metrics(f).lag_ms, 3000);
    do
        store_housekeep(f->store, f->now_ms, &next_ms);
    while (next_ms <= f->now_ms);
    ck_assert_int_eq(metrics(f).lag_ms, 0);
}

/* ------------------------------------------------------------- queues with a row */

ENGINE_CASE("shown");

STORE_TEST_WITH(the_first_queues_are_shown_and_keep_their_places,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    enum { PLACES = 64 };
    char name[16];
    struct store_queue_metrics q;

    for (int i = 0; i < PLACES + 2; i++) {
        (void)snprintf(name, sizeof(name), "q%d", i);
        use(f, name);
        make_queue(f, NULL);
    }
    ck_assert_uint_eq(count_shown(f), PLACES);
    ck_assert(!find_queue(f, &q));
    post(f, 100); /* however much it has */
    ck_assert(!find_queue(f, &q));
    use(f, "q7");
    ck_assert(find_queue(f, &q));
    delete_queue(f);
    ck_assert_uint_eq(count_shown(f), PLACES - 1);
    use(f, "later");
    make_queue(f, NULL);
    ck_assert(find_queue(f, &q));
    ck_assert_uint_eq(count_shown(f), PLACES);
}

STORE_TEST_WITH(expirations_beyond_the_metrics_slots_are_counted_together,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    enum { PLACES = 64 };
    char name[16];

    for (int i = 0; i < PLACES + 2; i++) {
        (void)snprintf(name, sizeof(name), "q%d", i);
        use(f, name);
        make_queue(f, NULL);
        if (i == 0 || i >= PLACES)
            post_with(f, 60, STORE_UNSET);
    }
    wait_s(f, 60);
    list_all(f);
    use(f, "q64");
    list_all(f);
    use(f, "q0");
    list_all(f);
    ck_assert_uint_eq(queue_metrics(f).expired.unread, 1);
    ck_assert_uint_eq(metrics(f).rest.messages, 2);
    ck_assert_uint_eq(metrics(f).rest.unread, 2);
    delete_queue(f); /* takes its counters with it */
    ck_assert_uint_eq(metrics(f).rest.messages, 2);
}

STORE_TEST_WITH(a_health_check_takes_no_metrics_slot,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    static char project[STORE_METRICS_PROJECT + 2];
    struct store_queue_metrics q;

    memset(project, 'h', STORE_METRICS_PROJECT + 1);
    use_project(f, project);
    make_queue(f, NULL);
    ck_assert(!find_queue(f, &q));
    ck_assert_uint_eq(count_shown(f), 0);
    ck_assert_uint_eq(metrics(f).queues, 1);
}
