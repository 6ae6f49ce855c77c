/*
 * The notifier sends mail to a server of the test over SMTP (docs/api.md 20.5).
 * notify_test.c tests web hooks. Read claimd/notify/notify.h next.
 */
#include "claimd/notify/notify.h"

#include "support/check_main.h"
#include "support/feed_store.h"
#include "support/mail_sink.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KEY "0123456789abcdef0123456789abcdef"

static struct {
    struct mem *mem;
    struct clock clock;
    struct log log;
    struct store *store;
    struct signer *signer, *webhooks;
    struct mail_sink *sink;
    struct notify *notify;
    struct notify_config config;
    char url[64];
} f;

static void
fixture_open(void)
{
    struct reason why;
    size_t line;

    f.mem = mem_new(0);
    clock_init_manual(&f.clock, 1700000000000);
    f.log = (struct log){.fd = STDERR_FILENO, .level = LOG_ERROR, .clock = &f.clock};
    f.store = feed_store_open(&f.clock);
    ck_assert_int_eq(signer_new(f.mem, &f.signer), ST_OK);
    ck_assert_int_eq(signer_replace(f.signer, bytes_str(KEY), &line, &why), ST_OK);
    ck_assert_int_eq(signer_new(f.mem, &f.webhooks), ST_OK);
    f.sink = mail_sink_open();
    (void)snprintf(f.url, sizeof(f.url), "smtp://127.0.0.1:%d", mail_sink_port(f.sink));
    f.notify = NULL;
    /* The guard does not apply to the mail server, so no address is allowed. */
    f.config = (struct notify_config){.mem = f.mem,
                                      .store = f.store,
                                      .store_log = feed_store_log(f.store),
                                      .clock = &f.clock,
                                      .real = &f.clock,
                                      .log = &f.log,
                                      .signer = f.signer,
                                      .webhooks = f.webhooks,
                                      .workers = 1,
                                      .connect_ms = 60000,
                                      .timeout_ms = 60000,
                                      .agent = "claimd/test",
                                      .subscription_ttl_s = 3600,
                                      .mail = {.url = f.url, .from = "mq@example.org"}};
}

static void
fixture_close(void)
{
    notify_close(f.notify);
    mail_sink_close(f.sink);
    store_close(f.store);
    signer_free(f.signer);
    signer_free(f.webhooks);
    mem_destroy(f.mem);
}

static enum store_outcome
outcome_of(enum store_notice notice, const char *uri, const char *options)
{
    const struct store_delivery d = {
        .notice = notice,
        .queue = {.project = BYTES_LIT("a p"), .name = BYTES_LIT("q")},
        .subscription = {"5f"},
        .subscriber = bytes_str(uri),
        .options = bytes_str(options),
        .metadata = BYTES_LIT("{}"),
        .expires_ms = 1800000000000,
        .body = BYTES_LIT("{\"a\":1}"),
        .ttl_s = 300,
        .number = 7};

    if (f.notify == NULL)
        ck_assert_int_eq(notify_open(&f.config, &f.notify), ST_OK);
    return feed_store_await(f.store, feed_store_add(f.store, &d), 1).outcome;
}

static void
expect_received(const char *part)
{
    ck_assert_msg(strstr(mail_sink_received(f.sink), part) != NULL, "%s is not in %s",
                  part, mail_sink_received(f.sink));
}

TEST_CASE("mail", .setup = fixture_open, .teardown = fixture_close);

START_TEST(a_message_is_a_mail)
{
    ck_assert_int_eq(outcome_of(STORE_NOTICE_MESSAGE,
                                "mailto:me@example.net?subject=a%0d%0ab",
                                "{\"from\":\"who@example.com\",\"post_data\":\"x\"}"),
                     STORE_OUTCOME_DELIVERED);
    expect_received("MAIL FROM:<mq@example.org>");
    expect_received("RCPT TO:<me@example.net>\r\n");
    expect_received(
        "\r\nFrom: <who@example.com>\r\nTo: <me@example.net>\r\n"
        "Subject: =?UTF-8?B?YSAgYg==?=\r\nMessage-ID: <5f-7@example.com>\r\n");
    /* {"body":{"a":1},"ttl":300,"queue_name":"q","Message_Type":"Notification"} */
    expect_received(
        "\r\n\r\n"
        "eyJib2R5Ijp7ImEiOjF9LCJ0dGwiOjMwMCwicXVldWVfbmFtZSI6InEiLCJNZXNzYWdlX1R5cGUi\r\n"
        "OiJOb3RpZmljYXRpb24ifQ==\r\n.\r\n");
}

START_TEST(without_options_it_is_from_the_server)
{
    ck_assert_int_eq(outcome_of(STORE_NOTICE_MESSAGE, "mailto:me@example.net",
                                "{\"from\":\"a@b\\r\\nBcc: x@y\",\"subject\":\"hi\"}"),
                     STORE_OUTCOME_DELIVERED);
    expect_received("\r\nFrom: <mq@example.org>\r\n");
    expect_received("\r\nSubject: hi\r\n");
    ck_assert_ptr_null(strstr(mail_sink_received(f.sink), "Bcc"));
}

START_TEST(a_confirmation_has_a_link)
{
    f.config.mail.confirmation_url = "https://example.org/confirm";
    f.config.public_url = "https://mq.example.org";
    ck_assert_int_eq(
        outcome_of(STORE_NOTICE_CONFIRM, "mailto:me@example.net?subject=s", "{}"),
        STORE_OUTCOME_DELIVERED);
    /*
     * Computed with Python, also the signature: You are about to be subscribed to the
     * queue: q of the project: a p. To confirm this, go to
     *
     * https://example.org/confirm?Signature=...&Methods=PUT&Paths=%2Fv2%2F...&Project=a%20p&...
     */
    expect_received("Subject: s\r\n");
    expect_received(
        "WW91IGFyZSBhYm91dCB0byBiZSBzdWJzY3JpYmVkIHRvIHRoZSBxdWV1ZTogcSBvZiB0aGUgcHJv\r\n"
        "amVjdDogYSBwLiBUbyBjb25maXJtIHRoaXMsIGdvIHRvCgpodHRwczovL2V4YW1wbGUub3JnL2Nv\r\n"
        "bmZpcm0/U2lnbmF0dXJlPWFmYWUxYzYyZWFkNDUwNjE4MzM5YWE4MzAyNDFjMTYxODgxNDdiOTU0\r\n"
        "N2RmZDYxM2UxNmE4ZGVjOGU0ZmY1OGEmTWV0aG9kcz1QVVQmUGF0aHM9JTJGdjIlMkZxdWV1ZXMl\r\n"
        "MkZxJTJGc3Vic2NyaXB0aW9ucyUyRjVmJTJGY29uZmlybSZQcm9qZWN0PWElMjBwJkV4cGlyZXM9\r\n"
        "MjAyNy0wMS0xNVQwOCUzQTAwJTNBMDAmVXJsPWh0dHBzJTNBJTJGJTJGbXEuZXhhbXBsZS5vcmcl\r\n"
        "MkZ2MiUyRnF1ZXVlcyUyRnElMkZzdWJzY3JpcHRpb25zJTJGNWYlMkZjb25maXJtJlF1ZXVlPXEK\r"
        "\n");
}

START_TEST(a_refusal_for_good_is_final_and_others_are_not)
{
    ck_assert_int_eq(outcome_of(STORE_NOTICE_MESSAGE, "mailto:nobody@example.net", "{}"),
                     STORE_OUTCOME_PERMANENT_FAILURE);
    ck_assert_int_eq(outcome_of(STORE_NOTICE_MESSAGE, "mailto:later@example.net", "{}"),
                     STORE_OUTCOME_FAILED);
}

LOOP_TEST(an_invalid_address_gets_no_mail, 4)
{
    static const char *const uris[] = {"mailto:", "mailto:a@b,c@d",
                                       "mailto:a@b%0d%0aRCPT%20TO:<x@y>", "mailto:a"};

    ck_assert_int_eq(outcome_of(STORE_NOTICE_MESSAGE, uris[_i], "{}"),
                     STORE_OUTCOME_PERMANENT_FAILURE);
    ck_assert_str_eq(mail_sink_received(f.sink), "");
}

START_TEST(without_a_mail_server_it_fails_permanently)
{
    f.config.mail.url = NULL;
    ck_assert_int_eq(outcome_of(STORE_NOTICE_MESSAGE, "mailto:me@example.net", "{}"),
                     STORE_OUTCOME_PERMANENT_FAILURE);
}

START_TEST(credentials_are_not_sent_in_the_clear)
{
    f.config.mail.user = "user";
    f.config.mail.password = "secret";
    ck_assert_int_eq(outcome_of(STORE_NOTICE_MESSAGE, "mailto:me@example.net", "{}"),
                     STORE_OUTCOME_FAILED);
    ck_assert_ptr_null(strstr(mail_sink_received(f.sink), "AUTH"));
    ck_assert_ptr_null(strstr(mail_sink_received(f.sink), "MAIL"));
}
