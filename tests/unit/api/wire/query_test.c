/*
 * How a query string becomes parameters (docs/api.md 3.7): decoding, repeated names,
 * integers, booleans and lists. Read src/api/wire/query.h next.
 */
#include "api/wire/query.h"
#include "support/arena_fixture.h"

#include <stdio.h>

static struct query q;

static void
parse(const char *text)
{
    ck_assert_int_eq(query_parse(bytes_str(text), &f.arena, &q), ST_OK);
}

static void
has(const char *name, const char *value)
{
    struct bytes found = query_get(&q, name);

    ck_assert_msg(bytes_equal_str(found, value), "%s is %.*s", name, (int)found.len,
                  found.data);
}

static void
lacks(const char *name)
{
    ck_assert(!bytes_present(query_get(&q, name)));
}

ARENA_CASE("query");

START_TEST(names_and_values_are_decoded)
{
    parse("a=1&b%20c=x+y%2Bz&%64=%C3%A9&nul=a%00b");
    has("a", "1");
    has("b c", "x y+z");
    has("d", "\xc3\xa9");
    ck_assert(bytes_equal(query_get(&q, "nul"), bytes_of("a\0b", 3)));
}

START_TEST(bad_escapes_stay_as_they_are)
{
    parse("a=%&b=%4&c=%zz1&d=100%");
    has("a", "%");
    has("b", "%4");
    has("c", "%zz1");
    has("d", "100%");
}

START_TEST(empty_values_count_as_absent)
{
    parse("limit=&echo&=x&&marker=a&marker=");
    lacks("limit");
    lacks("echo");
    has("marker", "a");
    has("", "x");
    parse(NULL);
    lacks("limit");
    parse("");
    ck_assert_uint_eq(q.count, 0);
}

START_TEST(the_last_of_several_counts)
{
    parse("limit=1&x=y&limit=2=3");
    has("limit", "2=3");
}

START_TEST(integers_are_decimal)
{
    static const char *const bad[] = {"x", "1.5", "0x1", "1e3", "-", "1 ", "many"};
    int64_t value = 7;

    parse("a=12&b=-3&c=99999999999999999999");
    ck_assert_int_eq(query_i64(&q, "a", &value), ST_OK);
    ck_assert_int_eq(value, 12);
    ck_assert_int_eq(query_i64(&q, "b", &value), ST_OK);
    ck_assert_int_eq(value, -3);
    ck_assert_int_eq(query_i64(&q, "none", &value), ST_OK);
    ck_assert_int_eq(value, -3);
    ck_assert_int_eq(query_i64(&q, "c", &value), ST_BAD_VALUE);
    ck_assert_int_eq(value, -3);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct query_pair pair = {.name = BYTES_LIT("n"), .value = bytes_str(bad[i])};
        struct query one = {.pairs = &pair, .count = 1};

        ck_assert_msg(query_i64(&one, "n", &value) == ST_BAD_PARAMETER, "%s", bad[i]);
    }
}

START_TEST(limits_have_bounds)
{
    size_t limit = 10;

    parse("none=");
    ck_assert_int_eq(query_limit(&q, "limit", 20, &limit), ST_OK);
    ck_assert_uint_eq(limit, 10);
    parse("limit=20");
    ck_assert_int_eq(query_limit(&q, "limit", 20, &limit), ST_OK);
    ck_assert_uint_eq(limit, 20);
    parse("limit=21");
    ck_assert_int_eq(query_limit(&q, "limit", 20, &limit), ST_BAD_VALUE);
    parse("limit=0");
    ck_assert_int_eq(query_limit(&q, "limit", 20, &limit), ST_BAD_VALUE);
    parse("limit=-1");
    ck_assert_int_eq(query_limit(&q, "limit", 20, &limit), ST_BAD_VALUE);
    parse("limit=x");
    ck_assert_int_eq(query_limit(&q, "limit", 20, &limit), ST_BAD_PARAMETER);
    ck_assert_uint_eq(limit, 20);
}

START_TEST(booleans_have_seven_spellings_each)
{
    static const char *const yes[] = {"true", "True", "t", "yes", "y", "1", "on"};
    static const char *const no[] = {"false", "False", "f", "no", "n", "0", "off"};
    static const char *const bad[] = {"TRUE", "maybe", "2", "tru", "On"};

    for (size_t i = 0; i < 7; i++) {
        struct query_pair pairs[2] = {
            {.name = BYTES_LIT("a"), .value = bytes_str(yes[i])},
            {.name = BYTES_LIT("b"), .value = bytes_str(no[i])}};
        struct query two = {.pairs = pairs, .count = 2};
        bool a = false, b = true, absent = true;

        ck_assert_int_eq(query_bool(&two, "a", &a), ST_OK);
        ck_assert_int_eq(query_bool(&two, "b", &b), ST_OK);
        ck_assert_int_eq(query_bool(&two, "c", &absent), ST_OK);
        ck_assert(a && !b && absent);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct query_pair pair = {.name = BYTES_LIT("a"), .value = bytes_str(bad[i])};
        struct query one = {.pairs = &pair, .count = 1};
        bool value = true;

        ck_assert_int_eq(query_bool(&one, "a", &value), ST_BAD_PARAMETER);
    }
}

START_TEST(lists_are_cut_at_commas_of_both_kinds_and_repeated)
{
    struct bytes *items;
    size_t count;

    parse("ids=a,b&x=1&ids=c%2Cd,,&ids=&ids=,");
    ck_assert_int_eq(query_list(&q, "ids", true, 4, &f.arena, &items, &count), ST_OK);
    ck_assert_uint_eq(count, 4);
    ck_assert(bytes_equal_str(items[0], "a"));
    ck_assert(bytes_equal_str(items[1], "b"));
    ck_assert(bytes_equal_str(items[2], "c"));
    ck_assert(bytes_equal_str(items[3], "d"));
    ck_assert_int_eq(query_list(&q, "ids", true, 3, &f.arena, &items, &count),
                     ST_BAD_VALUE);

    parse("ids=,&y=2");
    ck_assert_int_eq(query_list(&q, "ids", true, 4, &f.arena, &items, &count), ST_OK);
    ck_assert_uint_eq(count, 0);
}

START_TEST(values_are_not_cut)
{
    struct bytes *items;
    size_t count;

    parse("queue=b&x=1&queue=a,b&queue=&queue=c%2C");
    ck_assert_int_eq(query_list(&q, "queue", false, 3, &f.arena, &items, &count), ST_OK);
    ck_assert_uint_eq(count, 3);
    ck_assert(bytes_equal_str(items[0], "b"));
    ck_assert(bytes_equal_str(items[1], "a,b"));
    ck_assert(bytes_equal_str(items[2], "c,"));
    ck_assert_int_eq(query_list(&q, "queue", false, 2, &f.arena, &items, &count),
                     ST_BAD_VALUE);
}

START_TEST(names_of_read_parameters_are_noted_once)
{
    static const char many[] = "a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0o\0p\0q\0r";
    struct bytes *items;
    size_t count, limit;

    parse("a=1");
    (void)query_get(&q, "ids");
    ck_assert_int_eq(query_limit(&q, "limit", 20, &limit), ST_OK);
    ck_assert_int_eq(query_list(&q, "ids", true, 20, &f.arena, &items, &count), ST_OK);
    ck_assert_uint_eq(q.asked->count, 2);
    ck_assert_str_eq(q.asked->all[0], "ids");
    ck_assert_str_eq(q.asked->all[1], "limit");
    for (size_t i = 0; i < sizeof(many) / 2; i++)
        (void)query_get(&q, &many[2 * i]);
    ck_assert_uint_eq(q.asked->count, 16);
}

START_TEST(the_number_of_parameters_is_bounded)
{
    char text[2 * QUERY_PAIRS_MAX + 2];

    memset(text, '&', sizeof(text));
    for (size_t i = 0; i < sizeof(text); i += 2)
        text[i] = 'a';
    ck_assert_int_eq(query_parse(bytes_of(text, 2 * QUERY_PAIRS_MAX - 1), &f.arena, &q),
                     ST_OK);
    ck_assert_int_eq(query_parse(bytes_of(text, 2 * QUERY_PAIRS_MAX + 1), &f.arena, &q),
                     ST_BAD_PARAMETER);
}

START_TEST(lack_of_memory_is_a_response)
{
    struct bytes *items;
    size_t count;

    mem_fail_from(f.mem, 1);
    ck_assert_int_eq(query_parse(bytes_str("a=1"), &f.arena, &q), ST_NO_MEMORY);
    ck_assert_int_eq(query_list(&q, "a", true, 20, &f.arena, &items, &count),
                     ST_NO_MEMORY);
    mem_fail_from(f.mem, 0);
}
