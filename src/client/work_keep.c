/*
 * The kept commands of a runner (--keep): gives jobs to the slots, takes the responses,
 * and ends and starts processes. work_runner.h declares it. Read work_slot.h and
 * work_line.h before this.
 */
#include "client/work_runner.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

/* Processes in a row that end without a response, before any has had one. */
enum { DEATHS_MOST = 5 };

/*
 * Milliseconds: pauses after a process that ended without a response, doubled from the
 * first to the second; until a process that has closed its input or output must be over;
 * from SIGTERM to SIGKILL after a fault; until a busy spawner or guard may read again.
 */
enum {
    PAUSE_MS = 100,
    PAUSE_MOST_MS = 10000,
    CLOSED_MS = 1000,
    FAULT_KILL_MS = 5000,
    BUSY_MS = 20
};

/* Bytes that are read from a process that is over. One of another user may go on. */
enum { LAST_MOST = 1 << 20 };

enum { POLL_OUTPUT = 1, POLL_INPUT = 2, POLL_ERRORS = 4 };

bool
slots_open(struct runner *r)
{
    if (r->o->batch == 0)
        return true;
    r->slots = mem_calloc(r->mem, (size_t)r->o->parallel, sizeof(r->slots[0]));
    for (int64_t i = 0; r->slots != NULL && i < r->o->parallel; i++)
        slot_init(&r->slots[i], r->mem);
    return r->slots != NULL;
}

void
slots_close(struct runner *r)
{
    for (int64_t i = 0; r->slots != NULL && i < r->o->parallel; i++)
        slot_fini(&r->slots[i]);
    mem_free(r->mem, r->slots);
    r->slots = NULL;
}

/* ------------------------------------------------------------------ jobs */

/* True if the slot takes messages now. */
static bool
slot_takes(const struct runner *r, const struct work_slot *s)
{
    return s->state == SLOT_RUNS || (s->state == SLOT_EMPTY && r->now_ms >= s->start_ms);
}

size_t
slots_free(const struct runner *r)
{
    size_t count = 0;

    for (int64_t i = 0; i < r->o->parallel; i++)
        if (slot_takes(r, &r->slots[i]))
            count += (size_t)r->o->batch - r->slots[i].count;
    return count;
}

/* True if a job should go to `a` rather than to `b`. */
static bool
slot_is_better(const struct runner *r, const struct work_slot *a,
               const struct work_slot *b)
{
    if (slot_takes(r, a) != slot_takes(r, b))
        return slot_takes(r, a);
    if (a->count != b->count)
        return a->count < b->count;
    return a->state == SLOT_RUNS && b->state != SLOT_RUNS;
}

void
kept_start(struct runner *r, struct work_job *j)
{
    struct work_slot *best = NULL;

    for (int64_t i = 0; i < r->o->parallel; i++) {
        struct work_slot *s = &r->slots[i];

        if (s->count < (size_t)r->o->batch &&
            (best == NULL || slot_is_better(r, s, best)))
            best = s;
    }
    slot_add(best, j); /* not more are claimed than fit into all slots */
    /* Only a valid response, or the end of a process that has the line, changes this. */
    j->outcome.kind = OUTCOME_RELEASE;
}

/* The job leaves its slot, and has ended. Its outcome is set. */
static void
kept_ended(struct runner *r, struct work_job *j)
{
    slot_remove(j->slot, j);
    job_ended(r, j);
}

/* Ends the process of a slot, which takes no more messages. */
static void
slot_stop(struct work_slot *s, int64_t kill_ms)
{
    s->state = SLOT_ENDS;
    process_stop(&s->process, kill_ms);
}

void
kept_stop(struct runner *r, struct work_job *j, int64_t kill_ms)
{
    struct work_slot *s = j->slot;

    if (!j->sent) {
        kept_ended(r, j);
        return;
    }
    s->blameless = true;
    slot_stop(s, kill_ms);
}

/* ------------------------------------------------------------------ responses */

/* The process has broken the protocol: ends it, with all messages that it has. */
static void
slot_fail(struct runner *r, struct work_slot *s, const char *fault, struct bytes more)
{
    more = line_sample(more);
    if (s->fault[0] == '\0') {
        (void)snprintf(s->fault, sizeof(s->fault), "%s", fault);
        if (more.len > 0)
            memcpy(s->sample, more.data, more.len);
        s->sample_len = more.len;
    }
    work_log("ending a process of the command: %s%s%.*s", fault, more.len > 0 ? ": " : "",
             (int)more.len, more.data);
    slot_stop(s, r->now_ms + FAULT_KILL_MS);
}

static void
slot_fail_line(struct runner *r, struct work_slot *s, const char *fault,
               struct bytes line)
{
    char what[WHAT_MOST + 1];

    line_describe(what, fault);
    slot_fail(r, s, what, line);
}

/* Takes one line of a process. */
static void
slot_respond(struct runner *r, struct work_slot *s, struct bytes line)
{
    struct work_line l;
    struct work_job *j;
    struct job_attempt a;

    line_read(&l, line);
    j = bytes_present(l.id) ? slot_find(s, l.id) : NULL;
    if (j == NULL && bytes_present(l.id) && slot_has_answered(s, l.id)) {
        work_log("the command has responded for %.*s again, which is ignored",
                 (int)l.id.len, l.id.data);
        return;
    }
    if (j == NULL) {
        slot_fail_line(r, s,
                       bytes_present(l.id) ? "the process has no message with this id"
                                           : l.fault,
                       line);
        return;
    }
    if (j->stop == STOP_TIMEOUT || j->stop == STOP_LOST)
        return; /* too late */
    slot_remember(s, l.id);
    if (l.fault == NULL) {
        s->responses++;
        r->deaths = 0;
        r->service.worked = true;
    }
    a = attempt_of(r, j);
    outcome_of_line(&j->outcome, &a, &l, line);
    kept_ended(r, j);
}

/* Reads from the process once, and takes all lines. False: there was nothing. */
static bool
slot_take_lines(struct runner *r, struct work_slot *s)
{
    const int n = slot_read(s);
    struct bytes line;
    size_t taken = 0;

    if (n < 0 && s->closed_ms == INT64_MAX)
        s->closed_ms = r->now_ms + CLOSED_MS;
    if (n <= 0)
        return false;
    while (s->fault[0] == '\0' && slot_next_line(s, &taken, &line))
        slot_respond(r, s, line);
    if (s->fault[0] != '\0')
        (void)slot_drop(s, s->read_len); /* after a fault nothing is valid */
    else if (!slot_drop(s, taken))
        slot_fail_line(r, s, "the line is longer than 65536 bytes",
                       bytes_of(s->read, s->read_len));
    return true;
}

/* ------------------------------------------------------------------ the end */

/* The command cannot work. The messages that it has are released, and do not count. */
static void
command_is_broken(struct runner *r, struct work_slot *s, const char *why)
{
    work_log("the command is broken: %s", why);
    while (s->count > 0)
        kept_ended(r, s->jobs[0]);
    runner_stop(r, COMMAND_UNAVAILABLE);
}

/* Notes the end of a process. True: the command is broken, and *why says why. */
static bool
slot_is_broken(struct runner *r, struct work_slot *s, char why[2 * WHAT_MOST])
{
    const struct guard_report *report = &s->process.report;
    const int code = WIFEXITED(report->status) ? WEXITSTATUS(report->status) : -1;
    char what[WHAT_MOST + 1];

    if (s->blameless || s->process.untaken)
        return false;
    if (report->error != 0) {
        (void)snprintf(why, 2 * WHAT_MOST, "cannot start: %s", strerror(report->error));
        return true;
    }
    (void)status_describe(what, report->status);
    if (s->fault[0] != '\0')
        (void)snprintf(what, sizeof(what), "%.*s", WHAT_MOST, s->fault);
    (void)snprintf(why, 2 * WHAT_MOST, "%s", what);
    if (s->fault[0] == '\0' && (code == EXIT_CANNOT_RUN || code == EXIT_NOT_FOUND))
        return true;
    if (s->responses == 0)
        r->deaths++;
    (void)snprintf(
        why, 2 * WHAT_MOST,
        "%d processes in a row ended without a valid response. The last one: %s",
        r->deaths, what);
    return !r->service.worked && r->deaths >= DEATHS_MOST;
}

/* Says how the messages that a process still had have ended. */
static void
slot_fail_jobs(struct runner *r, struct work_slot *s)
{
    const struct bytes text = s->fault[0] != '\0'
                                  ? bytes_of(s->sample, s->sample_len)
                                  : bytes_of(s->process.tail, s->process.tail_len);

    while (s->sent > 0) {
        struct work_job *j = s->jobs[0];
        struct job_attempt a;

        if (s->process.report.lease_ended && j->stop == STOP_NONE)
            j->stop = STOP_LOST; /* even if a late response renewed the lease */
        a = attempt_of(r, j);
        if (!s->blameless || j->stop != STOP_NONE) /* else another message is the cause */
            outcome_of_kept(&j->outcome, &a, s->process.report.status, s->fault, text);
        kept_ended(r, j);
    }
}

/* The process of a slot is over. */
static void
slot_ended(struct runner *r, struct work_slot *s)
{
    char why[2 * WHAT_MOST];

    s->blameless |= s->process.report.lease_ended;
    if (s->process.report.foreign)
        work_log(
            "processes of other users run on, because this process may not end them");
    slot_take_back(s);
    if (s->responses > 0 || s->blameless)
        s->pause_ms = 0;
    else
        s->pause_ms =
            s->pause_ms == 0 ? PAUSE_MS : earlier(2 * s->pause_ms, PAUSE_MOST_MS);
    s->start_ms = r->now_ms + s->pause_ms;
    if (slot_is_broken(r, s, why))
        command_is_broken(r, s, why);
    else
        slot_fail_jobs(r, s);
    slot_clear(s);
}

/* True if all was read that a process that is over has written. */
static bool
slot_is_read(struct runner *r, struct work_slot *s)
{
    for (size_t len = 0; len < LAST_MOST; len += LINE_MOST)
        if (!slot_take_lines(r, s))
            break;
    return process_is_read(&s->process) || r->mode == MODE_HURRY;
}

/* ------------------------------------------------------------------ the process */

static void
slot_start(struct runner *r, struct work_slot *s, int64_t *next_ms)
{
    struct process_start start = {.term_ms = INT64_MAX, .kill_ms = INT64_MAX};
    char queue[sizeof("CLAIMD_QUEUE=") + 64], why[WHAT_MOST];
    int error;

    if (r->o->queue_count == 1) {
        const int len =
            snprintf(queue, sizeof(queue), "CLAIMD_QUEUE=%s", r->o->queues[0]);

        start.variables = bytes_of(queue, (size_t)len + 1);
    }
    error = process_start(&s->process, &r->guards, &start);
    if (error == 0) {
        s->state = SLOT_RUNS;
    } else if (error == EBUSY) {
        *next_ms = earlier(*next_ms, r->now_ms + BUSY_MS);
    } else {
        (void)snprintf(why, sizeof(why), "cannot start: %s", strerror(error));
        command_is_broken(r, s, why);
    }
}

/*
 * Tells the guard the lease of which the end is next, of all messages that were sent.
 * Later ends can wait, because each order costs a message to the guard.
 */
static void
slot_renew(struct runner *r, struct work_slot *s, int64_t *next_ms)
{
    int64_t term_ms = INT64_MAX, kill_ms = INT64_MAX, due_ms;

    for (size_t i = 0; i < s->sent; i++) {
        term_ms = earlier(term_ms, lease_term_ms(&s->jobs[i]->claim->lease));
        kill_ms = earlier(kill_ms, lease_kill_ms(&s->jobs[i]->claim->lease));
    }
    if (term_ms <= s->term_ms)
        return;
    due_ms = s->term_ms - r->o->lease_s * 1000 / 2;
    if (r->now_ms >= due_ms && process_renew(&s->process, term_ms, kill_ms)) {
        s->term_ms = term_ms;
        s->kill_ms = kill_ms;
        return;
    }
    *next_ms = earlier(*next_ms, r->now_ms < due_ms ? due_ms : r->now_ms + BUSY_MS);
}

/*
 * Makes the guard end the process before this lease ends, if this runner does not run.
 * False: the guard does not read now, so the message must not be sent.
 */
static bool
slot_bind(struct work_slot *s, const struct work_lease *l)
{
    if (s->term_ms <= lease_term_ms(l))
        return true;
    if (!process_renew(&s->process, lease_term_ms(l), lease_kill_ms(l)))
        return false;
    s->term_ms = lease_term_ms(l);
    s->kill_ms = lease_kill_ms(l);
    return true;
}

/* Sends the messages that wait, as far as the process takes them. */
static void
slot_feed(struct runner *r, struct work_slot *s, int64_t *next_ms)
{
    while (r->mode < MODE_STOP && slot_has_next(s)) {
        struct work_job *j = s->jobs[s->sent];
        const int64_t timeout_s = r->o->timeout_s;

        if (!slot_bind(s, &j->claim->lease)) {
            *next_ms = earlier(*next_ms, r->now_ms + BUSY_MS);
            break;
        }
        if (timeout_s > 0)
            j->timeout_ms = r->now_ms + timeout_s * 1000;
        if (!slot_write(s, timeout_s > 0 ? (int64_t)time(NULL) + timeout_s : 0)) {
            work_log("ending a process of the command: out of memory");
            s->blameless = true;
            slot_stop(s, r->now_ms);
            return;
        }
    }
    if (!slot_send(s) && s->closed_ms == INT64_MAX)
        s->closed_ms = r->now_ms + CLOSED_MS;
}

/* Ends a process that has nothing to do any more, or that does not read or write. */
static void
slot_end_tick(struct runner *r, struct work_slot *s, int64_t *next_ms)
{
    if (s->state == SLOT_RUNS && r->mode >= MODE_DRAIN && s->count == 0) {
        s->state = SLOT_ENDS;
        s->blameless = true;
        s->end_ms = r->now_ms + r->o->grace_s * 1000;
        process_end_input(&s->process);
    }
    if (s->state == SLOT_RUNS && r->now_ms >= s->closed_ms)
        slot_fail(r, s, "the command has closed its standard input or output",
                  BYTES_NONE);
    if (s->state == SLOT_RUNS)
        *next_ms = earlier(*next_ms, s->closed_ms);
    if (r->mode == MODE_HURRY)
        process_stop(&s->process, r->now_ms);
    if (s->end_ms == INT64_MAX)
        return;
    if (r->mode >= MODE_STOP)
        s->end_ms = earlier(s->end_ms, r->stop_ms);
    if (r->now_ms < s->end_ms) {
        *next_ms = earlier(*next_ms, s->end_ms);
        return;
    }
    s->end_ms = INT64_MAX;
    slot_stop(s, r->now_ms + STOP_KILL_MS);
}

static void
slot_tick(struct runner *r, struct work_slot *s, int64_t *next_ms)
{
    if (s->state != SLOT_EMPTY && s->process.guard == NULL && slot_is_read(r, s)) {
        slot_ended(r, s);
    }
    if (s->state == SLOT_EMPTY && r->now_ms < s->start_ms && r->mode < MODE_DRAIN) {
        *next_ms = earlier(*next_ms, s->start_ms);
        return;
    }
    if (s->state == SLOT_EMPTY && s->count > 0 && r->mode < MODE_STOP)
        slot_start(r, s, next_ms);
    if (s->state == SLOT_RUNS && s->process.guard != NULL)
        slot_feed(r, s, next_ms);
    if (s->state == SLOT_EMPTY || s->process.guard == NULL)
        return;
    slot_end_tick(r, s, next_ms);
    slot_renew(r, s, next_ms);
}

int64_t
slots_tick(struct runner *r)
{
    int64_t next_ms = INT64_MAX;

    for (int64_t i = 0; r->slots != NULL && i < r->o->parallel; i++)
        slot_tick(r, &r->slots[i], &next_ms);
    return next_ms;
}

bool
slots_are_over(const struct runner *r)
{
    for (int64_t i = 0; r->slots != NULL && i < r->o->parallel; i++)
        if (r->slots[i].state != SLOT_EMPTY)
            return false;
    return true;
}

/* ------------------------------------------------------------------ the loop */

unsigned
slots_poll(struct runner *r, struct curl_waitfd *fds)
{
    unsigned count = 0;

    for (int64_t i = 0; r->slots != NULL && i < r->o->parallel; i++) {
        struct work_slot *s = &r->slots[i];
        const struct work_process *p = &s->process;

        s->polled = 0;
        if (p->output >= 0 && s->closed_ms == INT64_MAX) {
            s->polled |= POLL_OUTPUT;
            fds[count++] =
                (struct curl_waitfd){.fd = p->output, .events = CURL_WAIT_POLLIN};
        }
        if (s->state == SLOT_RUNS && s->lines.len > 0 && s->closed_ms == INT64_MAX) {
            s->polled |= POLL_INPUT;
            fds[count++] =
                (struct curl_waitfd){.fd = p->input, .events = CURL_WAIT_POLLOUT};
        }
        if (p->errors >= 0 && !r->stderr_blocked) {
            s->polled |= POLL_ERRORS;
            fds[count++] =
                (struct curl_waitfd){.fd = p->errors, .events = CURL_WAIT_POLLIN};
        }
    }
    return count;
}

/* True if the next descriptor of the list is this file, and is ready. */
static bool
slot_file_is_ready(const struct work_slot *s, unsigned file,
                   const struct curl_waitfd **fds)
{
    return (s->polled & file) != 0 && (*fds)++->revents != 0;
}

void
slots_read(struct runner *r, const struct curl_waitfd *fds)
{
    for (int64_t i = 0; r->slots != NULL && i < r->o->parallel; i++) {
        struct work_slot *s = &r->slots[i];

        if (slot_file_is_ready(s, POLL_OUTPUT, &fds))
            (void)slot_take_lines(r, s);
        (void)slot_file_is_ready(s, POLL_INPUT, &fds); /* slot_feed() writes */
        if (!slot_file_is_ready(s, POLL_ERRORS, &fds) || r->stderr_blocked)
            continue;
        r->stderr_blocked = !stderr_is_writable();
        if (!r->stderr_blocked)
            process_read_errors(&s->process);
    }
}
