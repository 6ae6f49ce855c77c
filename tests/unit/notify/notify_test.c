/*
 * The notifier with all its threads, on a store of the test and against sockets that
 * receive: documents, outcomes, retries, confirmations, and that nothing is sent before
 * it is durable (docs/api.md 20). Read claimd/notify/notify.h next.
 */
#include "claimd/notify/notify.h"

#include "support/check_main.h"
#include "support/feed_store.h"
#include "support/hook_sink.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KEY "0123456789abcdef0123456789abcdef"

/* Time is slow enough for a sanitizer's build, where something has to end in time. */
enum { START_MS = 1700000000, PATIENCE_MS = 60000, HASTE_MS = 300 };

static struct {
    struct mem *mem;
    struct clock clock;
    struct log log;
    struct store *store;
    struct signer *signer, *webhooks;
    struct hook_sink *sink;
    struct notify *notify;
    struct notify_config config;
    char uris[64][128];
    size_t uri_count;
} f;

static void
fixture_open(void)
{
    struct reason why;

    f.mem = mem_new(0);
    clock_init_manual(&f.clock, START_MS);
    f.log = (struct log){.fd = STDERR_FILENO, .level = LOG_ERROR, .clock = &f.clock};
    f.store = feed_store_open(&f.clock);
    ck_assert_int_eq(signer_new(f.mem, &f.signer), ST_OK);
    ck_assert_int_eq(signer_new(f.mem, &f.webhooks), ST_OK);
    f.sink = hook_sink_open();
    f.uri_count = 0;
    f.notify = NULL;
    f.config = (struct notify_config){.mem = f.mem,
                                      .store = f.store,
                                      .store_log = feed_store_log(f.store),
                                      .clock = &f.clock,
                                      .real = &f.clock,
                                      .log = &f.log,
                                      .signer = f.signer,
                                      .webhooks = f.webhooks,
                                      .workers = 10,
                                      .connect_ms = PATIENCE_MS,
                                      .timeout_ms = PATIENCE_MS,
                                      .agent = "claimd/test",
                                      .subscription_ttl_s = 3600};
    ck_assert_int_eq(guard_read(bytes_str("127.0.0.0/8"), &f.config.guard, &why), ST_OK);
}

static void
begin(void)
{
    ck_assert_int_eq(notify_open(&f.config, &f.notify), ST_OK);
}

static void
fixture_close(void)
{
    notify_close(f.notify);
    store_close(f.store);
    hook_sink_close(f.sink);
    signer_free(f.signer);
    signer_free(f.webhooks);
    mem_destroy(f.mem);
}

#define NOTIFY_CASE(name)                                                                \
    TEST_CASE(name, .setup = fixture_open, .teardown = fixture_close)

static void
give_keys(struct signer *signer)
{
    struct reason why;
    size_t line;

    ck_assert_int_eq(signer_replace(signer, bytes_str(KEY), &line, &why), ST_OK);
}

/* A message to a path of the sink, which is at 127.0.0.HOST. */
static struct store_delivery
message(int host, const char *path)
{
    char *uri = f.uris[f.uri_count++];

    ck_assert_uint_le(f.uri_count, sizeof(f.uris) / sizeof(f.uris[0]));
    (void)snprintf(uri, sizeof(f.uris[0]), "http://127.0.0.%d:%d%s", host,
                   hook_sink_port(f.sink), path);
    return (struct store_delivery){
        .queue = {.project = BYTES_LIT("p"), .name = BYTES_LIT("q")},
        .subscription = {"5f"},
        .subscriber = bytes_str(uri),
        .options = BYTES_LIT("{}"),
        .metadata = BYTES_LIT("{}"),
        .body = BYTES_LIT("{\"a\":1}"),
        .ttl_s = 300,
        .number = 7};
}

static size_t
post(int host, const char *path)
{
    const struct store_delivery d = message(host, path);

    return feed_store_add(f.store, &d);
}

static void
expect(struct feed_result notification, enum store_outcome outcome, int64_t wait_ms)
{
    ck_assert_int_eq(notification.outcome, outcome);
    if (outcome == STORE_OUTCOME_FAILED)
        ck_assert_int_eq(notification.again_ms - clock_now_ms(&f.clock), wait_ms);
}

/* The outcome of one message to this path. */
static void
expect_of(const char *path, enum store_outcome outcome, int64_t wait_ms)
{
    expect(feed_store_await(f.store, post(1, path), 1), outcome, wait_ms);
}

static void
expect_in(const char *request, const char *part)
{
    ck_assert_msg(strstr(request, part) != NULL, "%s is not in %s", part, request);
}

static void
expect_not_in(const char *request, const char *part)
{
    ck_assert_msg(strcasestr(request, part) == NULL, "%s is in %s", part, request);
}

NOTIFY_CASE("web hooks");

START_TEST(a_message_is_posted_as_a_document)
{
    const char *request;

    begin();
    expect_of("/status/204", STORE_OUTCOME_DELIVERED, 0);
    request = hook_sink_request(f.sink, "/status/204", 0);
    expect_in(request, "POST /status/204 HTTP/1.1\r\n");
    expect_in(request, "\r\nUser-Agent: claimd/test\r\n");
    expect_in(request, "\r\nContent-Type: application/json\r\n");
    expect_in(request, "\r\n\r\n{\"body\":{\"a\":1},\"ttl\":300,\"queue_name\":\"q\","
                       "\"Message_Type\":\"Notification\"}");
    expect_not_in(request, "webhook-");
    expect_not_in(request, "expect:");
}

START_TEST(options_add_headers_and_replace_the_body)
{
    struct store_delivery d = message(1, "/status/200");
    const char *request;

    d.options =
        bytes_str("{\"post_headers\":{\"X-Extra\":\"yes\",\"Content-Type\":\"text/x\","
                  "\"Host\":\"evil\",\"webhook-id\":\"evil\"},"
                  "\"post_data\":\"{\\\"text\\\": \\\"$zaqar_message$\\\"}\"}");
    begin();
    expect(feed_store_await(f.store, feed_store_add(f.store, &d), 1),
           STORE_OUTCOME_DELIVERED, 0);
    request = hook_sink_request(f.sink, "/status/200", 0);
    expect_in(request, "\r\nX-Extra: yes\r\n");
    expect_in(request, "\r\nContent-Type: text/x\r\n");
    expect_in(request, "\r\n\r\n{\"text\": {\"body\":{\"a\":1},");
    expect_not_in(request, "evil");
    expect_not_in(request, "application/json");
}

START_TEST(a_template_that_expands_too_far_fails_permanently)
{
    enum { BODY = 200000, TIMES = 50 };
    struct store_delivery d = message(1, "/status/200");
    struct buf options, body;

    buf_init(&options, f.mem);
    buf_init(&body, f.mem);
    buf_str(&options, "{\"post_data\":\"");
    for (int i = 0; i < TIMES; i++)
        buf_str(&options, "\\\"$zaqar_message$\\\"");
    buf_str(&options, "\"}");
    for (int i = 0; i < BODY; i++)
        buf_byte(&body, '1');
    d.options = buf_view(&options);
    d.body = buf_view(&body);
    begin();
    expect(feed_store_await(f.store, feed_store_add(f.store, &d), 1),
           STORE_OUTCOME_PERMANENT_FAILURE, 0);
    ck_assert_uint_eq(hook_sink_count(f.sink, "/status/200"), 0);
    buf_fini(&options);
    buf_fini(&body);
}

START_TEST(with_a_key_it_is_vouched_for)
{
    const char *request;
    const char *body;
    char signatures[WEBHOOK_SIGNATURES_CAP], line[WEBHOOK_SIGNATURES_CAP + 64];
    struct webhook webhook = {
        .project = BYTES_LIT("p"), .id = BYTES_LIT("5f-7"), .sent_s = START_MS / 1000};

    give_keys(f.webhooks);
    begin();
    expect_of("/status/200", STORE_OUTCOME_DELIVERED, 0);
    request = hook_sink_request(f.sink, "/status/200", 0);
    body = strstr(request, "\r\n\r\n") + 4;
    webhook.body = bytes_str(body);
    ck_assert_int_eq(signer_sign_webhook(f.webhooks, &webhook, signatures), ST_OK);
    (void)snprintf(line, sizeof(line), "\r\nwebhook-signature: %s\r\n", signatures);
    expect_in(request, line);
    expect_in(request, "\r\nwebhook-id: 5f-7\r\n");
    expect_in(request, "\r\nwebhook-timestamp: 1700000\r\n");
}

static enum status
turn(void *ctx, const struct store_queue *queue, struct bytes body, struct buf *out)
{
    size_t *left = ctx;

    ck_assert(bytes_equal_str(queue->name, "q"));
    if (*left > 0) {
        --*left;
        return ST_NOT_FOUND;
    }
    for (size_t i = body.len; i > 0; i--)
        buf_byte(out, body.data[i - 1]);
    return ST_OK;
}

START_TEST(a_body_that_has_to_be_opened_waits_until_it_can_be)
{
    struct store_delivery d = message(1, "/status/200");
    size_t left = 1, which;

    f.config.open_body = turn;
    f.config.open_ctx = &left;
    d.body = bytes_str("\"cba\"");
    begin();
    which = feed_store_add(f.store, &d);
    expect(feed_store_await(f.store, which, 1), STORE_OUTCOME_BACKED_OFF, 0);
    clock_advance(&f.clock, 60000);
    feed_store_notify(f.store);
    expect(feed_store_await(f.store, which, 2), STORE_OUTCOME_DELIVERED, 0);
    expect_in(hook_sink_request(f.sink, "/status/200", 0), "{\"body\":\"abc\",");
}

static enum status
find_damaged(void *ctx, const struct store_queue *queue, struct bytes body,
             struct buf *out)
{
    (void)ctx;
    (void)queue;
    (void)body;
    buf_str(out, "half of it");
    return ST_DAMAGED;
}

START_TEST(a_body_that_never_opens_is_given_up)
{
    f.config.open_body = find_damaged;
    begin();
    expect_of("/status/200", STORE_OUTCOME_PERMANENT_FAILURE, 0);
    ck_assert_uint_eq(hook_sink_count(f.sink, "/status/200"), 0);
}

static enum status
fail_once(void *ctx, const struct store_queue *queue, struct bytes body, struct buf *out)
{
    size_t *left = ctx;

    (void)queue;
    if (*left > 0) {
        --*left;
        return ST_NO_MEMORY;
    }
    buf_bytes(out, body);
    return ST_OK;
}

START_TEST(a_backed_off_delivery_is_retried_by_itself)
{
    struct store_delivery d = message(1, "/status/200");
    size_t left = 1;

    clock_init_system(&f.clock); /* nothing reports that it has moved */
    f.config.open_body = fail_once;
    f.config.open_ctx = &left;
    begin();
    expect(feed_store_await(f.store, feed_store_add(f.store, &d), 2),
           STORE_OUTCOME_DELIVERED, 0);
}

START_TEST(connections_are_kept)
{
    begin();
    for (int i = 0; i < 20; i++)
        expect_of("/status/200", STORE_OUTCOME_DELIVERED, 0);
    ck_assert_uint_eq(hook_sink_count(f.sink, "/status/200"), 20);
    ck_assert_uint_eq(hook_sink_connections(f.sink), 1);
}

NOTIFY_CASE("responses");

START_TEST(each_has_its_outcome)
{
    begin();
    expect_of("/status/201", STORE_OUTCOME_DELIVERED, 0);
    expect_of("/status/304", STORE_OUTCOME_PERMANENT_FAILURE, 0);
    expect_of("/status/400", STORE_OUTCOME_PERMANENT_FAILURE, 0);
    expect_of("/status/404", STORE_OUTCOME_PERMANENT_FAILURE, 0);
    expect_of("/status/410", STORE_OUTCOME_GONE, 0);
    expect_of("/status/429", STORE_OUTCOME_FAILED, 5000);
    expect_of("/status/429/77", STORE_OUTCOME_FAILED, 77000);
    expect_of("/status/503/78", STORE_OUTCOME_FAILED, 78000);
    expect_of("/status/503/999999", STORE_OUTCOME_FAILED, 3600000);
}

START_TEST(a_redirect_is_not_followed)
{
    begin();
    expect_of("/redirect", STORE_OUTCOME_PERMANENT_FAILURE, 0);
    ck_assert_uint_eq(hook_sink_count(f.sink, "/status/200"), 0);
}

/* A policy without tries at once, so that what failed stays away. */
static size_t
post_once(const char *path)
{
    struct store_delivery d = message(1, path);

    d.options = bytes_str("{\"_retry_policy\":{\"retries_with_no_delay\":0}}");
    return feed_store_add(f.store, &d);
}

START_TEST(a_malformed_response_has_failed)
{
    begin();
    expect(feed_store_await(f.store, post_once("/close"), 1), STORE_OUTCOME_FAILED, 5000);
    expect(feed_store_await(f.store, post_once("/noise"), 1), STORE_OUTCOME_FAILED, 5000);
    expect(feed_store_await(f.store, post_once("/huge"), 1), STORE_OUTCOME_FAILED, 5000);
    expect(feed_store_await(f.store, post_once("/heads"), 1), STORE_OUTCOME_FAILED, 5000);
    expect(feed_store_await(f.store, post_once("/status/500"), 1), STORE_OUTCOME_FAILED,
           5000);
}

START_TEST(a_request_over_the_time_limit_has_failed)
{
    f.config.timeout_ms = HASTE_MS;
    begin();
    expect(feed_store_await(f.store, post_once("/hang"), 1), STORE_OUTCOME_FAILED, 5000);
    expect(feed_store_await(f.store, post_once("/drip"), 1), STORE_OUTCOME_FAILED, 5000);
}

START_TEST(it_is_tried_again_until_the_policy_ends)
{
    static const int waits_s[] = {0, 0, 0, 5, 5, 5, 5, 10, 15, 20, 25, 30, 30, 30};
    size_t which, tries = sizeof(waits_s) / sizeof(waits_s[0]);

    begin();
    which = post(1, "/status/500");
    for (size_t i = 0; i < tries; i++) {
        struct feed_result notification = feed_store_await(f.store, which, i + 1);

        if (notification.times == i + 1)
            expect(notification, STORE_OUTCOME_FAILED, waits_s[i] * 1000);
        clock_advance(&f.clock, waits_s[i] * 1000);
        feed_store_notify(f.store);
    }
    expect(feed_store_await(f.store, which, tries + 1), STORE_OUTCOME_PERMANENT_FAILURE,
           0);
    ck_assert_uint_eq(hook_sink_count(f.sink, "/status/500"), tries + 1);
}

NOTIFY_CASE("selection");

START_TEST(addresses_that_are_not_allowed_are_not_reached)
{
    f.config.guard.count = 0;
    begin();
    expect(feed_store_await(f.store, post_once("/status/200"), 1), STORE_OUTCOME_FAILED,
           5000);
    ck_assert_uint_eq(hook_sink_connections(f.sink), 0);
}

/* However the same address is written. */
LOOP_TEST(no_spelling_of_an_address_helps, 9)
{
    static const char *const hosts[] = {
        "localhost",      "2130706433", "0x7f.1",  "0177.0.0.1",
        "127.1",          "[::1]",      "0.0.0.0", "[::ffff:127.0.0.1]",
        "%31%32%37.0.0.1"};
    struct store_delivery d = message(1, "/x");
    struct feed_result notification;
    char uri[128];

    (void)snprintf(uri, sizeof(uri), "http://%s:%d/x", hosts[_i], hook_sink_port(f.sink));
    d.subscriber = bytes_str(uri);
    d.options = bytes_str("{\"_retry_policy\":{\"retries_with_no_delay\":0}}");
    f.config.guard.count = 0;
    begin();
    notification = feed_store_await(f.store, feed_store_add(f.store, &d), 1);
    ck_assert(notification.outcome == STORE_OUTCOME_FAILED ||
              notification.outcome == STORE_OUTCOME_PERMANENT_FAILURE);
    ck_assert_uint_eq(hook_sink_connections(f.sink), 0);
}

LOOP_TEST(other_kinds_of_addresses_are_given_up, 9)
{
    static const char *const uris[] = {"file:///etc/passwd",
                                       "ftp://127.0.0.1/x",
                                       "gopher://127.0.0.1/x",
                                       "unix:///run/x",
                                       "trust+http://127.0.0.1/x",
                                       "mailto:me@example.org",
                                       "http://",
                                       "http://a b/",
                                       ""};
    struct store_delivery d = message(1, "/x");

    d.subscriber = bytes_str(uris[_i]);
    begin();
    expect(feed_store_await(f.store, feed_store_add(f.store, &d), 1),
           STORE_OUTCOME_PERMANENT_FAILURE, 0);
}

START_TEST(a_nul_in_an_address_ends_nothing)
{
    struct store_delivery d = message(1, "/status/200");
    char uri[64];
    int len = snprintf(uri, sizeof(uri), "http://127.0.0.1:%d/status/200%cx",
                       hook_sink_port(f.sink), 0);

    d.subscriber = bytes_of(uri, (size_t)len);
    begin();
    expect(feed_store_await(f.store, feed_store_add(f.store, &d), 1),
           STORE_OUTCOME_PERMANENT_FAILURE, 0);
    ck_assert_uint_eq(hook_sink_connections(f.sink), 0);
}

NOTIFY_CASE("when");

START_TEST(nothing_is_sent_before_it_is_durable)
{
    struct store_delivery d = message(1, "/status/200");
    size_t which;

    feed_store_settle(f.store, 4, false);
    d.lsn = 5;
    begin();
    which = feed_store_add(f.store, &d);
    feed_store_await_leased(f.store, 1);
    expect_of("/status/201", STORE_OUTCOME_DELIVERED, 0); /* others are not held up */
    ck_assert_uint_eq(hook_sink_count(f.sink, "/status/200"), 0);
    feed_store_settle(f.store, 5, false);
    expect(feed_store_await(f.store, which, 1), STORE_OUTCOME_DELIVERED, 0);
}

START_TEST(a_dropped_message_is_never_sent)
{
    struct store_delivery d = message(1, "/status/200");
    size_t which;

    feed_store_settle(f.store, 4, false);
    d.lsn = 5;
    begin();
    which = feed_store_add(f.store, &d);
    feed_store_await_leased(f.store, 1);
    feed_store_settle(f.store, 4, true);
    expect(feed_store_await(f.store, which, 1), STORE_OUTCOME_BACKED_OFF, 0);
    ck_assert_uint_eq(hook_sink_connections(f.sink), 0);
}

START_TEST(a_failed_call_of_the_store_is_repeated)
{
    feed_store_fail(f.store, 2, ST_NO_MEMORY);
    begin();
    expect_of("/status/200", STORE_OUTCOME_DELIVERED, 0);
    feed_store_fail(f.store, 5, ST_AGAIN);
    expect_of("/status/200", STORE_OUTCOME_DELIVERED, 0);
}

NOTIFY_CASE("space");

START_TEST(a_silent_subscriber_delays_no_other)
{
    size_t first, last = 0;

    f.config.workers = 4;
    begin();
    expect_of("/status/200", STORE_OUTCOME_DELIVERED, 0);
    first = post(2, "/hang");
    for (int i = 0; i < 30; i++)
        last = post(2 + i % 5, "/hang");
    for (int i = 0; i < 10; i++)
        expect_of("/status/200", STORE_OUTCOME_DELIVERED, 0);
    /* The last quarter is not for hosts that never responded. */
    hook_sink_await(f.sink, "/hang", 3);
    ck_assert_uint_eq(hook_sink_count(f.sink, "/hang"), 3);
    notify_close(f.notify);
    f.notify = NULL;
    expect(feed_store_result(f.store, first), STORE_OUTCOME_BACKED_OFF, 0);
    expect(feed_store_result(f.store, last), STORE_OUTCOME_BACKED_OFF, 0);
    ck_assert_uint_eq(feed_store_leased(f.store), 0);
}

START_TEST(many_at_one_host_all_get_through)
{
    size_t all[60];

    f.config.workers = 2;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        all[i] = post(1, "/status/200");
    begin();
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct feed_result notification = feed_store_await(f.store, all[i], 1);

        for (size_t times = 2; notification.outcome == STORE_OUTCOME_BACKED_OFF;
             times++) {
            clock_advance(&f.clock, 20000); /* no put-off is for longer than 10 s */
            feed_store_notify(f.store);
            notification = feed_store_await(f.store, all[i], times);
        }
        expect(notification, STORE_OUTCOME_DELIVERED, 0);
    }
    ck_assert_uint_eq(hook_sink_count(f.sink, "/status/200"), 60);
}

NOTIFY_CASE("confirmations");

static struct store_delivery
notice(enum store_notice what)
{
    struct store_delivery d = message(1, "/status/200");

    d.notice = what;
    d.body = BYTES_NONE;
    d.expires_ms = 1800000000000;
    return d;
}

START_TEST(they_have_a_grant_that_is_good)
{
    const struct store_delivery d = notice(STORE_NOTICE_CONFIRM);
    const struct grant grant = {.paths =
                                    BYTES_LIT("/v2/queues/q/subscriptions/5f/confirm"),
                                .methods = BYTES_LIT("PUT"),
                                .project = BYTES_LIT("p"),
                                .expires = BYTES_LIT("2027-01-15T08:00:00")};
    char signature[SIGNATURE_DIGITS + 1], member[128];
    struct arena arena;
    const char *request;

    give_keys(f.signer);
    begin();
    expect(feed_store_await(f.store, feed_store_add(f.store, &d), 1),
           STORE_OUTCOME_DELIVERED, 0);
    arena_init(&arena, f.mem);
    ck_assert_int_eq(signer_sign(f.signer, &grant, &arena, signature), ST_OK);
    arena_fini(&arena);
    request = hook_sink_request(f.sink, "/status/200", 0);
    (void)snprintf(member, sizeof(member), "\"URL-Signature\":\"%s\"", signature);
    expect_in(request, member);
    expect_in(request, "\"URL-Expires\":\"2027-01-15T08:00:00\"");
    expect_in(request, "\"Message_Type\":\"SubscriptionConfirmation\"");
}

START_TEST(an_unsubscribed_subscriber_may_return_for_a_while)
{
    const struct store_delivery d = notice(STORE_NOTICE_UNSUBSCRIBED);
    const char *request;

    give_keys(f.signer);
    begin();
    expect(feed_store_await(f.store, feed_store_add(f.store, &d), 1),
           STORE_OUTCOME_DELIVERED, 0);
    request = hook_sink_request(f.sink, "/status/200", 0);
    expect_in(request, "\"Message_Type\":\"UnsubscribeConfirmation\"");
    expect_in(request,
              "\"URL-Expires\":\"1970-01-20T17:13:20\""); /* START_MS and an hour */
}

START_TEST(of_a_topic_they_name_its_path)
{
    struct store_delivery d = notice(STORE_NOTICE_CONFIRM);

    d.queue.kind = STORE_TOPIC;
    give_keys(f.signer);
    begin();
    expect(feed_store_await(f.store, feed_store_add(f.store, &d), 1),
           STORE_OUTCOME_DELIVERED, 0);
    expect_in(hook_sink_request(f.sink, "/status/200", 0),
              "\"URL-Paths\":\"/v2/topics/q/subscriptions/5f/confirm\"");
}

START_TEST(without_a_key_none_is_sent)
{
    const struct store_delivery d = notice(STORE_NOTICE_CONFIRM);

    begin();
    expect(feed_store_await(f.store, feed_store_add(f.store, &d), 1),
           STORE_OUTCOME_PERMANENT_FAILURE, 0);
    ck_assert_uint_eq(hook_sink_connections(f.sink), 0);
}

NOTIFY_CASE("memory");

START_TEST(each_allocation_may_fail_and_nothing_is_lost)
{
    uint64_t before, nth;

    give_keys(f.signer);
    give_keys(f.webhooks);
    for (nth = 1; nth < 60; nth++) {
        struct store_delivery d = notice(STORE_NOTICE_CONFIRM);
        struct feed_result notification;
        enum status st;
        size_t which, times = 1;

        d.options = bytes_str("{\"post_headers\":{\"X-Extra\":\"yes\"}}");
        f.uri_count = 0;
        before = mem_attempts(f.mem);
        mem_fail_nth(f.mem, nth);
        st = notify_open(&f.config, &f.notify);
        ck_assert(st == ST_OK || st == ST_NO_MEMORY);
        if (st != ST_OK)
            continue;
        which = feed_store_add(f.store, &d);
        for (;; times++) {
            notification = feed_store_await(f.store, which, times);
            if (notification.outcome != STORE_OUTCOME_BACKED_OFF)
                break;
            clock_advance(&f.clock, 1000);
            feed_store_notify(f.store);
        }
        notify_close(f.notify);
        f.notify = NULL;
        expect(notification, STORE_OUTCOME_DELIVERED, 0);
        if (mem_attempts(f.mem) - before < nth)
            break;
    }
    mem_fail_nth(f.mem, 0);
    ck_assert_uint_gt(nth, 8);
    ck_assert_uint_lt(nth, 60);
}
