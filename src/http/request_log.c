#include "http/request_log.h"

#include "claimd/base/invariant.h"
#include "claimd/http/proxies.h"
#include "http/listener.h"

void
request_log_init(struct request_log *l, const struct log *log, uint64_t one_in)
{
    l->log = log;
    atomic_init(&l->one_in, one_in);
    lock_init(&l->lock);
    memset(l->reasons, 0, sizeof(l->reasons));
    atomic_init(&l->over_ms, INT64_MAX);
    l->proxies = NULL;
}

void
request_log_fini(struct request_log *l)
{
    lock_fini(&l->lock);
}

/* ------------------------------------------------------------------ ids of the client */

struct bytes
trace_id(struct bytes text)
{
    if (text.len == 0 || text.len > TRACE_ID_MAX)
        return BYTES_NONE;
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return BYTES_NONE;
    return text;
}

/* True for `len` lower-case hexadecimal digits. *zero: all digits are 0. */
static bool
has_digits(struct bytes text, size_t len, bool *zero)
{
    *zero = true;
    if (text.len != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        const char c = text.data[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        *zero = *zero && c == '0';
    }
    return true;
}

/* Versions after 00 may have more fields at the end. ff is not a version. */
struct bytes
trace_parent(struct bytes text)
{
    struct bytes rest = text;
    struct bytes version = bytes_cut(&rest, '-'), trace = bytes_cut(&rest, '-');
    struct bytes parent = bytes_cut(&rest, '-'), flags = bytes_cut(&rest, '-');
    bool first, no_trace, no_parent, zero;

    if (!has_digits(version, 2, &first) || !has_digits(trace, 32, &no_trace) ||
        !has_digits(parent, 16, &no_parent) || !has_digits(flags, 2, &zero))
        return BYTES_NONE;
    if (bytes_equal_str(version, "ff") || no_trace || no_parent ||
        (first && bytes_present(rest)) || text.len > TRACE_ID_MAX)
        return BYTES_NONE;
    return text;
}

static struct bytes
keep_text(struct exchange *ex, struct bytes text)
{
    return bytes_present(text) ? arena_copy(&ex->arena, text) : BYTES_NONE;
}

void
request_log_keep_trace(struct exchange *ex)
{
    const struct bytes *headers = ex->request.headers;

    ex->client_id = keep_text(ex, trace_id(headers[API_HEADER_REQUEST_ID]));
    ex->traceparent = keep_text(ex, trace_parent(headers[API_HEADER_TRACEPARENT]));
}

void
request_log_keep_client(struct exchange *ex)
{
    ex->forwarded = keep_text(ex, ex->request.headers[API_HEADER_FORWARDED_FOR]);
}

/* ------------------------------------------------------------------ refused requests */

/* Counts a refused request. True if it gets a line, with the number of requests since the
 * last. */
static bool
count_refused(struct request_log *r, enum status why, int64_t now_ms,
              uint64_t *suppressed)
{
    struct refused_reason *reason = &r->reasons[why];
    bool shown;

    lock_acquire(&r->lock);
    shown = reason->requests == 0 || now_ms - reason->line_ms >= REFUSED_LINE_MS;
    if (reason->requests++ == 0 || reason->last_ms < now_ms)
        reason->last_ms = now_ms;
    if (shown) {
        *suppressed = reason->suppressed;
        reason->suppressed = 0;
        reason->line_ms = now_ms;
    } else {
        reason->suppressed++;
    }
    if (atomic_load(&r->over_ms) > now_ms + REFUSED_OVER_MS)
        atomic_store(&r->over_ms, now_ms + REFUSED_OVER_MS);
    lock_release(&r->lock);
    return shown;
}

int64_t
request_log_expire(struct request_log *l, int64_t now_ms)
{
    struct refused_reason over[ST_COUNT];
    int64_t next_ms = INT64_MAX;

    if (now_ms < atomic_load_explicit(&l->over_ms, memory_order_relaxed))
        return atomic_load_explicit(&l->over_ms, memory_order_relaxed);
    lock_acquire(&l->lock);
    for (int why = 0; why < ST_COUNT; why++) {
        struct refused_reason *reason = &l->reasons[why];

        over[why].requests = 0;
        if (reason->requests == 0)
            continue;
        if (now_ms - reason->last_ms >= REFUSED_OVER_MS) {
            over[why] = *reason;
            *reason = (struct refused_reason){.requests = 0};
        } else if (reason->last_ms + REFUSED_OVER_MS < next_ms) {
            next_ms = reason->last_ms + REFUSED_OVER_MS;
        }
    }
    atomic_store(&l->over_ms, next_ms);
    lock_release(&l->lock);
    for (int why = 0; why < ST_COUNT; why++)
        if (over[why].requests > 0)
            log_event(l->log, LOG_WARN, "refused_requests",
                      LOG_S("reason", status_name((enum status)why)),
                      LOG_I("requests", over[why].requests),
                      LOG_I("suppressed", over[why].suppressed));
    return atomic_load(&l->over_ms);
}

/* ------------------------------------------------------------------ lines */

/* The status from the API. Without a call of the API, 503 means that there is no
 * memory. */
static enum status
reason_of(const struct exchange *ex)
{
    if (ex->response.status == ST_OK && ex->code == 503)
        return ST_NO_MEMORY;
    return ex->response.status;
}

struct log_fields {
    struct log_field all[18];
    size_t count;
};

/* Adds a text, unless it is absent or empty. */
static void
add_text(struct log_fields *f, const char *key, struct bytes text)
{
    if (text.len > 0)
        f->all[f->count++] = LOG_B(key, text);
}

/* The texts of add_client(). */
struct client_texts {
    char peer[ADDRESS_TEXT_CAP], client[INET6_ADDRSTRLEN];
};

/* Adds the address of the client, and that of the proxy that named it. */
static void
add_client(struct log_fields *f, const struct request_log *l, const struct exchange *ex,
           struct client_texts *texts)
{
    const bool forwarded = l->proxies != NULL && bytes_present(ex->forwarded) &&
                           proxies_client(l->proxies, ex->forwarded, texts->client);

    address_text(&ex->conn->peer.any, ex->conn->peer_len, texts->peer);
    if (forwarded)
        add_text(f, "client", bytes_str(texts->client));
    add_text(f, forwarded ? "proxy" : "client", bytes_str(texts->peer));
}

static void
write_refused(struct request_log *l, int64_t now_ms, const struct exchange *ex)
{
    enum status why = reason_of(ex);
    struct log_fields f = {.count = 0};
    struct client_texts texts;
    uint64_t suppressed;

    if (!count_refused(l, why, now_ms, &suppressed))
        return;
    add_text(&f, "reason", bytes_str(status_name(why)));
    f.all[f.count++] = LOG_I("status", ex->code);
    add_text(&f, "method", bytes_str(ex->method));
    add_text(&f, "path", ex->request.path);
    add_text(&f, "request_id", bytes_str(ex->id));
    add_client(&f, l, ex, &texts);
    f.all[f.count++] = LOG_I("suppressed", suppressed);
    log_write(l->log, LOG_WARN, "refusing_requests", f.all, f.count);
}

static void
write_request(const struct request_log *l, enum log_level level,
              const struct exchange *ex)
{
    int64_t duration_ns = clock_stopwatch_ns() - ex->started_ns;
    const struct response_subject *about = &ex->response.about;
    enum status why = reason_of(ex);
    struct log_fields f = {.count = 0};
    struct client_texts texts;

    add_text(&f, "caller", ex->response.caller);
    add_text(&f, "method", bytes_str(ex->method));
    add_text(&f, "path", ex->request.path);
    add_text(&f, "query", ex->request.query);
    f.all[f.count++] = LOG_I("status", ex->code);
    f.all[f.count++] = LOG_I("bytes", ex->sent);
    f.all[f.count++] = LOG_I("duration_us", duration_ns / 1000);
    add_text(&f, "request_id", bytes_str(ex->id));
    add_client(&f, l, ex, &texts);
    add_text(&f, "project", about->project);
    add_text(&f, "queue", about->queue);
    add_text(&f, "claim", about->claim);
    add_text(&f, "client_request_id", ex->client_id);
    add_text(&f, "traceparent", ex->traceparent);
    if (why != ST_OK)
        add_text(&f, "reason", bytes_str(status_name(why)));
    ENSURE(f.count <= sizeof(f.all) / sizeof(f.all[0]));
    log_write(l->log, level, ex->response.audited ? "audit" : "request", f.all, f.count);
}

void
request_log_write(struct request_log *l, uint64_t *logged, int64_t now_ms,
                  const struct exchange *ex)
{
    enum log_level level = ex->code >= 500 ? LOG_WARN : LOG_INFO;
    uint64_t one_in = request_log_one_in(l);

    if (!log_wants(l->log, level))
        return;
    if (ex->response.audited) {
        write_request(l, level, ex);
        return;
    }
    if (level == LOG_INFO && one_in == 0)
        return;
    if (one_in == 0)
        write_refused(l, now_ms, ex);
    else if (level != LOG_INFO || one_in == 1 || (*logged)++ % one_in == 0)
        write_request(l, level, ex); /* failed requests always have a line */
}
