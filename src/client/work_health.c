#include "client/work_health.h"

#include "client/work_requests.h"

#include <stdio.h>

/* Says that the service is away, or is back. before_ms: its away_ms before a change. */
static void
health_report(struct runner *r, int64_t before_ms, const char *why)
{
    const bool is_away = r->service.away_ms >= 0;

    if ((before_ms >= 0) == is_away)
        return;
    if (is_away)
        work_log("waiting for the service: %s", why);
    else
        work_log("the service takes jobs again after %lld s",
                 (long long)(r->now_ms - before_ms) / 1000);
    report_state(r, NULL);
}

/* The service does not take jobs. retry_after_s: up to the limit of the pauses. */
static void
health_fail(struct runner *r, int64_t retry_after_s, const char *why)
{
    const int64_t before_ms = r->service.away_ms;

    service_failed(&r->service, r->now_ms,
                   earlier(retry_after_s, r->o->backoff.most_s) * 1000, random_u32(r));
    health_report(r, before_ms, why);
    poll_end(r); /* it would claim jobs for a service that does not take them */
}

void
health_learn(struct runner *r, const struct work_job *j)
{
    const int64_t before_ms = r->service.away_ms;
    const struct job_outcome *o = &j->outcome;
    const struct work_transfer *t = &j->service;

    if (o->kind == OUTCOME_RELEASE || o->kind == OUTCOME_BROKEN)
        return;
    r->service.worked |= t->status != 0;
    if (o->kind == OUTCOME_AWAY || o->doubt) {
        health_fail(r, t->retry_after_s, o->reason);
        return;
    }
    if (t->status != 0)
        service_responded(&r->service, t->sent_ms);
    if (o->kind == OUTCOME_RETRY)
        service_doubted(&r->service);
    health_report(r, before_ms, "");
}

int64_t
health_tick(struct runner *r)
{
    const int64_t before_ms = r->service.away_ms;
    int64_t next_ms = INT64_MAX;

    if (r->o->service == NULL || r->mode != MODE_RUN)
        return INT64_MAX;
    if (service_step(&r->service, r->now_ms, &next_ms) && r->health.handle == NULL &&
        !request_health(&r->transfers, &r->health, r->o))
        health_fail(r, -1, "out of memory");
    health_report(r, before_ms, "");
    return next_ms;
}

void
read_health_response(struct runner *r)
{
    const int64_t before_ms = r->service.away_ms;
    struct work_transfer *t = &r->health;
    char why[WHAT_MOST + CURL_ERROR_SIZE];

    if (t->status >= 200 && t->status < 300) {
        service_healthy(&r->service, r->now_ms);
        health_report(r, before_ms, "");
    } else {
        if (t->status != 0)
            (void)snprintf(why, sizeof(why), "HTTP status %ld from %s", t->status,
                           r->health_name);
        else
            (void)snprintf(why, sizeof(why), "%s %s: %s",
                           t->sent ? "no response from" : "cannot reach", r->health_name,
                           t->error);
        if (t->unusable && !r->service.worked) {
            work_log("%s", why);
            runner_stop(r, COMMAND_UNAVAILABLE);
        } else {
            health_fail(r, t->retry_after_s, why);
        }
    }
    transfer_reset(&r->transfers, t);
}
