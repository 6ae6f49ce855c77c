/*
 * process_metrics: metrics of the process as a whole (docs/metrics.md): what it is, its memory, its
 * processor time and descriptors, its log, and how reloading went; and how much memory it may use.
 */
#ifndef MAIN_PROCESS_METRICS_H
#define MAIN_PROCESS_METRICS_H

#include "claimd/base/clock.h"
#include "claimd/base/lock.h"
#include "claimd/base/log.h"
#include "claimd/base/mem.h"
#include "claimd/metrics/exposition.h"

/*
 * Writes a family of one sample without labels. Unit and help are as in struct family, the value is in
 * units of 10^-digits.
 */
void metric_write(struct exposition *x, enum family_kind kind, const char *name,
                  const char *unit, const char *help, uint64_t value, unsigned digits);

struct process_metrics {
    struct metrics_source source;
    const struct mem *mem; /* borrowed, as is log */
    const struct log *log;
    int64_t started_ms;                     /* real time */
    struct counter reloads, failed_reloads; /* written by the thread of the signals */
    struct counter last_reload_ms, last_reload_well; /* of the last: 1 or 0 */
    struct lock lock;                                /* guards the two behind it */
    int64_t counted_ns; /* when descriptors were counted; 0: never */
    uint64_t descriptors;
};

void process_metrics_init(struct process_metrics *v, const struct mem *mem,
                          const struct log *log, int64_t now_ms);
void process_metrics_fini(struct process_metrics *v);

/* A reload went well, or not. */
void process_metrics_reloaded(struct process_metrics *v, bool well, int64_t now_ms);

/*
 * The least of the machine's memory and the limits of the control groups that the process is
 * in (v2: memory.max of the group and of all above it; v1: memory.limit_in_bytes); in bytes.
 * 0: nothing could be found out. root is "" but in tests, whose /proc and /sys stand there.
 *
 * Source: https://docs.kernel.org/admin-guide/cgroup-v2.html
 */
uint64_t memory_limit(const char *root);

#endif
