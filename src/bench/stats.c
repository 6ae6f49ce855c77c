#include "bench/stats.h"

#include <stdlib.h>

const char *
op_name(enum op op)
{
    static const char *const names[OP_COUNT] = {
#define OP_TEXT(name, text) text,
        OP_LIST_ALL(OP_TEXT)
#undef OP_TEXT
    };

    return names[op];
}

struct stats *
stats_new(void)
{
    return calloc(1, sizeof(struct stats));
}

void
op_stats_merge(struct op_stats *into, const struct op_stats *from)
{
    for (size_t i = 0; i < OP_COUNT; i++) {
        histogram_merge(&into->latency[i], &from->latency[i]);
        into->requests[i] += from->requests[i];
        into->messages[i] += from->messages[i];
        into->errors[i] += from->errors[i];
    }
    histogram_merge(&into->delivery, &from->delivery);
}

void
stats_merge(struct stats *into, const struct stats *from)
{
    op_stats_merge(&into->calm, &from->calm);
    op_stats_merge(&into->storm, &from->storm);
    into->empty_claims += from->empty_claims;
    into->unfinished += from->unfinished;
    if (into->first_error == 0)
        into->first_error = from->first_error;
}

static uint64_t
sum_of(const uint64_t counts[OP_COUNT])
{
    uint64_t sum = 0;

    for (size_t i = 0; i < OP_COUNT; i++)
        sum += counts[i];
    return sum;
}

uint64_t
op_stats_requests(const struct op_stats *s)
{
    return sum_of(s->requests);
}

uint64_t
op_stats_errors(const struct op_stats *s)
{
    return sum_of(s->errors);
}
