/*
 * access_log: one line for a request.
 */
#ifndef HTTP_ACCESS_LOG_H
#define HTTP_ACCESS_LOG_H

#include "claimd/http/server.h"
#include "http/exchange.h"

/*
 * Writes the line of an exchange that is over, at level info if the access log is on; at
 * level warn and always for answers of 500 and above. Status 0: libmicrohttpd refused the
 * request by itself, or the client went away before it was whole.
 */
void access_log_write(const struct server_config *config, const struct exchange *ex);

#endif
