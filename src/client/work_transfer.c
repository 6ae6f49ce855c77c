#include "client/work_transfer.h"

#include "claimd/base/invariant.h"
#include "client/client.h"

#include <stdio.h>
#include <sys/socket.h>

enum { CONNECT_MOST_MS = 5000 };

void
transfer_init(struct transfer *t, struct mem *mem, enum transfer_use use, void *owner)
{
    *t = (struct transfer){.use = use, .owner = owner, .retry_after_s = -1};
    buf_init(&t->request, mem);
    buf_init(&t->body, mem);
}

/* Takes the handle from the transfer, which keeps its response. */
static void
handle_take(struct transfers *all, struct transfer *t)
{
    if (t->handle == NULL)
        return;
    (void)curl_multi_remove_handle(all->multi, t->handle);
    if (all->idle_count < TRANSFERS_IDLE)
        all->idle[all->idle_count++] = t->handle;
    else
        curl_easy_cleanup(t->handle);
    t->handle = NULL;
    curl_slist_free_all(t->headers);
    t->headers = NULL;
}

void
transfer_reset(struct transfers *all, struct transfer *t)
{
    handle_take(all, t);
    buf_fini(&t->request);
    buf_fini(&t->body);
    transfer_init(t, all->mem, t->use, t->owner);
}

bool
transfers_init(struct transfers *all, struct mem *mem)
{
    *all = (struct transfers){.mem = mem};
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return false;
    all->multi = curl_multi_init();
    return all->multi != NULL;
}

void
transfers_fini(struct transfers *all)
{
    while (all->idle_count > 0)
        curl_easy_cleanup(all->idle[--all->idle_count]);
    if (all->multi != NULL)
        (void)curl_multi_cleanup(all->multi);
    curl_global_cleanup();
}

/* ------------------------------------------------------------------ the response */

static size_t
on_header(char *data, size_t size, size_t count, void *ctx)
{
    struct transfer *t = ctx;
    const struct bytes line = bytes_of(data, size * count);
    char text[32];
    uint64_t seconds;

    if (client_header_value(line, "Location", t->location, sizeof(t->location)) ||
        client_header_value(line, "Claim-Number", t->claim_number,
                            sizeof(t->claim_number)))
        return line.len;
    if (client_header_value(line, "Retry-After", text, sizeof(text)) &&
        bytes_to_u64(bytes_str(text), &seconds) && seconds < INT32_MAX)
        t->retry_after_s = (int64_t)seconds;
    if (client_header_value(line, "Preference-Applied", text, sizeof(text)))
        t->waited = true;
    return line.len;
}

static size_t
on_body(char *data, size_t size, size_t count, void *ctx)
{
    struct transfer *t = ctx;
    const size_t len = size * count, space = t->body_most - t->body.len;

    buf_add(&t->body, data, len < space ? len : space);
    t->cut |= len > space || t->body.failed;
    return len;
}

/* ------------------------------------------------------------------ the request */

CURL *
transfer_prepare(struct transfers *all, struct transfer *t)
{
    CURL *h = all->idle_count > 0 ? all->idle[--all->idle_count] : curl_easy_init();

    ENSURE(t->handle == NULL);
    if (h == NULL)
        return NULL;
    curl_easy_reset(h);
    t->handle = h;
    t->status = 0;
    t->retry_after_s = -1;
    t->cut = t->waited = false;
    t->location[0] = t->claim_number[0] = t->error[0] = '\0';
    buf_reset(&t->body, t->body.cap);
    /* These options cannot fail. */
    (void)curl_easy_setopt(h, CURLOPT_PRIVATE, t);
    (void)curl_easy_setopt(h, CURLOPT_ERRORBUFFER, t->error);
    (void)curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(h, CURLOPT_HEADERDATA, t);
    (void)curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(h, CURLOPT_WRITEDATA, t);
    (void)curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MOST_MS);
    (void)curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    return h;
}

bool
transfer_start(struct transfers *all, struct transfer *t, int64_t timeout_ms)
{
    CURL *h = t->handle;

    if (!t->request.failed && client_add_header(&t->headers, "Expect:") &&
        curl_easy_setopt(h, CURLOPT_HTTPHEADER, t->headers) == CURLE_OK &&
        curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)timeout_ms) == CURLE_OK &&
        (t->request.len == 0 ||
         (curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->request.len) ==
              CURLE_OK &&
          curl_easy_setopt(h, CURLOPT_POSTFIELDS, t->request.data) == CURLE_OK)) &&
        curl_multi_add_handle(all->multi, h) == CURLM_OK)
        return true;
    transfer_reset(all, t);
    return false;
}

/* ------------------------------------------------------------------ the loop */

void
transfers_perform(struct transfers *all)
{
    int running;

    (void)curl_multi_perform(all->multi, &running);
}

struct transfer *
transfers_next(struct transfers *all)
{
    struct transfer *t;
    CURLcode code;
    CURLMsg *m;
    int left;

    do
        m = curl_multi_info_read(all->multi, &left);
    while (m != NULL && m->msg != CURLMSG_DONE);
    if (m == NULL)
        return NULL;
    code = m->data.result; /* m is gone with the handle */
    (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
    (void)curl_easy_getinfo(m->easy_handle, CURLINFO_RESPONSE_CODE, &t->status);
    if (code != CURLE_OK || t->body.failed) {
        t->status = 0;
        if (t->error[0] == '\0')
            (void)snprintf(t->error, sizeof(t->error), "%s",
                           code != CURLE_OK ? curl_easy_strerror(code) : "out of memory");
    }
    handle_take(all, t);
    return t;
}

bool
transfer_end_waiting(struct transfer *t)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    struct curl_tlssessioninfo *tls = NULL;

    if (curl_easy_getinfo(t->handle, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK ||
        fd == CURL_SOCKET_BAD ||
        curl_easy_getinfo(t->handle, CURLINFO_TLS_SSL_PTR, &tls) != CURLE_OK ||
        tls == NULL || tls->internals != NULL)
        return false;
    (void)curl_easy_setopt(t->handle, CURLOPT_FORBID_REUSE, 1L);
    return shutdown(fd, SHUT_WR) == 0;
}
