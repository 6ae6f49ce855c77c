/* The URL of `claimd work --http`, and Retry-After of its service. */
#include "client/work_transfer.h"
#include "client/work_url.h"

#include "support/check_main.h"

static char text[SERVICE_NAME_MOST + 1];

TEST_CASE("url");

START_TEST(urls_that_cannot_work_are_found_without_a_request)
{
    static const char *const bad[] = {"http://",
                                      "http://127.0.0.1:99999/",
                                      "http://127.0.0.1:x/",
                                      "http://127.0.0.1:0/",
                                      "http://127.0.0.1:1/\r\nX: y",
                                      "http://a b/",
                                      "http://[::1/",
                                      "http://user:secret@/"};
    static const char *const good[] = {"http://h", "HTTP://h:1/x?y#z",
                                       "http://[::1]:8080/", "https://user:secret@h/",
                                       "http://localhost"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(url_check(bad[i]) != NULL, "%s", bad[i]);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ck_assert_msg(url_check(good[i]) == NULL, "%s", good[i]);
}

START_TEST(a_description_has_no_secrets)
{
    url_describe(text, "https://user:secret@h:8443/a/b?token=secret#secret");
    ck_assert_str_eq(text, "https://h:8443/a/b");
    url_describe(text, "http://[::1]:80/caf\xc3\xa9");
    ck_assert_str_eq(text, "http://[::1]:80/caf??");
}

START_TEST(a_long_url_is_cut)
{
    char url[1000] = "http://h/";

    memset(url + 9, 'x', sizeof(url) - 10);
    url[sizeof(url) - 1] = '\0';
    url_describe(text, url);
    ck_assert_uint_eq(strlen(text), SERVICE_NAME_MOST);
}

START_TEST(a_path_of_the_same_host)
{
    char url[40];

    ck_assert(url_of_path(url, sizeof(url), "http://u:p@h:1/jobs?x=1", "/health?full=1"));
    ck_assert_str_eq(url, "http://u:p@h:1/health?full=1");
    ck_assert(!url_of_path(url, sizeof(url), "http://h/jobs", "health"));
    ck_assert(!url_of_path(url, sizeof(url), "http://h/jobs", "//evil/health"));
    ck_assert(!url_of_path(url, sizeof(url), "http://h/jobs", ""));
    ck_assert(!url_of_path(url, 20, "http://h/jobs", "/longer/than/that"));
}

START_TEST(addresses_and_local_names_are_known)
{
    ck_assert(!url_host_is_unknown("http://127.0.0.1:1/"));
    ck_assert(!url_host_is_unknown("http://[::1]:1/"));
    ck_assert(!url_host_is_unknown("http://localhost/"));
    ck_assert(!url_host_is_unknown("http://x.localhost/"));
}

START_TEST(a_name_that_does_not_exist_is_unknown)
{
    /* The resolver knows without a name server that there is no such name. */
    ck_assert(url_host_is_unknown("http://a..b/"));
    ck_assert(url_host_is_unknown("https://me:secret@a..b:8443/jobs"));
}

TEST_CASE("Retry-After");

START_TEST(retry_after_is_a_number_of_seconds)
{
    ck_assert_int_eq(retry_after_read("120", "", 0), 120);
    ck_assert_int_eq(retry_after_read("0", "", 0), 0);
    ck_assert_int_eq(retry_after_read("2147483648", "", 0), INT32_MAX);
    ck_assert_int_eq(retry_after_read("99999999999999999999", "", 0), INT32_MAX);
}

START_TEST(retry_after_is_a_date)
{
    static const char date[] = "Wed, 21 Oct 2015 07:28:00 GMT";
    const int64_t at_s = 1445412480;

    ck_assert_int_eq(retry_after_read(date, "", at_s - 90), 90);
    ck_assert_int_eq(retry_after_read(date, "", at_s + 90), 0);
    /* Both dates are of one clock, so that of this machine does not matter. */
    ck_assert_int_eq(retry_after_read(date, "Wed, 21 Oct 2015 07:26:00 GMT", 0), 120);
    ck_assert_int_eq(retry_after_read(date, "never", at_s - 90), 90);
}

START_TEST(other_texts_are_no_retry_after)
{
    static const char *const texts[] = {"", "-5", "soon", "1.5", "12 parsecs"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        ck_assert_msg(retry_after_read(texts[i], "", 1000) == -1, "%s", texts[i]);
}
