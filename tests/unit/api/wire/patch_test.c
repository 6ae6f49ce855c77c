/*
 * Changes of the metadata by JSON Patch (docs/api.md 7.4): all operations apply in order
 * or none does, and only the result is checked. Read src/api/wire/patch.h next.
 */
#include "api/wire/patch.h"
#include "support/arena_fixture.h"

#include <stdio.h>
#include <stdlib.h>

static struct patch patch;
static struct store_metadata before, after;
static struct reason why;
static struct api_limits limits;

static void
queue_with_metadata(void)
{
    arena_fixture_open();
    limits = api_limits_default;
    ck_assert_int_eq(metadata_decode(bytes_str("{\"color\":\"red\",\"size\":5}"), &limits,
                                     &f.arena, &before, &why),
                     ST_OK);
}

static enum status
apply(const char *body)
{
    enum status st = patch_read(bytes_str(body), &limits, &f.arena, &patch, &why);

    if (st == ST_OK)
        st = patch_apply(&patch, &before, &limits, &f.arena, &after, &why);
    patch_fini(&patch);
    return st;
}

/* Refused while it is read, before the queue is read. */
static void
expect_unreadable(const char *body)
{
    ck_assert_msg(patch_read(bytes_str(body), &limits, &f.arena, &patch, &why) ==
                      ST_BAD_BODY,
                  "%s", body);
    patch_fini(&patch);
}

static void
expect_result(const char *body, const char *result)
{
    ck_assert_msg(apply(body) == ST_OK, "%s", body);
    metadata_plain(&after, &f.out);
    expect_written(result);
}

/* The next patch applies to the result of this one. */
static void
apply_and_keep(const char *body)
{
    ck_assert_msg(apply(body) == ST_OK, "%s", body);
    before = after;
}

TEST_CASE("patch", .setup = queue_with_metadata, .teardown = arena_fixture_close);

START_TEST(add_sets_and_replaces)
{
    expect_result("[{\"op\":\"add\",\"path\":\"/metadata/new\",\"value\":{\"a\":[1]}}]",
                  "{\"color\":\"red\",\"size\":5,\"new\":{\"a\":[1]}}");
    expect_result("[{\"op\":\"add\",\"path\":\"/metadata/color\",\"value\":null}]",
                  "{\"color\":null,\"size\":5}");
}

START_TEST(replace_and_remove_need_the_member)
{
    expect_result("[{\"op\":\"replace\",\"path\":\"/metadata/size\",\"value\":6}]",
                  "{\"color\":\"red\",\"size\":6}");
    expect_result("[{\"op\":\"remove\",\"path\":\"/metadata/size\"}]",
                  "{\"color\":\"red\"}");
    ck_assert_int_eq(
        apply("[{\"op\":\"replace\",\"path\":\"/metadata/nope\",\"value\":1}]"),
        ST_CONFLICT);
    ck_assert_int_eq(apply("[{\"op\":\"remove\",\"path\":\"/metadata/nope\"}]"),
                     ST_CONFLICT);
}

START_TEST(reserved_members_need_not_be_set)
{
    expect_result(
        "[{\"op\":\"replace\",\"path\":\"/metadata/_default_message_ttl\",\"value\":100}"
        "]",
        "{\"color\":\"red\",\"size\":5,\"_default_message_ttl\":100}");
    ck_assert_int_eq(after.settings.message_ttl_s, 100);
    expect_result("[{\"op\":\"remove\",\"path\":\"/metadata/_max_claim_count\"}]",
                  "{\"color\":\"red\",\"size\":5}");
    before = after;
    expect_result("[{\"op\":\"add\",\"path\":\"/metadata/_max_claim_count\",\"value\":2},"
                  "{\"op\":\"remove\",\"path\":\"/metadata/_max_claim_count\"}]",
                  "{\"color\":\"red\",\"size\":5}");
    ck_assert_int_eq(after.settings.max_claim_count, STORE_UNSET);
}

START_TEST(operations_apply_in_order)
{
    expect_result("[{\"op\":\"add\",\"path\":\"/metadata/a\",\"value\":1},"
                  "{\"op\":\"replace\",\"path\":\"/metadata/a\",\"value\":{\"b\":[2]}},"
                  "{\"op\":\"remove\",\"path\":\"/metadata/color\"},"
                  "{\"op\":\"add\",\"path\":\"/metadata/color\",\"value\":\"blue\"}]",
                  "{\"size\":5,\"a\":{\"b\":[2]},\"color\":\"blue\"}");
    expect_result("[]", "{\"color\":\"red\",\"size\":5}");
}

START_TEST(a_failing_operation_leaves_the_old_metadata_alone)
{
    after.json = BYTES_NONE;
    ck_assert_int_eq(apply("[{\"op\":\"add\",\"path\":\"/metadata/undone\",\"value\":1},"
                           "{\"op\":\"remove\",\"path\":\"/metadata/nope\"}]"),
                     ST_CONFLICT);
    ck_assert(!bytes_present(after.json));
    metadata_plain(&before, &f.out);
    expect_written("{\"color\":\"red\",\"size\":5}");
}

START_TEST(paths_are_pointers_of_two_parts)
{
    expect_result("[{\"op\":\"add\",\"path\":\"/metadata/x~1y~0z\",\"value\":1}]",
                  "{\"color\":\"red\",\"size\":5,\"x/y~z\":1}");
    expect_result("[{\"op\":\"add\",\"path\":\"/MetaData/~01\",\"value\":1}]",
                  "{\"color\":\"red\",\"size\":5,\"~1\":1}");
    expect_unreadable("[{\"op\":\"add\",\"path\":\"metadata/a\",\"value\":1}]");
    expect_unreadable("[{\"op\":\"add\",\"path\":\"/data/a\",\"value\":1}]");
    expect_unreadable("[{\"op\":\"add\",\"path\":\"/metadata\",\"value\":1}]");
    expect_unreadable("[{\"op\":\"add\",\"path\":\"/metadata/a/b\",\"value\":1}]");
    expect_unreadable("[{\"op\":\"add\",\"path\":\"/metadata//a\",\"value\":1}]");
    expect_unreadable("[{\"op\":\"add\",\"path\":\"/metadata/a/\",\"value\":1}]");
    expect_unreadable("[{\"op\":\"add\",\"path\":\"/metadata/\",\"value\":1}]");
    expect_unreadable("[{\"op\":\"add\",\"path\":\"//a\",\"value\":1}]");
    expect_unreadable("[{\"op\":\"add\",\"path\":\"\",\"value\":1}]");
    expect_unreadable("[{\"op\":\"add\",\"path\":\"/\",\"value\":1}]");
    expect_unreadable("[{\"op\":\"add\",\"path\":\"/metadata/a~2\",\"value\":1}]");
    expect_unreadable("[{\"op\":\"add\",\"path\":\"/metadata/a~\",\"value\":1}]");
    expect_unreadable("[{\"op\":\"add\",\"path\":\"/metadata/a\\u0000\",\"value\":1}]");
    expect_unreadable("[{\"op\":\"add\",\"path\":5,\"value\":1}]");
    expect_unreadable("[{\"op\":\"add\",\"value\":1}]");
}

START_TEST(the_root_is_not_checked_for_remove)
{
    expect_result("[{\"op\":\"remove\",\"path\":\"/data/size\"}]", "{\"color\":\"red\"}");
}

START_TEST(operations_have_a_known_name_and_a_value)
{
    expect_unreadable("[{\"op\":\"move\",\"path\":\"/metadata/a\"}]");
    expect_unreadable("[{\"op\":\"Add\",\"path\":\"/metadata/a\",\"value\":1}]");
    expect_unreadable("[{\"op\":5,\"path\":\"/metadata/a\",\"value\":1}]");
    expect_unreadable("[{\"path\":\"/metadata/a\",\"value\":1}]");
    expect_unreadable("[{\"op\":\"add\",\"path\":\"/metadata/a\"}]");
    expect_unreadable("[{\"op\":\"replace\",\"path\":\"/metadata/a\"}]");
}

START_TEST(the_body_is_an_array_of_objects)
{
    expect_unreadable(NULL);
    expect_unreadable("");
    expect_unreadable("[");
    expect_unreadable("[\"add\"]");
    expect_unreadable("[null]");
    expect_unreadable("{\"op\":\"add\",\"path\":\"/metadata/a\",\"value\":1}");
}

START_TEST(bad_rules_are_found_before_conflicts)
{
    ck_assert_int_eq(apply("[{\"op\":\"remove\",\"path\":\"/metadata/nope\"},"
                           "{\"op\":\"add\",\"path\":\"/metadata/a\"}]"),
                     ST_BAD_BODY);
}

START_TEST(the_result_is_checked_and_only_the_result)
{
    ck_assert_int_eq(apply("[{\"op\":\"add\",\"path\":\"/metadata/_default_message_ttl\","
                           "\"value\":1}]"),
                     ST_BAD_BODY);
    ck_assert_int_eq(apply("[{\"op\":\"add\",\"path\":\"/metadata/_default_message_ttl\","
                           "\"value\":1},{\"op\":\"remove\",\"path\":\"/metadata/"
                           "_default_message_ttl\"}]"),
                     ST_OK);
    ck_assert_int_eq(apply("[{\"op\":\"add\",\"path\":\"/metadata/"
                           "_enable_encrypt_messages\",\"value\":1}]"),
                     ST_BAD_BODY);
}

/* A patch that sets member `name` to a text of `len` letters; owned by the caller. */
static char *
large_patch(char name, size_t len)
{
    char *body = malloc(len + 128);
    int at;

    ck_assert_ptr_nonnull(body);
    at = sprintf(body, "[{\"op\":\"add\",\"path\":\"/metadata/%c\",\"value\":\"", name);
    memset(body + at, 'x', len);
    (void)strcpy(body + at + len, "\"}]");
    return body;
}

START_TEST(metadata_cannot_grow_for_ever)
{
    char *too_large = large_patch('a', 65536), *first = large_patch('a', 60000);
    char *second = large_patch('b', 60000);

    expect_unreadable(too_large);
    ck_assert_int_eq(apply(first), ST_OK);
    before = after;
    ck_assert_int_eq(apply(second), ST_BAD_BODY);
    ck_assert_int_eq(apply("[{\"op\":\"remove\",\"path\":\"/metadata/a\"}]"), ST_OK);
    free(second);
    free(first);
    free(too_large);
}

/* Refused, and for this reason. */
static void
expect_reason(const char *body, const char *reason)
{
    ck_assert_msg(apply(body) != ST_OK, "%s", body);
    ck_assert_str_eq(why.text, reason);
}

START_TEST(a_refusal_names_the_operation)
{
#define GOOD_FIRST "[{\"op\":\"remove\",\"path\":\"/metadata/size\"},"
    expect_reason("{}", "the body must be an array of operations");
    expect_reason(GOOD_FIRST "5]", "[1] must be an object with op, path and value");
    expect_reason(GOOD_FIRST "{\"op\":\"move\"}]",
                  "[1].op is \"move\". It must be add, replace or remove");
    expect_reason(
        GOOD_FIRST "{\"op\":\"add\",\"path\":\"/a/b/c\",\"value\":1}]",
        "[1].path is \"/a/b/c\". It must be a JSON pointer of two parts, such as "
        "/metadata/NAME");
    expect_reason(GOOD_FIRST "{\"op\":\"add\",\"path\":\"/other/b\",\"value\":1}]",
                  "[1].path must begin with /metadata/");
    expect_reason(GOOD_FIRST "{\"op\":\"add\",\"path\":\"/metadata/~2\",\"value\":1}]",
                  "[1].path has an invalid escape. Only ~0 and ~1 are allowed");
    expect_reason(GOOD_FIRST
                  "{\"op\":\"add\",\"path\":\"/metadata/\\u0000\",\"value\":1}]",
                  "[1].path must not hold a NUL character");
    expect_reason(GOOD_FIRST "{\"op\":\"add\",\"path\":\"/metadata/b\"}]",
                  "[1].value is required");
    expect_reason(GOOD_FIRST "{\"op\":\"remove\",\"path\":\"/metadata/nope\"}]",
                  "[1].path: the member nope does not exist");
    expect_reason(
        "[{\"op\":\"add\",\"path\":\"/metadata/_max_claim_count\",\"value\":0}]",
        "_max_claim_count is 0. It must be an integer of at least 1");
    expect_reason(
        "[", "the body is not JSON: line 1, column 2: a value is expected at the end "
             "of the text");
    expect_reason("", "a body is required");
#undef GOOD_FIRST
}

START_TEST(metadata_that_is_too_large_may_shrink_but_not_grow)
{
    char *large = large_patch('a', 60000);

    ck_assert_int_eq(apply(large), ST_OK);
    before = after;
    limits.max_queue_metadata = 1000; /* by now the server is started with less */
    ck_assert_int_eq(
        apply("[{\"op\":\"replace\",\"path\":\"/metadata/size\",\"value\":55}]"),
        ST_BAD_BODY);
    apply_and_keep("[{\"op\":\"replace\",\"path\":\"/metadata/size\",\"value\":6}]");
    apply_and_keep("[{\"op\":\"remove\",\"path\":\"/metadata/size\"}]");
    ck_assert_int_eq(apply("[{\"op\":\"add\",\"path\":\"/metadata/size\",\"value\":5}]"),
                     ST_BAD_BODY);
    apply_and_keep("[{\"op\":\"remove\",\"path\":\"/metadata/a\"}]");
    apply_and_keep("[{\"op\":\"add\",\"path\":\"/metadata/size\",\"value\":5}]");
    free(large);
}
