/*
 * alerts: which rules of docs/prometheus/claimd.rules.yml fire (docs/api.md 26.7).
 *
 * alerts_look() evaluates the rules once a minute, as Prometheus would. Viewers read the
 * result, so their number costs nothing. It reads the metrics of each shown queue once,
 * and the history of those that may have an alert.
 *
 *   Cost     a minute: one /metrics without queues, and one store_queue_metrics() and at
 *            most one sampler_read() for each shown queue. A viewer: O(alerts)
 *   Memory   130 KiB, and about 350 bytes for each alert: at most ALERTS_MOST of queues
 *   Threads  one at a time looks, any thread reads
 */
#ifndef API_ALERTS_H
#define API_ALERTS_H

#include "api/context.h"

enum { ALERTS_MOST = 500 };

struct alerts; /* opaque */

enum status alerts_new(struct mem *mem, struct alerts **out);
void alerts_free(struct alerts *a); /* NULL is fine */

/* Evaluates the rules. */
void alerts_look(struct alerts *a, struct context *ctx);

/*
 * Writes the members of the response. project: only its queues; absent: all. of_server:
 * also the alerts about the server and about the queues that /metrics does not show.
 */
void alerts_write(struct alerts *a, const struct context *ctx, struct bytes project,
                  bool of_server, struct buf *out);

#endif
