#include "http/access_log.h"

#include "http/address.h"

/* The API says why; a 503 without its word is the front end's, which is out of memory. */
static enum status
reason_of(const struct exchange *ex)
{
    if (ex->response.status == ST_OK && ex->code == 503)
        return ST_NO_MEMORY;
    return ex->response.status;
}

static const char *
client_of(const struct exchange *ex, char out[ADDRESS_TEXT_CAP])
{
    address_text(&ex->conn->peer.any, ex->conn->peer_len, out);
    return out;
}

/* One of many, perhaps: what helps to find out why. */
static void
write_refused(struct worker *w, const struct exchange *ex)
{
    enum status why = reason_of(ex);
    char client[ADDRESS_TEXT_CAP];
    uint64_t suppressed;

    if (!refused_note(&w->shared->refused, why, w->now_ms, &suppressed))
        return;
    log_event(w->shared->config->log, LOG_WARN, "refusing_requests",
              LOG_S("reason", status_name(why)), LOG_I("status", ex->code),
              LOG_S("method", ex->method), LOG_B("path", ex->request.path),
              LOG_S("request_id", ex->id), LOG_S("client", client_of(ex, client)),
              LOG_I("suppressed", suppressed));
}

struct fields {
    struct log_field all[16];
    size_t count;
};

static void
add_number(struct fields *f, const char *key, int64_t number)
{
    f->all[f->count++] = (struct log_field)LOG_I(key, number);
}

/* What is not there, or has no name, has no field. */
static void
add_text(struct fields *f, const char *key, struct bytes text)
{
    if (text.len > 0)
        f->all[f->count++] = (struct log_field)LOG_B(key, text);
}

static void
write_request(const struct log *log, enum log_level level, const struct exchange *ex)
{
    int64_t duration_ns = clock_stopwatch_ns() - ex->started_ns;
    const struct response_subject *about = &ex->response.about;
    enum status why = reason_of(ex);
    struct fields f = {.count = 0};
    char client[ADDRESS_TEXT_CAP];

    add_text(&f, "method", bytes_str(ex->method));
    add_text(&f, "path", ex->request.path);
    add_text(&f, "query", ex->request.query);
    add_number(&f, "status", ex->code);
    add_number(&f, "bytes", (int64_t)ex->sent);
    add_number(&f, "duration_us", duration_ns / 1000);
    add_text(&f, "request_id", bytes_str(ex->id));
    add_text(&f, "client", bytes_str(client_of(ex, client)));
    add_text(&f, "project", about->project);
    add_text(&f, "queue", about->queue);
    add_text(&f, "claim", about->claim);
    add_text(&f, "client_request_id", ex->their_id);
    add_text(&f, "traceparent", ex->traceparent);
    if (why != ST_OK)
        add_text(&f, "reason", bytes_str(status_name(why)));
    log_write(log, level, "request", f.all, f.count);
}

uint64_t
access_log_one_in(const struct worker_shared *shared)
{
    return atomic_load_explicit(&shared->log_one_in, memory_order_relaxed);
}

/* One request in so many; what failed is always told of. */
static bool
is_chosen(struct worker *w, enum log_level level, uint64_t one_in)
{
    return level != LOG_INFO || one_in == 1 || w->logged++ % one_in == 0;
}

void
access_log_write(struct worker *w, const struct exchange *ex)
{
    const struct log *log = w->shared->config->log;
    enum log_level level = ex->code >= 500 ? LOG_WARN : LOG_INFO;
    uint64_t one_in = access_log_one_in(w->shared);

    if ((level == LOG_INFO && one_in == 0) || !log_wants(log, level))
        return;
    if (one_in == 0)
        write_refused(w, ex);
    else if (is_chosen(w, level, one_in))
        write_request(log, level, ex);
}
