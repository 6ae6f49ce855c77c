#include "client/work_transfer.h"

#include "claimd/base/invariant.h"
#include "client/client.h"

#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

enum { CONNECT_MOST_MS = 5000, IDLE_MOST_S = 1, KEEPALIVE_S = 60 };

void
transfer_init(struct work_transfer *t, struct mem *mem, enum transfer_use use,
              void *owner)
{
    *t = (struct work_transfer){.use = use, .owner = owner, .retry_after_s = -1};
    buf_init(&t->request, mem);
    buf_init(&t->body, mem);
}

/* Ends the handle of the transfer, which keeps its response. */
static void
handle_end(CURLM *multi, struct work_transfer *t)
{
    if (t->handle == NULL)
        return;
    (void)curl_multi_remove_handle(multi, t->handle);
    curl_easy_cleanup(t->handle); /* its connection stays in `multi` */
    t->handle = NULL;
    curl_slist_free_all(t->headers);
    t->headers = NULL;
}

void
transfer_reset(CURLM *multi, struct work_transfer *t)
{
    handle_end(multi, t);
    buf_fini(&t->request);
    buf_fini(&t->body);
    transfer_init(t, t->body.mem, t->use, t->owner);
}

/* ------------------------------------------------------------------ the response */

static size_t
read_body(char *data, size_t size, size_t count, void *ctx)
{
    struct work_transfer *t = ctx;
    const size_t len = size * count, space = t->body_most - t->body.len;

    buf_add(&t->body, data, len < space ? len : space);
    t->cut |= len > space || t->body.failed;
    return len;
}

int64_t
retry_after_read(const char *retry_after, const char *date, int64_t now_s)
{
    const struct bytes text = bytes_str(retry_after);
    time_t until, from;
    uint64_t seconds;

    if (text.len > 0 && strspn(retry_after, "0123456789") == text.len) {
        if (!bytes_to_u64(text, &seconds) || seconds > INT32_MAX)
            seconds = INT32_MAX;
        return (int64_t)seconds;
    }
    until = curl_getdate(retry_after, NULL);
    if (until < 0)
        return -1;
    from = curl_getdate(date, NULL);
    if (from < 0)
        from = (time_t)now_s;
    return until <= from ? 0 : until - from < INT32_MAX ? until - from : INT32_MAX;
}

static void
read_headers(struct work_transfer *t)
{
    char retry_after[40], date[40];
    CURL *h = t->handle;

    (void)client_header(h, "Location", t->location, sizeof(t->location));
    (void)client_header(h, "Claim-Number", t->claim_number, sizeof(t->claim_number));
    (void)client_header(h, "Claimd-Result", t->result, sizeof(t->result));
    (void)client_header(h, "Claimd-Paused", t->paused, sizeof(t->paused));
    (void)client_header(h, "Retry-After", retry_after, sizeof(retry_after));
    (void)client_header(h, "Date", date, sizeof(date));
    t->retry_after_s = retry_after_read(retry_after, date, (int64_t)time(NULL));
}

/* ------------------------------------------------------------------ the request */

/*
 * Called before the request is sent, when the connection is there, with TLS if it has
 * that.
 */
static int
on_connected(void *ctx, char *remote, char *local, int remote_port, int local_port)
{
    struct work_transfer *t = ctx;

    (void)remote;
    (void)local;
    (void)remote_port;
    (void)local_port;
    t->sent = true;
    return CURL_PREREQFUNC_OK;
}

CURL *
transfer_prepare(struct work_transfer *t)
{
    CURL *h = curl_easy_init();

    ENSURE(t->handle == NULL);
    if (h == NULL)
        return NULL;
    t->handle = h;
    t->status = 0;
    t->retry_after_s = -1;
    t->cut = t->sent = t->unusable = t->once = false;
    t->location[0] = t->claim_number[0] = t->result[0] = t->paused[0] = '\0';
    t->error[0] = '\0';
    buf_reset(&t->body, t->body.cap);
    /* These options cannot fail. */
    (void)curl_easy_setopt(h, CURLOPT_PRIVATE, t);
    (void)curl_easy_setopt(h, CURLOPT_ERRORBUFFER, t->error);
    (void)curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, read_body);
    (void)curl_easy_setopt(h, CURLOPT_WRITEDATA, t);
    (void)curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, on_connected);
    (void)curl_easy_setopt(h, CURLOPT_PREREQDATA, t);
    (void)curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MOST_MS);
    (void)curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    /* A resumed session of TLS would accept a certificate that is no longer valid. */
    (void)curl_easy_setopt(h, CURLOPT_SSL_SESSIONID_CACHE, 0L);
    return h;
}

/*
 * The body of a request that is sent once: libcurl reads it through a callback, and
 * cannot start again.
 */
static size_t
on_read(char *space, size_t size, size_t count, void *ctx)
{
    struct work_transfer *t = ctx;
    const size_t left = t->request.len - t->read_len;
    const size_t len = left < size * count ? left : size * count;

    if (len > 0)
        memcpy(space, t->request.data + t->read_len, len);
    t->read_len += len;
    return len;
}

static int
on_seek(void *ctx, curl_off_t offset, int origin)
{
    (void)ctx;
    (void)offset;
    (void)origin;
    return CURL_SEEKFUNC_FAIL;
}

bool
transfer_post_once(struct work_transfer *t)
{
    CURL *h = t->handle;

    t->once = true;
    t->read_len = 0;
    (void)curl_easy_setopt(h, CURLOPT_SEEKFUNCTION, on_seek);
    (void)curl_easy_setopt(h, CURLOPT_READFUNCTION, on_read);
    (void)curl_easy_setopt(h, CURLOPT_READDATA, t);
    /*
     * Without a body, libcurl has nothing to start again, so the connection must be new.
     */
    (void)curl_easy_setopt(h, CURLOPT_FRESH_CONNECT, (long)(t->request.len == 0));
    /*
     * A service may close an idle connection at any time, and most do not before some
     * seconds have passed.
     */
    (void)curl_easy_setopt(h, CURLOPT_MAXAGE_CONN, (long)IDLE_MOST_S);
    /*
     * A job may take hours without a byte. If the machine of the service is gone, the
     * kernel finds out.
     */
    (void)curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(h, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    (void)curl_easy_setopt(h, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S / 4);
    return curl_easy_setopt(h, CURLOPT_POST, 1L) == CURLE_OK;
}

static bool
body_set(struct work_transfer *t)
{
    if (t->request.len == 0 && !t->once)
        return true;
    return curl_easy_setopt(t->handle, CURLOPT_POSTFIELDSIZE_LARGE,
                            (curl_off_t)t->request.len) == CURLE_OK &&
           (t->once ||
            curl_easy_setopt(t->handle, CURLOPT_POSTFIELDS, t->request.data) == CURLE_OK);
}

bool
transfer_start(CURLM *multi, struct work_transfer *t, bool prepared, int64_t timeout_ms)
{
    CURL *h = t->handle;

    if (prepared && !t->request.failed && client_add_header(&t->headers, "Expect:") &&
        curl_easy_setopt(h, CURLOPT_HTTPHEADER, t->headers) == CURLE_OK &&
        curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)timeout_ms) == CURLE_OK &&
        body_set(t) && curl_multi_add_handle(multi, h) == CURLM_OK)
        return true;
    transfer_reset(multi, t);
    return false;
}

/* ------------------------------------------------------------------ the loop */

/*
 * Errors that repeat until the URL, or the certificate of the other side, is another one.
 */
static bool
is_unusable(CURLcode code)
{
    return code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ||
           code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_SSL_INVALIDCERTSTATUS || code == CURLE_SSL_ISSUER_ERROR;
}

/* The transfer has failed. Says why in t->error, and leaves no status. */
static void
transfer_fail(struct work_transfer *t, CURLcode code)
{
    long error = 0;

    (void)curl_easy_getinfo(t->handle, CURLINFO_OS_ERRNO, &error);
    t->status = 0;
    t->unusable = !t->sent && is_unusable(code);
    if (code == CURLE_SEND_FAIL_REWIND || (code == CURLE_COULDNT_CONNECT && t->sent))
        /* An old connection ended, and libcurl has tried to make a new one. */
        (void)snprintf(t->error, sizeof(t->error), "the connection was closed");
    else if (code == CURLE_COULDNT_CONNECT && error != 0)
        (void)snprintf(t->error, sizeof(t->error), "%s", strerror((int)error));
    else if (t->error[0] == '\0')
        (void)snprintf(t->error, sizeof(t->error), "%s",
                       code != CURLE_OK ? curl_easy_strerror(code) : "out of memory");
}

struct work_transfer *
transfers_next(CURLM *multi)
{
    struct work_transfer *t;
    CURLcode code;
    CURLMsg *m;
    int left;

    do
        m = curl_multi_info_read(multi, &left);
    while (m != NULL && m->msg != CURLMSG_DONE);
    if (m == NULL)
        return NULL;
    code = m->data.result; /* m is gone with the handle */
    (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
    (void)curl_easy_getinfo(m->easy_handle, CURLINFO_RESPONSE_CODE, &t->status);
    read_headers(t);
    if (code != CURLE_OK || t->body.failed)
        transfer_fail(t, code);
    handle_end(multi, t);
    return t;
}

bool
transfer_end_waiting(struct work_transfer *t)
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
