/*
 * refused: what the log tells of requests that could not be served when not every request
 * has its line: enough to see why, and never as much as there are requests.
 *
 * For each reason the first one is told of at once; then, while they keep coming, one in
 * REFUSED_LINE_MS with how many came between; and when none has come for
 * REFUSED_OVER_MS, that it is over.
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
#ifndef HTTP_REFUSED_H
#define HTTP_REFUSED_H

#include "claimd/base/lock.h"
#include "claimd/base/log.h"
#include "claimd/base/status.h"

enum { REFUSED_LINE_MS = 1000, REFUSED_OVER_MS = 5000 };

struct refused_reason {
    uint64_t requests;   /* since the first; 0: none is refused for this reason */
    uint64_t suppressed; /* of them, since the last line */
    int64_t line_ms;     /* when the last line was; these two while requests > 0 */
    int64_t last_ms;     /* when the last request was refused */
};

struct refused {
    struct lock lock; /* guards reasons */
    struct refused_reason reasons[ST_COUNT];
    _Atomic int64_t over_ms; /* when something may be over; early but never late */
};

void refused_init(struct refused *r);
void refused_fini(struct refused *r);

/*
 * Counts a request that was refused. True if it is to be logged; *suppressed is then how
 * many were not since the last one that was.
 */
bool
refused_note(struct refused *r, enum status why, int64_t now_ms, uint64_t *suppressed);

/* Logs what is over. Returns when to call it again, INT64_MAX for never. */
int64_t refused_settle(struct refused *r, const struct log *log, int64_t now_ms);

/* Logs what is not over yet, since no more requests will come. */
void refused_end(struct refused *r, const struct log *log);

#endif
