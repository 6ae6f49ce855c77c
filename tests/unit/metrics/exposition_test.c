/*
 * The text format of Prometheus and OpenMetrics, with labels of any bytes. Read
 * claimd/metrics/exposition.h next.
 */
#include "claimd/metrics/exposition.h"
#include "support/check_main.h"

static struct mem *mem;
static struct buf out;
static struct exposition x;

static void
open_text(void)
{
    mem = mem_new(0);
    buf_init(&out, mem);
    exposition_begin(&x, &out, EXPOSITION_PROMETHEUS);
}

static void
close_text(void)
{
    buf_fini(&out);
    mem_destroy(mem);
}

static void
ck_text(const char *expected)
{
    buf_byte(&out, '\0');
    ck_assert_str_eq(out.data, expected);
    out.len = 0;
}

static const struct family age = {"age_seconds", FAMILY_GAUGE, "seconds", "How old."};
static const struct family build = {"build", FAMILY_INFO, NULL, "The build."};
static const struct family took = {"took_seconds", FAMILY_HISTOGRAM, "seconds", "Long."};

TEST_CASE("exposition", .setup = open_text, .teardown = close_text);

START_TEST(a_counter_ends_in_total)
{
    metric_write(&x, FAMILY_COUNTER, "posted", NULL, "Posted messages.", 7, 0);
    ck_text("# HELP posted_total Posted messages.\n# TYPE posted_total counter\n"
            "posted_total 7\n");
    exposition_begin(&x, &out, EXPOSITION_OPENMETRICS);
    metric_write(&x, FAMILY_COUNTER, "posted", NULL, "Posted messages.", 7, 0);
    exposition_end(&x);
    ck_text("# HELP posted Posted messages.\n# TYPE posted counter\n"
            "posted_total 7\n# EOF\n");
}

START_TEST(only_openmetrics_has_units)
{
    exposition_family(&x, &age);
    exposition_decimal(&x, NULL, 0, 1500, 3);
    exposition_decimal(&x, NULL, 0, 2000, 3);
    exposition_decimal(&x, NULL, 0, 7, 3);
    exposition_decimal(&x, NULL, 0, 12, 0);
    exposition_end(&x);
    ck_text("# HELP age_seconds How old.\n# TYPE age_seconds gauge\nage_seconds 1.5\n"
            "age_seconds 2.0\nage_seconds 0.007\nage_seconds 12.0\n");
    exposition_begin(&x, &out, EXPOSITION_OPENMETRICS);
    exposition_family(&x, &age);
    ck_text("# HELP age_seconds How old.\n# TYPE age_seconds gauge\n"
            "# UNIT age_seconds seconds\n");
}

START_TEST(an_info_is_a_gauge_where_there_is_none)
{
    const struct label version = {"version", BYTES_LIT("1")};

    exposition_family(&x, &build);
    exposition_sample(&x, &version, 1, 1);
    ck_text("# HELP build_info The build.\n# TYPE build_info gauge\n"
            "build_info{version=\"1\"} 1\n");
    exposition_begin(&x, &out, EXPOSITION_OPENMETRICS);
    exposition_family(&x, &build);
    ck_text("# HELP build The build.\n# TYPE build info\n");
}

START_TEST(labels_are_escaped)
{
    const struct label labels[] = {
        {"a", BYTES_LIT("q\"u\\o\nt")},
        {"b", BYTES_LIT("Gr\xc3\xbc\xc3\x9f\x65 \xff\xc3")},
        {"c", BYTES_LIT("")},
    };

    x.family = &age;
    exposition_sample(&x, labels, 3, 1);
    ck_text(
        "age_seconds{a=\"q\\\"u\\\\o\\nt\",b=\"Gr\xc3\xbc\xc3\x9f\x65 \\\\xff\\\\xc3\","
        "c=\"\"} 1\n");
}

/* The text for a label's value. */
static const char *
shown(const char *value, size_t len)
{
    const struct label label = {"a", bytes_of(value, len)};

    out.len = 0;
    x.family = &age;
    exposition_sample(&x, &label, 1, 1);
    buf_byte(&out, '\0');
    return out.data;
}

#define ck_shown(value, expected)                                                        \
    ck_assert_str_eq(shown(value, sizeof(value) - 1),                                    \
                     "age_seconds{a=\"" expected "\"} 1\n")

START_TEST(two_values_never_look_the_same)
{
    ck_shown("\xff", "\\\\xff");
    ck_shown("\\xff", "\\\\x5cxff");
    ck_shown("\\x5cxff", "\\\\x5cx5cxff");
    ck_shown("\\\xff", "\\\\\\\\xff");
    ck_shown("\\\\xff", "\\\\\\\\x5cxff");
    ck_shown("a\\", "a\\\\");
    ck_shown("\\y", "\\\\y");
}

START_TEST(control_characters_are_numbers)
{
    ck_shown("a\0b", "a\\\\x00b");
    ck_shown("\r\t\x1f\x7f", "\\\\x0d\\\\x09\\\\x1f\\\\x7f");
    ck_shown(" \n", " \\n");
}

START_TEST(buckets_are_cumulative)
{
    static const struct bucket_bounds bounds = {2, {1, 2500}};
    const struct label label = {"q", BYTES_LIT("z")};
    struct buckets b = {{{0}}, {0}};

    buckets_add(&b, &bounds, 1);
    buckets_add(&b, &bounds, 2);
    buckets_add(&b, &bounds, 9000);
    exposition_family(&x, &took);
    exposition_buckets(&x, &label, 1, &b, &bounds, 3);
    ck_text("# HELP took_seconds Long.\n# TYPE took_seconds histogram\n"
            "took_seconds_bucket{q=\"z\",le=\"0.001\"} 1\n"
            "took_seconds_bucket{q=\"z\",le=\"2.5\"} 2\n"
            "took_seconds_bucket{q=\"z\",le=\"+Inf\"} 3\n"
            "took_seconds_sum{q=\"z\"} 9.003\ntook_seconds_count{q=\"z\"} 3\n");
    exposition_buckets(&x, NULL, 0, &b, &bounds, 0);
    ck_text("took_seconds_bucket{le=\"1.0\"} 1\ntook_seconds_bucket{le=\"2500.0\"} 2\n"
            "took_seconds_bucket{le=\"+Inf\"} 3\ntook_seconds_sum 9003.0\n"
            "took_seconds_count 3\n");
}

struct teller {
    struct metrics_source source;
    uint64_t value;
};

static void
write_teller(struct metrics_source *source, struct exposition *to)
{
    exposition_sample(to, NULL, 0, ((struct teller *)(void *)source)->value);
}

START_TEST(all_sources_write_in_their_order)
{
    struct teller first = {{.write = write_teller}, 1},
                  second = {{.write = write_teller}, 2};
    struct metrics m = {.first = NULL};

    metrics_write(&m, &x);
    metrics_add(&m, &first.source);
    metrics_add(&m, &second.source);
    x.family = &age;
    metrics_write(&m, &x);
    ck_text("age_seconds 1\nage_seconds 2\n");
}
