#include "client/work_requests.h"

#include "client/client.h"
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
server_prepare(const struct client *server, struct work_transfers *all,
               struct work_transfer *t, const char *method, const char *path)
{
    CURL *h = transfer_prepare(all, t);

    return h != NULL && web_client_set_target(&server->web, h, path) &&
           curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK &&
           client_add_headers(server, &t->headers) &&
           client_add_header(&t->headers, "Content-Type: application/json");
}

bool
request_claim(struct work_transfers *all, struct work_transfer *t,
              const struct client *server, const struct work_options *o, size_t limit,
              bool wait)
{
    /* A third of the lease is left when the response comes, at least, before it would be lost. */
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
