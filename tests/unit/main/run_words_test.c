/*
 * Which words of `claimd run` are its own, the command's or options of the server.
 * Declared in src/main/run/run.h.
 */
#include "main/run/run.h"

#include "main/command.h"
#include "support/check_main.h"

#include <string.h>

static struct run_words words;

/* The words behind "run", which are kept; an exit status. */
static int
read_list(char *const *list, size_t count)
{
    static char *kept[16];

    ck_assert_uint_lt(count, sizeof(kept) / sizeof(kept[0]));
    memcpy(kept, list, count * sizeof(*list));
    kept[count] = NULL;
    return run_words_read(kept, &words);
}

#define read_words(...)                                                                  \
    read_list((char *const[]){__VA_ARGS__},                                              \
              sizeof((char *const[]){__VA_ARGS__}) / sizeof(char *))

/* The word of the server's command line that stands so far from its end, 1: the last. */
static const char *
from_end(size_t place)
{
    return words.server[words.server_count - place];
}

static bool
has(const char *word)
{
    for (size_t i = 0; i < words.server_count; i++)
        if (strcmp(words.server[i], word) == 0)
            return true;
    return false;
}

TEST_CASE("words");

START_TEST(a_command_is_all_that_is_needed)
{
    ck_assert_int_eq(read_words("--", "make", "--", "x"), COMMAND_GOOD);
    ck_assert_uint_eq(words.instances, 1);
    ck_assert(!words.numbered && !words.fail_on_leak);
    ck_assert_ptr_null(words.log);
    ck_assert_str_eq(words.command[0], "make");
    ck_assert_str_eq(words.command[1], "--");
    ck_assert_str_eq(words.command[2], "x");
    ck_assert_ptr_null(words.command[3]);
    ck_assert_str_eq(words.server[0], "claimd");
    ck_assert(has("--ci") && has("--identity-stub") && has("--listen"));
    ck_assert_str_eq(from_end(2), "--log-level");
    ck_assert_str_eq(from_end(1), "warn");
    ck_assert_ptr_null(words.server[words.server_count]);
    run_words_free(&words);
}

START_TEST(its_own_options_stand_anywhere_among_those_of_the_server)
{
    ck_assert_int_eq(read_words("--max-wait", "3", "--instances", "64", "--fail-on-leak",
                                "--log=l", "--ci-short", "--", "c"),
                     COMMAND_GOOD);
    ck_assert_uint_eq(words.instances, 64);
    ck_assert(words.numbered && words.fail_on_leak);
    ck_assert_str_eq(words.log, "l");
    ck_assert_str_eq(from_end(3), "--max-wait");
    ck_assert_str_eq(from_end(2), "3");
    ck_assert_str_eq(from_end(1), "--ci-short");
    ck_assert(!has("warn")); /* a log file gets all levels */
    run_words_free(&words);
}

START_TEST(others_that_begin_alike_are_the_servers)
{
    ck_assert_int_eq(read_words("--log-level", "debug", "--log-format=json",
                                "--instancesx", "--", "c"),
                     COMMAND_GOOD);
    ck_assert_ptr_null(words.log);
    ck_assert(!words.numbered);
    ck_assert_str_eq(from_end(4), "--log-level"); /* behind ours, so it wins */
    run_words_free(&words);
}

START_TEST(wrong_words_are_refused)
{
    ck_assert_int_eq(run_words_read((char *const[]){NULL}, &words), COMMAND_USAGE);
    ck_assert_int_eq(read_words("--"), COMMAND_USAGE);
    ck_assert_int_eq(read_words("make"), COMMAND_USAGE);
    ck_assert_int_eq(read_words("--instances"), COMMAND_USAGE);
    ck_assert_int_eq(read_words("--instances", "--", "c"), COMMAND_USAGE);
    ck_assert_int_eq(read_words("--instances", "0", "--", "c"), COMMAND_USAGE);
    ck_assert_int_eq(read_words("--instances", "65", "--", "c"), COMMAND_USAGE);
    ck_assert_int_eq(read_words("--instances=", "--", "c"), COMMAND_USAGE);
    ck_assert_int_eq(read_words("--log", "--", "c"), COMMAND_USAGE);
}
