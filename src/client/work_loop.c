#include "client/work_loop.h"

#include "claimd/base/entropy.h"
#include "claimd/base/supervisor.h"
#include "claimd/json/scan.h"
#include "client/client.h"
#include "client/work_claim.h"
#include "client/work_finish.h"
#include "client/work_requests.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Milliseconds: pauses after failed claims, doubled from the first to the second; a wait that was shorter
 * than QUICK was none; SIGTERM to SIGKILL of a job; until a half-closed long poll must have responded; for the
 * last requests. */
enum {
    PAUSE_MS = 100,
    PAUSE_MOST_MS = 10000,
    QUICK_MS = 1000,
    TIMEOUT_KILL_MS = 5000,
    STOP_KILL_MS = 2000,
    POLL_END_MS = 1000,
    LAST_MS = 3000
};

enum mode { MODE_RUN, MODE_QUIET, MODE_DRAIN, MODE_STOP, MODE_HURRY };

struct runner {
    const struct work_options *o;
    const struct client *server;
    struct mem *mem;
    struct entropy entropy;
    struct supervisor supervisor;
    struct transfers transfers;
    struct transfer poll; /* the request that claims */
    size_t limit;         /* of that request */
    struct work_claim *claims;
    size_t running;  /* jobs */
    int64_t started; /* jobs, over all */
    enum mode mode;
    int status;          /* exit status */
    int64_t now_ms;      /* of this round */
    int64_t stopped_ms;  /* STOP: since then */
    int64_t stop_ms;     /* STOP: running jobs are ended */
    int64_t end_ms;      /* STOP, HURRY: the loop ends in any case */
    int64_t poll_end_ms; /* of a long poll that was told to end; INT64_MAX: was not */
    int64_t claim_ms;    /* no claim before */
    int64_t pause_ms;    /* the last pause before a claim; 0: none */
    bool empty; /* --exit-when-empty: nothing was ready, and no job has ended since */
    int64_t away_ms;     /* the server does not work since then; -1: it works */
    sigset_t before;     /* signal mask of the commands */
    int signals;         /* signalfd */
    bool stderr_blocked; /* a write to standard error would block */
};

static void __attribute__((format(printf, 1, 2))) work_log(const char *format, ...)
{
    char line[1024];
    va_list args;
    int len, n;

    va_start(args, format);
    n = snprintf(line, sizeof(line), "claimd work: ");
    len = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
    va_end(args);
    if (len < 0)
        return;
    len += n;
    if ((size_t)len > sizeof(line) - 2)
        len = sizeof(line) - 2;
    for (int i = 0; i < len; i++)
        if (iscntrl((unsigned char)line[i]))
            line[i] = ' ';
    line[len] = '\n';
    /* The loop must not wait for the reader of the log, because the leases run on. */
    if (stderr_is_writable() && write(STDERR_FILENO, line, (size_t)len + 1) < 0)
        return;
}

/* Milliseconds of the clock of leases: it runs on while the system is suspended. */
static int64_t
now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static uint32_t
random_u32(struct runner *r)
{
    uint32_t value = 0;

    if (entropy_reserve(&r->entropy, sizeof(value)) == ST_OK)
        entropy_take(&r->entropy, &value, sizeof(value));
    return value;
}

static int64_t
earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ------------------------------------------------------------------ modes */

static void
report_state(struct runner *r, const char *assignment)
{
    static const char *const modes[] = {"working", "quiet", "draining", "stopping",
                                        "stopping"};

    (void)supervisor_notify(&r->supervisor, assignment, "%s%s", modes[r->mode],
                            r->away_ms >= 0 ? ", the server is away" : "");
}

/* Ends the request that claims. claimd responds at once if only the sending half is closed, so that no claim is made
 * that this process never sees. */
static void
poll_end(struct runner *r)
{
    if (r->poll.handle == NULL || r->poll_end_ms != INT64_MAX)
        return;
    if (transfer_end_waiting(&r->poll))
        r->poll_end_ms = r->now_ms + POLL_END_MS;
    else
        transfer_reset(&r->transfers, &r->poll);
}

static void
mode_enter(struct runner *r, enum mode mode)
{
    if (r->mode >= mode)
        return;
    r->mode = mode;
    poll_end(r);
    report_state(r, mode >= MODE_STOP ? "STOPPING=1" : NULL);
}

/* Ends the runner with this status. */
static void
runner_stop(struct runner *r, int status)
{
    if (r->mode >= MODE_STOP)
        return;
    r->status = status;
    r->stop_ms = r->now_ms + r->o->grace_s * 1000;
    r->end_ms = r->stop_ms + STOP_KILL_MS + LAST_MS;
    mode_enter(r, MODE_STOP);
}

static void
runner_hurry(struct runner *r)
{
    mode_enter(r, MODE_HURRY);
    r->stop_ms = r->now_ms;
    r->end_ms = r->now_ms + LAST_MS;
    transfer_reset(&r->transfers, &r->poll);
}

/* ------------------------------------------------------------------ the server */

static void
server_answered(struct runner *r)
{
    if (r->away_ms < 0)
        return;
    work_log("the server responds again after %lld s",
             (long long)(r->now_ms - r->away_ms) / 1000);
    r->away_ms = -1;
    report_state(r, NULL);
}

/* Text of a problem document, or of the error without response. */
static void
describe_failure(const struct transfer *t, char *out, size_t cap)
{
    const struct bytes body = buf_view(&t->body);
    const struct json_scan_value value = json_member(body, "description");
    const struct bytes text =
        value.kind == SCAN_STRING ? json_scan_inside(&value) : BYTES_NONE;

    if (t->status == 0)
        (void)snprintf(out, cap, "%s", t->error);
    else
        (void)snprintf(out, cap, "HTTP status %ld%s%.*s", t->status,
                       text.len > 0 ? ": " : "", (int)text.len, text.data);
}

static void
server_failed(struct runner *r, const char *why)
{
    if (r->away_ms >= 0)
        return;
    r->away_ms = r->now_ms;
    work_log("waiting for the server: %s", why);
    report_state(r, NULL);
}

/*
 * Looks at the status of a response. True: a retry may help, and server_failed() was called. False: it is a response to
 * the request. Then call server_answered() if it is understood.
 */
static bool
needs_retry(struct runner *r, const struct transfer *t)
{
    char why[512];

    if (t->status != 0 && t->status < 500 && t->status != HTTP_TOO_MANY)
        return false;
    describe_failure(t, why, sizeof(why));
    server_failed(r, why);
    return true;
}

/* The server refuses a request for good. */
static void
server_refused(struct runner *r, const struct transfer *t, const char *what)
{
    char why[512];

    server_answered(r);
    describe_failure(t, why, sizeof(why));
    work_log("the server refuses %s: %s", what, why);
    runner_stop(r, CLIENT_REFUSED);
}

/* ------------------------------------------------------------------ jobs */

static void
log_outcome(const struct work_job *j)
{
    const struct outcome *o = &j->outcome;
    const struct work_claim *c = j->claim;
    const char *next = o->kind == OUTCOME_DEAD_LETTER ? "dead-lettered" : "released";

    if (o->kind == OUTCOME_RETRY)
        work_log(
            "job %.*s of %.*s failed in attempt %lld: %s. The next attempt is in %lld s",
            (int)j->id.len, j->id.data, (int)c->queue.len, c->queue.data,
            (long long)j->attempt, o->what, (long long)o->delay_s);
    else if (o->kind != OUTCOME_DELETE)
        work_log("job %.*s of %.*s is %s in attempt %lld: %s", (int)j->id.len, j->id.data,
                 (int)c->queue.len, c->queue.data, next, (long long)j->attempt, o->what);
}

static void
log_job(const struct work_job *j, const char *what)
{
    work_log("job %.*s of %.*s, attempt %lld: %s", (int)j->id.len, j->id.data,
             (int)j->claim->queue.len, j->claim->queue.data, (long long)j->attempt, what);
}

/* A job that is RUNNING has ended, and its outcome is set, unless its lease is lost. */
static void
job_ended(struct runner *r, struct work_job *j)
{
    r->running--;
    r->empty = false;
    if (j->stop == STOP_LOST) {
        log_job(j, "ended, because the lease is lost");
        j->state = JOB_DONE;
        j->claim->open--;
        return;
    }
    j->state = JOB_ENDED;
    log_outcome(j);
    if (j->outcome.kind == OUTCOME_BROKEN)
        runner_stop(r, CLIENT_UNAVAILABLE);
}

static struct attempt
attempt_of(struct runner *r, const struct work_job *j)
{
    return (struct attempt){.number = j->attempt,
                            .random = random_u32(r),
                            .stop = j->stop,
                            .timeout_s = r->o->timeout_s,
                            .backoff = &r->o->backoff};
}

static void
command_ended(struct runner *r, struct work_job *j)
{
    const struct attempt a = attempt_of(r, j);

    process_end(&j->process);
    outcome_of_command(&j->outcome, &a, j->process.status,
                       bytes_of(j->process.tail, j->process.tail_len));
    job_ended(r, j);
}

static void
service_ended(struct runner *r, struct work_job *j)
{
    const struct attempt a = attempt_of(r, j);
    const struct transfer *t = &j->service;

    outcome_of_request(&j->outcome, &a, t->status, t->retry_after_s,
                       t->status == 0 ? bytes_str(t->error) : buf_view(&t->body));
    transfer_reset(&r->transfers, &j->service);
    job_ended(r, j);
}

/* Starts the end of a running job: SIGTERM now, SIGKILL after a time. A request to a service ends at once. */
static void
job_stop(struct runner *r, struct work_job *j, enum attempt_stop why, int64_t kill_ms)
{
    j->stop = why;
    j->timeout_ms = INT64_MAX;
    j->kill_ms = earlier(j->kill_ms, kill_ms);
    if (r->o->service != NULL) {
        transfer_reset(&r->transfers, &j->service);
        service_ended(r, j);
    } else {
        process_signal(&j->process, SIGTERM);
        process_signal(&j->process, SIGCONT); /* a stopped command could not end */
    }
}

static int
command_start(struct runner *r, struct work_job *j, int64_t deadline_s)
{
    struct process_start start = {.command = r->o->command, .signals = &r->before};
    struct buf text, metadata;
    char **environment = job_environment(r->mem, j, deadline_s);
    int error = ENOMEM;

    buf_init(&text, r->mem);
    buf_init(&metadata, r->mem);
    job_metadata_write(&metadata, j, deadline_s);
    start.input = job_input(j, r->o->raw, &text);
    start.metadata = buf_view(&metadata);
    start.environment = environment;
    if (environment != NULL && !text.failed && !metadata.failed)
        error = process_start(&j->process, &start);
    mem_free(r->mem, environment);
    buf_fini(&metadata);
    buf_fini(&text);
    return error;
}

/* Starts a job, or ends it at once if that is impossible. */
static void
job_start(struct runner *r, struct work_job *j)
{
    int64_t deadline_s = 0;
    int error = 0;

    r->running++;
    r->started++;
    if (r->o->timeout_s > 0) {
        j->timeout_ms = r->now_ms + r->o->timeout_s * 1000;
        deadline_s = (int64_t)time(NULL) + r->o->timeout_s;
    }
    if (r->o->command != NULL)
        error = command_start(r, j, deadline_s);
    else if (!request_service(&r->transfers, j, r->o))
        error = ENOMEM;
    if (error == 0)
        return;
    j->outcome.kind = OUTCOME_BROKEN;
    (void)snprintf(j->outcome.what, sizeof(j->outcome.what), "cannot start: %s",
                   strerror(error));
    job_ended(r, j);
}

/* Does what is due for a running job. */
static void
job_tick(struct runner *r, struct work_job *j, int64_t *next_ms)
{
    if (r->o->command != NULL && j->process.pid == 0 &&
        (process_is_read(&j->process) || j->stop == STOP_LOST || r->mode == MODE_HURRY)) {
        command_ended(r, j);
        return;
    }
    if (j->stop == STOP_NONE && r->mode >= MODE_STOP && r->now_ms >= r->stop_ms)
        job_stop(r, j, STOP_RUNNER,
                 r->now_ms + (r->mode == MODE_HURRY ? 0 : STOP_KILL_MS));
    else if (j->stop == STOP_NONE && r->now_ms >= j->timeout_ms)
        job_stop(r, j, STOP_TIMEOUT, r->now_ms + TIMEOUT_KILL_MS);
    if (j->state != JOB_RUNNING)
        return;
    if (r->mode == MODE_HURRY || r->now_ms >= j->kill_ms) {
        process_signal(&j->process, SIGKILL);
        j->kill_ms = INT64_MAX;
    }
    if (r->mode >= MODE_STOP && j->stop == STOP_NONE)
        *next_ms = earlier(*next_ms, r->stop_ms);
    *next_ms = earlier(*next_ms, earlier(j->timeout_ms, j->kill_ms));
}

/* ------------------------------------------------------------------ claims */

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

/* Does what is due for all claims, and frees those that are over. Returns the time of the next call. */
static int64_t
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
        transfer_reset(&r->transfers, &c->renewal);
        transfer_reset(&r->transfers, &c->finish);
        work_claim_free(r->mem, c);
    }
    return next_ms;
}

static void
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
            server_refused(r, t, "to renew a claim");
    }
    transfer_reset(&r->transfers, &c->renewal);
}

static void
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
        server_refused(r, t, "to finish jobs");
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

static void
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
        server_refused(r, t, "to claim messages");
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

/* Claims if there are free slots, and ends the runner if it has done all that it should. */
static int64_t
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

/* ------------------------------------------------------------------ signals */

enum { SIGNALS_APART_MS = 100 };

static bool
signals_open(struct runner *r)
{
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGUSR1};
    struct sigaction hangup;
    sigset_t set;

    /* The parent may have set SIGCHLD to be ignored. */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        (void)sigaddset(&set, numbers[i]);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) /* nohup */
        (void)sigaddset(&set, SIGHUP);
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    (void)sigaddset(&set, SIGPIPE); /* standard error may have no reader */
    return r->signals >= 0 && sigprocmask(SIG_BLOCK, &set, &r->before) == 0;
}

static struct work_job *
job_of_process(struct runner *r, pid_t pid)
{
    for (struct work_claim *c = r->claims; c != NULL; c = c->next)
        for (size_t i = 0; i < c->count; i++)
            if (c->jobs[i].process.pid == pid)
                return &c->jobs[i];
    return NULL;
}

/* Takes the ends of commands, and of processes that this one inherited as PID 1. */
static void
children_reap(struct runner *r)
{
    siginfo_t info = {.si_pid = 0};

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0) {
        struct work_job *j = job_of_process(r, info.si_pid);

        if (j != NULL)
            process_reap(&j->process); /* job_tick() does the rest */
        else
            (void)waitpid(info.si_pid, NULL, 0);
        info.si_pid = 0;
    }
}

static void
signals_read(struct runner *r)
{
    struct signalfd_siginfo info;

    while (read(r->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGCHLD)
            continue; /* the others of the same number may be lost */
        if (info.ssi_signo == SIGUSR1) {
            mode_enter(r, MODE_QUIET);
        } else if (r->mode < MODE_STOP) {
            r->stopped_ms = r->now_ms;
            runner_stop(r, EXIT_SUCCESS);
        } else if (r->now_ms >= r->stopped_ms + SIGNALS_APART_MS) {
            runner_hurry(r); /* timeout(1) signals a process and then its group */
        }
    }
    children_reap(r);
}

/* ------------------------------------------------------------------ the loop */

/* Descriptors besides those of libcurl: the signals, and the standard errors of commands, or that of this process
 * while it cannot take more. */
static unsigned
descriptors_list(const struct runner *r, struct curl_waitfd *fds)
{
    unsigned count = 0;

    fds[count++] = (struct curl_waitfd){.fd = r->signals, .events = CURL_WAIT_POLLIN};
    if (r->stderr_blocked) {
        fds[count++] =
            (struct curl_waitfd){.fd = STDERR_FILENO, .events = CURL_WAIT_POLLOUT};
        return count;
    }
    for (const struct work_claim *c = r->claims; c != NULL; c = c->next)
        for (size_t i = 0; i < c->count; i++)
            if (c->jobs[i].process.errors >= 0)
                fds[count++] = (struct curl_waitfd){.fd = c->jobs[i].process.errors,
                                                    .events = CURL_WAIT_POLLIN};
    return count;
}

/* Passes on what commands have written to standard error, a part of each in turn. fds: as descriptors_list() listed
 * them, with events. */
static void
errors_pass_on(struct runner *r, const struct curl_waitfd *fds)
{
    if (r->stderr_blocked) {
        r->stderr_blocked = !stderr_is_writable();
        return;
    }
    fds++; /* the signals */
    for (struct work_claim *c = r->claims; c != NULL; c = c->next)
        for (size_t i = 0; i < c->count; i++) {
            if (c->jobs[i].process.errors < 0 || fds++->revents == 0)
                continue;
            r->stderr_blocked = !stderr_is_writable();
            if (r->stderr_blocked)
                return;
            process_read_errors(&c->jobs[i].process);
        }
}

/* Goes on with all transfers. False: none has ended. */
static bool
transfers_read(struct runner *r)
{
    struct transfer *t;
    bool any = false;

    transfers_perform(&r->transfers);
    for (; (t = transfers_next(&r->transfers)) != NULL; any = true) {
        switch (t->use) {
        case TRANSFER_CLAIM:
            on_claim(r);
            break;
        case TRANSFER_RENEWAL:
            on_renewal(r, t->owner);
            break;
        case TRANSFER_FINISH:
            on_finish(r, t->owner);
            break;
        case TRANSFER_SERVICE:
            service_ended(r, t->owner);
            break;
        }
    }
    return any;
}

/* Gives up a server that is away for too long. Returns the time of the next check. */
static int64_t
give_up_tick(struct runner *r)
{
    const int64_t end_ms = r->away_ms + r->o->give_up_s * 1000;

    if (r->o->give_up_s == 0 || r->away_ms < 0 || r->mode >= MODE_STOP)
        return INT64_MAX;
    if (r->now_ms < end_ms)
        return end_ms;
    work_log("giving up, because the server is away for %lld s",
             (long long)r->o->give_up_s);
    runner_stop(r, CLIENT_UNAVAILABLE);
    return r->now_ms;
}

static bool
is_over(const struct runner *r)
{
    return r->mode >= MODE_DRAIN && r->poll.handle == NULL && r->claims == NULL;
}

static void
runner_loop(struct runner *r, struct curl_waitfd *fds)
{
    for (;;) {
        int64_t next_ms;

        r->now_ms = now_ms();
        signals_read(r);
        next_ms = give_up_tick(r);
        next_ms = earlier(next_ms, claims_tick(r));
        next_ms = earlier(next_ms, claiming_tick(r));
        if (is_over(r))
            return;
        if (r->mode >= MODE_STOP) {
            if (r->now_ms >= r->end_ms)
                return;
            next_ms = earlier(next_ms, r->end_ms);
        }
        if (transfers_read(r))
            continue;
        next_ms = next_ms < r->now_ms ? 0 : next_ms - r->now_ms;
        (void)curl_multi_poll(r->transfers.multi, fds, descriptors_list(r, fds),
                              (int)earlier(next_ms, INT_MAX), NULL);
        errors_pass_on(r, fds);
    }
}

/* Ends what is left after the loop. */
static void
runner_fini(struct runner *r)
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
        transfer_reset(&r->transfers, &c->renewal);
        transfer_reset(&r->transfers, &c->finish);
        work_claim_free(r->mem, c);
    }
    transfers_fini(&r->transfers);
    if (r->signals >= 0)
        (void)close(r->signals);
}

int
work_run(const struct work_options *o, const struct client *server)
{
    struct runner r = {.o = o,
                       .server = server,
                       .mem = mem_new(0),
                       .now_ms = now_ms(),
                       .poll_end_ms = INT64_MAX,
                       .away_ms = -1,
                       .signals = -1};
    struct curl_waitfd *fds = calloc((size_t)o->parallel + 1, sizeof(*fds));

    entropy_init_system(&r.entropy);
    supervisor_init(&r.supervisor, getenv("NOTIFY_SOCKET"));
    if (r.mem == NULL || fds == NULL || !process_reserve_descriptors() ||
        !transfers_init(&r.transfers, r.mem) || !signals_open(&r)) {
        work_log("cannot start: %s", strerror(errno));
        r.status = CLIENT_REFUSED;
    } else {
        transfer_init(&r.poll, r.mem, TRANSFER_CLAIM, NULL);
        report_state(&r, "READY=1");
        runner_loop(&r, fds);
    }
    if (r.transfers.multi != NULL)
        runner_fini(&r);
    free(fds);
    mem_destroy(r.mem);
    return r.status;
}
