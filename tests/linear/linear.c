/*
 * linear: records histories of a server at HOST PORT and checks that each could have
 * happened one request at a time.
 *
 *     linear HOST PORT SEED ROUNDS
 *
 * Half of the rounds have few workers with many requests each, half many with few. The
 * seed repeats the workers' choices but not the scheduling, so a failure is shown whole.
 */
#include "linear/recorder.h"
#include "linear/search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int
by_call(const void *a, const void *b)
{
    const struct operation *x = a, *y = b;

    return (x->call_ns > y->call_ns) - (x->call_ns < y->call_ns);
}

/* Marked are those that no order could be found for; the first of them tells most. */
static void
print_history(const struct history *h, const struct search_result *result)
{
    for (size_t i = 0; i < h->count; i++) {
        printf("%s ", result->ordered[i] ? " " : "!");
        operation_print(&h->ops[i]);
    }
}

/* How many operations overlap with one that was called before them. */
static size_t
count_overlapping(const struct history *h)
{
    int64_t latest_ns = 0;
    size_t overlapping = 0;

    for (size_t i = 0; i < h->count; i++) {
        overlapping += h->ops[i].call_ns < latest_ns;
        if (h->ops[i].reply_ns > latest_ns)
            latest_ns = h->ops[i].reply_ns;
    }
    return overlapping;
}

static bool
check(struct history *h, size_t *overlapping)
{
    static const char *const words[] = {"can be put in order", "cannot be put in order",
                                        "takes too long to check"};
    struct search_result result;

    qsort(h->ops, h->count, sizeof(h->ops[0]), by_call);
    search(h->ops, h->count, &result);
    *overlapping += count_overlapping(h);
    if (result.verdict == LINEARIZABLE)
        return true;
    printf("a history of %zu operations %s; the longest order has %zu of them\n",
           h->count, words[result.verdict], result.longest);
    print_history(h, &result);
    return false;
}

int
main(int argc, char **argv)
{
    static struct history histories[RECORDER_QUEUES];
    struct recording recording = {.workers = 0};
    size_t operations = 0, overlapping = 0;
    bool good = true;
    uint64_t rounds;

    if (argc != 5) {
        (void)fputs("usage: linear HOST PORT SEED ROUNDS\n", stderr);
        return 2;
    }
    recording.host = argv[1];
    recording.port = argv[2];
    recording.seed = strtoull(argv[3], NULL, 0);
    rounds = strtoull(argv[4], NULL, 0);
    for (; good && recording.round < rounds; recording.round++) {
        recording.workers = recording.round % 2 == 0 ? 4 : 16;
        recording.operations = 320 / recording.workers;
        record(&recording, histories);
        for (size_t i = 0; i < RECORDER_QUEUES; i++) {
            operations += histories[i].count;
            good = check(&histories[i], &overlapping) && good;
        }
    }
    printf("seed %" PRIu64 ": %" PRIu64 " rounds, %zu operations, %zu of them while"
           " others were under way\n",
           recording.seed, recording.round, operations, overlapping);
    /* Histories without concurrency would prove nothing. */
    if (overlapping < operations / 10) {
        printf("too few at the same time to mean anything\n");
        good = false;
    }
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
