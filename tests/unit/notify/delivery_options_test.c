/*
 * The options of a subscription (docs/api.md 20.2): no header that a subscriber chooses
 * can add a line or replace one of claimd's. Read src/notify/delivery_options.h next.
 */
#include "notify/delivery_options.h"

#include "support/arena_fixture.h"

ARENA_CASE("options");

static bool
collect(void *ctx, const char *line)
{
    struct buf *all = ctx;

    buf_str(all, line);
    buf_byte(all, '\n');
    return !all->failed;
}

/* The lines that come of these headers. */
static void
expect_headers(const char *object, const char *lines)
{
    struct buf line;

    buf_init(&line, f.mem);
    ck_assert(option_headers(bytes_str(object), &line, collect, &f.out));
    buf_fini(&line);
    expect_written(lines);
}

START_TEST(members_are_found)
{
    struct delivery_options w;

    delivery_options_read(
        bytes_str("{\"post_data\":\"a\\\"b\",\"x\":{\"from\":1},\"from\":\"me\","
                  "\"subject\":\"s\",\"post_headers\":{\"A\":\"b\"}}"),
        &w);
    ck_assert(bytes_equal_str(w.post_headers, "{\"A\":\"b\"}"));
    ck_assert(bytes_equal_str(w.from, "me"));
    ck_assert(bytes_equal_str(w.subject, "s"));
    option_text_write(&f.out, w.post_data);
    expect_written("a\"b");
}

START_TEST(options_of_a_wrong_type_count_as_left_out)
{
    static const char *const bad[] = {
        "{\"post_data\":1,\"from\":null,\"subject\":[\"x\"],\"post_headers\":\"A: b\"}",
        "{\"post_data\":\"x\",\"post_headers\":{}",
        "[\"post_data\"]",
        "",
        "null",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct delivery_options w;

        delivery_options_read(bytes_str(bad[i]), &w);
        ck_assert(!bytes_present(w.post_data) && !bytes_present(w.post_headers) &&
                  !bytes_present(w.from) && !bytes_present(w.subject));
    }
}

START_TEST(headers_are_lines)
{
    expect_headers("{\"X-Extra\":\"yes\",\"content-type\":\"text/plain\",\"E\":\"\","
                   "\"U\":\"\\u00e4\\u0009x\"}",
                   "X-Extra: yes\ncontent-type: text/plain\nE;\nU: \xc3\xa4\tx\n");
    expect_headers("{}", "");
}

START_TEST(nothing_gets_out_of_a_line)
{
    expect_headers(
        "{\"A\":\"x\\r\\nHost: b\",\"B\":\"x\\ny\",\"C\":\"x\\ry\",\"D\":\"x\\u0000y\","
        "\"E\\r\\nF\":\"x\",\"G:\":\"x\",\"H I\":\"x\",\"\":\"x\",\"J\\u0000\":\"x\","
        "\"K\\u000a\":\"x\",\"L\":\"\\u007f\",\"\\u00e4\":\"x\",\"M;\":\"\"}",
        "");
}

START_TEST(reserved_headers_cannot_be_set)
{
    expect_headers(
        "{\"Host\":\"x\",\"hOST\":\"x\",\"Content-Length\":\"0\",\"Connection\":\"x\","
        "\"Transfer-Encoding\":\"chunked\",\"Content-Encoding\":\"gzip\",\"TE\":\"x\","
        "\"User-Agent\":\"x\",\"Expect\":\"x\",\"Upgrade\":\"x\",\"webhook-id\":\"x\","
        "\"Webhook-Signature\":\"x\",\"WEBHOOK-TIMESTAMP\":\"x\",\"Trailer\":\"x\","
        "\"Keep-Alive\":\"x\",\"Proxy-Authorization\":\"x\",\"URL-Signature\":\"x\","
        "\"H\\u006fst\":\"x\",\"webhook-\":\"x\"}",
        "");
    expect_headers("{\"Hosts\":\"x\",\"X-Webhook-Id\":\"x\",\"Authorization\":\"x\"}",
                   "Hosts: x\nX-Webhook-Id: x\nAuthorization: x\n");
}

START_TEST(values_that_are_no_text_are_left_out)
{
    expect_headers("{\"A\":1,\"B\":null,\"C\":[\"x\"],\"D\":{\"E\":\"f\"},\"F\":\"g\"}",
                   "F: g\n");
}

START_TEST(there_are_no_more_than_64_and_none_is_longer_than_8192)
{
    struct buf object, line;
    size_t count = 0;

    buf_init(&object, f.mem);
    buf_init(&line, f.mem);
    buf_str(&object, "{\"Long\":\"");
    for (int i = 0; i < HEADER_LINE_MOST; i++)
        buf_byte(&object, 'x');
    buf_byte(&object, '"');
    for (int i = 0; i < HEADERS_MOST + 5; i++)
        buf_printf(&object, ",\"H%d\":\"x\"", i);
    buf_byte(&object, '}');
    ck_assert(option_headers(buf_view(&object), &line, collect, &f.out));
    for (size_t i = 0; i < f.out.len; i++)
        count += f.out.data[i] == '\n';
    ck_assert_uint_eq(count, HEADERS_MOST);
    ck_assert(!bytes_contain(buf_view(&f.out), bytes_str("Long")));
    buf_fini(&object);
    buf_fini(&line);
}

START_TEST(without_memory_there_is_an_error)
{
    struct buf line;

    buf_init(&line, f.mem);
    mem_fail_nth(f.mem, 1);
    ck_assert(!option_headers(bytes_str("{\"A\":\"b\"}"), &line, collect, &f.out));
    buf_fini(&line);
}
