/*
 * Texts of the addresses that a server listens on and that log lines name: reading,
 * writing and errors. Declared in src/http/listener.h.
 */
#include "http/listener.h"

#include "support/check_main.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static enum status
parse(const char *text, struct listen_address *out)
{
    struct reason why = {""};
    enum status st = address_parse(text, out, &why);

    ck_assert_int_eq(st == ST_OK, why.text[0] == '\0');
    return st;
}

START_TEST(addresses_read_back_as_they_were_written)
{
    static const char *const texts[] = {"127.0.0.1:8888", "0.0.0.0:0", "[::1]:65535",
                                        "[::]:8888", "unix:/run/claimd.sock"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct listen_address address;
        char text[ADDRESS_TEXT_CAP];

        ck_assert_int_eq(parse(texts[i], &address), ST_OK);
        address_text(&address.sock.any, address.len, text);
        ck_assert_str_eq(text, texts[i]);
    }
}

START_TEST(an_invalid_address_is_refused_with_a_reason)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "must be ADDRESS:PORT, [IPv6]:PORT or unix:PATH"},
        {"nonsense", "must be ADDRESS:PORT, [IPv6]:PORT or unix:PATH, not \"nonsense\""},
        {"8888", "must be ADDRESS:PORT"},
        {"127.0.0.1", "must be ADDRESS:PORT"},
        {"unix", "must be ADDRESS:PORT"},
        {":8888",
         "must have an address before the port: 127.0.0.1:8888, or 0.0.0.0:8888"},
        {"127.0.0.1:", "must have a port from 0 to 65535 after the last colon, not \"\""},
        {"127.0.0.1:http", "must have a port from 0 to 65535"},
        {"127.0.0.1:80x",
         "must have a port from 0 to 65535 after the last colon, not \"80x\""},
        {"127.0.0.1:-1", "must have a port"},
        {"127.0.0.1:+80", "must have a port"},
        {"127.0.0.1: 80", "must have a port"},
        {"127.0.0.1:65536", "must have a port"},
        {"127.0.0.1:74424", "must have a port"},
        {"127.0.0.1:99999999999999999999", "must have a port"},
        {"127.0.0.1:70000x", "must have a port"},
        {"::1:8888", "must have brackets around an IPv6 address"},
        {"[::1]", "must have brackets around an IPv6 address and a port after them"},
        {"[::1", "must have brackets"},
        {"[]:1", "not \"[]\""},
        {"[::g]:1", "must have an IPv6 address in its brackets, not \"::g\""},
        {"[localhost]:1", "must have an IPv6 address in its brackets"},
        {"[fe80::1%]:1", "must have an IPv6 address in its brackets"},
        {"256.0.0.1:1",
         "must have an IPv4 address or the name of a host, not \"256.0.0.1\""},
        {"1.2.3.4.5:1", "must have an IPv4 address"},
        {"*:8888", "must have an address or the name of a host, not \"*\""},
        {"local host:1", "must have an address or the name of a host"},
        {"http://localhost:1", "must have brackets"},
        {"unix:", "must have a path of 1 to 107 bytes after unix:, not 0"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct listen_address address;
        struct reason why;

        ck_assert_msg(parse(rows[i].text, &address) == ST_BAD_VALUE, "%s", rows[i].text);
        ck_assert_int_eq(address_check(rows[i].text, &why), ST_BAD_VALUE);
        ck_assert_msg(strstr(why.text, rows[i].why) != NULL, "%s: %s", rows[i].text,
                      why.text);
    }
}

START_TEST(names_are_looked_up_when_it_counts_and_not_before)
{
    struct listen_address address;
    struct reason why = {""};
    char text[128] = "";

    /* No part of a name has 64 characters: that needs no resolver. */
    memset(text, 'x', 64);
    (void)strcat(text, ".invalid:80");
    ck_assert_int_eq(address_check(text, &why), ST_OK);
    ck_assert_int_eq(address_check("localhost:0", &why), ST_OK);
    ck_assert_int_eq(address_check("a_b.example.:65535", &why), ST_OK);
    ck_assert_int_eq(address_check("[fe80::1%eth0]:80", &why), ST_OK);
    ck_assert_str_eq(why.text, "");
    ck_assert_int_eq(address_parse(text, &address, &why), ST_IO);
    ck_assert_ptr_nonnull(strstr(why.text, "xxx.invalid, which cannot be looked up"));
}

START_TEST(a_socket_path_has_space_for_its_nul)
{
    struct listen_address address;
    char text[256] = "unix:/";

    memset(text + 6, 'x', 106); /* 107 characters and a NUL */
    ck_assert_int_eq(parse(text, &address), ST_OK);
    memset(text + 6, 'x', 107);
    ck_assert_int_eq(parse(text, &address), ST_BAD_VALUE);
}

START_TEST(a_client_without_a_name_is_called_unix)
{
    const struct sockaddr nameless = {.sa_family = AF_UNIX};
    char text[ADDRESS_TEXT_CAP];

    address_text(&nameless, sizeof(nameless.sa_family), text);
    ck_assert_str_eq(text, "unix");
}
