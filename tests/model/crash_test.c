/* A store with its journal, on a disk that loses power (tests/crash). */
#include "crash/crash.h"

#include "support/check_main.h"
#include "support/random.h"

START_TEST(after_any_crash_the_store_is_what_its_answers_said)
{
    struct crash_figures figures = {.seeds = 0};
    uint64_t seeds = random_operations(400), first = random_seed("crashes");

    for (uint64_t i = 0; i < seeds; i++)
        crash_run(first + i, &figures);
    crash_print(&figures, stdout);
    ck_assert_uint_gt(figures.survived, 0);
    ck_assert_uint_gt(figures.lost, 0);
}
END_TEST
