/*
 * The first bytes of a connection, which determine how much memory its heads need. (A
 * private header: no client can see which memory it got.)
 */
#include "http/mhd/internal.h"

#include "support/check_main.h"

#include <stdio.h>
#include <string.h>

#define LINE "GET /v2/queues HTTP/1.1\r\nHost: test\r\n"

static bool
is_large(const char *first)
{
    return arrival_wants_large(bytes_str(first));
}

START_TEST(requests_of_programs_need_little)
{
    ck_assert(!is_large(LINE "User-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n"));
    ck_assert(
        !is_large(LINE "Client-ID: x\r\nX-Project-ID: p\r\nX-Auth-Token: t\r\n\r\n"));
    ck_assert(!is_large("GET / HTTP/1.0\r\n\r\n"));
    ck_assert(!is_large("\r\n\r\n"));
    ck_assert(!is_large("\x16\x03\x01"));
}

START_TEST(a_part_of_a_short_head_needs_little)
{
    ck_assert(!is_large("G"));
    ck_assert(!is_large(LINE "Client-ID: "));
}

START_TEST(browsers_and_proxies_need_more)
{
    static const char *const lines[] = {
        "Cookie: a=b",
        "cookie:a=b",
        "Sec-Fetch-Site: none",
        "sec-ch-ua: \"Chromium\"",
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64)",
        "X-Forwarded-For: 192.0.2.1",
        "x-forwarded-proto: https",
        "Via: 1.1 proxy",
        "Forwarded: for=192.0.2.1",
        "X-Real-IP: 192.0.2.1",
    };
    char text[256];

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        (void)snprintf(text, sizeof(text), LINE "%s\r\n\r\n", lines[i]);
        ck_assert_msg(is_large(text), "%s", lines[i]);
        (void)snprintf(text, sizeof(text), LINE "%s", lines[i]);
        ck_assert_msg(is_large(text), "a part: %s", lines[i]);
    }
}

START_TEST(well_formed_heads_are_admitted)
{
    static const char *const heads[] = {
        LINE "\r\n",
        LINE "X-Empty:\r\nX-Colons: a:b : c\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.9\r\n\r\n",
        "\r\n" LINE "\r\n",
        LINE "\r\nGET\nno head\r\n", /* behind the head */
        "G",
        "GET / HT",
        LINE "X-Par",
        LINE "X-Part: a\r",
    };

    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        ck_assert_msg(arrival_check(bytes_str(heads[i])) == REFUSAL_NONE, "%s", heads[i]);
}

START_TEST(malformed_heads_are_refused)
{
    static const struct {
        struct bytes head;
        enum refusal why;
    } cases[] = {
        {BYTES_LIT("GET /\r\n\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT("GET / \r\n\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT("GET  / HTTP/1.1\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT(" GET / HTTP/1.1\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT("GET /a b HTTP/1.1\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT("GET /\ta HTTP/1.1\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT("GET /\0a HTTP/1.1\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT("GET / HTTP/1.1 \r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT("GET / HTTP/1.1\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT("GET / HTTP/1.10\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT("GET / http/1.1\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT("GET / HTTP/2.0\r\n"), REFUSAL_VERSION},
        {BYTES_LIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), REFUSAL_VERSION},
        {BYTES_LIT("GET / HTTP/0.9\r\n"), REFUSAL_VERSION},
        {BYTES_LIT("\n" LINE "\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT("\r\n\r\n" LINE "\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT(LINE "no colon\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT(LINE ": no name\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT(LINE " folded: a\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT(LINE "X-Extra : a\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT(LINE "X Extra: a\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT(LINE "X-Extra: a\0\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT(LINE "X-Extra: a\rb\r\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT(LINE "X-Extra: a\n"), REFUSAL_BAD_HEAD},
        {BYTES_LIT(LINE "X-Extra: a\r\n\n"), REFUSAL_BAD_HEAD},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg(arrival_check(cases[i].head) == cases[i].why, "case %d", (int)i);
}

START_TEST(a_body_is_no_head)
{
    ck_assert(!is_large("POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n\nCookie: a=b"));
}

START_TEST(a_large_head_needs_more)
{
    char text[4096];
    size_t len = strlen(LINE);

    memcpy(text, LINE, len);
    memset(text + len, 'x', sizeof(text) - len);
    ck_assert(!arrival_wants_large(bytes_of(text, 1023)));
    ck_assert(arrival_wants_large(bytes_of(text, 1024)));
    memcpy(text + 2044, "\r\n\r\n", 4);
    ck_assert(!arrival_wants_large(bytes_of(text, sizeof(text))));
    memcpy(text + 2040, "xxxxxxxxxx\r\n\r\n", 14);
    ck_assert(arrival_wants_large(bytes_of(text, sizeof(text))));
}

START_TEST(many_lines_need_more)
{
    char text[1024] = LINE;

    for (int i = 2; i < 18; i++)
        strcat(text, "X: y\r\n");
    strcat(text, "\r\n");
    ck_assert(!is_large(text));
    memcpy(text + strlen(text) - 2, "X: y\r\n\r\n", 9);
    ck_assert(is_large(text));
}

/* A ClientHello with these numbers, of two bytes each, as cipher suites and
 * extensions. */
static struct bytes
make_hello(char *out, uint16_t cipher, uint16_t extension, size_t filled)
{
    char *at = out;

    memcpy(at, "\x16\x03\x01\0\0\x01\0\0\0\x03\x03", 11);
    memset(at + 11, 'r', 32);
    at += 11 + 32;
    memcpy(at, "\x02ss\0\x04\x13\x01", 7);
    at += 7;
    *at++ = (char)(cipher >> 8);
    *at++ = (char)cipher;
    memcpy(at, "\x01\0", 2);
    at += 2;
    *at++ = (char)((filled + 8) >> 8);
    *at++ = (char)(filled + 8);
    memcpy(at, "\0\x33", 2); /* a key share of this size */
    at[2] = (char)(filled >> 8);
    at[3] = (char)filled;
    memset(at + 4, 'k', filled);
    at += 4 + filled;
    *at++ = (char)(extension >> 8);
    *at++ = (char)extension;
    *at++ = 0;
    *at++ = 0;
    out[3] = (char)((at - out - 5) >> 8);
    out[4] = (char)(at - out - 5);
    return bytes_of(out, (size_t)(at - out));
}

START_TEST(a_client_hello_tells_browsers_from_programs)
{
    char hello[2048];

    ck_assert(!arrival_is_browser(make_hello(hello, 0x1302, 16, 32)));
    ck_assert(arrival_is_browser(make_hello(hello, 0x0a0a, 16, 32))); /* GREASE */
    ck_assert(arrival_is_browser(make_hello(hello, 0xfafa, 16, 32)));
    ck_assert(!arrival_is_browser(make_hello(hello, 0x0a1a, 16, 32)));
    ck_assert(arrival_is_browser(make_hello(hello, 0x1302, 0x2a2a, 32)));
    ck_assert(arrival_is_browser(make_hello(hello, 0x1302, 34, 32)));
    ck_assert(arrival_is_browser(make_hello(hello, 0x1302, 0xfe0d, 32)));
}

START_TEST(the_start_of_a_large_client_hello_may_be_of_a_browser)
{
    char hello[2048];
    struct bytes whole = make_hello(hello, 0x1302, 34, 1300);

    ck_assert(arrival_is_browser(whole));
    ck_assert(arrival_is_browser(bytes_of(hello, 1200)));
    ck_assert(!arrival_is_browser(bytes_of(hello, 300)));
}

START_TEST(a_malformed_client_hello_is_read_to_its_end)
{
    char hello[512], part[512];
    struct bytes whole = make_hello(hello, 0x1302, 16, 32);

    for (size_t len = 0; len <= whole.len; len++)
        for (int byte = 0; byte < 256; byte += 51) {
            memset(part, byte, sizeof(part));
            memcpy(part, hello, len);
            (void)arrival_is_browser(bytes_of(part, whole.len));
            (void)arrival_is_browser(bytes_of(part, len));
        }
}
