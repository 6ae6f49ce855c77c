/* The store with a Redis that does not respond as the scripts do. */
#include "claimd/redis/redis.h"
#include "redis/script.h"
#include "support/resp.h"
#include "support/store_fixture.h"
#include "support/store_on_fake.h"

#include <stdio.h>

static struct store_on_fake f;
static struct resp response;

static void
open_alone(void)
{
    store_on_fake_open(&f, 0);
}

static void
open_with_replica(void)
{
    store_on_fake_open(&f, 1);
}

static void
close_store(void)
{
    store_on_fake_close(&f);
}

/* Responses the first script with `response`, or with this text. */
static void
play(const char *text)
{
    static struct fake_response script[2] = {{"FCALL", NULL}};

    script[0].response = text == NULL ? "@" : text;
    fake_redis_respond(&f.redis, bytes_of(response.text, response.size), false);
    fake_redis_play(&f.redis, script);
}

/* The response to a pop, or a claim, of so many messages. */
static void
write_taken(bool claimed, int count)
{
    resp_list(&response, (claimed ? 6 : 3) + count * RESP_MESSAGE_WORDS);
    resp_number(&response, RESPONSE_OK);
    resp_number(&response, START_MS);
    resp_text(&response, bytes_str("a0000000"));
    if (claimed) {
        resp_number(&response, 5); /* the claim */
        resp_number(&response, 7);
    }
    for (int i = 1; i <= count; i++)
        resp_message(&response, i, 0);
    if (claimed)
        resp_text(&response, bytes_str(""));
}

static enum status
pop_one(size_t *count)
{
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st = store_message_pop(f.store, STORE_AT(START_MS), &f.queue, 1, &batch);

    *count = batch.count;
    store_batch_release(&batch);
    return st;
}

static enum status
claim_one(size_t *count)
{
    const struct store_terms terms = {.ttl_s = 60, .grace_s = 60};
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st =
        store_claim_create(f.store, STORE_AT(START_MS), &f.queue, &terms, 1, &batch);

    *count = batch.count;
    store_batch_release(&batch);
    return st;
}

static enum status
list_names(size_t *count)
{
    const struct store_page page = {.project = f.queue.project, .limit = 1};
    struct store_queues queues = STORE_QUEUES_INIT;
    enum status st = store_queue_list(f.store, STORE_AT(START_MS), &page, &queues);

    *count = st == ST_OK ? queues.count : 0;
    if (st == ST_OK)
        store_queues_release(&queues);
    return st;
}

static enum status
get_one(void)
{
    const struct bytes id = bytes_str("a00000000000000000000001");
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st =
        store_message_get(f.store, STORE_AT(START_MS), &f.queue, &id, 1, &batch);

    store_batch_release(&batch);
    return st;
}

TEST_CASE("shapes", .setup = open_alone, .teardown = close_store);

START_TEST(valkey_is_named_by_its_own_version)
{
    ck_assert_str_eq(redis_servers(f.store), "Valkey 9.1.2");
}

START_TEST(more_messages_than_the_limit_of_a_pop_are_refused)
{
    size_t count;

    write_taken(false, 1);
    play(NULL);
    ck_assert_status(pop_one(&count), ST_OK);
    ck_assert_uint_eq(count, 1);
    write_taken(false, 60);
    play(NULL);
    ck_assert_status(pop_one(&count), ST_UNCONFIRMED); /* what has it removed? */
    ck_assert_uint_eq(count, 0);
}

START_TEST(more_names_than_a_page_has_are_not_taken_in)
{
    size_t count;

    play("*3\r\n:0\r\n:1\r\n$1\r\na\r\n");
    ck_assert_status(list_names(&count), ST_OK);
    ck_assert_uint_eq(count, 1);
    play("*4\r\n:0\r\n:2\r\n$1\r\na\r\n$1\r\nb\r\n");
    ck_assert_status(list_names(&count), ST_UNAVAILABLE);
}

/* Finishes two messages. Redis responds that it is done, with these digits for the
 * messages that are held. */
static enum status
finish_two(bool atomic, const char *held)
{
    static struct store_finish_item items[] = {
        {.action = STORE_FINISH_DELETE, .id = BYTES_LIT("a00000000000000000000001")},
        {.action = STORE_FINISH_RELEASE, .id = BYTES_LIT("a00000000000000000000002")}};
    struct store_finish request = {.claim_id = BYTES_LIT("a00000000000000000000003"),
                                   .items = items,
                                   .count = 2,
                                   .atomic = atomic};

    resp_list(&response, 6);
    resp_number(&response, RESPONSE_OK);
    resp_text(&response, bytes_str(held));
    resp_text(&response, bytes_str("a0000000"));
    for (int i = 0; i < 3; i++)
        resp_number(&response, 0);
    play(NULL);
    return store_claim_finish(f.store, STORE_AT(START_MS), &f.queue, &request);
}

START_TEST(an_atomic_finish_of_which_a_part_is_done_is_not_confirmed)
{
    ck_assert_status(finish_two(true, "11"), ST_OK);
    ck_assert_status(finish_two(true, "10"), ST_UNCONFIRMED);
    ck_assert_status(finish_two(true, "1"), ST_UNCONFIRMED);
    ck_assert_status(finish_two(false, "10"), ST_OK);
    ck_assert_status(finish_two(false, "100"), ST_UNCONFIRMED);
}

static const char *const strange[] = {
    "*1\r\n:0\r\n",                        /* nothing behind the status */
    "*2\r\n:0\r\n$-1\r\n",                 /* no number */
    "*3\r\n:0\r\n:1\r\n$-1\r\n",           /* no name */
    "*3\r\n:0\r\n:1\r\n*1\r\n$1\r\na\r\n", /* a list instead of a name */
    "*2\r\n$2\r\nOK\r\n:1\r\n",            /* no status */
    "*1\r\n:19\r\n",                       /* nor is that one */
    "*1\r\n:13\r\n",                       /* it has had all keys */
    "*1\r\n:15\r\n",                       /* there is no queue to expire */
    "*0\r\n",
    "*-1\r\n",
    "$-1\r\n",
    ":0\r\n",
    "+OK\r\n",
};

LOOP_TEST(an_invalid_response_means_that_the_store_is_unavailable,
          sizeof(strange) / sizeof(strange[0]))
{
    size_t count;

    play(strange[_i]);
    ck_assert_status(list_names(&count), ST_UNAVAILABLE);
}

LOOP_TEST(a_head_that_lies_about_its_length_is_not_read, 3)
{
    resp_list(&response, 3 + RESP_MESSAGE_WORDS);
    resp_number(&response, RESPONSE_OK);
    resp_number(&response, START_MS);
    resp_text(&response, bytes_str("a0000000"));
    resp_message(&response, 1, (unsigned char)(_i + 1));
    play(NULL);
    ck_assert_status(get_one(), ST_UNAVAILABLE);
}

TEST_CASE("claims", .setup = open_with_replica, .teardown = close_store);

/* Claims one, with this response and so many replicas that confirm it; the claim is
 * released. */
static void
expect_given_up(const char *confirmed)
{
    char released[64], id[STORE_ID_CAP];
    const struct fake_response script[] = {{"FCALL", "@"},
                                           {"WAIT 1", confirmed},
                                           {released, "*2\r\n:0\r\n:1\r\n"},
                                           {"WAIT 1", ":1\r\n"},
                                           {NULL, NULL}};
    size_t count;

    fake_redis_respond(&f.redis, bytes_of(response.text, response.size), false);
    snprintf(released, sizeof(released), "FCALL %s 5",
             script_function(SCRIPT_claim_release).data);
    fake_redis_play(&f.redis, script);
    ck_assert_status(claim_one(&count), ST_UNCONFIRMED);
    ck_assert_uint_eq(count, 0);
    fake_redis_done(&f.redis);
    snprintf(id, sizeof(id), "%012x 1", 5); /* it does not count as an attempt */
    ck_assert_msg(strstr(f.redis.requests[2], id) != NULL, "%s", f.redis.requests[2]);
}

START_TEST(a_claim_that_no_replica_has_confirmed_is_released)
{
    write_taken(true, 1);
    expect_given_up(":0\r\n");
}

START_TEST(a_claim_with_more_messages_than_its_limit_is_released)
{
    write_taken(true, 2);
    expect_given_up(":1\r\n");
}

START_TEST(a_claim_that_a_replica_has_confirmed_is_kept)
{
    static const struct fake_response script[] = {
        {"FCALL", "@"}, {"WAIT 1", ":1\r\n"}, {NULL, NULL}};
    size_t count;

    write_taken(true, 1);
    fake_redis_respond(&f.redis, bytes_of(response.text, response.size), false);
    fake_redis_play(&f.redis, script);
    ck_assert_status(claim_one(&count), ST_OK);
    ck_assert_uint_eq(count, 1);
    fake_redis_done(&f.redis);
}

START_TEST(a_queue_is_listed_if_the_response_of_a_claim_was_lost)
{
    static const struct fake_response script[] = {{"FCALL", NULL}, {NULL, NULL}};
    int64_t next_ms;
    size_t count;
    int i = 0;

    fake_redis_play(&f.redis, script);
    ck_assert_status(claim_one(&count), ST_UNCONFIRMED);
    store_housekeep(f.store, START_MS, &next_ms);
    while (strstr(f.redis.requests[i], "claimd:1:ends:") == NULL)
        ck_assert_int_lt(++i, f.redis.request_count);
    ck_assert_msg(strstr(f.redis.requests[i], "q1:pq 0") != NULL, "%s",
                  f.redis.requests[i]);
    ck_assert_int_le(next_ms, START_MS + 1000); /* the fake did not list it: again */
}
