/*
 * run: the phases of a measurement one after another, what came out of them, and its reports for people
 * and for programs.
 *
 *   prepare  ->  fill  ->  hold  ->  [storm: fill, hold]  ->  measure
 */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include "bench/options.h"
#include "bench/stats.h"

#include <stdio.h>

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

/* A line of a report: an operation, or the way of messages from post to claim (DELIVERY). */
struct report_row {
    const char *name;
    uint64_t requests, messages, errors; /* requests 0: of deliveries */
    const struct histogram *latency;     /* borrowed */
};

#define REPORT_ROWS (OP_COUNT + 1)

/* The rows of what has happened; how many. */
size_t report_rows(const struct op_stats *s, struct report_row rows[REPORT_ROWS]);

/* A percentile in microseconds. */
double report_us(const struct histogram *h, double percent);

const char *report_label(const struct options *o);

void report_text(const struct options *o, const struct result *r, FILE *out);
void report_json(const struct options *o, const struct result *r, FILE *out);

/* A header line and a row an operation. */
void report_csv(const struct options *o, const struct result *r, FILE *out);

/*
 * Two diagrams in one SVG document, written by hand: latency by percentile (both axes logarithmic)
 * and throughput over time. Fits light and dark pages.
 */
void plot_svg(const struct options *o, const struct result *r, FILE *out);

#endif
