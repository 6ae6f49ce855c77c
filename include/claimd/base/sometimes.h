/*
 * sometimes: rare states that the tests must reach.
 *
 * SOMETIMES(NAME) marks a place in the source where such a state is. The list below says
 * what the state is, and which test program must reach it. tests/CMakeLists.txt compiles
 * the marked files once more with CLAIMD_SOMETIMES for these programs, and
 * tests/support/sometimes.h reports what was not reached.
 *
 *   Cost     nothing: without CLAIMD_SOMETIMES a mark is an expression without code
 *   State    claimd has no global mutable state, and the marks do not change that. The
 *            counters exist only in the test programs, where a mark must work in every
 *            function without an argument that production code would have to carry
 *   Threads  any
 */
#ifndef CLAIMD_BASE_SOMETIMES_H
#define CLAIMD_BASE_SOMETIMES_H

/*
 * X(name, program, class, state)
 *
 * The program is a target of tests/. COMMON: its run in scripts/test must reach the
 * state. RARE: a long run by hand should (scripts/simulate).
 */
#define SOMETIMES_LIST(X)                                                                \
    /* ds */                                                                             \
    X(WHEEL_CASCADES, simulate, COMMON, "several deadlines of one slot move down")       \
    X(WHEEL_ENDS_EARLY, simulate, COMMON, "a slot has more deadlines than the budget")   \
    /* engine: messages and claims */                                                    \
    X(KEY_ENDS_LATE, simulate, COMMON, "an operation finds a key that has ended")        \
    X(POST_CUT, simulate, COMMON, "memory ends in the middle of a batch of posts")       \
    X(POST_NOT_LOGGED, simulate, COMMON, "the log refuses a post that has its memory")   \
    X(NEW_QUEUE_DISCARDED, simulate, COMMON, "a post to a new queue fails")              \
    X(CLAIM_GROWS, simulate, COMMON,                                                     \
      "a claim finds more messages than it has space for")                               \
    X(CLAIM_RENEWED_LAST, simulate, RARE, "renewed in the last millisecond")             \
    X(CLAIM_UNSEEN, simulate, COMMON, "a claim is undone, since no byte of it was sent") \
    X(DELETE_TOO_LATE, simulate, COMMON, "a delete names only claims that have ended")   \
    X(CLAIM_OF_PURGED, simulate, COMMON, "a claim ends after its queue was purged")      \
    X(EXPIRES_PURGED, simulate, COMMON, "a message expires between purge and free")      \
    X(EXPIRY_SLICED, simulate, COMMON, "an operation expires a second slice")            \
    /* engine: dead letters */                                                           \
    X(LETTER_REFUSED, simulate, RARE, "a move of dead letters is undone")                \
    X(LETTER_DISK_FULL, simulate, RARE, "the disk is full in a move of dead letters")    \
    X(LETTER_QUEUE_UNDONE, simulate, RARE, "likewise, with a new dead-letter queue")     \
    X(LETTER_MAKES_QUEUE, simulate, COMMON, "a move creates the dead-letter queue")      \
    X(LETTER_AGAIN, simulate, RARE, "a dead letter moves a second time")                 \
    X(LETTER_SHARD_BELOW, simulate, COMMON, "the target's lock must be taken first")     \
    X(LETTER_NOT_AT_ONCE, simulate, RARE,                                                \
      "a dead letter cannot move when its claim expires")                                \
    X(FINISH_KEEPS_EXHAUSTED, simulate, RARE, "likewise when a finish releases it")      \
    X(LETTER_BLOCKS_CLAIM, simulate, RARE, "a claim ends before a stuck dead letter")    \
    /* engine: finish, redrive, keys */                                                  \
    X(FINISH_NOT_HELD, simulate, COMMON, "an atomic finish of a message not held now")   \
    X(FINISH_SPANS, simulate, COMMON, "a finish changes queues of three shards")         \
    X(FINISH_SHARD_BELOW, simulate, COMMON,                                              \
      "its dead-letter queue must be locked first")                                      \
    X(FINISH_MAKES_QUEUE, simulate, COMMON, "a post of a finish creates its queue")      \
    X(FINISH_MOVES_AND_POSTS, simulate, COMMON,                                          \
      "a finish posts to the queue that gets its dead letters")                          \
    X(FINISH_UNDONE, simulate, COMMON, "a finish fails after it has reserved a post")    \
    X(FINISH_DISK_FULL, simulate, RARE, "the full disk has no space for a finish")       \
    X(FINISH_BEYOND_LOG, unit_journal_journal_test, COMMON,                              \
      "a finish is larger than a frame")                                                 \
    X(RETRY_OUTLIVES, simulate, COMMON, "a delay would make a life too long")            \
    X(REDRIVE_MAKES_QUEUE, simulate, COMMON, "the target of a redrive was deleted")      \
    X(REDRIVE_REFUSED, simulate, RARE, "a redrive is undone")                            \
    X(KEY_CLAIM_ENDED, simulate, COMMON, "a key is repeated after the end of its claim") \
    X(KEYS_FULL, simulate, COMMON, "there are as many keys as may be")                   \
    X(KEY_UNUSED, simulate, RARE, "an operation fails after it has made its key")        \
    /* engine: waiters */                                                                \
    X(QUEUE_GONE_WAITED, simulate, COMMON, "a queue is deleted while requests wait")     \
    X(WAITER_LEAVES_WOKEN, simulate, COMMON, "a waiter leaves while it is being woken")  \
    X(WAITER_WOKEN_TWICE, simulate, COMMON, "more arrives for a waiter that is woken")   \
    X(WAITER_OF_GONE, store_waiting_test, COMMON,                                        \
      "a waiter retries before it hears of the delete")                                  \
    /* engine: subscriptions */                                                          \
    X(DELIVERY_EXPIRED, simulate, COMMON, "a message expires before its delivery")       \
    X(DELIVERY_ORPHANED, simulate, COMMON, "a delivery ends after its subscription")     \
    X(FEED_DROPS, simulate, COMMON, "a feed drops the oldest message")                   \
    X(SUBSCRIPTION_ENDS_DUE, simulate, RARE, "a subscription ends while one is due")     \
    X(CURSOR_NOT_LOGGED, simulate, RARE, "the log refuses the progress of a subscriber") \
    /* journal: commits */                                                               \
    X(LOG_REFUSES_LOST, simulate, COMMON, "a change after the journal has failed")       \
    X(LOG_REFUSES_SLOW, simulate, COMMON, "more waits for the disk than may")            \
    X(LOG_REFUSES_FULL, simulate, COMMON,                                                \
      "a change that the full disk has no space for")                                    \
    X(FRAME_SPLITS, simulate, COMMON, "a commit needs a second frame")                   \
    X(SECOND_FRAME_FAILS, simulate, RARE, "the disk fails between frames of a commit")   \
    X(WRITE_FAILS, simulate, COMMON, "the write of a commit fails")                      \
    X(SYNC_FAILS, simulate, COMMON, "the sync of a commit fails")                        \
    X(SEGMENT_FAILS, simulate, COMMON, "the disk fails while a segment begins")          \
    X(SEGMENT_IN_CHECKPOINT, simulate, COMMON, "a segment begins within a checkpoint")   \
    X(LOST_IN_CHECKPOINT, simulate, COMMON, "the journal fails within a checkpoint")     \
    X(CHECKPOINT_PAUSES, simulate, RARE, "a checkpoint has no space to continue")        \
    X(CHECKPOINT_QUEUE_GONE, simulate, RARE, "the queue that a checkpoint is at goes")   \
    X(DROP_FAILS, simulate, COMMON, "an old segment cannot be removed")                  \
    /* journal: starts */                                                                \
    X(START_TORN, simulate, COMMON, "a start finds a torn last record")                  \
    X(START_EMPTY_SEGMENT, simulate, COMMON, "the last segment has no record")           \
    X(START_SEALED, simulate, COMMON, "a start reads a seal")                            \
    X(START_CLOCK_BACK, simulate, COMMON, "the wall clock was set back")                 \
    X(START_FAILS_LATE, simulate, COMMON, "a start fails after the replay")              \
    /* api */                                                                            \
    X(RESPONSE_STARVED, api_memory_test, COMMON,                                         \
      "a response is written without its memory")                                        \
    X(CLAIM_PARTIAL, simulate, COMMON, "without memory a response has fewer messages")   \
    X(DUMP_QUEUE_GONE, api_dump_test, COMMON, "a queue goes while it is dumped")         \
    X(LOAD_REPEATED, api_dump_test, COMMON, "a load finds its items there already")      \
    /* http */                                                                           \
    X(RESPONSE_LOST, unit_http_respond_test, COMMON,                                     \
      "the journal fails before it is sent")                                             \
    X(COMMIT_LAGS, unit_http_respond_test, COMMON,                                       \
      "a commit is too early for a response")                                            \
    X(GONE_IN_POLL, unit_http_respond_test, COMMON, "a client is gone when it is woken") \
    X(EVENT_IN_FIBER, unit_http_respond_test, COMMON, "an event while a fiber runs")     \
    /* notify */                                                                         \
    X(NOTIFY_NOT_DURABLE, unit_notify_notify_test, COMMON,                               \
      "a delivery waits for the journal")                                                \
    X(NOTIFY_LOST, unit_notify_notify_test, COMMON,                                      \
      "the journal fails before a delivery")                                             \
    X(NOTIFY_HOST_BUSY, unit_notify_notify_test, COMMON, "the host has all it may get")  \
    X(NOTIFY_HOST_FULL, unit_notify_hosts_test, COMMON, "too much waits for the host")   \
    X(NOTIFY_CLOSED_BUSY, unit_notify_notify_test, COMMON,                               \
      "the end comes in a transfer")                                                     \
    /* redis */                                                                          \
    X(REDIS_MOVED, unit_redis_cluster_test, COMMON, "a slot has moved")                  \
    X(REDIS_ASK, unit_redis_cluster_test, COMMON, "a slot is moving")                    \
    X(REDIS_NO_LIBRARY, unit_redis_cluster_test, COMMON, "a node lacks the scripts")     \
    X(REDIS_UNCONFIRMED, unit_redis_cluster_test, COMMON,                                \
      "a failover between response and WAIT")                                            \
    X(REDIS_LOST_UNSURE, unit_redis_cluster_test, COMMON, "a change without a response") \
    X(REDIS_TOO_FEW, unit_redis_cluster_test, COMMON, "too few replicas confirm")

enum sometimes {
#define SOMETIMES_ENUM(name, program, class, state) SOMETIMES_##name,
    SOMETIMES_LIST(SOMETIMES_ENUM)
#undef SOMETIMES_ENUM
        SOMETIMES_COUNT
};

#ifdef CLAIMD_SOMETIMES
#include <stdatomic.h>
#include <stdint.h>

extern _Atomic uint64_t sometimes_counts[SOMETIMES_COUNT];

#define SOMETIMES(name)                                                                  \
    ((void)atomic_fetch_add_explicit(&sometimes_counts[SOMETIMES_##name], 1,             \
                                     memory_order_relaxed))
#else
#define SOMETIMES(name) ((void)SOMETIMES_##name)
#endif

/* Likewise, if the condition holds. Without CLAIMD_SOMETIMES it is not evaluated. */
#ifdef CLAIMD_SOMETIMES
#define SOMETIMES_IF(condition, name) ((condition) ? SOMETIMES(name) : (void)0)
#else
#define SOMETIMES_IF(condition, name) ((void)sizeof((condition) ? SOMETIMES_##name : 0))
#endif

#endif
