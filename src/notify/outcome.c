#include "notify/outcome.h"

#include "notify/delivery_options.h"

#include <string.h>

/* ------------------------------------------------------------------ outcomes */

/* What the subscriber asks for, in seconds. */
static int64_t
asked_wait(const struct ending *e, const struct retry_policy *policy)
{
    if (e->kind != ENDING_ANSWER || (e->status != 429 && e->status != 503))
        return 0;
    if (e->retry_after_s > 0)
        return e->retry_after_s < RETRY_AFTER_MOST_S ? e->retry_after_s
                                                     : RETRY_AFTER_MOST_S;
    /* A subscriber with too many requests gets no retry at once. */
    return e->status == 429 ? policy->minimum_delay : 0;
}

static void
weigh_failure(const struct ending *e, const struct store_delivery *d, struct outcome *out)
{
    struct retry_policy policy;
    int64_t asked_ms;

    retry_policy_read(d->options, d->metadata, &policy);
    *out = (struct outcome){OUTCOME_GIVEN_UP, STORE_OUTCOME_GIVEN_UP, 0};
    if (!retry_wait(&policy, d->failed < UINT32_MAX ? d->failed + 1 : d->failed,
                    &out->wait_ms))
        return;
    asked_ms = asked_wait(e, &policy) * 1000;
    if (asked_ms > out->wait_ms)
        out->wait_ms = asked_ms;
    out->kind = OUTCOME_FAILED;
    out->outcome = STORE_OUTCOME_FAILED;
}

void
outcome_decide(const struct ending *e, const struct store_delivery *d,
               struct outcome *out)
{
    if (e->kind == ENDING_NONE ||
        (e->kind == ENDING_ANSWER && (e->status == 429 || e->status >= 500)))
        weigh_failure(e, d, out);
    else if (e->kind == ENDING_IMPOSSIBLE)
        *out = (struct outcome){OUTCOME_GIVEN_UP, STORE_OUTCOME_GIVEN_UP, 0};
    else if (e->status >= 200 && e->status < 300)
        *out = (struct outcome){OUTCOME_DELIVERED, STORE_OUTCOME_DELIVERED, 0};
    else if (e->status == 410)
        *out = (struct outcome){OUTCOME_GONE, STORE_OUTCOME_GONE, 0};
    else
        *out = (struct outcome){OUTCOME_REFUSED, STORE_OUTCOME_GIVEN_UP, 0};
}

/* ------------------------------------------------------------------ metrics */

static const struct bucket_bounds bounds_us = {11,
                                               {1000, 5000, 10000, 25000, 50000, 100000,
                                                250000, 500000, 1000000, 2500000,
                                                10000000}};

void
figures_count(struct figures *f, enum outcome_kind kind, int64_t took_ns)
{
    counter_add(&f->tries[kind], 1);
    if (took_ns >= 0)
        buckets_add(&f->took_us, &bounds_us, (uint64_t)took_ns / 1000);
}

void
figures_write(const struct figures *f, uint64_t slow_hosts, struct exposition *x)
{
    static const struct family tries = {"claimd_notification_tries", FAMILY_COUNTER, NULL,
                                        "Number of notification attempts, by result."};
    static const char *const kinds[OUTCOME_KINDS] = {
        [OUTCOME_DELIVERED] = "delivered", [OUTCOME_FAILED] = "failed",
        [OUTCOME_REFUSED] = "refused",     [OUTCOME_GIVEN_UP] = "given_up",
        [OUTCOME_GONE] = "gone",
    };
    static const struct family put_off = {
        "claimd_notifications_put_off", FAMILY_COUNTER, NULL,
        "Number of due notifications that claimd postponed for lack of capacity."};
    static const struct family kept_out = {
        "claimd_notifications_kept_out", FAMILY_COUNTER, NULL,
        "Number of notification attempts that failed because notify_allow does not allow "
        "the address."};
    static const struct family in_flight = {"claimd_notifications_in_flight",
                                            FAMILY_GAUGE, NULL,
                                            "Number of notifications in progress."};
    static const struct family waiting = {"claimd_notifications_waiting", FAMILY_GAUGE,
                                          NULL,
                                          "Number of notifications that wait for the "
                                          "journal or for capacity at their host."};
    static const struct family slow = {
        "claimd_notification_slow_hosts", FAMILY_GAUGE, NULL,
        "Number of subscriber hosts with a slow or missing last response."};
    static const struct family took = {
        "claimd_notification_seconds", FAMILY_HISTOGRAM, "seconds",
        "Duration of the notification attempts, in seconds."};

    exposition_family(x, &tries);
    for (size_t i = 0; i < OUTCOME_KINDS; i++) {
        const struct label result = {"result", bytes_str(kinds[i])};

        exposition_sample(x, &result, 1, counter_read(&f->tries[i]));
    }
    exposition_single(x, &put_off, counter_read(&f->put_off));
    exposition_single(x, &kept_out, counter_read(&f->kept_out));
    exposition_single(x, &in_flight, counter_read(&f->in_flight));
    exposition_single(x, &waiting, counter_read(&f->waiting));
    exposition_single(x, &slow, slow_hosts);
    exposition_family(x, &took);
    exposition_buckets(x, NULL, 0, &f->took_us, &bounds_us, 6);
}

/* ------------------------------------------------------------------ log */

/* A line of this kind every so often. */
enum { EVERY_NS = 1000000000 };

static const struct {
    const char *event;
    enum log_level level;
} lines[OUTCOME_KINDS] = {
    [OUTCOME_DELIVERED] = {"notification_delivered", LOG_DEBUG},
    [OUTCOME_FAILED] = {"notification_failed", LOG_DEBUG},
    [OUTCOME_REFUSED] = {"notification_refused", LOG_WARN},
    [OUTCOME_GIVEN_UP] = {"notification_given_up", LOG_WARN},
    [OUTCOME_GONE] = {"subscriber_gone", LOG_INFO},
};

/* May a line be written now? *omitted: how many were not since the last one. */
static bool
may_write(struct delivery_log *h, enum log_level level, uint64_t *omitted)
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
    const struct store_delivery *d = &p->lent;
    uint64_t omitted;

    if (!log_wants(h->log, level) || !may_write(h, level, &omitted))
        return;
    log_event(h->log, level, lines[v->kind].event, LOG_B("project", d->queue.project),
              LOG_B("queue", d->queue.name), LOG_S("subscription", d->subscription.text),
              LOG_S("to", p->target.place),
              LOG_I("status", how->kind == ENDING_ANSWER ? how->status : 0),
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
