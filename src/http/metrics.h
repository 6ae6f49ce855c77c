/*
 * metrics: what the front end counts, and how /metrics shows it.
 *
 * Traffic is how many requests a worker has completed, by route, method and status, and how long
 * they took. A route is known by its pattern, a literal, so its address is enough. Rows are made
 * when they are first needed: most routes are never used.
 *
 *   Memory   about 700 bytes for a route and method in use; without memory it counts among the
 *            others (no route, no method)
 *   Cost     a search in a small table, and some additions
 *   Threads  the worker counts; any thread reads
 */
#ifndef HTTP_METRICS_H
#define HTTP_METRICS_H

#include "claimd/api/api.h"
#include "claimd/base/counter.h"
#include "claimd/metrics/exposition.h"
#include "http/exchange.h"

enum { TRAFFIC_ROWS = 256, TRAFFIC_CODES = 24 };

struct traffic_row {
    const char *route; /* borrowed for ever */
    enum method method;
    struct counter codes[TRAFFIC_CODES + 1]; /* traffic_codes, and all others */
    struct buckets took_us;
};

struct traffic {
    struct mem *mem;                                  /* borrowed */
    _Atomic(struct traffic_row *) rows[TRAFFIC_ROWS]; /* owned; by a hash, NULL: free */
    size_t count;
    struct traffic_row rest;
};

extern const int traffic_codes[TRAFFIC_CODES];

void traffic_init(struct traffic *t, struct mem *mem);
void traffic_fini(struct traffic *t);

/* Counts a response; code 0: the request ended without one, and is not counted. */
void traffic_count(struct traffic *t, const char *route, enum method method, int code,
                   int64_t took_us);

/*
 * Adds the counts of `from`, while its worker goes on counting, to `to`, which is the caller's.
 * Without memory for a row it counts among the rest.
 */
void traffic_merge(struct traffic *to, const struct traffic *from);

/* Of all workers together. */
struct http_counts {
    size_t workers, max_connections, max_waiters;
    uint64_t accepted, refused;          /* connections */
    uint64_t connections[CONN_PHASES];   /* by phase */
    uint64_t suspended[EXCHANGE_STATES]; /* exchanges, by state */
};

/* Writes the front end's families. Any thread. */
void http_metrics_write(const struct http_counts *counts, const struct traffic *traffic,
                        struct exposition *x);

#endif
