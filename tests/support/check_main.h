/*
 * check_main: the main() and the macros that all Check programs share.
 *
 * A program is one file of tests. START_TEST both defines a test and registers it, so
 * that no test can be forgotten. check_main.c has the main() that runs them, in the order
 * of the file. If tests need a setup, a teardown or repetition, a line above them begins
 * a case:
 *
 *     TEST_CASE("housekeeping");
 *     TEST_CASE("patch", .setup = queue_with_metadata, .teardown = arena_fixture_close);
 *
 * The program's arguments select tests by parts of their names:
 *
 *     unit_ds_wheel_test crowd wake_up
 *
 * Check's own variables work as well: CK_RUN_CASE=CASE, CK_FORK=yes (each test in a
 * process of its own, so that the others go on when it crashes),
 * CK_TAP_LOG_FILE_NAME=FILE.
 */
#ifndef TESTS_SUPPORT_CHECK_MAIN_H
#define TESTS_SUPPORT_CHECK_MAIN_H

#include <check.h>

/* A test, or the head of the case that the tests behind it belong to. */
struct test_entry {
    struct test_entry *next; /* the next one in the file */
    int line;                /* its line in the file */
    const char *case_name;   /* NULL: a test */
    TTest test;
    int times; /* number of runs, with _i from 0; 0: that of the case, or one */
    SFun setup, teardown; /* of a case: around each of its tests; NULL: none */
};

/* Registers an entry in the order of lines. Borrows it until the program ends. */
void test_enter(struct test_entry *entry);

/* Registers an entry before main() begins. A semicolon must follow. */
#define TEST_ENTRY(id, ...)                                                              \
    __attribute__((constructor)) static void id##_enter(void)                            \
    {                                                                                    \
        static struct test_entry entry = {.line = __LINE__, __VA_ARGS__};                \
                                                                                         \
        test_enter(&entry);                                                              \
    }                                                                                    \
    struct test_entry

/* Begins a case. Arguments: its name, then members of struct test_entry. */
#define TEST_CASE(...)           TEST_CASE_AT(__LINE__, __VA_ARGS__)
#define TEST_CASE_AT(line, ...)  TEST_CASE_AT_(line, __VA_ARGS__)
#define TEST_CASE_AT_(line, ...) TEST_ENTRY(case_at_##line, .case_name = __VA_ARGS__)

/* A test that is run `count` times, with _i from 0. It needs no END_TEST. */
#define LOOP_TEST(id, count)                                                             \
    static void id(int _i);                                                              \
    TEST_ENTRY(id, .test = {#id, id, __FILE__, __LINE__}, .times = (int)(count));        \
    static void id(int _i CK_ATTRIBUTE_UNUSED)

/* Ends the program as skipped, because the system lacks what all its tests are about.
 * ctest knows the status from SKIP_RETURN_CODE (tests/CMakeLists.txt). */
_Noreturn void test_skip_all(const char *reason);

#undef START_TEST
#define START_TEST(id) LOOP_TEST(id, 0)

/*
 * A failed assertion in a helper names the line of the helper. So the helpers of fixtures
 * note the line of the test that calls them, and a fixture may note its subject, such as
 * the store. A failure prints both. Texts are borrowed for ever.
 */
extern struct test_noted {
    const char *file, *subject;
    int line;
} test_noted; /* only the thread of the tests writes it */
void test_note_line(const char *file, int line);
void test_note_subject(const char *subject);
#define FROM_LINE(call) (test_note_line(__FILE__, __LINE__), call)

/* A test with a fixture, a variable of this name, which `open` makes before the test, and
 * `close` frees after it. It is run `count` times, with _i from 0; 0: as the case says.
 * The function behind the macro is the test. */
#define FIXTURE_LOOP_AS(id, count, type, name, open, close)                              \
    static void id##_with(type *name, int _i);                                           \
    LOOP_TEST(id, count)                                                                 \
    {                                                                                    \
        type fixture, *name = &fixture;                                                  \
                                                                                         \
        open;                                                                            \
        id##_with(name, _i);                                                             \
        close;                                                                           \
    }                                                                                    \
    static void id##_with(type *name, int _i CK_ATTRIBUTE_UNUSED)
#define FIXTURE_TEST_AS(id, type, name, open, close)                                     \
    FIXTURE_LOOP_AS(id, 0, type, name, open, close)

/* The same with the name `f`. */
#define FIXTURE_TEST(id, type, open, close) FIXTURE_TEST_AS(id, type, f, open, close)

/* A test of a thing, a pointer of this name, which `make` returns and `close` frees. */
#define MADE_TEST(id, type, name, make, close)                                           \
    static void id##_with(type *name);                                                   \
    START_TEST(id)                                                                       \
    {                                                                                    \
        type *name = make;                                                               \
                                                                                         \
        id##_with(name);                                                                 \
        close;                                                                           \
    }                                                                                    \
    static void id##_with(type *name)

#endif
