#include "load/options.h"

#include "support/check_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WORDS_MAX 16

/* Parses the words of a command line; what it complains about is not shown. */
static bool
parse(struct options *o, const char *line)
{
    char text[256], *argv[WORDS_MAX], *rest = text, *word;
    int argc = 0;

    ck_assert_uint_lt(strlen(line), sizeof text);
    memcpy(text, line, strlen(line) + 1);
    while (argc < WORDS_MAX && (word = strsep(&rest, " ")) != NULL)
        argv[argc++] = word;
    return options_parse(o, argc, argv);
}

START_TEST(a_delivery_has_a_pace_producers_and_workers)
{
    struct options o;

    ck_assert(parse(&o, "claimd-bench --scenario delivery --rate 100"));
    ck_assert_int_eq(o.wait, 0);
    ck_assert_int_eq(o.poll, 10);
    ck_assert_int_eq(o.producers, 1);
    ck_assert(parse(&o, "claimd-bench --scenario=delivery --rate=9 --connections=9 "
                        "--producers=4 --queues=5 --wait=20 --poll=250"));
    ck_assert_int_eq(o.wait, 20);
    ck_assert_int_eq(o.poll, 250);
    ck_assert_int_eq(o.producers, 4);
}

START_TEST(a_delivery_that_could_not_be_measured_is_refused)
{
    static const char *const lines[] = {
        "x --scenario delivery",                           /* no pace */
        "x --scenario delivery --rate 9 --producers 16",   /* no workers */
        "x --scenario delivery --rate 9 --queues 16",      /* one without worker */
        "x --scenario delivery --rate 9 --protocol redis", /* no claims */
        "x --scenario delivery --rate 9 --poll 0",         /* workers would spin */
        "x --wait 5 --protocol beanstalk",                 /* nobody to ask */
        "x --wait -1",
    };
    struct options o;

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        ck_assert_msg(!parse(&o, lines[i]), "%s", lines[i]);
}

START_TEST(a_token_comes_from_the_first_line_of_a_file)
{
    char path[] = "/tmp/options_test.XXXXXX", line[64];
    int fd = mkstemp(path);
    struct options o;

    ck_assert_int_ge(fd, 0);
    (void)snprintf(line, sizeof(line), "x --token-file %s", path);
    ck_assert(!parse(&o, line)); /* it is empty */
    ck_assert_int_eq(write(fd, "claimd_1\nmore\n", 14), 14);
    ck_assert(parse(&o, line));
    ck_assert_str_eq(o.token, "claimd_1");
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert(!parse(&o, line)); /* it is not there */
    ck_assert(parse(&o, "x --batch 1"));
    ck_assert_str_eq(o.token, "");
}
