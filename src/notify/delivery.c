#include "notify/delivery.h"

#include "notify/delivery_options.h"

#include <stdio.h>

/* ------------------------------------------------------------------ targets */

static const struct scheme {
    struct bytes text;
    enum target_kind kind;
} schemes[] = {
    {BYTES_LIT("http://"), TARGET_WEB},
    {BYTES_LIT("https://"), TARGET_WEB},
    {BYTES_LIT("mailto:"), TARGET_MAIL},
    {BYTES_LIT("trust+http://"), TARGET_TRUST},
    {BYTES_LIT("trust+https://"), TARGET_TRUST},
};

/* Host and port: the text between the last @ before the path (if there is one) and the
 * path. */
static struct bytes
host_of(struct bytes rest)
{
    struct bytes host = rest;

    for (size_t i = 0; i < rest.len; i++) {
        /* Some parsers of URIs treat a backslash as a slash, so it ends the host as
         * well. */
        if (strchr("/?#\\", rest.data[i]) != NULL) {
            host.len = (size_t)(rest.data + i - host.data);
            return host;
        }
        if (rest.data[i] == '@')
            host = bytes_of(rest.data + i + 1, rest.len - i - 1);
    }
    return host;
}

void
target_read(struct bytes uri, struct target *out)
{
    *out = (struct target){.kind = TARGET_OTHER, .rest = uri};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        const struct scheme *s = &schemes[i];
        struct bytes host = bytes_str("");

        if (uri.len < s->text.len ||
            !bytes_equal_nocase(bytes_of(uri.data, s->text.len), s->text))
            continue;
        out->kind = s->kind;
        out->rest = bytes_of(uri.data + s->text.len, uri.len - s->text.len);
        if (s->kind != TARGET_MAIL)
            host = host_of(out->rest);
        (void)snprintf(out->origin, sizeof(out->origin), "%s%.*s", s->text.data,
                       (int)host.len, host.data);
        for (char *c = out->origin; *c != '\0'; c++)
            if (*c >= 'A' && *c <= 'Z')
                *c = (char)(*c - 'A' + 'a');
        return;
    }
}

struct delivery *
delivery_new(struct mem *mem, const struct store_delivery *leased)
{
    struct delivery *p = mem_calloc(mem, 1, sizeof(*p));

    if (p == NULL)
        return NULL;
    p->leased = *leased;
    target_read(leased->subscriber, &p->target);
    buf_init(&p->url, mem);
    buf_init(&p->text, mem);
    return p;
}

void
delivery_free(struct mem *mem, struct delivery *p)
{
    ENSURE(p->handle == NULL && !list_linked(&p->link));
    buf_fini(&p->url);
    buf_fini(&p->text);
    mem_free(mem, p);
}

/* ------------------------------------------------------------------ outcomes */

/* The wait that the response demands, in seconds. */
static int64_t
requested_wait(const struct ending *e, const struct retry_policy *policy)
{
    if (e->kind != ENDING_RESPONSE || (e->status != 429 && e->status != 503))
        return 0;
    if (e->retry_after_s > 0)
        return e->retry_after_s < RETRY_AFTER_MOST_S ? e->retry_after_s
                                                     : RETRY_AFTER_MOST_S;
    /* After "too many requests" there is no immediate retry. */
    return e->status == 429 ? policy->minimum_delay : 0;
}

static void
outcome_of_failure(const struct ending *e, const struct store_delivery *d,
                   struct outcome *out)
{
    struct retry_policy policy;
    int64_t asked_ms;

    retry_policy_read(d->options, d->metadata, &policy);
    *out =
        (struct outcome){OUTCOME_PERMANENT_FAILURE, STORE_OUTCOME_PERMANENT_FAILURE, 0};
    if (!retry_wait(&policy, d->failed < UINT32_MAX ? d->failed + 1 : d->failed,
                    &out->wait_ms))
        return;
    asked_ms = requested_wait(e, &policy) * 1000;
    if (asked_ms > out->wait_ms)
        out->wait_ms = asked_ms;
    out->kind = OUTCOME_FAILED;
    out->outcome = STORE_OUTCOME_FAILED;
}

void
outcome_decide(const struct ending *e, const struct store_delivery *d,
               struct outcome *out)
{
    if (e->kind == ENDING_NO_RESPONSE ||
        (e->kind == ENDING_RESPONSE && (e->status == 429 || e->status >= 500)))
        outcome_of_failure(e, d, out);
    else if (e->kind == ENDING_IMPOSSIBLE)
        *out = (struct outcome){OUTCOME_PERMANENT_FAILURE,
                                STORE_OUTCOME_PERMANENT_FAILURE, 0};
    else if (e->status >= 200 && e->status < 300)
        *out = (struct outcome){OUTCOME_DELIVERED, STORE_OUTCOME_DELIVERED, 0};
    else if (e->status == 410)
        *out = (struct outcome){OUTCOME_GONE, STORE_OUTCOME_GONE, 0};
    else
        *out = (struct outcome){OUTCOME_REFUSED, STORE_OUTCOME_PERMANENT_FAILURE, 0};
}

/* ------------------------------------------------------------------ metrics */

static const struct bucket_bounds bounds_us = {11,
                                               {1000, 5000, 10000, 25000, 50000, 100000,
                                                250000, 500000, 1000000, 2500000,
                                                10000000}};

void
notify_metrics_count(struct notify_metrics *f, enum outcome_kind kind,
                     int64_t duration_ns)
{
    counter_add(&f->tries[kind], 1);
    if (duration_ns >= 0)
        buckets_add(&f->duration_us, &bounds_us, (uint64_t)duration_ns / 1000);
}

void
notify_metrics_write(const struct notify_metrics *f, uint64_t slow_hosts,
                     struct exposition *x)
{
    static const struct family tries = {"claimd_notification_tries", FAMILY_COUNTER, NULL,
                                        "Number of notification attempts, by result."};
    static const char *const kinds[OUTCOME_KINDS] = {
        [OUTCOME_DELIVERED] = "delivered", [OUTCOME_FAILED] = "failed",
        [OUTCOME_REFUSED] = "refused",     [OUTCOME_PERMANENT_FAILURE] = "given_up",
        [OUTCOME_GONE] = "gone",
    };
    static const struct family duration = {
        "claimd_notification_seconds", FAMILY_HISTOGRAM, "seconds",
        "Duration of the notification attempts, in seconds."};

    exposition_family(x, &tries);
    for (size_t i = 0; i < OUTCOME_KINDS; i++) {
        const struct label result = {"result", bytes_str(kinds[i])};

        exposition_sample(x, &result, 1, counter_read(&f->tries[i]));
    }
    metric_write(
        x, FAMILY_COUNTER, "claimd_notifications_put_off", NULL,
        "Number of due notifications that claimd postponed for lack of capacity.",
        counter_read(&f->backed_off), 0);
    metric_write(
        x, FAMILY_COUNTER, "claimd_notifications_kept_out", NULL,
        "Number of notification attempts that failed because notify_allow does not allow "
        "the address.",
        counter_read(&f->blocked), 0);
    metric_write(x, FAMILY_GAUGE, "claimd_notifications_in_flight", NULL,
                 "Number of notifications in progress.", counter_read(&f->in_flight), 0);
    metric_write(x, FAMILY_GAUGE, "claimd_notifications_waiting", NULL,
                 "Number of notifications that wait for the journal or for capacity at "
                 "their host.",
                 counter_read(&f->waiting), 0);
    metric_write(x, FAMILY_GAUGE, "claimd_notification_slow_hosts", NULL,
                 "Number of subscriber hosts with a slow or missing last response.",
                 slow_hosts, 0);
    exposition_family(x, &duration);
    exposition_buckets(x, NULL, 0, &f->duration_us, &bounds_us, 6);
}

/* ------------------------------------------------------------------ log */

/* Least time between two lines about failures. */
enum { EVERY_NS = 1000000000 };

static const struct {
    const char *event;
    enum log_level level;
} lines[OUTCOME_KINDS] = {
    [OUTCOME_DELIVERED] = {"notification_delivered", LOG_DEBUG},
    [OUTCOME_FAILED] = {"notification_failed", LOG_DEBUG},
    [OUTCOME_REFUSED] = {"notification_refused", LOG_WARN},
    [OUTCOME_PERMANENT_FAILURE] = {"notification_given_up", LOG_WARN},
    [OUTCOME_GONE] = {"subscriber_gone", LOG_INFO},
};

/* True if a line may be written now. *omitted: number of lines omitted since the last
 * one. */
static bool
log_may_write(struct delivery_log *h, enum log_level level, uint64_t *omitted)
{
    int64_t now_ns = clock_stopwatch_ns();

    *omitted = 0;
    if (level == LOG_DEBUG)
        return true;
    if (h->written_ns != 0 && now_ns - h->written_ns < EVERY_NS) {
        h->omitted++;
        return false;
    }
    *omitted = h->omitted;
    h->written_ns = now_ns;
    h->omitted = 0;
    return true;
}

void
delivery_log_outcome(struct delivery_log *h, const struct delivery *p,
                     const struct outcome *v, const struct ending *how,
                     const struct reason *why)
{
    enum log_level level = lines[v->kind].level;
    const struct store_delivery *d = &p->leased;
    uint64_t omitted;

    if (!log_wants(h->log, level) || !log_may_write(h, level, &omitted))
        return;
    log_event(h->log, level, lines[v->kind].event, LOG_B("project", d->queue.project),
              LOG_B("queue", d->queue.name), LOG_S("subscription", d->subscription.text),
              LOG_S("to", p->target.origin),
              LOG_I("status", how->kind == ENDING_RESPONSE ? how->status : 0),
              LOG_S("why", why->text), LOG_I("failed_before", d->failed),
              LOG_I("not_told", omitted));
}

void
delivery_log_missing(struct delivery_log *h, const struct reason *why)
{
    if (strcmp(h->missing.text, why->text) == 0)
        return;
    h->missing = *why;
    log_event(h->log, LOG_ERROR, "notifications_put_off", LOG_S("error", why->text));
}
