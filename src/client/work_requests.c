/*
 * The requests of `claimd work`: to claimd for claims, and to the service of --http.
 * work_runner.h declares them, and work_transfer.h runs them.
 */
#include "client/work_runner.h"

#include "client/work_finish.h"

#include <stdio.h>

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
server_prepare(struct runner *r, struct work_transfer *t, const char *method,
               const char *path)
{
    CURL *h = transfer_prepare(t);

    return h != NULL && web_client_set_target(&r->server->web, h, path) &&
           curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK &&
           client_add_headers(r->server, r->server->project, &t->headers) &&
           client_add_header(&t->headers, "Content-Type: application/json");
}

bool
request_claim(struct runner *r)
{
    /*
     * A third of the lease is left when the response comes, at least, before it would be
     * lost.
     */
    const int64_t third_s = r->o->lease_s / 3,
                  wait_s = r->o->exit_when_empty ? 0 : earlier(third_s, r->o->wait_s);
    const size_t limit = r->limit < CLAIM_MESSAGES_MOST ? r->limit : CLAIM_MESSAGES_MOST;
    const struct work_options *o = r->o;
    struct work_transfer *t = &r->poll;
    struct buf path;
    bool good;

    buf_init(&path, r->mem);
    if (o->queue_count == 1)
        buf_printf(&path, "/v2/queues/%s/claims?limit=%zu", o->queues[0], limit);
    else
        buf_printf(&path, "/claimd/claims?limit=%zu", limit);
    for (size_t i = 0; i < o->queue_count && o->queue_count > 1; i++)
        buf_printf(&path, "&queue=%s", o->queues[i]);
    buf_byte(&path, '\0');
    buf_printf(&t->request, "{\"ttl\":%lld}", (long long)o->lease_s);
    t->body_most = CLAIM_MOST_BYTES;
    good = !path.failed && server_prepare(r, t, "POST", path.data) &&
           (wait_s > 0 ? client_add_header(&t->headers, "Prefer: wait=%lld, details",
                                           (long long)wait_s)
                       : client_add_header(&t->headers, "Prefer: details"));
    buf_fini(&path);
    return transfer_start(r->multi, t, good, RESPONSE_MOST_MS + wait_s * 1000);
}

bool
request_renewal(struct runner *r, struct work_claim *c)
{
    struct work_transfer *t = &c->renewal;

    t->body_most = FINISH_MOST_BYTES;
    buf_printf(&t->request, "{\"ttl\":%lld}", (long long)(c->lease.ttl_ms / 1000));
    return transfer_start(r->multi, t, server_prepare(r, t, "PATCH", c->path),
                          RESPONSE_MOST_MS);
}

bool
request_finish(struct runner *r, struct work_claim *c)
{
    struct work_transfer *t = &c->finish;
    char path[sizeof(c->path) + 32];

    t->body_most = FINISH_MOST_BYTES;
    (void)snprintf(path, sizeof(path), "/claimd%s/finish", c->path + strlen("/v2"));
    finish_write(c, &t->request);
    return transfer_start(r->multi, t, server_prepare(r, t, "POST", path),
                          RESPONSE_MOST_MS);
}

/* ------------------------------------------------------------------ the service */

/* Prepares a request to the service. False without memory. */
static bool
service_prepare(struct work_transfer *t, const char *url)
{
    CURL *h = transfer_prepare(t);

    return h != NULL && curl_easy_setopt(h, CURLOPT_URL, url) == CURLE_OK &&
           curl_easy_setopt(h, CURLOPT_PROXY, "") == CURLE_OK;
}

bool
request_service(struct runner *r, struct work_job *j)
{
    const struct work_claim *c = j->claim;
    struct work_transfer *t = &j->service;
    const bool text_only = r->o->raw && j->body.data[0] == '"';
    struct buf text;
    bool good;

    t->body_most = REASON_MOST - WHAT_MOST - 2; /* so that its beginning is not cut */
    buf_init(&text, r->mem);
    buf_bytes(&t->request, job_input(j, r->o->raw, &text));
    t->request.failed |= text.failed;
    buf_fini(&text);
    good =
        service_prepare(t, r->o->service) && transfer_post_once(t) &&
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
                          (long long)j->attempt);
    return transfer_start(r->multi, t, good, 0);
}

bool
request_health(struct runner *r)
{
    r->health.body_most = 0;
    return transfer_start(r->multi, &r->health, service_prepare(&r->health, r->o->health),
                          RESPONSE_MOST_MS);
}
