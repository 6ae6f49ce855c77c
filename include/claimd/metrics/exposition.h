/*
 * exposition: figures as the text that Prometheus and its like read.
 *
 *     PROMETHEUS    text format 0.0.4
 *     OPENMETRICS   OpenMetrics 1.0, for those whose Accept asks for it
 *
 * A family has a head, and behind it its samples one by one; a family comes once. In both
 * formats a sample has the same name: those of counters end in _total, which the head of
 * OpenMetrics leaves out.
 *
 *   Errors   the buffer tells of a lack of memory, as always
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
    const char *unit; /* "seconds": the name ends with it; NULL: it counts */
    const char *help; /* without backslashes, quotes and ends of lines */
};

struct label {
    const char *name; /* a literal */
    struct bytes value;
};

struct exposition {
    struct buf *out; /* borrowed */
    enum exposition_format format;
    const struct family *family; /* whose samples are written */
};

/* The value of the Content-Type that goes with it. */
const char *exposition_type(enum exposition_format format);

void
exposition_begin(struct exposition *x, struct buf *out, enum exposition_format format);

/* The head of a family, borrowed until the next one. */
void exposition_family(struct exposition *x, const struct family *family);

/* One sample of a counter, gauge or info (value 1). */
void exposition_sample(struct exposition *x, const struct label *labels, size_t count,
                       uint64_t value);

/* The same in units of 10^-digits: 1500 with 3 digits is 1.5. */
void exposition_decimal(struct exposition *x, const struct label *labels, size_t count,
                        uint64_t value, unsigned digits);

/* All samples of one histogram, bounds and sum in units of 10^-digits. */
void exposition_buckets(struct exposition *x, const struct label *labels, size_t count,
                        const struct buckets *buckets, const struct bucket_bounds *bounds,
                        unsigned digits);

/* A family of one sample without labels. */
void exposition_single(struct exposition *x, const struct family *family, uint64_t value);

void exposition_end(struct exposition *x);

/* A part of the program that has figures; embedded where they are. */
struct metrics_source {
    struct metrics_source *next;
    /* Writes its families. Any thread; others may be counting. */
    void (*write)(struct metrics_source *source, struct exposition *x);
};

/* All sources. Added to before anybody asks. */
struct metrics {
    struct metrics_source *first, *last;
    size_t shown_queues; /* of which queues are shown one by one, at most */
};

void metrics_add(struct metrics *m, struct metrics_source *source);
void metrics_write(const struct metrics *m, struct exposition *x);

#endif
