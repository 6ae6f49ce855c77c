/*
 * process_metrics: metrics of the process (docs/metrics.md): version, memory, processor
 * time, descriptors, log and reloads. Also the limit of its memory.
 *
 *   Threads  any, except for process_metrics_init()
 */
#ifndef MAIN_PROCESS_METRICS_H
#define MAIN_PROCESS_METRICS_H

#include "claimd/base/clock.h"
#include "claimd/base/log.h"
#include "claimd/base/mem.h"
#include "claimd/metrics/exposition.h"

#include <stdatomic.h>

struct process_metrics {
    struct metrics_source source;
    const struct mem *mem; /* borrowed, as is log */
    const struct log *log;
    const struct clock *clock;              /* borrowed */
    int64_t started_ms;                     /* of the clock */
    struct counter reloads, failed_reloads; /* the signal thread writes these four */
    struct counter last_reload_ms, last_reload_ok; /* ok: 1 or 0 */
    _Atomic int64_t counted_ns; /* time of the last count of descriptors; 0: never */
    _Atomic uint64_t descriptors;
};

void process_metrics_init(struct process_metrics *p, const struct mem *mem,
                          const struct log *log, const struct clock *clock);

/* Counts a reload. */
void process_metrics_count_reload(struct process_metrics *p, bool ok);

/*
 * The minimum of the memory of the machine and the limits of the control groups of the
 * process, in bytes (v2: memory.max of the group and all its parents; v1:
 * memory.limit_in_bytes). 0 if it is unknown. `root` is the directory that contains /proc
 * and /sys: "" except in tests.
 *
 * Source: https://docs.kernel.org/admin-guide/cgroup-v2.html
 */
uint64_t memory_limit(const char *root);

#endif
