/*
 * measure: the figures of the front end: requests, connections, what is parked.
 */
#ifndef HTTP_MEASURE_H
#define HTTP_MEASURE_H

#include "claimd/metrics/exposition.h"
#include "http/acceptor.h"

/* Writes its families, summed over the acceptor's workers. Any thread. */
void measure_write(const struct acceptor *a, struct exposition *x);

#endif
