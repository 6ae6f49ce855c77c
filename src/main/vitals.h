/*
 * vitals: figures of the process as a whole (docs/metrics.md): what it is, its memory, its
 * processor time and descriptors, its log, and how reloading went.
 */
#ifndef MAIN_VITALS_H
#define MAIN_VITALS_H

#include "claimd/base/clock.h"
#include "claimd/base/lock.h"
#include "claimd/base/log_writer.h"
#include "claimd/base/mem.h"
#include "claimd/metrics/exposition.h"

struct vitals {
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

void vitals_init(struct vitals *v, const struct mem *mem, const struct log *log,
                 int64_t now_ms);
void vitals_fini(struct vitals *v);

/* A reload went well, or not. */
void vitals_reloaded(struct vitals *v, bool well, int64_t now_ms);

#endif
