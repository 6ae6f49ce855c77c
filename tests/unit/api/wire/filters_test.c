/*
 * Filters in the query of a listing of queues (docs/api.md 7.6) compare with the members
 * of the metadata, as text and as integer. Declared in src/api/wire/query.h.
 */
#include "api/wire/query.h"

#include "support/arena_fixture.h"

#include <stdio.h>

static struct query q;
static struct filters filters;

static bool
is_filter(struct bytes name)
{
    return !bytes_equal_str(name, "limit");
}

/* Does the document meet the filters of this query? */
static bool
match(const char *query, const char *json)
{
    ck_assert_int_eq(query_parse(bytes_str(query), &f.arena, &q), ST_OK);
    ck_assert_int_eq(filters_make(&q, is_filter, &f.arena, &filters), ST_OK);
    return filters_match(&filters, bytes_str(json));
}

ARENA_CASE("filters");

START_TEST(values_compare_as_text_and_as_integer)
{
    static const char *const json = "{\"color\":\"red\",\"size\":5,\"text\":\"5\","
                                    "\"real\":5.0,\"flag\":true,\"none\":null}";

    ck_assert(match("color=red", json));
    ck_assert(!match("color=re", json));
    ck_assert(!match("colour=red", json));
    ck_assert(match("size=5", json));
    ck_assert(!match("size=6", json));
    ck_assert(match("text=5", json));
    ck_assert(!match("real=5", json));
    ck_assert(!match("flag=true", json));
    ck_assert(!match("none=null", json));
    ck_assert(!match("color=red", ""));
}

START_TEST(all_must_match_and_the_rest_of_the_query_is_none)
{
    static const char *const json = "{\"a\":1,\"b\":2,\"c\":3}";

    ck_assert(match("b=2&a=1", json));
    ck_assert(!match("b=2&a=2", json));
    ck_assert(!match("b=2&d=2", json));
    ck_assert(match("limit=7", json));
    ck_assert_uint_eq(filters.wanted, 0);
    ck_assert(match("limit=7", ""));
    ck_assert(match("limit=7&c=3", json));
}

START_TEST(of_one_name_the_last_counts)
{
    ck_assert(match("a=2&b=2&a=1", "{\"a\":1,\"b\":2}"));
    ck_assert_uint_eq(filters.wanted, 2);
    ck_assert(!filters_have(&filters, &q.pairs[0]));
    ck_assert(filters_have(&filters, &q.pairs[1]));
    ck_assert(filters_have(&filters, &q.pairs[2]));
    ck_assert(!match("a=1&b=2&a=2", "{\"a\":1,\"b\":2}"));
}

START_TEST(escapes_in_names_are_undone)
{
    ck_assert(match("caf%C3%A9=%C3%BC", "{\"caf\\u00e9\":\"\\u00fc\"}"));
    ck_assert(match("a%22b=1&x=2", "{\"a\\\"b\":1,\"x\":2}"));
    ck_assert(match("x=2", "{\"\\ud83d\\ude00\\ud83d\\ude00\":1,\"x\":2}"));
    ck_assert(!match("ab=1", "{\"a\\\"b\":1}"));
}

START_TEST(many_filters_cost_one_pass)
{
    char query[256 * 16] = "", json[256 * 16] = "{";

    for (int i = 0; i < 256; i++) {
        sprintf(query + strlen(query), "%sname%d=%d", i == 0 ? "" : "&", i, i);
        sprintf(json + strlen(json), "%s\"name%d\":%d", i == 0 ? "" : ",", 255 - i,
                255 - i);
    }
    strcat(json, "}");
    ck_assert(match(query, json));
    ck_assert_uint_eq(filters.wanted, 256);
    *strrchr(query, '5') = '4';
    ck_assert(!match(query, json));
}

START_TEST(lack_of_memory_is_a_response)
{
    ck_assert_int_eq(query_parse(bytes_str("a=1"), &f.arena, &q), ST_OK);
    mem_fail_from(f.mem, 1);
    while (arena_alloc(&f.arena, 16) != NULL) /* until a new block is needed */
        continue;
    ck_assert_int_eq(filters_make(&q, is_filter, &f.arena, &filters), ST_NO_MEMORY);
    mem_fail_from(f.mem, 0);
}
