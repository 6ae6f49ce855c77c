/*
 * plot: two diagrams in one SVG document, written by hand: latency by percentile (both
 * axes logarithmic) and throughput over time. Fits light and dark pages.
 */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include "bench/run.h"

#include <stdio.h>

void plot_svg(const struct options *o, const struct result *r, FILE *out);

#endif
