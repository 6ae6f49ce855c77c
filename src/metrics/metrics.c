#include "claimd/metrics/exposition.h"

void
metrics_add(struct metrics *m, struct metrics_source *source)
{
    source->next = NULL;
    if (m->last == NULL)
        m->first = source;
    else
        m->last->next = source;
    m->last = source;
}

void
metrics_write(const struct metrics *m, struct exposition *x)
{
    for (struct metrics_source *at = m->first; at != NULL; at = at->next)
        at->write(at, x);
}
