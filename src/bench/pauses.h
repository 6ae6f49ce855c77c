/*
 * pauses: the connections of a driver that pause, the soonest to go on first.
 *
 *   Cost     add O(those that pause longer): an eighth of all, as pauses are of about
 *            one length; remove O(1)
 *   Memory   none: the links stand in the connections
 */
#ifndef BENCH_PAUSES_H
#define BENCH_PAUSES_H

#include "bench/connection.h"

struct pauses {
    struct connection *first; /* NULL: nobody pauses */
    struct connection *last;
};

/* Lets c, which is not in p, pause until its resume_ns. */
void pauses_add(struct pauses *p, struct connection *c);

/* Takes c, which is in p, out. */
void pauses_remove(struct pauses *p, struct connection *c);

#endif
