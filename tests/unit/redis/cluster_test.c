/*
 * A request reaches the right node of a cluster whatever fails on the way, and a change
 * whose response is lost is reported as unconfirmed. fake_redis responds by a script.
 * Read src/redis/cluster.h next.
 */
#include "redis/cluster.h"

#include "support/check_main.h"
#include "support/fake_redis.h"

#include <stdio.h>
#include <sys/socket.h>

/* Two nodes; the first has all slots. */
static struct fake_redis nodes[2];
static struct hiredis_library library;
static struct cluster cluster;
static struct mem *mem;
static char slots[128], moved[64], ask[64];

static const struct fake_response map_of_one[] = {{"CLUSTER SLOTS", slots}, {NULL, NULL}};

/* How often the wire has warned. */
static _Atomic int warnings;

static void
note_warning(void *arg, const char *text)
{
    (void)arg, (void)text;
    warnings++;
}

static void
open_nodes(unsigned replicas)
{
    struct cluster_config config = {.library = BYTES_LIT("library"),
                                    .seed_count = 1,
                                    .replicas = replicas,
                                    .confirm_ms = 100,
                                    .patience_ms = 60000,
                                    .patient_most = 8,
                                    .warn = note_warning,
                                    .link = {.library = &library,
                                             .user = "",
                                             .password = "",
                                             .connect_ms = 5000,
                                             .response_ms = 5000}};
    struct reason why;

    ck_assert_int_eq(hiredis_library_load(&library, &why), ST_OK);
    mem = mem_new(0);
    warnings = 0;
    for (int i = 0; i < 2; i++)
        fake_redis_start(&nodes[i]);
    config.mem = mem;
    config.seeds[0].port = nodes[0].port;
    snprintf(config.seeds[0].host, sizeof(config.seeds[0].host), "127.0.0.1");
    snprintf(slots, sizeof(slots),
             "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n",
             nodes[0].port);
    snprintf(moved, sizeof(moved), "-MOVED 42 127.0.0.1:%u\r\n", nodes[1].port);
    snprintf(ask, sizeof(ask), "-ASK 42 127.0.0.1:%u\r\n", nodes[1].port);
    fake_redis_play(&nodes[0], map_of_one);
    ck_assert_msg(cluster_open(&cluster, &config, &why) == ST_OK, "%s", why.text);
}

static void
open_without_replicas(void)
{
    open_nodes(0);
}

static void
open_with_replica(void)
{
    open_nodes(1);
}

static void
close_nodes(void)
{
    cluster_close(&cluster);
    for (int i = 0; i < 2; i++)
        fake_redis_stop(&nodes[i]);
    mem_destroy(mem);
}

/* Sends a request for slot 42. *number is the response, 0 without one. */
static enum status
fetch(bool changes, long long *number)
{
    struct cluster_request request = {.slot = 42,
                                      .function = BYTES_LIT("script"),
                                      .changes = changes,
                                      .repeatable = !changes};
    struct command_words words;
    struct reason why;
    enum status st;

    command_init(&words, mem);
    command_number(&words, 0);
    request.words = &words;
    st = cluster_run(&cluster, &request, &why);
    *number = request.response == NULL ? 0 : request.response->integer;
    cluster_request_end(&cluster, &request);
    command_fini(&words);
    return st;
}

static void
expect_response(bool changes, enum status status, long long number)
{
    long long response;
    enum status st = fetch(changes, &response);

    ck_assert_msg(st == status, "%s instead of %s", status_name(st), status_name(status));
    ck_assert_int_eq(response, number);
}

/* The same, and it is the last one of the scripts. */
static void
expect(bool changes, enum status status, long long number)
{
    expect_response(changes, status, number);
    for (int i = 0; i < 2; i++)
        fake_redis_done(&nodes[i]);
}

TEST_CASE("redirections", .setup = open_without_replicas, .teardown = close_nodes);

START_TEST(requests_for_a_moved_slot_go_to_the_new_node)
{
    PLAY(&nodes[0], {"FCALL script 0", moved});
    PLAY(&nodes[1], {"FCALL script 0", ":7\r\n"}, {"FCALL script 0", ":8\r\n"});
    expect_response(true, ST_OK, 7);
    expect(true, ST_OK, 8);
    ck_assert_uint_eq(atomic_load(&cluster.metrics.redirections), 1);
}

START_TEST(a_request_for_a_moving_slot_goes_to_the_other_node_once)
{
    PLAY(&nodes[0], {"FCALL", ask}, {"FCALL", ":8\r\n"});
    PLAY(&nodes[1], {"ASKING", "+OK\r\n"}, {"FCALL", ":7\r\n"});
    expect_response(true, ST_OK, 7);
    expect(true, ST_OK, 8);
}

START_TEST(a_node_without_the_library_gets_it)
{
    PLAY(&nodes[0], {"FCALL", "-ERR Function not found\r\n"},
         {"FUNCTION LOAD library", "$6\r\nscript\r\n"}, {"FCALL script 0", ":7\r\n"});
    expect(true, ST_OK, 7);
}

START_TEST(a_request_is_repeated_after_another_client_loaded_the_library)
{
    PLAY(&nodes[0], {"FCALL", "-ERR Function not found\r\n"},
         {"FUNCTION LOAD library", "-ERR Library 'script' already exists\r\n"},
         {"FCALL script 0", ":7\r\n"});
    expect(true, ST_OK, 7);
}

START_TEST(a_node_that_takes_no_library_is_a_response)
{
    PLAY(&nodes[0], {"FCALL", "-ERR Function not found\r\n"},
         {"FUNCTION", "-OOM command not allowed when used memory > 'maxmemory'.\r\n"});
    expect(true, ST_OVER_BUDGET, 0);
    PLAY(&nodes[0], {"FCALL", "-ERR Function not found\r\n"},
         {"FUNCTION", "-NOPERM this user has no permissions to run this command\r\n"});
    expect(true, ST_UNAVAILABLE, 0);
}

START_TEST(a_request_is_repeated_after_a_hang_up_at_the_library)
{
    PLAY(&nodes[0], {"FCALL", "-ERR Function not found\r\n"}, {"FUNCTION", NULL},
         {"CLUSTER SLOTS", slots}, {"FCALL", ":7\r\n"});
    expect(true, ST_OK, 7);
}

START_TEST(two_nodes_that_send_to_each_other_are_no_loop_for_ever)
{
    static struct fake_response here[64], there[64];
    static char back[64];
    long long number;

    snprintf(back, sizeof(back), "-MOVED 42 127.0.0.1:%u\r\n", nodes[0].port);
    cluster.config.patience_ms = 10;
    for (int i = 0; i < 63; i++) {
        here[i] = (struct fake_response){"", moved}; /* to any command */
        there[i] = (struct fake_response){"", back};
    }
    fake_redis_play(&nodes[0], here);
    fake_redis_play(&nodes[1], there);
    ck_assert_int_eq(fetch(true, &number), ST_UNAVAILABLE);
}

TEST_CASE("bad days", .setup = open_without_replicas, .teardown = close_nodes);

static const char *const passing[] = {
    "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
    "-CLUSTERDOWN The cluster is down\r\n",
    "-LOADING Redis is loading the dataset in memory\r\n",
    "-READONLY You can't write against a read only replica.\r\n",
    "-MASTERDOWN Link with MASTER is down\r\n",
    "-BUSY Redis is busy running a script\r\n",
    "-NOREPLICAS Not enough good replicas to write.\r\n",
};

LOOP_TEST(a_temporary_error_is_retried, sizeof(passing) / sizeof(passing[0]))
{
    const struct fake_response script[] = {{"FCALL", passing[_i]},
                                           {"CLUSTER SLOTS", slots},
                                           {"FCALL", ":7\r\n"},
                                           {NULL, NULL}};

    fake_redis_play(&nodes[0], script);
    expect(true, ST_OK, 7);
}

START_TEST(retries_of_a_temporary_error_end)
{
    static struct fake_response script[64];
    long long number;

    cluster.config.patience_ms = 10;
    for (int i = 0; i < 63; i++)
        script[i] = (struct fake_response){"", "-CLUSTERDOWN Hash slot not served\r\n"};
    fake_redis_play(&nodes[0], script);
    ck_assert_int_eq(fetch(true, &number), ST_UNAVAILABLE);
}

START_TEST(a_redis_without_memory_refuses)
{
    PLAY(&nodes[0],
         {"FCALL", "-OOM command not allowed when used memory > 'maxmemory'.\r\n"});
    expect(true, ST_OVER_BUDGET, 0);
}

START_TEST(an_error_of_the_script_is_no_response)
{
    PLAY(&nodes[0], {"FCALL", "-ERR user_script:1: oops\r\n"});
    expect(true, ST_UNAVAILABLE, 0);
}

START_TEST(a_change_whose_response_is_lost_may_have_happened)
{
    PLAY(&nodes[0], {"FCALL", NULL});
    expect(true, ST_UNCONFIRMED, 0);
    ck_assert_uint_eq(atomic_load(&cluster.metrics.unconfirmed), 1);
}

START_TEST(a_look_whose_response_is_lost_is_taken_again)
{
    PLAY(&nodes[0], {"FCALL", NULL}, {"CLUSTER SLOTS", slots}, {"FCALL", ":7\r\n"});
    expect(false, ST_OK, 7);
}

START_TEST(a_connection_with_a_surplus_response_is_replaced)
{
    PLAY(&nodes[0], {"FCALL", ":7\r\n:6\r\n"}, {"FCALL", ":8\r\n"});
    expect_response(true, ST_OK, 7);
    ck_assert_int_eq(warnings, 1);
    expect(true, ST_OK, 8);
    ck_assert_uint_eq(atomic_load(&cluster.metrics.connections),
                      2 + 1); /* one is for the map */
}

START_TEST(a_change_that_gets_the_response_to_another_may_have_happened)
{
    PLAY(&nodes[0], {"FCALL", "!*2\r\n:99\r\n:7\r\n"});
    expect(true, ST_UNCONFIRMED, 0);
    ck_assert_int_eq(warnings, 1);
}

START_TEST(a_connection_that_was_closed_meanwhile_is_opened_again)
{
    long long number;

    PLAY(&nodes[0], {"FCALL", ":7\r\n"}, {"FCALL", ":8\r\n"});
    ck_assert_int_eq(fetch(true, &number), ST_OK);
    fake_redis_hang_up(&nodes[0]);
    expect(true, ST_OK, 8);
    ck_assert_uint_eq(atomic_load(&cluster.metrics.connections),
                      2 + 1); /* one is for the map */
}

START_TEST(a_node_that_does_not_respond_is_left_alone)
{
    long long number;

    cluster.config.link.response_ms = 1;
    cluster.config.refresh_ms = 60000; /* no other node gets a request */
    PLAY(&nodes[0], {"FCALL", ":7\r\n"}, {"FCALL", ":7\r\n"});
    fake_redis_hold(&nodes[0], true);
    ck_assert_int_eq(fetch(true, &number), ST_UNCONFIRMED);
    ck_assert_int_ne(atomic_load(&cluster.wire.hung_ns[0]), 0);
    atomic_store(&cluster.wire.hung_ns[0], INT64_MAX / 2); /* no second passes */
    ck_assert_int_eq(fetch(true, &number), ST_UNAVAILABLE);
    ck_assert_uint_eq(atomic_load(&cluster.wire.pipelines), 1);
    wire_note_response(&cluster.wire, 0); /* as if a second had passed */
    cluster.config.link.response_ms = 5000;
    fake_redis_hold(&nodes[0], false);
    expect_response(true, ST_OK, 7);
}

TEST_CASE("confirmations", .setup = open_with_replica, .teardown = close_nodes);

START_TEST(a_change_is_confirmed_by_the_replicas)
{
    PLAY(&nodes[0], {"FCALL", ":7\r\n"}, {"WAIT 1 100", ":1\r\n"});
    expect(true, ST_OK, 7);
}

START_TEST(a_change_that_is_not_confirmed_has_a_response_all_the_same)
{
    PLAY(&nodes[0], {"FCALL", ":7\r\n"}, {"WAIT 1 100", ":0\r\n"});
    expect(true, ST_UNCONFIRMED, 7);
}

START_TEST(a_change_whose_primary_goes_before_it_is_confirmed_has_a_response_as_well)
{
    PLAY(&nodes[0], {"FCALL", ":7\r\n"}, {"WAIT 1 100", NULL});
    expect(true, ST_UNCONFIRMED, 7);
}

START_TEST(a_look_needs_no_confirmation)
{
    PLAY(&nodes[0], {"FCALL", ":7\r\n"});
    expect(false, ST_OK, 7);
}

START_TEST(a_refused_write_is_not_waited_for_again)
{
    PLAY(&nodes[0], {"FCALL", "-TRYAGAIN\r\n"}, {"WAIT 1 100", ":0\r\n"},
         {"CLUSTER SLOTS", slots}, {"FCALL", ":7\r\n"}, {"WAIT 1 100", ":1\r\n"});
    expect(true, ST_OK, 7);
}

TEST_CASE("together", .setup = open_with_replica, .teardown = close_nodes);

/* A request in a fiber. */
struct caller {
    struct fiber *fiber;
    sem_t woken;
    enum status status;
    long long number;
};

enum { CALLERS = 3 };
static struct caller callers[CALLERS];
static struct fiber_pool fibers;

static void
fetch_there(void *arg)
{
    struct caller *a = arg;

    a->status = fetch(true, &a->number);
}

static void
note_waking(void *arg)
{
    (void)sem_post(&((struct caller *)arg)->woken);
}

/* The first one sends alone, the others while its response is on its way. Then all go
 * on. */
static void
fetch_together(const struct fake_response *script)
{
    static const struct fake_response before[] = {
        {"FCALL", ":1\r\n"}, {"WAIT", ":1\r\n"}, {NULL, NULL}};
    long long number;

    fake_redis_play(&nodes[0], before);
    ck_assert_int_eq(fetch(true, &number), ST_OK); /* it is connected now */
    fake_redis_play(&nodes[0], script);
    fake_redis_hold(&nodes[0], true);
    fiber_pool_init(&fibers, mem, NULL, CALLERS, note_waking);
    for (int i = 0; i < CALLERS; i++) {
        ck_assert_int_eq(sem_init(&callers[i].woken, 0, 0), 0);
        callers[i].fiber = fiber_take(&fibers);
        ck_assert_int_eq(fiber_start(callers[i].fiber, fetch_there, &callers[i]),
                         FIBER_PARKED);
        if (i == 0)
            fake_redis_await(&nodes[0], 1);
    }
    fake_redis_hold(&nodes[0], false);
    for (int i = 0; i < CALLERS; i++) {
        while (sem_wait(&callers[i].woken) != 0)
            continue;
        ck_assert_int_eq(fiber_resume(callers[i].fiber), FIBER_ENDED);
        fiber_give(&fibers, callers[i].fiber);
        (void)sem_destroy(&callers[i].woken);
    }
    fiber_pool_fini(&fibers);
    fake_redis_done(&nodes[0]);
}

START_TEST(concurrent_writes_are_confirmed_together)
{
    static const struct fake_response script[] = {
        {"FCALL", ":6\r\n"}, {"WAIT 1 100", ":1\r\n"}, {"FCALL", ":7\r\n"},
        {"FCALL", ":8\r\n"}, {"WAIT 1 100", ":1\r\n"}, {NULL, NULL}};

    fetch_together(script);
    for (int i = 0; i < CALLERS; i++) {
        ck_assert_int_eq(callers[i].status, ST_OK);
        ck_assert_int_eq(callers[i].number, 6 + i);
    }
    ck_assert_uint_eq(atomic_load(&cluster.metrics.requests), 1 + 3);
    ck_assert_uint_eq(atomic_load(&cluster.wire.pipelines), 1 + 2);
}

/* Responses that are not released are so large that requests go one by one. */
START_TEST(when_many_responses_are_held_each_goes_alone)
{
    static const struct fake_response script[] = {
        {"FCALL", ":6\r\n"}, {"WAIT", ":1\r\n"}, {"FCALL", ":7\r\n"}, {"WAIT", ":1\r\n"},
        {"FCALL", ":8\r\n"}, {"WAIT", ":1\r\n"}, {NULL, NULL}};

    atomic_store(&cluster.wire.response_bytes, WIRE_RESPONSE_BYTES);
    fetch_together(script);
    for (int i = 0; i < CALLERS; i++)
        ck_assert_int_eq(callers[i].number, 6 + i);
    ck_assert_uint_eq(atomic_load(&cluster.wire.pipelines), 1 + 3);
    ck_assert_uint_eq(atomic_load(&cluster.wire.response_bytes),
                      WIRE_RESPONSE_BYTES); /* released responses do not count */
}

START_TEST(each_has_a_response_of_its_own)
{
    static const struct fake_response script[] = {
        {"FCALL", ":6\r\n"}, {"WAIT", ":1\r\n"}, {"FCALL", "-ERR oops\r\n"},
        {"FCALL", ":8\r\n"}, {"WAIT", ":1\r\n"}, {NULL, NULL}};

    fetch_together(script);
    ck_assert_int_eq(callers[1].status, ST_UNAVAILABLE);
    ck_assert_int_eq(callers[2].status, ST_OK);
    ck_assert_int_eq(callers[2].number, 8);
}

TEST_CASE("detours", .setup = open_without_replicas, .teardown = close_nodes);

/* Sends a request in a fiber, and resumes it until it has its response. */
static void
fetch_in_fiber(struct executor *executor, const struct fake_response *script)
{
    struct caller *a = &callers[0];
    enum fiber_state state;

    fake_redis_play(&nodes[0], script);
    fiber_pool_init(&fibers, mem, executor, 1, note_waking);
    ck_assert_int_eq(sem_init(&a->woken, 0, 0), 0);
    a->fiber = fiber_take(&fibers);
    for (state = fiber_start(a->fiber, fetch_there, a); state == FIBER_PARKED;
         state = fiber_resume(a->fiber))
        while (sem_wait(&a->woken) != 0)
            continue;
    fiber_give(&fibers, a->fiber);
    (void)sem_destroy(&a->woken);
    fiber_pool_fini(&fibers);
    fake_redis_done(&nodes[0]);
}

/* It connects, learns that the library is missing, loads it, and has to come back
 * later. */
START_TEST(blocking_work_of_a_fiber_runs_on_a_thread)
{
    static const struct fake_response script[] = {
        {"FCALL", "-ERR Function not found\r\n"},
        {"FUNCTION LOAD library", "$6\r\nscript\r\n"},
        {"FCALL", "-TRYAGAIN\r\n"},
        {"CLUSTER SLOTS", slots},
        {"FCALL", ":7\r\n"},
        {NULL, NULL}};
    struct executor_config config = {.mem = mem, .threads = 1, .line = 1};
    struct executor *executor;

    ck_assert_int_eq(executor_open(&config, &executor), ST_OK);
    fetch_in_fiber(executor, script);
    ck_assert_int_eq(callers[0].status, ST_OK);
    ck_assert_int_eq(callers[0].number, 7);
    executor_close(executor);
}
