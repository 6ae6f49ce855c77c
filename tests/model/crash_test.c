/* A store with its journal, on a disk that loses power (tests/crash). */
#include "crash/crash.h"

#include "support/check_main.h"
#include "support/random.h"

START_TEST(after_any_crash_the_store_is_what_its_answers_said)
{
    struct crash_metrics metrics = {.seeds = 0};
    uint64_t seeds = random_operations(400), first = random_seed("crashes");

    for (uint64_t i = 0; i < seeds; i++)
        crash_run(first + i, &metrics);
    crash_print(&metrics, stdout);
    ck_assert_uint_gt(metrics.survived, 0);
    ck_assert_uint_gt(metrics.lost, 0);
}
END_TEST
