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

static void
write_request(const struct log *log, enum log_level level, const struct exchange *ex)
{
    int64_t duration_ns = clock_stopwatch_ns() - ex->started_ns;
    enum status why = reason_of(ex);
    char client[ADDRESS_TEXT_CAP];
    const struct log_field fields[] = {
        LOG_S("method", ex->method),
        LOG_B("path", ex->request.path),
        LOG_I("status", ex->code),
        LOG_I("bytes", ex->sent),
        LOG_I("duration_us", duration_ns / 1000),
        LOG_S("request_id", ex->id),
        LOG_S("client", client_of(ex, client)),
        LOG_S("reason", status_name(why)), /* the last: without one it is left out */
    };
    size_t count = sizeof(fields) / sizeof(fields[0]);

    log_write(log, level, "request", fields, why == ST_OK ? count - 1 : count);
}

void
access_log_write(struct worker *w, const struct exchange *ex)
{
    const struct server_config *config = w->shared->config;
    enum log_level level = ex->code >= 500 ? LOG_WARN : LOG_INFO;

    if ((level == LOG_INFO && !config->access_log) || !log_wants(config->log, level))
        return;
    if (config->access_log)
        write_request(config->log, level, ex);
    else
        write_refused(w, ex);
}
