#include "client/work_claiming.h"

#include "client/work_attempt.h"
#include "client/work_finish.h"
#include "client/work_requests.h"

/* Milliseconds: pauses after failed claims, doubled from the first to the second; a wait that was shorter than QUICK
 * was none. */
enum { PAUSE_MS = 100, PAUSE_MOST_MS = 10000, QUICK_MS = 1000 };

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

/* The result of a job is at claimd, or never will be. */
static void
on_finished(void *ctx, struct work_job *j, enum finish_result result)
{
    struct runner *r = ctx;

    r->empty = false; /* a released message may be ready */
    if (result == FINISH_DONE || j->outcome.kind == OUTCOME_RELEASE)
        return;
    log_job(j, result == FINISH_NOT_HELD
                   ? "its lease ended before the server got the result. It may run again"
                   : "the server did not confirm the result. It may run again");
    if (result == FINISH_UNKNOWN && r->mode >= MODE_STOP && r->status == 0)
        r->status = CLIENT_UNAVAILABLE;
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
            if (!request_renewal(&r->transfers, c, r->server))
                lease_renewal_failed(&c->lease, r->now_ms, 0);
            *next_ms = r->now_ms; /* look again */
            break;
        case LEASE_LOST:
            claim_lost(r, c);
            break;
        case LEASE_KILL:
            break; /* job_tick() does it */
        }
    } else if (c->finish.handle == NULL && lease_ended(&c->lease, r->now_ms)) {
        finish_give_up(c, on_finished, r);
    }
    for (size_t i = 0; i < c->count; i++)
        if (c->jobs[i].state == JOB_RUNNING)
            job_tick(r, &c->jobs[i], next_ms);
    if (finish_is_due(c, r->now_ms, next_ms) &&
        !request_finish(&r->transfers, c, r->server))
        finish_retry(c, r->now_ms, 0, false);
}

static void
claim_free(struct runner *r, struct work_claim *c)
{
    transfer_reset(&r->transfers, &c->renewal);
    transfer_reset(&r->transfers, &c->finish);
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
on_renewal(struct runner *r, struct work_claim *c)
{
    const struct transfer *t = &c->renewal;

    if (needs_retry(r, t)) {
        lease_renewal_failed(&c->lease, r->now_ms, t->retry_after_s * 1000);
    } else if (t->status >= 200 && t->status < 300) {
        server_answered(r);
        lease_renewed(&c->lease);
    } else {
        lease_refused(&c->lease);
        if (t->status != 404 && t->status != 409)
            server_refused(r, t, "a renewal");
    }
    transfer_reset(&r->transfers, &c->renewal);
}

void
on_finish(struct runner *r, struct work_claim *c)
{
    const struct transfer *t = &c->finish;

    if (needs_retry(r, t)) {
        finish_retry(c, r->now_ms, t->retry_after_s * 1000, true);
    } else if (t->status == 200) {
        if (finish_read(c, buf_view(&t->body), r->now_ms, on_finished, r)) {
            server_answered(r);
        } else {
            server_failed(r, "the response to a finish request is not understood");
            finish_retry(c, r->now_ms, 0, true);
        }
    } else if (t->status == 404) { /* the claim is over */
        server_answered(r);
        finish_not_held(c, r->now_ms, on_finished, r);
    } else if (t->status == 409 &&
               finish_without_dead_letters(c, &r->o->backoff, random_u32(r)) > 0) {
        work_log(
            "%.*s has no dead-letter queue (_dead_letter_queue). Messages of jobs with "
            "exit status %d are released",
            (int)c->queue.len, c->queue.data, EXIT_BAD_MESSAGE);
        finish_retry(c, r->now_ms, -1, false);
    } else {
        server_refused(r, t, "a finish request");
        finish_give_up(c, on_finished, r);
    }
    transfer_reset(&r->transfers, &c->finish);
}

/* ------------------------------------------------------------------ claiming */

static void
claim_pause(struct runner *r, int64_t at_least_ms)
{
    r->pause_ms = r->pause_ms == 0 ? PAUSE_MS : earlier(2 * r->pause_ms, PAUSE_MOST_MS);
    if (at_least_ms < 0)
        at_least_ms = 0;
    r->claim_ms = r->now_ms + at_least_ms + 1 + random_u32(r) % r->pause_ms;
}

static void
claim_received(struct runner *r, struct transfer *t)
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
    server_answered(r);
    if (!bytes_present(c->jobs[0].details)) {
        work_log("the server does not know finish requests. `claimd work` needs the same "
                 "version of the server");
        work_claim_free(r->mem, c);
        runner_stop(r, CLIENT_REFUSED);
        return;
    }
    r->pause_ms = 0;
    c->next = r->claims;
    r->claims = c;
    late = lease_step(&c->lease, r->now_ms, &next_ms) == LEASE_LOST;
    for (size_t i = 0; i < c->count; i++) {
        struct work_job *j = &c->jobs[i];

        if (r->mode == MODE_RUN && !late) {
            job_start(r, j);
            continue;
        }
        j->outcome.kind = OUTCOME_RELEASE;
        j->state = JOB_ENDED;
    }
}

void
on_claim(struct runner *r)
{
    struct transfer *t = &r->poll;
    const bool quick = r->now_ms < t->sent_ms + QUICK_MS;

    if (r->poll_end_ms != INT64_MAX && t->status == 0) {
        ; /* it was ended by this process */
    } else if (needs_retry(r, t)) {
        claim_pause(r, t->retry_after_s * 1000);
    } else if (t->status == 201) {
        claim_received(r, t);
    } else if (t->status != 204) {
        server_refused(r, t, "a claim");
    } else {
        server_answered(r);
        r->empty = r->o->exit_when_empty;
        if (quick && !r->empty)
            claim_pause(r, 0); /* the server did not wait */
        else
            r->pause_ms = 0;
    }
    transfer_reset(&r->transfers, t);
    r->poll_end_ms = INT64_MAX;
}

/* Messages that may be claimed now. */
static size_t
free_slots(const struct runner *r)
{
    int64_t count = r->o->parallel - (int64_t)r->running;

    if (r->o->max_jobs > 0)
        count = earlier(count, r->o->max_jobs - r->started);
    return r->mode != MODE_RUN || r->empty || count < 0 ? 0 : (size_t)count;
}

int64_t
claiming_tick(struct runner *r)
{
    const size_t slots = free_slots(r);

    if (r->mode == MODE_RUN && ((r->o->max_jobs > 0 && r->started >= r->o->max_jobs) ||
                                (r->empty && r->claims == NULL)))
        mode_enter(r, MODE_DRAIN);
    if (r->poll.handle != NULL) {
        if (r->now_ms < r->poll_end_ms)
            return r->poll_end_ms;
        transfer_reset(&r->transfers, &r->poll);
        r->poll_end_ms = INT64_MAX;
    }
    if (slots == 0)
        return INT64_MAX;
    if (r->now_ms < r->claim_ms)
        return r->claim_ms;
    r->poll.sent_ms = r->now_ms;
    r->limit = slots;
    if (!request_claim(&r->transfers, &r->poll, r->server, r->o, slots,
                       !r->o->exit_when_empty)) {
        server_failed(r, "out of memory");
        claim_pause(r, 0);
        return r->claim_ms;
    }
    return INT64_MAX;
}

void
claims_end(struct runner *r)
{
    transfer_reset(&r->transfers, &r->poll);
    while (r->claims != NULL) {
        struct work_claim *c = r->claims;

        r->claims = c->next;
        for (size_t i = 0; i < c->count; i++) {
            process_end(&c->jobs[i].process);
            transfer_reset(&r->transfers, &c->jobs[i].service);
        }
        finish_give_up(c, on_finished, r);
        claim_free(r, c);
    }
}
