/*
 * Claims of any store: making, querying, renewing, releasing, and grace (docs/api.md 9).
 */
#include "support/delete.h"
#include "support/finishing.h"
#include "support/store_fixture.h"

/* ---------------------------------------------------------------------- create */

STORE_CASE("create");

STORE_TEST(a_claim_takes_the_oldest_ready_messages)
{
    struct store_id claim;

    post(f, 5);
    claim = take(f, 2);
    expect(f, 1, 2);
    ck_assert(id_same(f->seen.messages[0].claim_id, claim));
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 1);
    take(f, 2);
    expect(f, 3, 4);
    take(f, 2);
    expect(f, 5);
}

STORE_TEST(a_claim_skips_held_and_delayed_messages_wherever_they_stand)
{
    struct store_id middle;

    post(f, 3);
    post_with(f, 300, 60); /* 4 */
    post(f, 2);            /* 5 6 */
    take(f, 1);
    middle = take(f, 1);
    take(f, 1);
    release(f, middle);
    take(f, 10);
    expect(f, 2, 5, 6);
}

STORE_TEST(a_claim_of_100_gives_23_of_23_and_the_oldest_100_of_120)
{
    post(f, 23);
    take(f, 100);
    ck_assert_uint_eq(f->seen.count, 23);
    post(f, 120);
    take(f, 100);
    ck_assert_uint_eq(f->seen.count, 100);
    ck_assert(id_same(f->seen.messages[99].id, f->ids[123]));
    expect_stats(f, 123, 20);
}

STORE_TEST(nothing_to_claim_makes_no_claim)
{
    ck_assert(id_empty(take(f, 5))); /* unknown queue */
    make_queue(f, NULL);             /* it was not made */
    ck_assert(id_empty(take(f, 5))); /* empty */
    post_with(f, 300, 60);
    ck_assert(id_empty(take(f, 5))); /* only a delayed message */
    post(f, 1);
    ck_assert(!id_empty(take(f, 5)));
    ck_assert(id_empty(take(f, 5))); /* all held */
}

STORE_TEST(two_claims_have_two_ids)
{
    struct store_id first, second;

    post(f, 2);
    first = take(f, 1);
    second = take(f, 1);
    ck_assert(!id_same(first, second));
}

STORE_TEST(a_claim_takes_nothing_when_the_caller_has_too_little_space)
{
    const struct store_terms terms = {300, 60};

    post(f, 12); /* bodies of 1 byte, the last three of 2 */
    f->seen.capacity = 12;
    ck_assert_status(store_claim_create(f->store, STORE_AT(f->now_ms), &f->queue, &terms,
                                        11, &f->seen),
                     ST_OVER_CAPACITY);
    ck_assert_uint_eq(f->seen.count, 0);
    ck_assert_uint_eq(f->seen.capacity, 13);
    ck_assert(id_empty(f->seen.claim_id));
    expect_stats(f, 0, 12);
    get(f, 1);
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 0);
    store_batch_release(&f->seen);
    f->seen.capacity = 13;
    ck_assert_status(store_claim_create(f->store, STORE_AT(f->now_ms), &f->queue, &terms,
                                        11, &f->seen),
                     ST_OK);
    expect(f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
}

STORE_TEST(every_claim_of_a_message_is_counted_and_renewals_are_not)
{
    struct store_id claim;

    post_with(f, 1000000, 0);
    for (uint32_t n = 1; n <= 5; n++) {
        claim = take(f, 1);
        ck_assert_uint_eq(f->seen.messages[0].claim_count, n);
        ck_assert_status(renew(f, claim, 300, 60), ST_OK);
        if (n % 2 == 0)
            release(f, claim);
        else
            wait_s(f, 300);
        get(f, 1);
        ck_assert_uint_eq(f->seen.messages[0].claim_count, n);
    }
}

/* ---------------------------------------------------------------------- defaults */

STORE_CASE("defaults");

/* Claims a new message with these terms, which lives for 60 s otherwise. */
static struct store_id
claim_new(struct fixture *f, int64_t ttl_s, int64_t grace_s)
{
    post_with(f, 60, 0);
    return take_for(f, 1, ttl_s, grace_s);
}

/* Ends the claim, and drops its message. The claim has this TTL, and its message this
 * lifetime. */
static void
expect_terms(struct fixture *f, struct store_id claim, int64_t ttl_s, int64_t life_s)
{
    ck_assert_status(query(f, claim), ST_OK);
    ck_assert_int_eq(f->seen.claim_ttl_s, ttl_s);
    ck_assert_uint_eq(f->seen.count, 1);
    ck_assert_int_eq(f->seen.messages[0].expires_ms, f->now_ms + life_s * 1000);
    wait_s(f, ttl_s - 1);
    ck_assert_status(query(f, claim), ST_OK);
    wait_s(f, 1);
    ck_assert_status(query(f, claim), ST_NOT_FOUND);
    wait_s(f, life_s);
}

STORE_TEST(terms_are_the_claims_own_else_the_queues_else_the_servers)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.claim_ttl_s = 90;
    settings.claim_grace_s = 0;
    make_queue(f, &settings);
    expect_terms(f, claim_new(f, STORE_UNSET, STORE_UNSET), 90, 90);
    expect_terms(f, claim_new(f, STORE_UNSET, 70), 90, 160);
    expect_terms(f, claim_new(f, 80, STORE_UNSET), 80, 80);
    expect_terms(f, claim_new(f, 80, 70), 80, 150);
    use(f, "plain");
    expect_terms(f, claim_new(f, STORE_UNSET, STORE_UNSET), 300, 360);
}

STORE_TEST(each_default_of_claims_stands_alone)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.claim_ttl_s = 90;
    make_queue(f, &settings);
    expect_terms(f, claim_new(f, STORE_UNSET, STORE_UNSET), 90, 150);
    use(f, "graceful");
    settings = (struct store_settings)STORE_SETTINGS_INIT;
    settings.claim_grace_s = 100;
    make_queue(f, &settings);
    expect_terms(f, claim_new(f, STORE_UNSET, STORE_UNSET), 300, 400);
}

STORE_TEST(a_renewal_has_the_defaults_of_the_queue)
{
    struct store_settings settings = STORE_SETTINGS_INIT;
    struct store_id claim;

    settings.claim_ttl_s = 500;
    settings.claim_grace_s = 7;
    make_queue(f, &settings);
    claim = claim_new(f, 100, 0);
    ck_assert_status(renew(f, claim, STORE_UNSET, STORE_UNSET), ST_OK);
    expect_terms(f, claim, 500, 507);
}

STORE_TEST(a_finish_renews_a_claim_with_the_defaults_of_the_queue)
{
    struct store_settings settings = STORE_SETTINGS_INIT;
    struct finishing g;
    struct store_id claim;

    settings.claim_ttl_s = 500;
    settings.claim_grace_s = 7;
    make_queue(f, &settings);
    claim = claim_new(f, 100, 0);
    g = finishing_of(f, claim);
    then_renew(&g, STORE_UNSET, STORE_UNSET);
    ck_assert_status(finish(f, &g), ST_OK);
    expect_terms(f, claim, 500, 507);
}

static void
change_settings(struct fixture *f, const struct store_settings *settings)
{
    const struct store_metadata changed = {.settings = *settings};
    struct store_queues found = STORE_QUEUES_INIT;

    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &found),
                     ST_OK);
    ck_assert_status(store_queue_update(f->store, STORE_AT(f->now_ms), &f->queue,
                                        found.queues[0].version, &changed),
                     ST_OK);
    store_queues_release(&found);
}

STORE_TEST(changed_defaults_apply_to_the_next_claim)
{
    struct store_settings settings = STORE_SETTINGS_INIT;
    struct store_id first;

    settings.claim_ttl_s = 90;
    make_queue(f, &settings);
    first = claim_new(f, STORE_UNSET, STORE_UNSET);
    settings.claim_ttl_s = 200;
    change_settings(f, &settings);
    expect_terms(f, first, 90, 150);
    expect_terms(f, claim_new(f, STORE_UNSET, STORE_UNSET), 200, 260);
    change_settings(f, &(struct store_settings)STORE_SETTINGS_INIT);
    expect_terms(f, claim_new(f, STORE_UNSET, STORE_UNSET), 300, 360);
}

STORE_TEST(defaults_of_claims_survive_a_restart)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.claim_ttl_s = 90;
    settings.claim_grace_s = 8;
    make_queue(f, &settings);
    fixture_restart(f);
    expect_terms(f, claim_new(f, STORE_UNSET, STORE_UNSET), 90, 98);
    settings.claim_ttl_s = STORE_UNSET;
    change_settings(f, &settings);
    fixture_restart(f);
    expect_terms(f, claim_new(f, STORE_UNSET, STORE_UNSET), 300, 308);
}

/* ---------------------------------------------------------------------- query */

STORE_CASE("query");

STORE_TEST(claims_of_a_message_are_counted_beyond_any_small_number)
{
    post(f, 1);
    for (uint32_t i = 1; i <= 300; i++) {
        struct store_id claim = take(f, 1);

        ck_assert_uint_eq(f->seen.messages[0].claim_count, i);
        release(f, claim);
    }
}

STORE_TEST(a_claim_shows_its_terms_its_age_and_what_it_holds)
{
    struct store_id claim;

    post(f, 4);
    wait_s(f, 10);
    claim = take_for(f, 3, 300, 60);
    wait_ms(f, 57999);
    ck_assert_status(query(f, claim), ST_OK);
    expect(f, 1, 2, 3);
    ck_assert(id_same(f->seen.claim_id, claim));
    ck_assert_int_eq(f->seen.claim_ttl_s, 300);
    ck_assert_int_eq(f->seen.claim_age_s, 57);
    ck_assert_int_eq(f->seen.messages[0].age_s, 67);
    ck_assert(id_same(f->seen.messages[2].claim_id, claim));
}

STORE_TEST(a_claim_shows_only_what_it_still_holds)
{
    struct store_id claim;

    post(f, 3);
    claim = take(f, 3);
    delete_claimed(f, 2, claim);
    ck_assert_status(query(f, claim), ST_OK);
    expect(f, 1, 3);
}

/* The claim is over, and it looks like one that was released. */
static void
expect_over(struct fixture *f, struct store_id claim)
{
    ck_assert_status(query(f, claim), ST_NOT_FOUND);
    ck_assert_status(renew(f, claim, 300, 60), ST_NOT_FOUND);
    release(f, claim); /* fine, and nothing happens */
}

STORE_TEST(a_claim_is_over_when_its_last_message_is_deleted)
{
    struct store_id claim;

    post(f, 3);
    claim = take(f, 2);
    delete_claimed(f, 1, claim);
    ck_assert_status(query(f, claim), ST_OK);
    expect(f, 2);
    delete_claimed(f, 2, claim);
    expect_over(f, claim);
    ck_assert_status(delete_claimed(f, 3, claim), ST_NOT_CLAIMED);
    take(f, 1); /* 3 */
    ck_assert_status(delete_claimed(f, 3, claim), ST_NOT_CLAIMED);
}

STORE_TEST(a_claim_is_over_when_several_are_deleted_at_once)
{
    struct bytes ids[3];
    struct store_id claim, other;

    post(f, 4);
    claim = take(f, 2); /* 1 2 */
    other = take(f, 2); /* 3 4 */
    for (int i = 0; i < 3; i++)
        ids[i] = id_of(f, i + 1);
    ck_assert_status(
        delete_messages(f->store, STORE_AT(f->now_ms), &f->queue, ids, 3, NULL, 0),
        ST_OK);
    expect_over(f, claim);
    ck_assert_status(query(f, other), ST_OK);
    expect(f, 4);
}

STORE_TEST(a_claim_is_over_when_its_messages_have_expired)
{
    struct store_id claim, longer;

    post_with(f, 60, 0);
    post_with(f, 60, 0);
    claim = take_for(f, 1, 2000000, 60); /* longer than a message may live */
    wait_s(f, 10);
    longer = take_for(f, 1, 2000000, 60);
    wait_ms(f, (1209600 - 10) * INT64_C(1000) - 1);
    ck_assert_status(query(f, claim), ST_OK);
    wait_ms(f, 1);
    expect_over(f, claim);
    ck_assert_status(delete_claimed(f, 2, claim), ST_NOT_CLAIMED);
    ck_assert_status(query(f, longer), ST_OK);
    expect(f, 2);
}

STORE_TEST(an_unknown_claim_is_not_found_and_may_be_released)
{
    static const char *const texts[] = {"", "nonsense", "ffffffffffffffffffffffff", "1"};

    for (int round = 0; round < 2; round++) { /* without the queue and with it */
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
            struct store_id unknown = text_id(texts[i]);

            ck_assert_status(query(f, unknown), ST_NOT_FOUND);
            ck_assert_status(renew(f, unknown, 300, 60), ST_NOT_FOUND);
            release(f, unknown);
        }
        post(f, 1);
        take(f, 1);
    }
    ck_assert_status(query(f, f->ids[1]), ST_NOT_FOUND); /* a message is no claim */
    expect_stats(f, 2, 0);
}

STORE_TEST(a_claim_has_one_id_only)
{
    enum { NUMBER_AT = 12 };
    struct store_id claim, other;

    post(f, 1);
    claim = take(f, 1);
    for (size_t i = 0; i < LENIENT_BEGINS; i++) {
        other = lenient_id(claim, NUMBER_AT, lenient_begins[i]);
        ck_assert_status(query(f, other), ST_NOT_FOUND);
        ck_assert_status(renew(f, other, 300, 60), ST_NOT_FOUND);
        ck_assert_status(delete_claimed(f, 1, other), ST_NOT_CLAIMED);
        release(f, other);
        expect_stats(f, 1, 0);
    }
}

STORE_TEST(a_claim_is_unknown_through_another_queue_or_project)
{
    struct store_id claim;

    use(f, "other");
    post(f, 1);
    use(f, "q");
    use_project(f, "p2");
    post(f, 1);
    use_project(f, "p");
    post(f, 1); /* 3 */
    claim = take(f, 1);
    for (int i = 0; i < 2; i++) {
        use(f, i == 0 ? "other" : "q");
        use_project(f, i == 0 ? "p" : "p2");
        ck_assert_status(query(f, claim), ST_NOT_FOUND);
        ck_assert_status(renew(f, claim, 1000, 60), ST_NOT_FOUND);
        release(f, claim);
    }
    use_project(f, "p");
    ck_assert_status(query(f, claim), ST_OK);
    expect(f, 3);
    ck_assert_int_eq(f->seen.claim_ttl_s, 300);
}

/* ---------------------------------------------------------------------- release */

STORE_CASE("release and renew");

STORE_TEST(released_messages_return_to_their_old_place)
{
    struct store_id oldest;

    post(f, 5);
    oldest = take(f, 2); /* 1 2 */
    take(f, 1);          /* 3 */
    release(f, oldest);
    take(f, 4);
    expect(f, 1, 2, 4, 5); /* never 3: it is still held */
}

STORE_TEST(a_released_claim_is_unknown)
{
    struct store_id claim;

    post(f, 1);
    claim = take(f, 1);
    release(f, claim);
    ck_assert_status(query(f, claim), ST_NOT_FOUND);
    ck_assert_status(renew(f, claim, 300, 60), ST_NOT_FOUND);
    release(f, claim); /* again: ignored */
    get(f, 1);
    ck_assert(id_empty(f->seen.messages[0].claim_id));
}

STORE_TEST(releasing_an_old_claim_does_not_disturb_the_new_holder)
{
    struct store_id old, holder;

    post(f, 1);
    old = take_for(f, 1, 60, 60);
    wait_s(f, 60);
    holder = take(f, 1);
    release(f, old);
    ck_assert_status(query(f, holder), ST_OK);
    expect(f, 1);
    ck_assert(id_empty(take(f, 1)));
}

/* ---------------------------------------------------------------------- renew */

STORE_TEST(renewing_starts_the_claim_anew_with_the_new_terms)
{
    struct store_id claim;

    post(f, 1);
    claim = take_for(f, 1, 100, 60);
    wait_s(f, 99);
    ck_assert_status(renew(f, claim, 200, 60), ST_OK);
    wait_s(f, 150);
    ck_assert_status(query(f, claim), ST_OK);
    expect(f, 1);
    ck_assert_int_eq(f->seen.claim_ttl_s, 200);
    ck_assert_int_eq(f->seen.claim_age_s, 150);
    wait_s(f, 50);
    ck_assert_status(query(f, claim), ST_NOT_FOUND);
}

STORE_TEST(a_shorter_renewal_ends_the_claim_earlier)
{
    struct store_id claim;

    post(f, 1);
    claim = take_for(f, 1, 1000, 60);
    ck_assert_status(renew(f, claim, 60, 60), ST_OK);
    wait_ms(f, 59999);
    ck_assert(id_empty(take(f, 1)));
    wait_ms(f, 1);
    take(f, 1);
    expect(f, 1);
}

/* ---------------------------------------------------------------------- grace */

STORE_CASE("grace");

STORE_TEST(a_claimed_message_lives_at_least_claim_and_grace)
{
    /* docs/api.md 9.6: claim at the second of posting, ttl 100 and grace 60 */
    static const struct {
        int64_t message_ttl, claim_ttl, grace, then;
    } examples[] = {
        {60, 100, 60, 160},        {150, 100, 60, 160}, {1000, 100, 60, 1000},
        {300, 300, 60, 360},       {160, 100, 60, 160}, {161, 100, 60, 161},
        {60, 43200, 43200, 86400},
    };

    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        int number = post_with(f, examples[i].message_ttl, 0);

        take_for(f, 1, examples[i].claim_ttl, examples[i].grace);
        expect(f, number);
        ck_assert_int_eq(f->seen.messages[0].ttl_s, examples[i].then);
        expect_times(f, number, examples[i].then, 0);
    }
}

STORE_TEST(a_lengthened_ttl_still_counts_from_posting)
{
    post_with(f, 60, 0);
    wait_s(f, 50);
    take_for(f, 1, 100, 60);
    expect_times(f, 1, 210, 50); /* 160 s are left */
    wait_ms(f, 159999);
    expect_times(f, 1, 210, 209);
    wait_ms(f, 1);
    get(f, 1);
    expect_nothing(f);
}

STORE_TEST(a_renewal_lengthens_only_what_the_claim_still_holds)
{
    struct store_id claim;

    post_with(f, 60, 0);
    post_with(f, 60, 0);
    post_with(f, 60, 0);
    claim = take_for(f, 2, 60, 60);
    delete_claimed(f, 1, claim);
    wait_s(f, 10);
    ck_assert_status(renew(f, claim, 500, 100), ST_OK);
    expect_times(f, 2, 610, 10);
    expect_times(f, 3, 60, 10); /* never claimed */
}

STORE_TEST(neither_a_shorter_renewal_nor_a_release_shortens_a_life)
{
    struct store_id claim;

    post_with(f, 60, 0);
    claim = take_for(f, 1, 1000, 60);
    ck_assert_status(renew(f, claim, 60, 60), ST_OK);
    expect_times(f, 1, 1060, 0);
    release(f, claim);
    expect_times(f, 1, 1060, 0);
    take_for(f, 1, 60, 60);
    expect_times(f, 1, 1060, 0);
}

START_TEST(claim_and_grace_together_give_at_most_the_longest_life)
{
    struct store_id claim;
    struct fixture f;

    fixture_open(&f, _i); /* max_message_ttl: 1209600 */
    post_with(&f, 60, 0);
    claim = take_for(&f, 1, 1209500, 200);
    expect_times(&f, 1, 1209600, 0);
    wait_s(&f, 1000); /* every renewal counts anew */
    ck_assert_status(renew(&f, claim, 1209600, 60), ST_OK);
    expect_times(&f, 1, 1210600, 1000);
    ck_assert_status(renew(&f, claim, 1209500, 99), ST_OK);
    expect_times(&f, 1, 1210600, 1000);
    fixture_close(&f);
}

STORE_TEST(a_message_may_expire_under_a_claim_longer_than_the_longest_life)
{
    struct store_id claim;

    post_with(f, 60, 0);
    claim = take_for(f, 1, 2000000, 60);
    wait_ms(f, 1209600 * INT64_C(1000) - 1);
    ck_assert_status(query(f, claim), ST_OK);
    expect(f, 1);
    wait_ms(f, 1);
    expect_stats(f, 0, 0);
    expect_over(f, claim);
}
