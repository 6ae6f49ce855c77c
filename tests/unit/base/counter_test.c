/*
 * A counter has one writer and any number of readers without a lock. The thread sanitizer
 * checks that. Read claimd/base/counter.h next.
 */
#include "claimd/base/counter.h"
#include "support/check_main.h"

#include <pthread.h>

START_TEST(a_counter_adds_takes_and_is_set)
{
    struct counter c = {0};

    counter_add(&c, 5);
    counter_add(&c, 0);
    counter_subtract(&c, 2);
    ck_assert_uint_eq(counter_read(&c), 3);
    counter_set(&c, 77);
    ck_assert_uint_eq(counter_read(&c), 77);
}

static const struct bucket_bounds bounds = {3, {1, 10, 100}};

START_TEST(a_value_falls_into_the_first_bucket_whose_bound_it_does_not_exceed)
{
    static const uint64_t values[] = {0, 1, 2, 10, 11, 100, 101, 1000000};
    struct buckets b = {{{0}}, {0}}, sum = {{{0}}, {0}};

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        buckets_add(&b, &bounds, values[i]);
    for (size_t i = 0; i < 4; i++)
        ck_assert_uint_eq(counter_read(&b.counts[i]), 2);
    ck_assert_uint_eq(counter_read(&b.counts[4]), 0);
    ck_assert_uint_eq(counter_read(&b.sum), 1000225);
    buckets_merge(&sum, &b);
    buckets_merge(&sum, &b);
    ck_assert_uint_eq(counter_read(&sum.counts[3]), 4);
    ck_assert_uint_eq(counter_read(&sum.sum), 2000450);
}

static void *
count_up(void *arg)
{
    for (int i = 0; i < 100000; i++)
        counter_add(arg, 1);
    return NULL;
}

/* Under the thread sanitizer: reading needs no lock. */
START_TEST(a_reader_never_sees_a_counter_go_back)
{
    struct counter c = {0};
    uint64_t last = 0;
    pthread_t writer;

    ck_assert_int_eq(pthread_create(&writer, NULL, count_up, &c), 0);
    for (int i = 0; i < 1000; i++) {
        uint64_t now = counter_read(&c);

        ck_assert_uint_ge(now, last);
        last = now;
    }
    ck_assert_int_eq(pthread_join(writer, NULL), 0);
    ck_assert_uint_eq(counter_read(&c), 100000);
}
