#include "client/work_runner.h"

#include "claimd/json/scan.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* Until a half-closed long poll must have responded. */
enum { POLL_END_MS = 1000 };

void
work_log(const char *format, ...)
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

uint32_t
random_u32(struct runner *r)
{
    uint32_t value = 0;

    if (entropy_reserve(&r->entropy, sizeof(value)) == ST_OK)
        entropy_take(&r->entropy, &value, sizeof(value));
    return value;
}

void
log_job(const struct work_job *j, const char *text)
{
    work_log("job %.*s of %.*s, attempt %lld: %s", (int)j->id.len, j->id.data,
             (int)j->claim->queue.len, j->claim->queue.data, (long long)j->attempt, text);
}

/* ------------------------------------------------------------------ modes */

void
report_state(struct runner *r, const char *assignment)
{
    static const char *const modes[] = {"working", "quiet", "draining", "stopping",
                                        "stopping"};

    (void)supervisor_notify(&r->supervisor, assignment, "%s%s", modes[r->mode],
                            r->away_ms >= 0           ? ", the server is away"
                            : r->service.away_ms >= 0 ? ", the service is away"
                                                      : "");
}

/* claimd responds at once if only the sending half is closed, so that no claim is made that this process never
 * sees. */
void
poll_end(struct runner *r)
{
    if (r->poll.handle == NULL || r->poll_end_ms != INT64_MAX)
        return;
    if (transfer_end_waiting(&r->poll))
        r->poll_end_ms = r->now_ms + POLL_END_MS;
    else
        transfer_reset(&r->transfers, &r->poll);
}

void
mode_enter(struct runner *r, enum mode mode)
{
    if (r->mode >= mode)
        return;
    r->mode = mode;
    poll_end(r);
    report_state(r, mode >= MODE_STOP ? "STOPPING=1" : NULL);
}

void
runner_stop(struct runner *r, int status)
{
    if (r->mode >= MODE_STOP)
        return;
    r->status = status;
    r->stop_ms = r->now_ms + r->o->grace_s * 1000;
    r->end_ms = r->stop_ms + STOP_KILL_MS + LAST_MS;
    mode_enter(r, MODE_STOP);
}

void
runner_hurry(struct runner *r)
{
    mode_enter(r, MODE_HURRY);
    r->stop_ms = r->now_ms;
    r->end_ms = r->now_ms + LAST_MS;
    transfer_reset(&r->transfers, &r->poll);
}

/* ------------------------------------------------------------------ the server */

void
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
describe_failure(const struct work_transfer *t, char *out, size_t cap)
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

void
server_failed(struct runner *r, const char *why)
{
    if (r->away_ms >= 0)
        return;
    r->away_ms = r->now_ms;
    work_log("waiting for the server: %s", why);
    report_state(r, NULL);
}

static bool
fail_if(struct runner *r, const struct work_transfer *t, bool failed)
{
    char why[512];

    if (!failed)
        return false;
    describe_failure(t, why, sizeof(why));
    server_failed(r, why);
    return true;
}

bool
needs_retry(struct runner *r, const struct work_transfer *t)
{
    return fail_if(r, t,
                   t->status == 0 || t->status >= 500 || t->status == HTTP_TOO_MANY);
}

bool
claim_needs_retry(struct runner *r, const struct work_transfer *t)
{
    const bool is_of_claimd =
        json_member(buf_view(&t->body), "title").kind == SCAN_STRING;

    return needs_retry(r, t) || fail_if(r, t, t->status == 404 && !is_of_claimd);
}

void
server_refused(struct runner *r, const struct work_transfer *t, const char *request)
{
    const bool is_refusal = t->status >= 400; /* claimd has no other status here */
    char why[512];

    server_answered(r);
    describe_failure(t, why, sizeof(why));
    work_log(is_refusal ? "the server refuses %s: %s"
                        : "the response to %s is not one of claimd: %s",
             request, why);
    runner_stop(r, is_refusal ? COMMAND_FAILED : COMMAND_UNAVAILABLE);
}
