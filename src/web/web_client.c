#include "claimd/web/web_client.h"

#include "claimd/base/server_url.h"

#include <stdio.h>

enum { CONNECT_MS = 10000 };

/* A reader of one response. */
struct body_reader {
    struct buf *out;
    size_t most;
    bool too_large;
};

static size_t
read_body(char *data, size_t size, size_t count, void *ctx)
{
    struct body_reader *r = ctx;
    const size_t len = size * count;

    r->too_large = len > r->most - r->out->len;
    if (r->too_large)
        return 0;
    buf_add(r->out, data, len);
    return r->out->failed ? 0 : len;
}

#define SET(option, value) (c->curl->easy_setopt(h, (option), (value)) == CURLE_OK)

bool
web_client_set_target(const struct web_client *c, CURL *h, const char *path)
{
    const bool is_unix = server_url_is_unix(c->url);
    struct buf url;
    bool good;

    buf_init(&url, c->mem);
    if (is_unix) /* the host does not matter */
        buf_str(&url, "http://localhost");
    else
        buf_bytes(&url, server_url_base(c->url));
    buf_str(&url, path);
    buf_byte(&url, '\0');
    good = !url.failed && SET(CURLOPT_URL, url.data);
    buf_fini(&url);
    return good && (!is_unix || SET(CURLOPT_UNIX_SOCKET_PATH, c->url + 5)) &&
           (c->ca == NULL || SET(CURLOPT_CAINFO, c->ca)) &&
           (c->certificate == NULL || SET(CURLOPT_SSLCERT, c->certificate)) &&
           (c->certificate_key == NULL || SET(CURLOPT_SSLKEY, c->certificate_key)) &&
           /*
            * A path stays as it is. A queue server stands where no proxy of the
            * environment leads.
            */
           SET(CURLOPT_PATH_AS_IS, 1L) && SET(CURLOPT_PROXY, "");
}

static bool
set_options(const struct web_client *c, const struct web_request *q,
            struct body_reader *r)
{
    const bool has_body = bytes_present(q->body);
    const char *method = q->method != NULL ? q->method : has_body ? "POST" : "GET";
    const long timeout_ms = (long)q->timeout_ms;
    CURL *h = c->handle;

    return web_client_set_target(c, h, q->path) && SET(CURLOPT_HTTPHEADER, q->headers) &&
           SET(CURLOPT_NOSIGNAL, 1L) && SET(CURLOPT_TIMEOUT_MS, timeout_ms) &&
           SET(CURLOPT_CONNECTTIMEOUT_MS, timeout_ms != 0 && timeout_ms < CONNECT_MS
                                              ? timeout_ms
                                              : (long)CONNECT_MS) &&
           /* A resumed session of TLS would accept an expired certificate. */
           SET(CURLOPT_SSL_SESSIONID_CACHE, 0L) &&
           SET(CURLOPT_WRITEFUNCTION, read_body) && SET(CURLOPT_WRITEDATA, r) &&
           (!has_body || (SET(CURLOPT_POST, 1L) &&
                          SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.len) &&
                          SET(CURLOPT_POSTFIELDS, q->body.data))) &&
           SET(CURLOPT_CUSTOMREQUEST, method);
}

/* Writes why there is no response. text: of libcurl; "": none. */
static void
explain(const struct web_client *c, const struct web_request *q,
        const struct body_reader *r, const char *text, struct web_response *response)
{
    char *out = response->error;

    if (r->too_large)
        (void)snprintf(out, WEB_ERROR_CAP, "the response of %s is larger than %zu MiB",
                       c->url, q->response_most >> 20);
    else if (response->code == CURLE_OUT_OF_MEMORY)
        (void)snprintf(out, WEB_ERROR_CAP, "out of memory");
    else if (response->code == CURLE_OPERATION_TIMEDOUT && q->timeout_ms != 0)
        (void)snprintf(out, WEB_ERROR_CAP, "%s does not respond within %lld s", c->url,
                       (long long)q->timeout_ms / 1000);
    else if (response->code == CURLE_COULDNT_CONNECT && server_url_is_unix(c->url))
        (void)snprintf(out, WEB_ERROR_CAP,
                       "%s does not respond: no server listens on this socket", c->url);
    else
        (void)snprintf(out, WEB_ERROR_CAP, "%s does not respond: %s", c->url,
                       text[0] == '\0' ? c->curl->easy_strerror(response->code) : text);
}

bool
web_client_send(struct web_client *c, const struct web_request *q,
                struct web_response *response)
{
    struct body_reader r = {.out = &response->body, .most = q->response_most};
    char text[CURL_ERROR_SIZE] = "";

    *response = (struct web_response){.code = CURLE_OUT_OF_MEMORY};
    buf_init(&response->body, c->mem);
    if (c->handle == NULL)
        c->handle = c->curl->easy_init();
    else
        c->curl->easy_reset(c->handle); /* keeps the connection */
    if (c->handle != NULL && set_options(c, q, &r) &&
        c->curl->easy_setopt(c->handle, CURLOPT_ERRORBUFFER, text) == CURLE_OK)
        response->code = c->curl->easy_perform(c->handle);
    if (c->handle != NULL)
        (void)c->curl->easy_setopt(c->handle, CURLOPT_ERRORBUFFER, NULL);
    if (response->body.failed)
        response->code = CURLE_OUT_OF_MEMORY;
    if (response->code == CURLE_OK)
        (void)c->curl->easy_getinfo(c->handle, CURLINFO_RESPONSE_CODE, &response->status);
    else
        explain(c, q, &r, text, response);
    return response->code == CURLE_OK;
}

void
web_response_fini(struct web_response *response)
{
    buf_fini(&response->body);
    response->status = 0;
}

void
web_client_close(struct web_client *c)
{
    if (c->handle != NULL)
        c->curl->easy_cleanup(c->handle);
    c->handle = NULL;
}
