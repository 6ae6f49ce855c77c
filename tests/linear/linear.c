/*
 * linear: records histories of a server at HOST PORT and checks that each could have
 * happened one request at a time.
 *
 *     linear HOST PORT SEED ROUNDS
 *
 * Half of the rounds have few workers with many requests each, half many with few. The
 * seed repeats the workers' choices but not the scheduling, so a failure is shown whole.
 *
 * A history for which the search gives up proves nothing. The round is recorded anew with
 * half the workers, if need be down to one, whose histories take one step an operation; so
 * every round ends with histories that were judged.
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

/* How many would rather have waited, and got something. */
static size_t
count_waiting(const struct history *h)
{
    size_t waiting = 0;

    for (size_t i = 0; i < h->count; i++)
        waiting += h->ops[i].waits && h->ops[i].count > 0;
    return waiting;
}

/* What the rounds have come to. */
struct tally {
    uint64_t rounds;
    size_t operations, overlapping, waiting, given_up;
};

static enum verdict
check(struct history *h)
{
    struct search_result result;

    qsort(h->ops, h->count, sizeof(h->ops[0]), by_call);
    search(h->ops, h->count, &result);
    if (result.verdict == NOT_LINEARIZABLE) {
        printf("a history of %zu operations cannot be put in order; the longest order has"
               " %zu of them\n",
               h->count, result.longest);
        print_history(h, &result);
    }
    return result.verdict;
}

/* Checks all; the worst verdict counts. */
static enum verdict
check_all(struct history histories[RECORDER_QUEUES])
{
    enum verdict worst = LINEARIZABLE;

    for (size_t i = 0; i < RECORDER_QUEUES && worst != NOT_LINEARIZABLE; i++) {
        enum verdict verdict = check(&histories[i]);

        if (verdict != LINEARIZABLE)
            worst = verdict;
    }
    return worst;
}

/* One round; true if its histories could be put in order. */
static bool
do_round(struct recording *recording, struct tally *tally)
{
    static struct history histories[RECORDER_QUEUES];
    enum verdict verdict;

    recording->workers = recording->round % 2 == 0 ? 4 : 16;
    for (;;) {
        recording->operations = 320 / recording->workers;
        recording->window = recording->workers < 8 ? 16 / recording->workers : 2;
        record(recording, histories);
        verdict = check_all(histories);
        if (verdict != GAVE_UP || recording->workers == 1)
            break;
        tally->given_up++;
        recording->workers /= 2;
    }
    tally->rounds++;
    for (size_t i = 0; i < RECORDER_QUEUES; i++) {
        tally->operations += histories[i].count;
        tally->overlapping += count_overlapping(&histories[i]);
        tally->waiting += count_waiting(&histories[i]);
    }
    return verdict == LINEARIZABLE;
}

int
main(int argc, char **argv)
{
    struct recording recording = {.workers = 0};
    struct tally tally = {.rounds = 0};
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
    for (; good && recording.round < rounds; recording.round++)
        good = do_round(&recording, &tally);
    printf("seed %" PRIu64 ": %" PRIu64 " rounds, %zu operations, %zu of them while"
           " others were under way, %zu ready to wait; recorded anew %zu times\n",
           recording.seed, tally.rounds, tally.operations, tally.overlapping,
           tally.waiting, tally.given_up);
    if (tally.given_up > tally.rounds / 4) {
        printf("the search gave up too often to mean anything\n");
        good = false;
    }
    /* Histories without concurrency would prove nothing. */
    if (tally.overlapping < tally.operations / 10) {
        printf("too few at the same time to mean anything\n");
        good = false;
    }
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
