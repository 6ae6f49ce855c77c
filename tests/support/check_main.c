#include "support/check_main.h"
#include "support/sometimes.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ------------------------------------------------------------------ failures */

void __real__ck_assert_failed(const char *file, int line, const char *expression,
                              const char *message, ...);
_Noreturn void __wrap__ck_assert_failed(const char *file, int line,
                                        const char *expression, const char *message, ...);

/* Replaces the function of Check behind every failed assertion (ld --wrap). */
void
__wrap__ck_assert_failed(const char *file, int line, const char *expression,
                         const char *message, ...)
{
    char text[4096] = "";
    va_list arguments;

    va_start(arguments, message);
    if (message != NULL)
        (void)vsnprintf(text, sizeof(text), message, arguments);
    va_end(arguments);
    if (test_noted.file != NULL && strstr(file, "support/") != NULL)
        fprintf(stderr, "%s:%d: the test called the helper that failed at %s:%d\n",
                test_noted.file, test_noted.line, file, line);
    if (test_noted.subject != NULL)
        fprintf(stderr, "%s:%d: the subject is %s\n", file, line, test_noted.subject);
    __real__ck_assert_failed(file, line, expression, message == NULL ? NULL : "%s", text,
                             NULL);
    abort(); /* Check does not return */
}

/* ------------------------------------------------------------------ skips */

enum { SKIPPED = 77 };

void
test_skip_all(const char *reason)
{
    fprintf(stderr, "skipped: %s\n", reason);
    _exit(SKIPPED);
}

/* ------------------------------------------------------------------ running */

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
    TCase *tc = NULL; /* the case of head, once it has a test */
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

    /* One process is easier to debug, and tests have threads. CK_FORK=yes outlives
     * crashes. */
    if (getenv("CK_FORK") == NULL)
        srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    /* ctest sets the variable to the name of the test. So it is not set if only a part of
     * the tests was selected. */
    if (getenv("CLAIMD_TEST_COMMON") != NULL && sometimes_report != NULL &&
        !sometimes_report(getenv("CLAIMD_TEST_COMMON"), stderr))
        failed++;
    return failed == 0 && getenv("CLAIMD_TEST_CRASHED") == NULL ? EXIT_SUCCESS
                                                                : EXIT_FAILURE;
}

/* ------------------------------------------------------------------ crashes */

/* Arguments of run_again(), made before the tests: a signal handler cannot allocate. */
static struct {
    pid_t pid;
    char **argv, **environment;
} again;

/*
 * A test that crashes takes its failed assertion with it. Then the program runs once
 * more, with a process for each test: Check prints what failed, and the last line before
 * a crash.
 */
static void
run_again(int number)
{
    static const char text[] = "crashed: running each test in a process of its own\n";

    (void)signal(number, SIG_DFL);
    if (getpid() != again.pid)
        return; /* a child that a test made: it dies as it should */
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)execve("/proc/self/exe", again.argv, again.environment);
}

/* The sanitizers report crashes by themselves. */
static void
catch_crashes(char **argv)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    static char fork[] = "CK_FORK=yes", crashed[] = "CLAIMD_TEST_CRASHED=yes";
    struct sigaction action = {.sa_handler = run_again, .sa_flags = SA_NODEFER};
    size_t count = 0;

    if (getenv("CK_FORK") != NULL)
        return;
    while (environ[count] != NULL)
        count++;
    again.environment = calloc(count + 3, sizeof(char *));
    if (again.environment == NULL)
        return;
    memcpy(again.environment, environ, count * sizeof(char *));
    again.environment[count] = fork;
    again.environment[count + 1] = crashed;
    again.argv = argv;
    again.pid = getpid();
    (void)sigaction(SIGABRT, &action, NULL);
    (void)sigaction(SIGSEGV, &action, NULL);
#else
    (void)argv;
    (void)run_again;
#endif
}

int
main(int argc, char **argv)
{
    Suite *suite = suite_create(program_invocation_short_name);

    (void)argc;
    catch_crashes(argv);
    if (add_tests(suite, argv + 1) > 0)
        return run(suite);
    fprintf(stderr, "%s: no such test\n", program_invocation_short_name);
    return EXIT_FAILURE;
}
