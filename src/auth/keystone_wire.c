/*
 * keystone_wire: asks Keystone about a token over HTTP, with libcurl. Declared in
 * claimd/auth/keystone.h. A call blocks until the response is there, so keystone.c calls
 * it on a thread of an executor. Each thread takes an idle handle of libcurl, or makes
 * one, and puts it back with its connection (connection_take()). keystone_token.c reads
 * the body of the response.
 */
#include "claimd/auth/keystone.h"

#include "claimd/base/lock.h"
#include "claimd/ds/list.h"
#include "claimd/web/curl_library.h"

#include <stdio.h>

enum { URL_SUFFIX_MOST = 64 };

struct keystone_http {
    struct keystone_wire wire;
    struct keystone_wire_config config;
    struct curl_library curl;
    struct lock lock; /* guards `idle` */
    struct keystone_connection *idle;
    char url[]; /* of the request */
};

/* A handle of libcurl, which keeps its connection open. One thread uses it at a time. */
struct keystone_connection {
    struct keystone_connection *next; /* in `idle` */
    CURL *handle;
};

bool
keystone_url_check(struct bytes url)
{
    static const struct bytes schemes[] = {BYTES_LIT("http://"), BYTES_LIT("https://")};
    static const struct bytes tail = BYTES_LIT("/v3");
    struct bytes host = BYTES_NONE;

    for (size_t i = 0; i < 2; i++)
        if (bytes_begin_with(url, schemes[i]))
            host = bytes_of(url.data + schemes[i].len, url.len - schemes[i].len);
    for (size_t i = 0; i < host.len; i++)
        if (host.data[i] <= 0x20 || host.data[i] >= 0x7f ||
            strchr("\"<>\\^`{|}?#@", host.data[i]) != NULL)
            return false;
    return host.len > tail.len && host.data[0] != '/' &&
           bytes_equal(bytes_of(host.data + host.len - tail.len, tail.len), tail);
}

static struct keystone_connection *
connection_take(struct keystone_http *w)
{
    struct keystone_connection *t;

    lock_acquire(&w->lock);
    t = w->idle;
    if (t != NULL)
        w->idle = t->next;
    lock_release(&w->lock);
    if (t != NULL)
        return t;
    t = mem_calloc(w->config.mem, 1, sizeof(*t));
    if (t == NULL)
        return NULL;
    t->handle = w->curl.easy_init();
    if (t->handle != NULL)
        return t;
    mem_free(w->config.mem, t);
    return NULL;
}

/* Called by libcurl with a part of the body. libcurl ends the transfer if the result is
 * not the number of bytes. */
static size_t
receive_body(char *data, size_t size, size_t count, void *ctx)
{
    struct buf *body = ctx;
    size_t len = size * count;

    if (len > KEYSTONE_BODY_MAX - body->len)
        return 0;
    buf_add(body, data, len);
    return body->failed ? 0 : len;
}

static bool
add_header(const struct keystone_http *w, struct curl_slist **list, const char *name,
           struct bytes value)
{
    char line[KEYSTONE_TOKEN_MAX + 64];
    bool added;

    (void)snprintf(line, sizeof(line), "%s: %.*s", name, (int)value.len, value.data);
    added = curl_add_line(&w->curl, list, line);
    explicit_bzero(line, sizeof(line));
    return added;
}

static enum status
http_perform(const struct keystone_http *w, CURL *handle, const struct buf *body,
             int *code, struct reason *why)
{
    CURLcode result = w->curl.easy_perform(handle);
    long said = 0;

    if (body->failed || result == CURLE_OUT_OF_MEMORY)
        return ST_NO_MEMORY;
    if (result == CURLE_WRITE_ERROR)
        return reason_give(why, ST_UNAVAILABLE, "its response is too long");
    if (result != CURLE_OK)
        return reason_give(why, ST_UNAVAILABLE, "%s", w->curl.easy_strerror(result));
    if (w->curl.easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &said) != CURLE_OK)
        return reason_give(why, ST_UNAVAILABLE, "its response has no status");
    *code = (int)said;
    return ST_OK;
}

static enum status
http_ask(struct keystone_wire *wire, struct bytes token, int64_t timeout_ms, int *code,
         struct buf *body, struct reason *why)
{
    struct keystone_http *w = container_of(wire, struct keystone_http, wire);
    char service[KEYSTONE_TOKEN_MAX + 1];
    enum status st = w->config.service_token(w->config.ctx, service, why);
    struct curl_transfer transfer = {.url = w->url,
                                     .ca = w->config.ca,
                                     .timeout_ms = timeout_ms,
                                     .body = receive_body,
                                     .ctx = body};
    struct curl_slist *headers = NULL;
    struct keystone_connection *t = NULL;
    bool added;

    if (st != ST_OK)
        return st;
    added = add_header(w, &headers, "Accept", bytes_str("application/json")) &&
            add_header(w, &headers, "X-Auth-Token", bytes_str(service)) &&
            add_header(w, &headers, "X-Subject-Token", token);
    explicit_bzero(service, sizeof(service));
    if (added)
        t = connection_take(w);
    if (t == NULL) {
        w->curl.slist_free_all(headers);
        return ST_NO_MEMORY;
    }
    st = curl_transfer_setup(&w->curl, t->handle, &transfer) &&
                 w->curl.easy_setopt(t->handle, CURLOPT_HTTPHEADER, headers) == CURLE_OK
             ? http_perform(w, t->handle, body, code, why)
             : ST_NO_MEMORY;
    w->curl.easy_reset(t->handle); /* keeps the connection */
    lock_acquire(&w->lock);
    t->next = w->idle;
    w->idle = t;
    lock_release(&w->lock);
    w->curl.slist_free_all(headers);
    return st;
}

enum status
keystone_wire_open(const struct keystone_wire_config *config, struct keystone_wire **out,
                   struct reason *why)
{
    size_t size = strlen(config->url) + URL_SUFFIX_MOST;
    struct keystone_http *w = mem_calloc(config->mem, 1, sizeof(*w) + size);
    enum status st;

    if (w == NULL)
        return ST_NO_MEMORY;
    w->wire.ask = http_ask;
    w->config = *config;
    lock_init(&w->lock);
    (void)snprintf(w->url, size, "%s/auth/tokens?nocatalog", config->url);
    st = curl_library_load(&w->curl, why);
    if (st != ST_OK) {
        keystone_wire_close(&w->wire);
        return st;
    }
    *out = &w->wire;
    return ST_OK;
}

void
keystone_wire_close(struct keystone_wire *wire)
{
    struct keystone_http *w;

    if (wire == NULL)
        return;
    w = container_of(wire, struct keystone_http, wire);
    while (w->idle != NULL) {
        struct keystone_connection *t = w->idle;

        w->idle = t->next;
        w->curl.easy_cleanup(t->handle);
        mem_free(w->config.mem, t);
    }
    lock_fini(&w->lock);
    mem_free(w->config.mem, w);
}
