/*
 * Which values of the header Host a server without authentication allows (docs/api.md
 * 15.1), so that a page of another site cannot reach it through DNS rebinding. Declared
 * in claimd/api/api.h.
 */
#include "claimd/api/api.h"

#include "support/check_main.h"

static bool
is_allowed(const char *host, const char *list)
{
    return host_is_allowed(bytes_str(host), list == NULL ? BYTES_NONE : bytes_str(list));
}

START_TEST(addresses_and_localhost_are_allowed_with_or_without_a_port)
{
    static const char *const hosts[] = {
        "127.0.0.1",      "127.0.0.1:8888", "192.0.2.7:80",         "127.1",
        "[::1]",          "[::1]:8888",     "[2001:db8::1]",        "localhost",
        "LocalHost:8888", "localhost:",     "[::ffff:127.0.0.1]:1", ""};

    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
        ck_assert_msg(is_allowed(hosts[i], NULL), "%s", hosts[i]);
    ck_assert(host_is_allowed(BYTES_NONE, BYTES_NONE));
}

START_TEST(other_names_are_refused)
{
    static char longest[600];
    static const char *const hosts[] = {"evil.example",
                                        "evil.example:8888",
                                        "127.0.0.1.evil.example",
                                        "localhost.evil.example",
                                        "evil-localhost",
                                        "127.0.0.1@evil",
                                        "::1",
                                        "[::1",
                                        "[evil.example]",
                                        "0x7f.1",
                                        "fa.ce",
                                        " localhost",
                                        ":8888",
                                        "[]",
                                        "[::1]evil.example",
                                        "localhost,evil"};

    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
        ck_assert_msg(!is_allowed(hosts[i], NULL), "%s", hosts[i]);
    memset(longest, 'a', sizeof(longest) - 1);
    ck_assert(!is_allowed(longest, NULL));
}

START_TEST(names_of_the_list_are_allowed)
{
    static const char list[] = "mq.example.org, host.docker.internal ,Claimd";

    ck_assert(is_allowed("mq.example.org", list));
    ck_assert(is_allowed("MQ.example.org:8888", list));
    ck_assert(is_allowed("host.docker.internal:1", list));
    ck_assert(is_allowed("claimd", list));
    ck_assert(is_allowed("127.0.0.1", list));
    ck_assert(!is_allowed("example.org", list));
    ck_assert(!is_allowed("evil.mq.example.org", list));
    ck_assert(!is_allowed("mq.example.org,", list));
}

START_TEST(a_list_is_names_joined_by_commas)
{
    static const char *const good[] = {"a", "none", "a,b", " a.example , b_c-d ",
                                       "10.0.0.1"};
    static const char *const bad[] = {"",     "a,",       ",a",  "a b",
                                      "a:80", "http://a", "a/b", "*"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ck_assert_msg(host_list_is_valid(bytes_str(good[i])), "%s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!host_list_is_valid(bytes_str(bad[i])), "%s", bad[i]);
}
