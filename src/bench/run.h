/*
 * run: the phases of a measurement one after another, and what came out of them.
 *
 *   prepare  ->  fill  ->  hold  ->  [storm: fill, hold]  ->  measure
 */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include "bench/options.h"
#include "bench/stats.h"

struct result {
    struct stats *stats;  /* owned */
    struct series series; /* of the measurement */
    enum op counted;      /* the operation whose messages are the throughput */
    double seconds;       /* recorded */
    double fill_seconds;  /* 0: no backlog */
    bool has_server;      /* the three below are defined */
    double server_cpu_seconds;
    uint64_t server_requests; /* answered in the same time as server_cpu_seconds */
    double server_seconds;    /* length of that time */
    double own_cpu_seconds;   /* of the load generator, in the same time */
    uint64_t resident_before; /* RSS without and with the backlog */
    uint64_t resident_after;
    uint64_t undelivered; /* DELIVERY: messages that were due and never arrived */
    double storm_at;      /* seconds after the start of the measurement; 0: none */
};

/*
 * Runs what the options ask for. False after a message on standard error; *out holds
 * what was measured until then, and needs result_fini() in either case.
 */
bool run_all(const struct options *o, struct result *out);

void result_fini(struct result *r);

#endif
