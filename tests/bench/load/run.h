/*
 * run: the phases of a measurement, their result, and its reports as text, JSON and CSV.
 *
 *   prepare  ->  fill  ->  hold  ->  [storm: fill, hold]  ->  measure
 */
#ifndef LOAD_RUN_H
#define LOAD_RUN_H

#include "load/options.h"
#include "load/stats.h"

#include <stdio.h>

struct result {
    struct stats *stats;  /* owned */
    struct series series; /* of the measurement */
    enum op counted;      /* scenario_counted() */
    double seconds;       /* length of the measurement */
    double fill_seconds;  /* 0: no backlog */
    bool has_server;      /* --server-pid was given: the next members are defined */
    double server_cpu_seconds;
    uint64_t server_requests;                 /* with a response in that time */
    double server_seconds;                    /* length of that time */
    double own_cpu_seconds;                   /* of the load generator in that time */
    uint64_t resident_before, resident_after; /* RSS without and with the backlog */
    uint64_t undelivered; /* DELIVERY: messages that were due and never claimed */
    double storm_at;      /* seconds after the start of the measurement; 0: none */
};

/*
 * Runs command_bench. Returns its exit status: 1 if the run failed or the server refused
 * requests, 2 if the arguments are wrong.
 */
int run_bench(const struct command_args *args);

void report_text(const struct options *o, const struct result *r, FILE *out);
void report_json(const struct options *o, const struct result *r, FILE *out);

/* Writes a header line and one row per operation. */
void report_csv(const struct options *o, const struct result *r, FILE *out);

#endif
