/*
 * store/observer: who is told of every change of a store, once and in order.
 *
 * A change is reserved when everything else that it needs has been reserved, and committed
 * when it has happened; both under the lock of the shard where it happens (for MOVE: of
 * both), so changes of one queue come in their order. What is told is what is there
 * afterwards, never a difference: absolute counts, times and numbers.
 *
 *   POST, CLAIM, RENEW, RELEASE, DELETE, MOVE   messages, one by one with next()
 *   QUEUE, META                                 the queue, with its metadata
 *   QUEUE_GONE, PURGE                           the queue; what it had goes without saying
 *   EXPIRED, DELAY_OVER, CLAIM_OVER             what time did; never refused, and no answer
 *                                               waits for it
 *
 * A claim that loses its last message is over without a word of its own, and a message
 * whose claim is over is free.
 */
#ifndef CLAIMD_STORE_OBSERVER_H
#define CLAIMD_STORE_OBSERVER_H

#include "claimd/store/types.h"

enum store_change_kind {
    STORE_CHANGE_QUEUE,
    STORE_CHANGE_META,
    STORE_CHANGE_QUEUE_GONE,
    STORE_CHANGE_PURGE,
    STORE_CHANGE_POST,
    STORE_CHANGE_DELETE, /* also popped ones */
    STORE_CHANGE_CLAIM,
    STORE_CHANGE_RENEW,
    STORE_CHANGE_RELEASE, /* also given back */
    STORE_CHANGE_MOVE,    /* dead letters: to `target` */
    STORE_CHANGE_EXPIRED,
    STORE_CHANGE_DELAY_OVER,
    STORE_CHANGE_CLAIM_OVER
};

/* A message as it is after the change (DELETE, EXPIRED: as it was). */
struct store_changed_message {
    uint64_t number;     /* in its queue; MOVE: in the target */
    uint64_t old_number; /* MOVE: in the source */
    struct store_id id;
    struct bytes body;                     /* valid during the call */
    const struct store_checksum *checksum; /* likewise; NULL: none */
    uint64_t client;
    int64_t posted_ms, expires_ms;
    int64_t delayed_until_ms; /* 0: not delayed */
    uint32_t claim_count;
};

struct store_change {
    enum store_change_kind kind;
    int64_t now_ms;
    struct store_queue queue;
    uint32_t tag;        /* of the queue's incarnation */
    uint64_t fence_base; /* QUEUE: what its claim numbers start behind */
    const struct store_metadata *metadata; /* QUEUE, META */
    struct store_queue target;             /* MOVE */
    uint32_t target_tag;
    struct store_id claim_id; /* CLAIM, RENEW, RELEASE, CLAIM_OVER */
    uint64_t claim_number;    /* in its queue, without the base */
    int64_t claim_started_ms, claim_ends_ms;
    size_t count; /* messages */

    /* The next message; false: there is none. Private: at, from. */
    bool (*next)(struct store_change *change, struct store_changed_message *out);
    uint64_t at;
    const void *from[2];
};

struct store_observer {
    /*
     * A change with so many messages, and so many bytes in them, is about to happen. What is
     * not ST_OK refuses it: nothing has changed then. A change that was granted is committed
     * under the same lock; but for a QUEUE that is made by the POST or the MOVE behind it,
     * which is asked for next: if that is refused, neither happens. Not asked for what time
     * does.
     */
    enum status (*reserve)(struct store_observer *observer, enum store_change_kind kind,
                           size_t count, size_t bytes);

    /* It has happened. Returns its position in the log; 0: no answer has to wait. */
    uint64_t (*commit)(struct store_observer *observer, struct store_change *change);
};

#endif
