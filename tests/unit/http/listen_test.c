/* Lists of addresses to listen on. */
#include "claimd/http/listen.h"

#include "support/check_main.h"

#include <stdio.h>
#include <string.h>

/* A list that can be read, as kinds and addresses with blanks in between. */
static void
reads_as(const char *text, const char *expected)
{
    char all[1024] = "";
    struct listen_list list;
    struct reason why;

    ck_assert_msg(listen_read(text, &list, &why) == ST_OK, "%s: %s", text, why.text);
    for (size_t i = 0; i < list.count; i++) {
        size_t len = strlen(all);

        (void)snprintf(all + len, sizeof(all) - len, "%s%s %s", i == 0 ? "" : "; ",
                       listen_kind_name(list.entries[i].kind), list.entries[i].address);
    }
    ck_assert_str_eq(all, expected);
}

static void
is_refused(const char *text, const char *because)
{
    struct listen_list list;
    struct reason why;

    ck_assert_msg(listen_read(text, &list, &why) == ST_BAD_VALUE, "%s", text);
    ck_assert_msg(strstr(why.text, because) != NULL, "%s: %s", text, why.text);
}

START_TEST(addresses_stand_between_commas_or_blanks)
{
    reads_as("127.0.0.1:8888", "api 127.0.0.1:8888");
    reads_as(" [::1]:0,metrics:127.0.0.1:9090 ", "api [::1]:0; metrics 127.0.0.1:9090");
    reads_as("tls:[::1]:8443 tls:unix:/x y", "tls [::1]:8443; tls unix:/x y");
    reads_as("a:1 b:2\tmetrics:c:3 ,  d:4", "api a:1; api b:2; metrics c:3; api d:4");
}

START_TEST(a_path_may_have_blanks_but_no_comma)
{
    reads_as("unix:/tmp/x y", "api unix:/tmp/x y");
    reads_as("metrics:unix:/a b , 127.0.0.1:1", "metrics unix:/a b; api 127.0.0.1:1");
    is_refused("unix:", "path of 1 to 107");
}

START_TEST(an_unusable_address_is_refused)
{
    static const char *const rows[][2] = {
        {"nonsense", "must be ADDRESS:PORT"},
        {"", "must have an address after"},
        {"127.0.0.1:1,", "after its comma"},
        {"127.0.0.1:1,,127.0.0.1:2", "before its comma"},
        {",127.0.0.1:1", "before its comma"},
        {"127.0.0.1:1, 127.0.0.1:x", "a port from 0 to 65535"},
        {"http:127.0.0.1:1", "the unknown prefix \"http:\""},
        {"metrics:http:127.0.0.1:1", "the unknown prefix \"http:\""},
        {"metrics:metrics:127.0.0.1:1", "the unknown prefix \"metrics:\""},
        {"tls:metrics:127.0.0.1:1", "the unknown prefix \"metrics:\""},
        {"METRICS:127.0.0.1:1", "the unknown prefix \"METRICS:\""},
        {"fe80::1:80", "brackets"},
        {"a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1", "at most 8 addresses"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        is_refused(rows[i][0], rows[i][1]);
}

START_TEST(no_place_is_listened_on_twice)
{
    static const char *const rows[] = {
        "127.0.0.1:80,127.0.0.1:80",
        "127.0.0.1:80,metrics:127.0.0.1:80",
        "metrics:127.0.0.1:80,metrics:127.0.0.1:080",
        "metrics:Host:80,metrics:host:80",
        "127.0.0.1:80,0.0.0.0:80",
        "[::]:80,127.0.0.1:80",
        "unix:/x,metrics:unix:/x",
        "127.0.0.1:80,tls:127.0.0.1:80",
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        is_refused(rows[i], "which are the same address");
    reads_as("127.0.0.1:0,127.0.0.1:0", "api 127.0.0.1:0; api 127.0.0.1:0");
    reads_as("127.0.0.1:80,127.0.0.2:80,[::1]:80",
             "api 127.0.0.1:80; api 127.0.0.2:80; api [::1]:80");
    reads_as("unix:/x,unix:/y", "api unix:/x; api unix:/y");
}

START_TEST(an_announced_address_accepts_connections)
{
    ck_assert_str_eq(listen_scheme(LISTEN_API, "127.0.0.1:1"), "http://");
    ck_assert_str_eq(listen_scheme(LISTEN_METRICS, "[::1]:1"), "http://");
    ck_assert_str_eq(listen_scheme(LISTEN_TLS, "127.0.0.1:1"), "https://");
    ck_assert_str_eq(listen_scheme(LISTEN_API, "unix:/x"), "");
    ck_assert_str_eq(listen_scheme(LISTEN_TLS, "unix:/x"), "");
}
