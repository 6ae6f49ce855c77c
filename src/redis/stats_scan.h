/*
 * stats_scan: metrics of all queues on Redis, or of those that /metrics lists one by one: the first ones in
 * the order of projects and names. Redis has no sum of them, so claimd asks for them one after the other when
 * a client wants to know, but at most once a second.
 *
 *   Threads  any; one scans, the others wait for its result (fibers on the thread pool)
 *   Cost     a script for each queue, and two commands for each project
 */
#ifndef REDIS_STATS_SCAN_H
#define REDIS_STATS_SCAN_H

#include "claimd/base/status.h"

#include <stdint.h>

struct redis_store;

/* Makes s->stats_scan. ST_NO_MEMORY. */
enum status stats_scan_open(struct redis_store *s);

/* Fine if it is not open. */
void stats_scan_close(struct redis_store *s);

/* The age of the oldest dead letter in transfer, in ms. */
int64_t stats_scan_outbox_ms(const struct redis_store *s);

#endif
