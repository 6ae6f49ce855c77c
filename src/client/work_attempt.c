/*
 * The attempts at jobs, from the start of a command or request to its outcome, and what
 * the runner learns of the service of --http from them and from requests for its health.
 * work_runner.h declares them. To follow a job, read work_claiming.c before, and
 * work_finish.h after this.
 */
#include "client/work_runner.h"

#include "client/work_finish.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

/* ------------------------------------------------------------------ the service */

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

/* Learns from a job that has ended, before its transfer is reset. */
static void
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
        !request_health(r))
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
    transfer_reset(r->multi, t);
}

/* ------------------------------------------------------------------ jobs */

/* From SIGTERM to SIGKILL after --timeout. */
enum { TIMEOUT_KILL_MS = 5000 };

/* Pause after a job that no guard has taken. */
enum { NO_GUARD_MS = 1000 };

void
job_ended(struct runner *r, struct work_job *j)
{
    r->running--;
    more_may_be_ready(r);
    if (j->stop == STOP_LOST) {
        log_job(j, "ended, because the lease is lost");
        j->state = JOB_DONE;
        j->claim->open--;
        return;
    }
    j->state = JOB_ENDED;
    if (r->o->batch > 1)
        finish_gather(j->claim, r->now_ms);
    if (j->outcome.kind != OUTCOME_BROKEN)
        return; /* the response to its finish request tells the rest */
    log_job(j, j->outcome.reason[0] != '\0' ? j->outcome.reason : j->outcome.what);
    runner_stop(r, COMMAND_UNAVAILABLE);
}

struct job_attempt
attempt_of(struct runner *r, const struct work_job *j)
{
    return (struct job_attempt){.number = j->attempt,
                                .random = random_u32(r),
                                .stop = j->stop,
                                .timeout_s = r->o->timeout_s,
                                .backoff = &r->o->backoff,
                                .service = r->service_name,
                                .service_worked = r->service.worked};
}

static void
job_cannot_start(struct runner *r, struct work_job *j, int error)
{
    j->outcome.kind = OUTCOME_BROKEN;
    (void)snprintf(j->outcome.what, sizeof(j->outcome.what), "cannot start: %s",
                   strerror(error));
    job_ended(r, j);
}

/*
 * No guard has taken the job. It never ran, so it is no attempt, and no job of
 * --max-jobs.
 */
static void
job_release(struct runner *r, struct work_job *j)
{
    log_job(j, "cannot start now. Releasing it");
    j->outcome.kind = OUTCOME_RELEASE;
    r->started--;
    if (r->claim_ms < r->now_ms + NO_GUARD_MS)
        r->claim_ms = r->now_ms + NO_GUARD_MS;
    job_ended(r, j);
}

static void
command_ended(struct runner *r, struct work_job *j)
{
    const struct guard_report *report = &j->process.report;
    const struct job_attempt a = attempt_of(r, j);

    process_end(&j->process);
    if (report->foreign)
        log_job(
            j,
            "its processes of other users run on, because this process may not end them");
    if (j->process.untaken) {
        job_release(r, j);
        return;
    }
    if (report->error != 0 && j->stop == STOP_NONE) {
        job_cannot_start(r, j, report->error);
        return;
    }
    if (report->lease_ended) /* even if a late response renewed the lease */
        j->stop = STOP_LOST;
    outcome_of_command(&j->outcome, &a, report->status,
                       bytes_of(j->process.tail, j->process.tail_len));
    job_ended(r, j);
}

void
service_ended(struct runner *r, struct work_job *j)
{
    const struct job_attempt a = attempt_of(r, j);

    outcome_of_request(&j->outcome, &a, &j->service);
    health_learn(r, j);
    if (j->outcome.unsent)
        r->started--; /* it is no job of --max-jobs */
    transfer_reset(r->multi, &j->service);
    job_ended(r, j);
}

void
job_stop(struct runner *r, struct work_job *j, enum attempt_stop why, int64_t kill_ms)
{
    j->stop = why;
    j->timeout_ms = INT64_MAX;
    if (r->o->service != NULL) {
        service_ended(r, j);
    } else if (r->o->batch > 0) {
        kept_stop(r, j, kill_ms);
    } else {
        process_stop(&j->process, kill_ms);
    }
}

static int
command_start(struct runner *r, struct work_job *j, int64_t deadline_s)
{
    struct process_start start = {.term_ms = lease_term_ms(&j->claim->lease),
                                  .kill_ms = lease_kill_ms(&j->claim->lease)};
    struct buf text, metadata, variables;
    int error = ENOMEM;

    buf_init(&text, r->mem);
    buf_init(&metadata, r->mem);
    buf_init(&variables, r->mem);
    job_metadata_write(&metadata, j, deadline_s);
    job_variables_write(&variables, j, deadline_s);
    start.input = job_input(j, r->o->raw, &text);
    start.metadata = buf_view(&metadata);
    start.variables = buf_view(&variables);
    if (!variables.failed && !text.failed && !metadata.failed)
        error = process_start(&j->process, &r->guards, &start);
    buf_fini(&variables);
    buf_fini(&metadata);
    buf_fini(&text);
    return error;
}

void
job_start(struct runner *r, struct work_job *j)
{
    int64_t deadline_s = 0;
    int error = 0;

    r->running++;
    r->started++;
    if (r->o->batch > 0) {
        kept_start(r, j);
        return;
    }
    if (r->o->timeout_s > 0) {
        j->timeout_ms = r->now_ms + r->o->timeout_s * 1000;
        deadline_s = (int64_t)time(NULL) + r->o->timeout_s;
    }
    j->service.sent_ms = r->now_ms;
    if (r->o->command != NULL)
        error = command_start(r, j, deadline_s);
    else if (!request_service(r, j))
        error = ENOMEM;
    else
        service_job_sent(&r->service, r->now_ms);
    if (error == EBUSY)
        job_release(r, j);
    else if (error != 0)
        job_cannot_start(r, j, error);
}

void
job_tick(struct runner *r, struct work_job *j, int64_t *next_ms)
{
    if (r->o->command != NULL && r->o->batch == 0 && j->process.guard == NULL &&
        (process_is_read(&j->process) || j->stop == STOP_LOST || r->mode == MODE_HURRY)) {
        command_ended(r, j);
        return;
    }
    if (j->stop == STOP_NONE && r->mode >= MODE_STOP &&
        (r->now_ms >= r->stop_ms || (j->slot != NULL && !j->sent)))
        job_stop(r, j, STOP_RUNNER,
                 r->now_ms + (r->mode == MODE_HURRY ? 0 : STOP_KILL_MS));
    else if (j->stop == STOP_NONE && r->now_ms >= j->timeout_ms)
        job_stop(r, j, STOP_TIMEOUT, r->now_ms + TIMEOUT_KILL_MS);
    if (j->state != JOB_RUNNING)
        return;
    if (r->mode == MODE_HURRY)
        process_stop(&j->process, r->now_ms);
    if (r->mode >= MODE_STOP && j->stop == STOP_NONE)
        *next_ms = earlier(*next_ms, r->stop_ms);
    *next_ms = earlier(*next_ms, j->timeout_ms);
}
