#include "claimd/store/figures.h"

/* From what an idle worker needs to what nobody notices until the next morning. */
#define TIMES_MS                                                                         \
    {                                                                                    \
        14,                                                                              \
        {                                                                                \
            1, 5, 25, 100, 500, 1000, 5000, 15000, 60000, 300000, 900000, 3600000,       \
                14400000, 86400000                                                       \
        }                                                                                \
    }

const struct bucket_bounds store_span_bounds[STORE_SPANS] = {
    [STORE_SPAN_WAITED] = TIMES_MS,
    [STORE_SPAN_WORKED] = TIMES_MS,
    [STORE_SPAN_ATTEMPTS] = {6, {1, 2, 3, 5, 10, 20}},
};
