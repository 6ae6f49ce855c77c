#include "notify/courier.h"

/* ------------------------------------------------------------------ sending */

/* Gives back what it needed while it was sent. */
static void
clear(struct courier *c, struct parcel *p)
{
    if (p->handle != NULL)
        c->pack.curl.easy_cleanup(p->handle);
    c->pack.curl.slist_free_all(p->headers);
    c->pack.curl.slist_free_all(p->recipients);
    p->handle = NULL;
    p->read = 0;
    p->headers = p->recipients = NULL;
    buf_reset(&p->url, 0);
    buf_reset(&p->text, 0);
}

static enum status
start(struct courier *c, struct parcel *p, struct reason *why)
{
    if (c->multi == NULL) {
        c->multi = c->pack.curl.multi_init();
        if (c->multi == NULL)
            return ST_NO_MEMORY;
        (void)c->pack.curl.multi_setopt(c->multi, CURLMOPT_MAXCONNECTS,
                                        (long)c->pack.config->workers);
    }
    p->handle = c->pack.curl.easy_init();
    if (p->handle == NULL)
        return ST_NO_MEMORY;
    if (!packing_set(&c->pack, p))
        return reason_give(why, ST_UNAVAILABLE,
                           "libcurl lacks an option. claimd needs libcurl 7.87 or later");
    if (c->pack.curl.multi_add_handle(c->multi, p->handle) != CURLM_OK)
        return ST_NO_MEMORY;
    p->began_ns = clock_stopwatch_ns();
    list_add_before(&c->sent, &p->link);
    return ST_OK;
}

enum status
courier_send(struct courier *c, struct parcel *p, struct reason *why)
{
    enum status st = packing_write(&c->pack, p, why);

    if (st == ST_OK)
        st = start(c, p, why);
    if (st != ST_OK)
        clear(c, p);
    return st;
}

static void
take_back(struct courier *c, struct parcel *p)
{
    (void)c->pack.curl.multi_remove_handle(c->multi,
                                           p->handle); /* fails for no handle of it */
    list_remove(&p->link);
    clear(c, p);
}

void
courier_break_off(struct courier *c, struct parcel *p)
{
    take_back(c, p);
}

/* ------------------------------------------------------------------ endings */

static void
read_answer(const struct courier *c, struct parcel *p, struct ending *how)
{
    curl_off_t wait_s = 0;
    long status = 0;

    if (c->pack.curl.easy_getinfo(p->handle, CURLINFO_RESPONSE_CODE, &status) !=
            CURLE_OK ||
        status < 200)
        return;
    how->kind = ENDING_ANSWER;
    how->status = (int)status;
    if (c->pack.curl.easy_getinfo(p->handle, CURLINFO_RETRY_AFTER, &wait_s) == CURLE_OK)
        how->retry_after_s = wait_s;
}

/* 5xx of SMTP is final, like 4xx of HTTP; but for who we are, which its operator can change. */
static void
read_refusal(const struct courier *c, const struct parcel *p, CURLcode result,
             struct ending *how)
{
    long status = 0;

    if (p->target.kind != TARGET_MAIL || result == CURLE_LOGIN_DENIED ||
        c->pack.curl.easy_getinfo(p->handle, CURLINFO_RESPONSE_CODE, &status) !=
            CURLE_OK ||
        status < 550)
        return;
    how->kind = ENDING_ANSWER;
    how->status = 400;
}

static void
explain(const struct courier *c, const struct parcel *p, CURLcode result,
        struct ending *how, struct reason *why)
{
    *how = (struct ending){.kind = ENDING_NONE,
                           .timed_out = result == CURLE_OPERATION_TIMEDOUT};
    /* CURLE_UNSUPPORTED_PROTOCOL is an answer that is not HTTP: of URLs others do not get here. */
    if (result == CURLE_URL_MALFORMAT)
        how->kind = ENDING_IMPOSSIBLE;
    read_refusal(c, p, result, how);
    if (p->kept_out)
        (void)reason_give(why, ST_OK, "the address is not allowed (notify_allow)");
    else if (result == CURLE_WRITE_ERROR)
        (void)reason_give(why, ST_OK, "the response of the subscriber is too long");
    else if (result == CURLE_UNSUPPORTED_PROTOCOL && p->target.kind != TARGET_MAIL)
        (void)reason_give(why, ST_OK, "the response of the subscriber is not HTTP");
    else
        (void)reason_give(why, ST_OK, "%s", c->pack.curl.easy_strerror(result));
}

struct parcel *
courier_next(struct courier *c, struct ending *how, struct reason *why)
{
    struct parcel *p = NULL;
    CURLMsg *said;
    int left;

    if (c->multi == NULL)
        return NULL;
    do
        said = c->pack.curl.multi_info_read(c->multi, &left);
    while (said != NULL && said->msg != CURLMSG_DONE);
    if (said == NULL)
        return NULL;
    (void)c->pack.curl.easy_getinfo(said->easy_handle, CURLINFO_PRIVATE, &p);
    reason_init(why);
    if (said->data.result == CURLE_OK) {
        *how = (struct ending){.kind = ENDING_NONE};
        read_answer(c, p, how);
    } else {
        explain(c, p, said->data.result, how, why);
    }
    take_back(c, p); /* `said` is gone */
    return p;
}

/* ------------------------------------------------------------------ rounds */

void
courier_go_on(struct courier *c)
{
    int running;

    if (c->multi != NULL)
        (void)c->pack.curl.multi_perform(c->multi,
                                         &running); /* what fails says so at its end */
}

void
courier_wait(struct courier *c, int fd, int timeout_ms)
{
    struct curl_waitfd extra = {.fd = fd, .events = CURL_WAIT_POLLIN};
    int ready;

    (void)c->pack.curl.multi_poll(c->multi, &extra, 1, timeout_ms, &ready);
}

void
courier_rest(struct courier *c)
{
    ENSURE(list_empty(&c->sent));
    if (c->multi != NULL)
        (void)c->pack.curl.multi_cleanup(c->multi);
    c->multi = NULL;
}

/* ------------------------------------------------------------------ life */

void
courier_init(struct courier *c, const struct notify_config *config)
{
    *c = (struct courier){.pack.config = config};
    composer_init(&c->pack.composer, config);
    list_init(&c->sent);
}

enum status
courier_load(struct courier *c, struct reason *why)
{
    enum status st;

    if (c->loaded)
        return ST_OK;
    st = curl_library_load(&c->pack.curl, why);
    c->loaded = st == ST_OK;
    return st;
}

void
courier_fini(struct courier *c)
{
    courier_rest(c);
    composer_fini(&c->pack.composer);
}
