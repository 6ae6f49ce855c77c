#include "client/work_requests.h"

#include "client/client.h"
#include "client/work_finish.h"

#include <curl/curl.h>
#include <netdb.h>
#include <stdio.h>
#include <strings.h>

/* Time limits besides long polling; the longest documents that are read. */
enum {
    RESPONSE_MOST_MS = 10000,
    CLAIM_MOST_BYTES = 256 << 20,
    FINISH_MOST_BYTES = 1 << 20
};

/* Most messages of one claim in the API. */
enum { CLAIM_MESSAGES_MOST = 20 };

/* Prepares a request to claimd. False without memory. */
static bool
server_prepare(const struct client *server, struct work_transfers *all,
               struct work_transfer *t, const char *method, const char *path)
{
    CURL *h = transfer_prepare(all, t);

    return h != NULL && web_client_set_target(&server->web, h, path) &&
           curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK &&
           client_add_headers(server, server->project, &t->headers) &&
           client_add_header(&t->headers, "Content-Type: application/json");
}

bool
request_claim(struct work_transfers *all, struct work_transfer *t,
              const struct client *server, const struct work_options *o, size_t limit,
              bool wait)
{
    /*
     * A third of the lease is left when the response comes, at least, before it would be
     * lost.
     */
    const int64_t third_s = o->lease_s / 3,
                  wait_s = third_s < o->wait_s ? third_s : o->wait_s;
    struct buf path;
    bool good;

    wait = wait && wait_s > 0;
    if (limit > CLAIM_MESSAGES_MOST)
        limit = CLAIM_MESSAGES_MOST;
    buf_init(&path, all->mem);
    if (o->queue_count == 1)
        buf_printf(&path, "/v2/queues/%s/claims?limit=%zu", o->queues[0], limit);
    else
        buf_printf(&path, "/claimd/claims?limit=%zu", limit);
    for (size_t i = 0; i < o->queue_count && o->queue_count > 1; i++)
        buf_printf(&path, "&queue=%s", o->queues[i]);
    buf_byte(&path, '\0');
    buf_printf(&t->request, "{\"ttl\":%lld}", (long long)o->lease_s);
    t->body_most = CLAIM_MOST_BYTES;
    good = !path.failed && server_prepare(server, all, t, "POST", path.data) &&
           (wait ? client_add_header(&t->headers, "Prefer: wait=%lld, details",
                                     (long long)wait_s)
                 : client_add_header(&t->headers, "Prefer: details"));
    buf_fini(&path);
    if (good)
        return transfer_start(all, t, RESPONSE_MOST_MS + (wait ? wait_s * 1000 : 0));
    transfer_reset(all, t);
    return false;
}

bool
request_renewal(struct work_transfers *all, struct work_claim *c,
                const struct client *server)
{
    struct work_transfer *t = &c->renewal;

    t->body_most = FINISH_MOST_BYTES;
    buf_printf(&t->request, "{\"ttl\":%lld}", (long long)(c->lease.ttl_ms / 1000));
    if (server_prepare(server, all, t, "PATCH", c->path))
        return transfer_start(all, t, RESPONSE_MOST_MS);
    transfer_reset(all, t);
    return false;
}

bool
request_finish(struct work_transfers *all, struct work_claim *c,
               const struct client *server)
{
    struct work_transfer *t = &c->finish;
    char path[sizeof(c->path) + 32];

    t->body_most = FINISH_MOST_BYTES;
    (void)snprintf(path, sizeof(path), "/claimd%s/finish", c->path + strlen("/v2"));
    finish_write(c, &t->request);
    if (server_prepare(server, all, t, "POST", path))
        return transfer_start(all, t, RESPONSE_MOST_MS);
    transfer_reset(all, t);
    return false;
}

bool
request_service(struct work_transfers *all, struct work_job *j,
                const struct work_options *o)
{
    const struct work_claim *c = j->claim;
    struct work_transfer *t = &j->service;
    const bool text_only = o->raw && j->body.data[0] == '"';
    struct buf text;

    t->body_most = REASON_MOST - WHAT_MOST - 2; /* so that its beginning is not cut */
    buf_init(&text, all->mem);
    buf_bytes(&t->request, job_input(j, o->raw, &text));
    t->request.failed |= text.failed;
    buf_fini(&text);
    if (transfer_prepare(all, t) != NULL &&
        curl_easy_setopt(t->handle, CURLOPT_URL, o->service) == CURLE_OK &&
        curl_easy_setopt(t->handle, CURLOPT_PROXY, "") == CURLE_OK &&
        transfer_post_once(t) &&
        client_add_header(&t->headers, "Content-Type: %s",
                          text_only ? "text/plain; charset=utf-8" : "application/json") &&
        client_add_header(&t->headers, "Claimd-Queue: %.*s", (int)c->queue.len,
                          c->queue.data) &&
        client_add_header(&t->headers, "Claimd-Message-ID: %.*s", (int)j->id.len,
                          j->id.data) &&
        client_add_header(&t->headers, "Claimd-Claim-ID: %.*s", (int)c->id.len,
                          c->id.data) &&
        client_add_header(&t->headers, "Claimd-Claim-Number: %s", c->number) &&
        client_add_header(&t->headers, "Claimd-Delivery-Count: %lld",
                          (long long)j->attempt))
        return transfer_start(all, t, 0);
    transfer_reset(all, t);
    return false;
}

bool
request_health(struct work_transfers *all, struct work_transfer *t,
               const struct work_options *o)
{
    t->body_most = 0;
    if (transfer_prepare(all, t) != NULL &&
        curl_easy_setopt(t->handle, CURLOPT_URL, o->health) == CURLE_OK &&
        curl_easy_setopt(t->handle, CURLOPT_PROXY, "") == CURLE_OK)
        return transfer_start(all, t, RESPONSE_MOST_MS);
    transfer_reset(all, t);
    return false;
}

/* ------------------------------------------------------------------ the URL of --http */

static CURLUcode
url_parse(CURLU *u, const char *url)
{
    return u == NULL ? CURLUE_OUT_OF_MEMORY : curl_url_set(u, CURLUPART_URL, url, 0);
}

const char *
url_check(const char *url)
{
    CURLU *u = curl_url();
    CURLUcode code = url_parse(u, url);
    char *port = NULL;

    if (code == CURLUE_OK && curl_url_get(u, CURLUPART_PORT, &port, 0) == CURLUE_OK &&
        strspn(port, "0") == strlen(port))
        code = CURLUE_BAD_PORT_NUMBER;
    curl_free(port);
    curl_url_cleanup(u);
    return code == CURLUE_OK ? NULL : curl_url_strerror(code);
}

void
url_describe(char out[SERVICE_NAME_MOST + 1], const char *url)
{
    static const CURLUPart secrets[] = {CURLUPART_USER, CURLUPART_PASSWORD,
                                        CURLUPART_OPTIONS, CURLUPART_QUERY,
                                        CURLUPART_FRAGMENT};
    CURLU *u = curl_url();
    char *text = NULL;
    bool good = url_parse(u, url) == CURLUE_OK;

    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
        good = good && curl_url_set(u, secrets[i], NULL, 0) == CURLUE_OK;
    if (good && curl_url_get(u, CURLUPART_URL, &text, 0) != CURLUE_OK)
        text = NULL;
    (void)snprintf(out, SERVICE_NAME_MOST + 1, "%s", text != NULL ? text : "the service");
    for (char *at = out; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    curl_free(text);
    curl_url_cleanup(u);
}

bool
url_of_path(char *out, size_t cap, const char *url, const char *path)
{
    CURLU *u = curl_url();
    char *text = NULL;
    bool good;

    good = path[0] == '/' && path[1] != '/' && url_parse(u, url) == CURLUE_OK &&
           curl_url_set(u, CURLUPART_URL, path, 0) == CURLUE_OK &&
           curl_url_get(u, CURLUPART_URL, &text, 0) == CURLUE_OK && strlen(text) < cap;
    if (good)
        (void)snprintf(out, cap, "%s", text);
    curl_free(text);
    curl_url_cleanup(u);
    return good;
}

/* libcurl does not ask the resolver for these. */
static bool
is_local_name(const char *host)
{
    static const char local[] = ".localhost";
    const size_t len = strlen(host), tail = sizeof(local) - 1;

    return host[0] == '[' || strcasecmp(host, local + 1) == 0 ||
           (len > tail && strcasecmp(host + len - tail, local) == 0);
}

bool
url_host_is_unknown(const char *url)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_IDN};
    struct addrinfo *found = NULL;
    CURLU *u = curl_url();
    char *host = NULL;
    bool unknown = false;

    if (url_parse(u, url) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK && !is_local_name(host))
        unknown = getaddrinfo(host, NULL, &hints, &found) == EAI_NONAME;
    if (found != NULL)
        freeaddrinfo(found);
    curl_free(host);
    curl_url_cleanup(u);
    return unknown;
}
