#include "notify/packing.h"

#include <stdio.h>
#include <sys/socket.h>

/* A connection is not used for longer, so that a name that leads elsewhere now is noticed. */
enum { CONNECTION_LIFE_S = 300 };

/* ------------------------------------------------------------------ what libcurl asks */

static curl_socket_t
open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct parcel *p = ctx;

    if (purpose != CURLSOCKTYPE_IPCXN ||
        (p->guard != NULL &&
         !guard_admits(p->guard, &address->addr, (socklen_t)address->addrlen))) {
        p->kept_out = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* Another number than that of the bytes: enough. */
static size_t
hear_head(char *data, size_t size, size_t count, void *ctx)
{
    struct parcel *p = ctx;

    (void)data;
    p->head += size * count;
    return p->head <= ANSWER_HEAD_MOST ? size * count : 0;
}

static size_t
hear_body(char *data, size_t size, size_t count, void *ctx)
{
    struct parcel *p = ctx;

    (void)data;
    p->answer += size * count;
    return p->answer <= ANSWER_BODY_MOST ? size * count : 0;
}

static size_t
read_text(char *to, size_t size, size_t count, void *ctx)
{
    struct parcel *p = ctx;
    size_t len = p->text.len - p->read;

    if (len > size * count)
        len = size * count;
    memcpy(to, p->text.data + p->read, len);
    p->read += len;
    return len;
}

/* ------------------------------------------------------------------ headers */

struct header_list {
    const struct curl_library *curl;
    struct curl_slist **list;
    bool has_type;
};

static bool
add_header(void *ctx, const char *line)
{
    static const struct bytes type = BYTES_LIT("content-type");
    struct header_list *h = ctx;
    struct curl_slist *longer = h->curl->slist_append(*h->list, line);

    if (longer == NULL)
        return false;
    *h->list = longer;
    if (strlen(line) > type.len && (line[type.len] == ':' || line[type.len] == ';') &&
        bytes_equal_nocase(bytes_of(line, type.len), type))
        h->has_type = true;
    return true;
}

static bool
add_voucher(struct packing *k, const struct parcel *p, struct header_list *h)
{
    char line[VOUCHER_CAP + 64], voucher[VOUCHER_CAP], id[HOOK_ID_CAP];
    struct hook hook = {.project = p->lent.queue.project,
                        .body = buf_view(&p->text),
                        .sent_s = clock_now_ms(k->config->real) / 1000};
    enum status st;

    hook_id(&p->lent, id);
    hook.id = bytes_str(id);
    st = signer_vouch(k->config->webhooks, &hook, voucher);
    if (st != ST_OK)
        return st == ST_NOT_FOUND; /* without keys there is nothing to say */
    (void)snprintf(line, sizeof(line), "webhook-signature: %s", voucher);
    if (!add_header(h, line))
        return false;
    (void)snprintf(line, sizeof(line), "webhook-timestamp: %lld", (long long)hook.sent_s);
    if (!add_header(h, line))
        return false;
    (void)snprintf(line, sizeof(line), "webhook-id: %s", id);
    return add_header(h, line);
}

static bool
add_headers(struct packing *k, struct parcel *p, const struct wishes *wishes)
{
    struct header_list h = {.curl = &k->curl, .list = &p->headers};
    struct buf line;
    bool added;

    buf_init(&line, k->config->mem);
    added = wished_headers(wishes->post_headers, &line, add_header, &h) &&
            (h.has_type || add_header(&h, "Content-Type: application/json")) &&
            add_header(&h, "Expect:") && /* nobody has to be asked before 1 MB */
            add_voucher(k, p, &h);
    buf_fini(&line);
    return added;
}

/* ------------------------------------------------------------------ settings */

/* As long as all goes well; a setting that libcurl does not take is one that it lacks. */
#define SET(option, value) (l->easy_setopt(p->handle, (option), (value)) == CURLE_OK)

static bool
set_manners(const struct packing *k, struct parcel *p)
{
    const struct curl_library *l = &k->curl;

    return SET(CURLOPT_PRIVATE, p) && SET(CURLOPT_URL, p->url.data) &&
           SET(CURLOPT_NOSIGNAL, 1L) && SET(CURLOPT_FOLLOWLOCATION, 0L) &&
           SET(CURLOPT_PROXY, "") && SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED) &&
           SET(CURLOPT_CONNECTTIMEOUT_MS, (long)k->config->connect_ms) &&
           SET(CURLOPT_TIMEOUT_MS, (long)k->config->timeout_ms) &&
           SET(CURLOPT_MAXLIFETIME_CONN, (long)CONNECTION_LIFE_S) &&
           /* A look-up that hangs is left behind, not waited for. */
           SET(CURLOPT_QUICK_EXIT, 1L) && SET(CURLOPT_OPENSOCKETFUNCTION, open_socket) &&
           SET(CURLOPT_OPENSOCKETDATA, p) &&
           SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) &&
           SET(CURLOPT_SSL_VERIFYPEER, 1L) && SET(CURLOPT_SSL_VERIFYHOST, 2L) &&
           (k->config->ca == NULL ||
            (SET(CURLOPT_CAINFO, k->config->ca) &&
             SET(CURLOPT_CAPATH, (const char *)NULL))) && /* not the system's beside it */
           SET(CURLOPT_HEADERFUNCTION, hear_head) &&
           SET(CURLOPT_HEADERDATA, p) && SET(CURLOPT_WRITEFUNCTION, hear_body) &&
           SET(CURLOPT_WRITEDATA, p);
}

static bool
set_hook(const struct packing *k, struct parcel *p)
{
    const struct curl_library *l = &k->curl;

    p->guard = &k->config->guard;
    return SET(CURLOPT_PROTOCOLS_STR, "http,https") &&
           SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) &&
           SET(CURLOPT_HTTP09_ALLOWED, 0L) && SET(CURLOPT_USERAGENT, k->config->agent) &&
           SET(CURLOPT_HTTPHEADER, p->headers) && SET(CURLOPT_POST, 1L) &&
           SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)p->text.len) &&
           SET(CURLOPT_POSTFIELDS, p->text.data);
}

/* The server is the operator's, wherever it is. Who it is told by goes over TLS or not at all. */
static bool
set_mail(const struct packing *k, struct parcel *p)
{
    const struct curl_library *l = &k->curl;
    const struct notify_mail *mail = &k->config->mail;

    return SET(CURLOPT_PROTOCOLS_STR, "smtp,smtps") &&
           SET(CURLOPT_MAIL_FROM, mail->from) && SET(CURLOPT_MAIL_RCPT, p->recipients) &&
           SET(CURLOPT_UPLOAD, 1L) &&
           SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)p->text.len) &&
           SET(CURLOPT_READFUNCTION, read_text) && SET(CURLOPT_READDATA, p) &&
           (mail->user == NULL ||
            (SET(CURLOPT_USE_SSL, (long)CURLUSESSL_ALL) &&
             SET(CURLOPT_USERNAME, mail->user) && SET(CURLOPT_PASSWORD, mail->password)));
}

bool
packing_set(const struct packing *k, struct parcel *p)
{
    return set_manners(k, p) &&
           (p->target.kind == TARGET_MAIL ? set_mail(k, p) : set_hook(k, p));
}

#undef SET

/* ------------------------------------------------------------------ writing */

/* Says why nothing could be composed. */
static enum status
refuse(struct reason *why, enum status st)
{
    switch (st) {
    case ST_NOT_FOUND:
        return reason_give(why, st, "claimd has no signing key. Set signing_keys");
    case ST_BAD_VALUE:
        return reason_give(why, st,
                           "the subscriber address or the project name is invalid");
    case ST_TOO_LARGE:
        return reason_give(
            why, ST_BAD_VALUE,
            "the post_data of the subscription makes the notification too long");
    case ST_DAMAGED:
        return reason_give(why, ST_BAD_VALUE, "the encrypted message is damaged");
    case ST_UNAVAILABLE:
        return reason_give(why, st, "claimd cannot decrypt a message");
    default:
        return st;
    }
}

static enum status
write_hook(struct packing *k, struct parcel *p, struct reason *why)
{
    struct wishes wishes;
    enum status st;

    wishes_read(p->lent.options, &wishes);
    st = compose_hook(&k->composer, &p->lent, &wishes, &p->text);
    if (st != ST_OK)
        return refuse(why, st);
    buf_bytes(&p->url, p->lent.subscriber);
    buf_byte(&p->url, '\0');
    if (p->url.failed || !add_headers(k, p, &wishes))
        return ST_NO_MEMORY;
    if (strlen(p->url.data) + 1 != p->url.len)
        return reason_give(why, ST_BAD_VALUE,
                           "the subscriber address contains a NUL byte");
    return ST_OK;
}

static enum status
write_mail(struct packing *k, struct parcel *p, struct reason *why)
{
    struct wishes wishes;
    enum status st;

    if (k->config->mail.url == NULL)
        return reason_give(why, ST_BAD_VALUE,
                           "claimd has no mail server. Set smtp_server");
    wishes_read(p->lent.options, &wishes);
    /* The recipient has its place in `url` until libcurl has copied it. */
    st = compose_mail(&k->composer, &p->lent, &wishes, p->target.rest, &p->url, &p->text);
    if (st != ST_OK)
        return refuse(why, st);
    buf_byte(&p->url, '\0');
    if (p->url.failed)
        return ST_NO_MEMORY;
    p->recipients = k->curl.slist_append(NULL, p->url.data);
    buf_reset(&p->url, SIZE_MAX);
    buf_add(&p->url, k->config->mail.url, strlen(k->config->mail.url) + 1);
    return p->recipients == NULL || p->url.failed ? ST_NO_MEMORY : ST_OK;
}

enum status
packing_write(struct packing *k, struct parcel *p, struct reason *why)
{
    switch (p->target.kind) {
    case TARGET_WEB:
        return write_hook(k, p, why);
    case TARGET_MAIL:
        return write_mail(k, p, why);
    case TARGET_TRUST:
        return reason_give(why, ST_BAD_VALUE,
                           "claimd does not send Keystone credentials to subscribers");
    default:
        return reason_give(why, ST_BAD_VALUE,
                           "the subscriber address has an unknown scheme");
    }
}
