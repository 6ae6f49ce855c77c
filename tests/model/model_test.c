/*
 * Random histories, done by the twin and the engine side by side: every response is
 * compared, and the engine audited.
 *
 * A run is cut into histories of several shapes, each from its own seed, so that a
 * failure is near its beginning; short histories come first. Short and small shapes are
 * audited after every operation; in the others, where an audit costs more than a
 * thousand operations, after every 100th or so (`audit_every`).
 *
 * CLAIMD_TEST_SEED repeats a run, CLAIMD_TEST_OPS sets its length.
 */
#include "model/history.h"
#include "support/check_main.h"
#include "support/random.h"

#include <inttypes.h>
#include <stdio.h>

/* Weights in the order of `enum operation`:
 * post list get del many pop claim query renew release
 * create show update delete-queue list-queues stats purge housekeep
 * wait serve leave give-back subscribe deliver finish redrive */
#define USUAL                                                                            \
    {                                                                                    \
        20, 8, 4, 12, 3, 3, 18, 5, 5, 6, 1, 2, 2, 1, 2, 4, 1, 3, 12, 3, 2, 2, 2, 3, 5, 2 \
    }
#define NO_HOUSEKEEPING                                                                  \
    {                                                                                    \
        20, 8, 4, 12, 3, 3, 18, 5, 5, 6, 1, 2, 2, 1, 2, 4, 1, 0, 8, 1, 2, 2, 2, 3, 5, 2  \
    }
#define MANY_QUEUES                                                                      \
    {                                                                                    \
        20, 6, 3, 8, 2, 4, 14, 3, 3, 4, 10, 5, 4, 12, 8, 4, 3, 6, 12, 3, 2, 2, 2, 3, 5,  \
            3                                                                            \
    }
#define HEAVY_DELETES                                                                    \
    {                                                                                    \
        20, 5, 3, 30, 15, 10, 15, 5, 3, 3, 1, 1, 1, 3, 1, 4, 4, 4, 10, 2, 2, 2, 2, 3, 4, \
            1                                                                            \
    }
#define MANY_DEAD_LETTERS                                                                \
    {                                                                                    \
        18, 7, 6, 8, 4, 2, 30, 3, 2, 24, 1, 1, 4, 1, 1, 4, 1, 2, 10, 3, 2, 4, 2, 3, 8, 6 \
    }

#define WAITERS                                                                          \
    {                                                                                    \
        14, 2, 1, 4, 1, 2, 8, 2, 2, 8, 1, 1, 2, 2, 1, 2, 1, 1, 40, 6, 4, 8, 2, 3, 4, 2   \
    }

#define SUBSCRIBERS                                                                      \
    {                                                                                    \
        20, 2, 1, 8, 2, 4, 6, 1, 1, 2, 1, 1, 3, 1, 1, 2, 2, 2, 2, 1, 1, 1, 14, 40, 2, 1  \
    }

#define FAILING_JOBS                                                                     \
    {                                                                                    \
        20, 6, 4, 2, 1, 1, 30, 3, 2, 2, 1, 1, 3, 1, 1, 3, 1, 2, 8, 3, 1, 1, 2, 3, 40, 14 \
    }

static const struct shape shapes[] = {
    /* name share length queues shards batch backlog still ttl delay claim dead days audit
     * weights confirming */
    {"short", 12, 60, 2, 2, 4, 50, 40, 100, 30, 40, 40, true, 1, USUAL, false},
    {"hot", 10, 5000, 2, 4, 10, 150, 70, 3600, 60, 300, 10, false, 1, USUAL, false},
    {"tiny ttl", 10, 5000, 4, 2, 6, 80, 30, 3, 3, 3, 20, false, 1, USUAL, false},
    {"unkept", 7, 4000, 4, 1, 8, 120, 40, 600, 60, 100, 20, false, 1, NO_HOUSEKEEPING,
     false},
    {"dead letters", 15, 4000, 6, 4, 8, 100, 60, 2000, 0, 60, 90, false, 1,
     MANY_DEAD_LETTERS, false},
    {"deletes", 7, 4000, 4, 4, 20, 200, 60, 900, 30, 200, 10, false, 10, HEAVY_DELETES,
     false},
    {"long jumps", 4, 3000, 4, 2, 8, 150, 40, 1209600, 900, 1000000, 20, true, 1, USUAL,
     false},
    {"many queues", 7, 5000, 180, 16, 3, 400, 60, 600, 30, 60, 20, true, 100, MANY_QUEUES,
     false},
    {"waiters", 10, 3000, 4, 2, 3, 60, 50, 300, 20, 30, 30, false, 1, WAITERS, false},
    {"subscribers", 8, 3000, 4, 2, 4, 80, 40, 60, 20, 40, 20, false, 1, SUBSCRIBERS,
     false},
    {"confirmations", 5, 3000, 2, 2, 3, 60, 40, 30, 10, 40, 20, true, 1, SUBSCRIBERS,
     true},
    {"failing jobs", 10, 3000, 6, 4, 6, 100, 50, 600, 40, 60, 90, false, 1, FAILING_JOBS,
     false},
    {"big batches", 5, 2000, 2, 2, 200, 2500, 60, 1000, 20, 100, 20, false, 100, USUAL,
     false},
};

LOOP_TEST(the_engine_handles_every_history_like_the_twin,
          sizeof(shapes) / sizeof(shapes[0]))
{
    const struct shape *shape = &shapes[_i];
    struct random seeds = {random_seed(shape->name)};
    uint64_t left = random_operations(1000000) * shape->share / 100;
    uint64_t number = 0;

    for (; left > 0; number++) {
        uint64_t length = left < shape->length ? left : shape->length;
        uint64_t seed = random_next(&seeds);

        history_run(shape, seed, length);
        left -= length;
    }
    printf("%s: %" PRIu64 " histories\n", shape->name, number);
}
