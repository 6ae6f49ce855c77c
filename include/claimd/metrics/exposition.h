/*
 * exposition: writes metrics as text for Prometheus and compatible scrapers.
 *
 *     PROMETHEUS    text format 0.0.4
 *     OPENMETRICS   OpenMetrics 1.0, if the header Accept asks for it
 *
 * With exposition_collect() it writes nothing, and a function gets each sample.
 *
 * A family consists of a head and its samples. Each family must be written once. A sample
 * has the same name in both formats. Samples of counters end with _total, which the head
 * in OpenMetrics omits.
 *
 *   Cost     O(bytes written)
 *   Errors   if there is no memory, the buffer is marked as failed
 *   Threads  one for each exposition
 *   Source   https://prometheus.io/docs/instrumenting/exposition_formats/ and
 *            https://github.com/prometheus/OpenMetrics
 */
#ifndef CLAIMD_METRICS_EXPOSITION_H
#define CLAIMD_METRICS_EXPOSITION_H

#include "claimd/base/buf.h"
#include "claimd/base/counter.h"

enum exposition_format { EXPOSITION_PROMETHEUS, EXPOSITION_OPENMETRICS };

enum family_kind { FAMILY_COUNTER, FAMILY_GAUGE, FAMILY_HISTOGRAM, FAMILY_INFO };

struct family {
    const char *name; /* a literal, without _total and _info */
    enum family_kind kind;
    const char *unit; /* "seconds", with which the name ends; NULL: a count */
    const char *help; /* without backslashes, quotes and line feeds */
};

struct label {
    const char *name; /* a literal */
    struct bytes value;
};

/* A sample for exposition_collect(). All is borrowed for the call. */
struct exposition_sample {
    const struct family *family;
    const struct label *labels;
    size_t label_count;
    double bound; /* of a bucket of a histogram, INFINITY: the last one; else 0 */
    double value;
};

typedef void exposition_take(void *arg, const struct exposition_sample *sample);

struct exposition {
    struct buf *out; /* borrowed; NULL: with `take` */
    enum exposition_format format;
    const struct family *family; /* borrowed: of the samples that follow */
    exposition_take *take;       /* NULL: they are written */
    void *take_arg;
};

/* The value of Content-Type. */
const char *exposition_type(enum exposition_format format);

void
exposition_begin(struct exposition *x, struct buf *out, enum exposition_format format);

/* Gives all samples to a function, without the sums and counts of histograms. */
void exposition_collect(struct exposition *x, exposition_take *take, void *arg);

/* Writes the head of a family, which is borrowed until the next one. */
void exposition_family(struct exposition *x, const struct family *family);

/* Writes one sample of a counter, gauge or info (value 1). */
void exposition_sample(struct exposition *x, const struct label *labels, size_t count,
                       uint64_t value);

/* Writes a sample whose value is in units of 10^-digits: 1500 with 3 digits is 1.5. */
void exposition_decimal(struct exposition *x, const struct label *labels, size_t count,
                        uint64_t value, unsigned digits);

/* Writes all samples of one histogram. Bounds and sum are in units of 10^-digits. */
void exposition_buckets(struct exposition *x, const struct label *labels, size_t count,
                        const struct buckets *buckets, const struct bucket_bounds *bounds,
                        unsigned digits);

/* Writes a family with one sample without labels. The value is in units of 10^-digits. */
void metric_write(struct exposition *x, enum family_kind kind, const char *name,
                  const char *unit, const char *help, uint64_t value, unsigned digits);

void exposition_end(struct exposition *x);

/* A part of the program that has metrics. It is a member of the structure of that
 * part. */
struct metrics_source {
    struct metrics_source *next;
    /* Writes the families of the part. Any thread, even while others change the
     * counters. */
    void (*write)(struct metrics_source *source, struct exposition *x);
};

/* All sources. Add them before the first metrics_write(). */
struct metrics {
    struct metrics_source *first, *last;
    size_t shown_queues; /* maximum number of queues with their own series */
};

void metrics_add(struct metrics *m, struct metrics_source *source);
void metrics_write(const struct metrics *m, struct exposition *x);

#endif
