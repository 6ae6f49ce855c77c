#include "api/problem.h"
#include "claimd/base/sometimes.h"
#include "claimd/json/string.h"

#include <stdio.h>

struct problem {
    int code;
    const char *title;          /* NULL: no document */
    const char *header, *value; /* NULL: none */
};

#define RETRY(seconds) "Retry-After", seconds

enum { RETRY_CAP = 64 };

/* Clients test the titles, which docs/api.md 4.3 lists. */
static const struct problem problems[ST_COUNT] = {
    [ST_NO_MEMORY] = {503, "Service temporarily unavailable", RETRY("1")},
    [ST_OVER_BUDGET] = {503, "Service temporarily unavailable", RETRY("5")},
    [ST_FULL] = {503, "Insufficient storage", RETRY("5")},
    [ST_JOURNAL_LIMIT] = {503, "Insufficient storage", RETRY("5")},
    [ST_UNAVAILABLE] = {503, "Service temporarily unavailable", RETRY("1")},
    [ST_UNCONFIRMED] = {503, "Outcome unknown", RETRY("1")},
    [ST_IO] = {503, "Service temporarily unavailable", RETRY("1")},
    [ST_CHANGED] = {503, "Service temporarily unavailable", RETRY("1")},
    [ST_NO_KEY] = {503, "Service temporarily unavailable", RETRY("30")},
    [ST_PAUSED] = {503, "Queue is paused", RETRY("10")},
    [ST_KEY_REUSED] = {422, "Idempotency key reused", NULL, NULL},
    [ST_KEY_RUNNING] = {409, "Request in progress", RETRY("1")},
    [ST_KEY_ENDED] = {409, "Claim has ended", NULL, NULL},
    [ST_KEYS_FULL] = {503, "Too many idempotency keys", RETRY("5")},
    [ST_PROJECT_QUEUES] = {429, "Too many queues", RETRY("5")},
    [ST_PROJECT_MESSAGES] = {429, "Too many messages", RETRY("5")},
    [ST_PROJECT_BYTES] = {429, "Too many bytes of messages", RETRY("5")},
    [ST_PROJECT_REQUESTS] = {429, "Too many requests", RETRY("1")},
    [ST_PROJECT_CONNECTIONS] = {429, "Too many connections", RETRY("1")},
    [ST_PROJECT_WAITERS] = {429, "Too many waiting requests", RETRY("1")},
    [ST_TOO_MANY_SCHEDULES] = {409, "Too many schedules", NULL, NULL},
    [ST_NOT_FOUND] = {404, "Not found", NULL, NULL},
    [ST_CLAIMED] = {403, "Unable to delete", NULL, NULL},
    [ST_NOT_CLAIMED] = {400, "Unable to delete", NULL, NULL},
    [ST_NEVER_READY] = {400, "Invalid API request", NULL, NULL},
    [ST_TOO_LARGE] = {400, "Invalid API request", NULL, NULL},
    [ST_TOO_LONG] = {413, "Request entity too large", NULL, NULL},
    [ST_BEYOND_LOG] = {400, "Invalid API request", NULL, NULL},
    [ST_BAD_VALUE] = {400, "Invalid API request", NULL, NULL},
    [ST_BAD_BODY] = {400, "Invalid request body", NULL, NULL},
    [ST_BAD_PARAMETER] = {400, "Invalid parameter", NULL, NULL},
    [ST_MISSING_PARAMETER] = {400, "Missing parameter", NULL, NULL},
    [ST_MISSING_CLIENT_ID] = {400, "Missing header value", NULL, NULL},
    [ST_BAD_CLIENT_ID] = {400, "Wrong UUID value", NULL, NULL},
    [ST_MISSING_PROJECT] = {400, "Project-Id Missing", NULL, NULL},
    [ST_EMPTY_PROJECT] = {400, "Empty project header not allowed", NULL, NULL},
    [ST_BAD_PROJECT] = {400, "Invalid project identification", NULL, NULL},
    [ST_BAD_QUEUE_NAME] = {400, "Invalid queue identification", NULL, NULL},
    [ST_BAD_TOPIC_NAME] = {400, "Invalid topic identification", NULL, NULL},
    [ST_BAD_CONTENT_TYPE] = {400, "Invalid Content-Type", NULL, NULL},
    [ST_BAD_MEDIA_TYPE] = {415, "415 Unsupported Media Type", NULL, NULL},
    [ST_NO_KNOWN_MEMBER] = {400, "Unable to update subscription", NULL, NULL},
    [ST_CONFLICT] = {409, "Resource conflict", NULL, NULL},
    [ST_NO_PATH] = {404, "404 Not Found", NULL, NULL},
    [ST_BAD_METHOD] = {405, "405 Method Not Allowed", NULL, NULL},
    [ST_NOT_ACCEPTABLE] = {406, NULL, NULL, NULL},
    [ST_UNAUTHORIZED] = {401, "Unauthorized", "WWW-Authenticate", "Keystone"},
    [ST_FORBIDDEN] = {403, "Not authorized", NULL, NULL},
    [ST_DAMAGED] = {500, "Internal server error", NULL, NULL},
    [ST_INTERNAL] = {500, "Internal server error", NULL, NULL},
};

/* A status without a row, such as ST_OK, is a bug. */
static const struct problem *
problem_of(enum status st)
{
    return problems[st].code != 0 ? &problems[st] : &problems[ST_INTERNAL];
}

static void
add_header(struct response *res, const char *name, const char *value)
{
    res->headers[res->header_count++] = (struct response_header){name, value};
}

/* Discards the response, except the methods of a 405 and the Location of a 409. */
static void
start_over(struct response *res, const struct problem *p)
{
    size_t kept = 0;

    for (size_t i = 0; i < res->header_count; i++)
        if (strcmp(res->headers[i].name, "Allow") == 0 ||
            (p->code == 409 && strcmp(res->headers[i].name, "Location") == 0))
            res->headers[kept++] = res->headers[i];
    res->header_count = kept;
    res->code = p->code;
    res->body.len = 0;
    res->body.failed = false;
    if (p->header != NULL)
        add_header(res, p->header, p->value);
}

static struct bytes
description(enum status st, struct bytes detail)
{
    if (st == ST_BAD_METHOD) /* its Allow header explains it */
        return BYTES_NONE;
    return bytes_present(detail) ? detail : bytes_str(status_text(st));
}

void
problem_document(struct buf *out, struct bytes title, struct bytes description)
{
    buf_byte(out, '{');
    json_write_text(out, "title", title);
    json_write_text(out, "description", description);
    buf_byte(out, '}');
}

/* The end of a document with Retry-After. */
static size_t
retry_text(char out[RETRY_CAP], const char *seconds)
{
    const int len = snprintf(out, RETRY_CAP, "Try again in %s second%s\"}", seconds,
                             strcmp(seconds, "1") == 0 ? "" : "s");

    return len > 0 && len < RETRY_CAP ? (size_t)len : 0;
}

/* Says in the text of the document when to try again. */
static void
retry_append(struct buf *out, const char *seconds)
{
    static const struct bytes end = BYTES_LIT("\"}");
    char text[RETRY_CAP];
    const size_t len = retry_text(text, seconds);

    if (out->failed)
        return;
    out->len -= end.len;
    buf_str(out, out->data[out->len - 1] == '.' ? " " : ". ");
    buf_bytes(out, bytes_of(text, len));
}

void
problem_set_retry(struct response *res, const char *seconds)
{
    struct buf *out = &res->body;
    char text[RETRY_CAP];
    size_t len;

    for (size_t i = 0; i < res->header_count; i++) {
        if (strcmp(res->headers[i].name, "Retry-After") != 0)
            continue;
        len = retry_text(text, res->headers[i].value);
        if (out->failed || out->len < len ||
            memcmp(out->data + out->len - len, text, len) != 0) {
            res->headers[i].value = seconds;
        } else if (buf_reserve(out, RETRY_CAP)) {
            res->headers[i].value = seconds;
            out->len -= len;
            len = retry_text(text, seconds);
            buf_bytes(out, bytes_of(text, len));
        } else {
            out->failed = false; /* the old time stays in both */
        }
        return;
    }
}

void
problem_write(struct response *res, enum status st, struct bytes detail)
{
    const struct problem *p = problem_of(st);

    start_over(res, p);
    if (p->title == NULL)
        return;
    problem_document(&res->body, bytes_str(p->title), description(st, detail));
    if (p->header != NULL && strcmp(p->header, "Retry-After") == 0)
        retry_append(&res->body, p->value);
    if (res->body.failed && st != ST_NO_MEMORY) {
        problem_write(res, ST_NO_MEMORY, BYTES_NONE);
        return;
    }
    if (!res->body.failed)
        add_header(res, "Content-Type", "application/json");
    else {
        SOMETIMES(RESPONSE_STARVED);
        start_over(res, p); /* without PROBLEM_SPACE: only the code and Retry-After */
    }
}

void
problem_set_header(struct response *res, const char *name, const char *value)
{
    for (size_t i = 0; i < res->header_count; i++)
        if (strcmp(res->headers[i].name, name) == 0)
            res->headers[i].value = value;
}

void
problem_write_bare(struct response *res, enum status st)
{
    start_over(res, problem_of(st));
}
