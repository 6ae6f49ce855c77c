/*
 * The target of a delivery in logs and metrics contains no secret of its URI. Read
 * src/notify/delivery.h next. outcome_test.c tests the end of an attempt.
 */
#include "notify/delivery.h"

#include "support/check_main.h"

START_TEST(a_uri_leads_to_a_place)
{
    static const struct {
        const char *uri;
        enum target_kind kind;
        const char *origin;
    } cases[] = {
        {"http://example.org/hook", TARGET_WEB, "http://example.org"},
        {"HTTPS://Example.ORG:8443", TARGET_WEB, "https://example.org:8443"},
        {"http://[2001:DB8::1]:80/x", TARGET_WEB, "http://[2001:db8::1]:80"},
        {"http://h?x=1", TARGET_WEB, "http://h"},
        {"http://h#x", TARGET_WEB, "http://h"},
        {"mailto:me@example.org?subject=a", TARGET_MAIL, "mailto:"},
        {"trust+https://h/x", TARGET_TRUST, "trust+https://h"},
        {"ftp://h/x", TARGET_OTHER, ""},
        {"http:/h", TARGET_OTHER, ""},
        {"http", TARGET_OTHER, ""},
        {"", TARGET_OTHER, ""},
        {"unix:///run/x", TARGET_OTHER, ""},
        {"file:///etc/passwd", TARGET_OTHER, ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct target t;

        target_read(bytes_str(cases[i].uri), &t);
        ck_assert_msg(t.kind == cases[i].kind, "%s", cases[i].uri);
        ck_assert_str_eq(t.origin, cases[i].origin);
    }
}

START_TEST(no_secret_is_in_it)
{
    static const char *const uris[] = {
        "http://user:SECRET@h/path",
        "http://SECRET@h",
        "http://a@SECRET@h/x",
        "http://user:pa@SECRET@h/x",
        "http://h/SECRET",
        "http://h/x@SECRET",
        "http://h?key=SECRET",
        "http://h?a@SECRET",
        "http://h#SECRET",
        "http://h\\@SECRET",
        "mailto:SECRET@h?subject=SECRET",
        "ftp://SECRET@h",
    };

    for (size_t i = 0; i < sizeof(uris) / sizeof(uris[0]); i++) {
        struct target t;

        target_read(bytes_str(uris[i]), &t);
        ck_assert_msg(strstr(t.origin, "SECRET") == NULL &&
                          strstr(t.origin, "secret") == NULL,
                      "%s: %s", uris[i], t.origin);
    }
}

START_TEST(a_long_one_is_cut)
{
    char uri[4200];
    struct target t;

    memset(uri, 'a', sizeof(uri));
    memcpy(uri, "http://", 7);
    target_read(bytes_of(uri, sizeof(uri)), &t);
    ck_assert_int_eq(t.kind, TARGET_WEB);
    ck_assert_uint_eq(strlen(t.origin), TARGET_ORIGIN_CAP - 1);
}
