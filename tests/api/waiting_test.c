/*
 * Requests that wait for a message (docs/api.md 11), with the test in the place of the
 * front end; and the numbers of claims (12).
 */
#include "support/pending.h"

#include <stdio.h>
#include <stdlib.h>

#define CLAIMS "/v2/queues/q/claims"
#define POP    "/v2/queues/q/messages?pop=2"

static uint64_t
claimed(struct api_fixture *f)
{
    struct store_totals totals;

    ck_assert_int_eq(store_totals(f->store, STORE_AT(f->c.now_ms), &totals), ST_OK);
    return totals.claimed;
}

/* ---------------------------------------------------------------------- waiting */

TEST_CASE("waiting");

API_TEST(over_the_project_limit_a_request_returns_ready_messages_at_once)
{
    const struct api_project_limits limits = {.waiters = 1};
    struct pending first, second, third;

    api_limit(f->api, &limits);
    pending_prepare(&first, f, "POST", "/v2/queues/q/claims", "wait=20");
    ck_assert_int_eq(pending_fetch(&first), API_WAIT);
    pending_prepare(&second, f, "POST", "/v2/queues/q/claims", "wait=20");
    ck_assert_int_eq(pending_fetch(&second), API_SEND);
    ck_assert_int_eq(second.res.code, 429);
    ck_assert_uint_eq(second.waiting.waiter_count, 0);
    pending_prepare(&third, f, "POST", "/v2/queues/r/claims", "wait=20");
    api_post_letters(f, "r", "a");
    ck_assert_int_eq(pending_fetch(&third), API_SEND);
    ck_assert_int_eq(third.res.code, 201);
    ck_assert_int_eq(pending_fetch(&first),
                     API_WAIT); /* it waits on, and is counted once */
    pending_end(&first);
    pending_end(&second);
    pending_prepare(&second, f, "POST", "/v2/queues/q/claims", "wait=20");
    ck_assert_int_eq(pending_fetch(&second), API_WAIT);
    pending_end(&second);
    pending_end(&third);
}

API_TEST(a_refused_long_polling_request_for_several_queues_keeps_no_memory)
{
    const struct api_project_limits limits = {.waiters = 1};
    struct pending first, refused;
    size_t used = 0;

    api_limit(f->api, &limits);
    pending_begin(&first, f, "POST", CLAIMS, "wait=20");
    for (int i = 0; i < 10; i++) {
        pending_prepare(&refused, f, "POST", "/claimd/claims?queue=q&queue=r&queue=s",
                        "wait=20");
        ck_assert_int_eq(pending_fetch(&refused), API_SEND);
        ck_assert_int_eq(refused.res.code, 429);
        pending_end(&refused);
        if (i == 0)
            used = mem_used(f->mem);
    }
    if (!api_fixture_on_redis())
        ck_assert_uint_eq(mem_used(f->mem), used);
    pending_end(&first);
}

/* All that may wait. A claim of version 1 has a body. */
static const struct way {
    const char *method, *target, *body;
    int found, empty;
} ways[] = {
    {"POST", CLAIMS, NULL, 201, 204},
    {"POST", "/v1.1/queues/q/claims", NULL, 201, 204},
    {"POST", "/v1/queues/q/claims", "{\"ttl\":60,\"grace\":60}", 201, 204},
    {"POST", "/claimd/claims?queue=q", NULL, 201, 204},
    {"POST", "/claimd/claims?queue=r&queue=q", NULL, 201, 204},
    {"DELETE", POP, NULL, 200, 200},
    {"DELETE", "/v1.1/queues/q/messages?pop=2", NULL, 200, 200},
};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static void
begin_way(struct pending *a, struct api_fixture *f, const struct way *way,
          const char *prefer)
{
    pending_prepare(a, f, way->method, way->target, prefer);
    a->req.body = bytes_str(way->body);
}

/* It waits. */
static void
way_waits(struct pending *a, struct api_fixture *f, const struct way *way)
{
    begin_way(a, f, way, "wait=20");
    ck_assert_int_eq(pending_fetch(a), API_WAIT);
}

/* A test of each way, with a fixture of its own. */
#define WAY_TEST(id)                                                                     \
    FIXTURE_LOOP_AS(id, WAYS, struct api_fixture, f, api_fixture_open(f),                \
                    api_fixture_close(f))

WAY_TEST(a_waiter_is_tried_again_when_there_is_a_message)
{
    struct pending a;

    way_waits(&a, f, &ways[_i]);
    ck_assert_int_eq(a.waiting.wait_ms, 20000);
    ck_assert_int_eq(pending_fetch(&a), API_WAIT); /* as often as one likes */
    api_post_letters(f, "q", "a");
    ck_assert_int_eq(a.ready, 1);
    pending_finish(&a, ways[_i].found);
    ck_assert_str_eq(pending_header(&a, "Preference-Applied"), "wait=20");
    pending_end(&a);
}

WAY_TEST(when_its_time_is_over_the_response_is_the_usual_one)
{
    struct pending a;

    way_waits(&a, f, &ways[_i]);
    a.waiting.end = WAITING_OVER;
    pending_finish(&a, ways[_i].empty);
    ck_assert_str_eq(pending_header(&a, "Preference-Applied"), "wait=20");
    pending_end(&a);
    api_post_letters(f, "q", "a");
    ck_assert_int_eq(a.ready, 0); /* it is notified no more */
}

WAY_TEST(a_disconnected_waiter_claims_nothing)
{
    struct pending a;

    way_waits(&a, f, &ways[_i]);
    api_post_letters(f, "q", "a");
    a.waiting.end = WAITING_ABANDONED;
    pending_finish(&a, ways[_i].empty);
    pending_end(&a);
    ck_assert_uint_eq(claimed(f), 0);
    ck_assert_ptr_nonnull(api_take(f, "q", 1));
}

WAY_TEST(at_its_last_look_it_takes_what_is_there)
{
    struct pending a;

    way_waits(&a, f, &ways[_i]);
    api_post_letters(f, "q", "a");
    a.waiting.end = WAITING_OVER;
    pending_finish(&a, ways[_i].found);
    pending_end(&a);
}

WAY_TEST(the_deletion_of_its_queue_ends_it)
{
    struct pending a;

    ck_api(f, "PUT", "/v2/queues/q", NULL, 201, NULL);
    way_waits(&a, f, &ways[_i]);
    ck_api(f, "DELETE", "/v2/queues/q", NULL, 204, NULL);
    ck_assert_int_eq(a.gone, 1);
    a.waiting.end = WAITING_OVER;
    pending_finish(&a, ways[_i].empty);
    pending_end(&a);
}

WAY_TEST(it_may_end_in_the_middle)
{
    struct pending a;

    way_waits(&a, f, &ways[_i]);
    pending_end(&a); /* the front end has given it up */
    api_post_letters(f, "q", "a");
    ck_assert_int_eq(a.ready, 0);
}

WAY_TEST(with_a_message_there_it_does_not_wait)
{
    struct pending a;

    api_post_letters(f, "q", "a");
    begin_way(&a, f, &ways[_i], "wait=20");
    pending_finish(&a, ways[_i].found);
    ck_assert_str_eq(pending_header(&a, "Preference-Applied"),
                     "wait=20"); /* it would have */
    pending_end(&a);
}

static const struct {
    const char *prefer, *applied; /* NULL: does not wait */
    int64_t max_wait;
} preferences[] = {
    {"wait=1", "wait=1", 45},
    {"wait=45", "wait=45", 45},
    {"wait=46", "wait=45", 45},
    {"wait=9999999999999999999999", "wait=45", 45},
    {"foo, WAIT=3;x", "wait=3", 45},
    {"wait=3, wait=4", "wait=3", 45},
    {"wait=3", "wait=2", 2},
    {"wait=0", NULL, 45},
    {"wait=-1", NULL, 45},
    {"wait=x", NULL, 45},
    {"wait", NULL, 45},
    {"", NULL, 45},
    {NULL, NULL, 45},
    {"wait=3", NULL, 0},
};

LOOP_TEST(how_long_it_waits_is_said, sizeof(preferences) / sizeof(preferences[0]))
{
    struct api_limits limits = api_limits_default;
    struct api_fixture f;
    struct pending a;

    limits.max_wait = preferences[_i].max_wait;
    api_fixture_open_with(&f, &limits);
    pending_prepare(&a, &f, "POST", CLAIMS, preferences[_i].prefer);
    if (preferences[_i].applied == NULL) {
        pending_finish(&a, 204);
        ck_assert_ptr_null(pending_header(&a, "Preference-Applied"));
    } else {
        ck_assert_int_eq(pending_fetch(&a), API_WAIT);
        ck_assert_int_eq(a.waiting.wait_ms, atoi(preferences[_i].applied + 5) * 1000);
        a.waiting.end = WAITING_OVER;
        pending_finish(&a, 204);
        ck_assert_str_eq(pending_header(&a, "Preference-Applied"),
                         preferences[_i].applied);
    }
    pending_end(&a);
    api_fixture_close(&f);
}

START_TEST(a_retry_before_the_wake_up_of_a_deleted_queue_does_not_wait)
{
    enum { CROWD = 600 }; /* more than are notified in one go */
    static struct pending a[CROWD];
    struct api_fixture f;

    if (api_fixture_on_redis())
        return; /* there the deletion notifies all of them */
    api_fixture_open(&f);
    ck_api(&f, "PUT", "/v2/queues/q", NULL, 201, NULL);
    for (int i = 0; i < CROWD; i++)
        pending_begin(&a[i], &f, "POST", "/v2/queues/q/claims", "wait=20");
    ck_api(&f, "DELETE", "/v2/queues/q", NULL, 204, NULL);
    ck_assert_int_eq(a[CROWD - 1].gone, 0);
    ck_assert_int_eq(pending_fetch(&a[CROWD - 1]), API_SEND);
    ck_assert_int_eq(a[CROWD - 1].res.code, 204);
    for (int i = 0; i < CROWD; i++)
        pending_end(&a[i]);
    api_fixture_close(&f);
}

API_TEST(a_front_end_that_leases_nothing_gets_a_response_at_once)
{
    f->c.headers[API_HEADER_PREFER] = "wait=20";
    for (int i = 0; i < WAYS; i++) {
        ck_api(f, ways[i].method, ways[i].target, ways[i].body, ways[i].empty, NULL);
        ck_assert_ptr_null(api_response_header(&f->c, "Preference-Applied"));
    }
}

API_TEST(nothing_else_waits)
{
    static const char *const targets[] = {
        "/v2/queues/q/messages", "/v2/queues/q/messages?ids=1", "/v2/queues",
        "/v2/queues/q/stats",    "/v2/queues/q/claims/x",       "/v2/"};

    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        struct pending a;

        pending_prepare(&a, f, "GET", targets[i], "wait=20");
        ck_assert_int_eq(pending_fetch(&a), API_SEND);
        ck_assert_ptr_null(pending_header(&a, "Preference-Applied"));
        pending_end(&a);
    }
}

API_TEST(errors_are_returned_before_a_request_waits)
{
    struct pending a;

    pending_prepare(&a, f, "POST", CLAIMS "?limit=0", "wait=20");
    pending_finish(&a, 400);
    pending_end(&a);
    pending_prepare(&a, f, "POST", CLAIMS, "wait=20");
    a.req.body = bytes_str("{\"ttl\":");
    pending_finish(&a, 400);
    pending_end(&a);
}

API_TEST(while_it_waits_hardly_any_memory_is_kept)
{
    enum { CROWD = 1000 };
    static struct pending a[CROWD];
    size_t before, first;

    ck_api(f, "PUT", "/v2/queues/q", NULL, 201, NULL);
    pending_begin(&a[0], f, "POST", CLAIMS, "wait=20"); /* the wait queue, and tables */
    before = mem_used(f->mem);
    pending_begin(&a[1], f, "POST", CLAIMS, "wait=20");
    first = mem_used(f->mem) - before;
    for (int i = 2; i < CROWD; i++)
        pending_begin(&a[i], f, "POST", CLAIMS, "wait=20");
    ck_assert_ptr_null(a[1].res.body.data); /* its response has none */
    ck_assert_uint_le(mem_used(f->mem) - before, CROWD * (first + 16));
    before = mem_used(f->mem);
    for (int round = 0; round < 1000; round++) /* a claim without messages takes none */
        ck_assert_int_eq(pending_fetch(&a[round % CROWD]), API_WAIT);
    ck_assert_uint_eq(mem_used(f->mem), before);
    for (int i = 0; i < CROWD; i++)
        pending_end(&a[i]);
}

/* -------------------------------------------------------------------- several queues */

TEST_CASE("several queues");

API_TEST(the_first_one_named_that_has_a_message_wins)
{
    api_post_letters(f, "b", "b");
    api_post_letters(f, "c", "cd");
    ck_api(f, "POST", "/claimd/claims?queue=a&queue=c&queue=b&limit=5", NULL, 201, NULL);
    ck_api_body(f, "{'messages': ["
                   "{'body': 'c', 'age': 0, 'ttl': 360, 'href': '*', 'id': '*'},"
                   "{'body': 'd', 'age': 0, 'ttl': 360, 'href': '*', 'id': '*'}]}");
    ck_assert_int_eq(
        strncmp(api_response_header(&f->c, "Location"), "/v2/queues/c/claims/", 20), 0);
    ck_assert_int_eq(
        strncmp(api_pick(f, "messages.0.href"), "/v2/queues/c/messages/", 22), 0);
    ck_api(f, "POST", "/claimd/claims?queue=a&queue=c&queue=b", NULL, 201, NULL);
    ck_assert_int_eq(
        strncmp(api_response_header(&f->c, "Location"), "/v2/queues/b/claims/", 20), 0);
    ck_api(f, "POST", "/claimd/claims?queue=a&queue=c&queue=b", NULL, 204, NULL);
}

API_TEST(mistakes_in_the_names_are_reported)
{
    char many[2048] = "/claimd/claims?limit=1", long_name[256] = "/claimd/claims?queue=";

    ck_api(f, "POST", "/claimd/claims", NULL, 400, "Missing parameter");
    ck_api(f, "POST", "/claimd/claims?limit=5", NULL, 400, "Missing parameter");
    ck_api(f, "POST", "/claimd/claims?queue=", NULL, 400, NULL);
    ck_api(f, "POST", "/claimd/claims?queue=a&queue=b%20c", NULL, 400,
           "Invalid queue identification");
    memset(long_name + strlen(long_name), 'x', 65);
    ck_api(f, "POST", long_name, NULL, 400, "Invalid queue identification");
    for (int i = 0; i < 32; i++) {
        size_t len = strlen(many);

        (void)snprintf(many + len, sizeof(many) - len, "&queue=q%d", i);
    }
    ck_api(f, "POST", many, NULL, 204, NULL);
    api_post_letters(f, "q31", "a");
    ck_api(f, "POST", many, NULL, 201, NULL);
    strcat(many, "&queue=q32");
    ck_api(f, "POST", many, NULL, 400, "Invalid API request");
    ck_api(f, "POST", "/claimd/claims?queue=a&limit=0", NULL, 400, NULL);
    ck_api(f, "POST", "/claimd/claims?queue=a", "[]", 400, NULL);
    ck_api(f, "GET", "/claimd/claims?queue=a", NULL, 405, NULL);
}

API_TEST(one_named_twice_is_waited_for_once)
{
    struct pending a;

    pending_begin(&a, f, "POST", "/claimd/claims?queue=q&queue=r&queue=q&queue=r",
                  "wait=20");
    ck_assert_uint_eq(a.waiting.waiter_count, 2);
    api_post_letters(f, "r", "a");
    ck_assert_int_eq(a.ready, 1);
    pending_finish(&a, 201);
    pending_end(&a);
}

API_TEST(a_waiter_served_by_one_queue_leaves_all_wait_queues)
{
    struct pending a, next;

    pending_begin(&a, f, "POST", "/claimd/claims?queue=q&queue=r&queue=s", "wait=20");
    pending_begin(&next, f, "POST", CLAIMS, "wait=20");
    api_post_letters(f, "s", "a");
    pending_finish(&a, 201);
    api_post_letters(f, "q", "b");
    ck_assert_int_eq(a.ready, 1);
    ck_assert_int_eq(next.ready, 1);
    pending_finish(&next, 201);
    pending_end(&a);
    pending_end(&next);
}

/* ---------------------------------------------------------------------- memory */

TEST_CASE("memory");

/* Lets each allocation fail while a request begins to wait, or while it is tried
 * again. */
static void
sweep(const char *target, bool again)
{
    struct api_fixture f;
    unsigned refused = 0;

    api_fixture_open(&f);
    for (uint64_t nth = 1;; nth++) {
        enum api_next next;
        uint64_t attempts;
        struct pending a;

        ck_assert_uint_lt(nth, 1000);
        pending_prepare(&a, &f, "POST", target, "wait=20");
        if (again) {
            ck_assert_int_eq(pending_fetch(&a), API_WAIT);
            api_post_letters(&f, "q", "a");
            arena_fini(&a.arena); /* so that it has to allocate */
        }
        attempts = mem_attempts(f.mem);
        mem_fail_nth(f.mem, nth);
        next = pending_fetch(&a);
        mem_fail_nth(f.mem, 0);
        attempts = mem_attempts(f.mem) - attempts;
        if (next == API_SEND && a.res.code == 503) {
            refused++;
            ck_assert_uint_eq(a.waiting.waiter_count, 0);
            pending_end(&a);
            ck_assert_uint_eq(claimed(&f), 0);
            if (again)
                ck_assert_ptr_nonnull(api_take(&f, "q", 1));
            ck_api(&f, "DELETE", "/v2/queues/q", NULL, 204, NULL);
            continue;
        }
        ck_assert_int_eq(next, again ? API_SEND : API_WAIT);
        if (again)
            ck_assert_int_eq(a.res.code, 201);
        pending_end(&a);
        ck_api(&f, "DELETE", "/v2/queues/q", NULL, 204, NULL);
        if (attempts < nth)
            break; /* none of them failed */
    }
    ck_assert_uint_gt(refused, 2);
    api_fixture_close(&f);
}

START_TEST(without_memory_no_request_waits)
{
    sweep(CLAIMS, false);
    sweep("/claimd/claims?queue=q&queue=r&queue=s", false);
}

/* The test API allocates a record for each waiter. */
API_TEST_WITH(without_memory_for_the_test_api_the_project_keeps_its_quota_of_waiters,
              api_fixture_open_testapi(f, &api_limits_default))
{
    const struct api_project_limits limits = {.waiters = 1};
    static const char target[] = "/claimd/claims?queue=q&queue=r&queue=s";
    unsigned refused = 0;
    struct pending a;

    api_limit(f->api, &limits);
    pending_begin(&a, f, "POST", target, "wait=20"); /* allocates what the API keeps */
    pending_end(&a);
    for (uint64_t nth = 1;; nth++) {
        uint64_t attempts = mem_attempts(f->mem);
        enum api_next next;

        ck_assert_uint_lt(nth, 1000);
        pending_prepare(&a, f, "POST", target, "wait=20");
        mem_fail_nth(f->mem, nth);
        next = pending_fetch(&a);
        mem_fail_nth(f->mem, 0);
        attempts = mem_attempts(f->mem) - attempts;
        if (next == API_SEND) {
            ck_assert_int_eq(a.res.code, 503);
            refused++;
        }
        pending_end(&a);
        if (next == API_WAIT && attempts < nth)
            break; /* none of them failed */
    }
    ck_assert_uint_gt(refused, 2);
}

START_TEST(without_memory_nothing_is_claimed)
{
    sweep(CLAIMS, true);
    sweep("/claimd/claims?queue=r&queue=q&queue=s", true);
}

/* ---------------------------------------------------------------------- numbers */

TEST_CASE("claim numbers");

static const char *const versions[] = {"/v2", "/v1.1", "/v1"};

LOOP_TEST(a_claim_has_the_same_number_in_every_response, 3)
{
    struct api_fixture f;
    const char *location, *number;

    api_fixture_open(&f);
    api_post_letters(&f, "q", "ab");
    ck_api(&f, "POST", api_text(&f, "%s/queues/q/claims?limit=1", versions[_i]),
           "{\"ttl\":60,\"grace\":60}", 201, NULL);
    location = api_text(&f, "%s", api_response_header(&f.c, "Location"));
    number = api_text(&f, "%s", api_response_header(&f.c, "Claim-Number"));
    ck_assert_uint_eq(strspn(number, "0123456789"), strlen(number));
    ck_assert_int_gt(strtoll(number, NULL, 10), 0);
    ck_api(&f, "GET", location, NULL, 200, NULL);
    ck_api_header(&f, "Claim-Number", number);
    ck_api(&f, "PATCH", location, "{\"ttl\":60,\"grace\":60}", 204, NULL);
    ck_api_header(&f, "Claim-Number", number);
    ck_api(&f, "POST", api_text(&f, "%s/queues/q/claims?limit=1", versions[_i]),
           "{\"ttl\":60,\"grace\":60}", 201, NULL);
    ck_assert_int_gt(strtoll(api_response_header(&f.c, "Claim-Number"), NULL, 10),
                     strtoll(number, NULL, 10));
    ck_api(&f, "DELETE", location, NULL, 204, NULL);
    ck_assert_ptr_null(api_response_header(&f.c, "Claim-Number"));
    ck_api(&f, "GET", location, NULL, 404, NULL);
    ck_assert_ptr_null(api_response_header(&f.c, "Claim-Number"));
    api_fixture_close(&f);
}

API_TEST(where_nothing_is_claimed_there_is_no_number)
{
    ck_api(f, "POST", CLAIMS, NULL, 204, NULL);
    ck_assert_ptr_null(api_response_header(&f->c, "Claim-Number"));
}
