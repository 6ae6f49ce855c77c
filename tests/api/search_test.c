/* Search in the messages of a queue (docs/api.md 26.5). */
#include "support/api_fixture.h"

#include <jansson.h>
#include <string.h>

#define OTHER_CLIENT "00000000-0000-0000-0000-000000000009"
#define KEY          "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define OTHER_KEY    "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static int64_t
number(struct api_fixture *f, const char *name)
{
    json_t *tree = json_loads(api_body(&f->c), 0, NULL);
    const int64_t value = json_integer_value(json_object_get(tree, name));

    json_decref(tree);
    return value;
}

/* The marker of the last response, NULL at the end. */
static const char *
marker(struct api_fixture *f)
{
    return strstr(api_body(&f->c), "\"marker\":null") != NULL ? NULL
                                                              : api_pick(f, "marker");
}

/* The beginnings of the bodies in the last response, one behind the other. */
static const char *
bodies(struct api_fixture *f)
{
    json_t *tree = json_loads(api_body(&f->c), 0, NULL), *row;
    const char *all = "";
    size_t i;

    ck_assert_ptr_nonnull(tree);
    json_array_foreach(json_object_get(tree, "messages"), i, row) all =
        api_text(f, "%s%s", all, json_string_value(json_object_get(row, "body_start")));
    json_decref(tree);
    return all;
}

/* Searches in q. */
static const char *
search(struct api_fixture *f, const char *parameters)
{
    ck_api(f, "GET", api_text(f, "/claimd/queues/q/messages%s", parameters), NULL, 200,
           NULL);
    return bodies(f);
}

/* Posts bodies, as many as the JSON array has, with further members of each. */
static void
post(struct api_fixture *f, const char *body, const char *more)
{
    ck_api(f, "POST", "/v2/queues/q/messages",
           api_text(f, "{\"messages\":[{\"body\":%s%s}]}", body, more), 201, NULL);
}

/* Posts the numbers from `first` on. */
static void
post_numbers(struct api_fixture *f, int first, int count)
{
    while (count > 0) {
        const int some = count < 1000 ? count : 1000;
        const char *all = "";

        for (int i = 0; i < some; i += 20) {
            const char *twenty = "";

            for (int k = i; k < some && k < i + 20; k++)
                twenty =
                    api_text(f, "%s%s{\"body\":%d}", twenty, k > 0 ? "," : "", first + k);
            all = api_text(f, "%s%s", all, twenty);
        }
        ck_api(f, "POST", "/v2/queues/q/messages",
               api_text(f, "{\"messages\":[%s]}", all), 201, NULL);
        first += some;
        count -= some;
    }
}

/* Finishes the only message of a claim, as `action` says. */
static void
finish(struct api_fixture *f, const char *action, const char *reason)
{
    const char *claim = api_take(f, "q", 1), *id;

    ck_api(f, "GET", api_text(f, "/v2/queues/q/claims/%s", claim), NULL, 200, NULL);
    id = api_pick(f, "messages.0.id");
    ck_api(f, "POST", api_text(f, "/claimd/queues/q/claims/%s/finish", claim),
           api_text(f, "{\"%s\":[{\"id\":\"%s\"%s}]}", action, id,
                    reason == NULL ? "" : api_text(f, ",\"reason\":\"%s\"", reason)),
           200, NULL);
}

/* ------------------------------------------------------------------ messages */

TEST_CASE("messages");

API_TEST(a_message_is_shown_with_its_claim_and_the_start_of_its_body)
{
    const char *id, *claim;

    post(f, "{\"a\": \"\\u00e9\xc3\xa9\"}", ",\"ttl\":300");
    id = api_pick_id(f, "resources.0");
    f->c.now_ms += 1000;
    (void)search(f, "");
    ck_api_body(f, api_text(f,
                            "{'messages': [{'id': '%s', 'state': 'ready', 'created_at': "
                            "'2026-01-31T12:00:00Z', 'expires_at':"
                            " '2026-01-31T12:05:00Z', 'delivery_count': 0,"
                            " 'claim': null, 'size': 17, 'body_start':"
                            " '{\\\"a\\\": \\\"\\\\u00e9\xc3\xa9\\\"}'}],"
                            " 'searched': 1, 'total': 1, 'marker': null}",
                            id));
    claim = api_take(f, "q", 1);
    (void)search(f, "");
    ck_assert_str_eq(api_pick(f, "messages.0.state"), "claimed");
    ck_assert_str_eq(api_pick(f, "messages.0.claim.id"), claim);
    ck_assert_str_eq(api_pick(f, "messages.0.claim.client"), API_CALL_CLIENT);
    ck_assert_str_eq(api_pick(f, "messages.0.claim.ends_at"), "2026-01-31T12:01:01Z");
    f->c.now_ms += 60000;
    (void)search(f, "");
    ck_assert_str_eq(api_pick(f, "messages.0.state"), "ready");
    post(f, "1", ",\"delay\":60");
    (void)search(f, "");
    ck_assert_str_eq(api_pick(f, "messages.1.state"), "delayed");
    ck_assert_str_eq(api_pick(f, "messages.1.delayed_until"), "2026-01-31T12:02:01Z");
}

API_TEST(a_long_body_shows_200_characters)
{
    char text[1200] = "\"";

    for (int i = 0; i < 300; i++)
        strcat(text, "\xe2\x82\xac");
    strcat(text, "\"");
    post(f, text, "");
    text[1 + 199 * 3] = '\0';
    ck_assert_str_eq(search(f, ""), text);
    ck_assert_int_eq(number(f, "searched"), 1);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"size\":902,"));
}

API_TEST(filters_select_messages)
{
    const char *first, *claim;

    post(f, "\"a\"", "");
    first = api_pick_id(f, "resources.0");
    post(f, "\"b\"", "");
    post(f, "\"c d\"", "");
    post(f, "\"e\"", ",\"delay\":60");
    finish(f, "release", "no &route");
    claim = api_take(f, "q", 1);
    f->c.headers[API_HEADER_CLIENT_ID] = OTHER_CLIENT;
    (void)api_take(f, "q", 1);
    ck_assert_str_eq(search(f, ""), "\"a\"\"b\"\"c d\"\"e\"");
    ck_assert_str_eq(search(f, "?state=ready"), "\"c d\"");
    ck_assert_str_eq(search(f, "?state=delayed"), "\"e\"");
    ck_assert_str_eq(search(f, "?state=claimed"), "\"a\"\"b\"");
    ck_assert_str_eq(search(f, api_text(f, "?claim=%s", claim)), "\"a\"");
    ck_assert_int_eq(number(f, "searched"), 1);
    ck_assert_str_eq(search(f, "?claim=none"), "");
    ck_assert_str_eq(search(f, api_text(f, "?id=%s", first)), "\"a\"");
    ck_assert_int_eq(number(f, "searched"), 1);
    ck_assert_int_eq(number(f, "total"), 4);
    ck_assert_str_eq(search(f, api_text(f, "?id=%s&state=ready", first)), "");
    ck_assert_str_eq(search(f, api_text(f, "?id=%s&claim=none", first)), "");
    ck_assert_str_eq(search(f, "?id=none"), "");
    ck_assert_str_eq(search(f, "?client=" OTHER_CLIENT), "\"b\"");
    ck_assert_str_eq(search(f, "?client=" API_CALL_CLIENT), "\"a\"");
    ck_assert_str_eq(search(f, "?client=x"), "");
    ck_assert_str_eq(search(f, "?text=c+d"), "\"c d\"");
    ck_assert_str_eq(search(f, "?text=%22e"), "\"e\"");
    ck_assert_str_eq(search(f, "?reason=no+%26route"), "\"a\"");
    ck_assert_str_eq(api_pick(f, "messages.0.last_reason"), "no &route");
    ck_assert_str_eq(search(f, "?reason=no"), "");
    ck_assert_str_eq(search(f, "?reason="), "\"b\"\"c d\"\"e\"");
    ck_assert_str_eq(search(f, "?state=ready&reason="), "\"c d\"");
    ck_assert_str_eq(search(f, "?origin="), "\"a\"\"b\"\"c d\"\"e\"");
    ck_assert_str_eq(search(f, "?origin=q"), "");
    ck_assert_ptr_null(marker(f));
}

API_TEST(the_worker_that_gave_a_reason_is_found)
{
    post(f, "1", "");
    finish(f, "release", "bad");
    f->c.headers[API_HEADER_CLIENT_ID] = OTHER_CLIENT;
    ck_assert_str_eq(search(f, "?client=" API_CALL_CLIENT), "1");
    (void)api_take(f, "q", 1);
    ck_assert_str_eq(search(f, "?client=" API_CALL_CLIENT), "1");
    ck_assert_str_eq(search(f, "?client=" OTHER_CLIENT), "1");
}

API_TEST(bad_parameters_are_refused)
{
    static const struct api_row rows[] = {
        {"GET", "/claimd/queues/none/messages", NULL, 404, "Not found"},
        {"GET", "/claimd/queues/none/messages?id=x", NULL, 404, "Not found"},
        {"GET", "/claimd/queues/q!/messages", NULL, 400, NULL},
        {"PUT", "/v2/queues/q", NULL, 201, NULL},
        {"GET", "/claimd/queues/q/messages?state=free", NULL, 400, "Invalid parameter"},
        {"GET", "/claimd/queues/q/messages?group=origin", NULL, 400, "Invalid parameter"},
        {"GET", "/claimd/queues/q/messages?limit=0", NULL, 400, NULL},
        {"GET", "/claimd/queues/q/messages?limit=201", NULL, 400, NULL},
        {"GET", "/claimd/queues/q/messages?limit=200", NULL, 200, NULL},
        {"GET", "/claimd/queues/q/messages?marker=x", NULL, 200, NULL},
        {"POST", "/claimd/queues/q/messages", "{}", 405, NULL},
    };

    ck_api_rows(f, rows);
}

/* ------------------------------------------------------------------ pages */

TEST_CASE("pages");

API_TEST(pages_fit_together)
{
    const char *whole;

    post_numbers(f, 100, 90);
    whole = search(f, "?limit=200");
    ck_assert_uint_eq(strlen(whole), 270);
    ck_assert_ptr_null(marker(f));
    for (int limit = 1; limit <= 91; limit += 6) {
        const char *pages = search(f, api_text(f, "?limit=%d", limit)), *next;
        int64_t searched = number(f, "searched");

        while ((next = marker(f)) != NULL) {
            pages = api_text(f, "%s%s", pages,
                             search(f, api_text(f, "?limit=%d&marker=%s", limit, next)));
            searched += number(f, "searched");
        }
        ck_assert_str_eq(pages, whole);
        ck_assert_int_eq(searched, 90);
    }
}

API_TEST(a_page_ends_at_its_last_match)
{
    post_numbers(f, 1000, 60);
    ck_assert_str_eq(search(f, "?text=5&limit=2"), "10051015");
    ck_assert_int_eq(number(f, "searched"), 16);
    ck_assert_str_eq(
        search(f, api_text(f, "?text=5&limit=3&marker=%s", api_pick(f, "marker"))),
        "102510351045");
    ck_assert_int_eq(number(f, "searched"), 30);
    ck_assert_str_eq(
        search(f, api_text(f, "?text=5&limit=9&marker=%s", api_pick(f, "marker"))),
        "105010511052105310541055105610571058");
    ck_assert_str_eq(
        search(f, api_text(f, "?text=5&limit=9&marker=%s", api_pick(f, "marker"))),
        "1059");
    ck_assert_ptr_null(marker(f));
}

API_TEST(a_search_continues_behind_a_message_that_is_gone)
{
    const char *next;

    ck_api(f, "PUT", "/v2/queues/from",
           "{\"_dead_letter_queue\":\"q\",\"_max_claim_count\":1}", 201, NULL);
    api_post_letters(f, "from", "abcdefgh"); /* dead letters keep the ids of that queue */
    (void)api_take(f, "from", 8);
    f->c.now_ms += 60000;
    ck_api(f, "POST", "/v2/queues/from/claims", NULL, 204, NULL);
    ck_assert_str_eq(search(f, "?limit=3"), "\"a\"\"b\"\"c\"");
    next = marker(f);
    for (int i = 0; i < 3; i++) {
        (void)search(f, "?limit=1");
        ck_api(f, "DELETE",
               api_text(f, "/v2/queues/q/messages/%s", api_pick(f, "messages.0.id")),
               NULL, 204, NULL);
    }
    ck_assert_str_eq(search(f, api_text(f, "?limit=3&marker=%s", next)),
                     "\"d\"\"e\"\"f\"");
    ck_assert_str_eq(search(f, "?origin=from&limit=1"), "\"d\"");
}

API_TEST(the_messages_of_a_large_claim_have_pages)
{
    const char *claim, *next;

    api_post_letters(f, "q", "abcdefgh");
    claim = api_take(f, "q", 8);
    ck_assert_str_eq(search(f, api_text(f, "?claim=%s&limit=3", claim)),
                     "\"a\"\"b\"\"c\"");
    next = marker(f);
    ck_assert_str_eq(search(f, api_text(f, "?claim=%s&limit=6&marker=%s", claim, next)),
                     "\"d\"\"e\"\"f\"\"g\"\"h\"");
    ck_assert_ptr_null(marker(f));
}

API_TEST(a_page_of_long_reasons_ends_early)
{
    char reason[1025];
    const char *whole;

    memset(reason, '"', sizeof(reason));
    reason[1024] = '\0';
    for (int i = 0; i < 1024; i += 2)
        reason[i] = '\\'; /* 512 quotation marks */
    post_numbers(f, 100, 200);
    for (int i = 0; i < 200; i++) {
        const char *claim = api_take(f, "q", 1);

        ck_api(f, "GET", api_text(f, "/v2/queues/q/claims/%s", claim), NULL, 200, NULL);
        ck_api(f, "POST", api_text(f, "/claimd/queues/q/claims/%s/finish", claim),
               api_text(f,
                        "{\"release\":[{\"id\":\"%s\",\"delay\":600,\"reason\":\"%s\"}]}",
                        api_pick(f, "messages.0.id"), reason),
               200, NULL);
    }
    whole = search(f, "?limit=200");
    ck_assert_uint_lt(f->c.res.body.len, 200000);
    ck_assert_uint_ge(strlen(whole), 3 * 64);
    whole = api_text(f, "%s%s", whole,
                     search(f, api_text(f, "?limit=200&marker=%s", marker(f))));
    ck_assert_ptr_null(marker(f));
    ck_assert_uint_eq(strlen(whole), 600);
}

API_TEST(a_request_examines_20000_messages_in_slices)
{
    enum { MESSAGES = 20500 };

    if (api_fixture_on_redis())
        return; /* it takes long there, and has the same code */
    post_numbers(f, 100000, MESSAGES);
    (void)search(f, "?text=none");
    ck_assert_str_eq(bodies(f), "");
    ck_assert_int_eq(number(f, "searched"), 20000);
    ck_assert_int_eq(number(f, "total"), MESSAGES);
    ck_assert_uint_eq(f->c.slices, 20000 / 512 + 1);
    ck_assert_str_eq(
        search(f, api_text(f, "?text=120499&marker=%s", api_pick(f, "marker"))),
        "120499");
    ck_assert_int_eq(number(f, "searched"), 500);
    ck_assert_ptr_null(marker(f));
    /* The matches of earlier slices stay. */
    ck_assert_str_eq(search(f, "?text=777"),
                     "100777101777102777103777104777105777106777107770107771107772107773"
                     "107774107775107776107777107778107779108777109777110777111777112777"
                     "113777114777115777116777117770117771117772117773117774117775117776"
                     "117777117778117779118777119777");
    (void)search(f, "?group=reason");
    ck_assert_int_eq(number(f, "searched"), 20000);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"count\":20000,"));
    ck_api(f, "GET", "/claimd/queues/q/messages?state=delayed&limit=1", NULL, 200, NULL);
    ck_assert_int_eq(number(f, "searched"), 20000);
}

/* ------------------------------------------------------------------ groups */

TEST_CASE("groups");

API_TEST(dead_letters_are_grouped_by_reason_and_origin)
{
    const char *first;

    ck_api(f, "PUT", "/v2/queues/q", "{\"_dead_letter_queue\":\"dead\"}", 201, NULL);
    post_numbers(f, 0, 5);
    first = api_pick_id(f, "resources.0");
    finish(f, "dead_letter", "bad JSON");
    f->c.now_ms += 1000;
    finish(f, "dead_letter", NULL);
    f->c.headers[API_HEADER_CLIENT_ID] = OTHER_CLIENT;
    finish(f, "dead_letter", "bad JSON");
    f->c.headers[API_HEADER_CLIENT_ID] = API_CALL_CLIENT;
    finish(f, "dead_letter", "late");
    ck_api(f, "POST", "/v2/queues/dead/messages", "{\"messages\":[{\"body\":9}]}", 201,
           NULL);
    ck_api(f, "GET", "/claimd/queues/dead/messages?group=reason", NULL, 200, NULL);
    ck_api_body(
        f, api_text(
               f,
               "{'groups': ["
               "{'reason': 'bad JSON', 'origin': 'q', 'count': 2, 'client': null,"
               " 'address': null, 'worker': null, 'several_clients': true, 'oldest_at': "
               "'2026-01-31T12:00:00Z', 'example':"
               " '%s'},"
               "{'reason': null, 'origin': 'q', 'count': 1, 'client': '" API_CALL_CLIENT
               "', 'address': null, 'worker': null, 'several_clients': false, "
               "'oldest_at': '2026-01-31T12:00:01Z',"
               " 'example': '*'},"
               "{'reason': 'late', 'origin': 'q', 'count': 1, 'client': '" API_CALL_CLIENT
               "', 'address': null, 'worker': null, 'several_clients': false,"
               " 'oldest_at': '*', 'example': '*'},"
               "{'reason': null, 'origin': null, 'count': 1, 'client': null,"
               " 'address': null, 'worker': null, 'several_clients': false, 'oldest_at': "
               "'*', 'example': '*'}],"
               " 'other': 0, 'searched': 5, 'total': 5, 'marker': null}",
               first));
    ck_api(
        f, "GET",
        "/claimd/queues/dead/messages?group=reason&reason=late&client=" API_CALL_CLIENT,
        NULL, 200, NULL);
    ck_api_body(f,
                "{'groups': [{'reason': 'late', 'origin': 'q', 'count': 1, 'client': '*',"
                " 'address': null, 'worker': null,"
                " 'several_clients': false, 'oldest_at': '*', 'example': '*'}],"
                " 'other': 0, 'searched': 5,"
                " 'total': 5, 'marker': null}");
    ck_api(f, "GET", "/claimd/queues/dead/messages?reason=bad+JSON&origin=q", NULL, 200,
           NULL);
    ck_assert_str_eq(bodies(f), "02");
}

API_TEST(further_groups_are_only_counted)
{
    post_numbers(f, 0, 103);
    for (int i = 0; i < 103; i++) {
        const char *claim = api_take(f, "q", 1);

        ck_api(f, "GET", api_text(f, "/v2/queues/q/claims/%s", claim), NULL, 200, NULL);
        ck_api(f, "POST", api_text(f, "/claimd/queues/q/claims/%s/finish", claim),
               api_text(f,
                        "{\"release\":[{\"id\":\"%s\",\"delay\":600,\"reason\":\"%d\"}]}",
                        api_pick(f, "messages.0.id"), i),
               200, NULL);
    }
    (void)search(f, "?group=reason");
    ck_assert_int_eq(number(f, "other"), 3);
    ck_assert_str_eq(api_pick(f, "groups.99.reason"), "99");
}

/* ------------------------------------------------------------------ encryption */

TEST_CASE("encryption");

static void
open_encrypting(struct api_fixture *f)
{
    struct api_limits limits = api_limits_default;

    api_fixture_open_sealing(f, &limits, KEY);
    ck_api(f, "PUT", "/v2/queues/q", "{\"_enable_encrypt_messages\":true}", 201, NULL);
}

API_TEST_WITH(encrypted_bodies_are_searched, open_encrypting(f))
{
    post(f, "{\"secret\": 1}", "");
    post(f, "{\"other\": 1}", "");
    ck_assert_str_eq(search(f, "?text=secret"), "{\"secret\": 1}");
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"size\":13,"));
}

API_TEST_WITH(large_encrypted_bodies_are_decrypted_in_slices, open_encrypting(f))
{
    static char body[15000];

    if (api_fixture_on_redis())
        return; /* it has the same code */
    memset(body, '1', sizeof(body) - 1);
    body[0] = body[sizeof(body) - 2] = '"';
    for (int i = 0; i < 200; i++)
        post(f, body, "");
    (void)search(f, "?limit=200");
    ck_assert_int_eq(number(f, "searched"), 200);
    ck_assert_uint_eq(f->c.slices, 3); /* of 96 messages: three calls of the store */
}

API_TEST_WITH(a_body_without_its_key_does_not_end_the_search, open_encrypting(f))
{
    struct reason why;
    size_t line;

    post(f, "{\"secret\": 1}", "");
    ck_assert_int_eq(seal_replace(f->seal, bytes_str(OTHER_KEY), &line, &why), ST_OK);
    post(f, "{\"other\": 1}", "");
    (void)search(f, "?limit=1");
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"size\":13,\"body_start\":null}"));
    ck_assert_str_eq(search(f, "?text=%3A+1"), "{\"other\": 1}");
    ck_assert_int_eq(number(f, "searched"), 2);
}
