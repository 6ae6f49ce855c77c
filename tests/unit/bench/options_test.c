/* The values of the options of claimd-bench (load/options.h). command_test.c tests how
 * the skeleton reads a command line. */
#include "load/options.h"

#include "support/check_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WORDS_MAX 16

static struct options o; /* of the last command line */

static int
keep(const struct command_args *args)
{
    return options_parse(&o, args) ? COMMAND_GOOD : COMMAND_USAGE;
}

/* Reads the words behind the name of the program. */
static bool
parse(const char *line)
{
    char text[256], *argv[WORDS_MAX + 1] = {NULL}, *rest = text;
    struct command command = command_bench;
    const struct command_entry entry = {"bench", "", "", &command};
    const struct command_program program = {.entries = &entry, .count = 1};

    ck_assert_uint_lt(strlen(line), sizeof text);
    memcpy(text, line, strlen(line) + 1);
    for (int i = 0; i < WORDS_MAX && rest != NULL; i++)
        argv[i] = strsep(&rest, " ");
    command.run = keep;
    return command_run(&program, &entry, argv) == COMMAND_GOOD;
}

START_TEST(the_last_value_of_an_option_counts_and_all_processes_are_measured)
{
    ck_assert(parse("--batch 10 --server-pid 7 --spin --batch=3 --server-pid=8"));
    ck_assert_int_eq(o.batch, 3);
    ck_assert(o.spin && !o.keep);
    ck_assert_uint_eq(o.server.count, 2);
    ck_assert_int_eq(o.server.pids[1], 8);
    ck_assert_str_eq(o.endpoint, "http://127.0.0.1:8888"); /* the default */
}

START_TEST(a_value_out_of_range_is_refused)
{
    static const char *const lines[] = {
        "--batch 0",  "--batch 101", "--batch x",    "--rate -1",
        "--rate nan", "--rate 1x",   "--queue=",     "--server-pid 0",
        "--batch=",   "--storm no",  "--delete all", "--held 1"};

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        ck_assert_msg(!parse(lines[i]), "%s", lines[i]);
}

START_TEST(a_delivery_has_a_pace_producers_and_workers)
{
    ck_assert(parse("--scenario delivery --rate 100"));
    ck_assert_int_eq(o.wait, 0);
    ck_assert_int_eq(o.poll, 10);
    ck_assert_int_eq(o.producers, 1);
    ck_assert(parse("--scenario=delivery --rate=9 --connections=9 "
                    "--producers=4 --queues=5 --wait=20 --poll=250"));
    ck_assert_int_eq(o.wait, 20);
    ck_assert_int_eq(o.poll, 250);
    ck_assert_int_eq(o.producers, 4);
}

START_TEST(a_delivery_that_could_not_be_measured_is_refused)
{
    static const char *const lines[] = {
        "--scenario delivery",                           /* no pace */
        "--scenario delivery --rate 9 --producers 16",   /* no workers */
        "--scenario delivery --rate 9 --queues 16",      /* one without worker */
        "--scenario delivery --rate 9 --protocol redis", /* no claims */
        "--scenario delivery --rate 9 --poll 0",         /* workers would spin */
        "--wait 5 --protocol beanstalk",                 /* it has no long polling */
        "--wait -1",
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        ck_assert_msg(!parse(lines[i]), "%s", lines[i]);
}

START_TEST(a_token_comes_from_the_first_line_of_a_file)
{
    char path[] = "/tmp/options_test.XXXXXX", line[64];
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    (void)snprintf(line, sizeof(line), "--token-file %s", path);
    ck_assert(!parse(line)); /* it is empty */
    ck_assert_int_eq(write(fd, "claimd_1\nmore\n", 14), 14);
    ck_assert(parse(line));
    ck_assert_str_eq(o.token, "claimd_1");
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert(!parse(line)); /* it is not there */
    ck_assert(parse("--batch 1"));
    ck_assert_str_eq(o.token, "");
}
