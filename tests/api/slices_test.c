/* Requests that are processed in slices: their cost, counted, and that nothing is
 * missed. */
#include "support/api_fixture.h"

#include <stdio.h>

enum { QUEUES = 2000, MESSAGES = 3000 };

/* Queues named q0000, q0001 ...; every `each`-th has the metadata {"color": "red"}. */
static void
make_queues(struct api_fixture *f, int each)
{
    for (int i = 0; i < QUEUES; i++) {
        char path[64];

        snprintf(path, sizeof(path), "/v2/queues/q%04d", i);
        ck_api(f, "PUT", path, i % each == 0 ? "{\"color\":\"red\"}" : NULL, 201, NULL);
    }
}

/* How often a text stands in the last response. */
static int
count(struct api_fixture *f, const char *text)
{
    int times = 0;

    for (const char *at = api_body(&f->c); (at = strstr(at, text)) != NULL; at++)
        times++;
    return times;
}

/* Follows the links of a listing; returns how often its pages have a text in all. */
static int
walk(struct api_fixture *f, const char *target, const char *text)
{
    int shown = 0;

    for (;;) {
        ck_api(f, "GET", target, NULL, 200, NULL);
        if (count(f, text) == 0)
            return shown;
        shown += count(f, text);
        target = api_pick(f, "links.0.href");
    }
}

API_TEST(a_missing_name_is_searched_in_slices)
{
    make_queues(f, 1);
    ck_api(f, "GET", "/v2/queues?name=zzz", NULL, 200, NULL);
    ck_api_body(f, "{'queues': [], 'links': []}");
    ck_assert_uint_ge(f->c.slices, QUEUES / 512);
    ck_assert_uint_le(f->c.slices, QUEUES / 512 + 1);
    ck_api(f, "GET", "/v2/queues?name=1999&with_count=true", NULL, 200, NULL);
    ck_assert_uint_ge(f->c.slices, QUEUES / 512);
    ck_assert_str_eq(api_pick(f, "queues.0.name"), "q1999");
    ck_api(f, "GET", "/v2/queues?limit=20", NULL, 200, NULL);
    ck_assert_uint_eq(f->c.slices, 1);
}

API_TEST(pages_that_end_early_miss_nothing_and_repeat_nothing)
{
    make_queues(f, 600); /* 0, 600, 1200, 1800 */
    ck_assert_int_eq(walk(f, "/v2/queues?color=red&limit=20", "\"name\""), 4);
    ck_assert_int_eq(walk(f, "/v2/queues?name=q1&limit=20", "\"name\""), 1000);
}

API_TEST(long_documents_and_many_filters_are_cut_by_what_they_cost)
{
    static char metadata[40000];
    char target[2000] = "/v2/queues?detailed=false";

    strcpy(metadata, "{\"pad\":\"");
    memset(metadata + 8, 'x', 30000);
    strcpy(metadata + 30008, "\",\"last\":1}");
    for (int i = 0; i < 20; i++) {
        char path[64];

        snprintf(path, sizeof(path), "/v2/queues/q%d", i);
        ck_api(f, "PUT", path, metadata, 201, NULL);
    }
    for (int i = 0; i < 80; i++)
        sprintf(target + strlen(target), "&f%d=1", i);
    strcat(target, "&last=1");
    ck_api(f, "GET", target, NULL, 200, NULL);
    ck_api_body(f, "{'queues': [], 'links': []}");
    ck_assert_uint_ge(f->c.slices, 9); /* two documents each */
}

/* Posts MESSAGES of them to a queue; terms are further members of each. */
static void
post_many(struct api_fixture *f, const char *terms)
{
    static char body[MESSAGES * 24];
    char *at = body + sprintf(body, "{\"messages\":");

    for (int i = 0; i < MESSAGES; i++)
        at += sprintf(at, "%c{\"body\":%d%s}", i == 0 ? '[' : ',', i % 10, terms);
    strcpy(at, "]}");
    ck_api(f, "POST", "/v2/queues/q/messages", body, 201, NULL);
}

API_TEST(messages_behind_many_of_ones_own_are_found_in_slices)
{
    post_many(f, "");
    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 200, NULL);
    ck_api_body(f, "{'messages': [], 'links': []}");
    ck_assert_uint_eq(f->c.slices, MESSAGES / 1024 + 1);
    f->c.headers[API_HEADER_CLIENT_ID] = "00000000-0000-0000-0000-000000000009";
    ck_api(f, "POST", "/v2/queues/q/messages", "{\"messages\":[{\"body\":\"far\"}]}", 201,
           NULL);
    f->c.headers[API_HEADER_CLIENT_ID] = "3381af92-2b9e-11e3-b191-71861300734c";
    ck_assert_int_eq(walk(f, "/v2/queues/q/messages?limit=20&echo=true", "\"body\""),
                     MESSAGES + 1);
}

API_TEST(due_deadlines_are_processed_in_slices)
{
    post_many(f, ",\"ttl\":60");
    f->c.now_ms += 60000;
    ck_api(f, "POST", "/v2/queues/q/claims", NULL, 204, NULL);
    ck_assert_uint_ge(f->c.slices, MESSAGES / 1024);
    ck_api(f, "POST", "/v2/queues/q/claims", NULL, 204, NULL);
    ck_assert_uint_eq(f->c.slices, 1);
}
