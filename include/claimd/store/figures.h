/*
 * store/figures: what a store has done so far, and what is in it, for those who watch over it.
 *
 * Counts begin with 0 when the store is opened, also when a log is replayed into it: they
 * tell of what clients did and what time did since. Figures are read while others go on; two
 * of them may be a moment apart.
 */
#ifndef CLAIMD_STORE_FIGURES_H
#define CLAIMD_STORE_FIGURES_H

#include "claimd/base/counter.h"
#include "claimd/store/types.h"

/* Messages, unless said otherwise. */
enum store_counter {
    STORE_COUNT_POSTED,
    STORE_COUNT_CLAIMED, /* each time */
    STORE_COUNT_DELETED,
    STORE_COUNT_POPPED,
    STORE_COUNT_EXPIRED,
    STORE_COUNT_DROPPED,       /* with their queue, or by a purge */
    STORE_COUNT_DEAD_LETTERS,  /* moved as such */
    STORE_COUNT_BACK_RELEASED, /* given back: the claim was released, */
    STORE_COUNT_BACK_EXPIRED,  /* has expired, */
    STORE_COUNT_BACK_GONE,     /* or its client was gone before it had it */
    STORE_COUNT_LATE_DELETES,  /* refused: by a claim that does not hold the message */
    STORE_COUNT_CLAIMS,        /* made */
    STORE_COUNT_RENEWALS,      /* of claims */
    STORE_COUNT_NOTIFIED,      /* delivered to a subscriber */
    STORE_COUNT_FAILED,        /* tries of that that failed */
    STORE_COUNT_GIVEN_UP,      /* by who delivers, after its tries */
    STORE_COUNT_FALLEN_OUT, /* of a feed, before they were delivered; for each subscriber */
    STORE_COUNT_QUEUES_MADE,
    STORE_COUNT_QUEUES_GONE,
    STORE_COUNTERS
};

/* Histograms of messages. */
enum store_span {
    STORE_SPAN_WAITED,   /* ms from the post to the first claim, or to the pop */
    STORE_SPAN_WORKED,   /* ms from the claim to the deletion */
    STORE_SPAN_ATTEMPTS, /* claims of those that were deleted while claimed */
    STORE_SPANS
};

extern const struct bucket_bounds store_span_bounds[STORE_SPANS];

/* What is there at one time, in a queue or in all. */
struct store_population {
    uint64_t claimable, claimed, delayed;
    uint64_t dead_letters; /* those of them that came as such */
    uint64_t claims;
    uint64_t bytes; /* of bodies */
};

/* Messages of a queue that expired, counted from its creation, or from the start of the process. */
struct store_expired {
    uint64_t messages;
    uint64_t unread;       /* no worker claimed them, no subscriber got what was posted */
    uint64_t dead_letters; /* those that came as such */
};

struct store_figures {
    uint64_t counts[STORE_COUNTERS];
    struct buckets spans[STORE_SPANS];
    struct store_population all;
    struct store_expired rest; /* of all queues that are not shown one by one */
    uint64_t queues;
    uint64_t subscriptions;
    uint64_t feed_bytes; /* of what subscribers have still to get */
    uint64_t garbage;    /* messages of queues that are gone, still to be freed */
    int64_t lag_ms;      /* what has been due for the longest time; 0: nothing is */
};

/* Names longer than a client can choose are not shown. */
enum { STORE_FIGURES_PROJECT = 256, STORE_FIGURES_NAME = 64 };

struct store_queue_figures {
    char project[STORE_FIGURES_PROJECT + 1]; /* a NUL behind it, and perhaps within */
    char name[STORE_FIGURES_NAME + 1];
    size_t project_len, name_len;
    enum store_kind kind;
    struct store_population here;
    bool has_oldest;        /* there is a message that can be claimed, */
    int64_t age_ms;         /* and the oldest was posted so long ago */
    int64_t claimed_age_ms; /* of the oldest live claim, renewed or not; 0: none */
    struct store_expired expired;
};

#endif
