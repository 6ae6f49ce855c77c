/*
 * phase: runs the drivers of one plan to their end, and watches them.
 */
#ifndef BENCH_PHASE_H
#define BENCH_PHASE_H

#include "bench/plan.h"
#include "bench/process.h"
#include "bench/series.h"
#include "bench/stats.h"

#define PHASE_THREADS_MAX 64

struct phase {
    const struct plan *plan; /* borrowed */
    const char *title;       /* for progress; NULL: show nothing */
    struct stats *stats;     /* merged into; owned by the caller */
    struct series *series;   /* NULL: none kept */

    /* Written when the phase has reached plan->to_ns; zero before. */
    const struct process_list *server; /* NULL or empty: not accounted */
    double seconds;                    /* between the two readings below */
    double server_cpu_seconds;
    double own_cpu_seconds;
    uint64_t requests;
};

/* Returns NULL, or why it failed: a constant text. Blocks until all drivers have ended.
 */
const char *phase_run(struct phase *p);

#endif
