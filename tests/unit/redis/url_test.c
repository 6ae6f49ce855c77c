/*
 * The URL of a store on Redis, and that the error for an invalid one does not contain the
 * password. Declared in src/redis/link.h.
 */
#include "redis/link.h"

#include "support/check_main.h"

static struct url
read_good(const char *text)
{
    struct reason why;
    struct url url;

    ck_assert_msg(url_read(text, &url, &why) == ST_OK, "%s: %s", text, why.text);
    return url;
}

START_TEST(a_host_has_the_usual_port)
{
    struct url url = read_good("redis://localhost");

    ck_assert_uint_eq(url.host_count, 1);
    ck_assert_str_eq(url.hosts[0].host, "localhost");
    ck_assert_uint_eq(url.hosts[0].port, 6379);
    ck_assert_str_eq(url.user, "");
    ck_assert_str_eq(url.password, "");
    ck_assert_int_eq(url.replicas, -1);
    ck_assert_int_eq(url.confirm_ms, 1000);
    ck_assert_int_eq(url.patience_ms, 2000);
}

START_TEST(several_hosts_a_login_and_parameters)
{
    struct url url = read_good(
        "redis://claimd:s%40cret:@a:7000,b:7001,[::1]:7002?replicas=2&confirm_ms=5"
        "&patience_ms=0");

    ck_assert_uint_eq(url.host_count, 3);
    ck_assert_str_eq(url.hosts[1].host, "b");
    ck_assert_uint_eq(url.hosts[1].port, 7001);
    ck_assert_str_eq(url.hosts[2].host, "::1");
    ck_assert_uint_eq(url.hosts[2].port, 7002);
    ck_assert_str_eq(url.user, "claimd");
    ck_assert_str_eq(url.password, "s@cret:");
    ck_assert_int_eq(url.replicas, 2);
    ck_assert_int_eq(url.confirm_ms, 5);
    ck_assert_int_eq(url.patience_ms, 0);
    ck_assert(!url.restarts_held && !url.unsafe);
    url = read_good("redis://a?restarts=held&unsafe=1");
    ck_assert(url.restarts_held && url.unsafe);
}

START_TEST(a_unix_socket)
{
    struct url url = read_good("redis+unix://:word@/run/redis/socket?replicas=0");

    ck_assert_uint_eq(url.host_count, 1);
    ck_assert_str_eq(url.hosts[0].host, "/run/redis/socket");
    ck_assert_uint_eq(url.hosts[0].port, 0);
    ck_assert_str_eq(url.password, "word");
    ck_assert_int_eq(url.replicas, 0);
}

static const struct {
    const char *text, *says;
} bad[] = {
    {"http://a", "start with redis://"},
    {"", "start with redis://"},
    {"rediss://a", "needs TLS"},
    {"redis://", "a host must be"},
    {"redis://a,", "a host must be"},
    {"redis://a:0", "a host must be"},
    {"redis://a:65536", "a host must be"},
    {"redis://a:x", "a host must be"},
    {"redis://secret@a", "in front of the @"},
    {"redis://u:%4@a", "%XX"},
    {"redis://u:%00secret@a", "%XX"},
    {"redis://a?replica=1", "unknown parameter"},
    {"redis://a?replicas=17", "replicas=0 to 16"},
    {"redis://a?replicas=", "replicas=0 to 16"},
    {"redis://a?confirm_ms=0", "confirm_ms=1 to"},
    {"redis://a?restarts=1", "restarts=held"},
    {"redis://a?unsafe=yes", "unsafe=1"},
    {"redis+unix://socket", "path of a socket"},
    {"redis://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a", "16 hosts"},
};

LOOP_TEST(an_error_does_not_show_the_password, sizeof(bad) / sizeof(bad[0]))
{
    struct reason why;
    struct url url;

    reason_init(&why);
    ck_assert_int_eq(url_read(bad[_i].text, &url, &why), ST_BAD_VALUE);
    ck_assert_msg(strstr(why.text, bad[_i].says) != NULL, "%s: %s", bad[_i].text,
                  why.text);
    ck_assert_ptr_null(strstr(why.text, "secret"));
}
