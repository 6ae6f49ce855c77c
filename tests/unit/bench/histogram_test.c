/* The histogram of claimd-bench (load/stats.h): its buckets and its percentiles. */
#include "load/stats.h"

#include "support/check_main.h"

#include <stdlib.h>

static struct histogram *
fresh(void)
{
    struct histogram *h = calloc(1, sizeof *h);

    ck_assert_ptr_nonnull(h);
    return h;
}

TEST_CASE("buckets");

START_TEST(every_value_is_in_a_bucket_that_reaches_at_most_a_128th_beyond_it)
{
    for (uint64_t value = 0; value < (UINT64_C(1) << 39); value = value * 17 / 16 + 1) {
        uint64_t top = histogram_bucket_top(histogram_bucket(value));

        ck_assert_uint_ge(top, value);
        ck_assert_uint_le(top - value, value / 128);
    }
}

START_TEST(buckets_follow_each_other_without_gap_or_overlap)
{
    for (size_t i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
        uint64_t top = histogram_bucket_top(i);

        ck_assert_uint_eq(histogram_bucket(top), i);
        ck_assert_uint_eq(histogram_bucket(top + 1), i + 1);
    }
}

START_TEST(a_value_beyond_the_range_counts_as_the_longest)
{
    struct histogram *h = fresh();

    histogram_record(h, INT64_MAX);
    ck_assert_uint_eq(h->counts[HISTOGRAM_BUCKETS - 1], 1);
    ck_assert_uint_eq(h->max, INT64_MAX);
    free(h);
}

START_TEST(a_negative_value_counts_as_zero)
{
    struct histogram *h = fresh();

    histogram_record(h, -5);
    ck_assert_uint_eq(h->counts[0], 1);
    ck_assert_uint_eq(histogram_percentile(h, 100), 0);
    free(h);
}

TEST_CASE("percentiles");

START_TEST(percentiles_cover_the_share_they_name)
{
    struct histogram *h = fresh();

    for (int64_t value = 1; value <= 100; value++) /* each below 128: exact */
        histogram_record(h, value);
    ck_assert_uint_eq(histogram_percentile(h, 0), 1);
    ck_assert_uint_eq(histogram_percentile(h, 50), 50);
    ck_assert_uint_eq(histogram_percentile(h, 50.1), 51);
    ck_assert_uint_eq(histogram_percentile(h, 99), 99);
    ck_assert_uint_eq(histogram_percentile(h, 100), 100);
    free(h);
}

START_TEST(one_slow_value_in_a_thousand_shows_at_99_9_and_not_at_99)
{
    struct histogram *h = fresh();

    for (int n = 0; n < 998; n++)
        histogram_record(h, 10);
    histogram_record(h, 5000000);
    histogram_record(h, 5000000);
    ck_assert_uint_eq(histogram_percentile(h, 99), 10);
    ck_assert_uint_eq(histogram_percentile(h, 99.9), 5000000);
    free(h);
}

START_TEST(no_percentile_exceeds_the_exact_maximum)
{
    struct histogram *h = fresh();

    histogram_record(h, 1000001); /* its bucket reaches further */
    ck_assert_uint_gt(histogram_bucket_top(histogram_bucket(1000001)), 1000001);
    ck_assert_uint_eq(histogram_percentile(h, 100), 1000001);
    ck_assert_uint_eq(histogram_percentile(h, 50), 1000001);
    free(h);
}

START_TEST(the_percentiles_of_an_empty_histogram_are_zero)
{
    struct histogram *h = fresh();

    ck_assert_uint_eq(histogram_percentile(h, 50), 0);
    ck_assert(histogram_mean(h) == 0);
    free(h);
}

START_TEST(merging_is_the_same_as_recording_everything_in_one)
{
    struct histogram *one = fresh();
    struct histogram *two = fresh();
    struct histogram *all = fresh();

    for (int64_t n = 1; n <= 1000; n++) {
        histogram_record(n % 3 == 0 ? one : two, n * n);
        histogram_record(all, n * n);
    }
    histogram_merge(one, two);
    ck_assert_mem_eq(one, all, sizeof *all);
    ck_assert(histogram_mean(all) == 333833.5);
    free(one);
    free(two);
    free(all);
}
