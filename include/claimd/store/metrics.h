/*
 * store/metrics: counters of a store, and its contents, for metrics.
 *
 * Counters start at 0 when the store is opened, also if a log is replayed into it: they
 * count what happened since. They are read while operations run, so two of them may be a
 * moment apart.
 */
#ifndef CLAIMD_STORE_METRICS_H
#define CLAIMD_STORE_METRICS_H

#include "claimd/base/counter.h"
#include "claimd/store/types.h"

/* Counters of messages, unless noted. */
enum store_counter {
    STORE_COUNT_POSTED,
    STORE_COUNT_CLAIMED, /* once per delivery */
    STORE_COUNT_DELETED,
    STORE_COUNT_POPPED,
    STORE_COUNT_EXPIRED,
    STORE_COUNT_DROPPED,       /* with their queue, or by a purge */
    STORE_COUNT_DEAD_LETTERS,  /* moved to a dead-letter queue */
    STORE_COUNT_BACK_RELEASED, /* ready again: the claim was released, */
    STORE_COUNT_BACK_EXPIRED,  /* expired, */
    STORE_COUNT_BACK_GONE,     /* or its response was not sent */
    STORE_COUNT_LATE_DELETES,  /* refused: the named claim does not hold the message */
    STORE_COUNT_CLAIMS,        /* made */
    STORE_COUNT_RENEWALS,      /* of claims */
    STORE_COUNT_NOTIFIED,      /* delivered to a subscriber */
    STORE_COUNT_FAILED,        /* failed tries of a delivery */
    STORE_COUNT_PERMANENT_FAILURES, /* permanent failures of deliveries */
    /* Dropped from a feed before the delivery; per subscriber. */
    STORE_COUNT_FEED_DROPPED,
    STORE_COUNT_QUEUES_MADE,
    STORE_COUNT_QUEUES_GONE,
    STORE_COUNTERS
};

/* Histograms of messages. */
enum store_span {
    STORE_SPAN_WAITED,   /* ms from the post to the first claim, or to the pop */
    STORE_SPAN_WORKED,   /* ms from the claim to the deletion */
    STORE_SPAN_ATTEMPTS, /* delivery counts of messages that were deleted while claimed */
    STORE_SPANS
};

extern const struct bucket_bounds store_span_bounds[STORE_SPANS];

/* The contents at one moment, of a queue or of all. */
struct store_population {
    uint64_t ready, claimed, delayed;
    uint64_t dead_letters; /* those that are dead letters */
    uint64_t claims;
    uint64_t bytes; /* of bodies */
    /* Messages and bytes of these that are on the disk only (store/runs.h). */
    uint64_t unloaded, unloaded_bytes;
};

/* Messages of a queue that expired, since its creation or the start of the process. */
struct store_expired {
    uint64_t messages;
    uint64_t unread;       /* never claimed, and never sent to a subscriber */
    uint64_t dead_letters; /* those that were dead letters */
};

/* Messages of a queue, since its creation or the start of the process. */
enum store_queue_counter {
    STORE_QUEUE_POSTED,
    STORE_QUEUE_DELIVERED,     /* once per delivery by a claim */
    STORE_QUEUE_DELETED,       /* or popped */
    STORE_QUEUE_REQUEUED,      /* ready again: see STORE_COUNT_BACK_RELEASED and so on */
    STORE_QUEUE_DEAD_LETTERED, /* moved to its dead-letter queue */
    STORE_QUEUE_COUNTERS
};

struct store_metrics {
    uint64_t counts[STORE_COUNTERS];
    struct buckets spans[STORE_SPANS];
    struct store_population all;
    /* Of all queues without metrics of their own: */
    struct store_expired rest;
    uint64_t rest_counts[STORE_QUEUE_COUNTERS];
    uint64_t queues;
    uint64_t subscriptions;
    uint64_t feed_bytes; /* that subscribers have still to receive */
    uint64_t garbage;    /* messages of deleted queues, still to be freed */
    bool unloads;        /* messages may be on the disk only */
    int64_t lag_ms;      /* age of the oldest expiry that is due; 0: none */
};

/* Longer names, which clients cannot choose, have no metrics. */
enum { STORE_METRICS_PROJECT = 256, STORE_METRICS_NAME = 64 };

struct store_queue_metrics {
    char project[STORE_METRICS_PROJECT + 1]; /* with a NUL behind it; may contain NULs */
    char name[STORE_METRICS_NAME + 1];
    char dead_letter[STORE_METRICS_NAME + 1];      /* its dead-letter queue */
    size_t project_len, name_len, dead_letter_len; /* dead_letter_len 0: none */
    enum store_kind kind;
    unsigned paused; /* of enum store_pause */
    bool gone; /* of a survey: the queue was deleted meanwhile, and the rest is not set */
    struct store_population here;
    bool has_oldest;        /* there is a ready message; these are of the oldest: */
    int64_t age_ms;         /* its age, */
    int64_t posted_ms;      /* and when it was posted */
    int64_t claimed_age_ms; /* age of the oldest live claim, renewed or not; 0: none */
    uint64_t waiters;       /* waiters of this process */
    uint64_t subscriptions;
    struct store_expired expired;
    uint64_t counts[STORE_QUEUE_COUNTERS];
};

static inline struct store_queue
store_queue_metrics_address(const struct store_queue_metrics *q)
{
    return (struct store_queue){bytes_of(q->project, q->project_len),
                                bytes_of(q->name, q->name_len), q->kind};
}

/* A slice of a walk through the queues (not the topics), by project and name. */
struct store_survey {
    struct bytes project; /* absent: all projects */
    /* In: the place behind which the slice begins; absent: the beginning. */
    struct bytes after_project, after_name;
    bool whole; /* in: the caller reads all slices, so they may be a second old */
    struct store_queue_metrics *rows; /* in: borrowed, space for `limit`, at least 1 */
    size_t limit;
    size_t count;   /* out: rows that were filled in */
    uint64_t total; /* out: queues of the project, or of all */
    bool more;      /* out: there are queues behind the slice, perhaps with no row yet */
};

#endif
