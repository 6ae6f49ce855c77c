/*
 * linear: records histories of a server at HOST PORT and checks that each could have
 * happened one request at a time.
 *
 *     linear HOST PORT[,PORT] SEED ROUNDS [KILLS]
 *
 * With two ports there are two servers that share their store, and half of the workers
 * use each. Half of the rounds have few workers with many requests each, half many with
 * few. The seed repeats the workers' choices but not the scheduling, so a failure is
 * shown whole.
 *
 * A history for which the search gives up proves nothing. The round is recorded anew with
 * half the workers, if need be down to one, whose histories take one step an operation;
 * so every round ends with histories that were judged.
 *
 * Some posts have one of few keys of unique messages.
 *
 * With KILLS the server dies so often in each round, at the hands of who started this
 * (model/linear/recorder.h), and what it has said must hold on.
 */
#include "model/linear/recorder.h"
#include "model/linear/search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Workers; when there are kills each of them leaves as many requests to be placed by
 * trial. */
enum { FEW = 4, MANY_KILLED = 8, MANY = 16 };

static int
by_call(const void *a, const void *b)
{
    const struct operation *x = a, *y = b;

    return (x->call_ns > y->call_ns) - (x->call_ns < y->call_ns);
}

/* Marks operations without a place in any order. The first one shows most. */
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
        if (h->ops[i].response_ns > latest_ns)
            latest_ns = h->ops[i].response_ns;
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

/* How many posts found their key held. */
static size_t
count_existing(const struct history *h)
{
    size_t existing = 0;

    for (size_t i = 0; i < h->count; i++)
        existing += h->ops[i].existing != 0;
    return existing;
}

/* How many were cut off. */
static size_t
count_without_response(const struct history *h)
{
    size_t without_response = 0;

    for (size_t i = 0; i < h->count; i++)
        without_response += h->ops[i].code == 0;
    return without_response;
}

/* The results of the rounds. */
struct tally {
    uint64_t rounds;
    size_t operations, overlapping, waiting, existing, without_response, given_up;
    /* Two a worker and kill: one may meet the dying process again. */
    size_t may_be_cut_off;
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
    unsigned many = recording->kills > 0 ? MANY_KILLED : MANY;
    enum verdict verdict;

    recording->workers = recording->round % 2 == 0 ? FEW : many;
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
    tally->may_be_cut_off += (size_t)2 * recording->workers * recording->kills;
    for (size_t i = 0; i < RECORDER_QUEUES; i++) {
        tally->operations += histories[i].count;
        tally->overlapping += count_overlapping(&histories[i]);
        tally->waiting += count_waiting(&histories[i]);
        tally->existing += count_existing(&histories[i]);
        tally->without_response += count_without_response(&histories[i]);
    }
    return verdict == LINEARIZABLE;
}

static bool
complain(bool bad, const char *text)
{
    if (bad)
        printf("%s\n", text);
    return bad;
}

enum { MANY_ROUNDS = 10 }; /* in which some post finds its key held */

/* Histories that were not judged, without concurrency or without kills prove nothing. */
static bool
means_something(const struct tally *t, bool kills)
{
    bool bad = complain(t->given_up > t->rounds / 4,
                        "the search gave up too often to mean anything");

    bad |= complain(t->overlapping < t->operations / 10,
                    "too few at the same time to mean anything");
    bad |= complain(t->rounds >= MANY_ROUNDS && t->existing == 0,
                    "no post found its key held");
    bad |= complain(kills && t->without_response == 0, "nothing was cut off by a kill");
    bad |= complain(t->without_response > t->may_be_cut_off,
                    "more responses are missing than kills can have cut off");
    return !bad;
}

int
main(int argc, char **argv)
{
    struct recording recording = {.workers = 0};
    struct tally tally = {.rounds = 0};
    bool good = true;
    uint64_t rounds;

    if (argc != 5 && argc != 6) {
        (void)fputs("usage: linear HOST PORT[,PORT] SEED ROUNDS [KILLS]\n", stderr);
        return 2;
    }
    recording.host = argv[1];
    recording.ports[0] = strtok(argv[2], ",");
    recording.ports[1] = strtok(NULL, ",");
    if (recording.ports[1] == NULL)
        recording.ports[1] = recording.ports[0];
    recording.seed = strtoull(argv[3], NULL, 0);
    rounds = strtoull(argv[4], NULL, 0);
    recording.kills = argc == 6 ? (unsigned)strtoul(argv[5], NULL, 0) : 0;
    for (; good && recording.round < rounds; recording.round++)
        good = do_round(&recording, &tally);
    printf("seed %" PRIu64 ": %" PRIu64 " rounds, %zu operations, %zu of them while"
           " others were under way, %zu ready to wait, %zu with a key that was held, %zu "
           "cut off; recorded anew %zu"
           " times\n",
           recording.seed, tally.rounds, tally.operations, tally.overlapping,
           tally.waiting, tally.existing, tally.without_response, tally.given_up);
    good = good && means_something(&tally, recording.kills > 0);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
