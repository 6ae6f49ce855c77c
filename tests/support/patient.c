#include "support/patient.h"

#include <stdlib.h>

struct patient {
    struct store store; /* first: the seam's handle */
    struct store *hasty;
    void (*between)(void *arg); /* NULL: nothing */
    void *arg;
};

/* True: the call is to be repeated. */
static bool
again(const struct store *s, enum status st)
{
    const struct patient *p = (const struct patient *)s;

    if (st == ST_AGAIN && p->between != NULL)
        p->between(p->arg);
    return st == ST_AGAIN;
}

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
        while (again(s, st));                                                            \
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

void
patient_between(struct store *s, void (*between)(void *arg), void *arg)
{
    struct patient *p = (struct patient *)s;

    p->between = between;
    p->arg = arg;
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
