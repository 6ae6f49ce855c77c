/*
 * traffic: how many requests a worker has answered, by route, method and status, and how long
 * they took; and how many are parked, by what they wait for.
 *
 * A route is known by its pattern, a literal, so its address is enough. Rows are made when
 * they are first needed: nobody asks for most routes.
 *
 *   Memory   about 700 bytes for a route and method that was asked for; without memory it
 *            counts among the others (no route, no method)
 *   Cost     a search in a small table, and some additions
 *   Threads  the worker counts; any thread reads
 */
#ifndef HTTP_TRAFFIC_H
#define HTTP_TRAFFIC_H

#include "claimd/api/api.h"
#include "claimd/base/counter.h"

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
extern const struct bucket_bounds traffic_bounds_us;

void traffic_init(struct traffic *t, struct mem *mem);
void traffic_fini(struct traffic *t);

/* A request was answered, or ended without an answer (code 0: not counted). */
void traffic_count(struct traffic *t, const char *route, enum method method, int code,
                   int64_t took_us);

/*
 * Adds what `from`, which others are counting in, has to `to`, which is the caller's. Without
 * memory for a row it counts among the rest.
 */
void traffic_merge(struct traffic *to, const struct traffic *from);

#endif
