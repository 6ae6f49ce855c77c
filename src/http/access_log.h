/*
 * access_log: one line for a request.
 */
#ifndef HTTP_ACCESS_LOG_H
#define HTTP_ACCESS_LOG_H

#include "http/exchange.h"
#include "http/worker.h"

/* One request in so many has its line; 0: none. See server_log_requests(). */
uint64_t access_log_one_in(const struct worker_shared *shared);

/*
 * Writes the line of an exchange that is over: at level warn for answers of 500 and above,
 * else at info, with the reason of a refusal. Status 0: libmicrohttpd refused the request
 * by itself, or the client went away before it was whole.
 *
 * Without the access log only answers of 500 and above are told of, and of those as many
 * as refused.h allows.
 */
void access_log_write(struct worker *w, const struct exchange *ex);

#endif
