/*
 * series: throughput over time, one sample every 100 ms.
 */
#ifndef BENCH_SERIES_H
#define BENCH_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sample {
    double at;         /* seconds since the start of the measurement */
    uint64_t requests; /* all since the start of the phase */
    uint64_t messages;
    uint64_t errors;
};

struct series {
    struct sample *samples; /* owned */
    size_t count;
    size_t cap;
};

/* False when out of memory. */
bool series_add(struct series *s, struct sample sample);
void series_fini(struct series *s);

/* Per second over `span` samples that end with sample i (i >= span). */
double series_rate(const struct series *s, size_t i, size_t span, bool messages);

#endif
