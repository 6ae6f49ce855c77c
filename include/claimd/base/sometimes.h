/*
 * sometimes: rare states that the tests must reach.
 *
 * SOMETIMES(NAME) marks a place in the source where such a state is. The list below
 * describes the state, and names the test of ctest that must reach the state.
 * tests/CMakeLists.txt compiles the marked files once more with CLAIMD_SOMETIMES for
 * these tests, and tests/support/sometimes.h reports the states that were not reached.
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
 * X(name, test, class, state)
 *
 * COMMON: the test must reach the state in scripts/test. RARE: a long run by hand should
 * (scripts/simulate).
 */
#define SOMETIMES_LIST(X)                                                                \
    /* ds */                                                                             \
    X(WHEEL_CASCADES, "sim/seeds", COMMON, "several deadlines of one slot move down")    \
    X(WHEEL_ENDS_EARLY, "sim/seeds", COMMON,                                             \
      "a slot has more deadlines than the budget")                                       \
    /* engine: messages and claims */                                                    \
    X(KEY_ENDS_LATE, "sim/seeds", COMMON, "an operation finds a key that has ended")     \
    X(POST_CUT, "sim/seeds", COMMON, "memory ends in the middle of a batch of posts")    \
    X(POST_NOT_LOGGED, "sim/seeds", COMMON,                                              \
      "the log refuses a post that has its memory")                                      \
    X(NEW_QUEUE_DISCARDED, "sim/seeds", COMMON, "a post to a new queue fails")           \
    X(CLAIM_GROWS, "sim/seeds", COMMON,                                                  \
      "a claim finds more messages than it has space for")                               \
    X(CLAIM_RENEWED_LAST, "sim/seeds", RARE, "renewed in the last millisecond")          \
    X(CLAIM_UNSEEN, "sim/seeds", COMMON,                                                 \
      "a claim is undone, since no byte of it was sent")                                 \
    X(DELETE_TOO_LATE, "sim/seeds", COMMON,                                              \
      "a delete names only claims that have ended")                                      \
    X(CLAIM_OF_PURGED, "sim/seeds", COMMON, "a claim ends after its queue was purged")   \
    X(EXPIRES_PURGED, "sim/seeds", COMMON, "a message expires between purge and free")   \
    X(EXPIRY_SLICED, "sim/seeds", COMMON, "an operation expires a second slice")         \
    /* engine: runs */                                                                   \
    X(RUN_EXPIRES_PARTLY, "sim/seeds", COMMON, "some unloaded messages of a run expire") \
    X(RUN_EXPIRES_LOADING, "sim/seeds", RARE, "messages expire while they are loaded")   \
    X(RUN_FREED_AGAIN, "sim/seeds", COMMON, "loaded messages are freed without a write") \
    X(RUN_NOT_WRITTEN, "sim/seeds", COMMON, "a body file cannot be written")             \
    X(RUN_WRITTEN_LATE, "sim/seeds", COMMON, "a queue is purged while a run is written") \
    X(RUN_LOADED_LATE, "sim/seeds", RARE, "a run ends while it is loaded")               \
    X(BODIES_SPARSE, "sim/seeds", COMMON, "a checkpoint finds a sparse body file")       \
    X(RUN_MOVED, "sim/seeds", COMMON, "a run is read, and goes back to the log")         \
    X(BODIES_DISK_FULL, "sim/seeds", RARE, "the disk is full when runs are written")     \
    /* engine: dead letters */                                                           \
    X(LETTER_REFUSED, "sim/seeds", RARE, "a move of dead letters is undone")             \
    X(LETTER_DISK_FULL, "sim/seeds", RARE, "the disk is full in a move of dead letters") \
    X(LETTER_QUEUE_UNDONE, "sim/seeds", RARE, "likewise, with a new dead-letter queue")  \
    X(LETTER_MAKES_QUEUE, "sim/seeds", COMMON, "a move creates the dead-letter queue")   \
    X(LETTER_AGAIN, "sim/seeds", RARE, "a dead letter moves a second time")              \
    X(LETTER_SHARD_BELOW, "sim/seeds", COMMON, "the target's lock must be taken first")  \
    X(LETTER_NOT_AT_ONCE, "sim/seeds", RARE,                                             \
      "a dead letter cannot move when its claim expires")                                \
    X(FINISH_KEEPS_EXHAUSTED, "sim/seeds", RARE, "likewise when a finish releases it")   \
    X(LETTER_BLOCKS_CLAIM, "sim/seeds", RARE, "a claim ends before a stuck dead letter") \
    /* engine: finish, redrive, keys */                                                  \
    X(FINISH_NOT_HELD, "sim/seeds", COMMON,                                              \
      "an atomic finish of a message not held now")                                      \
    X(FINISH_SPANS, "sim/seeds", COMMON, "a finish changes queues of three shards")      \
    X(FINISH_SHARD_BELOW, "sim/seeds", COMMON,                                           \
      "its dead-letter queue must be locked first")                                      \
    X(FINISH_MAKES_QUEUE, "sim/seeds", COMMON, "a post of a finish creates its queue")   \
    X(FINISH_MOVES_AND_POSTS, "sim/seeds", COMMON,                                       \
      "a finish posts to the queue that gets its dead letters")                          \
    X(FINISH_UNDONE, "sim/seeds", COMMON, "a finish fails after it has reserved a post") \
    X(FINISH_DISK_FULL, "sim/seeds", RARE, "the full disk has no space for a finish")    \
    X(FINISH_BEYOND_LOG, "unit/journal/journal_test", COMMON,                            \
      "a finish is larger than a frame")                                                 \
    X(RETRY_OUTLIVES, "sim/seeds", COMMON, "a delay would make a life too long")         \
    X(REDRIVE_MAKES_QUEUE, "sim/seeds", COMMON, "the target of a redrive was deleted")   \
    X(REDRIVE_REFUSED, "sim/seeds", RARE, "a redrive is undone")                         \
    X(KEY_CLAIM_ENDED, "sim/seeds", COMMON,                                              \
      "a key is repeated after the end of its claim")                                    \
    X(KEYS_FULL, "sim/seeds", COMMON, "there are as many keys as may be")                \
    X(KEY_UNUSED, "sim/seeds", RARE, "an operation fails after it has made its key")     \
    /* engine: waiters */                                                                \
    X(QUEUE_GONE_WAITED, "sim/seeds", COMMON, "a queue is deleted while requests wait")  \
    X(WAITER_LEAVES_WOKEN, "sim/seeds", COMMON,                                          \
      "a waiter leaves while it is being woken")                                         \
    X(WAITER_WOKEN_TWICE, "sim/seeds", COMMON,                                           \
      "more arrives for a waiter that is woken")                                         \
    X(WAITER_OF_GONE, "store/waiting_test", COMMON,                                      \
      "a waiter retries before it hears of the delete")                                  \
    /* engine: subscriptions */                                                          \
    X(DELIVERY_EXPIRED, "sim/seeds", COMMON, "a message expires before its delivery")    \
    X(DELIVERY_ORPHANED, "sim/seeds", COMMON, "a delivery ends after its subscription")  \
    X(FEED_DROPS, "sim/seeds", COMMON, "a feed drops the oldest message")                \
    X(SUBSCRIPTION_ENDS_DUE, "sim/seeds", RARE, "a subscription ends while one is due")  \
    X(CURSOR_NOT_LOGGED, "sim/seeds", RARE,                                              \
      "the log refuses the progress of a subscriber")                                    \
    /* journal: commits */                                                               \
    X(LOG_REFUSES_LOST, "sim/seeds", COMMON, "a change after the journal has failed")    \
    X(LOG_REFUSES_SLOW, "sim/seeds", COMMON, "more waits for the disk than may")         \
    X(LOG_REFUSES_FULL, "sim/seeds", COMMON,                                             \
      "a change that the full disk has no space for")                                    \
    X(FRAME_SPLITS, "sim/seeds", COMMON, "a commit needs a second frame")                \
    X(SECOND_FRAME_FAILS, "sim/seeds", RARE,                                             \
      "the disk fails between frames of a commit")                                       \
    X(WRITE_FAILS, "sim/seeds", COMMON, "the write of a commit fails")                   \
    X(SYNC_FAILS, "sim/seeds", COMMON, "the sync of a commit fails")                     \
    X(SEGMENT_FAILS, "sim/seeds", COMMON, "the disk fails while a segment begins")       \
    X(SEGMENT_IN_CHECKPOINT, "sim/seeds", COMMON,                                        \
      "a segment begins within a checkpoint")                                            \
    X(LOST_IN_CHECKPOINT, "sim/seeds", COMMON, "the journal fails within a checkpoint")  \
    X(CHECKPOINT_PAUSES, "sim/seeds", RARE, "a checkpoint has no space to continue")     \
    X(CHECKPOINT_QUEUE_GONE, "sim/seeds", RARE,                                          \
      "the queue that a checkpoint is at goes")                                          \
    X(DROP_FAILS, "sim/seeds", COMMON, "an old segment cannot be removed")               \
    /* journal: starts */                                                                \
    X(START_TORN, "sim/seeds", COMMON, "a start finds a torn last record")               \
    X(START_EMPTY_SEGMENT, "sim/seeds", COMMON, "the last segment has no record")        \
    X(START_SEALED, "sim/seeds", COMMON, "a start reads a seal")                         \
    X(START_CLOCK_BACK, "sim/seeds", COMMON, "the wall clock was set back")              \
    X(START_FAILS_LATE, "sim/seeds", COMMON, "a start fails after the replay")           \
    /* api */                                                                            \
    X(RESPONSE_STARVED, "api/memory_test", COMMON,                                       \
      "a response is written without its memory")                                        \
    X(CLAIM_PARTIAL, "sim/seeds", COMMON,                                                \
      "without memory a response has fewer messages")                                    \
    X(DUMP_QUEUE_GONE, "api/dump_test", COMMON, "a queue goes while it is dumped")       \
    X(LOAD_REPEATED, "api/dump_test", COMMON, "a load finds its items there already")    \
    /* http */                                                                           \
    X(RESPONSE_LOST, "unit/http/respond_test", COMMON,                                   \
      "the journal fails before it is sent")                                             \
    X(COMMIT_LAGS, "unit/http/respond_test", COMMON,                                     \
      "a commit is too early for a response")                                            \
    X(GONE_IN_POLL, "unit/http/respond_test", COMMON,                                    \
      "a client is gone when it is woken")                                               \
    X(EVENT_IN_FIBER, "unit/http/respond_test", COMMON, "an event while a fiber runs")   \
    /* notify */                                                                         \
    X(NOTIFY_NOT_DURABLE, "unit/notify/notify_test", COMMON,                             \
      "a delivery waits for the journal")                                                \
    X(NOTIFY_LOST, "unit/notify/notify_test", COMMON,                                    \
      "the journal fails before a delivery")                                             \
    X(NOTIFY_HOST_BUSY, "unit/notify/notify_test", COMMON,                               \
      "the host has all it may get")                                                     \
    X(NOTIFY_HOST_FULL, "unit/notify/hosts_test", COMMON, "too much waits for the host") \
    X(NOTIFY_CLOSED_BUSY, "unit/notify/notify_test", COMMON,                             \
      "the end comes in a transfer")                                                     \
    /* redis */                                                                          \
    X(REDIS_MOVED, "unit/redis/cluster_test", COMMON, "a slot has moved")                \
    X(REDIS_ASK, "unit/redis/cluster_test", COMMON, "a slot is moving")                  \
    X(REDIS_NO_LIBRARY, "unit/redis/cluster_test", COMMON, "a node lacks the scripts")   \
    X(REDIS_UNCONFIRMED, "unit/redis/cluster_test", COMMON,                              \
      "a failover between response and WAIT")                                            \
    X(REDIS_LOST_UNSURE, "unit/redis/cluster_test", COMMON,                              \
      "a change without a response")                                                     \
    X(REDIS_TOO_FEW, "unit/redis/cluster_test", COMMON, "too few replicas confirm")

enum sometimes {
#define SOMETIMES_ENUM(name, test, class, state) SOMETIMES_##name,
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
