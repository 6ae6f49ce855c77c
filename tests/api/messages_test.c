/* Messages, v2 (docs/api.md 8). */
#include "support/api_fixture.h"

#include <stdio.h>

#define BAD_BODY  "Invalid request body"
#define BAD_VALUE "Invalid API request"
#define UNDELETED "Unable to delete"
#define NOT_FOUND "Not found"
#define MSG       "/v2/queues/q/messages"

/* ------------------------------------------------------------------ post */

TEST_CASE("post");

API_TEST(posting_responds_with_the_ids_in_order)
{
    const char *a, *b;

    ck_api(f, "POST", MSG, "{\"messages\":[{\"body\":{\"k\":[1]}},{\"body\":null}]}", 201,
           NULL);
    a = api_pick_id(f, "resources.0");
    b = api_pick_id(f, "resources.1");
    ck_assert_uint_eq(strlen(a), 24);
    ck_api_header(f, "Location", api_text(f, MSG "?ids=%s,%s", a, b));
    ck_api_header(f, "Content-Type", "application/json");
    ck_api(f, "GET", api_response_header(&f->c, "Location"), NULL, 200, NULL);
    ck_api_body(f,
                api_text(f,
                         "{'messages': [{'id': '%s', 'href': '" MSG "/%s', 'ttl': 3600,"
                         "'age': 0, 'body': {'k': [1]}},"
                         "{'id': '%s', 'href': '" MSG "/%s', 'ttl': 3600, 'age': 0,"
                         "'body': null}]}",
                         a, a, b, b));
}

API_TEST(a_post_with_one_invalid_message_stores_nothing)
{
    static const struct api_row rows[] = {
        {"POST", MSG, NULL, 400, BAD_BODY},
        {"POST", MSG, "{\"messages\": [", 400, BAD_BODY},
        {"POST", MSG, "\"hello\"", 400, BAD_BODY},
        {"POST", MSG, "{\"messages\":[{\"ttl\":60}]}", 400, BAD_BODY},
        {"POST", MSG, "{\"messages\":[{\"body\":1,\"ttl\":\"60\"}]}", 400, BAD_BODY},
        {"POST", MSG, "{\"messages\":{}}", 400, BAD_BODY},
        {"POST", MSG, "{\"messages\":[null]}", 400, BAD_BODY},
        {"POST", MSG, "{\"messages\":[]}", 400, BAD_VALUE},
        {"POST", MSG, "{\"body\":1}", 400, BAD_VALUE},
        {"POST", MSG, "[{\"body\":1}]", 400, BAD_VALUE},
        {"POST", MSG, "{\"messages\":[{\"body\":1},{\"body\":2,\"ttl\":59}]}", 400,
         BAD_VALUE},
        {"POST", MSG, "{\"messages\":[{\"body\":1,\"delay\":43201}]}", 400, BAD_VALUE},
        {"GET", "/v2/queues", NULL, 200, NULL},
    };

    ck_api_rows(f, rows);
    ck_api_body(f, "{'queues': [], 'links': []}");
}

/* A request body of `len` bytes. With `cut`, the closing brace is missing. */
static const char *
post_of(struct api_fixture *f, size_t len, bool cut)
{
    static const char head[] = "{\"messages\":[{\"ttl\":60,\"body\":\"", tail[] = "\"}]}";
    char *text = arena_alloc(&f->kept, len + 1);

    memset(text, 'x', len);
    memcpy(text, head, sizeof(head) - 1);
    memcpy(text + len - (sizeof(tail) - 1), tail, sizeof(tail));
    if (cut)
        text[len - 1] = ' ';
    return text;
}

API_TEST(too_large_wins_over_malformed)
{
    ck_api(f, "POST", MSG, post_of(f, 262144, false), 201, NULL);
    ck_api(f, "POST", MSG, post_of(f, 262145, false), 400, BAD_VALUE);
    ck_api(f, "POST", MSG, post_of(f, 262145, true), 400, BAD_VALUE);
    ck_api(f, "POST", MSG, post_of(f, 262144, true), 400, BAD_BODY);
    ck_api(f, "PUT", "/v2/queues/small", "{\"_max_messages_post_size\":200}", 201, NULL);
    ck_api(f, "POST", "/v2/queues/small/messages", post_of(f, 200, false), 201, NULL);
    ck_api(f, "POST", "/v2/queues/small/messages", post_of(f, 201, false), 400,
           BAD_VALUE);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "200 bytes"));
    ck_api(f, "POST", "/v2/queues/small/messages", post_of(f, 201, true), 400, BAD_VALUE);
    ck_api(f, "POST", "/v2/queues/small/messages", post_of(f, 200, true), 400, BAD_BODY);
    ck_api(f, "POST", "/v1.1/queues/small/messages", post_of(f, 201, false), 201, NULL);
    ck_api(f, "POST", "/v1.1/queues/small/messages", post_of(f, 201, true), 400,
           BAD_BODY);
}

API_TEST(a_maximum_of_one_byte_is_singular)
{
    ck_api(f, "PUT", "/v2/queues/one", "{\"_max_messages_post_size\":1}", 201, NULL);
    ck_api(f, "POST", "/v2/queues/one/messages", "{\"messages\":[]}", 400, BAD_VALUE);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "is 1 byte (_max_messages_post_size)"));
}

API_TEST(location_has_no_ids_if_they_do_not_fit)
{
    char *body;
    size_t len = 0;

    body = arena_alloc(&f->kept, 64 * 1024);
    len += (size_t)sprintf(body, "{\"messages\":[");
    for (int i = 0; i < 1000; i++)
        len += (size_t)sprintf(body + len, "%s{\"body\":%d}", i == 0 ? "" : ",", i);
    strcpy(body + len, "]}");
    ck_api(f, "POST", MSG, body, 201, NULL);
    ck_api_header(f, "Location", MSG);
    ck_assert_uint_eq(strlen(api_pick_id(f, "resources.999")), 24);

    /* The path has 21 bytes, "?ids" 4, each id 25. With 40 ids it is one byte too
     * long. */
    strcpy(strstr(body, ",{\"body\":40}"), "]}");
    ck_api(f, "POST", MSG, body, 201, NULL);
    ck_api_header(f, "Location", MSG);
    strcpy(strstr(body, ",{\"body\":39}"), "]}");
    ck_api(f, "POST", MSG, body, 201, NULL);
    ck_assert_ptr_nonnull(
        strstr(api_response_header(&f->c, "Location"), api_pick_id(f, "resources.38")));
}

API_TEST(queue_defaults_apply_to_messages_without_terms)
{
    ck_api(f, "PUT", "/v2/queues/q",
           "{\"_default_message_ttl\":120,\"_default_message_delay\":10}", 201, NULL);
    ck_api(f, "POST", MSG,
           "{\"messages\":[{\"body\":1},{\"body\":2,\"ttl\":600,\"delay\":0}]}", 201,
           NULL);
    ck_api(f, "GET", MSG "?echo=true", NULL, 200, NULL);
    ck_api_body(f, "{'messages': [{'id': '*', 'href': '*', 'ttl': 600, 'age': 0,"
                   "'body': 2}], 'links': '*'}");
    ck_api(f, "GET", MSG "?echo=true&include_delayed=true&limit=1", NULL, 200, NULL);
    ck_api_body(f, "{'messages': [{'id': '*', 'href': '*', 'ttl': 120, 'age': 0,"
                   "'body': 1}], 'links': '*'}");
    ck_api(f, "POST", "/v1.1/queues/q/messages", "{\"messages\":[{\"body\":3}]}", 201,
           NULL);
    ck_api(f, "GET", api_pick(f, "resources.0"), NULL, 200, NULL);
    ck_api_body(f, "{'id': '*', 'href': '*', 'ttl': 3600, 'age': 0, 'body': 3}");
}

API_TEST(a_delay_that_outlasts_the_ttl_is_refused_with_both_numbers)
{
    static const struct {
        const char *messages, *description;
    } rows[] = {
        {"{\"body\":1},{\"body\":1,\"ttl\":60,\"delay\":900}",
         "messages[1] would expire before a worker can claim it. Its delay of 900 "
         "seconds "
         "is not shorter than its TTL of 60 seconds"},
        {"{\"body\":1,\"ttl\":100}",
         "messages[0] would expire before a worker can claim it. Its delay of 100 "
         "seconds "
         "(_default_message_delay) is not shorter than its TTL of 100 seconds"},
        {"{\"body\":1,\"delay\":120}",
         "messages[0] would expire before a worker can claim it. Its delay of 120 "
         "seconds "
         "is not shorter than its TTL of 120 seconds (_default_message_ttl)"},
        {"{\"body\":1,\"delay\":43200}",
         "messages[0] would expire before a worker can claim it. Its delay of 43200 "
         "seconds "
         "is not shorter than its TTL of 120 seconds (_default_message_ttl)"},
    };

    ck_api(f, "PUT", "/v2/queues/q",
           "{\"_default_message_ttl\":120,\"_default_message_delay\":100}", 201, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_api(f, "POST", MSG, api_text(f, "{\"messages\":[%s]}", rows[i].messages), 400,
               BAD_VALUE);
        ck_assert_str_eq(api_pick(f, "description"), rows[i].description);
    }
    ck_api(f, "POST", MSG, "{\"messages\":[{\"body\":1,\"ttl\":60,\"delay\":59}]}", 201,
           NULL);
    ck_api(f, "POST", MSG, "{\"messages\":[{\"body\":1,\"ttl\":43201,\"delay\":43200}]}",
           201, NULL);
    /* Versions 1.1 and 1 have no delay. */
    ck_api(f, "POST", "/v1.1/queues/q/messages",
           "{\"messages\":[{\"body\":1,\"ttl\":60,\"delay\":60}]}", 201, NULL);
    ck_api(f, "POST", "/v1/queues/q/messages", "[{\"body\":1,\"ttl\":60,\"delay\":60}]",
           201, NULL);
}

static void
open_short(struct api_fixture *f)
{
    struct api_limits limits = api_limits_default;

    limits.min_message_ttl = 1;
    api_fixture_open_with(f, &limits);
}

API_TEST_WITH(one_second_is_singular, open_short(f))
{
    ck_api(f, "POST", MSG, "{\"messages\":[{\"body\":1,\"ttl\":1,\"delay\":1}]}", 400,
           BAD_VALUE);
    ck_assert_str_eq(
        api_pick(f, "description"),
        "messages[0] would expire before a worker can claim it. Its delay of 1 second "
        "is not shorter than its TTL of 1 second");
    ck_api(f, "PUT", "/v2/queues/bad",
           "{\"_default_message_ttl\":1,\"_default_message_delay\":1}", 400, BAD_VALUE);
    ck_assert_str_eq(
        api_pick(f, "description"),
        "messages would expire before a worker can claim them. The delay of 1 second "
        "(_default_message_delay) is not shorter than the TTL of 1 second "
        "(_default_message_ttl)");
}

/* ------------------------------------------------------------------ list and get */

TEST_CASE("list and get");

API_TEST(own_messages_are_hidden_unless_echo)
{
    f->c.headers[API_HEADER_CLIENT_ID] = "3381AF922B9E11E3B19171861300734C";
    api_post_letters(f, "q", "a");
    f->c.headers[API_HEADER_CLIENT_ID] = API_CALL_CLIENT;
    ck_api(f, "GET", MSG, NULL, 200, NULL);
    ck_api_body(f, "{'messages': [], 'links': []}");
    f->c.headers[API_HEADER_CLIENT_ID] = "9f1c2e57-4a6e-4c09-9f2b-0d2d3f1a6a10";
    ck_api(f, "GET", MSG, NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.body"), "a");
}

API_TEST(paging_continues_after_the_marker_with_later_messages)
{
    const char *next;

    api_post_letters(f, "q", "abc");
    ck_api(f, "GET", MSG "?limit=2&echo=True&color=red&include_claimed=no", NULL, 200,
           NULL);
    ck_assert_str_eq(api_pick(f, "messages.1.body"), "b");
    next = api_pick(f, "links.0.href");
    ck_assert_ptr_eq(strstr(next, MSG "?limit=2&echo=true&include_claimed=false&marker="),
                     next);
    ck_api(f, "GET", next, NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.body"), "c");
    next = api_pick(f, "links.0.href");
    ck_api(f, "GET", next, NULL, 200, NULL);
    ck_api_body(f, "{'messages': [], 'links': []}");
    api_post_letters(f, "q", "d");
    ck_api(f, "GET", next, NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.body"), "d");
    ck_api(f, "GET", MSG "?echo=1&marker=zzz", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.body"), "a");
}

API_TEST(messages_come_in_the_order_of_the_requested_ids)
{
    const char *a, *b;

    api_post_letters(f, "q", "ab");
    a = api_pick_id(f, "resources.0");
    b = api_pick_id(f, "resources.1");
    ck_api(f, "GET", api_text(f, MSG "?ids=%s,junk&ids=%s&limit=x", b, a), NULL, 200,
           NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.body"), "b");
    ck_assert_str_eq(api_pick(f, "messages.1.body"), "a");
    ck_api(f, "GET", api_text(f, MSG "?ids=%s%%2C%s", a, b), NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "messages.1.body"), "b");
    ck_api(f, "GET", MSG "?ids=junk", NULL, 404, NOT_FOUND);
    ck_api(f, "GET", MSG "?ids=,,", NULL, 200, NULL);
    ck_api(f, "GET", api_text(f, "/v2/queues/other/messages?ids=%s", a), NULL, 404,
           NOT_FOUND);
    ck_api(f, "GET", api_text(f, "/v2/queues/other/messages/%s", a), NULL, 404,
           NOT_FOUND);
    ck_api(f, "GET", MSG "?ids=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20",
           NULL, 400, BAD_VALUE);
}

API_TEST(hrefs_carry_the_claim_while_it_lives)
{
    const char *href, *claim;

    api_post_letters(f, "q", "a");
    href = api_pick(f, "resources.0");
    claim = api_take(f, "q", 1);
    ck_api(f, "GET", href, NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "href"), api_text(f, "%s?claim_id=%s", href, claim));
    ck_api(f, "GET", MSG "?echo=true", NULL, 200, NULL);
    ck_api_body(f, "{'messages': [], 'links': []}");
    ck_api(f, "GET", MSG "?echo=true&include_claimed=true", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.href"),
                     api_text(f, "%s?claim_id=%s", href, claim));
    f->c.now_ms += 60000;
    ck_api(f, "GET", href, NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "href"), href);
}

API_TEST(listings_refuse_parameters_out_of_range)
{
    static const struct api_row rows[] = {
        {"GET", MSG "?limit=0", NULL, 400, BAD_VALUE},
        {"GET", MSG "?limit=21", NULL, 400, BAD_VALUE},
        {"GET", MSG "?limit=x", NULL, 400, "Invalid parameter"},
        {"GET", MSG "?limit=99999999999999999999", NULL, 400, BAD_VALUE},
        {"GET", MSG "?echo=maybe", NULL, 400, "Invalid parameter"},
        {"GET", MSG "?include_claimed=2", NULL, 400, "Invalid parameter"},
        {"GET", MSG "?include_delayed=2", NULL, 400, "Invalid parameter"},
        {"GET", "/v1.1/queues/q/messages?include_delayed=2", NULL, 200, NULL},
        {"GET", MSG "?limit=x&limit=20", NULL, 200, NULL},
    };

    ck_api_rows(f, rows);
}

/* ------------------------------------------------------------------ delete one */

TEST_CASE("delete");

/* The table of docs/api.md 8.6: each kind of message with each kind of claim id. */
API_TEST(deleting_a_claimed_message_needs_its_claim)
{
    const char *held, *freed, *claim, *other, *old;

    api_post_letters(f, "q", "abc");
    held = api_pick_id(f, "resources.0");
    freed = api_pick_id(f, "resources.2");
    claim = api_take(f, "q", 1);
    other = api_take(f, "q", 1);
    old = api_take(f, "q", 1);
    ck_api(f, "DELETE", api_text(f, "/v2/queues/q/claims/%s", old), NULL, 204, NULL);

    ck_api(f, "DELETE", api_text(f, MSG "/%s?claim_id=%s", freed, other), NULL, 400,
           UNDELETED);
    ck_api(f, "DELETE", api_text(f, MSG "/%s?claim_id=%s", freed, old), NULL, 400,
           UNDELETED);
    ck_api(f, "DELETE", api_text(f, MSG "/%s?claim_id=junk", freed), NULL, 400,
           UNDELETED);
    ck_api(f, "DELETE", api_text(f, MSG "/%s?claim_id=", freed), NULL, 204, NULL);

    ck_api(f, "DELETE", api_text(f, MSG "/%s", held), NULL, 403, UNDELETED);
    ck_api(f, "DELETE", api_text(f, MSG "/%s?claim_id=%s", held, other), NULL, 403,
           UNDELETED);
    ck_api(f, "DELETE", api_text(f, MSG "/%s?claim_id=%s", held, old), NULL, 400,
           UNDELETED);
    ck_api(f, "DELETE", api_text(f, MSG "/%s?claim_id=junk", held), NULL, 400, UNDELETED);
    ck_api(f, "GET", api_text(f, MSG "/%s", held), NULL, 200, NULL);
    ck_api(f, "DELETE", api_text(f, MSG "/%s?claim_id=%s", held, claim), NULL, 204, NULL);
    ck_assert_str_eq(api_body(&f->c), "");

    ck_api(f, "DELETE", api_text(f, MSG "/%s", held), NULL, 204, NULL);
    ck_api(f, "DELETE", api_text(f, MSG "/%s?claim_id=%s", held, claim), NULL, 204, NULL);
    ck_api(f, "DELETE", MSG "/junk?claim_id=junk", NULL, 204, NULL);
    ck_api(f, "DELETE", "/v2/queues/nosuch/messages/junk", NULL, 204, NULL);
}

/* ------------------------------------------------------------------ delete many, pop */

API_TEST(bulk_deletes_need_exactly_one_of_ids_and_pop)
{
    static const struct api_row rows[] = {
        {"DELETE", MSG, NULL, 400, BAD_VALUE},
        {"DELETE", MSG "?ids=", NULL, 400, BAD_VALUE},
        {"DELETE", MSG "?ids=a&pop=1", NULL, 400, BAD_VALUE},
        {"DELETE", MSG "?pop=0", NULL, 400, BAD_VALUE},
        {"DELETE", MSG "?pop=21", NULL, 400, BAD_VALUE},
        {"DELETE", MSG "?pop=x", NULL, 400, "Invalid parameter"},
        {"DELETE", MSG "?pop=", NULL, 400, BAD_VALUE},
        {"DELETE", MSG "?ids=0,1,2,3,4,5,6,7,8,9,a,b,c,d,e,f,g,h,i,j,k", NULL, 400,
         BAD_VALUE},
        {"DELETE", MSG "?ids=junk,3b241101-e2bb-4255-8caf-4136c566a962", NULL, 204, NULL},
        {"DELETE", "/v1/queues/q/messages", NULL, 400, "Missing parameter"},
        {"DELETE", "/v1/queues/q/messages?pop=1", NULL, 400, "Missing parameter"},
    };

    ck_api_rows(f, rows);
}

API_TEST(bulk_deletes_delete_claimed_messages_too)
{
    const char *a, *b;

    api_post_letters(f, "q", "ab");
    a = api_pick_id(f, "resources.0");
    b = api_pick_id(f, "resources.1");
    ck_assert_ptr_nonnull(api_take(f, "q", 1));
    ck_api(f, "DELETE", api_text(f, MSG "?ids=%s%%2Cjunk,%s", a, b), NULL, 204, NULL);
    ck_api(f, "GET", api_text(f, MSG "?ids=%s,%s", a, b), NULL, 404, NOT_FOUND);
}

API_TEST(pop_deletes_and_returns_ready_messages)
{
    ck_api(f, "DELETE", MSG "?pop=1", NULL, 200, NULL);
    ck_api_body(f, "{'messages': []}");
    api_post_letters(f, "q", "abcd");
    ck_assert_ptr_nonnull(api_take(f, "q", 2));
    f->c.now_ms += 60000; /* the claim expires: both are ready again */
    ck_assert_ptr_nonnull(api_take(f, "q", 1));
    ck_api(f, "DELETE", MSG "?pop=2", NULL, 200, NULL);
    ck_api_body(f, "{'messages': [{'id': '*', 'ttl': 300, 'age': 60, 'body': 'b',"
                   "'claim_id': null, 'claim_count': 1},"
                   "{'id': '*', 'ttl': 300, 'age': 60, 'body': 'c',"
                   "'claim_id': null, 'claim_count': 0}]}");
    ck_api(f, "DELETE", MSG "?pop=20", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.body"), "d");
    ck_api(f, "DELETE", MSG "?pop=20", NULL, 200, NULL);
    ck_api_body(f, "{'messages': []}");
}

LIMITED_TEST(strict_bulk_deletes_need_the_claims_that_hold_the_messages,
             limits.message_delete_with_claim_id = true)
{
    const char *held, *freed, *claim;

    api_post_letters(f, "q", "ab");
    held = api_pick_id(f, "resources.0");
    freed = api_pick_id(f, "resources.1");
    claim = api_take(f, "q", 1);
    ck_api(f, "DELETE", api_text(f, MSG "?ids=%s", held), NULL, 400, BAD_VALUE);
    ck_api(f, "DELETE", api_text(f, MSG "?claim_ids=%s", claim), NULL, 400, BAD_VALUE);
    ck_api(f, "DELETE", api_text(f, MSG "?pop=1&claim_ids=%s", claim), NULL, 400,
           BAD_VALUE);
    ck_api(f, "DELETE", api_text(f, MSG "?ids=%s,%s&claim_ids=%s", held, freed, claim),
           NULL, 403, UNDELETED);
    ck_api(f, "DELETE", api_text(f, MSG "?ids=%s&claim_ids=junk", held), NULL, 403,
           UNDELETED);
    ck_api(f, "GET", api_text(f, MSG "/%s", held), NULL, 200, NULL);
    ck_api(f, "DELETE", api_text(f, MSG "?ids=%s&claim_ids=x,%s", held, claim), NULL, 204,
           NULL);
    ck_api(f, "GET", api_text(f, MSG "/%s", held), NULL, 404, NOT_FOUND);
    ck_api(f, "DELETE", api_text(f, MSG "/%s", freed), NULL, 204, NULL);
    api_post_letters(f, "q", "c");
    ck_api(f, "DELETE",
           api_text(f, "/v1.1/queues/q/messages?ids=%s", api_pick_id(f, "resources.0")),
           NULL, 204, NULL);
}

API_TEST(a_late_worker_deletes_nothing_in_bulk_if_it_names_its_claim)
{
    const char *late, *holder, *a, *b, *many;

    api_post_letters(f, "q", "ab");
    a = api_pick_id(f, "resources.0");
    b = api_pick_id(f, "resources.1");
    late = api_take(f, "q", 2);
    f->c.now_ms += 60000;
    /* The claim has ended: not even a ready message is deleted. */
    ck_api(f, "DELETE", api_text(f, MSG "?ids=%s,%s&claim_ids=%s", a, b, late), NULL, 400,
           UNDELETED);
    holder = api_take(f, "q", 1);
    ck_api(f, "DELETE", api_text(f, MSG "?ids=%s,%s&claim_ids=%s", a, b, late), NULL, 400,
           UNDELETED);
    ck_api(f, "DELETE", api_text(f, MSG "?ids=%s,%s&claim_ids=%s", a, b, holder), NULL,
           400, UNDELETED);
    ck_api(f, "DELETE", api_text(f, MSG "?ids=%s&claim_ids=junk", a), NULL, 400,
           UNDELETED);
    many = ",x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x";
    ck_api(f, "DELETE", api_text(f, MSG "?ids=%s&claim_ids=%s%s", a, holder, many), NULL,
           400, BAD_VALUE);
    ck_api(f, "DELETE", api_text(f, MSG "?pop=1&claim_ids=%s", holder), NULL, 400,
           BAD_VALUE);
    ck_api(f, "DELETE", api_text(f, MSG "?claim_ids=%s", holder), NULL, 400, BAD_VALUE);
    ck_api(f, "GET", api_text(f, MSG "?ids=%s,%s", a, b), NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "messages.1.id"), b); /* both are there */
    ck_api(f, "DELETE", api_text(f, MSG "?ids=%s&claim_ids=%s,%s", a, late, holder), NULL,
           204, NULL);
    ck_api(f, "DELETE", api_text(f, MSG "?ids=%s&claim_ids=%s", a, late), NULL, 204,
           NULL); /* the message is deleted already */
    ck_api(f, "DELETE", api_text(f, MSG "?ids=%s&claim_ids=", b), NULL, 204, NULL);
    ck_api(f, "GET", api_text(f, MSG "/%s", b), NULL, 404, NOT_FOUND);
}

API_TEST(only_version_2_reads_claim_ids)
{
    api_post_letters(f, "q", "a");
    ck_api(f, "DELETE",
           api_text(f, "/v1.1/queues/q/messages?ids=%s&claim_ids=x",
                    api_pick_id(f, "resources.0")),
           NULL, 204, NULL);
    api_post_letters(f, "q", "a");
    ck_api(f, "DELETE",
           api_text(f, "/v1/queues/q/messages?ids=%s&claim_ids=x",
                    api_pick_id(f, "resources.0")),
           NULL, 204, NULL);
}

TEST_CASE("checksums");

LIMITED_TEST(checksums_are_shown_where_enabled, limits.enable_checksum = true)
{
    ck_api(f, "POST", MSG, "{\"messages\":[{\"body\":\"hello\"},{\"body\":null}]}", 201,
           NULL);
    ck_api(f, "GET", MSG "?echo=true", NULL, 200, NULL);
    ck_api_body(f, "{'messages': [{'id': '*', 'href': '*', 'ttl': 3600, 'age': 0,"
                   "'body': 'hello',"
                   "'checksum': 'MD5:5deaee1c1332199e5b5bc7c5e4f7f0c2'},"
                   "{'id': '*', 'href': '*', 'ttl': 3600, 'age': 0, 'body': null}],"
                   "'links': '*'}");
    ck_api(f, "GET", "/v1/queues/q/messages?echo=true&limit=1", NULL, 200, NULL);
    ck_assert_ptr_null(strstr(api_body(&f->c), "checksum"));
    ck_api(f, "DELETE", MSG "?pop=1", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.checksum"),
                     "MD5:5deaee1c1332199e5b5bc7c5e4f7f0c2");
}

LIMITED_TEST(the_default_page_is_at_most_the_maximum,
             limits.max_messages_per_page = limits.max_queues_per_page = 2)
{
    api_post_letters(f, "q", "abc");
    api_post_letters(f, "r", "a");
    api_post_letters(f, "s", "a");
    ck_api(f, "GET", "/v2/queues/q/messages?echo=true", NULL, 200, NULL);
    ck_api_body(f, "{'messages': ['*', '*'], 'links': ['*']}");
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    ck_api_body(f, "{'queues': ['*', '*'], 'links': ['*']}");
}
