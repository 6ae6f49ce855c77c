/* Posting to any store: ids, order, defaults, limits, all or nothing. */
#include "support/delete.h"
#include "support/store_fixture.h"

#include <ctype.h>

/* Posts two messages in a request of this size. */
static enum status
post_sized(struct fixture *f, size_t request_bytes, bool create_queue)
{
    const struct store_draft drafts[2] = {{bytes_str("901"), 300, 0},
                                          {bytes_str("902"), 300, 0}};
    struct store_post request = {.drafts = drafts,
                                 .count = 2,
                                 .client = f->client,
                                 .request_bytes = request_bytes,
                                 .create_queue = create_queue};
    struct store_id ids[2];
    enum status st;

    st = store_message_post(f->store, STORE_AT(f->now_ms), &f->queue, &request, ids);
    ck_assert(store_audit(f->store));
    return st;
}

STORE_CASE("post");

STORE_TEST(messages_are_kept_in_the_order_of_posting)
{
    post(f, 3);
    post(f, 1);
    wait_ms(f, 1);
    post(f, 2);
    list_all(f);
    expect(f, 1, 2, 3, 4, 5, 6);
}

STORE_TEST(every_message_has_an_id_of_its_own_made_of_letters_and_digits)
{
    post(f, 50);
    use(f, "other");
    post(f, 50);
    for (int i = 1; i <= 100; i++) {
        ck_assert_uint_gt(id_of(f, i).len, 0);
        for (const char *c = f->ids[i].text; *c != '\0'; c++)
            ck_assert(isalnum((unsigned char)*c) || *c == '_');
        for (int k = 1; k < i; k++)
            ck_assert(!id_same(f->ids[i], f->ids[k]));
    }
}

STORE_TEST(a_post_of_many_messages_keeps_them_all)
{
    int numbers[700];

    post(f, 700);
    for (int i = 0; i < 700; i++)
        numbers[i] = i + 1;
    list_all(f);
    expect_numbers(f, numbers, 700, __FILE__, __LINE__);
    get_numbers(f, numbers, 700);
    expect_numbers(f, numbers, 700, __FILE__, __LINE__);
}

STORE_TEST(bodies_come_back_byte_for_byte)
{
    static const char raw[] = "{\"a\\u0000\": [1.50, \"\xc5\xbe\"],\t\"b\":null}";
    const struct store_draft drafts[2] = {{bytes_str(raw), 300, 0},
                                          {bytes_of("\"x\0y\"", 5), 300, 0}};
    const struct store_post request = {
        .drafts = drafts, .count = 2, .client = 1, .create_queue = true};
    struct store_id ids[2];

    ck_assert_status(
        store_message_post(f->store, STORE_AT(f->now_ms), &f->queue, &request, ids),
        ST_OK);
    list_all(f);
    ck_assert_uint_eq(f->seen.count, 2);
    ck_assert(bytes_equal(f->seen.messages[0].body, drafts[0].body));
    ck_assert(bytes_equal(f->seen.messages[1].body, drafts[1].body));
}

STORE_TEST(a_shown_body_stays_readable_after_its_message_is_gone)
{
    post(f, 2);
    list_all(f);
    ck_assert_status(
        delete_message(f->store, STORE_AT(f->now_ms), &f->queue, id_of(f, 1), BYTES_NONE),
        ST_OK);
    ck_assert_status(store_queue_delete(f->store, STORE_AT(f->now_ms), &f->queue), ST_OK);
    expect(f, 1, 2);
}

STORE_TEST(posting_makes_the_queue_only_on_request)
{
    ck_assert_status(post_sized(f, 0, false), ST_NOT_FOUND);
    list_all(f);
    expect_nothing(f);
    make_queue(f, NULL); /* it was not there */
    ck_assert_status(post_sized(f, 0, false), ST_OK);
    use(f, "new");
    ck_assert_status(post_sized(f, 0, true), ST_OK);
    expect_stats(f, 0, 2);
}

STORE_TEST(a_request_larger_than_the_queue_allows_is_refused_whole)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.max_post_bytes = 100;
    make_queue(f, &settings);
    ck_assert_status(post_sized(f, 101, true), ST_TOO_LARGE);
    expect_stats(f, 0, 0);
    ck_assert_status(post_sized(f, 100, true), ST_OK);
    ck_assert_status(post_sized(f, 0, true), ST_OK); /* 0: not compared */
    expect_stats(f, 0, 4);
    use(f, "boundless");
    ck_assert_status(post_sized(f, 1 << 20, true), ST_OK);
}

STORE_CASE("defaults");

STORE_TEST(lifetime_is_the_messages_own_else_the_queues_else_the_servers)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.message_ttl_s = 777;
    make_queue(f, &settings);
    post_with(f, 60, 0);
    post_with(f, STORE_UNSET, 0);
    expect_times(f, 1, 60, 0);
    expect_times(f, 2, 777, 0);
    use(f, "plain");
    post_with(f, STORE_UNSET, 0);
    expect_times(f, 3, 3600, 0);
}

STORE_TEST(delay_is_the_messages_own_else_the_queues_else_the_servers)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.message_delay_s = 10;
    make_queue(f, &settings);
    post_with(f, 300, 0); /* an own delay of 0 counts */
    post_with(f, 300, STORE_UNSET);
    post_with(f, 300, 5);
    list_ready(f);
    expect(f, 1);
    wait_s(f, 5);
    list_ready(f);
    expect(f, 1, 3);
    wait_s(f, 5);
    list_ready(f);
    expect(f, 1, 2, 3);
    use(f, "plain");
    post_with(f, 300, STORE_UNSET);
    list_ready(f);
    expect(f, 4);
}

/* Posts one message to the present queue, which may not exist. */
static enum status
try_post(struct fixture *f, int64_t ttl_s, int64_t delay_s)
{
    const struct store_draft draft = {BYTES_LIT("1"), ttl_s, delay_s};
    const struct store_post post = {.drafts = &draft, .count = 1, .create_queue = true};
    struct store_id id;

    return store_message_post(f->store, STORE_AT(f->now_ms), &f->queue, &post, &id);
}

STORE_TEST(a_delay_is_shorter_than_the_lifetime)
{
    struct store_settings settings = STORE_SETTINGS_INIT;
    struct store_queues queues = STORE_QUEUES_INIT;

    use(f, "new");
    ck_assert_status(try_post(f, 60, 60), ST_NEVER_READY);
    ck_assert_status(try_post(f, STORE_UNSET, 3600), ST_NEVER_READY);
    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &queues),
                     ST_NOT_FOUND);
    ck_assert_status(try_post(f, 60, 59), ST_OK);
    use(f, "q");
    settings.message_ttl_s = 120;
    settings.message_delay_s = 100;
    make_queue(f, &settings);
    ck_assert_status(try_post(f, 100, STORE_UNSET), ST_NEVER_READY);
    ck_assert_status(try_post(f, STORE_UNSET, 120), ST_NEVER_READY);
    expect_stats(f, 0, 0);
    ck_assert_status(try_post(f, STORE_UNSET, STORE_UNSET), ST_OK);
    ck_assert_status(try_post(f, 101, STORE_UNSET), ST_OK);
    ck_assert_status(try_post(f, STORE_UNSET, 119), ST_OK);
}

STORE_TEST(new_defaults_concern_only_messages_posted_afterwards)
{
    struct store_metadata metadata = {BYTES_NONE, STORE_SETTINGS_INIT};
    struct store_queues queues = STORE_QUEUES_INIT;

    post_with(f, STORE_UNSET, STORE_UNSET);
    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &queues),
                     ST_OK);
    metadata.settings.message_ttl_s = 90;
    metadata.settings.message_delay_s = 20;
    ck_assert_status(store_queue_update(f->store, STORE_AT(f->now_ms), &f->queue,
                                        queues.queues[0].version, &metadata),
                     ST_OK);
    store_queues_release(&queues);
    post_with(f, STORE_UNSET, STORE_UNSET);
    expect_times(f, 1, 3600, 0);
    expect_times(f, 2, 90, 0);
    list_ready(f);
    expect(f, 1);
}

STORE_TEST(a_new_message_was_never_claimed)
{
    post(f, 1);
    get(f, 1);
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 0);
    ck_assert(id_empty(f->seen.messages[0].claim_id));
}
