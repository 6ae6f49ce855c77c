/* Queues, v2 (docs/api.md 7). */
#include "support/api_fixture.h"

#define BB "Invalid request body"
#define BV "Invalid API request"
#define DEFAULTS                                                                         \
    "'_max_messages_post_size': 262144, '_default_message_ttl': 3600,"                   \
    "'_default_message_delay': 0, '_dead_letter_queue': null,"                           \
    "'_dead_letter_queue_messages_ttl': null, '_max_claim_count': null,"                 \
    "'_enable_encrypt_messages': false"
#define PATCH_TYPE "application/openstack-messaging-v2.0-json-patch"

TEST_CASE("one");

API_TEST(creating_responds_201_once_and_204_ever_after)
{
    ck_api(f, "PUT", "/v2/queues/q", "{\"color\":\"red\"}", 201, NULL);
    ck_api_header(f, "Location", "/v2/queues/q");
    ck_assert_str_eq(api_body(&f->c), "");
    ck_api(f, "PUT", "/v2/queues/q", "{\"color\":\"blue\"}", 204, NULL);
    ck_api_header(f, "Location", "/v2/queues/q");
    ck_api(f, "GET", "/v2/queues/q", NULL, 200, NULL);
    ck_api_body(f, "{'color': 'red'," DEFAULTS "}");
}

API_TEST(bad_metadata_makes_no_queue)
{
    static const struct api_row rows[] = {
        {"PUT", "/v2/queues/bad", "{", 400, BB},
        {"PUT", "/v2/queues/bad", "[]", 400, BB},
        {"PUT", "/v2/queues/bad", "{\"_default_message_ttl\":59}", 400, BV},
        {"PUT", "/v2/queues/bad", "{\"_default_message_ttl\":\"60\"}", 400, BV},
        {"PUT", "/v2/queues/bad", "{\"_default_claim_ttl\":0}", 400, BV},
        {"PUT", "/v2/queues/bad", "{\"_default_claim_ttl\":-60}", 400, BV},
        {"PUT", "/v2/queues/bad", "{\"_default_claim_ttl\":\"60\"}", 400, BV},
        {"PUT", "/v2/queues/bad", "{\"_default_claim_ttl\":43201}", 400, BV},
        {"PUT", "/v2/queues/bad", "{\"_default_claim_grace\":59}", 400, BV},
        {"PUT", "/v2/queues/bad", "{\"_max_messages_post_size\":262145}", 400, BV},
        {"PUT", "/v2/queues/bad", "{\"_max_claim_count\":0}", 400, BV},
        {"PUT", "/v2/queues/bad", "{\"_enable_encrypt_messages\":true}", 400, BV},
        {"PUT", "/v2/queues/bad", "{\"_persistence\":\"disk\"}", 400, BV},
        {"PUT", "/v2/queues/bad", "{\"_persistence\":\"\"}", 400, BV},
        {"PUT", "/v2/queues/bad", "{\"_persistence\":\"memory\\u0000\"}", 400, BV},
        {"PUT", "/v2/queues/bad", "{\"_persistence\":false}", 400, BV},
        {"PUT", "/v2/queues/bad", "{\"_persistence\":{}}", 400, BV},
        {"GET", "/v2/queues", NULL, 200, NULL},
    };

    ck_api_rows(f, rows);
    ck_api_body(f, "{'queues': [], 'links': []}");
}

/* A document of exactly `len` bytes. */
static const char *
metadata_of(struct api_fixture *f, size_t len)
{
    char *text = arena_alloc(&f->kept, len + 1);

    memset(text, 'x', len);
    memcpy(text, "{\"a\":\"", 6);
    memcpy(text + len - 2, "\"}", 3);
    return text;
}

API_TEST(metadata_may_have_65536_bytes)
{
    ck_api(f, "PUT", "/v2/queues/a", metadata_of(f, 65536), 201, NULL);
    ck_api(f, "PUT", "/v2/queues/b", metadata_of(f, 65537), 400, BV);
    ck_api(f, "PUT", "/v1/queues/c", metadata_of(f, 65537), 201, NULL);
}

API_TEST(an_unknown_queue_looks_like_an_empty_one)
{
    ck_api(f, "GET", "/v2/queues/nosuch", NULL, 200, NULL);
    ck_api_body(f, "{" DEFAULTS "}");
    ck_api(f, "GET", "/v2/queues/nosuch/stats", NULL, 200, NULL);
    ck_api_body(f, "{'messages': {'claimed': 0, 'free': 0, 'total': 0}}");
    ck_api(f, "DELETE", "/v2/queues/nosuch", NULL, 204, NULL);
    ck_api(f, "POST", "/v2/queues/nosuch/purge", NULL, 204, NULL);
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    ck_api_body(f, "{'queues': [], 'links': []}");
}

API_TEST(deleting_a_queue_takes_its_messages)
{
    api_post_letters(f, "q", "ab");
    ck_api(f, "DELETE", "/v2/queues/q", NULL, 204, NULL);
    ck_api(f, "PUT", "/v2/queues/q", NULL, 201, NULL);
    ck_api(f, "GET", "/v2/queues/q/messages?echo=true", NULL, 200, NULL);
    ck_api_body(f, "{'messages': [], 'links': []}");
}

API_TEST(statistics_count_live_messages_and_name_both_ends)
{
    const char *first, *last;

    api_post_letters(f, "q", "a");
    first = api_pick(f, "resources.0");
    f->c.now_ms += 9000;
    api_post_letters(f, "q", "bc");
    last = api_pick(f, "resources.1");
    ck_assert_ptr_nonnull(api_take(f, "q", 1));
    f->c.now_ms += 1500;
    ck_api(f, "GET", "/v2/queues/q/stats", NULL, 200, NULL);
    ck_api_body(f, api_text(f,
                            "{'messages': {'claimed': 1, 'free': 2, 'total': 3,"
                            "'oldest': {'age': 10, 'created': '2026-01-31T12:00:00Z',"
                            " 'href': '%s'},"
                            "'newest': {'age': 1, 'created': '2026-01-31T12:00:09Z',"
                            " 'href': '%s'}}}",
                            first, last));
}

/* ------------------------------------------------------------------ patch */

API_TEST(patching_changes_metadata_or_nothing)
{
    static const struct api_row rows[] = {
        {"PATCH", "/v2/queues/nosuch", "[]", 404, "Not found"},
        {"PATCH", "/v2/queues/q", "[", 400, BB},
        {"PATCH", "/v2/queues/q", NULL, 400, BB},
        {"PATCH", "/v2/queues/q", "{}", 400, BB},
        {"PATCH", "/v2/queues/q", "[{\"op\":\"move\",\"path\":\"/metadata/a\"}]", 400,
         BB},
        {"PATCH", "/v2/queues/nosuch", "[{\"op\":\"move\"}]", 400, BB},
        {"PATCH", "/v2/queues/q",
         "[{\"op\":\"add\",\"path\":\"/metadata/a\",\"value\":1},"
         "{\"op\":\"remove\",\"path\":\"/metadata/nope\"}]",
         409, "Resource conflict"},
        {"PATCH", "/v2/queues/q",
         "[{\"op\":\"add\",\"path\":\"/metadata/_default_message_ttl\",\"value\":1}]",
         400, BB},
        {"PATCH", "/v2/queues/q",
         "[{\"op\":\"add\",\"path\":\"/metadata/_default_claim_ttl\",\"value\":0}]", 400,
         BB},
        {"PATCH", "/v2/queues/q", "[]", 200, NULL},
    };

    ck_api(f, "PUT", "/v2/queues/q", "{\"color\":\"red\"}", 201, NULL);
    ck_api(f, "PATCH", "/v2/queues/q", "[]", 415, "415 Unsupported Media Type");
    f->c.headers[API_HEADER_CONTENT_TYPE] = PATCH_TYPE;
    ck_api_rows(f, rows);
    ck_api_body(f, "{'color': 'red'," DEFAULTS "}");
    ck_api(f, "PATCH", "/v2/queues/q",
           "[{\"op\":\"replace\",\"path\":\"/metadata/color\",\"value\":\"blue\"},"
           "{\"op\":\"add\",\"path\":\"/metadata/n\",\"value\":[1]}]",
           200, NULL);
    ck_api_body(f, "{'color': 'blue', 'n': [1]," DEFAULTS "}");
    ck_api(f, "GET", "/v2/queues/q", NULL, 200, NULL);
    ck_api_body(f, "{'color': 'blue', 'n': [1]," DEFAULTS "}");
}

API_TEST(the_default_delay_is_shorter_than_the_default_ttl)
{
#define SET(name, value)                                                                 \
    "{\"op\":\"add\",\"path\":\"/metadata/_default_message_" name "\",\"value\":" value  \
    "}"
    static const struct api_row rows[] = {
        {"PUT", "/v2/queues/bad",
         "{\"_default_message_ttl\":60,\"_default_message_delay\":60}", 400, BV},
        {"PUT", "/v2/queues/q",
         "{\"_default_message_ttl\":61,\"_default_message_delay\":60}", 201, NULL},
        {"PATCH", "/v2/queues/q", "[" SET("ttl", "60") "]", 400, BB},
        {"PATCH", "/v2/queues/q", "[" SET("delay", "61") "]", 400, BB},
        {"PATCH", "/v2/queues/q", "[" SET("delay", "62") "," SET("ttl", "63") "]", 200,
         NULL},
        {"PATCH", "/v2/queues/q", "[" SET("ttl", "null") "," SET("delay", "3599") "]",
         200, NULL},
        {"PATCH", "/v2/queues/q", "[" SET("delay", "43200") "]", 400, BB},
        {"PUT", "/v2/queues/late", "{\"_default_message_delay\":43200}", 400, BV},
        {"PUT", "/v2/queues/late",
         "{\"_default_message_ttl\":43201,\"_default_message_delay\":43200}", 201, NULL},
    };
#undef SET

    f->c.headers[API_HEADER_CONTENT_TYPE] = PATCH_TYPE;
    ck_api_rows(f, rows);
    ck_api(f, "PUT", "/v2/queues/bad",
           "{\"_default_message_ttl\":60,\"_default_message_delay\":900}", 400, BV);
    ck_assert_str_eq(
        api_pick(f, "description"),
        "messages would expire before a worker can claim them. The delay of "
        "900 seconds (_default_message_delay) is not shorter than the TTL of "
        "60 seconds (_default_message_ttl)");
}

/* ------------------------------------------------------------------ persistence */

#define PATCH_PERSISTENCE(op, value)                                                     \
    "[{\"op\":\"" op "\",\"path\":\"/metadata/_persistence\"" value "}]"
#define MEMORY ",\"value\":\"memory\""

API_TEST(persistence_is_shown_only_when_it_is_set)
{
    ck_api(f, "PUT", "/v2/queues/m", "{\"_persistence\":\"memory\"}", 201, NULL);
    ck_api(f, "PUT", "/v2/queues/n", "{\"_persistence\":null}", 201, NULL);
    ck_api(f, "GET", "/v2/queues/m", NULL, 200, NULL);
    ck_api_body(f, "{'_persistence': 'memory'," DEFAULTS "}");
    ck_api(f, "GET", "/v2/queues/nosuch", NULL, 200, NULL);
    ck_api_body(f, "{" DEFAULTS "}");
}

API_TEST(persistence_never_changes)
{
    static const struct api_row rows[] = {
        {"PATCH", "/v2/queues/m", PATCH_PERSISTENCE("remove", ""), 400, BB},
        {"PATCH", "/v2/queues/m", PATCH_PERSISTENCE("replace", ",\"value\":null"), 400,
         BB},
        {"PATCH", "/v2/queues/m", PATCH_PERSISTENCE("replace", ",\"value\":\"disk\""),
         400, BB},
        {"PATCH", "/v2/queues/kept", PATCH_PERSISTENCE("add", MEMORY), 400, BB},
        {"PATCH", "/v2/queues/m", PATCH_PERSISTENCE("replace", MEMORY), 200, NULL},
        {"PATCH", "/v2/queues/m", PATCH_PERSISTENCE("add", MEMORY), 200, NULL},
        {"PATCH", "/v2/queues/m",
         "[{\"op\":\"add\",\"path\":\"/metadata/color\",\"value\":1}]", 200, NULL},
    };

    ck_api(f, "PUT", "/v2/queues/m", "{\"_persistence\":\"memory\"}", 201, NULL);
    ck_api(f, "PUT", "/v2/queues/kept", NULL, 201, NULL);
    f->c.headers[API_HEADER_CONTENT_TYPE] = PATCH_TYPE;
    ck_api_rows(f, rows);
    ck_api_body(f, "{'_persistence': 'memory', 'color': 1," DEFAULTS "}");
    ck_api(f, "GET", "/v2/queues/kept", NULL, 200, NULL);
    ck_api_body(f, "{" DEFAULTS "}");
}

/* Its documents replace all there is, but for what was said when the queue was made. */
API_TEST(persistence_stays_whatever_v1_puts)
{
    static const struct api_row rows[] = {
        {"PUT", "/v1/queues/m/metadata", "{\"a\":1}", 204, NULL},
        {"PUT", "/v1/queues/kept/metadata", "{\"_persistence\":\"memory\"}", 400, BV},
        {"PUT", "/v1/queues/kept/metadata", "{\"a\":1}", 204, NULL},
        {"GET", "/v2/queues/kept", NULL, 200, NULL},
    };

    ck_api(f, "PUT", "/v2/queues/m", "{\"_persistence\":\"memory\",\"b\":2}", 201, NULL);
    ck_api(f, "PUT", "/v2/queues/kept", NULL, 201, NULL);
    ck_api_rows(f, rows);
    ck_api_body(f, "{'a': 1," DEFAULTS "}");
    ck_api(f, "GET", "/v2/queues/m", NULL, 200, NULL);
    ck_api_body(f, "{'_persistence': 'memory', 'a': 1," DEFAULTS "}");
    ck_api(f, "PUT", "/v1/queues/m/metadata", "{}", 204, NULL);
    ck_api(f, "GET", "/v2/queues/m", NULL, 200, NULL);
    ck_api_body(f, "{'_persistence': 'memory'," DEFAULTS "}");
}

/* ------------------------------------------------------------------ purge */

API_TEST(purge_deletes_the_kinds_it_is_given)
{
    static const struct api_row refused[] = {
        {"POST", "/v2/queues/q/purge", "{\"resource_types\":[\"claims\"]}", 400, BV},
        {"POST", "/v2/queues/q/purge", "{\"resource_types\":[1]}", 400, BV},
        {"POST", "/v2/queues/q/purge", "{\"types\":[\"messages\"]}", 400, BV},
        {"POST", "/v2/queues/q/purge", "[\"messages\"]", 400, BV},
        {"POST", "/v2/queues/q/purge", "{\"resource_types\":\"messages\"}", 400, BB},
        {"POST", "/v2/queues/q/purge", "{", 400, BB},
        {"POST", "/v2/queues/q/purge", "{\"resource_types\":[]}", 204, NULL},
        {"POST", "/v2/queues/q/purge", "{\"resource_types\":[\"subscriptions\"]}", 204,
         NULL},
    };

    api_post_letters(f, "q", "abc");
    ck_assert_ptr_nonnull(api_take(f, "q", 1));
    ck_api_rows(f, refused);
    ck_api(f, "GET", "/v2/queues/q/stats", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"total\":3"));
    ck_api(f, "POST", "/v2/queues/q/purge",
           "{\"resource_types\":[\"claims\"],\"resource_types\":"
           "[\"subscriptions\",\"m\\u0065ssages\"]}",
           204, NULL);
    ck_api(f, "GET", "/v2/queues/q/stats", NULL, 200, NULL);
    ck_api_body(f, "{'messages': {'claimed': 0, 'free': 0, 'total': 0}}");
    api_post_letters(f, "q", "d");
    ck_api(f, "POST", "/v2/queues/q/purge", NULL, 204, NULL);
    ck_api(f, "GET", "/v2/queues/q/messages?echo=1", NULL, 200, NULL);
    ck_api_body(f, "{'messages': [], 'links': []}");
}

/* ------------------------------------------------------------------ ping, health */

LIMITED_TEST(ping_and_health_show_that_the_store_works, limits.admin_mode = true)
{
    ck_api(f, "GET", "/v2/ping", NULL, 204, NULL);
    ck_api(f, "HEAD", "/v1.1/ping", NULL, 204, NULL);
    ck_api(f, "GET", "/v1/health", NULL, 204, NULL);
    ck_api(f, "GET", "/v2/health", NULL, 200, NULL);
    ck_api_body(f, "{'storage_reachable': true, 'operation_status': {"
                   "'create_queue': {'succeeded': true, 'seconds': '*', 'ref': null},"
                   "'post_messages': {'succeeded': true, 'seconds': '*', 'ref': null},"
                   "'claim_messages': {'succeeded': true, 'seconds': '*', 'ref': null},"
                   "'list_messages': {'succeeded': true, 'seconds': '*', 'ref': null},"
                   "'delete_messages': {'succeeded': true, 'seconds': '*', 'ref': null},"
                   "'delete_claim': {'succeeded': true, 'seconds': '*', 'ref': null},"
                   "'bulk_delete_messages':"
                   " {'succeeded': true, 'seconds': '*', 'ref': null},"
                   "'delete_queue': {'succeeded': true, 'seconds': '*', 'ref': null}},"
                   "'message_volume': {'free': 0, 'claimed': 0, 'total': 0}}");
    ck_api(f, "POST", "/v2/health", "{}", 405, NULL);
}

/* Load balancers of Google and Azure take 200 only, and no probe sends the headers of the
 * API. */
API_TEST(probes_without_headers_get_200_and_a_body)
{
    static const char *const paths[] = {"/livez", "/readyz"};
    static const char *const accepts[] = {NULL, "*/*", "text/plain", "text/html"};

    memset(f->c.headers, 0, sizeof(f->c.headers));
    for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); p++)
        for (size_t a = 0; a < sizeof(accepts) / sizeof(accepts[0]); a++) {
            f->c.headers[API_HEADER_ACCEPT] = accepts[a];
            ck_api(f, "HEAD", paths[p], NULL, 200, NULL);
            ck_api(f, "GET", paths[p], NULL, 200, NULL);
            ck_assert_str_eq(api_body(&f->c), "ok\n");
            ck_api_header(f, "Content-Type", "text/plain; charset=utf-8");
        }
    atomic_store(&f->condition.draining, true);
    ck_api(f, "GET", "/readyz", NULL, 503, NULL);
    ck_api(f, "GET", "/livez", NULL, 200, NULL);
    atomic_store(&f->condition.draining, false);
    ck_api(f, "GET", "/readyz", NULL, 200, NULL);
}

LIMITED_TEST(health_counts_the_messages_of_the_whole_server, limits.admin_mode = true)
{
    static const char *const targets[] = {"/v2/health", "/v1.1/health"};

    api_post_letters(f, "a", "xyz");
    ck_assert_ptr_nonnull(api_take(f, "a", 2));
    f->c.headers[API_HEADER_PROJECT_ID] = "another";
    ck_api(f, "POST", "/v2/queues/b/messages",
           "{\"messages\":[{\"body\":1,\"delay\":60},{\"body\":2}]}", 201, NULL);
    for (size_t i = 0; i < 2; i++) {
        ck_api(f, "GET", targets[i], NULL, 200, NULL);
        ck_api_body(f, "{'storage_reachable': true, 'operation_status': '*',"
                       "'message_volume': {'free': 3, 'claimed': 2, 'total': 5}}");
    }
}

/* ------------------------------------------------------------------ list */

TEST_CASE("list");

/* pear, apple, fig, Banana, cherry: made in this order, listed by bytes. */
static void
make_fruit(struct api_fixture *f)
{
    static const struct api_row rows[] = {
        {"PUT", "/v2/queues/pear", "{\"color\":\"green\",\"rank\":3}", 201, NULL},
        {"PUT", "/v2/queues/apple", "{\"color\":\"red\",\"rank\":1}", 201, NULL},
        {"PUT", "/v2/queues/fig", "{\"color\":\"green\",\"rank\":2}", 201, NULL},
        {"PUT", "/v2/queues/Banana", "{\"color\":\"yellow\",\"rank\":3}", 201, NULL},
        {"PUT", "/v2/queues/cherry", "{\"color\":\"red\",\"rank\":3}", 201, NULL},
    };

    ck_api_rows(f, rows);
}

API_TEST(queues_are_listed_in_byte_order_page_by_page)
{
    make_fruit(f);
    ck_api(f, "GET", "/v2/queues?limit=2", NULL, 200, NULL);
    ck_api_body(f, "{'queues': [{'name': 'Banana', 'href': '/v2/queues/Banana'},"
                   "{'name': 'apple', 'href': '/v2/queues/apple'}],"
                   "'links': [{'rel': 'next', 'href':"
                   " '/v2/queues?limit=2&marker=apple'}]}");
    ck_api(f, "GET", api_pick(f, "links.0.href"), NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "queues.1.name"), "fig");
    ck_api(f, "GET", api_pick(f, "links.0.href"), NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "queues.0.name"), "pear");
    ck_api(f, "GET", api_pick(f, "links.0.href"), NULL, 200, NULL);
    ck_api_body(f, "{'queues': [], 'links': []}");
}

API_TEST(filters_apply_before_the_page_is_cut_and_stay_in_the_link)
{
    static const struct {
        const char *target, *names, *next;
    } cases[] = {
        {"/v2/queues?name=an", "Banana ", "/v2/queues?name=an&marker=Banana"},
        {"/v2/queues?color=red", "apple cherry ", "/v2/queues?color=red&marker=cherry"},
        {"/v2/queues?rank=2", "fig ", "/v2/queues?rank=2&marker=fig"},
        {"/v2/queues?rank=3&color=green", "pear ",
         "/v2/queues?rank=3&color=green&marker=pear"},
        {"/v2/queues?rank=3&limit=1", "Banana ",
         "/v2/queues?limit=1&rank=3&marker=Banana"},
        {"/v2/queues?limit=1&rank=3&marker=Banana", "cherry ",
         "/v2/queues?limit=1&rank=3&marker=cherry"},
        {"/v2/queues?color=black&color=red&limit=1", "apple ",
         "/v2/queues?limit=1&color=red&marker=apple"},
        {"/v2/queues?color=&marker=b&with_count=no", "cherry fig pear ",
         "/v2/queues?with_count=false&marker=pear"},
    };

    make_fruit(f);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char names[256] = "";
        const char *at;

        ck_api(f, "GET", cases[i].target, NULL, 200, NULL);
        at = api_body(&f->c);
        while ((at = strstr(at, "\"name\":\"")) != NULL) {
            at += 8;
            strncat(names, at, (size_t)(strchr(at, '"') - at));
            strcat(names, " ");
        }
        ck_assert_str_eq(names, cases[i].names);
        ck_assert_str_eq(api_pick(f, "links.0.href"), cases[i].next);
    }
    ck_api(f, "GET", "/v2/queues?color=black", NULL, 200, NULL);
    ck_api_body(f, "{'queues': [], 'links': []}");
}

API_TEST(a_filter_finds_one_queue_among_a_hundred)
{
    for (int i = 0; i < 100; i++)
        ck_api(f, "PUT", api_text(f, "/v2/queues/q%03d", i),
               i == 97 ? "{\"a b\":\"c&d\"}" : NULL, 201, NULL);
    ck_api(f, "GET", "/v2/queues?a%20b=c%26d&detailed=yes&with_count=true", NULL, 200,
           NULL);
    ck_api_body(f, "{'queues': [{'name': 'q097', 'href': '/v2/queues/q097',"
                   "'metadata': {'a b': 'c&d'," DEFAULTS "}}], 'count': 100,"
                   "'links': [{'rel': 'next', 'href': '/v2/queues?detailed=true"
                   "&with_count=true&a%20b=c%26d&marker=q097'}]}");
}

API_TEST(with_count_adds_the_number_of_queues)
{
    ck_api(f, "GET", "/v2/queues?with_count=true", NULL, 200, NULL);
    ck_api_body(f, "{'queues': [], 'links': [], 'count': 0}");
    make_fruit(f);
    ck_api(f, "GET", "/v2/queues?with_count=true&limit=1", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"count\":5"));
    ck_api(f, "GET", "/v2/queues?with_count=true&color=red&name=pp", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"count\":5"));
    ck_api(f, "GET", "/v1.1/queues?with_count=true&color=red", NULL, 200, NULL);
    ck_assert_ptr_null(strstr(api_body(&f->c), "count"));
    ck_assert_str_eq(api_pick(f, "links.0.href"), "/v1.1/queues?marker=pear");
}

API_TEST(listings_refuse_parameters_out_of_range)
{
    static const struct api_row rows[] = {
        {"GET", "/v2/queues?limit=0", NULL, 400, BV},
        {"GET", "/v2/queues?limit=-1", NULL, 400, BV},
        {"GET", "/v2/queues?limit=21", NULL, 400, BV},
        {"GET", "/v2/queues?limit=x", NULL, 400, "Invalid parameter"},
        {"GET", "/v2/queues?limit=20", NULL, 200, NULL},
        {"GET", "/v2/queues?limit=", NULL, 200, NULL},
        {"GET", "/v2/queues?detailed=maybe", NULL, 400, "Invalid parameter"},
        {"GET", "/v2/queues?with_count=2", NULL, 400, "Invalid parameter"},
        {"GET", "/v1.1/queues?with_count=2", NULL, 200, NULL},
    };

    ck_api_rows(f, rows);
}
