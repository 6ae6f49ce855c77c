#include "support/api_call.h"

#include <stdio.h>
#include <stdlib.h>

void
api_caller_init(struct api_caller *c, const struct api *api, struct mem *mem,
                int64_t now_ms)
{
    *c = (struct api_caller){.api = api, .now_ms = now_ms};
    c->headers[API_HEADER_ACCEPT] = "application/json";
    c->headers[API_HEADER_CLIENT_ID] = API_CALL_CLIENT;
    c->headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
    arena_init(&c->arena, mem);
    buf_init(&c->res.body, mem);
}

void
api_caller_fini(struct api_caller *c)
{
    buf_fini(&c->res.body);
    arena_fini(&c->arena);
}

static struct bytes
after(struct bytes text, size_t at)
{
    return bytes_of(text.data + at, text.len - at);
}

/* A front end relies on this bound: each call of the API in a test checks it. */
static void
check_head(const struct response *res)
{
    if (response_head_size(res) <= RESPONSE_HEAD_MAX)
        return;
    (void)fprintf(stderr, "%s: a head of %zu bytes\n",
                  res->route == NULL ? "none" : res->route, response_head_size(res));
    abort();
}

/* The text of a refusal with Retry-After ends with the same time (docs/api.md 4.4). */
static void
check_retry(const struct response *res)
{
    const char *seconds = NULL;
    char end[64];
    int len;

    for (size_t i = 0; i < res->header_count; i++)
        if (strcmp(res->headers[i].name, "Retry-After") == 0)
            seconds = res->headers[i].value;
    if (seconds == NULL || res->body.len == 0)
        return;
    len = snprintf(end, sizeof(end), ". Try again in %s second%s\"}", seconds,
                   strcmp(seconds, "1") == 0 ? "" : "s");
    if ((size_t)len < res->body.len &&
        memcmp(res->body.data + res->body.len - len, end, (size_t)len) == 0)
        return;
    (void)fprintf(stderr, "Retry-After: %s, but %.*s\n", seconds, (int)res->body.len,
                  res->body.data);
    abort();
}

/* The request at the time that it is. */
static struct request *
at_now(const struct api_caller *c, struct request *req)
{
    if (c->clock != NULL)
        req->now_ms = clock_now_ms(c->clock);
    return req;
}

int
api_call_bytes(struct api_caller *c, enum method method, struct bytes target,
               struct bytes body)
{
    const char *mark = target.len == 0 ? NULL : memchr(target.data, '?', target.len);
    enum api_next next;
    struct request req = {.method = method,
                          .listener = c->listener,
                          .from_proxy = c->from_proxy,
                          .certificate = c->certificate,
                          .path = target,
                          .body = body,
                          .body_too_large = c->body_too_large,
                          .now_ms = c->now_ms,
                          .connection = c->connection,
                          .arena = &c->arena};

    if (mark != NULL) {
        req.path.len = (size_t)(mark - target.data);
        req.query = after(target, req.path.len + 1);
    }
    for (size_t i = 0; i < API_HEADER_COUNT; i++)
        req.headers[i] = bytes_str(c->headers[i]);
    arena_reset(&c->arena);
    buf_reset(&c->res.body, 0);
    c->slices = 1;
    while ((next = api_handle(c->api, at_now(c, &req), &c->res)) == API_AGAIN ||
           (next == API_LOAD && journal_load_run(c->loads)))
        c->slices++;
    if (next == API_LOAD) { /* the disk is dead */
        api_stop_waiting(c->api, &req);
        c->res.code = 0;
        return 0;
    }
    check_head(&c->res);
    check_retry(&c->res);
    return c->res.code;
}

int
api_call(struct api_caller *c, const char *method, const char *target, const char *body)
{
    return api_call_bytes(c, api_method(bytes_str(method)), bytes_str(target),
                          bytes_str(body));
}

const char *
api_response_header(const struct api_caller *c, const char *name)
{
    for (size_t i = 0; i < c->res.header_count; i++)
        if (strcmp(c->res.headers[i].name, name) == 0)
            return c->res.headers[i].value;
    return NULL;
}

const char *
api_body(struct api_caller *c)
{
    buf_byte(&c->res.body, '\0');
    if (c->res.body.failed)
        return "(no memory to show the response)";
    c->res.body.len--; /* so that it can be read again */
    return c->res.body.data;
}
