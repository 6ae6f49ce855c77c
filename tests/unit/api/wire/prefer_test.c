/*
 * The header Prefer (RFC 7240): the seconds that a request for long polling waits
 * (docs/api.md 11.1). The samples contain each form that the grammar of the header
 * allows. Read src/api/prefer.h next.
 */
#include "api/prefer.h"

#include "support/check_main.h"

static const struct {
    const char *header;
    int64_t seconds;
} samples[] = {
    {"wait=20", 20},
    {"wait=0", 0},
    {"wait=1", 1},
    {"wait=007", 7},
    {"wait=1000000000", 1000000000},
    {"wait=9223372036854775807", INT64_MAX},
    {"wait=9223372036854775808", INT64_MAX},
    {"wait=99999999999999999999999999", INT64_MAX},
    /* not a whole number of seconds */
    {"", 0},
    {"wait", 0},
    {"wait=", 0},
    {"wait= ", 0},
    {"wait=-1", 0},
    {"wait=+1", 0},
    {"wait=1e9", 0},
    {"wait=1.5", 0},
    {"wait=x", 0},
    {"wait=2x", 0},
    {"wait=2 3", 0},
    {"wait==2", 0},
    {"wait=0x10", 0},
    {"wait=99999999999999999999999999x", 0},
    {"wait=\xd9\xa2", 0},
    /* spaces and case */
    {"  wait  =  20  ", 20},
    {"\twait\t=\t20\t", 20},
    {"WAIT=20", 20},
    {"Wait=20", 20},
    {"wa it=20", 0},
    /* several, of which the first counts, whatever it says */
    {"wait=2, wait=3", 2},
    {"wait=x, wait=3", 0},
    {"wait, wait=3", 0},
    {"respond-async, wait=3", 3},
    {"respond-async,wait=3,handling=lenient", 3},
    {",,wait=3", 3},
    {" , wait=3,", 3},
    {"waits=2, wait=3", 3},
    {"wai=2, wait=3", 3},
    {"xwait=2", 0},
    {"return=minimal", 0},
    /* parameters */
    {"wait=3;foo", 3},
    {"wait=3; foo=4", 3},
    {"wait=3 ; foo=\"a,b\", wait=5", 3},
    {"foo; wait=3", 0},
    {"foo; wait=3, wait=4", 4},
    {";wait=3", 0},
    {"wait;x=3", 0},
    /* quoted strings */
    {"foo=\"a, wait=3\", wait=4", 4},
    {"foo=\"a\\\", wait=3\", wait=4", 4},
    {"foo=\"a\\\\\", wait=4", 4},
    {"foo=\"wait=3", 0},
    {"foo=\"\\", 0},
    {"foo=\"x=y;z\"; p=\"=\", wait=6", 6},
    {"\"wait\"=3", 0},
    {"wait=\"3\"", 0},
};

LOOP_TEST(of_a_header_it_reads_how_long_to_wait, sizeof(samples) / sizeof(samples[0]))
{
    int64_t seconds = prefer_wait(bytes_str(samples[_i].header));

    ck_assert_msg(seconds == samples[_i].seconds, "%s: %lld", samples[_i].header,
                  (long long)seconds);
}

START_TEST(without_the_header_a_request_does_not_wait)
{
    ck_assert_int_eq(prefer_wait(BYTES_NONE), 0);
}

START_TEST(it_reads_no_further_than_the_header)
{
    ck_assert_int_eq(prefer_wait(bytes_of("wait=29", 6)), 2);
    ck_assert_int_eq(prefer_wait(bytes_of("wait=2", 4)), 0);
    ck_assert_int_eq(prefer_wait(bytes_of("a=\"\\\", wait=2", 4)), 0);
}

START_TEST(a_nul_is_a_character_like_any_other)
{
    ck_assert_int_eq(prefer_wait(bytes_of("wait=2\0", 7)), 0);
    ck_assert_int_eq(prefer_wait(bytes_of("\0, wait=2", 9)), 2);
}
