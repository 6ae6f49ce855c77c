/*
 * The form of a log line as text, JSON and for journald, and that no value can break out
 * of its line. log_writer_test.c tests the thread that writes. Read claimd/base/log.h
 * next.
 */
#include "claimd/base/log.h"

#include "support/check_main.h"

#include <jansson.h>

#include <fcntl.h>
#include <unistd.h>

/* A log into a pipe; line() takes out what was written. */
struct fixture {
    struct clock clock;
    struct log log;
    int reader;
    char text[8192];
};

static void
fixture_open(struct fixture *f, enum log_format format)
{
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    clock_init_manual(&f->clock, 1700000000000);
    f->log = (struct log){
        .fd = ends[1], .level = LOG_INFO, .format = format, .clock = &f->clock};
    f->reader = ends[0];
}

static void
fixture_close(struct fixture *f)
{
    (void)close(f->log.fd); /* a pipe of our own */
    (void)close(f->reader);
}

#define LOG_TEST_WITH(id, open) FIXTURE_TEST(id, struct fixture, open, fixture_close(f))
#define LOG_TEST(id)            LOG_TEST_WITH(id, fixture_open(f, LOG_TEXT))

/* The text written since the last call, as a string; "" if none. */
static const char *
line(struct fixture *f)
{
    ssize_t n = read(f->reader, f->text, sizeof(f->text) - 1);

    f->text[n > 0 ? n : 0] = '\0';
    return f->text;
}

LOG_TEST(a_text_line_has_time_level_event_and_fields)
{
    log_event(&f->log, LOG_INFO, "listening", LOG_S("address", "127.0.0.1:8888"),
              LOG_I("workers", 2), LOG_I("least", INT64_MIN));
    ck_assert_str_eq(line(f), "2023-11-14T22:13:20Z info listening "
                              "address=127.0.0.1:8888 workers=2 "
                              "least=-9223372036854775808\n");
    log_write(&f->log, LOG_ERROR, "stopped", NULL, 0);
    ck_assert_str_eq(line(f), "2023-11-14T22:13:20Z error stopped\n");
}

LOG_TEST_WITH(a_json_line_is_an_object, fixture_open(f, LOG_JSON))
{
    log_event(&f->log, LOG_WARN, "slow", LOG_S("path", "/v2/\"q\"\\"), LOG_I("ms", 12));
    ck_assert_str_eq(line(f), "{\"time\": \"2023-11-14T22:13:20Z\", \"level\": \"warn\", "
                              "\"event\": \"slow\", \"path\": \"/v2/\\\"q\\\"\\\\\", "
                              "\"ms\": 12}\n");
}

LOG_TEST(a_line_for_journald_begins_with_its_priority)
{
    f->log.priorities = true;
    log_event(&f->log, LOG_WARN, "odd", LOG_I("port", 1));
    ck_assert_str_eq(line(f), "<4>2023-11-14T22:13:20Z warn odd port=1\n");
    log_event(&f->log, LOG_ERROR, "bad", LOG_I("port", 1));
    ck_assert_str_eq(line(f), "<3>2023-11-14T22:13:20Z error bad port=1\n");
    f->log.format = LOG_JSON;
    log_event(&f->log, LOG_INFO, "good", LOG_I("port", 1));
    ck_assert_ptr_eq(strstr(line(f), "<6>{\"time\":"), f->text);
}

LOG_TEST(texts_that_could_be_misread_are_quoted_and_escaped)
{
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"a b", "k=\"a b\"\n"},
        {"", "k=\"\"\n"},
        {"a=b", "k=\"a=b\"\n"},
        {"a\nlevel=error", "k=\"a\\u000alevel=error\"\n"}, /* no line of its own */
        {"\x1b[31m", "k=\"\\u001b[31m\"\n"},
        {"\xc3\xa4", "k=\"\xc3\xa4\"\n"},
        {"\xf0\x9f\x98\x80 \xe6\x97\xa5", "k=\"\xf0\x9f\x98\x80 \xe6\x97\xa5\"\n"},
        {"\xfc", "k=\"\\xfc\"\n"},                            /* Latin-1 */
        {"\xed\xa0\x80", "k=\"\\xed\\xa0\\x80\"\n"},          /* a surrogate */
        {"\xc0\x80\xe6\x97", "k=\"\\xc0\\x80\\xe6\\x97\"\n"}, /* overlong; cut */
        {"\\xfc", "k=\"\\\\xfc\"\n"}, /* the text looks like an escape */
        {"\xc2\x9b"
         "31m",
         "k=\"\\u009b31m\"\n"},                  /* CSI of C1 */
        {"a\xe2\x80\xa8z", "k=\"a\\u2028z\"\n"}, /* a line for JavaScript */
        {"\xe2\x80\xae", "k=\"\\u202e\"\n"},     /* shows the rest backwards */
        {"plain-1.0/x", "k=plain-1.0/x\n"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        log_event(&f->log, LOG_INFO, "e", LOG_S("k", rows[i].text));
        ck_assert_str_eq(line(f) + strlen("2023-11-14T22:13:20Z info e "), rows[i].shown);
    }
}

LOG_TEST(lines_above_the_level_are_dropped)
{
    log_event(&f->log, LOG_DEBUG, "detail", LOG_I("n", 1));
    ck_assert_str_eq(line(f), "");
    ck_assert(log_wants(&f->log, LOG_INFO));
    ck_assert(!log_wants(&f->log, LOG_DEBUG));
    ck_assert(!log_wants(NULL, LOG_ERROR));
    log_event(NULL, LOG_ERROR, "nowhere", LOG_I("n", 1)); /* no log, no harm */
}

/* Decodes a line of JSON, and returns the text of its member k. */
static const char *
decoded(struct fixture *f, struct bytes text)
{
    static char copy[8192];
    json_error_t error;
    json_t *tree;

    log_event(&f->log, LOG_INFO, "e", LOG_B("k", text));
    tree = json_loads(line(f), JSON_ALLOW_NUL, &error);
    ck_assert_msg(tree != NULL, "%s: %s", error.text, f->text);
    (void)snprintf(copy, sizeof(copy), "%s",
                   json_string_value(json_object_get(tree, "k")));
    json_decref(tree);
    return copy;
}

LOG_TEST_WITH(texts_in_json_decode_to_what_they_were, fixture_open(f, LOG_JSON))
{
    static const char *const same[] = {"B\xc3\xbcro-\xe6\x97\xa5\xe6\x9c\xac",
                                       "\xf0\x9f\x98\x80",
                                       "a\x1b\x7f\xc2\x9bz",
                                       "\xe2\x80\xa8\xe2\x80\xa9",
                                       "\\x41 \\u0041 \"",
                                       "\xef\xbf\xbf"};

    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
        ck_assert_str_eq(decoded(f, bytes_str(same[i])), same[i]);
    ck_assert_str_eq(decoded(f, bytes_str("B\xfcro")),
                     "B\\xfcro"); /* says that it is a byte */
    ck_assert_str_eq(decoded(f, bytes_str("\xed\xa0\x80")), "\\xed\\xa0\\x80");
    log_event(&f->log, LOG_INFO, "e", LOG_B("k", bytes_of("a\0z", 3)));
    ck_assert_ptr_nonnull(strstr(line(f), "\"k\": \"a\\u0000z\"}"));
}

LOG_TEST_WITH(a_text_is_cut_between_two_characters, fixture_open(f, LOG_JSON))
{
    char text[520];

    for (size_t before = 508; before <= 512; before++) {
        const size_t shown = before + 4 <= 512 ? before + 4 : before;

        memset(text, 'x', before);
        memcpy(text + before,
               "\xf0\x9f\x98\x80"
               "aaaa",
               8);
        ck_assert_uint_eq(strlen(decoded(f, bytes_of(text, before + 8))), shown);
    }
}

START_TEST(long_texts_are_cut)
{
    struct fixture f;
    char text[2000];

    memset(text, 'x', sizeof(text));
    fixture_open(&f, LOG_JSON);
    log_event(&f.log, LOG_INFO, "e", LOG_B("k", bytes_of(text, sizeof(text))),
              LOG_I("n", 1));
    ck_assert_uint_lt(strlen(line(&f)), 700);
    ck_assert_ptr_nonnull(strstr(f.text, "xxx\", \"n\": 1}\n"));
    fixture_close(&f);
}

START_TEST(a_line_that_grows_too_long_loses_fields_not_its_form)
{
    struct fixture f;
    char text[512];

    memset(text, 1, sizeof(text)); /* each byte needs six when it is escaped */
    fixture_open(&f, LOG_JSON);
    log_event(&f.log, LOG_INFO, "e", LOG_B("a", bytes_of(text, sizeof(text))),
              LOG_B("b", bytes_of(text, sizeof(text))), LOG_I("n", 1));
    ck_assert_uint_le(strlen(line(&f)), 4096);
    ck_assert_ptr_nonnull(strstr(f.text, "\"a\": "));
    ck_assert_ptr_null(strstr(f.text, "\"b\": "));
    ck_assert_ptr_nonnull(strstr(f.text, "\\u0001\", \"n\": 1}\n"));
    fixture_close(&f);
}

LOG_TEST(a_line_that_cannot_be_written_is_lost_without_harm)
{
    f->log.fd = -1;
    log_event(&f->log, LOG_INFO, "e", LOG_I("n", 1));
    ck_assert_str_eq(line(f), "");
}
