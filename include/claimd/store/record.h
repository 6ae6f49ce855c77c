/*
 * store/record: the changes and the contents of a store, as records.
 *
 * A record has absolute counts, times and numbers after the change, never differences. So
 * a checkpoint consists of the same records as a log, and replaying a record twice has
 * the same effect as once.
 *
 *   POST, CLAIM, RENEW, RELEASE, DELETE, MOVE   messages, one by one with next()
 *   RETRY                                       messages that their claim gave back, one
 *                                               by one: they are delayed, or ready
 *   DETAILS                                     messages with their details, as they are
 *   KEY                                         an Idempotency-Key with its result; of a
 *                                               pop with its messages. It does not change
 *                                               the queue
 *   QUEUE, META                                 the queue, with its metadata
 *   QUEUE_GONE, PURGE                           the queue. Its messages and claims are
 *   gone, too
 *   SUBSCRIPTION, SUBSCRIPTION_GONE             one subscription, as it is (as it was)
 *   UNSUBSCRIBED                                the queue: all its subscriptions are gone
 *   CURSOR                                      the progress of a subscription, now and
 *                                               then; no response waits for it
 *   STATE                                       messages with the claims that hold them,
 *                                               of a checkpoint or applied
 *   RUN                                         messages of the queue that a body file
 *                                               has (store/runs.h)
 *   FEED                                        messages that subscribers have still to
 *                                               receive, of a checkpoint. Without
 *                                               messages: there is a feed
 *   EXPIRED, DELAY_OVER, CLAIM_OVER             expiries: never refused, and no response
 *   waits for them
 *
 * No record says that a claim lost its last message: the claim is over then. A message
 * whose claim is over is ready.
 */
#ifndef CLAIMD_STORE_RECORD_H
#define CLAIMD_STORE_RECORD_H

#include "claimd/base/mem.h"
#include "claimd/store/key.h"
#include "claimd/store/types.h"

struct store_actor;

/* Bytes that a message takes in a log besides its body, at most. */
enum { STORE_LOG_EACH = 120 };

enum store_change_kind {
    /* The journal stores these numbers: never change or reuse them. */
    STORE_CHANGE_QUEUE = 1,
    STORE_CHANGE_META = 2,
    STORE_CHANGE_QUEUE_GONE = 3,
    STORE_CHANGE_PURGE = 4,
    STORE_CHANGE_POST = 5,
    STORE_CHANGE_DELETE = 6, /* also popped messages */
    STORE_CHANGE_CLAIM = 7,
    STORE_CHANGE_RENEW = 8,
    STORE_CHANGE_RELEASE = 9, /* also if the response was not sent */
    STORE_CHANGE_MOVE = 10,   /* dead letters: to `target` */
    STORE_CHANGE_SUBSCRIPTION = 11,
    STORE_CHANGE_SUBSCRIPTION_GONE = 12,
    STORE_CHANGE_UNSUBSCRIBED = 13,
    STORE_CHANGE_CURSOR = 14,
    STORE_CHANGE_STATE = 15,
    STORE_CHANGE_FEED = 16,
    /* 17 is a mark of the journal. */
    STORE_CHANGE_RETRY = 18,
    STORE_CHANGE_DETAILS = 19,
    STORE_CHANGE_KEY = 20,
    STORE_CHANGE_RUN = 21,
    STORE_CHANGE_LOGGED, /* the end of the kinds that the journal stores */

    /* The journal does not store these. */
    STORE_CHANGE_EXPIRED = 32,
    STORE_CHANGE_DELAY_OVER,
    STORE_CHANGE_CLAIM_OVER,
    STORE_CHANGE_KINDS
};

/* Numbers that must never be used again, even if no queue has them. */
struct store_marks {
    uint64_t tag_start, tags_used; /* the tags of queues derive from these */
    uint64_t fence;                /* largest claim number of a deleted queue */
};

/* A claim. Its number in the queue is in the id: store_id_number(). */
struct store_claim_record {
    struct store_id id; /* applied: empty: the store makes one */
    int64_t started_ms, ends_ms;
};

/* A message as it is after the change (DELETE, EXPIRED: as it was). */
struct store_message_record {
    uint64_t old_number; /* MOVE: in the source */
    uint64_t number;     /* in its queue; MOVE: in the target; applied: ignored */
    int64_t posted_ms, expires_ms;
    uint64_t client;
    struct store_id id;                     /* applied: empty: the store makes one */
    bool original_id;                       /* the id is from another queue */
    const struct store_claim_record *claim; /* STATE: that holds it; NULL: none */
    struct bytes body;                      /* JSON text, or encrypted */
    const struct store_checksum *checksum;  /* NULL: none */
    const struct store_details *details;    /* NULL: none, or not read */
    int64_t delayed_until_ms;               /* 0: not delayed */
    uint32_t claim_count;
};

/* A notice that the subscriber has still to receive: 1 + enum store_notice. */
enum store_pending {
    STORE_PENDING_NONE,
    STORE_PENDING_CONFIRM = 2,
    STORE_PENDING_UNSUBSCRIBED
};

/* A subscription as it is after the change (CURSOR: without its texts and its times). */
struct store_subscription_record {
    uint64_t number; /* in its queue; applied: ignored, as are `attached` and `after` */
    struct store_id id; /* applied: empty: the store makes one */
    struct bytes subscriber, options;
    int64_t started_ms, ttl_s;
    bool confirmed;
    bool attached;    /* it receives messages, */
    uint64_t after;   /* those behind this number */
    uint32_t pending; /* STORE_PENDING_... */
    uint64_t delivered, permanent_failures, dropped;
};

/* Where a body file has the messages of a run. */
struct store_place {
    uint32_t file, length;
    uint64_t offset;
};

/* At most 64 ready messages with neighboring numbers, which a body file has. Bit i of a
 * set is number first + i. */
struct store_run_record {
    uint64_t first;        /* a multiple of 64 */
    uint64_t stored;       /* the messages */
    uint64_t unread;       /* those that were never claimed */
    uint64_t sealed;       /* those with an encrypted body */
    int64_t posted_ms;     /* of the first one when it was written */
    int64_t expires_ms;    /* the first expiry when it was written */
    struct bytes outlines; /* struct store_outline of each stored message, in order */
    struct store_place place;
};

/* The part of a message that a RUN has. */
struct store_outline {
    uint32_t length; /* of its body */
    uint32_t life;   /* milliseconds from expires_ms to its expiry */
};

/* A change, for a log. Its pointers are valid during the call. */
struct store_change {
    /* The next change of a group, which a crash undoes as a whole or not at all; NULL:
     * none. */
    struct store_change *then;
    enum store_change_kind kind;
    bool checkpoint; /* part of a checkpoint: QUEUE, STATE, FEED, SUBSCRIPTION */
    int64_t now_ms;
    /* Behind the change, or of the operation that expired; or NULL. */
    const struct store_actor *actor;
    struct store_queue queue;
    uint32_t tag;        /* of the queue's incarnation */
    bool transient;      /* the queue and its messages do not survive a restart */
    uint64_t fence_base; /* its fencing tokens start behind it */
    uint64_t last_number, last_claim;      /* largest used so far (transient: reserved) */
    struct store_marks marks;              /* QUEUE, QUEUE_GONE */
    const struct store_metadata *metadata; /* QUEUE, META */
    struct store_queue target;             /* MOVE */
    uint32_t target_tag;
    bool target_transient;
    struct store_claim_record claim; /* STATE: of the message that next() returned */
    const struct store_subscription_record *subscription; /* of kinds that have one */
    const struct store_key_record *key;                   /* KEY */
    const struct store_run_record *run;                   /* RUN */
    size_t count;                                         /* messages */

    /* The next message; false: there is none. `at` and `from` are private. */
    bool (*next)(struct store_change *change, struct store_message_record *out);
    uint64_t at;
    const void *from[2];
};

#endif
