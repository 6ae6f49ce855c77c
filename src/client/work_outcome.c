#include "client/work_outcome.h"

#include "claimd/json/string.h"
#include "client/work_process.h"

#include <stdio.h>
#include <sys/wait.h>

enum { BACKOFF_DEFAULT_MOST_S = 900 };

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

static bool
is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static bool
is_printable(unsigned char c)
{
    return (c >= ' ' && c != 0x7f) || c == '\n' || c == '\t';
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
        while (text.len > 0 && is_continuation(*text.data)) /* the rest of a character */
            text = bytes_of(text.data + 1, text.len - 1);
    }
    at = (const unsigned char *)text.data;
    for (end = at + text.len; at < end;) {
        const unsigned char *next = utf8_pass(at, end);

        if (next == NULL || (next == at + 1 && !is_printable(*at))) {
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
outcome_retry(struct outcome *o, const struct attempt *a, struct bytes text)
{
    o->kind = OUTCOME_RETRY;
    o->delay_s = backoff_s(a->backoff, a->number, a->random);
    reason_write(o->reason, o->what, text);
}

/* The outcome of an attempt that the runner has ended. False: it has not. */
static bool
outcome_of_stop(struct outcome *o, const struct attempt *a, struct bytes text)
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

void
outcome_of_command(struct outcome *o, const struct attempt *a, int status,
                   struct bytes tail)
{
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    const char *name;

    *o = (struct outcome){.kind = OUTCOME_DELETE};
    if (outcome_of_stop(o, a, tail) || code == 0)
        return;
    if (code >= 0)
        (void)snprintf(o->what, sizeof(o->what), "exit status %d", code);
    else if ((name = sigabbrev_np(WTERMSIG(status))) != NULL)
        (void)snprintf(o->what, sizeof(o->what), "killed by SIG%s", name);
    else
        (void)snprintf(o->what, sizeof(o->what), "killed by signal %d", WTERMSIG(status));
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
outcome_of_request(struct outcome *o, const struct attempt *a, long status,
                   int64_t retry_after_s, struct bytes text)
{
    *o = (struct outcome){.kind = OUTCOME_DELETE};
    if (outcome_of_stop(o, a, BYTES_NONE) || (status >= 200 && status < 300))
        return;
    if (status != 0)
        (void)snprintf(o->what, sizeof(o->what), "HTTP status %ld", status);
    else
        (void)snprintf(o->what, sizeof(o->what), "no response");
    outcome_retry(o, a, text);
    if ((status == HTTP_TOO_MANY || status == HTTP_UNAVAILABLE) && retry_after_s >= 0)
        o->delay_s = retry_after_s < BACKOFF_MOST_S ? retry_after_s : BACKOFF_MOST_S;
}
