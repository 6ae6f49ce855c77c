/*
 * Requests of many threads share a connection: each one gets its own response, a
 * connection that is out of step is closed, and replicas confirm several writes at once.
 * Read src/redis/wire.h next.
 */
#include "redis/wire.h"

#include "claimd/base/clock.h"
#include "support/check_main.h"
#include "support/fake_redis.h"

#include <stdio.h>

static struct fake_redis node;
static struct hiredis_library library;
static struct pipeline pipeline;
static struct command_words words;
static struct mem *mem;

static void
open_all(void)
{
    const struct link_config config = {.library = &library,
                                       .user = "",
                                       .password = "",
                                       .connect_ms = 5000,
                                       .response_ms = 5000};
    struct link_address address = {.port = 0};
    struct reason why;

    reason_init(&why);
    ck_assert_int_eq(hiredis_library_load(&library, &why), ST_OK);
    mem = mem_new(0);
    fake_redis_start(&node);
    address.port = node.port;
    (void)snprintf(address.host, sizeof(address.host), "127.0.0.1");
    command_init(&words, mem);
    command_number(&words, 0);
    pipeline_init(&pipeline);
    ck_assert_int_eq(link_open(&pipeline.link, &config, &address, &why), ST_OK);
}

static void
close_all(void)
{
    link_close(&pipeline.link);
    command_fini(&words);
    fake_redis_stop(&node);
    mem_destroy(mem);
}

static void
add(struct wire_request *request, unsigned replicas)
{
    *request = (struct wire_request){
        .function = BYTES_LIT("script"), .words = &words, .replicas = replicas};
    pipeline_add(&pipeline, request);
}

static size_t
length(const struct list *list)
{
    size_t count = 0;

    for (const struct list *at = list->next; at != list; at = at->next)
        count++;
    return count;
}

/* Ends all requests; how many there were. */
static size_t
end(void)
{
    struct list ended;

    list_init(&ended);
    pipeline_end(&pipeline, &ended);
    ck_assert(!pipeline_is_under_way(&pipeline));
    return length(&ended);
}

static void
give_back(redisReply *response)
{
    link_free_response(&pipeline.link, response);
}

/* Sends all that was begun, and reads until there is notification. */
static enum pipeline_state
travel(void)
{
    enum pipeline_state state;

    ck_assert_int_eq(pipeline_begin(&pipeline, PIPELINE_REQUESTS, 100), ST_OK);
    ck_assert(pipeline_is_under_way(&pipeline));
    ck_assert(link_flush(&pipeline.link));
    do
        state = pipeline_read(&pipeline);
    while (state == PIPELINE_INCOMPLETE);
    return state;
}

TEST_CASE("pipelines", .setup = open_all, .teardown = close_all);

/* Without a bound hiredis reserves 8 GB, and then waits for the elements. */
START_TEST(an_array_that_announces_too_many_elements_ends_the_connection)
{
    const struct bytes word = BYTES_LIT("FCALL");
    struct reason why;
    redisReply *response;

    PLAY(&node, {"FCALL", "!*2\r\n*999999999\r\n"});
    ck_assert_int_eq(link_command(&pipeline.link, &word, 1, &response, &why),
                     ST_UNAVAILABLE);
    ck_assert_str_eq(why.text, "Out of memory");
}

START_TEST(all_have_their_responses_and_one_confirmation)
{
    struct wire_request requests[2];

    PLAY(&node, {"FCALL", ":7\r\n"}, {"ASKING", "+OK\r\n"}, {"FCALL", ":8\r\n"},
         {"WAIT 2 100", ":2\r\n"});
    add(&requests[0], 0);
    add(&requests[1], 2);
    requests[1].asking = true;
    ck_assert_int_eq(travel(), PIPELINE_COMPLETE);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(requests[i].outcome, REQUEST_RESPONDED);
        ck_assert(requests[i].whole);
        ck_assert_int_eq(requests[i].confirmed, 2);
        ck_assert_int_eq(requests[i].response->integer, 7 + i);
        give_back(requests[i].response);
    }
    ck_assert_uint_eq(end(), 2);
    fake_redis_done(&node);
}

START_TEST(reads_need_no_confirmation)
{
    struct wire_request request;

    PLAY(&node, {"FCALL", ":7\r\n"});
    add(&request, 0);
    ck_assert_int_eq(travel(), PIPELINE_COMPLETE);
    ck_assert_int_eq(request.confirmed, -1);
    give_back(request.response);
    ck_assert_uint_eq(end(), 1);
    fake_redis_done(&node);
}

START_TEST(a_command_lost_with_its_connection_may_have_happened)
{
    struct wire_request requests[2];
    struct reason why;

    PLAY(&node, {"FCALL", ":7\r\n"}, {"FCALL", NULL});
    add(&requests[0], 1);
    add(&requests[1], 1);
    ck_assert_int_eq(travel(), PIPELINE_FAILED);
    (void)reason_give(&why, ST_UNAVAILABLE, "gone");
    pipeline_abort(&pipeline, &why);
    ck_assert_int_eq(requests[0].outcome, REQUEST_RESPONDED); /* it has its response */
    ck_assert_int_eq(requests[0].response->integer, 7);
    give_back(requests[0].response);
    ck_assert_int_eq(requests[1].outcome, REQUEST_LOST);
    for (int i = 0; i < 2; i++) {
        ck_assert(!requests[i].whole);
        ck_assert_int_eq(requests[i].confirmed, -1);
        ck_assert_str_eq(requests[i].why.text, "gone");
    }
    ck_assert_uint_eq(end(), 2);
}

static const char *const responses_to_others[] = {
    "!*2\r\n:99\r\n:7\r\n", /* another number */
    "!*2\r\n$1\r\n1\r\n:7\r\n",       "!*1\r\n:1\r\n", "!:7\r\n", "!$-1\r\n", "!+OK\r\n",
    "!*3\r\n:2\r\n:7\r\n$1\r\nx\r\n", /* no time follows */
    "!*4\r\n:2\r\n:7\r\n:8\r\n:9\r\n"};

LOOP_TEST(the_response_to_another_request_breaks_the_link,
          sizeof(responses_to_others) / sizeof(responses_to_others[0]))
{
    const struct fake_response script[] = {
        {"FCALL", ":7\r\n"}, {"FCALL", responses_to_others[_i]}, {NULL, NULL}};
    struct wire_request requests[2];
    struct reason why;

    fake_redis_play(&node, script);
    for (int i = 0; i < 2; i++)
        add(&requests[i], 0);
    ck_assert_int_eq(travel(), PIPELINE_FAILED);
    ck_assert_int_eq(pipeline.link.context->err, REDIS_ERR_PROTOCOL);
    (void)reason_give(&why, ST_UNAVAILABLE, "gone");
    pipeline_abort(&pipeline, &why);
    ck_assert_int_eq(requests[0].outcome, REQUEST_RESPONDED);
    give_back(requests[0].response);
    ck_assert_int_eq(requests[1].outcome, REQUEST_LOST);
    ck_assert_ptr_null(requests[1].response);
    ck_assert_uint_eq(end(), 2);
}

START_TEST(a_time_may_follow_the_response)
{
    static const int64_t due_ms[] = {5000, 0};
    struct wire_request requests[2];

    PLAY(&node, {"FCALL", "!*3\r\n:1\r\n:7\r\n:5000\r\n"}, {"FCALL", ":8\r\n"});
    for (int i = 0; i < 2; i++)
        add(&requests[i], 0);
    ck_assert_int_eq(travel(), PIPELINE_COMPLETE);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(requests[i].response->integer, 7 + i);
        ck_assert_int_eq(requests[i].due_ms, due_ms[i]);
        give_back(requests[i].response);
    }
    ck_assert_uint_eq(end(), 2);
}

/* Of a script, and of WAIT. */
LOOP_TEST(bytes_behind_the_last_response_break_the_link, 2)
{
    static const struct fake_response scripts[2][3] = {
        {{"FCALL", ":7\r\n:8\r\n"}},
        {{"FCALL", ":7\r\n"}, {"WAIT 1 100", ":1\r\n:1\r\n"}}};
    struct reason why;
    struct wire_request request;

    fake_redis_play(&node, scripts[_i]);
    add(&request, (unsigned)_i);
    ck_assert_int_eq(travel(), PIPELINE_FAILED);
    ck_assert_str_eq(pipeline.link.context->errstr, LINK_SURPLUS);
    (void)reason_give(&why, ST_UNAVAILABLE, "gone");
    pipeline_abort(&pipeline, &why);
    ck_assert_int_eq(request.outcome, REQUEST_RESPONDED); /* it has its number */
    ck_assert_int_eq(request.response->integer, 7);
    ck_assert_int_eq(request.confirmed, -1); /* whichever of them was WAIT's */
    give_back(request.response);
    ck_assert_uint_eq(end(), 1);
}

START_TEST(more_than_one_takes_go_with_the_next)
{
    struct wire_request requests[PIPELINE_REQUESTS + 1];

    for (int i = 0; i <= PIPELINE_REQUESTS; i++)
        add(&requests[i], 0);
    ck_assert_int_eq(pipeline_begin(&pipeline, PIPELINE_REQUESTS, 100), ST_OK);
    ck_assert_uint_eq(length(&pipeline.sent), PIPELINE_REQUESTS);
    ck_assert_uint_eq(pipeline.count, 1);
    ck_assert_uint_eq(end(), PIPELINE_REQUESTS);
    ck_assert_int_eq(pipeline_begin(&pipeline, PIPELINE_REQUESTS, 100), ST_OK);
    ck_assert_uint_eq(length(&pipeline.sent), 1);
    ck_assert_uint_eq(end(), 1);
}

START_TEST(there_may_be_fewer)
{
    struct wire_request requests[3];

    for (int i = 0; i < 3; i++)
        add(&requests[i], 0);
    ck_assert_int_eq(pipeline_begin(&pipeline, 1, 100), ST_OK);
    ck_assert_uint_eq(length(&pipeline.sent), 1);
    ck_assert_uint_eq(pipeline.count, 2);
    ck_assert_uint_eq(end(), 1);
}

START_TEST(a_large_one_goes_without_those_behind_it)
{
    struct command_words large;
    struct wire_request requests[3];

    command_init(&large, mem);
    for (size_t i = 0; i < PIPELINE_BYTES; i++)
        buf_byte(&large.words, '0');
    for (int i = 0; i < 3; i++)
        add(&requests[i], 0);
    requests[1].words = &large;
    ck_assert_int_eq(pipeline_begin(&pipeline, PIPELINE_REQUESTS, 100), ST_OK);
    ck_assert_uint_eq(length(&pipeline.sent), 2);
    ck_assert_uint_eq(end(), 2);
    command_fini(&large);
}

START_TEST(queued_commands_can_be_refused)
{
    struct wire_request requests[2];
    struct reason why;
    struct list ended;

    list_init(&ended);
    (void)reason_give(&why, ST_UNAVAILABLE, "gone");
    for (int i = 0; i < 2; i++)
        add(&requests[i], 1);
    pipeline_reject_waiting(&pipeline, REQUEST_HUNG, &why, &ended);
    ck_assert_uint_eq(pipeline.count, 0);
    ck_assert_uint_eq(length(&ended), 2);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(requests[i].outcome, REQUEST_HUNG);
        ck_assert_str_eq(requests[i].why.text, "gone");
    }
}

TEST_CASE("company", .setup = open_all, .teardown = close_all);

/* One of these many, which has taken so long. */
static void
have_been(size_t count, unsigned replicas, int64_t ns)
{
    static struct wire_request requests[4];

    for (size_t i = 0; i < count; i++)
        add(&requests[i], replicas);
    ck_assert_int_eq(pipeline_begin(&pipeline, PIPELINE_REQUESTS, 100), ST_OK);
    pipeline.begun_ns = clock_stopwatch_ns() - ns;
    ck_assert_uint_eq(end(), count);
}

static const int64_t SECOND_NS = 1000000000, MOST_NS = 2000000;

START_TEST(where_replicas_confirm_as_many_are_expected_as_were_there)
{
    struct wire_request requests[2];

    have_been(2, 1, SECOND_NS);
    add(&requests[0], 1);
    ck_assert_int_gt(pipeline_due_ns(&pipeline), 0);
    ck_assert_int_le(pipeline_due_ns(&pipeline), clock_stopwatch_ns() + MOST_NS);
    add(&requests[1], 1);
    ck_assert_int_eq(pipeline_due_ns(&pipeline), 0); /* all are there */
}

START_TEST(they_are_waited_for_half_as_long_as_it_took)
{
    struct wire_request request;

    have_been(2, 1, 1000);
    add(&request, 1);
    ck_assert_int_gt(pipeline_due_ns(&pipeline), 0);
    ck_assert_int_le(pipeline_due_ns(&pipeline), clock_stopwatch_ns() + MOST_NS / 2);
}

START_TEST(queued_commands_get_their_responses_too)
{
    struct wire_request under_way, waiting;

    add(&under_way, 1);
    ck_assert_int_eq(pipeline_begin(&pipeline, PIPELINE_REQUESTS, 100), ST_OK);
    add(&waiting, 1);
    pipeline.begun_ns = clock_stopwatch_ns() - SECOND_NS;
    ck_assert_uint_eq(end(), 1);
    ck_assert_int_gt(pipeline_due_ns(&pipeline), 0);
}

START_TEST(one_that_is_alone_goes_at_once)
{
    struct wire_request request;

    have_been(1, 1, SECOND_NS);
    add(&request, 1);
    ck_assert_int_eq(pipeline_due_ns(&pipeline), 0);
}

START_TEST(without_replicas_no_write_waits)
{
    struct wire_request request;

    have_been(2, 0, SECOND_NS);
    add(&request, 0);
    ck_assert_int_eq(pipeline_due_ns(&pipeline), 0);
}
