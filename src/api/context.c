#include "api/context.h"
#include "claimd/base/sometimes.h"

#include "api/caller.h"
#include "api/quota.h"
#include "claimd/base/clock.h"
#include "claimd/base/invariant.h"
#include "claimd/json/string.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const method_names[] = {
    [METHOD_GET] = "GET",         [METHOD_HEAD] = "HEAD",   [METHOD_POST] = "POST",
    [METHOD_PUT] = "PUT",         [METHOD_PATCH] = "PATCH", [METHOD_DELETE] = "DELETE",
    [METHOD_OPTIONS] = "OPTIONS",
};

const char *
api_method_name(enum method method)
{
    return method < METHOD_OTHER ? method_names[method] : "other";
}

enum method
api_method(struct bytes name)
{
    for (size_t i = 0; i < sizeof(method_names) / sizeof(method_names[0]); i++)
        if (bytes_equal_str(name, method_names[i]))
            return (enum method)i;
    return METHOD_OTHER;
}

enum { DETAIL_MAX = 512 };

int64_t
context_real_ms(const struct context *ctx)
{
    return ctx->steps->real_ms(ctx);
}

int64_t
context_wall_ms(const struct context *ctx)
{
    return ctx->real == NULL ? context_real_ms(ctx) : clock_wall_ms(ctx->real);
}

int64_t
context_shown_ms(const struct context *ctx, int64_t ms)
{
    /* A store on Redis has times of its own, and no base. */
    return clock_to_wall_ms(ctx->time_base != NULL ? ctx->time_base : ctx->real, ms);
}

/* ------------------------------------------------------------------ refusing */

enum status
context_refuse(struct context *ctx, enum status st, const char *format, ...)
{
    char text[DETAIL_MAX];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args); /* a longer one is cut */
    va_end(args);
    /* Without memory the detail is absent, and the response has the text of the status. */
    ctx->detail = arena_copy(ctx->req->arena, bytes_str(text));
    return st;
}

enum status
context_refuse_queue(struct context *ctx)
{
    return context_refuse(ctx, ST_NOT_FOUND, "%s %.*s does not exist", context_noun(ctx),
                          (int)ctx->queue.name.len, ctx->queue.name.data);
}

enum status
context_refuse_id(struct context *ctx, const char *item, bool may_expire)
{
    return context_refuse(ctx, ST_NOT_FOUND, "%s %.*s has no %s with the id \"%s\"%s",
                          context_noun(ctx), (int)ctx->queue.name.len,
                          ctx->queue.name.data, item, received(ctx->id).text,
                          may_expire ? ". It may have expired" : "");
}

enum status
context_body_within(struct context *ctx, int64_t max, const char *option)
{
    if (ctx->req->body_too_large)
        return context_refuse(
            ctx, ST_TOO_LARGE,
            "the body is too large. The maximum is %" PRId64 " bytes (%s)", max, option);
    if (ctx->req->body.len <= (size_t)max)
        return ST_OK;
    return context_refuse(ctx, ST_TOO_LARGE,
                          "the body is %zu bytes long. The maximum is %" PRId64
                          " bytes (%s)",
                          ctx->req->body.len, max, option);
}

enum status
context_read_body(struct context *ctx)
{
    return context_body_within(ctx, ctx->limits->max_queue_metadata,
                               "max_queue_metadata");
}

enum status
context_check_name(struct context *ctx, struct bytes name)
{
    enum status st = caller_queue_name(name);

    if (st != ST_OK && name.len > CALLER_QUEUE_NAME_MAX)
        return context_refuse(ctx, st, "the %s name is %zu bytes long. The maximum is %d",
                              context_noun(ctx), name.len, CALLER_QUEUE_NAME_MAX);
    return st == ST_OK ? ST_OK
                       : context_refuse(ctx, st,
                                        "the %s name is \"%s\". It must be 1 to %d "
                                        "characters from A-Z a-z 0-9 _ - .",
                                        context_noun(ctx), received(name).text,
                                        CALLER_QUEUE_NAME_MAX);
}

void
context_warn_member(struct context *ctx, struct bytes name, const char *const *known,
                    size_t count)
{
    warning_add_unknown(&ctx->warnings, ctx->req->arena, "member", name, known, count);
}

/* ------------------------------------------------------------------ parameters */

enum status
context_read_limit(struct context *ctx, const char *name, int64_t max, const char *option,
                   size_t *out)
{
    enum status st = query_limit(&ctx->query, name, max, out);

    if (st != ST_BAD_PARAMETER && st != ST_BAD_VALUE)
        return st;
    return context_refuse(
        ctx, st,
        "the parameter %s is \"%s\". It must be an integer between 1 and %" PRId64
        "%s%s%s",
        name, received(query_get(&ctx->query, name)).text, max,
        option == NULL ? "" : " (", option == NULL ? "" : option,
        option == NULL ? "" : ")");
}

enum status
context_read_bool(struct context *ctx, const char *name, bool *out)
{
    enum status st = query_bool(&ctx->query, name, out);

    if (st == ST_BAD_PARAMETER)
        return context_refuse(ctx, st,
                              "the parameter %s is \"%s\". It must be true or false",
                              name, received(query_get(&ctx->query, name)).text);
    return st;
}

enum status
context_read_listing(struct context *ctx, const struct listing *listing)
{
    const struct parameter *all = listing->parameters;
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < sizeof(listing->parameters) / sizeof(*all);
         i++) {
        const struct parameter *p = &all[i];

        if (p->limit != NULL)
            st = context_read_limit(ctx, p->name, p->most, p->option, p->limit);
        else if (p->flag != NULL)
            st = context_read_bool(ctx, p->name, p->flag);
        else if (p->text != NULL)
            *p->text = query_get(&ctx->query, p->name);
    }
    return st;
}

enum status
context_read_list(struct context *ctx, const char *name, int64_t max, const char *option,
                  struct bytes **items, size_t *count)
{
    enum status st =
        query_list(&ctx->query, name, true, (size_t)max, ctx->req->arena, items, count);

    if (st == ST_BAD_VALUE)
        return context_refuse(
            ctx, st, "the parameter %s has %zu values. The maximum is %" PRId64 " (%s)",
            name, *count, max, option);
    return st;
}

/* ------------------------------------------------------------------ responding */

void
response_add_header(struct context *ctx, const char *name, const char *value)
{
    struct response *res = ctx->res;

    ENSURE(res->header_count < RESPONSE_HEADERS_MAX);
    ENSURE(strlen(value) <= RESPONSE_VALUE_MAX);
    res->headers[res->header_count++] = (struct response_header){name, value};
}

enum status
response_copy_header(struct context *ctx, const char *name, struct bytes value)
{
    struct bytes copy = arena_copy(ctx->req->arena, value);

    if (!bytes_present(copy))
        return ST_NO_MEMORY;
    response_add_header(ctx, name, copy.data);
    return ST_OK;
}

const char *
context_noun(const struct context *ctx)
{
    return ctx->queue.kind == STORE_TOPIC ? "topic" : "queue";
}

enum status
context_set_base(struct context *ctx, struct bytes base, struct bytes project)
{
    ctx->base = base;
    if (ctx->prefix.len == 0 && project.len == 0)
        return ST_OK;
    ctx->base = arena_printf(ctx->req->arena, "%.*s%.*s%s%.*s", (int)ctx->prefix.len,
                             ctx->prefix.data, (int)base.len, base.data,
                             project.len > 0 ? "/" : "", (int)project.len, project.data);
    return bytes_present(ctx->base) ? ST_OK : ST_NO_MEMORY;
}

char *
context_path(const struct context *ctx, const char *tail, struct bytes id)
{
    static const struct bytes queues = BYTES_LIT("/queues/"),
                              topics = BYTES_LIT("/topics/");
    const struct bytes pieces[] = {ctx->base,
                                   ctx->queue.kind == STORE_TOPIC ? topics : queues,
                                   ctx->queue.name, bytes_str(tail), id};
    size_t len = 0;
    char *text;

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
        len += pieces[i].len;
    text = arena_alloc(ctx->req->arena, len + 1);
    if (text == NULL)
        return NULL;
    len = 0;
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        if (pieces[i].len > 0)
            memcpy(text + len, pieces[i].data, pieces[i].len);
        len += pieces[i].len;
    }
    text[len] = '\0';
    return text;
}

enum status
response_add_location(struct context *ctx, const char *tail, struct bytes id)
{
    const char *text = context_path(ctx, tail, id);

    if (text == NULL)
        return ST_NO_MEMORY;
    response_add_header(ctx, "Location", text);
    return ST_OK;
}

enum status
response_empty(struct context *ctx, int code)
{
    ctx->res->code = code;
    ctx->res->body.len = 0;
    return ST_OK;
}

enum status
response_typed(struct context *ctx, int code, const char *type)
{
    ctx->res->code = code;
    response_add_header(ctx, "Content-Type", type);
    return ST_OK;
}

enum status
response_json(struct context *ctx, int code)
{
    return response_typed(ctx, code, "application/json");
}

enum status
context_message_form(const struct context *ctx, struct message_form *out)
{
    const char *href = context_path(ctx, "/messages", BYTES_NONE);

    if (href == NULL)
        return ST_NO_MEMORY;
    *out = (struct message_form){
        .shape = ctx->version->message,
        .href = bytes_str(href),
        .hide_claim = ctx->version->claims_hidden,
        .checksum = ctx->limits->enable_checksum,
        .details = ctx->req->headers[API_HEADER_PREFER].len > 0 &&
                   prefer_details(ctx->req->headers[API_HEADER_PREFER]),
        .time_base = ctx->time_base,
    };
    return ST_OK;
}

/* ------------------------------------------------------------------ waiting */

static void
free_waiters(struct mem *mem, struct waiting *waiting)
{
    if (waiting->waiters != &waiting->single)
        mem_free(mem, waiting->waiters);
    waiting->waiters = NULL;
    waiting->waiter_count = 0;
}

/* Makes the waiters of so many queues, which last as long as the waiting. */
static enum status
make_waiters(struct context *ctx, size_t queues)
{
    struct waiting *waiting = ctx->req->waiting;
    struct store_listener *listener;
    enum status st;

    if (waiting->waiter_count > 0)
        return ST_OK; /* not the first call */
    waiting->waiters = &waiting->single;
    if (queues > 1)
        waiting->waiters = mem_calloc(ctx->mem, queues, sizeof(*waiting->waiters));
    if (waiting->waiters == NULL)
        return ST_NO_MEMORY;
    st = quotas_wait_begin(ctx->quotas, ctx->queue.project, context_real_ms(ctx),
                           &waiting->tenant);
    if (st != ST_OK) {
        free_waiters(ctx->mem, waiting);
        return st;
    }
    listener = ctx->steps->listen(ctx);
    if (listener == NULL) {
        wait_done(ctx->store, ctx->mem, waiting);
        return ST_NO_MEMORY;
    }
    waiting->waiter_count = queues;
    for (size_t i = 0; i < queues; i++)
        waiting->waiters[i] = (struct store_waiter){.listener = listener};
    return ST_OK;
}

enum status
wait_begin(struct context *ctx, size_t queues)
{
    int64_t seconds = prefer_wait(ctx->req->headers[API_HEADER_PREFER]);
    struct bytes applied;
    enum status st;

    if (ctx->req->waiting == NULL || ctx->limits->max_wait == 0 || seconds == 0)
        return ST_OK;
    if (seconds > ctx->limits->max_wait)
        seconds = ctx->limits->max_wait;
    applied = arena_printf(ctx->req->arena, "wait=%" PRId64, seconds);
    if (!bytes_present(applied))
        return ST_NO_MEMORY;
    st = make_waiters(ctx, queues);
    ctx->wait_refused = st == ST_PROJECT_WAITERS;
    if (st != ST_OK)
        return ctx->wait_refused ? ST_OK : st; /* there may be messages without waiting */
    response_add_header(ctx, "Preference-Applied", applied.data);
    ctx->req->waiting->wait_ms = seconds * 1000;
    ctx->waits = true;
    return ST_OK;
}

struct store_waiter *
wait_waiter(const struct context *ctx, size_t i)
{
    return ctx->waits ? &ctx->req->waiting->waiters[i] : NULL;
}

bool
wait_abandoned(const struct context *ctx)
{
    return ctx->waits && ctx->req->waiting->end == WAITING_ABANDONED;
}

enum status
wait_result(const struct context *ctx, bool queued)
{
    if (ctx->wait_refused)
        return ST_PROJECT_WAITERS;
    return ctx->waits && queued && ctx->req->waiting->end == WAITING_ON ? ST_WAIT : ST_OK;
}

void
wait_done(struct store *store, struct mem *mem, struct waiting *waiting)
{
    for (size_t i = 0; i < waiting->waiter_count; i++)
        store_waiter_leave(store, &waiting->waiters[i]);
    free_waiters(mem, waiting);
    quotas_wait_end(waiting->tenant);
}

/* ------------------------------------------------------------------ the header Prefer */

/* Cuts *rest at the next `mark` outside of quoted strings, and returns the part before it. */
static struct bytes
cut_unquoted(struct bytes *rest, char mark)
{
    bool quoted = false;
    struct bytes taken;
    size_t i = 0, used;

    for (; i < rest->len; i++) {
        char c = rest->data[i];

        if (c == '"')
            quoted = !quoted;
        else if (quoted && c == '\\' && i + 1 < rest->len)
            i++;
        else if (!quoted && c == mark)
            break;
    }
    taken = bytes_of(rest->data, i);
    used = i < rest->len ? i + 1 : i;
    *rest = bytes_of(rest->data + used, rest->len - used);
    return taken;
}

/* Reads delta-seconds, which consist of digits. */
static int64_t
read_seconds(struct bytes text)
{
    int64_t seconds = 0;

    for (size_t i = 0; i < text.len; i++) {
        int digit = text.data[i] - '0';

        if (digit < 0 || digit > 9)
            return 0;
        seconds = seconds > (INT64_MAX - digit) / 10 ? INT64_MAX : seconds * 10 + digit;
    }
    return seconds;
}

/* The value of the first preference with this name; absent: there is none. */
static struct bytes
find_preference(struct bytes header, const char *wanted)
{
    while (header.len > 0) {
        struct bytes preference = cut_unquoted(&header, ',');
        struct bytes value = cut_unquoted(&preference, ';'); /* without its parameters */
        struct bytes name = cut_unquoted(&value, '=');

        if (bytes_equal_nocase(bytes_trim(name), bytes_str(wanted)))
            return bytes_present(value) ? bytes_trim(value) : bytes_str("");
    }
    return BYTES_NONE;
}

int64_t
prefer_wait(struct bytes header)
{
    struct bytes value = find_preference(header, "wait");

    return value.len > 0 ? read_seconds(value) : 0;
}

bool
prefer_details(struct bytes header)
{
    return bytes_present(find_preference(header, "details"));
}

/* ------------------------------------------------------------------ problem documents */

struct problem {
    int code;
    const char *title;          /* NULL: no document */
    const char *header, *value; /* NULL: none */
};

#define RETRY(seconds) "Retry-After", seconds

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

void
problem_write(struct response *res, enum status st, struct bytes detail)
{
    const struct problem *p = problem_of(st);

    start_over(res, p);
    if (p->title == NULL)
        return;
    problem_document(&res->body, bytes_str(p->title), description(st, detail));
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
