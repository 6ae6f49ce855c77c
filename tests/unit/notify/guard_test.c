/*
 * Which addresses notifications may reach (docs/api.md 20.7): public ones, and those that
 * the operator allows. Read claimd/notify/guard.h next.
 */
#include "claimd/notify/guard.h"

#include "support/check_main.h"

#include <stdio.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

static bool
admits(const struct guard *g, const char *text)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};

    if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
        return guard_allows(g, (const struct sockaddr *)&four, sizeof(four));
    ck_assert_msg(inet_pton(AF_INET6, text, &six.sin6_addr) == 1, "%s", text);
    return guard_allows(g, (const struct sockaddr *)&six, sizeof(six));
}

static struct guard
allowing(const char *list)
{
    struct guard g;
    struct reason why;

    reason_init(&why);
    ck_assert_msg(guard_read(bytes_str(list), &g, &why) == ST_OK, "%s", why.text);
    return g;
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct guard strict = {.count = 0};

TEST_CASE("addresses");

START_TEST(public_ones_are_admitted)
{
    static const char *const good[] = {
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.88.98.255",
        "192.88.100.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "198.51.101.0",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2001:200::1",
        "2001:db7:ffff::",
        "2001:db9::",
        "2003::1",
        "2001:4860:4860::8888",
        "3ffe:ffff::",
        "3fff:1000::",
        "::ffff:1.1.1.1",
        "64:ff9b::1.1.1.1", /* by a translator that the network has */
    };

    for (size_t i = 0; i < COUNT(good); i++)
        ck_assert_msg(admits(&strict, good[i]), "%s", good[i]);
}

START_TEST(all_others_are_refused)
{
    static const char *const bad[] = {
        "0.0.0.0",
        "0.255.255.255",
        "10.0.0.0",
        "10.255.255.255",
        "100.64.0.0",
        "100.127.255.255",
        "127.0.0.0",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.0.0",
        "169.254.169.254",
        "169.254.255.255",
        "172.16.0.0",
        "172.31.255.255",
        "192.0.0.0",
        "192.0.0.255",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.0",
        "192.168.255.255",
        "198.18.0.0",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.255",
        "224.0.0.0",
        "239.255.255.255",
        "240.0.0.0",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::1.1.1.1", /* compatible: no host has such an address */
        "::ffff:0.0.0.0",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:0:127.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:0:0:0:1:101:101",
        "64:ff9b:1::1.1.1.1",
        "64:ff9b:1:ffff::",
        "100::1",
        "2001::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:2::1",
        "2001:20::1",
        "2001:1ff:ffff::",
        "2001:db8::1",
        "2002::1",
        "2002:7f00:1::1",
        "2002:101:101::1",
        "3fff::1",
        "3fff:fff:ffff::",
        "4000::1",
        "5f00::1",
        "1fff:ffff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fdff:ffff::1",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "ff02::1",
        "ff0e::1",
        "ffff::1",
    };

    for (size_t i = 0; i < COUNT(bad); i++)
        ck_assert_msg(!admits(&strict, bad[i]), "%s", bad[i]);
}

/* By its first octet, everything but what the table has; of the rest whole blocks are
 * above. */
START_TEST(each_first_octet_is_judged)
{
    for (unsigned octet = 0; octet < 256; octet++) {
        bool refused = octet == 0 || octet == 10 || octet == 127 || octet >= 224;
        char text[32];

        (void)snprintf(text, sizeof(text), "%u.200.7.7", octet);
        ck_assert_msg(admits(&strict, text) == !refused, "%s", text);
    }
}

START_TEST(each_first_word_of_ipv6_is_judged)
{
    for (unsigned word = 0; word < 0x10000; word++) {
        bool global = word >= 0x2000 && word < 0x4000;
        bool refused = word == 0x2002;
        char text[32];

        (void)snprintf(text, sizeof(text), "%x:5555::1", word);
        ck_assert_msg(admits(&strict, text) == (global && !refused), "%s", text);
    }
}

START_TEST(other_families_and_short_ones_are_refused)
{
    struct guard all = allowing("::/0");
    struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "/run/x"};
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};

    ck_assert(!guard_allows(&all, (const struct sockaddr *)&local, sizeof(local)));
    ck_assert(guard_allows(&all, (const struct sockaddr *)&four, sizeof(four)));
    ck_assert(!guard_allows(&all, (const struct sockaddr *)&four, sizeof(four) - 1));
    ck_assert(guard_allows(&all, (const struct sockaddr *)&six, sizeof(six)));
    ck_assert(!guard_allows(&all, (const struct sockaddr *)&six, sizeof(six) - 1));
    four.sin_family = AF_UNSPEC;
    ck_assert(!guard_allows(&all, (const struct sockaddr *)&four, sizeof(four)));
}

TEST_CASE("the list");

START_TEST(exactly_the_listed_addresses_are_allowed)
{
    struct guard g = allowing("10.1.0.0/16, 127.0.0.1,fd00:1::/32 , 192.168.3.128/25");

    ck_assert(admits(&g, "10.1.0.0"));
    ck_assert(admits(&g, "10.1.255.255"));
    ck_assert(admits(&g, "::ffff:10.1.2.3"));
    ck_assert(admits(&g, "64:ff9b::10.1.2.3"));
    ck_assert(!admits(&g, "10.0.255.255"));
    ck_assert(!admits(&g, "10.2.0.0"));
    ck_assert(!admits(&g, "::10.1.2.3"));
    ck_assert(admits(&g, "127.0.0.1"));
    ck_assert(!admits(&g, "127.0.0.2"));
    ck_assert(admits(&g, "fd00:1:ffff::1"));
    ck_assert(!admits(&g, "fd00:2::1"));
    ck_assert(admits(&g, "192.168.3.128"));
    ck_assert(!admits(&g, "192.168.3.127"));
    ck_assert(admits(&g, "1.1.1.1"));
}

START_TEST(all_of_ipv4_is_nothing_of_ipv6)
{
    struct guard g = allowing("0.0.0.0/0");

    ck_assert(admits(&g, "127.0.0.1"));
    ck_assert(admits(&g, "::ffff:10.0.0.1"));
    ck_assert(!admits(&g, "::1"));
    ck_assert(!admits(&g, "fe80::1"));
    g = allowing("::/0");
    ck_assert(admits(&g, "fe80::1"));
    ck_assert(admits(&g, "127.0.0.1"));
}

START_TEST(none_is_nothing)
{
    struct guard g = allowing("none");

    ck_assert_uint_eq(g.count, 0);
    ck_assert(!admits(&g, "127.0.0.1"));
}

START_TEST(an_invalid_list_is_refused)
{
    static const char *const bad[] = {
        "",
        "localhost",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/",
        "10.0.0/8",
        "::1/129",
        "1.1.1.1,",
        ",1.1.1.1",
        "10.0.0.0/8/8",
        "10.0.0.0 /8",
        "none,::1",
        "[::1]",
        "::1%lo",
        "1111:1111:1111:1111:1111:1111:1111:1111:1111:1111",
    };
    struct guard g = allowing("127.0.0.1");
    struct reason why;

    for (size_t i = 0; i < COUNT(bad); i++) {
        ck_assert_msg(guard_read(bytes_str(bad[i]), &g, &why) == ST_BAD_VALUE, "%s",
                      bad[i]);
        ck_assert_uint_eq(g.count, 1);
    }
    ck_assert_int_eq(guard_read(bytes_str("1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,"
                                          "1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,"
                                          "1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,"
                                          "1.1.1.1,1.1.1.1"),
                                &g, &why),
                     ST_BAD_VALUE);
    ck_assert_str_eq(why.text, "has more than 16 addresses");
}
