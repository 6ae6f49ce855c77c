/*
 * report: the result of a run for people and for programs.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "bench/run.h"

#include <stdio.h>

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
