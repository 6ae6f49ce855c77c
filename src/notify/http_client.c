#include "notify/http_client.h"

#include <stdio.h>
#include <sys/socket.h>

/* Maximum lifetime of a connection, so that claimd notices a changed address of a
 * name. */
enum { CONNECTION_LIFE_S = 300 };

/* -------------------------------------------------------------- callbacks of libcurl */

static curl_socket_t
open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct delivery *p = ctx;

    if (purpose != CURLSOCKTYPE_IPCXN ||
        (p->guard != NULL &&
         !guard_allows(p->guard, &address->addr, (socklen_t)address->addrlen))) {
        p->blocked = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* libcurl ends the transfer if the result is not the number of bytes. */
static size_t
count_response_body(char *data, size_t size, size_t count, void *ctx)
{
    struct delivery *p = ctx;

    (void)data;
    p->response_bytes += size * count;
    return p->response_bytes <= RESPONSE_BODY_MOST ? size * count : 0;
}

static size_t
read_mail_text(char *to, size_t size, size_t count, void *ctx)
{
    struct delivery *p = ctx;
    size_t len = p->text.len - p->text_read;

    if (len > size * count)
        len = size * count;
    memcpy(to, p->text.data + p->text_read, len);
    p->text_read += len;
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

    if (!curl_add_line(h->curl, h->list, line))
        return false;
    if (strlen(line) > type.len && (line[type.len] == ':' || line[type.len] == ';') &&
        bytes_equal_nocase(bytes_of(line, type.len), type))
        h->has_type = true;
    return true;
}

static bool
add_signature(struct http_client *c, const struct delivery *p, struct header_list *h)
{
    char line[WEBHOOK_SIGNATURES_CAP + 64], signatures[WEBHOOK_SIGNATURES_CAP],
        id[DELIVERY_ID_CAP];
    struct webhook webhook = {.project = p->leased.queue.project,
                              .body = buf_view(&p->text),
                              .sent_s = clock_wall_ms(c->config->real) / 1000};
    enum status st;

    delivery_id(&p->leased, id);
    webhook.id = bytes_str(id);
    st = signer_sign_webhook(c->config->webhooks, &webhook, signatures);
    if (st != ST_OK)
        return st == ST_NOT_FOUND; /* there are no keys, so no signature is sent */
    (void)snprintf(line, sizeof(line), "webhook-signature: %s", signatures);
    if (!add_header(h, line))
        return false;
    (void)snprintf(line, sizeof(line), "webhook-timestamp: %lld",
                   (long long)webhook.sent_s);
    if (!add_header(h, line))
        return false;
    (void)snprintf(line, sizeof(line), "webhook-id: %s", id);
    return add_header(h, line);
}

static bool
add_headers(struct http_client *c, struct delivery *p,
            const struct delivery_options *options)
{
    struct header_list h = {.curl = &c->curl, .list = &p->headers};
    struct buf line;
    bool added;

    buf_init(&line, c->config->mem);
    added = option_headers(options->post_headers, &line, add_header, &h) &&
            (h.has_type || add_header(&h, "Content-Type: application/json")) &&
            add_header(&h, "Expect:") && /* never wait for 100 Continue */
            add_signature(c, p, &h);
    buf_fini(&line);
    return added;
}

/* ------------------------------------------------------------------ settings */

#define SET(option, value) (l->easy_setopt(p->handle, (option), (value)) == CURLE_OK)

static bool
set_webhook_options(const struct http_client *c, struct delivery *p)
{
    const struct curl_library *l = &c->curl;

    p->guard = &c->config->guard;
    return SET(CURLOPT_PROTOCOLS_STR, "http,https") &&
           SET(CURLOPT_USERAGENT, c->config->agent) &&
           SET(CURLOPT_HTTPHEADER, p->headers) && SET(CURLOPT_POST, 1L) &&
           SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)p->text.len) &&
           SET(CURLOPT_POSTFIELDS, p->text.data);
}

/* The operator chose the mail server, so any address is allowed. The password is sent
 * over TLS only. */
static bool
set_mail_options(const struct http_client *c, struct delivery *p)
{
    const struct curl_library *l = &c->curl;
    const struct notify_mail *mail = &c->config->mail;

    return SET(CURLOPT_PROTOCOLS_STR, "smtp,smtps") &&
           SET(CURLOPT_MAIL_FROM, mail->from) && SET(CURLOPT_MAIL_RCPT, p->recipients) &&
           SET(CURLOPT_UPLOAD, 1L) &&
           SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)p->text.len) &&
           SET(CURLOPT_READFUNCTION, read_mail_text) && SET(CURLOPT_READDATA, p) &&
           (mail->user == NULL ||
            (SET(CURLOPT_USE_SSL, (long)CURLUSESSL_ALL) &&
             SET(CURLOPT_USERNAME, mail->user) && SET(CURLOPT_PASSWORD, mail->password)));
}

bool
curl_setup(const struct http_client *c, struct delivery *p)
{
    const struct curl_library *l = &c->curl;

    p->transfer = (struct curl_transfer){.url = p->url.data,
                                         .ca = c->config->ca,
                                         .timeout_ms = c->config->timeout_ms,
                                         .body = count_response_body,
                                         .ctx = p};
    return curl_transfer_setup(l, p->handle, &p->transfer) && SET(CURLOPT_PRIVATE, p) &&
           SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED) &&
           SET(CURLOPT_CONNECTTIMEOUT_MS, (long)c->config->connect_ms) &&
           SET(CURLOPT_MAXLIFETIME_CONN, (long)CONNECTION_LIFE_S) &&
           /* Ending a transfer does not wait for a hanging name lookup. */
           SET(CURLOPT_QUICK_EXIT, 1L) && SET(CURLOPT_OPENSOCKETFUNCTION, open_socket) &&
           SET(CURLOPT_OPENSOCKETDATA, p) &&
           SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) &&
           (p->target.kind == TARGET_MAIL ? set_mail_options(c, p)
                                          : set_webhook_options(c, p));
}

#undef SET

/* ------------------------------------------------------------------ writing */

/* Explains the status of compose_hook() or compose_mail(). */
static enum status
compose_failed(struct reason *why, enum status st)
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
write_webhook(struct http_client *c, struct delivery *p, struct reason *why)
{
    struct delivery_options options;
    enum status st;

    delivery_options_read(p->leased.options, &options);
    st = compose_hook(&c->composer, &p->leased, &options, &p->text);
    if (st != ST_OK)
        return compose_failed(why, st);
    buf_bytes(&p->url, p->leased.subscriber);
    buf_byte(&p->url, '\0');
    if (p->url.failed || !add_headers(c, p, &options))
        return ST_NO_MEMORY;
    if (strlen(p->url.data) + 1 != p->url.len)
        return reason_give(why, ST_BAD_VALUE,
                           "the subscriber address contains a NUL byte");
    return ST_OK;
}

static enum status
write_mail(struct http_client *c, struct delivery *p, struct reason *why)
{
    struct delivery_options options;
    enum status st;

    if (c->config->mail.url == NULL)
        return reason_give(why, ST_BAD_VALUE,
                           "claimd has no mail server. Set smtp_server");
    delivery_options_read(p->leased.options, &options);
    /* `url` holds the recipient until libcurl has copied it. */
    st = compose_mail(&c->composer, &p->leased, &options, p->target.rest, &p->url,
                      &p->text);
    if (st != ST_OK)
        return compose_failed(why, st);
    buf_byte(&p->url, '\0');
    if (p->url.failed)
        return ST_NO_MEMORY;
    p->recipients = c->curl.slist_append(NULL, p->url.data);
    buf_reset(&p->url, SIZE_MAX);
    buf_add(&p->url, c->config->mail.url, strlen(c->config->mail.url) + 1);
    return p->recipients == NULL || p->url.failed ? ST_NO_MEMORY : ST_OK;
}

static enum status
write_request(struct http_client *c, struct delivery *p, struct reason *why)
{
    switch (p->target.kind) {
    case TARGET_WEB:
        return write_webhook(c, p, why);
    case TARGET_MAIL:
        return write_mail(c, p, why);
    case TARGET_TRUST:
        return reason_give(why, ST_BAD_VALUE,
                           "claimd does not send Keystone credentials to subscribers");
    default:
        return reason_give(why, ST_BAD_VALUE,
                           "the subscriber address has an unknown scheme");
    }
}

/* ------------------------------------------------------------------ sending */

/* Frees what the delivery needs only while it is sent. */
static void
clear_delivery(struct http_client *c, struct delivery *p)
{
    if (p->handle != NULL)
        c->curl.easy_cleanup(p->handle);
    c->curl.slist_free_all(p->headers);
    c->curl.slist_free_all(p->recipients);
    p->handle = NULL;
    p->text_read = 0;
    p->headers = p->recipients = NULL;
    buf_reset(&p->url, 0);
    buf_reset(&p->text, 0);
}

static enum status
start_transfer(struct http_client *c, struct delivery *p, struct reason *why)
{
    if (c->multi == NULL) {
        c->multi = c->curl.multi_init();
        if (c->multi == NULL)
            return ST_NO_MEMORY;
        (void)c->curl.multi_setopt(c->multi, CURLMOPT_MAXCONNECTS,
                                   (long)c->config->workers);
    }
    p->handle = c->curl.easy_init();
    if (p->handle == NULL)
        return ST_NO_MEMORY;
    if (!curl_setup(c, p))
        return reason_give(why, ST_UNAVAILABLE,
                           "libcurl lacks an option. claimd needs libcurl 7.87 or later");
    if (c->curl.multi_add_handle(c->multi, p->handle) != CURLM_OK)
        return ST_NO_MEMORY;
    p->began_ns = clock_stopwatch_ns();
    list_add_before(&c->sent, &p->link);
    return ST_OK;
}

enum status
http_client_send(struct http_client *c, struct delivery *p, struct reason *why)
{
    enum status st = c->loaded ? ST_OK : curl_library_load(&c->curl, why);

    if (st != ST_OK)
        return st;
    c->loaded = true;
    st = write_request(c, p, why);
    if (st == ST_OK)
        st = start_transfer(c, p, why);
    if (st != ST_OK)
        clear_delivery(c, p);
    return st;
}

void
http_client_abort(struct http_client *c, struct delivery *p)
{
    /* Cannot fail for a handle that was added. */
    (void)c->curl.multi_remove_handle(c->multi, p->handle);
    list_remove(&p->link);
    clear_delivery(c, p);
}

/* ------------------------------------------------------------------ endings */

static void
read_failure(const struct http_client *c, const struct delivery *p, CURLcode result,
             struct ending *how, struct reason *why)
{
    long status = 0;

    how->timed_out = result == CURLE_OPERATION_TIMEDOUT;
    /* CURLE_UNSUPPORTED_PROTOCOL means that the response is not HTTP, because URLs with
     * other schemes are not sent. */
    if (result == CURLE_URL_MALFORMAT)
        how->kind = ENDING_IMPOSSIBLE;
    /* Statuses of SMTP from 550 on are permanent (docs/api.md 20.5). Others are not, nor
     * is a failed login, because an operator can correct their causes. */
    if (p->target.kind == TARGET_MAIL && result != CURLE_LOGIN_DENIED &&
        c->curl.easy_getinfo(p->handle, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK &&
        status >= 550)
        *how = (struct ending){
            .kind = ENDING_RESPONSE, .status = 400, .timed_out = how->timed_out};
    if (p->blocked)
        (void)reason_give(why, ST_OK, "the address is not allowed (notify_allow)");
    else if (result == CURLE_WRITE_ERROR)
        (void)reason_give(why, ST_OK, "the response of the subscriber is too long");
    else if (result == CURLE_UNSUPPORTED_PROTOCOL && p->target.kind != TARGET_MAIL)
        (void)reason_give(why, ST_OK, "the response of the subscriber is not HTTP");
    else
        (void)reason_give(why, ST_OK, "%s", c->curl.easy_strerror(result));
}

struct delivery *
http_client_next_ended(struct http_client *c, struct ending *how, struct reason *why)
{
    struct delivery *p = NULL;
    curl_off_t wait_s = 0;
    long status = 0;
    CURLMsg *ended;
    int left;

    if (c->multi == NULL)
        return NULL;
    do
        ended = c->curl.multi_info_read(c->multi, &left);
    while (ended != NULL && ended->msg != CURLMSG_DONE);
    if (ended == NULL)
        return NULL;
    (void)c->curl.easy_getinfo(ended->easy_handle, CURLINFO_PRIVATE, &p);
    reason_init(why);
    *how = (struct ending){.kind = ENDING_NO_RESPONSE};
    if (ended->data.result != CURLE_OK) {
        read_failure(c, p, ended->data.result, how, why);
    } else if (c->curl.easy_getinfo(p->handle, CURLINFO_RESPONSE_CODE, &status) ==
                   CURLE_OK &&
               status >= 200) {
        how->kind = ENDING_RESPONSE;
        how->status = (int)status;
        if (c->curl.easy_getinfo(p->handle, CURLINFO_RETRY_AFTER, &wait_s) == CURLE_OK)
            how->retry_after_s = wait_s;
    }
    http_client_abort(c, p); /* which frees `ended` */
    return p;
}

/* ------------------------------------------------------------------ rounds */

void
http_client_perform(struct http_client *c)
{
    int running;

    if (c->multi != NULL) /* transfers report their own failures */
        (void)c->curl.multi_perform(c->multi, &running);
}

void
http_client_wait(struct http_client *c, int fd, int timeout_ms)
{
    struct curl_waitfd extra = {.fd = fd, .events = CURL_WAIT_POLLIN};
    int ready;

    (void)c->curl.multi_poll(c->multi, &extra, 1, timeout_ms, &ready);
}

void
http_client_close_idle(struct http_client *c)
{
    ENSURE(list_empty(&c->sent));
    if (c->multi != NULL)
        (void)c->curl.multi_cleanup(c->multi);
    c->multi = NULL;
}

/* ------------------------------------------------------------------ life */

void
http_client_init(struct http_client *c, const struct notify_config *config)
{
    *c = (struct http_client){.config = config};
    c->composer.config = config;
    arena_init(&c->composer.arena, config->mem);
    list_init(&c->sent);
}

void
http_client_fini(struct http_client *c)
{
    http_client_close_idle(c);
    arena_fini(&c->composer.arena);
}
