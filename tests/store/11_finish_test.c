/* Finish: the end of the work on messages of a claim, in one step (store/store.h). */
#include "support/finishing.h"

STORE_CASE("finish");

/* The queue "q" with these dead letters, a number of messages and a claim on all of
 * them. */
static struct store_id
claim_of(struct fixture *f, int count)
{
    struct store_id claim;

    make_dead_lettering(f, "q", 5, "failed", STORE_UNSET);
    post(f, count);
    claim = take(f, (size_t)count);
    ck_assert_uint_eq(f->seen.count, (size_t)count);
    return claim;
}

static void
expect_queue_exists(struct fixture *f, const char *name, bool exists)
{
    struct store_queues queues = STORE_QUEUES_INIT;
    struct store_queue where = f->queue;

    where.name = bytes_str(name);
    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &where, &queues),
                     exists ? ST_OK : ST_NOT_FOUND);
    if (exists)
        store_queues_release(&queues);
}

/* The claim holds these five still, and nothing else has happened. */
static void
expect_untouched(struct fixture *f, struct store_id claim)
{
    use(f, "q");
    ck_assert_status(query(f, claim), ST_OK);
    expect(f, 1, 2, 3, 4, 5);
    expect_stats(f, 5, 0);
    for (int i = 1; i <= 5; i++)
        expect_details(f, i, NULL, NULL, -1, NULL, -1);
    expect_queue_exists(f, "failed", false);
    expect_queue_exists(f, "next", false);
}

/* One of everything. */
static void
then_one_of_each(struct finishing *g)
{
    then_delete(g, 1);
    then_release(g, 2, 30, "busy");
    then_dead_letter(g, 3, "bad input");
    then_post(g, "next", 2);
    then_renew(g, 500, 100);
}

STORE_TEST(a_post_that_never_becomes_ready_is_refused_with_all_else)
{
    struct store_id claim = claim_of(f, 5);

    for (size_t bad = 0; bad < 2; bad++) {
        struct finishing g = finishing_of(f, claim);

        then_delete(&g, 1);
        then_post(&g, "other", 1);
        then_post(&g, "next", 2);
        g.drafts[1][bad].delay_s = 3600;
        ck_assert_status(finish(f, &g), ST_NEVER_READY);
        ck_assert_uint_eq(g.request.failed_post, 1);
        expect_untouched(f, claim);
    }
}

STORE_TEST(everything_happens_in_one_step)
{
    struct store_id claim = claim_of(f, 5);
    uint64_t number = f->seen.claim_number;
    struct finishing g = finishing_of(f, claim);

    wait_s(f, 10);
    then_one_of_each(&g);
    ck_assert_status(finish(f, &g), ST_OK);
    ck_assert(was_held(&g, 0) && was_held(&g, 1) && was_held(&g, 2));
    ck_assert_uint_eq(g.request.number, number);
    ck_assert_uint_eq(g.request.failed_post, 1);
    ck_assert(!g.posts[0].pending);
    ck_assert_status(query(f, claim), ST_OK);
    expect(f, 4, 5);
    ck_assert_int_eq(f->seen.claim_ttl_s, 500);
    ck_assert_int_eq(f->seen.claim_age_s, 0);
    list_all(f);
    expect(f, 2, 4, 5);
    list_ready(f);
    expect_nothing(f);
    expect_details(f, 2, "busy", "worker", 10, NULL, -1);
    expect_details(f, 4, NULL, NULL, -1, NULL, -1);
    use(f, "failed");
    list_ready(f);
    expect(f, 3);
    expect_details(f, 3, "bad input", "worker", 10, "q", 10);
    use(f, "next");
    list_ready(f);
    expect(f, 6, 7);
}

STORE_TEST(an_atomic_finish_of_a_message_that_is_not_held_changes_nothing)
{
    struct store_id claim = claim_of(f, 5);
    struct finishing g = finishing_of(f, claim);

    post(f, 1); /* 6 */
    then_one_of_each(&g);
    then_delete(&g, 6);
    ck_assert_status(finish(f, &g), ST_NOT_CLAIMED);
    ck_assert(was_held(&g, 0) && was_held(&g, 1) && was_held(&g, 2));
    ck_assert(!was_held(&g, 3));
    ck_assert_status(delete_unclaimed(f, 6), ST_OK);
    expect_untouched(f, claim);
}

STORE_TEST(a_finish_that_is_not_atomic_leaves_out_what_is_not_held)
{
    struct store_id claim = claim_of(f, 5);
    struct finishing g = finishing_of(f, claim);

    post(f, 1); /* 6 */
    g.request.atomic = false;
    then_release(&g, 6, 0, "not mine");
    then_one_of_each(&g);
    ck_assert_status(finish(f, &g), ST_OK);
    ck_assert(!was_held(&g, 0));
    ck_assert(was_held(&g, 1) && was_held(&g, 2) && was_held(&g, 3));
    list_all(f);
    expect(f, 2, 4, 5, 6);
    expect_details(f, 6, NULL, NULL, -1, NULL, -1);
    use(f, "next");
    list_ready(f);
    expect(f, 7, 8);
}

STORE_TEST(a_message_of_another_claim_is_not_held)
{
    struct store_id first, second;
    struct finishing g;

    post(f, 2);
    first = take(f, 1);
    second = take(f, 1);
    g = finishing_of(f, first);
    then_delete(&g, 2);
    ck_assert_status(finish(f, &g), ST_NOT_CLAIMED);
    g.request.atomic = false;
    ck_assert_status(finish(f, &g), ST_OK);
    ck_assert(!was_held(&g, 0));
    ck_assert_status(query(f, second), ST_OK);
    expect(f, 2);
}

STORE_TEST(messages_that_are_gone_or_nonsense_are_not_held)
{
    struct store_id claim;
    struct finishing g;

    post(f, 2);
    claim = take(f, 2);
    ck_assert_status(delete_claimed(f, 1, claim), ST_OK);
    g = finishing_of(f, claim);
    g.request.atomic = false;
    then_delete(&g, 1);
    then_delete(&g, 2);
    then_delete(&g, 2);
    g.items[2].id = bytes_str("nonsense");
    ck_assert_status(finish(f, &g), ST_OK);
    ck_assert(!was_held(&g, 0) && was_held(&g, 1) && !was_held(&g, 2));
    expect_stats(f, 0, 0);
}

STORE_TEST(a_claim_that_is_over_holds_nothing)
{
    struct store_id claim = claim_of(f, 5);
    struct finishing g = finishing_of(f, claim);

    wait_s(f, 300);
    then_one_of_each(&g);
    ck_assert_status(finish(f, &g), ST_NOT_CLAIMED);
    for (size_t i = 0; i < 3; i++)
        ck_assert(!was_held(&g, i));
    expect_queue_exists(f, "next", false);
    g = finishing_of(f, claim);
    then_renew(&g, 60, 60);
    ck_assert_status(finish(f, &g), ST_NOT_FOUND);
    g = finishing_of(f, claim);
    then_post(&g, "next", 1);
    ck_assert_status(finish(f, &g), ST_NOT_FOUND);
    expect_queue_exists(f, "next", false);
    expect_stats(f, 0, 5);
}

STORE_TEST(a_finish_that_is_not_atomic_posts_nothing_if_the_claim_is_over)
{
    struct store_id claim = claim_of(f, 5);
    struct finishing g = finishing_of(f, claim);

    wait_s(f, 300);
    g.request.atomic = false;
    then_one_of_each(&g);
    ck_assert_status(finish(f, &g), ST_NOT_FOUND);
    for (size_t i = 0; i < 3; i++)
        ck_assert(!was_held(&g, i));
    expect_stats(f, 0, 5);
    expect_queue_exists(f, "next", false);
}

STORE_TEST(there_is_no_claim_in_a_queue_that_does_not_exist)
{
    struct finishing g = finishing_of(f, text_id("f0f0f0f0f0f0000000000001"));

    then_renew(&g, 60, 60);
    ck_assert_status(finish(f, &g), ST_NOT_FOUND);
    g.claim = text_id("nonsense");
    ck_assert_status(finish(f, &g), ST_NOT_FOUND);
    g.request.atomic = false;
    then_post(&g, "q", 1);
    ck_assert_status(finish(f, &g), ST_NOT_FOUND);
    expect_queue_exists(f, "q", false);
}

STORE_TEST(messages_that_are_not_named_stay_claimed)
{
    struct store_id claim = claim_of(f, 5);
    struct finishing g = finishing_of(f, claim);

    then_delete(&g, 3);
    wait_s(f, 100);
    ck_assert_status(finish(f, &g), ST_OK);
    ck_assert_uint_eq(g.request.number, 0);
    ck_assert_status(query(f, claim), ST_OK);
    expect(f, 1, 2, 4, 5);
    ck_assert_int_eq(f->seen.claim_age_s, 100); /* it was not renewed */
    wait_s(f, 200);
    take(f, 5);
    expect(f, 1, 2, 4, 5);
}

STORE_TEST(a_claim_that_holds_nothing_afterwards_is_over_and_not_renewed)
{
    struct store_id claim = claim_of(f, 5);
    struct finishing g = finishing_of(f, claim);

    then_one_of_each(&g);
    then_delete(&g, 4);
    then_release(&g, 5, 0, NULL);
    ck_assert_status(finish(f, &g), ST_OK);
    ck_assert_uint_eq(g.request.number, 0);
    ck_assert_status(query(f, claim), ST_NOT_FOUND);
    ck_assert_status(renew(f, claim, 60, 60), ST_NOT_FOUND);
    take(f, 5);
    expect(f, 5);
}

STORE_TEST(a_finish_of_nothing_renews)
{
    struct store_id claim = claim_of(f, 5);
    struct finishing g = finishing_of(f, claim);

    wait_s(f, 299);
    then_renew(&g, 4000, 100);
    ck_assert_status(finish(f, &g), ST_OK);
    wait_s(f, 3999);
    ck_assert_status(query(f, claim), ST_OK); /* their lives are longer now */
    expect(f, 1, 2, 3, 4, 5);
    wait_s(f, 1);
    ck_assert_status(query(f, claim), ST_NOT_FOUND);
}

/* ------------------------------------------------------------------ release */

STORE_CASE("release");

STORE_TEST(a_released_message_is_not_delivered_before_its_delay)
{
    struct store_id claim = claim_of(f, 3);
    struct finishing g = finishing_of(f, claim);

    then_release(&g, 1, 10, NULL);
    then_release(&g, 2, 0, NULL);
    then_release(&g, 3, 20, NULL);
    ck_assert_status(finish(f, &g), ST_OK);
    list_ready(f);
    expect(f, 2);
    get(f, 1);
    ck_assert_int_eq(f->seen.messages[0].delayed_until_ms, START_MS + 10000);
    wait_ms(f, 9999);
    list_ready(f);
    expect(f, 2);
    wait_ms(f, 1);
    list_ready(f);
    expect(f, 1, 2);
    get(f, 1);
    ck_assert_int_eq(f->seen.messages[0].delayed_until_ms, 0);
    wait_ms(f, 9999);
    take(f, 5);
    expect(f, 1, 2);
    wait_ms(f, 1);
    take(f, 5);
    expect(f, 3);
}

STORE_TEST(a_released_message_returns_to_its_old_place)
{
    struct store_id claim;
    struct finishing g;

    post(f, 5);
    claim = take(f, 3);
    g = finishing_of(f, claim);
    then_release(&g, 2, 30, NULL);
    then_release(&g, 1, 0, NULL);
    ck_assert_status(finish(f, &g), ST_OK);
    post(f, 1); /* 6 */
    list_ready(f);
    expect(f, 1, 4, 5, 6);
    wait_s(f, 30);
    list_ready(f);
    expect(f, 1, 2, 4, 5, 6);
    take(f, 2);
    expect(f, 1, 2);
}

STORE_TEST(the_life_of_a_message_does_not_run_during_its_delay)
{
    struct finishing g;

    post_with(f, 100, 0);
    g = finishing_of(f, take_for(f, 1, 40, 1));
    wait_s(f, 30);
    then_release(&g, 1, 600, NULL); /* longer than it would live */
    ck_assert_status(finish(f, &g), ST_OK);
    get(f, 1);
    ck_assert_int_eq(f->seen.messages[0].expires_ms, START_MS + 700 * 1000);
    wait_s(f, 600);
    list_ready(f);
    expect(f, 1);
    wait_ms(f, 69999);
    list_ready(f);
    expect(f, 1);
    wait_ms(f, 1);
    list_all(f);
    expect_nothing(f);
}

STORE_TEST(a_delay_makes_no_life_longer_than_the_longest)
{
    const int64_t most_s = 1209600; /* of the fixture */
    struct finishing g;

    post_with(f, most_s, 0);
    g = finishing_of(f, take(f, 1));
    wait_s(f, 100);
    then_release(&g, 1, 43200, NULL);
    ck_assert_status(finish(f, &g), ST_OK);
    get(f, 1);
    ck_assert_int_eq(f->seen.messages[0].expires_ms, START_MS + (most_s + 100) * 1000);
    wait_s(f, 43200);
    list_ready(f);
    expect(f, 1);
}

STORE_TEST(a_message_expires_within_a_delay_that_is_longer_than_the_longest_life)
{
    const int64_t most_s = 1209600;
    struct finishing g;

    post(f, 1);
    g = finishing_of(f, take(f, 1));
    then_release(&g, 1, most_s + 1000, NULL);
    ck_assert_status(finish(f, &g), ST_OK);
    wait_s(f, most_s - 1);
    ck_assert_uint_eq(stats(f).total, 1);
    wait_s(f, 1);
    ck_assert_uint_eq(stats(f).total, 0);
    wait_s(f, 1000);
    list_ready(f);
    expect_nothing(f);
}

STORE_TEST(a_message_whose_life_is_longer_than_the_longest_keeps_it)
{
    const int64_t most_s = 1209600;
    struct store_record records[] = {
        {.kind = STORE_RECORD_QUEUE, .metadata.settings = STORE_SETTINGS_INIT},
        {.kind = STORE_RECORD_MESSAGE,
         .message = {.body = BYTES_LIT("1"),
                     .posted_ms = START_MS,
                     .expires_ms = START_MS + (most_s + 5000) * 1000}}};
    struct finishing g;

    ck_assert_status(store_apply(f->store, STORE_AT(f->now_ms), &f->queue, records, 2),
                     ST_OK);
    f->posted = 1;
    g = finishing_of(f, take(f, 1));
    f->ids[1] = f->seen.messages[0].id;
    then_release(&g, 1, 1000, NULL);
    ck_assert_status(finish(f, &g), ST_OK);
    get(f, 1);
    ck_assert_int_eq(f->seen.messages[0].expires_ms, START_MS + (most_s + 5000) * 1000);
}

STORE_TEST(a_message_is_delayed_again_and_again)
{
    post_with(f, 60, 0);
    for (int i = 1; i <= 4; i++) {
        struct finishing g = finishing_of(f, take_for(f, 1, 5, 1));

        ck_assert_uint_eq(f->seen.messages[0].claim_count, (uint32_t)i);
        then_release(&g, 1, 100, i == 2 ? "twice" : NULL);
        ck_assert_status(finish(f, &g), ST_OK);
        get(f, 1);
        ck_assert_int_eq(f->seen.messages[0].expires_ms,
                         START_MS + (60 + i * 100) * 1000);
        wait_s(f, 100);
    }
    expect_details(f, 1, "twice", "worker", 100, NULL, -1);
}

STORE_TEST(the_last_reason_stays_and_is_replaced_by_the_next)
{
    struct finishing g;

    post(f, 1);
    g = finishing_of(f, take(f, 1));
    then_release(&g, 1, 0, "first");
    ck_assert_status(finish(f, &g), ST_OK);
    expect_details(f, 1, "first", "worker", 0, NULL, -1);
    wait_s(f, 10);
    g = finishing_of(f, take(f, 1));
    ck_assert_ptr_nonnull(f->seen.messages[0].details); /* a claim shows it */
    ck_assert(bytes_equal_str(f->seen.messages[0].details->reason, "first"));
    g.request.client = bytes_str("another");
    then_release(&g, 1, 0, NULL); /* which is not kept without a reason */
    ck_assert_status(finish(f, &g), ST_OK);
    expect_details(f, 1, "first", "worker", 0, NULL, -1);
    wait_s(f, 10);
    g = finishing_of(f, take(f, 1));
    g.request.client = BYTES_NONE;
    then_release(&g, 1, 0, "second");
    ck_assert_status(finish(f, &g), ST_OK);
    expect_details(f, 1, "second", NULL, 20, NULL, -1);
    release(f, take(f, 1));
    expect_details(f, 1, "second", NULL, 20, NULL, -1);
    list_ready(f);
    ck_assert(bytes_equal_str(f->seen.messages[0].details->reason, "second"));
    pop(f, 1);
    ck_assert(bytes_equal_str(f->seen.messages[0].details->reason, "second"));
}

STORE_TEST(the_longest_reason_is_kept)
{
    char reason[STORE_REASON_MAX + 1];
    struct finishing g;

    memset(reason, 'r', STORE_REASON_MAX);
    reason[STORE_REASON_MAX] = '\0';
    post(f, 1);
    g = finishing_of(f, take(f, 1));
    g.request.client = bytes_str("123e4567-e89b-12d3-a456-426614174000");
    then_release(&g, 1, 0, reason);
    ck_assert_status(finish(f, &g), ST_OK);
    expect_details(f, 1, reason, "123e4567-e89b-12d3-a456-426614174000", 0, NULL, -1);
}

STORE_TEST(an_empty_reason_is_none)
{
    struct finishing g;

    post(f, 2);
    g = finishing_of(f, take(f, 2));
    then_release(&g, 1, 0, "");
    then_release(&g, 2, 0, "because");
    ck_assert_status(finish(f, &g), ST_OK);
    expect_details(f, 1, NULL, NULL, -1, NULL, -1);
    g = finishing_of(f, take(f, 2));
    then_release(&g, 1, 0, "");
    then_release(&g, 2, 0, "");
    ck_assert_status(finish(f, &g), ST_OK);
    expect_details(f, 1, NULL, NULL, -1, NULL, -1);
    expect_details(f, 2, "because", "worker", 0, NULL, -1);
}

STORE_TEST(a_delivery_that_does_not_count_is_taken_back)
{
    struct finishing g;

    make_dead_lettering(f, "q", 2, "failed", STORE_UNSET);
    post(f, 2);
    for (uint32_t i = 1; i <= 5; i++) {
        g = finishing_of(f, take(f, 1));
        expect(f, 1);
        ck_assert_uint_eq(f->seen.messages[0].claim_count, 1);
        then_release(&g, 1, 0, NULL);
        g.items[0].uncounted = true;
        ck_assert_status(finish(f, &g), ST_OK);
    }
    for (uint32_t i = 1; i <= 2; i++) {
        g = finishing_of(f, take(f, 1));
        expect(f, 1);
        ck_assert_uint_eq(f->seen.messages[0].claim_count, i);
        then_release(&g, 1, 0, NULL);
        ck_assert_status(finish(f, &g), ST_OK);
        ck_assert(g.items[0].exhausted == (i == 2));
    }
    expect_only_in(f, 1, "failed");
    take(f, 1);
    expect(f, 2);
}

/* ------------------------------------------------------------------ dead letters */

STORE_CASE("dead letters");

STORE_TEST(a_queue_without_a_dead_letter_queue_refuses_dead_letters)
{
    struct store_id claim;
    struct finishing g;

    post(f, 5);
    claim = take(f, 5);
    g = finishing_of(f, claim);
    then_one_of_each(&g);
    ck_assert_status(finish(f, &g), ST_CONFLICT);
    expect_untouched(f, claim);
    g.request.atomic = false;
    ck_assert_status(finish(f, &g), ST_CONFLICT);
    expect_untouched(f, claim);
}

STORE_TEST(dead_letters_need_no_limit_of_deliveries)
{
    struct store_settings settings = STORE_SETTINGS_INIT;
    struct finishing g;

    settings.dead_letter = bytes_str("failed");
    make_queue(f, &settings);
    post(f, 1);
    g = finishing_of(f, take(f, 1));
    then_dead_letter(&g, 1, NULL);
    ck_assert_status(finish(f, &g), ST_OK);
    expect_only_in(f, 1, "failed");
    use(f, "failed");
    expect_details(f, 1, NULL, NULL, -1, "q", 0);
    get(f, 1);
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 0);
}

STORE_TEST(a_reason_is_kept_into_the_dead_letter_queue)
{
    struct finishing g;

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 2);
    g = finishing_of(f, take(f, 2));
    then_release(&g, 1, 0, "timeout");
    then_release(&g, 2, 0, "timeout");
    ck_assert_status(finish(f, &g), ST_OK);
    use(f, "failed");
    expect_details(f, 1, "timeout", "worker", 0, "q", 0);
    expect_details(f, 2, "timeout", "worker", 0, "q", 0);
}

STORE_TEST(a_dead_letter_without_a_reason_keeps_the_last_one)
{
    struct finishing g;

    make_dead_lettering(f, "q", 9, "failed", STORE_UNSET);
    post(f, 2);
    g = finishing_of(f, take(f, 2));
    then_release(&g, 1, 0, "timeout");
    then_release(&g, 2, 0, "timeout");
    ck_assert_status(finish(f, &g), ST_OK);
    wait_s(f, 10);
    g = finishing_of(f, take(f, 2));
    then_dead_letter(&g, 1, NULL);
    then_dead_letter(&g, 2, "hopeless");
    ck_assert_status(finish(f, &g), ST_OK);
    use(f, "failed");
    expect_details(f, 1, "timeout", "worker", 0, "q", 10);
    expect_details(f, 2, "hopeless", "worker", 10, "q", 10);
}

STORE_TEST(a_queue_may_be_its_own_dead_letter_queue)
{
    struct finishing g;

    make_dead_lettering(f, "q", 1, "q", STORE_UNSET);
    post(f, 3);
    g = finishing_of(f, take(f, 2));
    then_dead_letter(&g, 1, "once more");
    then_dead_letter(&g, 2, NULL);
    then_post(&g, "q", 1);
    ck_assert_status(finish(f, &g), ST_OK);
    list_ready(f);
    ck_assert_uint_eq(f->seen.count, 4);
    expect_details(f, 1, "once more", "worker", 0, "q", 0);
    expect_details(f, 2, NULL, NULL, -1, "q", 0);
    take(f, 4);
    ck_assert_uint_eq(f->seen.count, 4);
    ck_assert_uint_eq(f->seen.messages[3].claim_count, 1);
}

STORE_TEST(a_finish_may_post_to_the_dead_letter_queue_that_it_makes)
{
    struct store_id claim = claim_of(f, 5);
    struct finishing g = finishing_of(f, claim);

    then_dead_letter(&g, 1, NULL);
    then_dead_letter(&g, 2, NULL);
    then_post(&g, "failed", 2); /* 6 7 */
    ck_assert_status(finish(f, &g), ST_OK);
    use(f, "failed");
    list_ready(f);
    ck_assert_uint_eq(f->seen.count, 4);
    get(f, 1, 2, 6, 7);
    expect(f, 1, 2, 6, 7);
    post(f, 1); /* 8 */
    list_ready(f);
    ck_assert(id_same(f->seen.messages[4].id, f->ids[8]));
}

STORE_TEST(a_finish_may_post_to_the_dead_letter_queue_that_exists)
{
    struct store_id claim = claim_of(f, 5);
    struct finishing g = finishing_of(f, claim);

    use(f, "failed");
    post(f, 1); /* 6 */
    use(f, "q");
    then_dead_letter(&g, 5, NULL);
    then_dead_letter(&g, 1, NULL);
    then_post(&g, "failed", 1); /* 7 */
    then_post(&g, "q", 1);      /* 8 */
    ck_assert_status(finish(f, &g), ST_OK);
    list_all(f);
    expect(f, 2, 3, 4, 8);
    use(f, "failed");
    get(f, 1, 5, 6, 7);
    expect(f, 1, 5, 6, 7);
    expect_stats(f, 0, 4);
}

STORE_TEST(dead_letters_of_a_finish_get_the_life_of_dead_letters)
{
    struct finishing g;

    make_dead_lettering(f, "q", 9, "failed", 500);
    post(f, 1);
    post_with(f, 50, 0);
    g = finishing_of(f, take_for(f, 2, 30, 1));
    wait_s(f, 20);
    then_dead_letter(&g, 1, NULL);
    then_dead_letter(&g, 2, NULL);
    ck_assert_status(finish(f, &g), ST_OK);
    use(f, "failed");
    expect_times(f, 1, 500, 0);
    expect_times(f, 2, 500, 0);
    make_dead_lettering(f, "free", 9, "failed", STORE_UNSET);
    post_with(f, 50, 0);   /* 3 */
    post_with(f, 3000, 0); /* 4 */
    g = finishing_of(f, take_for(f, 2, 30, 1));
    wait_s(f, 20);
    then_dead_letter(&g, 3, NULL);
    then_dead_letter(&g, 4, NULL);
    ck_assert_status(finish(f, &g), ST_OK);
    use(f, "failed");
    expect_times(f, 3, 20 + FIXTURE_DEAD_LETTER_S, 20);
    expect_times(f, 4, 3000, 20);
}

STORE_TEST(the_most_dead_letters_and_posts_are_one_step)
{
    static const char *const names[STORE_FINISH_POSTS] = {"a", "b", "c", "d", "e",
                                                          "f", "g", "h", "i", "j"};
    static struct finishing g;

    make_dead_lettering(f, "q", 9, "failed", STORE_UNSET);
    post(f, STORE_FINISH_DEAD_LETTERS + 1);
    g = finishing_of(f, take(f, STORE_FINISH_DEAD_LETTERS + 1));
    for (int i = 1; i <= STORE_FINISH_DEAD_LETTERS; i++)
        then_dead_letter(&g, i, "all of them");
    for (size_t i = 0; i < STORE_FINISH_POSTS; i++)
        then_post(&g, names[i], 4);
    ck_assert_status(finish(f, &g), ST_OK);
    expect_stats(f, 1, 0);
    use(f, "failed");
    expect_stats(f, 0, STORE_FINISH_DEAD_LETTERS);
    for (size_t i = 0; i < STORE_FINISH_POSTS; i++) {
        use(f, names[i]);
        expect_stats(f, 0, 4);
    }
}

STORE_TEST(dead_letters_of_a_finish_are_encrypted_if_their_queue_is)
{
    struct store_settings settings = STORE_SETTINGS_INIT;
    struct finishing g;

    settings.encrypt = true;
    use(f, "failed");
    make_queue(f, &settings);
    make_dead_lettering(f, "q", 9, "failed", STORE_UNSET);
    post(f, 3);
    g = finishing_of(f, take(f, 3));
    then_release(&g, 2, 10, "slow");
    then_dead_letter(&g, 1, "bad");
    then_dead_letter(&g, 3, NULL);
    ck_assert_status(finish(f, &g), ST_OK);
    list_all(f);
    expect(f, 2);
    use(f, "failed");
    list_ready(f);
    ck_assert_uint_eq(f->seen.count, 2);
    for (size_t i = 0; i < 2; i++)
        ck_assert(store_is_sealed(f->seen.messages[i].body));
    ck_assert(id_same(f->seen.messages[0].id, f->ids[1]));
    ck_assert(bytes_equal_str(f->seen.messages[0].details->reason, "bad"));
    ck_assert(id_same(f->seen.messages[1].id, f->ids[3]));
}

/* ------------------------------------------------------------------ posts */

STORE_CASE("posts");

STORE_TEST(posts_go_to_their_queues_in_order)
{
    struct store_id claim = claim_of(f, 5);
    struct finishing g = finishing_of(f, claim);

    use(f, "next");
    post(f, 1); /* 6 */
    use(f, "q");
    then_post(&g, "next", 3);  /* 7 8 9 */
    then_post(&g, "other", 1); /* 10 */
    g.drafts[1][0].delay_s = 60;
    g.drafts[1][0].ttl_s = 100;
    ck_assert_status(finish(f, &g), ST_OK);
    use(f, "next");
    list_ready(f);
    expect(f, 6, 7, 8, 9);
    use(f, "other");
    list_ready(f);
    expect_nothing(f);
    wait_s(f, 60);
    list_ready(f);
    expect(f, 10);
    expect_times(f, 10, 100, 60);
}

STORE_TEST(a_post_that_is_refused_refuses_all)
{
    struct store_settings settings = STORE_SETTINGS_INIT;
    struct store_id claim = claim_of(f, 5);
    struct finishing g = finishing_of(f, claim);

    settings.max_post_bytes = 100;
    use(f, "small");
    make_queue(f, &settings);
    use(f, "q");
    then_one_of_each(&g); /* the first post: it could be done */
    then_post(&g, "small", 1);
    then_post(&g, "other", 1);
    g.posts[1].post.request_bytes = 101;
    ck_assert_status(finish(f, &g), ST_TOO_LARGE);
    ck_assert_uint_eq(g.request.failed_post, 1);
    expect_untouched(f, claim);
    expect_queue_exists(f, "other", false);
    g.posts[1].post.request_bytes = 100;
    g.posts[2].post.create_queue = false;
    ck_assert_status(finish(f, &g), ST_NOT_FOUND);
    ck_assert_uint_eq(g.request.failed_post, 2);
    expect_untouched(f, claim);
    use(f, "small");
    expect_stats(f, 0, 0);
    use(f, "q");
    g.posts[2].post.create_queue = true;
    ck_assert_status(finish(f, &g), ST_OK);
    ck_assert_uint_eq(g.request.failed_post, 3);
}

STORE_TEST(a_post_in_clear_to_a_queue_that_encrypts_refuses_all)
{
    struct store_settings settings = STORE_SETTINGS_INIT;
    struct store_id claim = claim_of(f, 5);
    struct finishing g = finishing_of(f, claim);

    settings.encrypt = true;
    use(f, "secret");
    make_queue(f, &settings);
    use(f, "q");
    then_one_of_each(&g);
    then_post(&g, "secret", 1);
    ck_assert_status(finish(f, &g), ST_NOT_SEALED);
    ck_assert_uint_eq(g.request.failed_post, 1);
    expect_untouched(f, claim);
    g.drafts[1][0].body = bytes_str("\x01 sealed");
    ck_assert_status(finish(f, &g), ST_OK);
    use(f, "secret");
    expect_stats(f, 0, 1);
}

STORE_TEST(finish_reaches_transient_queues)
{
    struct store_settings settings = STORE_SETTINGS_INIT;
    struct finishing g;
    int round = 0;

    for (; round < 4; round++) {
        const bool from = round % 2 == 1, to = round / 2 == 1;
        const int first = f->posted + 1;

        settings.transient = to;
        use(f, "failed");
        make_queue(f, &settings);
        settings.transient = from;
        settings.dead_letter = bytes_str("failed");
        use(f, "q");
        make_queue(f, &settings);
        settings.dead_letter = BYTES_NONE;
        post(f, 4);
        g = finishing_of(f, take(f, 4));
        then_delete(&g, first);
        then_release(&g, first + 1, 10, "slow");
        then_dead_letter(&g, first + 2, "bad");
        then_post(&g, "failed", 1);
        then_renew(&g, 60, 60);
        ck_assert_status(finish(f, &g), ST_OK);
        ck_assert_uint_ne(g.request.number, 0);
        expect_details(f, first + 1, "slow", "worker", 0, NULL, -1);
        expect_stats(f, 1, 1);
        use(f, "failed");
        expect_details(f, first + 2, "bad", "worker", 0, "q", 0);
        expect_stats(f, 0, 2);
        delete_queue(f);
        use(f, "q");
        delete_queue(f);
    }
}

STORE_TEST(queues_of_other_projects_are_not_touched)
{
    struct store_id claim = claim_of(f, 5);
    struct finishing g = finishing_of(f, claim);

    use_project(f, "p2");
    use(f, "next");
    make_queue(f, NULL);
    use(f, "failed");
    make_queue(f, NULL);
    use_project(f, "p");
    use(f, "q");
    then_one_of_each(&g);
    ck_assert_status(finish(f, &g), ST_OK);
    use_project(f, "p2");
    use(f, "next");
    expect_stats(f, 0, 0);
    use(f, "failed");
    expect_stats(f, 0, 0);
}

/* ------------------------------------------------------------------ engines */

ENGINE_CASE("engines");

/* A queue that encrypts, and a message that the sealer of the fixture cannot encrypt. */
STORE_TEST_WITH(a_finish_whose_dead_letter_cannot_be_encrypted_changes_nothing,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    const struct store_draft draft = {BYTES_LIT("-1"), 3600, 0};
    const struct store_post one = {.drafts = &draft, .count = 1};
    struct store_settings settings = STORE_SETTINGS_INIT;
    struct finishing g;
    struct store_id claim;

    settings.encrypt = true;
    use(f, "failed");
    make_queue(f, &settings);
    make_dead_lettering(f, "q", 9, "failed", STORE_UNSET);
    post(f, 1);
    ck_assert_status(store_message_post(f->store, STORE_AT(f->now_ms), &f->queue, &one,
                                        &f->ids[++f->posted]),
                     ST_OK);
    claim = take(f, 2);
    g = finishing_of(f, claim);
    then_dead_letter(&g, 1, NULL);
    then_dead_letter(&g, 2, NULL);
    then_post(&g, "next", 1);
    ck_assert_status(finish(f, &g), ST_NO_KEY);
    ck_assert_status(query(f, claim), ST_OK);
    ck_assert_uint_eq(f->seen.count, 2);
    expect_queue_exists(f, "next", false);
}

/* ------------------------------------------------------------------ restarts */

STORE_CASE("restarts");

STORE_TEST(a_finish_survives_a_restart)
{
    struct store_id claim = claim_of(f, 5);
    struct finishing g = finishing_of(f, claim);

    then_one_of_each(&g);
    ck_assert_status(finish(f, &g), ST_OK);
    fixture_restart(f);
    ck_assert_status(query(f, claim), ST_OK);
    expect(f, 4, 5);
    ck_assert_int_eq(f->seen.claim_ttl_s, 500);
    expect_details(f, 2, "busy", "worker", 0, NULL, -1);
    list_ready(f);
    expect_nothing(f);
    wait_s(f, 30);
    list_ready(f);
    expect(f, 2);
    use(f, "failed");
    expect_details(f, 3, "bad input", "worker", 0, "q", 0);
    use(f, "next");
    list_ready(f);
    expect(f, 6, 7);
}
