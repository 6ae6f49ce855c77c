/*
 * metrics: the counters of the front end, and their families in /metrics.
 *
 * struct traffic counts the requests that a worker has completed, by route, method and
 * status, and how long they took. The address of a route's pattern, a literal, identifies
 * the route. A row is created at its first request, because most routes are never used.
 * It also has how long requests waited for messages that are on the disk only.
 *
 *   Memory   about 700 bytes for a route and method in use. Without memory, requests
 *            count in `rest`
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
    struct counter codes[TRAFFIC_CODES + 1]; /* by traffic_codes; the last: other codes */
    struct buckets took_us;
};

struct traffic {
    struct mem *mem;                                  /* borrowed */
    _Atomic(struct traffic_row *) rows[TRAFFIC_ROWS]; /* owned; by a hash, NULL: free */
    size_t count;
    struct traffic_row rest;      /* requests without a route, or without a row */
    struct buckets load_waits_us; /* of requests for messages on the disk only */
};

extern const int traffic_codes[TRAFFIC_CODES];

void traffic_init(struct traffic *t, struct mem *mem);
void traffic_fini(struct traffic *t);

/* Counts a response. Code 0: the request ended without one, and does not count. */
void traffic_count(struct traffic *t, const char *route, enum method method, int code,
                   int64_t took_us);

/* Counts a wait for messages that are on the disk only. */
void traffic_count_load_wait(struct traffic *t, int64_t took_us);

/* Adds the counts of `from`, while its worker may count, to `to`, which the caller
 * owns. */
void traffic_merge(struct traffic *to, const struct traffic *from);

/* Sums over all workers. */
struct http_counts {
    size_t workers, max_connections, max_waiters;
    uint64_t accepted, refused;          /* connections */
    uint64_t connections[CONN_PHASES];   /* by phase */
    uint64_t suspended[EXCHANGE_STATES]; /* exchanges, by state */
    bool unloads;                        /* messages may be on the disk only */
};

/* Writes the front end's families. Any thread. */
void http_metrics_write(const struct http_counts *counts, const struct traffic *traffic,
                        struct exposition *x);

#endif
