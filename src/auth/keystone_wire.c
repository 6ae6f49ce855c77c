#include "claimd/auth/keystone_wire.h"

#include "claimd/base/lock.h"
#include "claimd/ds/list.h"
#include "claimd/web/curl_library.h"

#include <stdio.h>

enum { HEAD_MAX = 65536, URL_ROOM = 64 };

struct wire {
    struct keystone_wire wire;
    struct keystone_wire_config config;
    struct curl_library curl;
    struct lock lock; /* guards spare */
    struct talker *spare;
    char url[]; /* of the question */
};

/* A connection, perhaps, and what is needed to ask over it; one thread has it at a time. */
struct talker {
    struct talker *next; /* spare ones */
    CURL *handle;
};

/* What has been read of an answer. */
struct hearing {
    struct buf *body;
    size_t head;
};

/* ------------------------------------------------------------------ addresses */

static bool
is_url_byte(char c)
{
    return c > 0x20 && c < 0x7f && strchr("\"<>\\^`{|}?#@", c) == NULL;
}

bool
keystone_url_check(struct bytes url)
{
    static const struct bytes schemes[] = {BYTES_LIT("http://"), BYTES_LIT("https://")};
    static const struct bytes tail = BYTES_LIT("/v3");
    struct bytes host = BYTES_NONE;

    for (size_t i = 0; i < 2; i++)
        if (url.len > schemes[i].len &&
            bytes_equal(bytes_of(url.data, schemes[i].len), schemes[i]))
            host = bytes_of(url.data + schemes[i].len, url.len - schemes[i].len);
    for (size_t i = 0; i < host.len; i++)
        if (!is_url_byte(host.data[i]))
            return false;
    return host.len > tail.len && host.data[0] != '/' &&
           bytes_equal(bytes_of(host.data + host.len - tail.len, tail.len), tail);
}

/* ------------------------------------------------------------------ talkers */

static struct talker *
take_talker(struct wire *w)
{
    struct talker *t;

    lock_acquire(&w->lock);
    t = w->spare;
    if (t != NULL)
        w->spare = t->next;
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

static void
give_talker(struct wire *w, struct talker *t)
{
    lock_acquire(&w->lock);
    t->next = w->spare;
    w->spare = t;
    lock_release(&w->lock);
}

/* ------------------------------------------------------------------ asking */

/* Called by libcurl with more of the head; another number than that of the bytes: enough. */
static size_t
hear_head(char *data, size_t size, size_t count, void *ctx)
{
    struct hearing *h = ctx;

    (void)data;
    h->head += size * count;
    return h->head <= HEAD_MAX ? size * count : 0;
}

/* The same with more of the body. */
static size_t
hear_body(char *data, size_t size, size_t count, void *ctx)
{
    struct hearing *h = ctx;
    size_t len = size * count;

    if (len > KEYSTONE_BODY_MAX - h->body->len)
        return 0;
    buf_add(h->body, data, len);
    return h->body->failed ? 0 : len;
}

/* Adds a line to a list of headers, which is freed if that fails. */
static bool
add_header(const struct wire *w, struct curl_slist **list, const char *name,
           struct bytes value)
{
    char line[KEYSTONE_TOKEN_MAX + 64];
    struct curl_slist *longer;

    (void)snprintf(line, sizeof(line), "%s: %.*s", name, (int)value.len, value.data);
    longer = w->curl.slist_append(*list, line);
    explicit_bzero(line, sizeof(line));
    if (longer == NULL) {
        w->curl.slist_free_all(*list);
        *list = NULL;
        return false;
    }
    *list = longer;
    return true;
}

/* True if all of it was taken. */
static bool
prepare(const struct wire *w, CURL *handle, struct curl_slist *headers,
        struct hearing *hearing, int64_t timeout_ms)
{
    const struct curl_library *c = &w->curl;

    return c->easy_setopt(handle, CURLOPT_URL, w->url) == CURLE_OK &&
           c->easy_setopt(handle, CURLOPT_HTTPHEADER, headers) == CURLE_OK &&
           c->easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)timeout_ms) == CURLE_OK &&
           c->easy_setopt(handle, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           c->easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           c->easy_setopt(handle, CURLOPT_PROXY, "") == CURLE_OK &&
           c->easy_setopt(handle, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) ==
               CURLE_OK &&
           c->easy_setopt(handle, CURLOPT_HTTP09_ALLOWED, 0L) == CURLE_OK &&
           c->easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK &&
           c->easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK &&
           (w->config.ca == NULL ||
            (c->easy_setopt(handle, CURLOPT_CAINFO, w->config.ca) == CURLE_OK &&
             /* Not those of the system beside it. */
             c->easy_setopt(handle, CURLOPT_CAPATH, (const char *)NULL) == CURLE_OK)) &&
           c->easy_setopt(handle, CURLOPT_HEADERFUNCTION, hear_head) == CURLE_OK &&
           c->easy_setopt(handle, CURLOPT_HEADERDATA, hearing) == CURLE_OK &&
           c->easy_setopt(handle, CURLOPT_WRITEFUNCTION, hear_body) == CURLE_OK &&
           c->easy_setopt(handle, CURLOPT_WRITEDATA, hearing) == CURLE_OK;
}

static enum status
perform(const struct wire *w, CURL *handle, const struct buf *body, int *code,
        struct reason *why)
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
ask_with(const struct wire *w, CURL *handle, struct curl_slist *headers,
         int64_t timeout_ms, int *code, struct buf *body, struct reason *why)
{
    struct hearing hearing = {.body = body};
    enum status st = ST_NO_MEMORY;

    if (prepare(w, handle, headers, &hearing, timeout_ms))
        st = perform(w, handle, body, code, why);
    w->curl.easy_reset(handle); /* its connection stays */
    return st;
}

/* The headers of a question; NULL without memory. */
static struct curl_slist *
make_headers(const struct wire *w, struct bytes token, struct bytes service)
{
    struct curl_slist *headers = NULL;
    bool made = add_header(w, &headers, "Accept", bytes_str("application/json")) &&
                add_header(w, &headers, "X-Auth-Token", service) &&
                add_header(w, &headers, "X-Subject-Token", token);

    return made ? headers : NULL;
}

static enum status
ask(struct keystone_wire *wire, struct bytes token, int64_t timeout_ms, int *code,
    struct buf *body, struct reason *why)
{
    struct wire *w = container_of(wire, struct wire, wire);
    char service[KEYSTONE_TOKEN_MAX + 1];
    enum status st = w->config.service_token(w->config.ctx, service, why);
    struct curl_slist *headers;
    struct talker *t;

    if (st != ST_OK)
        return st;
    headers = make_headers(w, token, bytes_str(service));
    explicit_bzero(service, sizeof(service));
    if (headers == NULL)
        return ST_NO_MEMORY;
    t = take_talker(w);
    if (t != NULL) {
        st = ask_with(w, t->handle, headers, timeout_ms, code, body, why);
        give_talker(w, t);
    }
    w->curl.slist_free_all(headers);
    return t != NULL ? st : ST_NO_MEMORY;
}

/* ------------------------------------------------------------------ life */

enum status
keystone_wire_open(const struct keystone_wire_config *config, struct keystone_wire **out,
                   struct reason *why)
{
    size_t room = strlen(config->url) + URL_ROOM;
    struct wire *w = mem_calloc(config->mem, 1, sizeof(*w) + room);
    enum status st;

    if (w == NULL)
        return ST_NO_MEMORY;
    w->wire.ask = ask;
    w->config = *config;
    lock_init(&w->lock);
    (void)snprintf(w->url, room, "%s/auth/tokens?nocatalog", config->url);
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
    struct wire *w;

    if (wire == NULL)
        return;
    w = container_of(wire, struct wire, wire);
    while (w->spare != NULL) {
        struct talker *t = w->spare;

        w->spare = t->next;
        w->curl.easy_cleanup(t->handle);
        mem_free(w->config.mem, t);
    }
    lock_fini(&w->lock);
    mem_free(w->config.mem, w);
}
