#include "support/patient.h"

#include <stdlib.h>

struct patient {
    struct store store; /* first: the seam's handle */
    struct store *hasty;
};

struct store *
patient_inside(struct store *s)
{
    return ((struct patient *)s)->hasty;
}

#define wrapped_store(s) patient_inside(s)
#define WRAP(name, parameters, ...)                                                      \
    static enum status wrapped_##name parameters                                         \
    {                                                                                    \
        enum status st;                                                                  \
                                                                                         \
        do                                                                               \
            st = store_##name(patient_inside(s), __VA_ARGS__);                           \
        while (st == ST_AGAIN);                                                          \
        return st;                                                                       \
    }

#include "support/store_wrapper.h"

WRAP(queue_stats, (WHERE, struct store_stats *out), op, q, out)

static void
wrapped_close(struct store *s)
{
    store_close(patient_inside(s));
    free(s);
}

struct store *
patient_open(struct store *hasty)
{
    struct patient *p = calloc(1, sizeof(*p));

    if (p == NULL)
        abort();
    p->store.vtable = &wrapper_ops;
    p->store.state = &wrapper_state_ops;
    p->hasty = hasty;
    return &p->store;
}
