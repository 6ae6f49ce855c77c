#include "client/work_outcome.h"

#include "claimd/base/utf8.h"
#include "client/work_process.h"
#include "client/work_url.h"

#include <stdio.h>
#include <strings.h>
#include <sys/wait.h>

enum { BACKOFF_DEFAULT_MOST_S = 900 };

/* Least base of the back-off after a failure that may be that of the service. */
enum { DOUBT_BASE_S = 30 };

enum { HTTP_UNPROCESSABLE = 422, HTTP_BAD_GATEWAY = 502, HTTP_GATEWAY_TIMEOUT = 504 };

static bool
seconds_parse(struct bytes text, int64_t *out)
{
    uint64_t value;

    if (!bytes_to_u64(text, &value) || value > BACKOFF_MOST_S)
        return false;
    *out = (int64_t)value;
    return true;
}

bool
backoff_parse(struct work_backoff *b, const char *text)
{
    struct bytes rest = bytes_str(text), base = bytes_cut(&rest, ',');

    if (!seconds_parse(base, &b->base_s))
        return false;
    b->most_s = b->base_s > BACKOFF_DEFAULT_MOST_S ? b->base_s : BACKOFF_DEFAULT_MOST_S;
    return !bytes_present(rest) || seconds_parse(rest, &b->most_s);
}

int64_t
backoff_s(const struct work_backoff *b, int64_t attempt, uint32_t random)
{
    int64_t pause_s = b->base_s;

    for (int64_t i = 0; i < attempt && pause_s < b->most_s; i++)
        pause_s *= 2; /* at most twice BACKOFF_MOST_S; a base of 0 stays 0 */
    if (pause_s > b->most_s)
        pause_s = b->most_s;
    return pause_s - (int64_t)random % (pause_s / 2 + 1);
}

void
reason_write(char reason[REASON_MOST + 1], const char *words, struct bytes text)
{
    size_t len = 0;
    const unsigned char *at, *end;

    if (words != NULL)
        len = (size_t)snprintf(reason, REASON_MOST + 1, "%s", words);
    text = bytes_trim(text);
    if (text.len > 0 && len > 0 && len < REASON_MOST / 2) {
        reason[len++] = ':';
        reason[len++] = ' ';
    }
    if (text.len > REASON_MOST - len) {
        text = bytes_of(text.data + text.len - (REASON_MOST - len), REASON_MOST - len);
        while (text.len > 0 &&
               utf8_is_tail((unsigned char)*text.data)) /* the rest of a character */
            text = bytes_of(text.data + 1, text.len - 1);
    }
    at = (const unsigned char *)text.data;
    for (end = at + text.len; at < end;) {
        const unsigned char *next = utf8_pass(at, end);
        const bool is_control = (*at < ' ' && *at != '\n' && *at != '\t') || *at == 0x7f;

        if (next == NULL || is_control) {
            reason[len++] = '?';
            at++;
            continue;
        }
        memcpy(reason + len, at, (size_t)(next - at));
        len += (size_t)(next - at);
        at = next;
    }
    reason[len] = '\0';
}

static void
outcome_retry(struct job_outcome *o, const struct job_attempt *a, struct bytes text)
{
    o->kind = OUTCOME_RETRY;
    o->delay_s = backoff_s(a->backoff, a->number, a->random);
    reason_write(o->reason, o->what, text);
}

/* The outcome of an attempt that the runner has ended. False: it has not. */
static bool
outcome_of_stop(struct job_outcome *o, const struct job_attempt *a, struct bytes text)
{
    if (a->stop == STOP_TIMEOUT) {
        (void)snprintf(o->what, sizeof(o->what), "timed out after %lld s",
                       (long long)a->timeout_s);
        outcome_retry(o, a, text);
    } else if (a->stop != STOP_NONE) {
        (void)snprintf(o->what, sizeof(o->what), "ended with the runner");
        o->kind = OUTCOME_RELEASE;
    }
    return a->stop != STOP_NONE;
}

int
status_describe(char what[WHAT_MOST + 1], int status)
{
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    const char *name = code < 0 ? sigabbrev_np(WTERMSIG(status)) : NULL;

    if (code >= 0)
        (void)snprintf(what, WHAT_MOST + 1, "exit status %d", code);
    else if (name != NULL)
        (void)snprintf(what, WHAT_MOST + 1, "killed by SIG%s", name);
    else
        (void)snprintf(what, WHAT_MOST + 1, "killed by signal %d", WTERMSIG(status));
    return code;
}

void
outcome_of_command(struct job_outcome *o, const struct job_attempt *a, int status,
                   struct bytes tail)
{
    int code;

    *o = (struct job_outcome){.kind = OUTCOME_DELETE};
    if (outcome_of_stop(o, a, tail))
        return;
    code = status_describe(o->what, status);
    if (code == 0)
        return;
    if (code == EXIT_CANNOT_RUN || code == EXIT_NOT_FOUND) {
        o->kind = OUTCOME_BROKEN;
    } else if (code == EXIT_BAD_MESSAGE) {
        o->kind = OUTCOME_DEAD_LETTER;
        reason_write(o->reason, bytes_trim(tail).len > 0 ? NULL : o->what, tail);
    } else {
        outcome_retry(o, a, tail);
    }
}

void
outcome_of_kept(struct job_outcome *o, const struct job_attempt *a, int status,
                const char *fault, struct bytes text)
{
    *o = (struct job_outcome){.kind = OUTCOME_RETRY};
    if (outcome_of_stop(o, a, text))
        return;
    if (fault[0] != '\0')
        (void)snprintf(o->what, sizeof(o->what), "%s", fault);
    else if (status_describe(o->what, status) == 0)
        (void)snprintf(o->what, sizeof(o->what), "exit status 0 without a response");
    outcome_retry(o, a, text);
    if (!a->service_worked)
        o->kind = OUTCOME_AWAY; /* the command may be broken, and not the job */
}

/* ------------------------------------------------------------------ a service */

/*
 * The service is not available: the message is released, and this delivery does not
 * count.
 */
static void
outcome_away(struct job_outcome *o, const struct work_transfer *t, int64_t delay_s,
             struct bytes text)
{
    o->kind = OUTCOME_AWAY;
    o->unsent = !t->sent;
    o->delay_s = delay_s;
    reason_write(o->reason, o->what, text);
}

/*
 * The request cannot succeed with this URL. If it has worked before, the service may come
 * back.
 */
static void
outcome_unusable(struct job_outcome *o, const struct job_attempt *a,
                 const struct work_transfer *t, struct bytes text)
{
    outcome_away(o, t, 0, text);
    if (!a->service_worked)
        o->kind = OUTCOME_BROKEN;
}

/*
 * The job may have run, and the service may be away. Longer pauses leave the message
 * attempts for the time in which it is back.
 */
static void
outcome_doubt(struct job_outcome *o, const struct job_attempt *a)
{
    const struct work_backoff slow = {DOUBT_BASE_S, a->backoff->most_s};
    const int64_t pause_s = backoff_s(&slow, a->number, a->random);

    o->doubt = true;
    if (o->delay_s < pause_s)
        o->delay_s = pause_s;
}

static void
outcome_of_status(struct job_outcome *o, const struct job_attempt *a,
                  const struct work_transfer *t)
{
    const int64_t most_s = a->backoff->most_s;
    const int64_t after_s = t->retry_after_s < most_s ? t->retry_after_s : most_s;
    const struct bytes text = buf_view(&t->body);
    const bool is_success = t->status >= 200 && t->status < 300;

    (void)snprintf(o->what, sizeof(o->what), "HTTP status %ld from %.*s", t->status,
                   SERVICE_NAME_MOST, a->service);
    if (t->status == HTTP_UNPROCESSABLE || strcasecmp(t->result, "dead-letter") == 0) {
        o->kind = OUTCOME_DEAD_LETTER;
        reason_write(o->reason, o->what, text);
    } else if (is_success && t->result[0] == '\0') {
        o->kind = OUTCOME_DELETE;
    } else if (is_success) {
        (void)snprintf(o->what, sizeof(o->what), "Claimd-Result of %.*s is unknown",
                       SERVICE_NAME_MOST, a->service);
        outcome_retry(o, a, bytes_str(t->result));
    } else if (t->status == HTTP_TOO_MANY || t->status == HTTP_UNAVAILABLE) {
        outcome_away(o, t, after_s >= 0 ? after_s : backoff_s(a->backoff, 1, a->random),
                     text);
    } else if (t->status == 301 || t->status == 307 || t->status == 308) {
        outcome_unusable(o, a, t, bytes_str(t->location));
    } else {
        outcome_retry(o, a, text);
        if (t->status == HTTP_BAD_GATEWAY || t->status == HTTP_GATEWAY_TIMEOUT)
            outcome_doubt(o, a);
        if (after_s >= 0)
            o->delay_s = after_s;
    }
}

void
outcome_of_request(struct job_outcome *o, const struct job_attempt *a,
                   const struct work_transfer *t)
{
    *o = (struct job_outcome){.kind = OUTCOME_DELETE};
    if (a->stop == STOP_TIMEOUT && !t->sent) {
        (void)snprintf(o->what, sizeof(o->what), "cannot reach %.*s within %lld s",
                       SERVICE_NAME_MOST, a->service, (long long)a->timeout_s);
        outcome_away(o, t, 0, BYTES_NONE);
    } else if (outcome_of_stop(o, a, bytes_str(a->service))) {
        return;
    } else if (t->status != 0) {
        outcome_of_status(o, a, t);
    } else if (!t->sent) { /* the job did not run */
        (void)snprintf(o->what, sizeof(o->what), "cannot reach %.*s", SERVICE_NAME_MOST,
                       a->service);
        if (t->unusable)
            outcome_unusable(o, a, t, bytes_str(t->error));
        else
            outcome_away(o, t, 0, bytes_str(t->error));
    } else {
        (void)snprintf(o->what, sizeof(o->what), "no response from %.*s",
                       SERVICE_NAME_MOST, a->service);
        outcome_retry(o, a, bytes_str(t->error));
        outcome_doubt(o, a);
        (void)snprintf(o->what, sizeof(o->what), "%.*s", WHAT_MOST, o->reason);
    }
}
