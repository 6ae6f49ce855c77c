/* Fault rules of the test API (docs/api.md 23.7), as far as the API applies them. */
#include "support/pending.h"
#include "support/testapi_fixture.h"

#include <jansson.h>
#include <stdio.h>

#define FAULTS   "/claimd/faults"
#define STATS    "/v2/queues/q/stats"
#define MESSAGES "/v2/queues/q/messages"
#define CLAIMS   "/v2/queues/q/claims"
#define BODY     "{\"messages\":[{\"body\":1,\"ttl\":300}]}"

/* The next requests come with this header; NULL: without. */
static void
say(const char *fault)
{
    f.c.headers[API_HEADER_FAULT] = fault;
}

/* One request with this header. */
static int
fetch(const char *fault, const char *method, const char *target, const char *body)
{
    int code;

    say(fault);
    code = api_call(&f.c, method, target, body);
    say(NULL);
    return code;
}

/* Rules in JSON, with ' for ". */
static void
set(const char *rules)
{
    char *text = (char *)(uintptr_t)api_text(&f, "{'faults':[%s]}", rules);

    for (char *at = text; *at != '\0'; at++)
        if (*at == '\'')
            *at = '"';
    ck_api(&f, "PUT", FAULTS, text, 204, NULL);
}

static void
expect_total(int total, int claimed)
{
    ck_api(&f, "GET", STATS, NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), api_text(&f, "\"total\":%d", total)));
    ck_assert_ptr_nonnull(
        strstr(api_body(&f.c), api_text(&f, "\"claimed\":%d", claimed)));
}

/* The texts of all entries of this event, joined by commas. */
static const char *
texts(const char *event)
{
    const char *all = "";
    json_t *tree, *item;
    size_t i;

    ck_api(&f, "GET", api_text(&f, "/claimd/history?event=%s", event), NULL, 200, NULL);
    tree = json_loads(api_body(&f.c), 0, NULL);
    json_array_foreach(json_object_get(tree, "history"), i, item) all =
        api_text(&f, "%s%s%s", all, i == 0 ? "" : ", ",
                 json_string_value(json_object_get(item, "text")));
    json_decref(tree);
    return all;
}

TESTAPI_CASE("faults");

START_TEST(without_the_test_api_there_are_none)
{
    struct api_fixture plain;

    api_fixture_open(&plain);
    ck_api(&plain, "GET", FAULTS, NULL, 404, NULL);
    ck_api(&plain, "PUT", FAULTS, "{\"faults\":[]}", 404, NULL);
    ck_api(&plain, "DELETE", FAULTS, NULL, 404, NULL);
    plain.c.headers[API_HEADER_FAULT] = "status=503";
    ck_api(&plain, "GET", STATS, NULL, 200, NULL);
    plain.c.headers[API_HEADER_FAULT] = "nonsense";
    ck_api(&plain, "GET", STATS, NULL, 200, NULL);
    ck_assert_int_eq(plain.c.res.fault.kind, FAULT_NONE);
    api_fixture_close(&plain);
}

START_TEST(a_refusal_is_like_the_servers_and_nothing_has_happened)
{
    ck_assert_int_eq(fetch("status=503", "POST", MESSAGES, BODY), 503);
    ck_api_header(&f, "Retry-After", "1");
    ck_api_body(&f, "{'title':'Service temporarily unavailable',"
                    "'description':'a test injected this fault. Try again in 1 second'}");
    ck_assert_int_eq(fetch("status=503; retry_after=7", "POST", MESSAGES, BODY), 503);
    ck_api_header(&f, "Retry-After", "7");
    ck_api_body(&f, "{'title':'Service temporarily unavailable','description':"
                    "'a test injected this fault. Try again in 7 seconds'}");
    ck_assert_int_eq(fetch("status=429; retry_after=0", "POST", MESSAGES, BODY), 429);
    ck_api_header(&f, "Retry-After", "0");
    ck_assert_int_eq(f.c.res.fault.kind, FAULT_NONE); /* it is a response like others */
    ck_api(&f, "GET", "/v2/queues", NULL, 200, NULL);
    ck_api_body(&f, "{'queues':[],'links':'*'}");
    ck_assert_str_eq(texts("fault"), "status=503, status=503; retry_after=7, "
                                     "status=429; retry_after=0");
}

START_TEST(a_refusal_without_a_document_says_when_too)
{
    ck_assert_int_eq(fetch("status=503; retry_after=9", "HEAD", "/v1/queues/q", NULL),
                     503);
    ck_api_header(&f, "Retry-After", "9");
}

START_TEST(a_request_cut_before_the_handler_has_not_happened)
{
    (void)fetch("cut=before", "POST", MESSAGES, BODY);
    ck_assert_int_eq(f.c.res.fault.kind, FAULT_CUT_BEFORE);
    expect_total(0, 0);
    ck_assert_str_eq(texts("fault"), "cut=before");
    ck_assert_str_eq(texts("refused,posted"), ""); /* no event reports a refusal */
}

START_TEST(a_request_cut_after_the_handler_has_happened)
{
    static const char *const lost[] = {"cut=after", "half"};

    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(fetch(lost[i], "POST", MESSAGES, BODY), 201);
        ck_assert_int_eq(f.c.res.fault.kind, i == 0 ? FAULT_CUT_AFTER : FAULT_HALF);
        expect_total(i + 1, i);
        ck_assert_int_eq(fetch(lost[i], "POST", CLAIMS "?limit=1", NULL), 201);
        ck_assert(!bytes_present(f.c.res.claim_id)); /* the front end leaves it */
        expect_total(i + 1, i + 1);
    }
}

START_TEST(a_response_that_is_late_or_slow_says_so)
{
    api_post_letters(&f, "q", "ab");
    ck_assert_int_eq(fetch("latency; ms=250", "POST", CLAIMS "?limit=1", NULL), 201);
    ck_assert_int_eq(f.c.res.fault.kind, FAULT_LATENCY);
    ck_assert_int_eq(f.c.res.fault.ms, 250);
    ck_assert(bytes_present(f.c.res.claim_id)); /* the claim is released */
    ck_assert_int_eq(fetch("slow; bytes=3; every_ms=4", "POST", CLAIMS, NULL), 201);
    ck_assert_int_eq(f.c.res.fault.kind, FAULT_SLOW);
    ck_assert_int_eq(f.c.res.fault.bytes, 3);
    ck_assert_int_eq(f.c.res.fault.ms, 4);
    ck_assert(bytes_present(f.c.res.claim_id));
    ck_api(&f, "GET", STATS, NULL, 200, NULL);
    ck_assert_int_eq(f.c.res.fault.kind, FAULT_NONE);
    ck_assert_int_eq(fetch("latency; ms=1", "GET", CLAIMS "/none", NULL), 404);
    ck_assert_int_eq(f.c.res.fault.kind, FAULT_LATENCY); /* refusals too */
}

START_TEST(a_claim_ends_early)
{
    const char *claim;

    api_post_letters(&f, "q", "a");
    ck_assert_int_eq(fetch("end_claim", "POST", CLAIMS, NULL), 201);
    ck_assert(!bytes_present(f.c.res.claim_id));
    claim = api_text(&f, "%s", api_response_header(&f.c, "Location"));
    expect_total(1, 0);
    ck_api(&f, "PATCH", claim, "{\"ttl\":60,\"grace\":60}", 404, NULL);
    ck_assert_ptr_nonnull(api_take(&f, "q", 1)); /* another worker has it */
    ck_assert_int_eq(fetch("end_claim", "POST", CLAIMS, NULL), 204); /* there is none */
    ck_assert_str_eq(texts("fault"), "end_claim, end_claim");
}

START_TEST(a_claim_from_several_queues_ends_early_too)
{
    api_post_letters(&f, "q", "a");
    ck_assert_int_eq(
        fetch("end_claim", "POST", "/claimd/claims?queue=none&queue=q", NULL), 201);
    expect_total(1, 0);
}

START_TEST(the_clock_jumps_before_a_request)
{
    const char *claim;

    api_post_letters(&f, "q", "ab");
    claim = api_take(&f, "q", 1);
    ck_assert_int_eq(
        fetch("clock; seconds=61", "GET", api_text(&f, CLAIMS "/%s", claim), NULL), 404);
    ck_assert_uint_gt(f.c.slices, 1);
    ck_assert_int_eq(clock_now_ms(testapi_clock(f.testapi)),
                     API_FIXTURE_START_MS + 61000);
    ck_assert_uint_gt(f.moves, 0);
    expect_total(2, 0);
    ck_assert_int_eq(fetch("clock; seconds=3600", "POST", CLAIMS, NULL), 204);
    ck_assert_str_eq(texts("fault"), "clock; seconds=61, clock; seconds=3600");
    ck_api(&f, "GET", "/claimd/history?event=claim_ended,message_expired", NULL, 200,
           NULL);
    ck_assert_str_eq(api_pick(&f, "history.0.event"), "claim_ended");
    ck_assert_str_eq(api_pick(&f, "history.2.event"), "message_expired");
}

START_TEST(a_jump_of_the_clock_counts_once)
{
    set("{'fault':'clock; seconds=5'}");
    api_post_letters(&f, "q", "a");
    ck_assert_uint_gt(f.c.slices, 1);
    ck_assert_int_eq(clock_now_ms(testapi_clock(f.testapi)), API_FIXTURE_START_MS + 5000);
    ck_api(&f, "GET", FAULTS, NULL, 200, NULL);
    ck_api_body(&f, "{'faults':[{'match':{},'every':1,'skip':0,'times':0,"
                    "'fault':'clock; seconds=5','matched':1,'struck':1}]}");
}

START_TEST(a_request_that_waits_counts_once)
{
    struct pending a;

    set("{'match':{'action':'claims:create'},'fault':'latency; ms=5'}");
    pending_begin(&a, &f, "POST", CLAIMS, "wait=10");
    api_post_letters(&f, "q", "a");
    pending_finish(&a, 201);
    ck_assert_int_eq(a.res.fault.kind, FAULT_LATENCY);
    pending_end(&a);
    ck_api(&f, "GET", FAULTS, NULL, 200, NULL);
    ck_api_body(&f, "{'faults':[{'match':{'action':'claims:create'},'every':1,'skip':0,"
                    "'times':0,'fault':'latency; ms=5','matched':1,'struck':1}]}");
}

START_TEST(rules_are_for_routes_queues_projects_and_clients)
{
    static const struct {
        const char *match;
        int get_q, get_r, post_q;
    } rows[] = {
        {"{}", 503, 503, 503},
        {"{'action':'queues:stats'}", 503, 503, 201},
        {"{'method':'POST'}", 200, 200, 503},
        {"{'queue':'q'}", 503, 200, 503},
        {"{'queue':'q','method':'GET'}", 503, 200, 201},
        {"{'project':'" API_CALL_PROJECT "'}", 503, 503, 503},
        {"{'project':'other'}", 200, 200, 201},
        {"{'client':'3381AF92-2b9e-11e3-b191-71861300734c'}", 503, 503, 503},
        {"{'client':'someone'}", 200, 200, 201},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        set(api_text(&f, "{'match':%s,'fault':'status=503'}", rows[i].match));
        ck_api(&f, "GET", STATS, NULL, rows[i].get_q, NULL);
        ck_api(&f, "GET", "/v2/queues/r/stats", NULL, rows[i].get_r, NULL);
        ck_api(&f, "POST", MESSAGES, BODY, rows[i].post_q, NULL);
    }
    ck_api(&f, "DELETE", FAULTS, NULL, 204, NULL);
    ck_api(&f, "POST", MESSAGES, BODY, 201, NULL);
}

START_TEST(several_rules_are_a_little_play)
{
    set("{'match':{'queue':'q'},'times':1,'fault':'status=503; retry_after=3'},"
        "{'match':{'queue':'q'},'skip':1,'every':2,'times':1,'fault':'status=429'}");
    ck_api(&f, "GET", STATS, NULL, 503, NULL);
    ck_api(&f, "GET", STATS, NULL, 200, NULL);
    ck_api(&f, "GET", STATS, NULL, 200, NULL);
    ck_api(&f, "GET", STATS, NULL, 429, NULL);
    ck_api(&f, "GET", STATS, NULL, 200, NULL);
    ck_api(&f, "GET", FAULTS, NULL, 200, NULL);
    ck_api_body(&f, "{'faults':[{'match':{'queue':'q'},'every':1,'skip':0,'times':1,"
                    "'fault':'status=503; retry_after=3','matched':1,'struck':1},"
                    "{'match':{'queue':'q'},'every':2,'skip':1,'times':1,"
                    "'fault':'status=429','matched':3,'struck':1}]}");
    ck_assert_str_eq(texts("fault"), "status=503; retry_after=3, status=429");
}

START_TEST(a_requests_own_header_comes_before_the_rules)
{
    set("{'fault':'status=503'}");
    ck_assert_int_eq(fetch("status=429", "GET", STATS, NULL), 429);
    ck_api(&f, "GET", FAULTS, NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "\"matched\":0,\"struck\":0"));
}

START_TEST(the_server_itself_has_no_faults)
{
    set("{'fault':'status=503'},{'fault':'cut=before'}");
    ck_api(&f, "GET", "/livez", NULL, 200, NULL);
    ck_api(&f, "GET", "/", NULL, 300, NULL);
    ck_api(&f, "GET", "/claimd/history", NULL, 200, NULL);
    ck_api(&f, "GET", STATS, NULL, 503, NULL);
    ck_assert_int_eq(fetch("status=503", "GET", FAULTS, NULL), 400);
    ck_assert_int_eq(fetch("half", "DELETE", FAULTS, NULL), 400);
    ck_assert_str_eq(
        api_pick(&f, "description"),
        "the header Claimd-Fault is not allowed on requests to the server itself");
    ck_api(&f, "GET", STATS, NULL, 503, NULL); /* the rules are still there */
}

START_TEST(a_header_that_is_no_fault_is_refused)
{
    ck_assert_int_eq(fetch("latency", "POST", MESSAGES, BODY), 400);
    ck_assert_str_eq(api_pick(&f, "description"),
                     "the header Claimd-Fault is wrong: latency requires ms=N");
    ck_assert_int_eq(fetch("", "POST", MESSAGES, BODY), 400);
    ck_assert_int_eq(fetch("half,half", "POST", MESSAGES, BODY), 400);
    expect_total(0, 0);
    ck_assert_str_eq(texts("fault"), "");
}

START_TEST(a_malformed_list_of_rules_changes_nothing)
{
#define RULE(members)  "{\"faults\":[{\"fault\":\"half\"},{" members "}]}"
#define MATCH(members) RULE("\"fault\":\"half\",\"match\":" members)
    static const struct {
        const char *body, *why;
    } rows[] = {
        {"", "the body is empty"},
        {"[]", NULL},
        {"{}", "the body must be {\"faults\": [...]}"},
        {"{\"faults\":{}}", NULL},
        {"{\"faults\":[],\"more\":1}", NULL},
        {"{\"faults\":[1]}", "faults[0] must be an object"},
        {RULE(""), "faults[1].fault: it is required"},
        {RULE("\"fault\":1"), "faults[1].fault: it must be a string"},
        {RULE("\"fault\":\"cut=never\""), NULL},
        {RULE("\"fault\":\"slow; bytes=1\""),
         "faults[1].fault: slow requires every_ms=N"},
        {RULE("\"fault\":\"half\",\"often\":1"),
         "faults[1]: unknown member. It must be match, every, skip, times or fault "
         "(received "
         "\"often\")"},
        {RULE("\"fault\":\"half\",\"every\":0"),
         "faults[1].every: it must be an integer between 1 and 1000000000 (received "
         "0)"},
        {RULE("\"fault\":\"half\",\"every\":1.5"), NULL},
        {RULE("\"fault\":\"half\",\"every\":\"2\""), NULL},
        {RULE("\"fault\":\"half\",\"skip\":-1"),
         "faults[1].skip: it must be an integer between 0 and 1000000000 (received "
         "-1)"},
        {RULE("\"fault\":\"half\",\"times\":1000000001"), NULL},
        {RULE("\"fault\":\"half\",\"times\":1e30"), NULL},
        {MATCH("[]"), "faults[1].match: it must be an object"},
        {MATCH("{\"route\":\"x\"}"),
         "faults[1].match: unknown member. It must be action, method, queue, project or "
         "client (received \"route\")"},
        {MATCH("{\"queue\":1}"),
         "faults[1].match.queue: it must be a string (received 1)"},
        {MATCH("{\"queue\":\"\"}"),
         "faults[1].match.queue: it must not be empty (received \"\")"},
        {MATCH("{\"method\":\"post\"}"),
         "faults[1].match.method: unknown method (received \"post\"). It must be one of "
         "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"},
        {MATCH("{\"action\":\"claims\"}"), NULL},
        {MATCH("{\"action\":\"ci:use\"}"),
         "faults[1].match.action: requests to the server itself cannot have faults "
         "(received \"ci:use\")"},
    };

    set("{'match':{'queue':'q'},'fault':'status=503'}");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_api(&f, "PUT", FAULTS, rows[i].body, 400, NULL);
        if (rows[i].why != NULL && i > 0)
            ck_assert_str_eq(api_pick(&f, "description"), rows[i].why);
        ck_api(&f, "GET", FAULTS, NULL, 200, NULL);
        ck_api_body(&f, "{'faults':[{'match':{'queue':'q'},'every':1,'skip':0,'times':0,"
                        "'fault':'status=503','matched':0,'struck':0}]}");
    }
    ck_api(&f, "PUT", FAULTS, MATCH("{\"action\":\"claims\"}"), 400, NULL);
    ck_assert_ptr_nonnull(
        strstr(api_pick(&f, "description"),
               "faults[1].match.action: unknown action (received \"claims\"). It must be "
               "one of claims:create, claims:get, "));
    ck_assert_ptr_nonnull(strstr(api_pick(&f, "description"),
                                 ", metrics:get, state:dump, "
                                 "state:load"));
}

/* So many rules. */
static const char *
many(int count)
{
    static char text[8192];
    size_t len = (size_t)snprintf(text, sizeof(text), "{\"faults\":[");

    for (int i = 0; i < count; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s{\"fault\":\"half\"}",
                                i == 0 ? "" : ",");
    (void)snprintf(text + len, sizeof(text) - len, "]}");
    return text;
}

START_TEST(there_are_at_most_a_hundred_rules)
{
    ck_api(&f, "PUT", FAULTS, many(FAULT_RULES_MOST), 204, NULL);
    ck_api(&f, "PUT", FAULTS, many(FAULT_RULES_MOST + 1), 400, NULL);
    ck_assert_str_eq(api_pick(&f, "description"),
                     "faults has 101 rules. The maximum is 100");
    ck_api(&f, "GET", FAULTS, NULL, 200, NULL);
    ck_assert_str_eq(api_pick(&f, "faults.99.fault"), "half");
    ck_api(&f, "PUT", FAULTS, many(0), 204, NULL);
    ck_api(&f, "GET", FAULTS, NULL, 200, NULL);
    ck_api_body(&f, "{'faults':[]}");
}

START_TEST(a_reset_of_everything_takes_the_rules_too)
{
    set("{'fault':'status=503'}");
    ck_api(&f, "POST", "/claimd/reset?project=p", NULL, 204, NULL);
    ck_api(&f, "GET", STATS, NULL, 503, NULL);
    f.c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(&f, "POST", "/claimd/reset", NULL, 204, NULL);
    f.c.headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
    ck_api(&f, "GET", STATS, NULL, 200, NULL);
}

/* Fails the 1st, 2nd, ... allocation of a request until it succeeds without; it has
 * memory of its own each time. */
static int
sweep(const char *fault, const char *method, const char *target, const char *body,
      int wanted)
{
    int code = 0;

    for (uint64_t nth = 1; code != wanted; nth++) {
        ck_assert_uint_lt(nth, 1000);
        arena_fini(&f.c.arena);
        buf_fini(&f.c.res.body);
        mem_fail_nth(f.mem, nth);
        code = fetch(fault, method, target, body);
        mem_fail_nth(f.mem, 0);
        ck_assert(store_audit(f.store));
        ck_assert(code == wanted || code == 503);
    }
    return code;
}

START_TEST(rules_without_memory_stay_as_they_were)
{
    set("{'match':{'queue':'none'},'fault':'status=503'}");
    (void)sweep(NULL, "PUT", FAULTS, "{\"faults\":[{\"fault\":\"status=429\"}]}", 204);
    ck_api(&f, "GET", STATS, NULL, 429, NULL);
    (void)sweep(NULL, "GET", FAULTS, NULL, 200);
    (void)sweep(NULL, "DELETE", FAULTS, NULL, 204);
    ck_api(&f, "GET", STATS, NULL, 200, NULL);
}

START_TEST(faults_without_memory_do_no_harm)
{
    (void)sweep("status=429; retry_after=5", "POST", MESSAGES, BODY, 429);
    expect_total(0, 0);
    (void)sweep("cut=after", "POST", MESSAGES, BODY, 201);
    expect_total(1, 0);
    (void)sweep("end_claim", "POST", CLAIMS, NULL, 201);
    expect_total(1, 0);
    (void)sweep("clock; seconds=1000", "POST", CLAIMS, NULL, 204);
    expect_total(0, 0);
}
