/*
 * The URL of a server that commands accept, with a host or a Unix socket, and the error
 * for another one. Read claimd/base/server_url.h next.
 */
#include "claimd/base/server_url.h"

#include "support/check_main.h"

static void
check_good(const char *url, const char *base, const char *prefix)
{
    char why[SERVER_URL_WHY_CAP] = "";

    ck_assert_msg(server_url_check(url, why), "%s", why);
    ck_assert(!server_url_is_unix(url));
    ck_assert_msg(bytes_equal_str(server_url_base(url), base), "the base of %s", url);
    ck_assert_msg(bytes_equal_str(server_url_prefix(url), prefix), "the prefix of %s",
                  url);
}

static void
check_bad(const char *url, const char *expected)
{
    char why[SERVER_URL_WHY_CAP] = "";

    ck_assert_msg(!server_url_check(url, why), "%s", url);
    ck_assert_msg(strstr(why, expected) != NULL, "%s: %s", url, why);
}

START_TEST(a_url_is_a_host_and_perhaps_the_path_of_a_proxy)
{
    check_good("http://host:8888", "http://host:8888", "");
    check_good("http://host", "http://host", "");
    check_good("HTTPS://host///", "HTTPS://host", "");
    check_good("http://[::1]:8888/", "http://[::1]:8888", "");
    check_good("http://[::1]", "http://[::1]", "");
    check_good("http://host/mq", "http://host/mq", "/mq");
    check_good("http://host/a/b-v2/", "http://host/a/b-v2", "/a/b-v2");
    check_good("https://host:65535/v2.0", "https://host:65535/v2.0", "/v2.0");
}

START_TEST(a_unix_socket_has_any_path)
{
    char why[SERVER_URL_WHY_CAP] = "";

    ck_assert(server_url_check("unix:/run/v2/claimd?#", why));
    ck_assert(server_url_is_unix("unix:a"));
    ck_assert(!server_url_is_unix("unix:"));
    check_bad("unix:", "is no URL of a server");
    check_bad("unix:/run/a b", "has a blank");
}

START_TEST(another_url_is_refused_with_what_to_write)
{
    check_bad("", "is no URL of a server");
    check_bad("host:8888", "is no URL of a server. It must be http://HOST:PORT");
    check_bad("ftp://host", "is no URL of a server");
    check_bad("http://", "has no host");
    check_bad("http:///v2", "has no host");
    check_bad("http://:80", "has no host");
    check_bad("http://host/v2",
              "the version v2 of the API. Leave it out: write http://host");
    check_bad("http://host/mq/v1.1/", "Leave it out: write http://host/mq");
    check_bad("http://host/v1/project", "the version v1 of the API");
    check_bad("http://host/a//b", "has an empty part");
    check_bad("http://host/..", "has an empty part, or one of dots");
    check_bad("http://host?a", "has a query. Write only http://host");
    check_bad("http://host/mq#v2?", "has a fragment. Write only http://host/mq");
    check_bad("http://host:0", "has the port \"0\"");
    check_bad("http://host:65536", "has the port \"65536\"");
    check_bad("http://host:", "has the port \"\"");
    check_bad("http://[::1]:x/", "has the port \"x\"");
    check_bad("http://me:password@host", "has a user or a password");
    check_bad("http://host/\n", "has a blank or a control character");
}

START_TEST(a_long_url_is_refused)
{
    char url[SERVER_URL_MOST + 2], why[SERVER_URL_WHY_CAP] = "";

    memset(url, 'a', sizeof(url));
    memcpy(url, "http://", 7);
    url[SERVER_URL_MOST + 1] = '\0';
    ck_assert(!server_url_check(url, why));
    ck_assert_ptr_nonnull(strstr(why, "It is longer than 1024 bytes"));
    url[SERVER_URL_MOST] = '\0';
    ck_assert(server_url_check(url, why));
}
