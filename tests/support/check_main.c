#include "support/check_main.h"

#include <stdlib.h>

TCase *
test_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);

    tcase_set_timeout(tc, 600);
    suite_add_tcase(suite, tc);
    return tc;
}

int
check_main(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    /* One process is easier to debug, and threads may be about; CK_FORK=yes outlives crashes. */
    if (getenv("CK_FORK") == NULL)
        srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
