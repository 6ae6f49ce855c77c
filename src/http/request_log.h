/*
 * request_log: the access log, with one line for a request.
 *
 * A response of 500 and above has level warn, another one info. A line has the reason of
 * a refusal, and the client's ids of the request: X-Request-ID and traceparent (W3C Trace
 * Context). Status 0: libmicrohttpd refused the request by itself, or the client went
 * away before the request was whole.
 *
 * Without the access log only some responses of 500 and above have a line. For each
 * reason, the first request is logged at once. While more follow, one in REFUSED_LINE_MS
 * is logged with the number of those between. After REFUSED_OVER_MS without one, a last
 * line ends the series.
 *
 *     time     0 s   0.2  0.4  ..  1 s              1.9 s              6.9 s
 *     refused  *     *    *    *   *  *  *  *  *  * *
 *     lines    refusing_requests   refusing_requests                   refused_requests
 *                                  suppressed=4                        requests=11
 *
 *   Cost     a lock for a refused request, nothing for another one, and an atomic for
 *            each round of a worker
 *   Threads  any; now_ms is the real time, which all workers share
 */
#ifndef HTTP_REQUEST_LOG_H
#define HTTP_REQUEST_LOG_H

#include "claimd/base/lock.h"
#include "claimd/base/log.h"
#include "http/exchange.h"

enum { REFUSED_LINE_MS = 1000, REFUSED_OVER_MS = 5000, TRACE_ID_MAX = 128 };

struct refused_reason {
    uint64_t requests; /* of the present series; 0: there is none */
    /* While requests > 0: */
    uint64_t suppressed; /* requests since the last line */
    int64_t line_ms;     /* time of the last line */
    int64_t last_ms;     /* time of the last request */
};

/* Of a server. */
struct request_log {
    const struct log *log;   /* borrowed */
    _Atomic uint64_t one_in; /* of so many requests one has a line; 0: none */
    struct lock lock;        /* guards reasons */
    struct refused_reason reasons[ST_COUNT];
    _Atomic int64_t over_ms;       /* when the next series may end; never too late */
    const struct proxies *proxies; /* borrowed; NULL: there are none */
};

void request_log_init(struct request_log *l, const struct log *log, uint64_t one_in);
void request_log_fini(struct request_log *l);

static inline uint64_t
request_log_one_in(const struct request_log *l)
{
    return atomic_load_explicit(&l->one_in, memory_order_relaxed);
}

/* Copies the client's ids of a request, for the log. Without memory the log lacks
 * them. */
void request_log_keep_trace(struct exchange *ex);

/* Copies the address of the client that a proxy names. Without memory the log has the
 * address of the proxy. */
void request_log_keep_client(struct exchange *ex);

/* Writes the line of an exchange that has ended. *logged: a counter of the calling
 * worker. */
void request_log_write(struct request_log *l, uint64_t *logged, int64_t now_ms,
                       const struct exchange *ex);

/*
 * Writes the last lines of series that have ended. INT64_MAX ends all series. Returns
 * when to call it again, INT64_MAX: never.
 */
int64_t request_log_expire(struct request_log *l, int64_t now_ms);

/* ------------------------------------------------------------------ for tests */

/* Returns a client's id if it consists of 1 to TRACE_ID_MAX graphic characters; else
 * absent. */
struct bytes trace_id(struct bytes text);

/* Returns a valid traceparent, "00-<32 digits>-<16 digits>-<2 digits>"; else absent. */
struct bytes trace_parent(struct bytes text);

#endif
