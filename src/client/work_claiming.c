/*
 * The claims of a runner: takes them, renews their leases, and finishes their jobs.
 * work_runner.h declares it. Read work_claim.h before, and work_attempt.c after this.
 */
#include "client/work_runner.h"

#include "client/work_finish.h"

#include <stdio.h>

/*
 * Milliseconds: pauses after failed claims, doubled from the first to the second; a wait
 * that was shorter than QUICK was none.
 */
enum { PAUSE_MS = 100, PAUSE_MOST_MS = 10000, QUICK_MS = 1000 };

/* Pause until a busy spawner may have started some guards. */
enum { SPAWNER_MS = 50 };

/* Longest pause before a claim that a Retry-After can ask for. */
enum { RETRY_AFTER_MOST_MS = 300000 };

static size_t
claim_running(const struct work_claim *c)
{
    size_t count = 0;

    for (size_t i = 0; i < c->count; i++)
        count += c->jobs[i].state == JOB_RUNNING;
    return count;
}

static void
claim_lost(struct runner *r, struct work_claim *c)
{
    for (size_t i = 0; i < c->count; i++) {
        struct work_job *j = &c->jobs[i];

        if (j->state != JOB_RUNNING)
            continue;
        log_job(j, "the lease is lost. Ending it");
        job_stop(r, j, STOP_LOST, c->lease.kill_ms);
    }
}

/* Says what became of a job that has not succeeded, from the response of claimd. */
static void
log_result(const struct runner *r, const struct work_job *j, enum finish_result result)
{
    const struct job_outcome *o = &j->outcome;
    static const char *const texts[] = {
        [FINISH_DELETED] = "It is deleted",
        [FINISH_RELEASED] = "It is ready for the next attempt",
        [FINISH_DEAD_LETTERED] = "It is dead-lettered",
        [FINISH_DONE] = "The server has the result",
        [FINISH_NOT_HELD] =
            "Its lease ended before the server got the result. It may run again",
        [FINISH_UNKNOWN] = "The server did not confirm the result. It may run again"};
    const char *next = texts[result], *way = "failed";
    char in[64];

    if (result == FINISH_RELEASED && o->delay_s > 0) {
        (void)snprintf(in, sizeof(in), "The next attempt is in %lld s",
                       (long long)o->delay_s);
        next = in;
    }
    if (o->kind == OUTCOME_AWAY)
        way = r->o->service != NULL ? "was refused" : "had no response";
    work_log("job %.*s of %.*s %s in attempt %lld%s: %s. %s", (int)j->id.len, j->id.data,
             (int)j->claim->queue.len, j->claim->queue.data, way, (long long)j->attempt,
             o->kind == OUTCOME_AWAY ? ", which does not count" : "", o->what, next);
}

/* The result of a job is at claimd, or never will be. */
static void
job_result_known(void *ctx, struct work_job *j, enum finish_result result)
{
    const bool confirmed = result != FINISH_NOT_HELD && result != FINISH_UNKNOWN;
    struct runner *r = ctx;

    more_may_be_ready(r);
    switch (j->outcome.kind) {
    case OUTCOME_DELETE:
        if (!confirmed)
            log_job(
                j,
                result == FINISH_NOT_HELD
                    ? "its lease ended before the server got the result. It may run again"
                    : "the server did not confirm the result. It may run again");
        break;
    case OUTCOME_RETRY:
    case OUTCOME_DEAD_LETTER:
        log_result(r, j, result);
        break;
    case OUTCOME_AWAY:
        if (!j->outcome.unsent)
            log_result(r, j, result);
        return;
    case OUTCOME_RELEASE:
        if (confirmed && j->outcome.what[0] != '\0')
            log_job(j, "released, because the runner ends");
        return;
    case OUTCOME_BROKEN:
        return;
    }
    if (!confirmed &&
        (r->mode >= MODE_STOP || r->o->max_jobs > 0 || r->o->exit_when_empty))
        r->unconfirmed = true;
}

static void
claim_tick(struct runner *r, struct work_claim *c, int64_t *next_ms)
{
    if (claim_running(c) > 0) {
        switch (lease_step(&c->lease, r->now_ms, next_ms)) {
        case LEASE_WAIT:
            break;
        case LEASE_RENEW:
            lease_renewal_sent(&c->lease, r->now_ms);
            if (!request_renewal(r, c))
                lease_renewal_failed(&c->lease, r->now_ms, 0);
            *next_ms = r->now_ms; /* look again */
            break;
        case LEASE_LOST:
            claim_lost(r, c);
            break;
        case LEASE_KILL:
            break; /* the guards do it */
        }
    } else if (c->finish.handle == NULL) {
        if (lease_ended(&c->lease, r->now_ms))
            finish_give_up(c, job_result_known, r);
        *next_ms = earlier(*next_ms, lease_end_ms(&c->lease));
    }
    for (size_t i = 0; i < c->count; i++)
        if (c->jobs[i].state == JOB_RUNNING)
            job_tick(r, &c->jobs[i], next_ms);
    if (finish_is_due(c, r->now_ms, next_ms) && !request_finish(r, c))
        finish_retry(c, r->now_ms, 0, false);
}

static void
claim_free(struct runner *r, struct work_claim *c)
{
    transfer_reset(r->multi, &c->renewal);
    transfer_reset(r->multi, &c->finish);
    work_claim_free(r->mem, c);
}

int64_t
claims_tick(struct runner *r)
{
    int64_t next_ms = INT64_MAX;

    for (struct work_claim **at = &r->claims; *at != NULL;) {
        struct work_claim *c = *at;
        int64_t own_ms = INT64_MAX;

        if (c->open > 0)
            claim_tick(r, c, &own_ms);
        next_ms = earlier(next_ms, own_ms);
        if (c->open > 0) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        claim_free(r, c);
    }
    return next_ms;
}

void
read_renewal_response(struct runner *r, struct work_claim *c)
{
    const struct work_transfer *t = &c->renewal;
    bool failed = claim_needs_retry(r, t);

    if (!failed && t->status < 300 && t->status != 204) { /* the page of a proxy */
        server_failed(r, "the response to a renewal is not understood");
        failed = true;
    }
    if (failed) {
        /* A long Retry-After must not cost the lease. */
        lease_renewal_failed(&c->lease, r->now_ms,
                             earlier(t->retry_after_s * 1000, c->lease.ttl_ms / 12));
    } else if (t->status == 204) {
        server_responded(r);
        lease_renewed(&c->lease);
        for (size_t i = 0; i < c->count; i++)
            (void)process_renew(&c->jobs[i].process, lease_term_ms(&c->lease),
                                lease_kill_ms(&c->lease));
    } else {
        lease_refused(&c->lease);
        if (t->status != 404 && t->status != 409)
            server_refused(r, t, "a renewal");
    }
    transfer_reset(r->multi, &c->renewal);
}

void
read_finish_response(struct runner *r, struct work_claim *c)
{
    const struct work_transfer *t = &c->finish;

    if (claim_needs_retry(r, t)) {
        finish_retry(c, r->now_ms, t->retry_after_s * 1000, true);
    } else if (t->status == 200) {
        if (finish_read(c, buf_view(&t->body), r->now_ms, job_result_known, r)) {
            server_responded(r);
        } else {
            server_failed(r, "the response to a finish request is not understood");
            finish_retry(c, r->now_ms, 0, true);
        }
    } else if (t->status == 404) { /* the claim is over */
        server_responded(r);
        finish_not_held(c, r->now_ms, job_result_known, r);
    } else if (t->status == 409 &&
               finish_without_dead_letters(c, &r->o->backoff, random_u32(r)) > 0) {
        work_log("%.*s has no dead-letter queue (_dead_letter_queue). Messages that "
                 "should go there are released",
                 (int)c->queue.len, c->queue.data);
        finish_retry(c, r->now_ms, -1, false);
    } else {
        server_refused(r, t, "a finish request");
        finish_give_up(c, job_result_known, r);
    }
    transfer_reset(r->multi, &c->finish);
}

/* ------------------------------------------------------------------ claiming */

static void
claim_pause(struct runner *r, int64_t at_least_ms)
{
    r->pause_ms = r->pause_ms == 0 ? PAUSE_MS : earlier(2 * r->pause_ms, PAUSE_MOST_MS);
    at_least_ms = at_least_ms < 0 ? 0 : earlier(at_least_ms, RETRY_AFTER_MOST_MS);
    r->claim_ms = r->now_ms + at_least_ms + 1 + random_u32(r) % r->pause_ms;
}

static void
claim_received(struct runner *r, struct work_transfer *t)
{
    const char *why;
    struct work_claim *c =
        work_claim_read(r->mem, t, r->limit, r->o->lease_s * 1000, &why);
    int64_t next_ms;
    bool late;

    if (c == NULL) {
        server_failed(r, why);
        claim_pause(r, 0);
        return;
    }
    server_responded(r);
    if (!bytes_present(c->jobs[0].details)) {
        work_log("the server does not know finish requests. `claimd work` needs the same "
                 "version of the server");
        work_claim_free(r->mem, c);
        runner_stop(r, COMMAND_FAILED);
        return;
    }
    r->pause_ms = 0;
    r->unconfirmed = false;
    c->next = r->claims;
    r->claims = c;
    late = lease_step(&c->lease, r->now_ms, &next_ms) == LEASE_LOST;
    for (size_t i = 0; i < c->count; i++) {
        struct work_job *j = &c->jobs[i];

        if (r->mode == MODE_RUN && !late && service_takes_jobs(&r->service)) {
            job_start(r, j);
            continue;
        }
        j->outcome.kind = OUTCOME_RELEASE;
        j->state = JOB_ENDED;
    }
}

/*
 * Says it when claims of a queue are paused, and when they are not any more. A message of
 * one of several queues says nothing about the others.
 */
static void
note_pause(struct runner *r, const struct work_transfer *t)
{
    const bool paused = t->paused[0] != '\0';

    if (t->status == 201 && r->o->queue_count > 1)
        return;
    if (paused && !r->claims_paused)
        work_log("claims of a queue are paused. `claimd pause QUEUE --show` names the "
                 "client that paused them");
    else if (r->claims_paused && !paused)
        work_log("claims are resumed");
    r->claims_paused = paused;
}

void
read_claim_response(struct runner *r)
{
    struct work_transfer *t = &r->poll;
    const bool quick = r->now_ms < t->sent_ms + QUICK_MS;

    if (r->poll_end_ms != INT64_MAX && t->status == 0) {
        ; /* it was ended by this process */
    } else if (needs_retry(r, t)) {
        claim_pause(r, t->retry_after_s * 1000);
    } else if (t->status == 201) {
        note_pause(r, t);
        claim_received(r, t);
    } else if (t->status != 204) {
        server_refused(r, t, "a claim");
    } else {
        server_responded(r);
        note_pause(r, t);
        r->empty = r->o->exit_when_empty && !r->ready_since;
        if (quick && !r->empty)
            claim_pause(r, 0); /* the server did not wait */
        else
            r->pause_ms = 0;
    }
    transfer_reset(r->multi, t);
    r->poll_end_ms = INT64_MAX;
}

/* Messages that may be claimed now. */
static size_t
free_slots(const struct runner *r)
{
    int64_t count =
        r->o->batch > 0 ? (int64_t)slots_free(r) : r->o->parallel - (int64_t)r->running;

    if (r->o->max_jobs > 0)
        count = earlier(count, r->o->max_jobs - r->started);
    if (r->mode != MODE_RUN || r->empty || count < 0)
        return 0;
    return (size_t)count < service_limit(&r->service) ? (size_t)count
                                                      : service_limit(&r->service);
}

int64_t
claiming_tick(struct runner *r)
{
    /* A job that never ran does not count, and that is known at its end. */
    const bool all_ran =
        r->o->max_jobs > 0 && r->started >= r->o->max_jobs && r->running == 0;
    size_t slots = free_slots(r), startable;

    if ((r->mode < MODE_DRAIN && all_ran) ||
        (r->mode == MODE_RUN && r->empty && r->claims == NULL))
        mode_enter(r, MODE_DRAIN);
    if (r->poll.handle != NULL) {
        if (r->now_ms < r->poll_end_ms)
            return r->poll_end_ms;
        transfer_reset(r->multi, &r->poll);
        r->poll_end_ms = INT64_MAX;
    }
    if (slots == 0)
        return INT64_MAX;
    if (r->now_ms < r->claim_ms)
        return r->claim_ms;
    if (r->o->command != NULL && r->o->batch == 0 &&
        (startable = guards_limit(&r->guards)) < slots)
        slots = startable;
    if (slots == 0)
        return r->now_ms + SPAWNER_MS;
    r->poll.sent_ms = r->now_ms;
    r->ready_since = false;
    r->limit = slots;
    if (!request_claim(r)) {
        server_failed(r, "out of memory");
        claim_pause(r, 0);
        return r->claim_ms;
    }
    return INT64_MAX;
}

void
claims_end(struct runner *r)
{
    transfer_reset(r->multi, &r->poll);
    while (r->claims != NULL) {
        struct work_claim *c = r->claims;

        r->claims = c->next;
        for (size_t i = 0; i < c->count; i++) {
            process_end(&c->jobs[i].process);
            transfer_reset(r->multi, &c->jobs[i].service);
        }
        finish_give_up(c, job_result_known, r);
        claim_free(r, c);
    }
}
