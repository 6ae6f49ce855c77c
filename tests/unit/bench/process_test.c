#include "bench/stats.h"

#include "support/check_main.h"

#include <unistd.h>

START_TEST(a_process_may_have_brackets_and_spaces_in_its_name)
{
    static const char stat[] =
        "4242 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 150 50 13 14 15 16 "
        "17 18 19 20 777 22\n";
    uint64_t ticks = 0;
    uint64_t pages = 0;

    ck_assert(process_parse_stat(stat, &ticks, &pages));
    ck_assert_uint_eq(ticks, 200);
    ck_assert_uint_eq(pages, 777);
    ck_assert(!process_parse_stat("no such file", &ticks, &pages));
    ck_assert(!process_parse_stat("1 (short) S 1 2", &ticks, &pages));
}

START_TEST(the_own_process_can_be_accounted)
{
    struct process_list self = {.pids = {(int32_t)getpid()}, .count = 1};
    struct process_list nobody = {.pids = {INT32_MAX}, .count = 1};
    struct process_usage usage;

    ck_assert(process_usage(&self, &usage));
    ck_assert_uint_gt(usage.resident_bytes, 100000);
    ck_assert(!process_usage(&nobody, &usage));
}
