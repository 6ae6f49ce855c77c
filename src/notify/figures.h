/*
 * figures: what /metrics shows of delivery (docs/metrics.md).
 *
 *   Threads  the courier's counts; any reads
 */
#ifndef NOTIFY_FIGURES_H
#define NOTIFY_FIGURES_H

#include "claimd/metrics/exposition.h"
#include "notify/verdict.h"

struct figures {
    struct counter tries[VERDICT_KINDS]; /* by what came of them */
    struct counter put_off;              /* were not tried */
    struct counter kept_out;             /* by the guard */
    struct counter in_flight, waiting;   /* now */
    struct buckets took_us;
};

void figures_count(struct figures *f, enum verdict_kind kind, int64_t took_ns);

void figures_write(const struct figures *f, uint64_t slow_hosts, struct exposition *x);

#endif
