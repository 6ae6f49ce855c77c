/*
 * How the programs read the words behind a command, and which exit status an invalid
 * command line has. Messages must not contain control characters of the terminal. Read
 * claimd/base/command.h next.
 */
#include "claimd/base/command.h"

#include "support/check_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The arguments of the last run of the command, and the messages of the last call. */
static struct command_args got;
static char words[128], values[2][32], common[32], given[64], *errors;
static bool opened, closed;

static void
copy(char out[32], const char *value)
{
    (void)snprintf(out, 32, "%s", value == NULL ? "(none)" : value);
}

static int
run_example(const struct command_args *args)
{
    got = *args;
    words[0] = '\0';
    for (size_t i = 0; i < args->count; i++) {
        strcat(words, args->words[i]);
        strcat(words, " ");
    }
    ck_assert_ptr_null(args->words[args->count]);
    given[0] = '\0';
    for (size_t i = 0; i < args->given_count; i++) {
        strcat(given, args->command->options[args->given[i].option].name);
        strcat(given, args->given[i].value);
        strcat(given, " ");
    }
    copy(values[0], args->values[0]);
    copy(values[1], args->values[1]);
    copy(common, args->common[0]);
    return args->values[1] == NULL ? COMMAND_GOOD : COMMAND_FAILED;
}

static int
open_example(struct command_args *args)
{
    opened = true;
    return args->common[0] != NULL && strcmp(args->common[0], "refused") == 0
               ? COMMAND_UNAVAILABLE
               : COMMAND_GOOD;
}

static void
close_example(struct command_args *args)
{
    (void)args;
    closed = true;
}

static const struct command example = {
    .about = "An example.",
    .options = {{"--limit", "N", "A number."}, {"--fail", NULL, "Fail."}},
    .example = "claimd example",
    .least = 1,
    .most = 2,
    .needs = "a queue",
    .run = run_example};

static const struct command check_like = {.about = "Another one.",
                                          .example = "claimd check",
                                          .misuse = COMMAND_DAMAGED,
                                          .run = run_example};

static const struct command repeating = {
    .options = {{"--limit", "N", "A number."}, {"--fail", NULL, "Fail."}},
    .repeats = true,
    .run = run_example};

static const struct command_entry entries[] = {
    {"example", "example QUEUE", "Do something.", &example},
    {"check", "check", "Check.", &check_like},
    {"top", "top", "Of another program.", NULL},
    {"repeat", "repeat", "Do something often.", &repeating}};

static const struct command_option common_options[] = {{"--url", "URL", "The server."},
                                                       {NULL, NULL, NULL}};

static const struct command_program program = {.entries = entries,
                                               .count = 4,
                                               .common = common_options,
                                               .common_heading = "Connection",
                                               .open = open_example,
                                               .close = close_example};

/* Runs a command with up to five words. Returns the exit status. */
static int
run(const char *name, const char *a, const char *b, const char *c, const char *d,
    const char *e)
{
    char *const argv[] = {(char *)(uintptr_t)a, (char *)(uintptr_t)b,
                          (char *)(uintptr_t)c, (char *)(uintptr_t)d,
                          (char *)(uintptr_t)e, NULL};
    FILE *before = stderr;
    size_t size;
    int status;

    opened = closed = false;
    free(errors);
    errors = NULL;
    stderr = open_memstream(&errors, &size);
    ck_assert_ptr_nonnull(stderr);
    status = command_run(&program, command_find(&program, name), argv);
    (void)fclose(stderr);
    stderr = before;
    return status;
}

static void
expect_misuse(int status, const char *message)
{
    ck_assert_int_eq(status, COMMAND_USAGE);
    ck_assert_str_eq(errors, message);
    ck_assert(!opened && !closed);
}

START_TEST(options_and_arguments_may_stand_in_any_order)
{
    ck_assert_int_eq(run("example", "--limit", "7", "jobs", NULL, NULL), COMMAND_GOOD);
    ck_assert_str_eq(words, "jobs ");
    ck_assert_str_eq(values[0], "7");
    ck_assert_str_eq(values[1], "(none)");
    ck_assert_str_eq(common, "(none)");
    ck_assert(opened && closed);
    ck_assert_int_eq(run("example", "jobs", "--url=http://h", "--limit=", "--fail", "2"),
                     COMMAND_FAILED);
    ck_assert_str_eq(words, "jobs 2 ");
    ck_assert_str_eq(values[0], "");
    ck_assert_str_eq(values[1], "");
    ck_assert_str_eq(common, "http://h");
    ck_assert_str_eq(errors, "");
}

START_TEST(a_command_may_take_an_option_several_times)
{
    ck_assert_int_eq(run("repeat", "--limit=1", "--fail", "--limit", "2", "--url=u"),
                     COMMAND_FAILED);
    ck_assert_str_eq(values[0], "2");
    ck_assert_str_eq(given, "--limit1 --fail --limit2 ");
}

START_TEST(words_behind_two_dashes_are_arguments)
{
    ck_assert_int_eq(run("example", "jobs", "--", "--fail", NULL, NULL), COMMAND_GOOD);
    ck_assert_str_eq(words, "jobs --fail ");
    ck_assert_uint_eq(got.before_dashes, 1);
    ck_assert_int_eq(run("example", "jobs", "-", NULL, NULL, NULL), COMMAND_GOOD);
    ck_assert_uint_eq(got.before_dashes, 2);
}

START_TEST(wrong_arguments_are_misuse)
{
    expect_misuse(
        run("example", "jobs", "--limt", "7", NULL, NULL),
        "claimd: --limt is not an option of example (did you mean --limit?). See "
        "claimd example --help\n");
    expect_misuse(run("example", "jobs", "--limit", NULL, NULL, NULL),
                  "claimd: --limit needs a value. See claimd example --help\n");
    expect_misuse(run("example", "jobs", "--fail=1", NULL, NULL, NULL),
                  "claimd: --fail takes no value. See claimd example --help\n");
    expect_misuse(run("example", "jobs", "--url", "a", "--url", "b"),
                  "claimd: --url is given twice. See claimd example --help\n");
    expect_misuse(run("example", "a", "b", "c", NULL, NULL),
                  "claimd: c is one argument too many. See claimd example --help\n");
    expect_misuse(run("example", NULL, NULL, NULL, NULL, NULL),
                  "claimd: example needs a queue. See claimd example --help\n");
}

START_TEST(a_command_may_have_its_own_status_for_misuse)
{
    ck_assert_int_eq(run("check", "--nothing", NULL, NULL, NULL, NULL), COMMAND_DAMAGED);
    ck_assert_int_eq(run("check", "--url", "refused", NULL, NULL, NULL), COMMAND_DAMAGED);
    ck_assert(opened && closed);
    ck_assert_int_eq(run("check", NULL, NULL, NULL, NULL, NULL), COMMAND_GOOD);
}

START_TEST(a_command_that_cannot_be_prepared_does_not_run)
{
    words[0] = '\0';
    ck_assert_int_eq(run("example", "jobs", "--url", "refused", NULL, NULL),
                     COMMAND_UNAVAILABLE);
    ck_assert(opened && closed);
    ck_assert_str_eq(words, "");
}

START_TEST(a_number_is_checked_against_its_range)
{
    static const struct {
        const char *text;
        bool good;
    } cases[] = {{"1", true},   {"9", true},  {"0", false},
                 {"10", false}, {"x", false}, {"", false}};
    struct command_args args = {.name = "example", .command = &example};
    int64_t value = 5;

    ck_assert(args_number(&args, 0, 1, 9, &value));
    ck_assert_int_eq(value, 5);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        args.values[0] = cases[i].text;
        ck_assert(args_number(&args, 0, 1, 9, &value) == cases[i].good);
    }
    ck_assert_int_eq(value, 9);
}

START_TEST(a_name_is_found_or_one_like_it)
{
    ck_assert_ptr_eq(command_find(&program, "top"), &entries[2]);
    ck_assert_ptr_null(command_find(&program, "tops"));
    ck_assert_ptr_null(command_find(&program, NULL));
    ck_assert_str_eq(command_nearest(&program, "exmaple"), "example");
    ck_assert_ptr_null(command_nearest(&program, "nonsense"));
}

START_TEST(a_message_cannot_command_the_terminal)
{
    (void)run("example", "a", "b", "\033[2J", NULL, NULL);
    ck_assert_str_eq(errors, "claimd: \\u001b[2J is one argument too many. See claimd "
                             "example --help\n");
}
