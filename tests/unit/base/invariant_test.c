/* With NDEBUG, whatever the build: this is how a release is built. */
#ifndef NDEBUG
#define NDEBUG
#endif
#include "claimd/base/invariant.h"

#include "support/invariant_fixture.h"

static void
break_it(void)
{
    int count = 3;

    ENSURE(count < 3);
}

START_TEST(a_broken_invariant_is_reported_in_a_line_and_ends_the_process)
{
    expect_broken(break_it, "count < 3", "in break_it()\n");
}

START_TEST(the_line_says_where_it_is_in_the_source)
{
    char line[BROKEN_LINE_CAP];
    int end = 0;

    catch_broken(break_it, line);
    ck_assert_int_eq(sscanf(line,
                            "claimd: broken invariant: count < 3, at "
                            "tests/unit/base/invariant_test.c:%*d in break_it()%n",
                            &end),
                     0);
    ck_assert_str_eq(line + end, "\n");
}

static void
break_it_for_a_request(void)
{
    ck_assert_ptr_null(invariant_context("request-17"));
    break_it();
}

START_TEST(the_request_under_way_is_named)
{
    expect_broken(break_it_for_a_request, "count < 3",
                  "in break_it(), request request-17\n");
}

START_TEST(a_context_gives_back_the_one_before)
{
    const char *const outer = "outer", *const inner = "inner";

    ck_assert_ptr_null(invariant_context(outer));
    ck_assert_ptr_eq(invariant_context(inner), outer);
    ck_assert_ptr_eq(invariant_context(outer), inner);
    ck_assert_ptr_eq(invariant_context(NULL), outer);
    expect_broken(break_it, "count < 3", "in break_it()\n");
}

static void
compare_what_differs(void)
{
    ENSURE_EQ(2 + 2, -5);
}

static void
compare_the_extremes(void)
{
    ENSURE_EQ(INT64_MAX, INT64_MIN);
}

START_TEST(a_comparison_says_both_values)
{
    expect_broken(compare_what_differs, "2 + 2 == -5 (4, -5)",
                  "in compare_what_differs()\n");
    expect_broken(compare_the_extremes, " (9223372036854775807, -9223372036854775808)",
                  "in compare_the_extremes()\n");
}

static void
break_at_length(void)
{
    char text[5000];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)invariant_context(text);
    invariant_unequal(INT64_MIN, INT64_MIN, text, text, 1, text);
}

START_TEST(a_line_is_whole_however_long_its_parts_are)
{
    expect_broken(break_at_length, "xxx (-9223372036854775808, ", "xxx\n");
}

START_TEST(a_true_condition_is_evaluated_once)
{
    int looks = 0;

    ENSURE(++looks == 1);
    ENSURE_EQ(++looks, 2);
    ENSURE("any" != NULL);
    ck_assert_int_eq(looks, 2);
}

START_TEST(a_release_skips_expensive_checks)
{
    int looks = 0;

    ENSURE_DEBUG(++looks == 17);
    ck_assert_int_eq(looks, 0);
}
