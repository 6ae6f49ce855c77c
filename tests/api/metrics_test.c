/* GET /metrics as the API writes it (docs/metrics.md); what the metrics are:
 * store/metrics. */
#include "support/pending.h"

#include <string.h>

static void
post(struct api_fixture *f, const char *queue)
{
    ck_api(f, "POST", api_text(f, "/v2/queues/%s/messages", queue),
           "{\"messages\":[{\"body\":1}]}", 201, NULL);
}

static void
ck_line(struct api_fixture *f, const char *line)
{
    const char *text = api_text(f, "\n%s\n", line);

    ck_assert_msg(strstr(api_body(&f->c), text) != NULL, "%s is not in\n%.3000s", line,
                  api_body(&f->c));
}

API_TEST(queues_are_listed_by_name_and_the_rest_together)
{
    size_t samples = 0;

    post(f, "a");
    post(f, "b");
    post(f, "c");
    post(f, "d");
    post(f, "e");
    f->c.now_ms += 1500;
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_api_header(f, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    ck_line(f, "claimd_queue_messages{project=\"" API_CALL_PROJECT
               "\",queue=\"a\",state=\"claimable\"} 1");
    ck_line(f, "claimd_queue_messages{project=\"\",queue=\"\",state=\"claimable\"} 2");
    ck_line(f, "claimd_queue_oldest_ready_age_seconds{project=\"" API_CALL_PROJECT
               "\",queue=\"c\"} 1.5");
    ck_assert_ptr_null(strstr(api_body(&f->c), "queue=\"d\""));
    ck_assert_ptr_null(strstr(api_body(&f->c), "age_seconds{project=\"\""));
    ck_line(f, "claimd_messages_posted_total 5");
    ck_line(f, "claimd_message_wait_seconds_count 0");
    ck_line(f, "claimd_queues 5");
    for (const char *at = api_body(&f->c);
         (at = strstr(at, "\nclaimd_queue_messages{")) != NULL; at++)
        samples++;
    ck_assert_uint_eq(samples, 3 * (API_FIXTURE_SHOWN + 1)); /* one for each state */
}

/* The old names go in the release after 0.2.0. */
API_TEST(old_names_of_ready_messages_have_the_values_of_the_new_ones)
{
    static const char a[] = "{project=\"" API_CALL_PROJECT "\",queue=\"a\"";

    for (const char *name = "abcdea"; *name != '\0'; name++)
        post(f, api_text(f, "%c", *name));
    f->c.now_ms += 1500;
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_line(f, api_text(f, "claimd_queue_oldest_ready_age_seconds%s} 1.5", a));
    ck_line(f, api_text(f, "claimd_queue_oldest_claimable_age_seconds%s} 1.5", a));
    ck_line(f, api_text(f, "claimd_queue_messages_ready%s} 2", a));
    ck_line(f, api_text(f, "claimd_queue_messages%s,state=\"claimable\"} 2", a));
    ck_line(f, "claimd_queue_messages_ready{project=\"\",queue=\"\"} 2");
    ck_line(f, "claimd_queue_messages{project=\"\",queue=\"\",state=\"claimable\"} 2");
}

API_TEST(they_count_what_expired_and_how_old_the_oldest_claim_is)
{
    static const char a[] = "{project=\"" API_CALL_PROJECT "\",queue=\"a\"}";

    for (const char *name = "abcde"; *name != '\0'; name++)
        post(f, api_text(f, "%c", *name));
    ck_api(f, "POST", "/v2/queues/a/claims", "{\"ttl\":60,\"grace\":60}", 201, NULL);
    post(f, "a");
    f->c.now_ms += 1500;
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_line(f, api_text(f, "claimd_queue_oldest_claimed_age_seconds%s 1.5", a));
    ck_line(f, "claimd_queue_oldest_claimed_age_seconds{project=\"" API_CALL_PROJECT
               "\",queue=\"b\"} 0.0");
    ck_assert_ptr_null(strstr(api_body(&f->c), "claimed_age_seconds{project=\"\""));
    f->c.now_ms += 3600000;
    ck_api(f, "GET", "/metrics", NULL, 200, NULL); /* settles */
    ck_api(f, "GET", "/v2/queues/d/messages", NULL, 200, NULL);
    ck_api(f, "GET", "/v2/queues/e/messages", NULL, 200, NULL);
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_line(f, api_text(f, "claimd_queue_oldest_claimed_age_seconds%s 0.0", a));
    ck_line(f, api_text(f, "claimd_queue_messages_posted_total%s 2", a));
    ck_line(f, api_text(f, "claimd_queue_messages_delivered_total%s 1", a));
    ck_line(f, api_text(f, "claimd_queue_messages_deleted_total%s 0", a));
    ck_line(f, api_text(f, "claimd_queue_messages_requeued_total%s 1", a));
    ck_line(f, api_text(f, "claimd_queue_messages_dead_lettered_total%s 0", a));
    ck_line(f, "claimd_queue_messages_posted_total{project=\"\",queue=\"\"} 2");
    ck_line(f, api_text(f, "claimd_queue_messages_expired_total%s 2", a));
    ck_line(f, api_text(f, "claimd_queue_messages_expired_unread_total%s 1", a));
    ck_line(f, api_text(f, "claimd_queue_dead_letters_expired_total%s 0", a));
    ck_line(f, "claimd_queue_messages_expired_total{project=\"\",queue=\"\"} 2");
    ck_line(f, "claimd_queue_messages_expired_unread_total{project=\"\",queue=\"\"} 2");
}

API_TEST(metrics_show_paused_queues)
{
    static const char a[] = "{project=\"" API_CALL_PROJECT "\",queue=\"a\",what=";

    post(f, "a");
    post(f, "b");
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_assert_ptr_null(strstr(api_body(&f->c), "claimd_queue_paused{"));
    ck_api(f, "POST", "/claimd/queues/a/pause", "{\"posts\":true}", 200, NULL);
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_line(f, api_text(f, "claimd_queue_paused%s\"posts\"} 1", a));
    ck_assert_ptr_null(strstr(api_body(&f->c), "what=\"claims\""));
    ck_api(f, "POST", "/claimd/queues/a/pause", NULL, 200, NULL);
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_line(f, api_text(f,
                        "claimd_queue_paused%s\"claims\"} 1\nclaimd_queue_paused%s"
                        "\"posts\"} 1",
                        a, a));
    ck_assert_ptr_null(strstr(api_body(&f->c), "queue=\"b\",what="));
}

API_TEST(metrics_count_posts_that_a_pause_refuses)
{
    post(f, "a");
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_line(f, "claimd_paused_posts_refused_total 0");
    ck_api(f, "POST", "/claimd/queues/a/pause", "{\"posts\":true}", 200, NULL);
    for (int i = 0; i < 2; i++)
        ck_api(f, "POST", "/v2/queues/a/messages", "{\"messages\":[{\"body\":1}]}", 503,
               "Queue is paused");
    post(f, "b");
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_line(f, "claimd_paused_posts_refused_total 2");
}

API_TEST(metrics_show_waiters_and_subscriptions_of_queues)
{
    static const char a[] = "{project=\"" API_CALL_PROJECT "\",queue=\"a\"}";
    static const char b[] = "{project=\"" API_CALL_PROJECT "\",queue=\"b\"}";
    struct pending waiter;

    ck_api(f, "PUT", "/v2/queues/a", NULL, 201, NULL);
    ck_api(f, "POST", "/v2/queues/b/subscriptions",
           "{\"subscriber\":\"http://example.org/\",\"ttl\":3600,\"options\":{}}", 201,
           NULL);
    pending_begin(&waiter, f, "POST", "/v2/queues/a/claims", "wait=20");
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_line(f, api_text(f, "claimd_queue_waiters%s 1", a));
    ck_line(f, api_text(f, "claimd_queue_waiters%s 0", b));
    ck_line(f, api_text(f, "claimd_queue_subscriptions%s 0", a));
    ck_line(f, api_text(f, "claimd_queue_subscriptions%s 1", b));
    ck_assert_ptr_null(strstr(api_body(&f->c), "claimd_queue_waiters{project=\"\""));
    ck_assert_ptr_null(
        strstr(api_body(&f->c), "claimd_queue_subscriptions{project=\"\""));
    pending_end(&waiter);
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_line(f, api_text(f, "claimd_queue_waiters%s 0", a));
}

API_TEST(without_per_queue_there_are_no_metrics_of_queues)
{
    post(f, "a");
    ck_api(f, "GET", "/metrics?per_queue=false", NULL, 200, NULL);
    ck_assert_ptr_null(strstr(api_body(&f->c), "claimd_queue_"));
    ck_line(f, "claimd_queues 1");
    ck_line(f, "claimd_messages_posted_total 1");
    ck_api(f, "GET", "/metrics?per_queue=true", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "queue=\"a\""));
    ck_api(f, "GET", "/metrics?per_queue=2", NULL, 400, "Invalid parameter");
}

START_TEST(projects_with_odd_names_stay_apart)
{
    static const struct {
        const char *path, *shown;
    } rows[] = {
        {"/v1/%00a/queues/q", "\\\\x00a"},         {"/v1/%00b/queues/q", "\\\\x00b"},
        {"/v1/%FF/queues/q", "\\\\xff"},           {"/v1/%5Cxff/queues/q", "\\\\x5cxff"},
        {"/v1/%5C%0A%22/queues/q", "\\\\\\n\\\""},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct api_fixture f;

        api_fixture_open(&f);
        f.c.headers[API_HEADER_PROJECT_ID] = NULL;
        ck_api(&f, "PUT", rows[i].path, NULL, 201, NULL);
        ck_api(&f, "GET", "/metrics", NULL, 200, NULL);
        ck_line(&f, api_text(&f, "claimd_queue_claims{project=\"%s\",queue=\"q\"} 0",
                             rows[i].shown));
        api_fixture_close(&f);
    }
}

static const struct store_vtable *engine_ops;

/* The first queue and then, as if it had been made anew meanwhile, once more. */
static enum status
show_twice(struct store *s, struct store_op *op, size_t *at,
           struct store_queue_metrics *out)
{
    size_t place = 0;

    return (*at)++ > 1 ? ST_NOT_FOUND : engine_ops->queue_metrics(s, op, &place, out);
}

API_TEST(no_series_comes_twice)
{
    static const char series[] =
        "\nclaimd_queue_claims{project=\"" API_CALL_PROJECT "\",queue=\"a\"} 0\n";
    struct store_vtable twice;
    const char *found;

    post(f, "a");
    post(f, "b");
    engine_ops = f->store->vtable;
    twice = *engine_ops;
    twice.queue_metrics = show_twice;
    f->store->vtable = &twice;
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    found = strstr(api_body(&f->c), series);
    ck_assert_ptr_nonnull(found);
    ck_assert_ptr_null(strstr(found + 1, series));
    ck_line(f, "claimd_queue_messages{project=\"\",queue=\"\",state=\"claimable\"} 1");
    f->store->vtable = engine_ops;
}

API_TEST(they_say_whether_requests_may_be_sent)
{
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_line(f, "claimd_ready 1");
    atomic_store(&f->condition.closed, true);
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_line(f, "claimd_ready 0");
    atomic_store(&f->condition.closed, false);
    atomic_store(&f->condition.draining, true);
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_line(f, "claimd_ready 0");
}

/* Leases what is due, and has this come of it. */
static void
conclude(struct api_fixture *f, enum store_outcome outcome)
{
    struct store_delivery delivery = {.store = NULL};

    ck_assert_int_eq(store_delivery_next(f->store, STORE_AT(f->c.now_ms), &delivery),
                     ST_OK);
    store_delivery_done(f->store, STORE_AT(f->c.now_ms), &delivery, outcome, f->c.now_ms);
}

/* They report the bytes of the store. */
static void
ck_backlog(struct api_fixture *f, bool some)
{
    struct store_metrics metrics;

    ck_assert_int_eq(store_metrics(f->store, STORE_AT(f->c.now_ms), &metrics), ST_OK);
    ck_assert(some == (metrics.feed_bytes > 0));
    ck_line(f, api_text(f, "claimd_subscription_backlog_bytes %llu",
                        (unsigned long long)metrics.feed_bytes));
}

API_TEST(they_count_what_became_of_what_subscribers_were_to_get)
{
    struct store_delivery delivery = {.store = NULL};

    ck_api(f, "POST", "/v2/queues/q/subscriptions",
           "{\"subscriber\":\"http://example.org/\"}", 201, NULL);
    api_post_letters(f, "q", "abcdefghij");
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_line(f, "claimd_subscriptions 1");
    ck_backlog(f, true);
    conclude(f, STORE_OUTCOME_DELIVERED);
    for (int i = 0; i < 2; i++)
        conclude(f, STORE_OUTCOME_PERMANENT_FAILURE);
    for (int i = 0; i < 3; i++)
        conclude(f, STORE_OUTCOME_FAILED);
    conclude(f, STORE_OUTCOME_BACKED_OFF); /* which is none of them */
    f->c.now_ms += 300000;
    ck_assert_int_eq(store_delivery_next(f->store, STORE_AT(f->c.now_ms), &delivery),
                     ST_NOT_FOUND);
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_line(f, "claimd_notifications_delivered_total 1");
    ck_line(f, "claimd_notifications_given_up_total 2");
    ck_line(f, "claimd_notifications_failed_total 3");
    ck_line(f, "claimd_notifications_fallen_out_total 7");
    ck_backlog(f, false);
}

API_TEST(openmetrics_is_sent_only_if_accept_names_it)
{
    static const char *const plain[] = {NULL, "*/*", "text/plain", "application/json",
                                        "application/openmetrics-text;q=0,text/plain"};
    static const char *const open[] = {
        "application/openmetrics-text",
        "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;q=0.5,*/*;q=0.1"};

    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        f->c.headers[API_HEADER_ACCEPT] = plain[i];
        ck_api(f, "GET", "/metrics", NULL, 200, NULL);
        ck_api_header(f, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    }
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
        const char *text;

        f->c.headers[API_HEADER_ACCEPT] = open[i];
        ck_api(f, "GET", "/metrics", NULL, 200, NULL);
        ck_api_header(f, "Content-Type",
                      "application/openmetrics-text; version=1.0.0; charset=utf-8");
        text = api_body(&f->c);
        ck_assert_str_eq(text + strlen(text) - 6, "# EOF\n");
    }
}

API_TEST_WITH(they_are_for_operators_of_all_projects, api_fixture_open_access(f))
{
    static const char *const tokens[] = {"watch operator * never",
                                         "local operator " API_CALL_PROJECT " never",
                                         "work worker * never"};

    api_allow(f, tokens, 3);
    ck_api(f, "GET", "/metrics", NULL, 401, "Unauthorized");
    ck_api_header(f, "WWW-Authenticate", "Bearer");
    f->c.headers[API_HEADER_AUTH_TOKEN] = "nobody";
    ck_api(f, "GET", "/metrics", NULL, 401, "Unauthorized");
    f->c.headers[API_HEADER_AUTH_TOKEN] = "local";
    ck_api(f, "GET", "/metrics", NULL, 403, "Not authorized");
    f->c.headers[API_HEADER_AUTH_TOKEN] = "work";
    ck_api(f, "GET", "/metrics", NULL, 403, "Not authorized");
    f->c.headers[API_HEADER_AUTH_TOKEN] = "watch";
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    f->c.headers[API_HEADER_CLIENT_ID] = NULL;
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_api(f, "HEAD", "/metrics", NULL, 200, NULL);
    ck_api(f, "POST", "/metrics", NULL, 405, NULL);
}

API_TEST(running_out_of_memory_is_a_response)
{
    uint64_t nth = 0;

    post(f, "a");
    do {
        mem_fail_nth(f->mem, ++nth);
        (void)api_call(&f->c, "GET", "/metrics", NULL);
        ck_assert(f->c.res.code == 200 || f->c.res.code == 503);
    } while (f->c.res.code != 200);
    mem_fail_nth(f->mem, 0);
    ck_assert_uint_gt(nth, 1);
}
