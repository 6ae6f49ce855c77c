/*
 * parked: the exchanges of a worker whose answer has to wait (answer.h).
 *
 *   Threads  the worker's, but for log_moved; counts are read by any
 */
#ifndef HTTP_PARKED_H
#define HTTP_PARKED_H

#include "claimd/base/counter.h"
#include "claimd/ds/wheel.h"
#include "claimd/store/waiter.h"
#include "http/exchange.h"

#include <stdatomic.h>

struct parked {
    struct wheel *deadlines;  /* of those WAITING or in `delayed`; owned */
    struct list waiting;      /* their connections, by `turn` */
    struct list slices;       /* connections in SLICES, next one first, likewise, */
    struct list starved;      /* and those in SLICES for which no fiber is free */
    struct list delayed;      /* connections DELAYED, or that rest (fault.h), likewise */
    struct list commits;      /* exchanges in COMMIT, by position */
    struct list fresh;        /* connections to be held when libmicrohttpd has run */
    size_t remote;            /* exchanges in REMOTE or IDENTITY */
    struct fiber_pool fibers; /* they have those in REMOTE */
    struct counter counts[EXCHANGE_STATES]; /* how many exchanges are in which state, of
                                               those that are parked */
    struct store_listener log;              /* told when the log has got on */
    _Atomic bool log_moved;
};

#endif
