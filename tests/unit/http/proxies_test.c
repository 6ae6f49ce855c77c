/*
 * Which address claimd takes for the client behind trusted proxies (docs/api.md 2.6).
 * Read claimd/http/proxies.h next.
 */
#include "claimd/http/proxies.h"

#include "support/check_main.h"

#include <arpa/inet.h>
#include <sys/un.h>

static struct proxies
list_of(const char *text)
{
    struct proxies p;
    struct reason why;

    reason_init(&why);
    ck_assert_msg(proxies_read(bytes_str(text), &p, &why) == ST_OK, "%s", why.text);
    return p;
}

static bool
has(const char *list, const char *peer)
{
    const struct proxies p = list_of(list);
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};

    if (inet_pton(AF_INET, peer, &four.sin_addr) == 1)
        return proxies_have(&p, (const struct sockaddr *)&four, sizeof(four));
    ck_assert_msg(inet_pton(AF_INET6, peer, &six.sin6_addr) == 1, "%s", peer);
    return proxies_have(&p, (const struct sockaddr *)&six, sizeof(six));
}

/* The client by this header, "?" if there is none. */
static const char *
client(const char *list, const char *header)
{
    static char text[INET6_ADDRSTRLEN];
    const struct proxies p = list_of(list);

    return proxies_client(&p, bytes_str(header), text) ? text : "?";
}

TEST_CASE("proxies");

START_TEST(a_peer_is_a_proxy_if_the_list_has_it)
{
    ck_assert(has("127.0.0.0/8,::1,unix", "127.255.0.3"));
    ck_assert(has("127.0.0.0/8,::1,unix", "::1"));
    ck_assert(has("127.0.0.0/8", "::ffff:127.0.0.1")); /* of a listener at [::] */
    ck_assert(has("10.0.0.7", "10.0.0.7"));
    ck_assert(has(" 10.0.0.7 , 2001:db8::/33 ", "2001:db8:7fff::1"));
    ck_assert(has("0.0.0.0/0", "8.8.8.8"));
    ck_assert(!has("0.0.0.0/0", "2001:db8::1"));
    ck_assert(!has("127.0.0.0/8,::1,unix", "128.0.0.1"));
    ck_assert(!has("127.0.0.0/8,::1,unix", "::2"));
    ck_assert(!has("10.0.0.7", "10.0.0.8"));
    ck_assert(!has("2001:db8::/33", "2001:db8:8000::1"));
    ck_assert(!has("none", "127.0.0.1"));
    ck_assert(!has("unix", "127.0.0.1"));
}

START_TEST(clients_of_unix_sockets_are_proxies_if_the_list_says_so)
{
    const struct sockaddr_un peer = {.sun_family = AF_UNIX};
    struct proxies p = list_of("unix");

    ck_assert(proxies_have(&p, (const struct sockaddr *)&peer, sizeof(sa_family_t)));
    p = list_of("127.0.0.1");
    ck_assert(!proxies_have(&p, (const struct sockaddr *)&peer, sizeof(sa_family_t)));
}

START_TEST(a_wrong_list_is_refused)
{
    static const char many[] = "::,::,::,::,::,::,::,::,::,::,::,::,::,::,::,::,::";
    static const char *const wrong[] = {"",
                                        ",",
                                        "127.0.0.1,",
                                        "nginx",
                                        "127.0.0.1:80",
                                        "[::1]",
                                        "10.0.0.0/33",
                                        "::/129",
                                        "10.0.0.0/",
                                        "10.0.0.0/-1",
                                        "10.0.0.0/8 ::1",
                                        "10.0.0",
                                        "none,unix",
                                        many};
    struct proxies p = {.count = 7};
    struct reason why;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        reason_init(&why);
        ck_assert_msg(proxies_read(bytes_str(wrong[i]), &p, &why) == ST_BAD_VALUE, "%s",
                      wrong[i]);
        ck_assert_uint_eq(p.count, 7);
        ck_assert_ptr_nonnull(strstr(why.text, "has "));
    }
}

START_TEST(the_last_address_that_is_no_proxy_is_the_client)
{
    static const char list[] = "127.0.0.1,10.0.0.0/8";

    ck_assert_str_eq(client(list, "203.0.113.9"), "203.0.113.9");
    ck_assert_str_eq(client(list, " 203.0.113.9 "), "203.0.113.9");
    /* A client can write anything in front of the address that the proxy appends. */
    ck_assert_str_eq(client(list, "1.2.3.4, 203.0.113.9"), "203.0.113.9");
    ck_assert_str_eq(client(list, "nonsense,, 203.0.113.9"), "203.0.113.9");
    ck_assert_str_eq(client(list, "1.2.3.4,203.0.113.9,10.0.0.1,127.0.0.1"),
                     "203.0.113.9");
    /* All are proxies: the first one. */
    ck_assert_str_eq(client(list, "10.0.0.9, 10.0.0.1"), "10.0.0.9");
}

START_TEST(addresses_may_have_brackets_and_ports)
{
    ck_assert_str_eq(client("none", "203.0.113.9:4711"), "203.0.113.9");
    ck_assert_str_eq(client("none", "2001:DB8:0::1"), "2001:db8::1");
    ck_assert_str_eq(client("none", "[2001:db8::1]"), "2001:db8::1");
    ck_assert_str_eq(client("none", "[2001:db8::1]:4711"), "2001:db8::1");
    ck_assert_str_eq(client("none", "::ffff:203.0.113.9"), "203.0.113.9");
}

START_TEST(garbage_names_no_client)
{
    static const char *const wrong[] = {
        "",
        ",",
        "203.0.113.9,",
        "unknown",
        "_hidden",
        "203.0.113.9, unknown",
        "203.0.113",
        "203.0.113.256",
        "[",
        "[]",
        "[::1",
        "]",
        ":",
        "::1::",
        "fe80::1%eth0",
        "203.0.113.9:1:2",
        "for=203.0.113.9",
        "\"203.0.113.9\"",
        "203.0.113.9 203.0.113.9",
        "203.0.113.9\nx=1",
        "2001:db8:1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa"};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(strcmp(client("127.0.0.1", wrong[i]), "?") == 0, "%s", wrong[i]);
    ck_assert_str_eq(client("127.0.0.1", "nonsense, 127.0.0.1"), "?");
}
