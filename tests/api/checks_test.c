/* Headers and their order (docs/api.md 3.1 to 3.5, 4). */
#include "support/api_fixture.h"

#include <stdlib.h>

#define CLIENT  API_HEADER_CLIENT_ID
#define PROJECT API_HEADER_PROJECT_ID
#define QI      "Invalid queue identification"

/* One request of the fixture's client with a header changed; NULL: without it. */
static void
ck_header(struct api_fixture *f, enum api_header header, const char *value,
          const char *method, const char *target, int code, const char *title)
{
    const char *usual = f->c.headers[header];

    f->c.headers[header] = value;
    ck_api(f, method, target, NULL, code, title);
    f->c.headers[header] = usual;
}

TEST_CASE("headers");

LIMITED_TEST(a_client_id_is_a_uuid_in_any_spelling, limits.require_headers = true)
{
    static const struct {
        const char *value;
        int code;
        const char *title;
    } cases[] = {
        {NULL, 400, "Missing header value"},
        {"", 400, "Wrong UUID value"},
        {"worker-1", 400, "Wrong UUID value"},
        {"7d5b1c1e-52a4-4c66-9f0e-3b2a9c6de00", 400, "Wrong UUID value"},
        {"7d5b1c1e52a44c669f0e3b2a9c6de001", 200, NULL},
        {"7D5B1C1E-52A4-4C66-9F0E-3B2A9C6DE001", 200, NULL},
        {"{7d5b1c1e-52a4-4c66-9f0e-3b2a9c6de001}", 200, NULL},
        {"urn:uuid:7d5b1c1e-52a4-4c66-9f0e-3b2a9c6de001", 200, NULL},
    };
    static const char *const targets[] = {"/v2/queues", "/v2/queues/q/messages",
                                          "/v1.1/queues", "/v2/"};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t k = 0; k < sizeof(targets) / sizeof(targets[0]); k++)
            ck_header(f, CLIENT, cases[i].value, "GET", targets[k], cases[i].code,
                      cases[i].title);
}

LIMITED_TEST(v1_needs_a_client_id_only_to_post_and_to_list_messages,
             limits.require_headers = true)
{
    ck_header(f, CLIENT, NULL, "POST", "/v1/queues/q/messages", 400,
              "Missing header value");
    ck_header(f, CLIENT, NULL, "GET", "/v1/queues/q/messages", 400,
              "Missing header value");
    ck_header(f, CLIENT, NULL, "GET", "/v1/queues", 204, NULL);
    ck_header(f, CLIENT, NULL, "GET", "/v1/queues/q/messages/x", 404, "Not found");
    ck_header(f, CLIENT, NULL, "DELETE", "/v1/queues/q/claims/x", 204, NULL);
    ck_header(f, CLIENT, NULL, "PATCH", "/v1/queues/q/messages", 405, NULL);
    ck_header(f, CLIENT, "x", "GET", "/v1/queues", 400, "Wrong UUID value");
    ck_header(f, CLIENT, "", "GET", "/v1/health", 400, "Wrong UUID value");
}

START_TEST(a_project_is_required_and_any_text_of_256_characters)
{
    char fits[257], long_one[258];
    struct api_fixture f;

    memset(fits, 'p', sizeof(fits) - 1);
    fits[sizeof(fits) - 1] = '\0';
    memset(long_one, 'p', sizeof(long_one) - 1);
    long_one[sizeof(long_one) - 1] = '\0';

    api_open_changed(&f, limits.require_headers = true);
    ck_header(&f, PROJECT, NULL, "GET", "/v2/queues", 400, "Project-Id Missing");
    ck_header(&f, PROJECT, NULL, "GET", "/v1.1/ping", 400, "Project-Id Missing");
    ck_header(&f, PROJECT, NULL, "GET", "/v1/queues", 204, NULL);
    ck_header(&f, PROJECT, "", "GET", "/v2/queues", 400,
              "Empty project header not allowed");
    ck_header(&f, PROJECT, "", "GET", "/v1/queues", 400,
              "Empty project header not allowed");
    ck_header(&f, PROJECT, fits, "PUT", "/v2/queues/q", 201, NULL);
    ck_header(&f, PROJECT, long_one, "PUT", "/v2/queues/q", 400, QI);
    ck_header(&f, PROJECT, long_one, "GET", "/v2/queues", 400,
              "Invalid project identification");
    ck_header(&f, PROJECT, "a.b/c", "PUT", "/v2/queues/q", 201, NULL);
    api_fixture_close(&f);
}

API_TEST(v1_without_a_project_has_queues_of_its_own)
{
    ck_header(f, PROJECT, NULL, "PUT", "/v1/queues/q", 201, NULL);
    ck_header(f, PROJECT, NULL, "HEAD", "/v1/queues/q", 204, NULL);
    ck_header(f, PROJECT, "480924", "HEAD", "/v1/queues/q", 404, NULL);
}

API_TEST(accept_must_allow_json)
{
    static const struct {
        const char *value;
        int code;
    } cases[] = {
        {NULL, 200},
        {"*/*", 200},
        {"application/*", 200},
        {"application/json", 200},
        {"text/html;q=0.9, application/json;q=0.1", 200},
        {"text/html", 406},
        {"application/json;q=0", 406},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_header(f, API_HEADER_ACCEPT, cases[i].value, "GET", "/v2/queues",
                  cases[i].code, NULL);
    f->c.headers[API_HEADER_ACCEPT] = "text/html";
    ck_api(f, "GET", "/v2/queues", NULL, 406, NULL);
    ck_assert_str_eq(api_body(&f->c), "");
    ck_assert_uint_eq(f->c.res.header_count, 0);
}

API_TEST(form_data_is_refused_if_there_is_a_body)
{
    static const struct {
        const char *type, *body;
        int code;
    } cases[] = {
        {"application/x-www-form-urlencoded", "{}", 400},
        {"APPLICATION/X-WWW-FORM-URLENCODED", "{}", 400},
        {"application/x-www-form-urlencoded", NULL, 201},
        {"application/x-www-form-urlencoded; charset=utf-8", "{}", 204},
        {"text/plain", "{}", 204},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        f->c.headers[API_HEADER_CONTENT_TYPE] = cases[i].type;
        ck_api(f, "PUT", "/v2/queues/q", cases[i].body, cases[i].code,
               cases[i].code == 400 ? "Invalid Content-Type" : NULL);
    }
}

TEST_CASE("order");

/* Everything is wrong; each mended, the next check speaks. */
LIMITED_TEST(checks_come_in_the_order_of_the_contract, limits.require_headers = true)
{
    const char *bad = "/v2/queues/a%20b/messages?limit=x";

    f->c.headers[API_HEADER_CONTENT_TYPE] = "application/x-www-form-urlencoded";
    f->c.headers[API_HEADER_ACCEPT] = "text/html";
    f->c.headers[CLIENT] = NULL;
    f->c.headers[PROJECT] = "";
    f->c.headers[API_HEADER_URL_SIGNATURE] = "x";
    ck_api(f, "PUT", bad, "{", 404, "404 Not Found");
    f->c.headers[API_HEADER_URL_SIGNATURE] = NULL;
    ck_api(f, "PUT", bad, "{", 400, "Invalid Content-Type");
    f->c.headers[API_HEADER_CONTENT_TYPE] = "application/json";
    ck_api(f, "PUT", bad, "{", 406, NULL);
    f->c.headers[API_HEADER_ACCEPT] = "*/*";
    ck_api(f, "PUT", bad, "{", 400, "Missing header value");
    f->c.headers[CLIENT] = API_CALL_CLIENT;
    ck_api(f, "PUT", bad, "{", 400, "Empty project header not allowed");
    f->c.headers[PROJECT] = API_CALL_PROJECT;
    ck_api(f, "PUT", bad, "{", 400, QI);
    ck_api(f, "PUT", "/v2/queues/ab/messages?limit=x", "{", 405, NULL);
    ck_api(f, "POST", "/v2/queues/ab/claims?limit=x", "{", 400, "Invalid parameter");
    ck_api(f, "POST", "/v2/queues/ab/claims?limit=1", "{", 400, "Invalid request body");
}

API_TEST(a_body_that_was_not_kept_is_refused_after_the_other_checks)
{
    f->c.body_too_large = true;
    ck_api(f, "POST", "/v2/nonsense", NULL, 404, NULL);
    ck_api(f, "PUT", "/v2/queues/q/messages", NULL, 405, NULL);
    ck_api(f, "POST", "/v2/queues/a%20b/messages", NULL, 400, QI);
    ck_api(f, "POST", "/v2/queues/q/messages", NULL, 400, "Invalid API request");
    ck_api(f, "PUT", "/v2/queues/q", NULL, 400, "Invalid API request");
    ck_api(f, "POST", "/v2/queues/q/claims", NULL, 400, "Invalid API request");
    ck_api(f, "POST", "/v2/queues/q/purge", NULL, 400, "Invalid API request");
    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 200, NULL);
    ck_api(f, "PUT", "/v1/queues/q", NULL, 201, NULL);
    f->c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    ck_api(f, "PATCH", "/v2/queues/q", NULL, 400, "Invalid request body");
    f->c.headers[API_HEADER_CONTENT_TYPE] = "application/x-www-form-urlencoded";
    ck_api(f, "PUT", "/v2/queues/q", NULL, 400, "Invalid Content-Type");
}

TEST_CASE("requests without headers");

API_TEST(without_authentication_neither_header_is_needed)
{
    static const char *const targets[] = {"/v2/queues", "/v1.1/queues", "/v2/ping",
                                          "/claimd/queues/q/schedules"};

    f->c.headers[PROJECT] = "default";
    ck_api(f, "PUT", "/v2/queues/q", NULL, 201, NULL);
    f->c.headers[CLIENT] = f->c.headers[PROJECT] = NULL;
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
        ck_assert_int_lt(api_call(&f->c, "GET", targets[i], NULL), 300);
    ck_api(f, "GET", "/v2/queues/q", NULL, 200, NULL); /* of the project default */
    ck_api(f, "GET", "/v1/queues/q", NULL, 404, NULL); /* of the project "" */
    f->c.headers[PROJECT] = "";
    ck_api(f, "GET", "/v2/queues", NULL, 400, "Empty project header not allowed");
}

API_TEST(a_client_without_an_id_lists_what_others_without_one_posted)
{
    static const char body[] = "{\"messages\": [{\"body\": 1}]}";

    f->c.headers[CLIENT] = NULL;
    ck_api(f, "POST", "/v2/queues/q/messages", body, 201, NULL);
    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"body\":1"));
    f->c.headers[CLIENT] = "00000000-0000-0000-0000-000000000000";
    ck_api(f, "POST", "/v2/queues/o/messages", body, 201, NULL);
    ck_api(f, "GET", "/v2/queues/o/messages", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"messages\":[]"));
    f->c.headers[CLIENT] = API_CALL_CLIENT;
    ck_api(f, "POST", "/v2/queues/p/messages", body, 201, NULL);
    ck_api(f, "GET", "/v2/queues/p/messages", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"messages\":[]"));
}

API_TEST_WITH(a_token_for_one_project_needs_neither_header, api_fixture_open_access(f))
{
    static const char *const lines[] = {"one worker red 2099-01-01T00:00:00Z",
                                        "two worker red,blue 2099-01-01T00:00:00Z",
                                        "all admin * 2099-01-01T00:00:00Z"};

    api_allow(f, lines, sizeof(lines) / sizeof(lines[0]));
    f->c.headers[CLIENT] = f->c.headers[PROJECT] = NULL;
    ck_header(f, API_HEADER_AUTH_TOKEN, "one", "GET", "/v2/queues", 200, NULL);
    ck_header(f, API_HEADER_AUTH_TOKEN, "two", "GET", "/v2/queues", 400,
              "Project-Id Missing");
    ck_header(f, API_HEADER_AUTH_TOKEN, "all", "GET", "/v2/queues", 400,
              "Project-Id Missing");
    ck_header(f, API_HEADER_AUTH_TOKEN, NULL, "GET", "/v2/queues", 401, "Unauthorized");
}

TEST_CASE("client ids");

LIMITED_TEST(client_ids_may_be_any_text_of_10_to_36_when_not_strict,
             limits.client_id_strict = false)
{
    ck_header(f, CLIENT, "worker-001", "GET", "/v2/queues", 200, NULL);
    ck_header(f, CLIENT, "worker-01", "GET", "/v2/queues", 400, "Wrong UUID value");
    ck_header(f, CLIENT, "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww", "GET", "/v2/queues", 200,
              NULL);
    ck_header(f, CLIENT, "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww", "GET", "/v2/queues",
              400, "Wrong UUID value");
    ck_api_body(f, "{'title': 'Wrong UUID value', 'description': 'the header Client-ID "
                   "is 37 characters long. It must be 10 to 36 (min_length_client_id,"
                   " max_length_client_id)'}");
    ck_header(f, CLIENT, "w", "GET", "/v2/queues", 400, "Wrong UUID value");
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "is 1 character long. It must be 10"));
}

LIMITED_TEST(a_client_id_that_is_not_utf_8_is_kept_with_as_many_bytes,
             limits.client_id_strict = false)
{
    static const char latin_1[] = "gr\xfc\xdf"
                                  "e aus m\xfcnchen\xfc";

    api_post_letters(f, "q", "a");
    f->c.headers[CLIENT] = latin_1;
    (void)api_take(f, "q", 1);
    ck_api(f, "GET", "/claimd/queues/q/claims", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "claims.0.client"), "gr??e aus m?nchen?");
    ck_api(f, "POST", "/claimd/queues/q/pause", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "last_pause.client"), "gr??e aus m?nchen?");
}

API_TEST(a_strict_server_says_that_the_client_id_must_be_a_uuid)
{
    ck_header(f, CLIENT, "worker-001", "GET", "/v2/queues", 400, "Wrong UUID value");
    ck_assert_str_eq(api_pick(f, "description"),
                     "the header Client-ID is \"worker-001\". It must be a UUID "
                     "(client_id_uuid_safe)");
}

TEST_CASE("refusals");

API_TEST(without_tokens_only_a_page_of_the_same_host_may_send_requests)
{
    static const struct {
        const char *host, *origin;
        int code;
    } cases[] = {
        {"queues.example:8888", NULL, 200},
        {"queues.example:8888", "http://queues.example:8888", 200},
        {"Queues.example", "https://queues.EXAMPLE", 200},
        {"queues.example", "https://other.example", 403},
        {"queues.example:8888", "http://queues.example", 403},
        {"queues.example", "queues.example", 403}, /* without a scheme */
        {"null", "null", 403},                     /* from a page without an origin */
        {"", "", 403},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        f->c.headers[API_HEADER_HOST] = cases[i].host;
        f->c.headers[API_HEADER_ORIGIN] = cases[i].origin;
        ck_api(f, "GET", "/v2/queues", NULL, cases[i].code,
               cases[i].code == 403 ? "Not authorized" : NULL);
    }
}

API_TEST(without_keys_no_signature_verifies)
{
    static const struct {
        const char *method, *target;
        int code; /* without one */
    } cases[] = {
        {"GET", "/v2/queues/q/messages", 200},
        {"POST", "/v2/queues/q/claims", 204},
        {"PUT", "/v2/queues/q", 201},
        {"GET", "/v2/ping", 204},
        {"GET", "/v1.1/queues", 200},
        {"GET", "/v1/health", 204},
        {"GET", "/", 300},
        {"OPTIONS", "/v2/queues", 200},
        {"UNKNOWN", "/v2/queues", 405},
    };
    static const char *const signatures[] = {"", "6a63d63242ebd18c3518871dda6fdcb6"};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t k = 0; k < 2; k++) {
            ck_header(f, API_HEADER_URL_SIGNATURE, signatures[k], cases[i].method,
                      cases[i].target, 404, "404 Not Found");
            ck_assert_ptr_nonnull(strstr(api_pick(f, "description"), "URL-Signature"));
        }
        ck_header(f, API_HEADER_URL_SIGNATURE, NULL, cases[i].method, cases[i].target,
                  cases[i].code, NULL);
    }
}

API_TEST(refusals_explain_themselves)
{
    ck_api(f, "GET", "/v2/queues?limit=21", NULL, 400, "Invalid API request");
    ck_api_body(f, "{'title': 'Invalid API request', 'description':"
                   " 'the parameter limit is \\\"21\\\". It must be an integer between "
                   "1 and 20 (max_queues_per_page)'}");
    ck_api(f, "GET", "/v2/queues?detailed=maybe", NULL, 400, "Invalid parameter");
    ck_assert_ptr_nonnull(strstr(api_pick(f, "description"), "detailed"));
    ck_api(f, "POST", "/v1/queues/nosuch/messages", "[{\"ttl\":60,\"body\":1}]", 404,
           "Not found");
    ck_assert_ptr_nonnull(strstr(api_pick(f, "description"), "nosuch"));
}

/* One refusal of a body, or of a query, and why. */
struct refusal {
    const char *method, *target, *body, *title, *description;
};

static void
ck_refusals(struct api_fixture *f, const struct refusal *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct refusal *c = &cases[i];

        ck_api(f, c->method, c->target, c->body, 400, c->title);
        ck_assert_str_eq(api_pick(f, "description"), c->description);
    }
}

API_TEST(every_cause_has_a_text_of_its_own)
{
#define BV "Invalid API request"
#define BB "Invalid request body"
#define Q  "/v2/queues/q"
    static const struct refusal cases[] = {
        {"POST", Q "/messages", "[]", BV,
         "the body must be an object with the array messages"},
        {"POST", Q "/messages", "{}", BV, "the member messages is required"},
        {"POST", Q "/messages",
         "{\"messages\":[{\"body\":1},{\"body\":1},{\"body\":1,\"ttl\":5}]}", BV,
         "messages[2].ttl is 5. It must be an integer between 60 and 1209600 "
         "(min_message_ttl, "
         "max_message_ttl)"},
        {"POST", Q "/messages", "{\"messages\":\n[{\"body\":}]}", BB,
         "the body is not JSON: line 2, column 10: a value is expected instead of '}'"},
        {"POST", Q "/messages", NULL, BB, "a body is required"},
        {"POST", Q "/claims", "{\"ttl\":5}", BV,
         "ttl is 5. It must be an integer between 60 and 43200 (min_claim_ttl, "
         "max_claim_ttl)"},
        {"POST", Q "/claims?limit=21", NULL, BV,
         "the parameter limit is \"21\". It must be an integer between 1 and 20 "
         "(max_messages_per_claim_or_pop)"},
        {"POST", Q "/claims?limit=x", NULL, "Invalid parameter",
         "the parameter limit is \"x\". It must be an integer between 1 and 20 "
         "(max_messages_per_claim_or_pop)"},
        {"PATCH", Q "/claims/x", "", BB, "a body is required"},
        {"PUT", Q, "[]", BB, "the body must be an object"},
        {"PUT", Q, "{\"_max_claim_count\":\"3\"}", BV,
         "_max_claim_count is \"3\". It must be an integer of at least 1"},
        {"PUT", Q, "{", BB,
         "the body is not JSON: line 1, column 2: the name of a member is expected at "
         "the end of the text"},
        {"PATCH", Q, "[{\"op\":\"add\"}]", BB,
         "[0].path is missing. It must be a JSON pointer of two parts, such as "
         "/metadata/NAME"},
        {"POST", Q "/purge", "{\"resource_types\":[\"claims\"]}", BV,
         "resource_types has \"claims\". It may contain only messages and subscriptions"},
        {"POST", Q "/purge", "{\"resource_types\":", BB,
         "the body is not JSON: line 1, column 19: a value is expected at the end of the "
         "text"},
        {"GET", Q "/messages?limit=0", NULL, BV,
         "the parameter limit is \"0\". It must be an integer between 1 and 20 "
         "(max_messages_per_page)"},
        {"GET", Q "/messages?ids=1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1", NULL, BV,
         "the parameter ids has 21 values. The maximum is 20 "
         "(max_messages_per_page)"},
        {"DELETE", Q "/messages?pop=21", NULL, BV,
         "the parameter pop is \"21\". It must be an integer between 1 and 20 "
         "(max_messages_per_claim_or_pop)"},
        {"PUT", "/v1/queues/q/metadata", "[]", BB, "the body must be an object"},
        {"PUT", "/v1/queues/q/metadata", NULL, BB, "a body is required"},
    };

    f->c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    ck_refusals(f, cases, sizeof(cases) / sizeof(cases[0]));
}

/* A value of a megabyte that begins so; owned. */
static char *
long_value(const char *before, const char *piece)
{
    enum { LONG = 1 << 20 };
    const size_t len = strlen(before), step = strlen(piece);
    char *text = malloc(len + LONG + 1);

    ck_assert_ptr_nonnull(text);
    memcpy(text, before, len);
    for (size_t i = 0; i < LONG; i++)
        text[len + i] = piece[i % step];
    text[len + LONG] = '\0';
    return text;
}

API_TEST(the_refusal_of_a_large_body_names_the_option)
{
    static const struct refusal cases[] = {
        {"POST", Q "/messages", NULL, BV,
         "the body is too large. The maximum is 262144 bytes (max_messages_post_size)"},
        {"PUT", Q, NULL, BV,
         "the body is too large. The maximum is 65536 bytes (max_queue_metadata)"},
        {"PATCH", Q, NULL, BB,
         "the body is too large. The maximum is 65536 bytes (max_queue_metadata)"},
        {"POST", Q "/claims", NULL, BV,
         "the body is too large. The maximum is 65536 bytes (max_queue_metadata)"},
    };

    f->c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    f->c.body_too_large = true;
    ck_refusals(f, cases, sizeof(cases) / sizeof(cases[0]));
    f->c.body_too_large = false;
    {
        char *body = long_value("", " ");
        const struct refusal one = {
            "PUT", Q, body, BV,
            "the body is 1048576 bytes long. The maximum is 65536 bytes "
            "(max_queue_metadata)"};

        ck_refusals(f, &one, 1);
        free(body);
    }
}

START_TEST(a_refusal_shows_a_received_value_short_and_without_control_characters)
{
#define LIMIT "the parameter limit is \""
#define RANGE "\". It must be an integer between 1 and 20 (max_messages_per_page)"
#define S64   "3333333333333333333333333333333333333333333333333333333333333333"
#define E31                                                                              \
    "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"   \
    "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"                                   \
    "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"   \
    "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
    char *huge = long_value(Q "/messages?limit=", "3");
    char *accents = long_value(Q "/messages?limit=x", "\xc3\xa9");
    const struct refusal cases[] = {
        {"GET", huge, NULL, BV, LIMIT S64 "..." RANGE},
        {"GET", accents, NULL, "Invalid parameter", LIMIT "x" E31 "..." RANGE},
        {"GET", Q "/messages?limit=%00%0a%7f1", NULL, "Invalid parameter",
         LIMIT "???1" RANGE},
        {"GET", Q "/messages?limit=%22%5c%22", NULL, "Invalid parameter",
         LIMIT "\"\\\"" RANGE},
        {"GET", Q "/messages?limit=%ff%fe", NULL, "Invalid parameter",
         LIMIT "\xef\xbf\xbd\xef\xbf\xbd" RANGE},
        {"GET", Q "/messages?echo=%E2%82", NULL, "Invalid parameter",
         "the parameter echo is \"\xef\xbf\xbd\xef\xbf\xbd\". It must be true or false"},
        {"PUT", "/v2/queues/" S64 "333333", NULL, QI,
         "the queue name is 70 bytes long. The maximum is 64"},
        {"PUT", "/v2/queues/a%00b%22", NULL, QI,
         "the queue name is \"a?b\"\". It must be 1 to 64 characters from A-Z a-z 0-9 _ "
         "- ."},
        {"PUT", "/v2/topics/a%20b", NULL, "Invalid topic identification",
         "the topic name is \"a b\". It must be 1 to 64 characters from A-Z a-z 0-9 _ - "
         "."},
        {"POST", Q "/claims", "{\"ttl\":{\"a\":1}}", BB,
         "ttl is an object. It must be an integer between 60 and 43200 (min_claim_ttl, "
         "max_claim_ttl)"},
        {"POST", Q "/claims", "{\"ttl\":\"a\\u0000\\\"\"}", BB,
         "ttl is a string. It must be an integer between 60 and 43200 "
         "(min_claim_ttl, max_claim_ttl)"},
        {"PUT", Q, "{\"_dead_letter_queue\":\"a\\u0000\\n\\\"b\"}", BV,
         "_dead_letter_queue is \"a??\"b\". It must be the name of a queue, a string of "
         "up "
         "to 64 characters from A-Z a-z 0-9 _ - ."},
        {"PUT", Q, "{\"_max_claim_count\":2.5}", BV,
         "_max_claim_count is a number with a fraction. It must be an integer of at "
         "least "
         "1"},
    };
    struct api_fixture f;

    api_fixture_open(&f);
    ck_refusals(&f, cases, sizeof(cases) / sizeof(cases[0]));
    api_fixture_close(&f);
    free(accents);
    free(huge);
}

API_TEST(the_refusal_of_too_many_parameters_gives_the_limit)
{
    char target[600] = "/v2/queues?";

    memset(target + strlen(target), '&', 256);
    ck_api(f, "GET", target, NULL, 400, "Invalid parameter");
    ck_assert_str_eq(api_pick(f, "description"),
                     "the request has more than 256 query parameters");
}
#undef LIMIT
#undef RANGE
#undef S64
#undef E31
#undef BV
#undef BB
#undef Q
