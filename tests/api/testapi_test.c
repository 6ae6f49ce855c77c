/*
 * The requests of the test API (docs/api.md 23): clock, reset, history, expect.
 */
#include "support/pending.h"
#include "support/testapi_fixture.h"

#include <jansson.h>

#define CLAIMS "/v2/queues/q/claims"
#define START  "2026-01-31T12:00:00Z"

/* The events of the last response, joined by spaces, with the seconds since the start. */
static const char *
events(const char *list)
{
    json_t *tree = json_loads(api_body(&f.c), 0, NULL), *item;
    const char *all = "";
    size_t i;

    json_array_foreach(json_object_get(tree, list), i, item)
    {
        long long at = json_integer_value(json_object_get(item, "at_ms"));

        all = api_text(&f, "%s%s%s@%lld", all, all[0] == '\0' ? "" : " ",
                       json_string_value(json_object_get(item, "event")),
                       (at - API_FIXTURE_START_MS) / 1000);
    }
    json_decref(tree);
    return all;
}

static void
advance(int seconds)
{
    ck_api(&f, "POST", "/claimd/clock/advance", api_text(&f, "{\"seconds\":%d}", seconds),
           200, NULL);
}

static void
advance_to_next(void)
{
    ck_api(&f, "POST", "/claimd/clock/advance", "{\"to\":\"next\"}", 200, NULL);
}

static void
post(int ttl, int delay)
{
    ck_api(
        &f, "POST", "/v2/queues/q/messages",
        api_text(&f, "{\"messages\":[{\"body\":1,\"ttl\":%d,\"delay\":%d}]}", ttl, delay),
        201, NULL);
}

TESTAPI_CASE("clock");

START_TEST(without_the_test_api_there_is_nothing_of_this)
{
    static const char *const paths[] = {"/claimd/clock", "/claimd/clock/advance",
                                        "/claimd/reset", "/claimd/history",
                                        "/claimd/expect?queue=q&messages=0"};
    struct api_fixture plain;

    api_fixture_open(&plain);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        for (int post = 0; post < 2; post++)
            ck_api(&plain, post ? "POST" : "GET", paths[i], NULL, 404, NULL);
    ck_assert_str_eq(api_pick(&plain, "description"),
                     "the path does not exist. The test API requires the option ci");
    api_fixture_close(&plain);
}

START_TEST(the_clock_is_shown)
{
    ck_api(&f, "GET", "/claimd/clock", NULL, 200, NULL);
    ck_api_body(&f, "{'now':'" START "','now_ms':1769860800000,'state':'frozen',"
                    "'ahead_ms':'*'}");
}

static void
expect_rows(const char *count)
{
    ck_api(&f, "GET", "/claimd/queues?offset=0", NULL, 200, NULL);
    ck_assert_ptr_nonnull(
        strstr(api_body(&f.c), api_text(&f, "\"matching\":%s,", count)));
}

START_TEST(a_snapshot_of_the_queues_ages_by_both_clocks)
{
    ck_api(&f, "PUT", "/v2/queues/a", NULL, 201, NULL);
    expect_rows("1");
    ck_api(&f, "PUT", "/v2/queues/b", NULL, 201, NULL);
    expect_rows("1");
    clock_advance(&f.real, 1000);
    expect_rows("2");
    ck_api(&f, "PUT", "/v2/queues/c", NULL, 201, NULL);
    expect_rows("2");
    advance(1);
    expect_rows("3");
}

START_TEST(due_events_happen_in_order_and_are_listed)
{
    post(300, 5);
    post(100, 0);
    ck_api(&f, "POST", CLAIMS, "{\"ttl\":60,\"grace\":60}", 201, NULL);
    advance(4);
    ck_assert_str_eq(events("events"), "");
    advance(3600);
    /* The claim gave the second message 20 seconds more. */
    ck_assert_str_eq(events("events"), "delay_ended@5 claim_ended@60 message_expired@120 "
                                       "message_expired@300");
    ck_assert_int_eq(clock_now_ms(testapi_clock(f.testapi)),
                     API_FIXTURE_START_MS + 3604000);
    ck_assert_uint_gt(f.moves, 0);
}

START_TEST(the_next_deadline_is_one_step)
{
    post(300, 5);
    post(100, 0);
    advance_to_next();
    ck_assert_str_eq(events("events"), "delay_ended@5");
    ck_assert_int_eq(clock_now_ms(testapi_clock(f.testapi)), API_FIXTURE_START_MS + 5000);
    advance_to_next();
    ck_assert_str_eq(events("events"), "message_expired@100");
    advance_to_next();
    ck_assert_str_eq(events("events"), "message_expired@300");
    advance_to_next(); /* there is no other */
    ck_assert_str_eq(events("events"), "");
    ck_assert_int_eq(clock_now_ms(testapi_clock(f.testapi)),
                     API_FIXTURE_START_MS + 300000);
}

START_TEST(dead_letters_are_reported)
{
    ck_api(&f, "PUT", "/v2/queues/q",
           "{\"_max_claim_count\":1,\"_dead_letter_queue\":\"dead\"}", 201, NULL);
    post(3000, 0);
    ck_assert_ptr_nonnull(api_take(&f, "q", 1));
    advance(60);
    ck_assert_str_eq(events("events"), "claim_ended@60 dead_letter_moved@60");
    ck_api(&f, "GET", "/claimd/history?event=dead_letter_moved", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(&f, "history.0.project"), API_CALL_PROJECT);
    ck_assert_str_eq(api_pick(&f, "history.0.to"), "dead");
}

/* It is notified when the delay is over, at 5 seconds, and gets a claim of 60 seconds
 * then. */
START_TEST(a_waiter_gets_its_message_before_the_clock_moves_on)
{
    struct pending a, step;

    post(3000, 5);
    pending_prepare(&a, &f, "POST", CLAIMS, "wait=30");
    a.req.body = bytes_str("{\"ttl\":60,\"grace\":60}");
    ck_assert_int_eq(pending_fetch(&a), API_WAIT);
    pending_prepare(&step, &f, "POST", "/claimd/clock/advance", NULL);
    step.req.body = bytes_str("{\"seconds\":66}");
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(pending_fetch(&step), API_AGAIN);
    ck_assert_int_eq(clock_now_ms(testapi_clock(f.testapi)), API_FIXTURE_START_MS + 5000);
    ck_assert_int_eq(a.ready, 1);
    pending_finish(&a, 201);
    while (pending_fetch(&step) == API_AGAIN)
        continue;
    pending_end(&step);
    pending_end(&a);
    ck_api(&f, "GET", "/claimd/history", NULL, 200, NULL);
    ck_assert_str_eq(events("history"),
                     "queue_made@0 posted@0 clock_moved@0 delay_ended@5 "
                     "claimed@5 waiter_served@5 claim_ended@65");
}

START_TEST(a_disconnected_waiter_does_not_block_the_clock)
{
    struct pending a;

    post(3000, 5);
    pending_begin(&a, &f, "POST", CLAIMS, "wait=30");

    clock_advance(testapi_clock(f.testapi), 5000);
    {
        int64_t next_ms;

        store_housekeep(f.store, clock_now_ms(testapi_clock(f.testapi)), &next_ms);
    }
    ck_assert_int_eq(a.ready, 1);
    pending_end(&a);
    advance(1);
}

START_TEST(the_clock_is_stopped_started_and_set)
{
    post(3600, 0);
    ck_api(&f, "PUT", "/claimd/clock", "{\"state\":\"running\"}", 200, NULL);
    ck_assert_str_eq(api_pick(&f, "state"), "running");
    ck_assert(!clock_stands(testapi_clock(f.testapi)));
    /* So far ahead of the wall clock that the message has expired, whatever that
     * shows. */
    ck_api(&f, "PUT", "/claimd/clock",
           "{\"state\":\"frozen\",\"ahead_seconds\":2000000000}", 200, NULL);
    ck_assert_str_eq(api_pick(&f, "state"), "frozen");
    ck_assert_str_eq(api_pick(&f, "events.0.event"), "message_expired");
    ck_assert(clock_stands(testapi_clock(f.testapi)));
    ck_api(&f, "PUT", "/claimd/clock", "{\"ahead_seconds\":1}", 400,
           "Invalid API request");
    ck_api(&f, "GET", "/claimd/history?event=clock_moved", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(&f, "history.0.text"), "running");
    ck_assert_str_eq(api_pick(&f, "history.1.text"), "frozen, ahead by 2000000000 s");
}

START_TEST(impossible_clock_requests_are_refused)
{
    static const struct api_row rows[] = {
#define BODY  "Invalid request body"
#define VALUE "Invalid API request"
        {"POST", "/claimd/clock/advance", NULL, 400, BODY},
        {"POST", "/claimd/clock/advance", "[]", 400, BODY},
        {"POST", "/claimd/clock/advance", "{}", 400, BODY},
        {"POST", "/claimd/clock/advance", "{\"seconds\":1,\"to\":\"next\"}", 400, BODY},
        {"POST", "/claimd/clock/advance", "{\"minutes\":1}", 400, BODY},
        {"POST", "/claimd/clock/advance", "{\"seconds\":1.5}", 400, BODY},
        {"POST", "/claimd/clock/advance", "{\"seconds\":1.0}", 400, BODY},
        {"POST", "/claimd/clock/advance", "{\"seconds\":\"1\"}", 400, BODY},
        {"POST", "/claimd/clock/advance", "{\"seconds\":true}", 400, BODY},
        {"POST", "/claimd/clock/advance", "{\"seconds\":null}", 400, BODY},
        {"POST", "/claimd/clock/advance", "{\"seconds\":-1}", 400, VALUE},
        {"POST", "/claimd/clock/advance", "{\"seconds\":31622401}", 400, VALUE},
        {"POST", "/claimd/clock/advance", "{\"seconds\":9223372036854775807}", 400,
         VALUE},
        {"POST", "/claimd/clock/advance", "{\"seconds\":9223372036854775808}", 400, BODY},
        {"POST", "/claimd/clock/advance", "{\"to\":\"last\"}", 400, VALUE},
        {"POST", "/claimd/clock/advance", "{\"to\":1}", 400, VALUE},
        {"PUT", "/claimd/clock", "{}", 400, BODY},
        {"PUT", "/claimd/clock", "{\"state\":\"late\"}", 400, VALUE},
        {"PUT", "/claimd/clock", "{\"state\":\"running\",\"x\":1}", 400, BODY},
        {"PUT", "/claimd/clock", "{\"state\":\"running\",\"ahead_seconds\":-1}", 400,
         VALUE},
        {"PUT", "/claimd/clock", "{\"state\":\"running\",\"ahead_seconds\":2000000001}",
         400, VALUE},
        {"DELETE", "/claimd/clock", NULL, 405, NULL},
    };

    ck_api_rows(&f, rows);
    ck_assert_int_eq(clock_now_ms(testapi_clock(f.testapi)), API_FIXTURE_START_MS);
    ck_assert(clock_stands(testapi_clock(f.testapi)));
    ck_assert_uint_eq(history_last(testapi_history(f.testapi)), 0);
}

TESTAPI_CASE("reset");

static void
make_queues(const char *project, int count)
{
    f.c.headers[API_HEADER_PROJECT_ID] = project;
    for (int i = 0; i < count; i++)
        ck_api(&f, "POST", api_text(&f, "/v2/queues/q%d/messages", i),
               "{\"messages\":[{\"body\":1}]}", 201, NULL);
    ck_api(&f, "PUT", "/v2/topics/t", NULL, 201, NULL);
    f.c.headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
}

static uint64_t
count_queues(void)
{
    struct store_totals totals;

    ck_assert_int_eq(
        store_totals(f.store, STORE_AT(clock_now_ms(testapi_clock(f.testapi))), &totals),
        ST_OK);
    return totals.queues;
}

START_TEST(everything_goes)
{
    make_queues("a", 150);
    make_queues("b", 3);
    ck_assert_uint_eq(count_queues(), 155);
    f.c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(&f, "POST", "/claimd/reset", NULL, 204, NULL);
    ck_assert_uint_eq(count_queues(), 0);
    ck_api(&f, "POST", "/claimd/reset", NULL, 204, NULL);
    ck_api(&f, "GET", "/claimd/history?event=reset", NULL, 200, NULL);
    ck_assert_str_eq(events("history"), "reset@0 reset@0");
}

START_TEST(only_one_project_goes)
{
    make_queues("a", 3);
    make_queues("b", 3);
    ck_api(&f, "POST", "/claimd/reset?project=a", NULL, 204, NULL);
    ck_assert_uint_eq(count_queues(), 4);
    f.c.headers[API_HEADER_PROJECT_ID] = "b";
    ck_api(&f, "POST", "/claimd/reset", NULL, 204, NULL);
    ck_assert_uint_eq(count_queues(), 0);
}

START_TEST(waiters_are_woken_before_the_clock_moves)
{
    struct pending waiter, other, reset;

    pending_begin(&waiter, &f, "POST", CLAIMS, "wait=30");
    f.c.headers[API_HEADER_PROJECT_ID] = "b";
    pending_prepare(&other, &f, "POST", CLAIMS, "wait=30");
    other.req.headers[API_HEADER_PROJECT_ID] = bytes_str("b");
    ck_assert_int_eq(pending_fetch(&other), API_WAIT);
    pending_prepare(&reset, &f, "POST", "/claimd/reset", NULL);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(pending_fetch(&reset), API_AGAIN);
    ck_assert_int_eq(waiter.gone, 1);
    ck_assert_int_eq(other.gone, 0); /* of another project */
    waiter.waiting.end = WAITING_OVER;
    pending_finish(&waiter, 204);
    ck_assert_int_eq(pending_fetch(&reset), API_SEND);
    ck_assert_int_eq(reset.res.code, 204);
    pending_end(&reset);
    pending_end(&waiter);
    pending_end(&other);
}

TESTAPI_CASE("history");

START_TEST(all_that_a_worker_does_is_reported)
{
    const char *claim, *id;

    post(300, 0);
    claim = api_take(&f, "q", 1);
    id = api_text(&f, "%.24s", api_pick_id(&f, "messages.0.href"));
    ck_api(&f, "PATCH", api_text(&f, CLAIMS "/%s", claim), "{\"ttl\":90,\"grace\":60}",
           204, NULL);
    ck_api(&f, "DELETE", api_text(&f, "/v2/queues/q/messages/%s", id), NULL, 403, NULL);
    ck_api(&f, "DELETE", api_text(&f, "/v2/queues/q/messages/%s?claim_id=%s", id, claim),
           NULL, 204, NULL);
    post(300, 0);
    claim = api_take(&f, "q", 1);
    ck_api(&f, "DELETE", api_text(&f, CLAIMS "/%s", claim), NULL, 204, NULL);
    ck_api(&f, "DELETE", "/v2/queues/q/messages?pop=1", NULL, 200, NULL);
    ck_api(&f, "GET", "/claimd/history", NULL, 200, NULL);
    ck_assert_str_eq(
        events("history"),
        "queue_made@0 posted@0 claimed@0 renewed@0 refused@0 finished@0 posted@0 "
        "claimed@0 released@0 deleted@0");
    ck_assert_str_eq(api_pick(&f, "history.2.client"), API_CALL_CLIENT);
    ck_assert_str_eq(api_pick(&f, "history.2.action"), "claims:create");
    ck_assert_str_eq(api_pick(&f, "history.2.ids.0"), id);
    ck_assert_str_eq(api_pick(&f, "history.4.action"), "messages:delete");
    ck_assert_str_eq(api_pick(&f, "history.5.claim"), api_pick(&f, "history.2.claim"));
    ck_assert_str_eq(api_pick(&f, "history.9.action"), "messages:pop");
}

START_TEST(a_move_reports_the_number_of_dropped_events)
{
    for (int i = 0; i < HISTORY_MOST + 5; i++)
        post(60, 0);
    advance(59);
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "\"lost\":0,"));
    advance(1);
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "\"lost\":5,"));
    ck_assert_str_eq(api_pick(&f, "events.99.event"), "message_expired");
}

START_TEST(it_is_shown_in_pages_and_parts)
{
    for (int i = 0; i < 5; i++)
        post(300, 0);
    ck_api(&f, "GET", "/claimd/history?since=1&limit=2", NULL, 200, NULL);
    ck_assert_str_eq(events("history"), "posted@0 posted@0");
    ck_assert_str_eq(api_pick(&f, "links.0.href"),
                     "/claimd/history?since=3&limit=2&project=" API_CALL_PROJECT);
    ck_api(&f, "GET", api_pick(&f, "links.0.href"), NULL, 200, NULL);
    ck_assert_str_eq(events("history"), "posted@0 posted@0");
    ck_api(&f, "GET", api_pick(&f, "links.0.href"), NULL, 200, NULL);
    ck_api_body(&f, "{'last':6,'lost':0,'history':['*']}");
    ck_api(&f, "GET", "/claimd/history?event=queue_made,refused", NULL, 200, NULL);
    ck_assert_str_eq(events("history"), "queue_made@0");
    ck_api(&f, "GET", "/claimd/history?queue=other", NULL, 200, NULL);
    ck_assert_str_eq(events("history"), "");
    ck_api(&f, "GET", "/claimd/history?project=other", NULL, 200, NULL);
    ck_assert_str_eq(events("history"), "");
}

START_TEST(allowed_requests_pass_unchanged)
{
    static const char *const paths[] = {"/livez", "/readyz", "/", "/openapi.json"};

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        ck_assert_int_lt(api_call(&f.c, "GET", paths[i], NULL), 400);
    f.c.headers[API_HEADER_CLIENT_ID] = "x";
    ck_api(&f, "GET", "/v2/ping", NULL, 400, NULL);
    ck_api(&f, "GET", "/claimd/history", NULL, 200, NULL);
    ck_assert_str_eq(events("history"), "refused@0");
    ck_assert_str_eq(api_pick(&f, "history.0.action"), "ping:get");
}

START_TEST(wrong_questions_about_it_are_refused)
{
    static const struct api_row rows[] = {
        {"GET", "/claimd/history?since=-1", NULL, 400, NULL},
        {"GET", "/claimd/history?since=x", NULL, 400, NULL},
        {"GET", "/claimd/history?limit=0", NULL, 400, NULL},
        {"GET", "/claimd/history?limit=1001", NULL, 400, NULL},
        {"GET", "/claimd/history?event=posted,lost", NULL, 400, NULL},
    };

    ck_api_rows(&f, rows);
    ck_assert_ptr_nonnull(strstr(api_pick(&f, "description"),
                                 "the parameter event is \"posted,lost\". It must be a "
                                 "comma-separated list of queue_made,"));
}

TESTAPI_CASE("expect");

START_TEST(a_met_expectation_returns_at_once)
{
    ck_api(&f, "GET", "/claimd/expect?queue=q&messages=0&claimed=0&free=0&wait=5", NULL,
           200, NULL);
    post(300, 0);
    post(300, 0);
    ck_assert_ptr_nonnull(api_take(&f, "q", 1));
    ck_api(&f, "GET", "/claimd/expect?queue=q&claimed=1", NULL, 200, NULL);
    ck_api_body(&f, "{'messages':2,'claimed':1,'free':1}");
    ck_api(&f, "GET", "/claimd/expect?queue=q&messages=2&claimed=0", NULL, 409, NULL);
    ck_assert_str_eq(api_pick(&f, "description"),
                     "queue q has messages=2, claimed=1, free=1");
    ck_api(&f, "GET", "/claimd/expect?queue=none&messages=1", NULL, 409, NULL);
    ck_assert_str_eq(
        api_pick(&f, "description"),
        "queue none (which does not exist) has messages=0, claimed=0, free=0");
    ck_api(&f, "GET", "/claimd/expect?queue=q&project=other&messages=0", NULL, 200, NULL);
}

START_TEST(an_expectation_waits_until_it_is_met)
{
    struct pending a;

    pending_begin(&a, &f, "GET", "/claimd/expect?queue=q&messages=2&wait=7", NULL);
    ck_assert_int_eq(a.waiting.wait_ms, 7000);
    post(300, 0);
    ck_assert_int_gt(a.ready, 0);
    ck_assert_int_eq(pending_fetch(&a), API_WAIT);
    post(300, 0);
    pending_finish(&a, 200);
    pending_end(&a);

    pending_begin(&a, &f, "GET", "/claimd/expect?queue=q&messages=0&wait=100000", NULL);
    ck_assert_int_eq(a.waiting.wait_ms, 1000 * api_limits_default.max_wait);
    a.waiting.end = WAITING_OVER;
    pending_finish(&a, 409);
    pending_end(&a);

    pending_begin(&a, &f, "GET", "/claimd/expect?queue=q&messages=0&wait=1", NULL);
    pending_end(&a); /* hung up */
    post(300, 0);
}

START_TEST(an_expectation_without_a_condition_is_refused)
{
    static const struct api_row rows[] = {
        {"GET", "/claimd/expect?messages=0", NULL, 400, NULL},
        {"GET", "/claimd/expect?queue=q", NULL, 400, NULL},
        {"GET", "/claimd/expect?queue=q&messages=-2", NULL, 400, NULL},
        {"GET", "/claimd/expect?queue=q&messages=x", NULL, 400, NULL},
        {"GET", "/claimd/expect?queue=q&messages=0&wait=-3", NULL, 400, NULL},
        {"GET", "/claimd/expect?queue=q&message=0", NULL, 400, NULL},
    };

    ck_api_rows(&f, rows);
    ck_assert_str_eq(api_pick(&f, "description"),
                     "the query is \"queue=q&message=0\". It must have at least one of "
                     "messages, claimed and free");
}
