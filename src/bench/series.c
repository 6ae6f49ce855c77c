#include "bench/series.h"

#include <stdlib.h>

bool
series_add(struct series *s, struct sample sample)
{
    if (s->count == s->cap) {
        size_t cap = s->cap == 0 ? 256 : s->cap * 2;
        struct sample *grown = realloc(s->samples, cap * sizeof *grown);

        if (grown == NULL)
            return false;
        s->samples = grown;
        s->cap = cap;
    }
    s->samples[s->count++] = sample;
    return true;
}

void
series_fini(struct series *s)
{
    free(s->samples);
    *s = (struct series){.samples = NULL};
}

double
series_rate(const struct series *s, size_t i, size_t span, bool messages)
{
    const struct sample *to = &s->samples[i];
    const struct sample *from = &s->samples[i - span];
    uint64_t done =
        messages ? to->messages - from->messages : to->requests - from->requests;
    double seconds = to->at - from->at;

    return seconds > 0 ? (double)done / seconds : 0;
}
