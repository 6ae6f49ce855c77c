/*
 * report: the result of a run for people and for programs.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "bench/run.h"

#include <stdio.h>

/* The percentiles that every report shows, and their names in files. */
#define REPORT_PERCENTILES 5
extern const double report_percentiles[REPORT_PERCENTILES];

/* A percentile in microseconds. */
double report_us(const struct histogram *h, double percent);

double report_messages_per_second(const struct result *r);
double report_requests_per_second(const struct result *r);

/* The server's CPU in microseconds a request; 0 when it was not accounted. */
double report_server_cpu_us(const struct result *r);

/* RSS a backlog message in bytes; 0 when it was not measured. */
double report_resident_bytes(const struct options *o, const struct result *r);

/* What reports call the latency of DELIVERY, from a message's due time to its claim. */
#define REPORT_DELIVERY "post to claim"

const char *report_label(const struct options *o);

void report_text(const struct options *o, const struct result *r, FILE *out);
void report_json(const struct options *o, const struct result *r, FILE *out);

/* A header line and a row an operation. */
void report_csv(const struct options *o, const struct result *r, FILE *out);

#endif
