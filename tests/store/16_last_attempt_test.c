/* A message whose last attempt has ended becomes a dead letter at once (docs/api.md 10),
 * in any store. */
#include "support/dead_letters.h"
#include "support/finishing.h"
#include "support/subscriptions.h"

/* Gives the queue other settings. */
static void
set_settings(struct fixture *f, const struct store_settings *settings)
{
    const struct store_metadata metadata = {BYTES_NONE, *settings};
    struct store_queues queues = STORE_QUEUES_INIT;

    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &queues),
                     ST_OK);
    ck_assert_status(store_queue_update(f->store, STORE_AT(f->now_ms), &f->queue,
                                        queues.queues[0].version, &metadata),
                     ST_OK);
    store_queues_release(&queues);
}

/* Claims a message, and gives it back by a finish. */
static struct finishing
finish_failed(struct fixture *f, int number, int64_t delay_s, bool uncounted)
{
    struct finishing g = finishing_of(f, take(f, 1));

    expect(f, number);
    then_release(&g, number, delay_s, "no route");
    g.items[0].uncounted = uncounted;
    ck_assert_status(finish(f, &g), ST_OK);
    return g;
}

/* The cause and the attempts of a dead letter, and the worker that held it last. */
static void
expect_cause(struct fixture *f, int number, enum store_cause cause, uint32_t attempts,
             const char *client)
{
    const struct store_details *d;

    get(f, number);
    ck_assert_uint_eq(f->seen.count, 1);
    d = f->seen.messages[0].details;
    ck_assert_ptr_nonnull(d);
    ck_assert_int_eq(d->cause, cause);
    ck_assert_uint_eq(d->attempts, attempts);
    ck_assert(bytes_equal_str(d->client, client));
}

static struct store_id
take_as(struct fixture *f, const char *client)
{
    const struct store_terms terms = {60, 60};
    struct store_op op = {.now_ms = f->now_ms, .client = bytes_str(client)};
    struct store_batch batch = STORE_BATCH_INIT;
    struct store_id id;

    ck_assert_status(store_claim_create(f->store, &op, &f->queue, &terms, 1, &batch),
                     ST_OK);
    ck_assert_uint_eq(batch.count, 1);
    id = batch.claim_id;
    store_batch_release(&batch);
    return id;
}

STORE_CASE("causes");

STORE_TEST(a_dead_letter_names_the_holder_of_the_claim_that_expired)
{
    make_dead_lettering(f, "q", 2, "failed", STORE_UNSET);
    post(f, 1);
    (void)take_as(f, "first");
    wait_s(f, 60);
    (void)take_as(f, "second");
    wait_s(f, 60);
    expect_only_in(f, 1, "failed");
    use(f, "failed");
    expect_cause(f, 1, STORE_CAUSE_EXPIRED, 2, "second");
    ck_assert_uint_eq(redrive_all(f).moved, 1);
    use(f, "q");
    (void)take_as(f, "third");
    wait_s(f, 60);
    (void)take_as(f, "fourth");
    wait_s(f, 60);
    expect_only_in(f, 1, "failed");
    use(f, "failed");
    expect_cause(f, 1, STORE_CAUSE_EXPIRED, 2, "fourth");
}

STORE_TEST(a_dead_letter_says_that_no_attempt_was_left)
{
    make_dead_lettering(f, "q", 3, "failed", STORE_UNSET);
    post(f, 1);
    for (int i = 0; i < 3; i++)
        release(f, take_as(f, "worker"));
    take(f, 1); /* moves it */
    use(f, "failed");
    expect_cause(f, 1, STORE_CAUSE_ATTEMPTS, 3, "");
}

STORE_TEST(a_dead_letter_says_that_a_worker_made_it_one_until_it_is_put_back)
{
    struct finishing g;

    make_dead_lettering(f, "q", 3, "failed", STORE_UNSET);
    post(f, 1);
    g = finishing_of(f, take_as(f, "holder"));
    then_dead_letter(&g, 1, NULL);
    ck_assert_status(finish(f, &g), ST_OK);
    use(f, "failed");
    expect_cause(f, 1, STORE_CAUSE_WORKER, 1, "holder");
    ck_assert_uint_eq(redrive_all(f).moved, 1);
    use(f, "q");
    get(f, 1);
    if (f->seen.messages[0].details != NULL) {
        ck_assert_int_eq(f->seen.messages[0].details->cause, STORE_CAUSE_UNKNOWN);
        ck_assert_uint_eq(f->seen.messages[0].details->attempts, 0);
    }
}

STORE_CASE("expiry");

STORE_TEST(the_end_of_the_last_claim_moves_the_message)
{
    make_dead_lettering(f, "q", 2, "failed", STORE_UNSET);
    post(f, 1);
    take_for(f, 1, 60, 60);
    wait_s(f, 60);
    expect_only_in(f, 1, "q");
    take_for(f, 1, 60, 60);
    wait_ms(f, 59999);
    expect_only_in(f, 1, "q");
    wait_ms(f, 1);
    expect_only_in(f, 1, "failed");
    use(f, "failed");
    expect_details(f, 1, NULL, NULL, -1, "q", 120);
    get(f, 1);
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 0);
}

STORE_TEST(each_operation_alone_sees_that_it_has_moved)
{
    struct store_id claim;

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    for (int look = 0; look < 7; look++) {
        post(f, 1);
        claim = take_for(f, 1, 60, 60);
        wait_s(f, 60);
        switch (look) {
        case 0:
            expect_stats(f, 0, 0);
            break;
        case 1:
            list_all(f);
            expect_nothing(f);
            break;
        case 2:
            pop(f, 1);
            expect_nothing(f);
            break;
        case 3:
            ck_assert(id_empty(take(f, 1)));
            break;
        case 4:
            ck_assert_status(query(f, claim), ST_NOT_FOUND);
            break;
        case 5:
            ck_assert_status(delete_unclaimed(f, look + 1), ST_OK);
            break;
        default:
            get(f, look + 1);
            expect_nothing(f);
        }
        use(f, "failed");
        expect_stats(f, 0, (uint64_t)look + 1);
        use(f, "q");
    }
}

STORE_TEST(the_other_messages_of_the_claim_are_requeued)
{
    make_dead_lettering(f, "q", 2, "failed", STORE_UNSET);
    post(f, 2); /* 1 2 */
    wear_out(f, 2, 1);
    post(f, 2); /* 3 4 */
    take_for(f, 4, 60, 60);
    expect(f, 1, 2, 3, 4);
    wait_s(f, 60);
    list_ready(f);
    expect(f, 3, 4);
    use(f, "failed");
    list_ready(f);
    expect(f, 1, 2);
}

STORE_TEST(messages_that_were_deleted_before_do_not_come_back)
{
    struct store_id claim;

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 2);
    claim = take_for(f, 2, 60, 60);
    ck_assert_status(delete_claimed(f, 1, claim), ST_OK);
    wait_s(f, 60);
    expect_stats(f, 0, 0);
    use(f, "failed");
    list_ready(f);
    expect(f, 2);
}

STORE_TEST(a_message_whose_life_ended_after_its_claim_is_a_dead_letter)
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post_with(f, 60, 0);
    take_for(f, 1, 60, 60);
    wait_s(f, 150); /* longer than claim and grace together */
    expect_stats(f, 0, 0);
    use(f, "failed");
    list_ready(f);
    expect(f, 1);
}

STORE_TEST(hundreds_of_claims_that_end_together_move_their_messages)
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    use(f, "q2");
    make_queue(f, NULL);
    use(f, "q");
    post(f, 400);
    for (int i = 0; i < 200; i++) {
        take_for(f, 2, 60, 60);
        wait_ms(f, 1);
    }
    wait_s(f, 60);
    expect_stats(f, 0, 0);
    use(f, "failed");
    expect_stats(f, 0, 400);
}

STORE_TEST(a_message_that_goes_to_the_end_of_its_own_queue_begins_anew)
{
    make_dead_lettering(f, "q", 1, "q", STORE_UNSET);
    post(f, 2); /* 1 2 */
    take_for(f, 1, 60, 60);
    wait_s(f, 60);
    take(f, 2);
    expect(f, 2, 1);
    ck_assert_uint_eq(f->seen.messages[1].claim_count, 1);
}

STORE_TEST(dead_letters_go_on_along_a_chain)
{
    make_dead_lettering(f, "failed", 1, "deeper", STORE_UNSET);
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    take_for(f, 1, 60, 60);
    wait_s(f, 60);
    expect_only_in(f, 1, "failed");
    use(f, "failed");
    take_for(f, 1, 60, 60);
    expect(f, 1);
    wait_s(f, 60);
    expect_only_in(f, 1, "deeper");
}

STORE_TEST(two_queues_may_be_each_others_dead_letter_queue)
{
    make_dead_lettering(f, "failed", 1, "q", STORE_UNSET);
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    for (int i = 0; i < 4; i++) {
        take_for(f, 1, 60, 60);
        expect(f, 1);
        wait_s(f, 60);
        expect_stats(f, 0, 0);
        use(f, i % 2 == 0 ? "failed" : "q");
        expect_stats(f, 0, 1);
    }
}

STORE_TEST(a_paused_queue_still_gives_up_its_exhausted_messages)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.max_claim_count = 1;
    settings.dead_letter = bytes_str("failed");
    make_queue(f, &settings);
    post(f, 1);
    take_for(f, 1, 60, 60);
    settings.paused = STORE_PAUSE_CLAIMS | STORE_PAUSE_POSTS;
    set_settings(f, &settings);
    use(f, "failed");
    settings.max_claim_count = STORE_UNSET;
    settings.dead_letter = BYTES_NONE;
    settings.paused = STORE_PAUSE_CLAIMS | STORE_PAUSE_POSTS;
    make_queue(f, &settings);
    use(f, "q");
    wait_s(f, 60);
    expect_only_in(f, 1, "failed");
}

STORE_TEST(the_settings_at_the_end_of_the_claim_count)
{
    struct store_settings none = STORE_SETTINGS_INIT, some = STORE_SETTINGS_INIT;

    some.max_claim_count = 1;
    some.dead_letter = bytes_str("failed");
    make_queue(f, &some);
    post(f, 1);
    take_for(f, 1, 60, 60);
    set_settings(f, &none);
    wait_s(f, 60);
    expect_only_in(f, 1, "q");
    set_settings(f, &some);
    expect_only_in(f, 1, "q"); /* no attempt has ended since */
    ck_assert(id_empty(take(f, 1)));
    expect_only_in(f, 1, "failed");
    post(f, 1);
    take_for(f, 1, 60, 60);
    wait_s(f, 60);
    set_settings(f, &none); /* later than the end */
    expect_only_in(f, 2, "failed");
}

STORE_TEST(a_queue_in_memory_moves_them_too)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.max_claim_count = 1;
    settings.dead_letter = bytes_str("failed");
    settings.transient = true;
    make_queue(f, &settings);
    post(f, 1);
    take_for(f, 1, 60, 60);
    wait_s(f, 60);
    expect_only_in(f, 1, "failed");
}

STORE_TEST(metrics_count_them_as_dead_letters_and_not_as_requeued)
{
    struct store_metrics before, after;

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    ck_assert_status(store_metrics(f->store, STORE_AT(f->now_ms), &before), ST_OK);
    take_for(f, 1, 60, 60);
    wait_s(f, 60);
    expect_stats(f, 0, 0);
    ck_assert_status(store_metrics(f->store, STORE_AT(f->now_ms), &after), ST_OK);
    ck_assert_uint_eq(after.counts[STORE_COUNT_BACK_EXPIRED],
                      before.counts[STORE_COUNT_BACK_EXPIRED]);
    if (!f->is_twin)
        ck_assert_uint_eq(after.counts[STORE_COUNT_DEAD_LETTERS],
                          before.counts[STORE_COUNT_DEAD_LETTERS] + 1);
}

/* All stores but the twin, which has no housekeeping. */
TEST_CASE("housekeeping", .times = FIXTURE_KINDS - FIXTURE_ENGINE);

STORE_TEST_WITH(an_idle_server_moves_them_on_time, fixture_open(f, FIXTURE_ENGINE + _i))
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    take_for(f, 1, 60, 60);
    housekeep(f);
    ck_assert_int_le(store_next_ms(f->store), f->now_ms + 60000);
    wait_s(f, 60);
    ck_assert_int_le(store_next_ms(f->store), f->now_ms);
    housekeep(f);
    use(f, "failed"); /* the other queue was not used */
    list_ready(f);
    expect(f, 1);
}

/* Lets the time pass without a request, then expects so many messages in the dead-letter
 * queue. */
static void
expect_moved(struct fixture *f, int64_t after_s, size_t count)
{
    wait_s(f, after_s);
    housekeep(f);
    use(f, "failed");
    list_ready(f);
    ck_assert_uint_eq(f->seen.count, count);
    use(f, "q");
}

STORE_TEST_WITH(each_claim_moves_its_own, fixture_open(f, FIXTURE_ENGINE + _i))
{
    make_dead_lettering(f, "q", 1, "failed", 100000);
    post(f, 3);
    take_for(f, 1, 600, 60);
    take_for(f, 1, 60, 60);
    take_for(f, 1, 6000, 60);
    expect_moved(f, 59, 0);
    expect_moved(f, 1, 1);
    expect_moved(f, 540, 2);
    expect_moved(f, 5400, 3);
    post(f, 1);
    take_for(f, 1, 60, 60);
    expect_moved(f, 60, 4);
}

STORE_TEST_WITH(a_renewal_that_ends_the_claim_earlier_counts,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    ck_assert_status(renew(f, take_for(f, 1, 6000, 60), 60, 60), ST_OK);
    expect_moved(f, 60, 1);
}

STORE_TEST_WITH(settings_that_come_after_the_claim_count,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    make_queue(f, &settings);
    post_with(f, 3600, 30); /* 1: the first deadline is not that of a claim */
    post(f, 2);
    take_for(f, 1, 60, 60);
    take_for(f, 1, 120, 60);
    settings.max_claim_count = 1;
    settings.dead_letter = bytes_str("failed");
    set_settings(f, &settings);
    expect_moved(f, 30, 0);
    expect_moved(f, 30, 1);
    expect_moved(f, 60, 2);
}

STORE_TEST_WITH(an_encrypting_dead_letter_queue_gets_sealed_bodies,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.encrypt = true;
    use(f, "failed");
    make_queue(f, &settings);
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 3);
    for (int i = 0; i < 3; i++)
        take_for(f, 1, 60, 60);
    wait_s(f, 60);
    housekeep(f);
    use(f, "failed");
    list_ready(f);
    ck_assert_uint_eq(f->seen.count, 3);
    for (size_t i = 0; i < 3; i++)
        ck_assert(store_is_sealed(f->seen.messages[i].body));
}

STORE_CASE("finish");

STORE_TEST(a_release_after_the_last_attempt_moves_the_message)
{
    struct finishing g;

    make_dead_lettering(f, "q", 2, "failed", STORE_UNSET);
    post(f, 1);
    g = finish_failed(f, 1, 0, false);
    ck_assert(g.items[0].held && !g.items[0].exhausted);
    expect_only_in(f, 1, "q");
    g = finish_failed(f, 1, 0, false);
    ck_assert(g.items[0].held && g.items[0].exhausted);
    expect_only_in(f, 1, "failed");
    use(f, "failed");
    expect_details(f, 1, "no route", "worker", 0, "q", 0);
}

STORE_TEST(a_delay_does_not_hold_back_a_message_without_an_attempt_left)
{
    struct finishing g;

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    g = finish_failed(f, 1, 600, false);
    ck_assert(g.items[0].exhausted);
    use(f, "failed");
    list_ready(f);
    expect(f, 1);
}

STORE_TEST(an_attempt_that_does_not_count_is_not_the_last_one)
{
    struct finishing g;

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    g = finish_failed(f, 1, 0, true);
    ck_assert(!g.items[0].exhausted);
    expect_only_in(f, 1, "q");
    g = finish_failed(f, 1, 0, false);
    ck_assert(g.items[0].exhausted);
}

STORE_TEST(a_finish_does_all_of_it_in_one_step)
{
    struct finishing g;

    make_dead_lettering(f, "q", 2, "failed", STORE_UNSET);
    post(f, 2); /* 1 2 */
    wear_out(f, 2, 1);
    post(f, 3); /* 3 4 5 */
    g = finishing_of(f, take(f, 5));
    expect(f, 1, 2, 3, 4, 5);
    then_delete(&g, 1);
    then_release(&g, 2, 0, "again");
    then_release(&g, 3, 0, "first");
    then_dead_letter(&g, 4, "hopeless");
    then_post(&g, "failed", 2); /* 6 7 */
    then_renew(&g, 60, 60);
    ck_assert_status(finish(f, &g), ST_OK);
    ck_assert(g.items[1].exhausted && !g.items[2].exhausted && !g.items[3].exhausted);
    ck_assert_uint_ne(g.request.number, 0); /* of message 5 */
    list_ready(f);
    expect(f, 3);
    use(f, "failed");
    list_ready(f);
    ck_assert_uint_eq(f->seen.count, 4);
    expect_details(f, 2, "again", "worker", 0, "q", 0);
    expect_details(f, 4, "hopeless", "worker", 0, "q", 0);
}

STORE_TEST(a_release_as_in_zaqar_waits_for_the_next_claim)
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    release(f, take(f, 1));
    wait_s(f, 600);
    expect_only_in(f, 1, "q");
    ck_assert(id_empty(take(f, 1)));
    expect_only_in(f, 1, "failed");
}

STORE_CASE("subscribers");

STORE_TEST(subscribers_of_a_dead_letter_queue_receive_dead_letters)
{
    struct store_delivery d;
    struct finishing g;
    struct store_id id;

    use(f, "failed");
    id = subscribe(f, "http://a", 6000);
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 4);
    take_for(f, 1, 60, 60); /* 1: expires */
    g = finishing_of(f, take(f, 3));
    then_release(&g, 2, 0, NULL);
    then_dead_letter(&g, 3, "hopeless");
    ck_assert_status(finish(f, &g), ST_OK);
    release(f, g.claim); /* 4: at the next claim */
    take(f, 1);
    wait_s(f, 60);
    expect_stats(f, 0, 0);
    use(f, "failed");
    for (int i = 0; i < 4; i++) {
        static const int order[] = {2, 3, 4, 1};

        expect_next(f, &d, id, order[i]);
        ck_assert_int_eq(d.delay_s, 0);
        delivered(f, &d);
    }
    expect_nothing_due(f);
}

STORE_TEST(subscribers_receive_messages_that_are_put_back)
{
    struct store_redrive which = {.limit = 10};
    struct store_redriven out;
    struct store_delivery d;
    struct store_id id;

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    finish_failed(f, 1, 0, false);
    id = subscribe(f, "http://a", 6000);
    use(f, "failed");
    ck_assert_status(
        store_redrive(f->store, STORE_AT(f->now_ms), &f->queue, &which, &out), ST_OK);
    ck_assert_uint_eq(out.moved, 1);
    use(f, "q");
    expect_next(f, &d, id, 1);
    ck_assert_int_eq(d.ttl_s, 3600);
    delivered(f, &d);
    expect_nothing_due(f);
}

STORE_TEST(
    subscribers_of_a_queue_that_is_its_own_dead_letter_queue_receive_its_dead_letters)
{
    struct store_delivery d;
    struct store_id id;

    make_dead_lettering(f, "q", 1, "q", STORE_UNSET);
    post(f, 1);
    id = subscribe(f, "http://a", 6000);
    finish_failed(f, 1, 0, false);
    list_ready(f);
    expect(f, 1);
    expect_next(f, &d, id, 1);
    delivered(f, &d);
    expect_nothing_due(f);
}

STORE_TEST(a_claim_gets_messages_that_it_moved_to_the_end_of_their_queue)
{
    struct store_delivery d;
    struct store_id id;

    make_dead_lettering(f, "q", 1, "q", STORE_UNSET);
    post(f, 2); /* 1 2 */
    wear_out(f, 2, 1);
    post(f, 1); /* 3 */
    id = subscribe(f, "http://a", 6000);
    take(f, 4);
    expect(f, 3, 1, 2);
    for (int i = 1; i <= 2; i++) {
        expect_next(f, &d, id, i);
        delivered(f, &d);
    }
    expect_nothing_due(f);
}
