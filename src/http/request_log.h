/*
 * request_log: one line for a request.
 *
 * Lines of responses of 500 and above have level warn, others info. A line has the reason of a
 * refusal, and the ids by which others know the request: X-Request-ID and traceparent (W3C Trace
 * Context). Status 0: libmicrohttpd refused the request by itself, or the client went away before it
 * was whole.
 *
 * Without the access log only responses of 500 and above are logged, and of those a few. For each
 * reason the first request is logged at once. Then, while more come, one in REFUSED_LINE_MS with the
 * number of those between. When none has come for REFUSED_OVER_MS, a last line says that it is over.
 *
 *     time     0 s   0.2  0.4  ..  1 s              1.9 s              6.9 s
 *     refused  *     *    *    *   *  *  *  *  *  * *
 *     lines    refusing_requests   refusing_requests                   refused_requests
 *                                  suppressed=4                        requests=11
 *
 *   Cost     a lock for a refused request; a served one costs nothing, a round of a
 *            worker one look at an atomic
 *   Threads  any; now_ms is the real time, as all workers have it
 */
#ifndef HTTP_REQUEST_LOG_H
#define HTTP_REQUEST_LOG_H

#include "claimd/base/lock.h"
#include "claimd/base/log.h"
#include "http/exchange.h"

enum { REFUSED_LINE_MS = 1000, REFUSED_OVER_MS = 5000, TRACE_ID_MAX = 128 };

struct refused_reason {
    uint64_t requests;   /* since the first; 0: none is refused for this reason */
    uint64_t suppressed; /* of them, since the last line */
    int64_t line_ms;     /* when the last line was; these two while requests > 0 */
    int64_t last_ms;     /* when the last request was refused */
};

/* Of a server. */
struct request_log {
    const struct log *log;   /* borrowed */
    _Atomic uint64_t one_in; /* one request in so many has its line; 0: none */
    struct lock lock;        /* guards reasons */
    struct refused_reason reasons[ST_COUNT];
    _Atomic int64_t over_ms; /* when something may be over; early but never late */
};

void request_log_init(struct request_log *l, const struct log *log, uint64_t one_in);
void request_log_fini(struct request_log *l);

static inline uint64_t
request_log_one_in(const struct request_log *l)
{
    return atomic_load_explicit(&l->one_in, memory_order_relaxed);
}

/* Keeps the ids that others have given the request. Without memory the log has none: no harm. */
void request_log_keep_trace(struct exchange *ex);

/* Writes the line of an exchange that is over. *logged: a counter of the calling worker. */
void request_log_write(struct request_log *l, uint64_t *logged, int64_t now_ms,
                       const struct exchange *ex);

/*
 * Logs the reasons that are over: all of them if now_ms is INT64_MAX, since no more requests will
 * come. Returns when to call it again, INT64_MAX for never.
 */
int64_t request_log_expire(struct request_log *l, int64_t now_ms);

/* ------------------------------------------------------------------ for tests */

/* A foreign id as it may stand in a log: 1 to TRACE_ID_MAX graphic characters; else absent. */
struct bytes trace_id(struct bytes text);

/* A traceparent if it is a valid one: "00-<32 digits>-<16 digits>-<2 digits>"; else absent. */
struct bytes trace_parent(struct bytes text);

#endif
