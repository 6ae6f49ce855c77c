/* Running out of memory is a response, and what was refused has not happened. */
#include "support/api_fixture.h"

#include <jansson.h>
#include <stdlib.h>

/* A body of 1200 bytes: four of them need more space than a response has at first. */
#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X1200                                                                            \
    X64 X64 X64 X64 X64 X64 X64 X64 X64 X64 X64 X64 X64 X64 X64 X64 X64 X64 "xxxxxxxxxx" \
                                                                            "x"
#define BIG "{\"body\":\"" X1200 "\"}"

/* Requests that need memory, in an order in which each changes something. */
static const struct step {
    const char *method, *target, *body;
    int code;
} steps[] = {
    {"PUT", "/v2/queues/made", "{\"color\":\"red\",\"_default_message_ttl\":60}", 201},
    {"POST", "/v2/queues/q/messages", "{\"messages\":[{\"body\":1},{\"body\":[2]}]}",
     201},
    {"GET", "/v2/%34%380924/queues?detailed=true&color=red", NULL, 200},
    {"GET", "/v2/queues?detailed=true&color=red", NULL, 200},
    {"GET", "/v2/queues/q/messages?echo=true&limit=1", NULL, 200},
    {"GET", "/v2/queues/q/stats", NULL, 200},
    {"POST", "/v2/queues/q/claims?limit=1", "{\"ttl\":60}", 201},
    {"GET", "/claimd/queues?sort=ready&limit=1", NULL, 200},
    {"GET", "/claimd/queues?offset=0&q=q", NULL, 200},
    {"GET", "/claimd/permissions", NULL, 200},
    {"POST", "/claimd/queues/q/pause", "{\"posts\":false}", 200},
    {"GET", "/claimd/queues/q/pause", NULL, 200},
    {"POST", "/claimd/queues/q/pause", "{\"posts\":true}", 200},
    {"POST", "/claimd/queues/q/pause", "{\"posts\":false}", 200},
    {"GET", "/claimd/%34%380924/queues?sort=name&q=q", NULL, 200},
    {"GET", "/claimd/queues/q/claims?limit=1", NULL, 200},
    {"GET", "/claimd/queues/q/messages?text=1&limit=1", NULL, 200},
    {"GET", "/claimd/queues/q/messages?group=reason", NULL, 200},
    {"DELETE", "/v2/queues/q/messages?pop=1", NULL, 200},
    {"POST", "/v2/queues/q/messages", "{\"messages\":[" BIG "," BIG "," BIG "]}", 201},
    {"POST", "/v2/queues/q/messages", "{\"messages\":[" BIG "," BIG "," BIG "]}", 201},
    {"POST", "/v2/queues/q/claims", NULL, 201},
    {"POST", "/v2/queues/q/messages", "{\"messages\":[" BIG "," BIG "," BIG "]}", 201},
    {"POST", "/v2/queues/q/messages", "{\"messages\":[" BIG "," BIG "," BIG "]}", 201},
    {"DELETE", "/v2/queues/q/messages?pop=9", NULL, 200},
    {"PATCH", "/v2/queues/made",
     "[{\"op\":\"replace\",\"path\":\"/metadata/color\",\"value\":\"blue\"}]", 200},
    {"PUT", "/v1/queues/made/metadata", "{\"size\":1}", 204},
    {"GET", "/v1/queues/made/metadata?x", NULL, 200},
    {"GET", "/v1/queues?limit=x", NULL, 400},
    {"POST", "/v2/queues/q/subscriptions",
     "{\"subscriber\":\"http://example.org\",\"options\":{\"_retry_policy\":{}}}", 201},
    {"GET", "/v2/queues/q/subscriptions?limit=1", NULL, 200},
    {"POST", "/v2/queues/new/subscriptions", "{\"subscriber\":\"http://example.org\"}",
     201},
    {"PUT", "/claimd/queues/q/schedules/n", "{\"every\":60,\"message\":{\"body\":1}}",
     201},
    {"PUT", "/claimd/queues/q/schedules/n",
     "{\"cron\":\"@hourly\",\"message\":{\"body\":[2]},\"missed\":\"all\"}", 200},
    {"PATCH", "/claimd/queues/q/schedules/n", "{\"paused\":true}", 200},
    {"PATCH", "/claimd/queues/q/schedules/n", "{\"paused\":true}", 200},
    {"GET", "/claimd/queues/q/schedules/n", NULL, 200},
    {"GET", "/claimd/queues/q/schedules?limit=1", NULL, 200},
    {"DELETE", "/claimd/queues/q/schedules/n", NULL, 204},
    {"GET", "/v2/health", NULL, 200},
    {"GET", "/v2/", NULL, 200},
    {"GET", "/openapi.json", NULL, 200},
};

/* Of a server for tests. A moved clock stays so, with or without memory for the
 * response. */
static const struct step testapi_steps[] = {
    {"POST", "/v2/queues/q/messages", "{\"messages\":[{\"body\":1},{\"body\":[2]}]}",
     201},
    {"POST", "/v2/queues/q/claims?limit=1", "{\"ttl\":60}", 201},
    {"POST", "/v2/queues/q/claims?limit=0", NULL, 400},
    {"GET", "/claimd/clock", NULL, 200},
    {"PUT", "/claimd/clock", "{\"state\":\"frozen\"}", 200},
    {"POST", "/claimd/clock/advance", "{\"seconds\":0}", 200},
    {"POST", "/claimd/clock/advance", "{\"to\":\"last\"}", 400},
    {"GET", "/claimd/history?limit=1&queue=q&event=posted,claimed", NULL, 200},
    {"GET", "/claimd/expect?queue=q&messages=2", NULL, 200},
    {"GET", "/claimd/expect?queue=q&messages=3", NULL, 409},
    {"GET", "/v2/queues/q/messages?echo=true", NULL, 200},
    {"GET", "/claimd/leaks", NULL, 200},
    {"GET", "/claimd/leaks?limit=1", NULL, 200},
    {"GET", "/claimd/queues/none/history", NULL, 404},
    {"GET", "/claimd/queues/q/messages/none", NULL, 404},
    {"GET", "/claimd/queues", NULL, 200},
    {"GET", "/claimd/leaks?marker=x", NULL, 400},
    {"POST", "/claimd/reset?project=other", NULL, 204},
    {"GET", "/claimd/state", NULL, 200},
    {"GET", "/claimd/dump", NULL, 200},
    {"POST", "/claimd/load", "{\"project\":\"other\",\"queue\":\"q\",\"message\":{}}",
     400},
};

/* The identity stub's; one that needs a token has it from the login before. */
#define AUTH_V3                                                                          \
    "{\"auth\":{\"identity\":{\"methods\":[\"password\"],\"password\":{\"user\":{"       \
    "\"name\":"                                                                          \
    "\"ann\",\"password\":\"x\"}}},\"scope\":{\"project\":{\"name\":\"p\"}}}}"
#define AUTH_V2                                                                          \
    "{\"auth\":{\"tenantName\":\"p\",\"passwordCredentials\":{\"username\":\"ann\","     \
    "\"password\":\"x\"}}}"
static const struct step identity_steps[] = {
    {"GET", "/identity", NULL, 300},
    {"GET", "/identity/v3/", NULL, 200},
    {"GET", "/identity/v2.0", NULL, 200},
    {"POST", "/identity/v2.0/tokens", AUTH_V2, 200},
    {"POST", "/identity/v3/auth/tokens", AUTH_V3, 201},
    {"GET", "/identity/v3/auth/tokens", NULL, 200},
    {"GET", "/identity/v3/auth/projects", NULL, 200},
    {"GET", "/identity/v3/auth/catalog", NULL, 200},
    {"GET", "/identity/v2.0/tenants", NULL, 200},
    {"GET", "/v2/queues", NULL, 200},
    {"GET", "/openapi.json", NULL, 200},
};

/* Everything a client can see of the store, as one text. */
static const char *
picture(struct api_fixture *f)
{
    static const char *const views[] = {
        "/v2/queues?detailed=true&with_count=true",
        "/v2/queues/q/messages?echo=true&include_claimed=true",
        "/v2/queues/q/stats",
        "/v2/queues/q/subscriptions",
        "/claimd/queues/q/subscriptions",
        "/claimd/schedules",
    };
    const char *text = "";

    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
        ck_api(f, "GET", views[i], NULL, 200, NULL);
        text = api_text(f, "%s%s\n", text, api_body(&f->c));
    }
    return text;
}

static void
ck_refusal(struct api_fixture *f)
{
    ck_api_header(f, "Retry-After", "1");
    ck_assert_int_eq(f->c.res.status, ST_NO_MEMORY);
    if (api_response_header(&f->c, "Content-Type") != NULL)
        ck_api_body(
            f, "{'title': 'Service temporarily unavailable',"
               "'description': 'the server is out of memory. Try again in 1 second'}");
}

/* Lets the 1st, 2nd, ... allocation of a request fail until it succeeds without. */
static void
sweep(struct api_fixture *f, const struct step *step, bool all_that_follow)
{
    for (uint64_t nth = 1;; nth++) {
        const char *before = picture(f);
        int code;

        ck_assert_uint_lt(nth, 1000);
        arena_fini(&f->c.arena); /* so that the request has to allocate */
        buf_fini(&f->c.res.body);
        if (f->keystone != NULL)
            keystone_clear_cache(f->keystone); /* likewise */
        if (all_that_follow)
            mem_fail_from(f->mem, nth);
        else
            mem_fail_nth(f->mem, nth);
        code = api_call(&f->c, step->method, step->target, step->body);
        mem_fail_from(f->mem, 0);
        mem_fail_nth(f->mem, 0);
        ck_assert(store_audit(f->store));
        if (code == step->code)
            return;
        ck_assert_msg(code == 503, "%s %s, allocation %d: %d %s", step->method,
                      step->target, (int)nth, code, api_body(&f->c));
        ck_refusal(f);
        ck_assert_str_eq(picture(f), before);
    }
}

static size_t library_fail_at, library_allocations;

static void *
library_allocate(size_t size)
{
    return ++library_allocations == library_fail_at ? NULL : malloc(size);
}

/* Likewise of jansson, whose memory is its own. */
static void
sweep_library(struct api_fixture *f, const struct step *step)
{
    int code;

    library_fail_at = 0;
    do {
        library_fail_at++;
        library_allocations = 0;
        json_set_alloc_funcs(library_allocate, free);
        code = api_call(&f->c, step->method, step->target, step->body);
        json_set_alloc_funcs(malloc, free);
        if (library_allocations >= library_fail_at)
            ck_refusal(f);
    } while (library_allocations >= library_fail_at);
    ck_assert_int_eq(code, step->code);
}

static void
sweep_all(bool all_that_follow)
{
    struct api_limits limits = api_limits_default;
    struct api_fixture f;

    limits.admin_mode = true;
    api_fixture_open_with(&f, &limits);
    f.c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        sweep(&f, &steps[i], all_that_follow);
    api_fixture_close(&f);
}

LOOP_TEST(tests_without_memory_are_refused, 2)
{
    static const struct step freeze = {"PUT", "/claimd/clock", "{\"state\":\"frozen\"}",
                                       200};
    struct api_fixture f;

    api_fixture_open_testapi(&f, &api_limits_default);
    for (size_t i = 0; i < sizeof(testapi_steps) / sizeof(testapi_steps[0]); i++)
        sweep(&f, &testapi_steps[i], _i > 0);
    sweep_library(&f, &freeze);
    api_fixture_close(&f);
}

#define LONG_METADATA(first)                                                             \
    "{\"first\":" first                                                                  \
    ",\"list\":[1,2.5,null,{\"\\u00e9\":\"\\ud83d\\ude00\"}],\"text\":\"" X1200 X1200    \
    "\"}"
#define REPLACE "[{\"op\":\"replace\",\"path\":\"/metadata/first\",\"value\":\"new\"}]"

static const struct metadata_step {
    struct step step;
    const char *kept; /* afterwards, by GET of the target */
} metadata_steps[] = {
    {{"PUT", "/v2/queues/long", LONG_METADATA("\"old\""), 201}, LONG_METADATA("\"old\"")},
    {{"PATCH", "/v2/queues/long", REPLACE, 200}, LONG_METADATA("\"new\"")},
    {{"PUT", "/v1/queues/long/metadata", LONG_METADATA("3"), 204}, LONG_METADATA("3")},
};

/* Of the members that were sent; others stand for what the queue has by itself. */
static void
ck_kept(struct api_fixture *f, const struct metadata_step *step)
{
    json_t *wanted = json_loads(step->kept, 0, NULL), *seen, *value;
    const char *name;

    ck_api(f, "GET", step->step.target, NULL, 200, NULL);
    seen = json_loads(api_body(&f->c), 0, NULL);
    ck_assert(wanted != NULL && seen != NULL);
    json_object_foreach(wanted, name, value)
        ck_assert_msg(json_equal(json_object_get(seen, name), value), "%s", name);
    json_decref(wanted);
    json_decref(seen);
}

API_TEST(metadata_is_whole_or_refused_whatever_jansson_cannot_allocate)
{
    f->c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    for (size_t i = 0; i < sizeof(metadata_steps) / sizeof(metadata_steps[0]); i++) {
        sweep_library(f, &metadata_steps[i].step);
        ck_assert_uint_gt(library_fail_at, 10);
        ck_kept(f, &metadata_steps[i]);
    }
}

API_TEST_WITH(a_login_without_memory_is_refused, api_fixture_open_identity(f, NULL))
{
    const char *token;

    f->c.headers[API_HEADER_HOST] = "queues.test";
    f->c.headers[API_HEADER_PROJECT_ID] = "p";
    for (size_t i = 0; i < sizeof(identity_steps) / sizeof(identity_steps[0]); i++) {
        sweep(f, &identity_steps[i], false);
        sweep(f, &identity_steps[i], true);
        sweep_library(f, &identity_steps[i]);
        token = api_response_header(&f->c, "X-Subject-Token");
        if (token != NULL)
            f->c.headers[API_HEADER_AUTH_TOKEN] = f->c.headers[API_HEADER_SUBJECT_TOKEN] =
                api_text(f, "%s", token);
    }
    ck_assert_ptr_nonnull(f->c.headers[API_HEADER_AUTH_TOKEN]);
}

API_TEST_WITH(a_caller_with_a_token_is_refused_without_memory_not_let_in,
              api_fixture_open_access(f))
{
    const struct policy policy = policy_default;
    struct token_digest digest;
    struct reason why;
    struct buf list;
    size_t bad_line;

    buf_init(&list, f->mem);
    token_digest_of(bytes_str("token"), &digest);
    buf_str(&list, "all admin " API_CALL_PROJECT " never sha256:");
    for (size_t i = 0; i < sizeof(digest.bytes); i++)
        buf_printf(&list, "%02x", digest.bytes[i]);
    ck_assert_int_eq(access_replace(f->access, buf_view(&list), &policy, &bad_line, &why),
                     ST_OK);
    buf_fini(&list);
    f->c.headers[API_HEADER_AUTH_TOKEN] = "token";
    f->c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    sweep(f, &steps[0], false);
    sweep(f, &steps[1], false);
    sweep(f, &steps[1], true);
}

API_TEST_WITH(a_caller_with_a_keystone_token_is_refused_without_memory,
              api_fixture_open_keystone(f, &fake_keystone_roles))
{
    f->c.headers[API_HEADER_AUTH_TOKEN] = "admin,member@" API_CALL_PROJECT;
    f->c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    sweep(f, &steps[0], false);
    sweep(f, &steps[1], false);
    sweep(f, &steps[1], true);
    ck_assert_uint_gt(fake_keystone_requests(&f->fake),
                      20); /* its part has failed, too */
}

/* A certificate for the project of the fixture. */
static void
use_certificate(struct api_fixture *f)
{
    static const char list[] = "worker1 admin " API_CALL_PROJECT " dns:worker1.example\n";
    struct token_list *certificates;
    struct reason why;
    size_t bad_line;

    ck_assert_int_eq(token_list_read(f->mem, bytes_str(list), certificate_line_read,
                                     &certificates, &bad_line, &why),
                     ST_OK);
    access_use_certificates(f->access, certificates);
}

API_TEST_WITH(a_caller_with_a_certificate_is_refused_without_memory_not_let_in,
              api_fixture_open_access(f))
{
    static const struct certificate shown = {true, BYTES_LIT("dns:worker1.example")};
    static const struct certificate strange = {true, BYTES_LIT("dns:worker2.example")};

    use_certificate(f);
    f->c.certificate = &shown;
    f->c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    sweep(f, &steps[0], false);
    sweep(f, &steps[1], false);
    sweep(f, &steps[1], true);
    for (uint64_t nth = 1; nth < 20; nth++) {
        f->c.certificate = &strange;
        arena_fini(&f->c.arena);
        buf_fini(&f->c.res.body);
        mem_fail_from(f->mem, nth);
        (void)api_call(&f->c, steps[1].method, steps[1].target, steps[1].body);
        mem_fail_from(f->mem, 0);
        ck_assert(f->c.res.code == 401 || f->c.res.code == 503);
        f->c.certificate = &shown;
        ck_api(f, "GET", "/v2/queues/q/stats", NULL, 200, NULL);
        ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"total\":4"));
    }
}

/* By a policy that lets it in, and by one that does not: memory decides nothing of
 * that. */
API_TEST_WITH(a_policy_is_kept_without_memory, api_fixture_open_access(f))
{
    static const char *const tokens[] = {"worker worker " API_CALL_PROJECT " never"};
    struct policy policy = policy_default;
    struct reason why;

    ck_assert_int_eq(
        policy_read(
            &policy,
            bytes_str("{\"messages:create\":\"role:worker\",\"subscription:get_all\":"
                      "\"role:worker\",\"subscription:progress\":\"@\"}"),
            &why),
        ST_OK);
    api_allow_by(f, tokens, 1, &policy);
    f->c.headers[API_HEADER_AUTH_TOKEN] = "worker";
    sweep(f, &steps[1], false);
    sweep(f, &steps[1], true);
    api_allow(f, tokens, 1);
    for (uint64_t nth = 1; nth < 20; nth++) {
        arena_fini(&f->c.arena);
        buf_fini(&f->c.res.body);
        mem_fail_from(f->mem, nth);
        (void)api_call(&f->c, steps[1].method, steps[1].target, steps[1].body);
        mem_fail_from(f->mem, 0);
        ck_assert(f->c.res.code == 403 || f->c.res.code == 503);
    }
    ck_assert_int_eq(f->c.res.code, 403);
}

/* Shares the queue, and lets the allocations of a request with that grant fail. */
API_TEST_WITH(a_grant_is_signed_and_looked_at_without_memory_or_not_at_all,
              api_fixture_open_signing(f, "0123456789abcdef0123456789abcdef"))
{
    static const char *const tokens[] = {"boss admin " API_CALL_PROJECT " never"};
    static const struct step share = {"POST", "/v2/queues/q/share", "{}", 200};
    uint64_t nth = 0;
    int code = 503;

    api_allow(f, tokens, 1);
    f->c.headers[API_HEADER_AUTH_TOKEN] = "boss";
    sweep(f, &share, false);
    sweep(f, &share, true);
    f->c.headers[API_HEADER_AUTH_TOKEN] = NULL;
    f->c.headers[API_HEADER_URL_SIGNATURE] = api_pick(f, "signature");
    f->c.headers[API_HEADER_URL_EXPIRES] = api_pick(f, "expires");
    f->c.headers[API_HEADER_URL_METHODS] = api_pick(f, "methods.0");
    f->c.headers[API_HEADER_URL_PATHS] = api_pick(f, "paths.0");
    while (code == 503) {
        ck_assert_uint_lt(nth, 100);
        arena_fini(&f->c.arena);
        buf_fini(&f->c.res.body);
        mem_fail_from(f->mem, ++nth);
        code = api_call(&f->c, "GET", "/v2/queues/q/messages", NULL);
        mem_fail_from(f->mem, 0);
    }
    ck_assert_int_eq(code, 200);
    ck_assert_uint_gt(nth, 1);
}

/* Changes a subscription in one of several ways. id: of the subscription. */
static void
sweep_subscription(struct api_fixture *f, const char *id)
{
    const char *item = api_text(f, "/v2/queues/q/subscriptions/%s", id);
    const char *confirm = api_text(f, "%s/confirm", item);
    const struct step done[] = {
        {"GET", item, NULL, 200},
        {"GET", api_text(f, "/claimd/queues/q/subscriptions/%s", id), NULL, 200},
        {"PATCH", item,
         "{\"subscriber\":\"http://two.example.org\",\"ttl\":90,\"options\":{"
         "\"_retry_policy\":{\"minimum_delay\":1}}}",
         204},
        {"PUT", confirm, "{\"confirmed\":true}", 204},
        {"POST", "/v2/queues/q/subscriptions",
         "{\"subscriber\":\"http://two.example.org\"}", 409},
        {"PUT", confirm, "{\"confirmed\":false}", 204},
        {"DELETE", item, NULL, 204},
    };

    for (size_t i = 0; i < sizeof(done) / sizeof(done[0]); i++) {
        sweep(f, &done[i], false);
        sweep(f, &done[i], true);
    }
}

API_TEST(a_subscription_is_changed_or_not_without_memory)
{
    ck_api(f, "POST", "/v2/queues/q/subscriptions",
           "{\"subscriber\":\"http://example.org\"}", 201, NULL);
    sweep_subscription(f, api_pick(f, "subscription_id"));
}

START_TEST(an_api_without_memory_is_not_opened)
{
    struct api_config config = {.limits = api_limits_default, .mem = mem_new(0)};
    enum status st = ST_NO_MEMORY;
    struct api *api = NULL;
    uint64_t nth = 0;

    while (st != ST_OK) {
        mem_fail_nth(config.mem, ++nth);
        st = api_new(&config, &api);
        mem_fail_nth(config.mem, 0);
        ck_assert_int_eq(st, api == NULL ? ST_NO_MEMORY : ST_OK);
    }
    ck_assert_uint_gt(nth, 3);
    api_free(api);
    mem_destroy(config.mem);
}

START_TEST(a_request_that_one_allocation_fails_changes_nothing)
{
    sweep_all(false);
}

START_TEST(a_request_without_any_memory_is_refused_and_changes_nothing)
{
    sweep_all(true);
}

API_TEST(over_the_budget_posting_stops_and_everything_else_goes_on)
{
    api_post_letters(f, "q", "abc");
    mem_set_budget(f->mem, 1);
    ck_api(f, "POST", "/v2/queues/q/messages", "{\"messages\":[{\"body\":1}]}", 503,
           "Service temporarily unavailable");
    ck_api_header(f, "Retry-After", "5");
    ck_api(f, "PUT", "/v2/queues/other", NULL, 503, "Service temporarily unavailable");
    ck_api(f, "GET", "/v2/queues/q/messages?echo=true", NULL, 200, NULL);
    ck_api(f, "POST", "/v2/queues/q/claims?limit=1", NULL, 201, NULL);
    ck_api(f, "DELETE", "/v2/queues/q/messages?pop=2", NULL, 200, NULL);
    mem_set_budget(f->mem, 0);
    ck_api(f, "POST", "/v2/queues/q/messages", "{\"messages\":[{\"body\":1}]}", 201,
           NULL);
}

/* The same of a queue whose messages are encrypted. */
static const struct step sealed_steps[] = {
    {"POST", "/v2/queues/q/messages", "{\"messages\":[{\"body\":1},{\"body\":[2]}]}",
     201},
    {"POST", "/v2/queues/q/messages", "{\"messages\":[" BIG "," BIG "," BIG "]}", 201},
    {"GET", "/v2/queues/q/messages?echo=true&limit=1", NULL, 200},
    {"POST", "/v2/queues/q/claims?limit=1", "{\"ttl\":60}", 201},
    {"DELETE", "/v2/queues/q/messages?pop=1", NULL, 200},
    {"POST", "/v2/queues/q/claims", NULL, 201},
    {"PUT", "/v1/queues/q/metadata", "{\"size\":1}", 204},
    {"POST", "/v2/queues/q/messages", "{\"messages\":[" BIG "," BIG "," BIG "]}", 201},
    {"DELETE", "/v2/queues/q/messages?pop=9", NULL, 200},
};

START_TEST(encrypted_messages_survive_a_lack_of_memory)
{
    struct api_limits limits = api_limits_default;
    struct api_fixture f;

    limits.admin_mode = true;
    api_fixture_open_sealing(
        &f, &limits, "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
    ck_api(&f, "PUT", "/v2/queues/q", "{\"_enable_encrypt_messages\":true}", 201, NULL);
    for (size_t i = 0; i < sizeof(sealed_steps) / sizeof(sealed_steps[0]); i++)
        sweep(&f, &sealed_steps[i], false);
    for (size_t i = 0; i < sizeof(sealed_steps) / sizeof(sealed_steps[0]); i++)
        sweep(&f, &sealed_steps[i], true);
    api_fixture_close(&f);
}
