#include "http/access_log.h"

#include "http/address.h"

void
access_log_write(const struct server_config *config, const struct exchange *ex)
{
    enum log_level level = ex->code >= 500 ? LOG_WARN : LOG_INFO;
    char client[ADDRESS_TEXT_CAP];

    if ((level == LOG_INFO && !config->access_log) || !log_wants(config->log, level))
        return;
    address_text(&ex->conn->peer.any, ex->conn->peer_len, client);
    log_event(config->log, level, "request", LOG_S("method", ex->method),
              LOG_B("path", ex->request.path), LOG_I("status", ex->code),
              LOG_I("bytes", ex->sent),
              LOG_I("duration_us", (clock_stopwatch_ns() - ex->started_ns) / 1000),
              LOG_S("request_id", ex->id), LOG_S("client", client));
}
