#include "support/check_main.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct test_entry *entries; /* by line */

void
test_enter(struct test_entry *entry)
{
    struct test_entry **at = &entries;

    while (*at != NULL && (*at)->line < entry->line)
        at = &(*at)->next;
    entry->next = *at;
    *at = entry;
}

static TCase *
begin_case(Suite *suite, const struct test_entry *head)
{
    TCase *tc = tcase_create(head->case_name);

    tcase_set_timeout(tc, 600); /* seconds, for slow sanitizer builds */
    tcase_add_checked_fixture(tc, head->setup, head->teardown);
    suite_add_tcase(suite, tc);
    return tc;
}

static int
times(const struct test_entry *test, const struct test_entry *head)
{
    if (test->times != 0)
        return test->times;
    return head->times != 0 ? head->times : 1;
}

/* True if the name has one of the words in it, or if there are no words. */
static bool
wanted(const char *name, char *const *words)
{
    if (*words == NULL)
        return true;
    for (; *words != NULL; words++) {
        if (strstr(name, *words) != NULL)
            return true;
    }
    return false;
}

/* Adds the tests that are wanted to the suite; returns how many. */
static int
add_tests(Suite *suite, char *const *words)
{
    const struct test_entry plain = {.case_name = program_invocation_short_name};
    const struct test_entry *head = &plain;
    TCase *tc = NULL; /* what head begins, once it has a test */
    int count = 0;

    for (const struct test_entry *e = entries; e != NULL; e = e->next) {
        if (e->case_name != NULL) {
            head = e;
            tc = NULL;
        } else if (wanted(e->test.name, words)) {
            if (tc == NULL)
                tc = begin_case(suite, head);
            tcase_add_loop_test(tc, &e->test, 0, times(e, head));
            count++;
        }
    }
    return count;
}

/* Runs the suite without forking (a debugger and the sanitizers see everything). */
static int
run(Suite *suite)
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

int
main(int argc, char **argv)
{
    Suite *suite = suite_create(program_invocation_short_name);

    (void)argc;
    if (add_tests(suite, argv + 1) > 0)
        return run(suite);
    fprintf(stderr, "%s: no such test\n", program_invocation_short_name);
    return EXIT_FAILURE;
}
