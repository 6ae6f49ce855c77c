/*
 * The load generator finds the last byte of a response, however the network cuts it, and
 * detects a broken one. Declared in tests/bench/load/protocol.h.
 */
#include "load/protocol.h"

#include "support/check_main.h"

static const char claimed[] = "HTTP/1.1 201 Created\r\n"
                              "Date: Sat, 21 Nov 2026 08:00:00 GMT\r\n"
                              "CONTENT-LENGTH:  15 \r\n"
                              "location: /v2/queues/q-0/claims/abc\r\n"
                              "\r\n"
                              "{\"messages\":[]}";

static enum reading
read_text(const char *text, bool ended, struct http_response *out)
{
    return http_response_read(bytes_str(text), ended, out);
}

START_TEST(a_response_is_complete_at_its_last_byte_and_not_before)
{
    struct http_response a;

    for (size_t len = 0; len < sizeof claimed - 1; len++)
        ck_assert_int_eq(http_response_read(bytes_of(claimed, len), false, &a),
                         READING_MORE);
    ck_assert_int_eq(read_text(claimed, false, &a), READING_DONE);
    ck_assert_int_eq(a.status, 201);
    ck_assert_uint_eq(a.length, sizeof claimed - 1);
    ck_assert(bytes_equal_str(a.body, "{\"messages\":[]}"));
    ck_assert(bytes_equal_str(a.location, "/v2/queues/q-0/claims/abc"));
    ck_assert(!a.close);
}

START_TEST(bytes_behind_the_response_are_left_for_the_next)
{
    struct http_response a;

    ck_assert_int_eq(
        read_text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1", false, &a),
        READING_DONE);
    ck_assert(bytes_equal_str(a.body, "ok"));
    ck_assert_uint_eq(a.length, strlen("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
}

START_TEST(a_204_has_no_body_and_needs_no_length)
{
    struct http_response a;

    ck_assert_int_eq(read_text("HTTP/1.1 204 No Content\r\n\r\n", false, &a),
                     READING_DONE);
    ck_assert_uint_eq(a.body.len, 0);
    ck_assert(!bytes_present(a.location));
}

START_TEST(a_body_without_length_ends_with_the_connection)
{
    static const char text[] = "HTTP/1.0 200 OK\r\nServer: old\r\n\r\nall of it";
    struct http_response a;

    ck_assert_int_eq(read_text(text, false, &a), READING_MORE);
    ck_assert_int_eq(read_text(text, true, &a), READING_DONE);
    ck_assert(bytes_equal_str(a.body, "all of it"));
    ck_assert(a.close);
}

START_TEST(the_header_connection_announces_the_close)
{
    struct http_response a;

    ck_assert_int_eq(
        read_text("HTTP/1.1 400 Bad\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n",
                  false, &a),
        READING_DONE);
    ck_assert(a.close);
    ck_assert_int_eq(a.status, 400);
}

START_TEST(other_bytes_are_a_broken_response)
{
    static const char *const texts[] = {
        "\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 20x OK\r\n\r\n",
        "SSH-2.0-server\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    };
    struct http_response a;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_int_eq(read_text(texts[i], false, &a), READING_BROKEN);
}

START_TEST(an_incomplete_response_on_a_closed_connection_is_broken)
{
    struct http_response a;

    ck_assert_int_eq(http_response_read(bytes_of(claimed, 30), true, &a), READING_BROKEN);
    ck_assert_int_eq(http_response_read(bytes_of(claimed, sizeof claimed - 3), true, &a),
                     READING_BROKEN);
}
