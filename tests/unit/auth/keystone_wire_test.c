/*
 * The HTTP request that claimd sends to Keystone, against a socket that records it: its
 * address, both tokens, and no request without a service token. The sender is
 * src/auth/keystone_wire.c.
 */
#include "claimd/auth/keystone.h"
#include "support/arena_fixture.h"
#include "support/hook_sink.h"

#include <stdio.h>

START_TEST(an_address_is_a_host_and_a_path_that_ends_with_v3)
{
    static const char *const good[] = {
        "http://127.0.0.1:5000/v3",
        "https://keystone.example.org/v3",
        "http://[::1]:5000/v3",
        "https://cloud/identity/v3",
        "http://k/v3",
    };
    static const char *const bad[] = {
        "",
        "http://",
        "http:///v3",
        "http://k",
        "http://k/",
        "http://k/v3/",
        "http://k/v2.0",
        "http://user:pw@k/v3",
        "k/v3",
        "ftp://k/v3",
        "file:///etc/v3",
        "http://k/v3?x=/v3",
        "http://k#/v3",
        "http://k k/v3",
        "http://k\n/v3",
        "http:/k/v3",
        "http://\xc3\xa4/v3",
        "HTTP://k/v3",
        "http://k\\/v3",
        "/v3",
    };

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ck_assert_msg(keystone_url_check(bytes_str(good[i])), "%s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!keystone_url_check(bytes_str(bad[i])), "%s", bad[i]);
}

ARENA_CASE("wire");

static enum status
give_token(void *ctx, char out[KEYSTONE_TOKEN_MAX + 1], struct reason *why)
{
    if (ctx != NULL)
        return reason_give(why, ST_UNAVAILABLE, "there is no token");
    memcpy(out, "service", sizeof("service"));
    return ST_OK;
}

/* Verifies a token at an address where nothing listens. */
static enum status
verify_without_server(struct keystone_wire *wire, struct reason *why)
{
    enum status st;
    int code;

    buf_reset(&f.out, SIZE_MAX);
    reason_init(why);
    st = wire->ask(wire, bytes_str("token"), 60000, &code, &f.out, why);
    ck_assert_int_ne(st, ST_OK);
    ck_assert_uint_eq(f.out.len, 0);
    return st;
}

START_TEST(a_closed_port_gives_no_response)
{
    const struct keystone_wire_config config = {
        .mem = f.mem, .url = "http://127.0.0.1:1/v3", .service_token = give_token};
    struct keystone_wire *wire;
    struct reason why;

    ck_assert_int_eq(keystone_wire_open(&config, &wire, &why), ST_OK);
    for (uint64_t nth = 1; nth < 3; nth++) {
        mem_fail_nth(f.mem, nth);
        ck_assert_int_eq(verify_without_server(wire, &why),
                         nth == 1 ? ST_NO_MEMORY : ST_UNAVAILABLE);
        mem_fail_nth(f.mem, 0);
    }
    ck_assert_str_ne(why.text, "");
    keystone_wire_close(wire);
    mem_fail_nth(f.mem, 1);
    ck_assert_int_eq(keystone_wire_open(&config, &wire, &why), ST_NO_MEMORY);
    mem_fail_nth(f.mem, 0);
}

START_TEST(without_a_service_token_no_request_is_sent)
{
    const struct keystone_wire_config config = {.mem = f.mem,
                                                .url = "http://127.0.0.1:1/v3",
                                                .service_token = give_token,
                                                .ctx = f.mem};
    struct keystone_wire *wire;
    struct reason why;

    ck_assert_int_eq(keystone_wire_open(&config, &wire, &why), ST_OK);
    ck_assert_int_eq(verify_without_server(wire, &why), ST_UNAVAILABLE);
    ck_assert_str_eq(why.text, "there is no token");
    keystone_wire_close(wire);
}

START_TEST(keystone_receives_both_tokens)
{
    struct hook_sink *sink = hook_sink_open();
    char url[64];
    const struct keystone_wire_config config = {
        .mem = f.mem, .url = url, .service_token = give_token};
    struct keystone_wire *wire;
    struct reason why;
    const char *request;
    int code = 0;

    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/v3", hook_sink_port(sink));
    ck_assert_int_eq(keystone_wire_open(&config, &wire, &why), ST_OK);
    ck_assert_int_eq(wire->ask(wire, bytes_str("theirs"), 60000, &code, &f.out, &why),
                     ST_OK);
    ck_assert_int_eq(code, 200);
    expect_written("ok");
    request = hook_sink_request(sink, "/v3/auth/tokens", 0);
    ck_assert_ptr_nonnull(strstr(request, "/v3/auth/tokens?nocatalog HTTP/1.1\r\n"));
    ck_assert_ptr_nonnull(strstr(request, "\r\nAccept: application/json\r\n"));
    ck_assert_ptr_nonnull(strstr(request, "\r\nX-Auth-Token: service\r\n"));
    ck_assert_ptr_nonnull(strstr(request, "\r\nX-Subject-Token: theirs\r\n"));
    keystone_wire_close(wire);
    hook_sink_close(sink);
}
