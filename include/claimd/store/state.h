/*
 * store/state: reads what a store contains as records, and applies records.
 *
 * read() and apply() work on one queue of any store: for dumps, and for a state that replaces what
 * is there. read() gives slices: the queue first, then its messages in their order, then its
 * subscriptions. apply() takes such a slice, or one that somebody wrote, and numbers it anew: the
 * messages come behind those that are there.
 *
 *   Moment    a slice is what was there at op->now_ms. Other clients may change the queue
 *             between two slices
 *   Ids       messages, claims and subscriptions keep theirs. The fencing number of a claim is
 *             another, larger one
 *   Times     are those of the store, as they were: whoever applies a slice at another time
 *             moves them
 *   Not read  what a subscriber has still to get: an applied subscription begins behind all that
 *             is there
 *
 * The other operations are for the log of a store in memory (store/log.h). After a restart the log
 * gives its records to replay(), in their order, to a store in which nothing has happened yet:
 *
 *     replay() ... replay() replay_end()   and then the operations of the store
 *
 * A checkpoint appends records of all that is there, slice by slice, while the store goes on
 * working:
 *
 *     checkpoint_begin() checkpoint() checkpoint() ... until it says that it is done
 *
 * A replay of all records since a checkpoint began has the whole store at its end: what was there
 * is in the records of the checkpoint, what came or changed since is in the log, too.
 */
#ifndef CLAIMD_STORE_STATE_H
#define CLAIMD_STORE_STATE_H

#include "claimd/store/record.h"

struct store;
struct store_op;

/* The first parameters of each operation on a queue. */
#define STORE_OF_QUEUE                                                                   \
    struct store *s, struct store_op *op, const struct store_queue *queue

/* Messages that apply() takes at most; and how late a time may be, the year 5138. */
enum { STORE_APPLY_MOST = 1 << 19 };
#define STORE_MS_MOST INT64_C(100000000000000)

enum store_record_kind {
    STORE_RECORD_QUEUE,
    STORE_RECORD_MESSAGE,
    STORE_RECORD_SUBSCRIPTION
};

struct store_record {
    enum store_record_kind kind;
    union {
        struct store_metadata metadata; /* QUEUE */
        struct store_message_record message;
        struct store_subscription_record subscription;
    };
    void *pin; /* private to the store */
};

/* A slice. It owns what it shows until store_records_release(). */
struct store_records {
    const struct store *store; /* that must release it; NULL: nothing to release */
    struct store_record *all;
    size_t count;
    void *pin; /* private to the store */
    bool more; /* there may be another slice: read again with these, released */
    uint64_t resume
        [3]; /* private to the store; zeros at first; outlives the release, as `more` */
};

#define STORE_RECORDS_INIT ((struct store_records){.store = NULL})

/* Gives back what is shown; `more` and `resume` stay. Fine when empty. */
void store_records_release(struct store_records *records);

/* The error in records that apply() refuses. */
struct store_flaw {
    size_t index;
    const char *member; /* "ttl", "claim.id" */
    const char *what;   /* a sentence that begins with "it" */
};

/*
 * Checks whether records could be applied: ids in the form that every store keeps, no two the
 * same, times in range. ST_BAD_VALUE, with the flaw; ST_NO_MEMORY. O(n log n).
 */
enum status store_records_check(struct mem *mem, const struct store_record *records,
                                size_t count, struct store_flaw *flaw);

/*
 * Reads the next slice of a queue. ST_NOT_FOUND, of the first one; a queue that was deleted since
 * has no more slices.
 */
typedef enum status store_read_fn(STORE_OF_QUEUE, struct store_records *records);
typedef void
store_records_release_fn(const struct store *s, struct store_records *records);

/*
 * Applies records, all or nothing. A QUEUE is the first one and makes the queue. Messages with
 * the same claim pointer, or equal claim ids, share a claim. A claim with the id of one that is
 * there goes on with it.
 *
 * ST_CONFLICT: there is already such a queue, message, claim or subscription; or messages come into
 * a queue with subscriptions. ST_NOT_FOUND: there is no queue, and none is made. ST_BAD_VALUE: see
 * store_records_check(). ST_TOO_LARGE: too many for this store. ST_NOT_SEALED: a body must be
 * encrypted. Limits as for a post.
 */
typedef enum status
store_apply_fn(STORE_OF_QUEUE, const struct store_record *records, size_t count);

/*
 * Replays a record of the log (EXPIRED, DELAY_OVER, CLAIM_OVER: not needed, they follow from time).
 * ST_NO_MEMORY; ST_BAD_VALUE: it contradicts what was replayed before. From one thread, before any
 * other operation; after a failure only store_close().
 */
typedef enum status store_replay_fn(struct store *s, struct store_change *change);

/* These numbers were used up. */
typedef void store_replay_marks_fn(struct store *s, const struct store_marks *marks);

/*
 * Ends the replay at now_ms: what is due happens. Transient queues begin anew, behind the
 * numbers that were reserved for them; the log gets the next ones. ST_BAD_VALUE: there is a queue
 * without a name, or two of one name. Statuses of the log's reserve().
 */
typedef enum status store_replay_end_fn(struct store *s, int64_t now_ms);

/* The numbers that are used up by now. */
typedef void store_marks_fn(struct store *s, struct store_marks *out);

/* How many messages, and bytes of bodies, live where the log knows of them. O(parts). */
typedef void store_live_fn(struct store *s, uint64_t *messages, uint64_t *bytes);

/* Begins a checkpoint; one that is under way is given up. */
typedef void store_checkpoint_begin_fn(struct store *s);

/*
 * Appends a slice of the checkpoint to the log: at most 256 messages, and not much more than
 * 64 KiB. *done: all has been appended. Takes one lock of the store, as long as an operation would;
 * from one thread at a time. Statuses of the log's reserve(): then it has appended less.
 */
typedef enum status store_checkpoint_fn(struct store *s, bool *done);

/* One function for each operation, of the type store_NAME_fn. A store without a log has the first three. */
#define STORE_STATE_OPERATIONS(X)                                                        \
    X(read)                                                                              \
    X(records_release)                                                                   \
    X(apply)                                                                             \
    X(replay)                                                                            \
    X(replay_marks)                                                                      \
    X(replay_end)                                                                        \
    X(marks)                                                                             \
    X(live)                                                                              \
    X(checkpoint_begin)                                                                  \
    X(checkpoint)

#define STORE_STATE_OPERATION(name) store_##name##_fn *name;

struct store_state_vtable {
    STORE_STATE_OPERATIONS(STORE_STATE_OPERATION)
};

#undef STORE_STATE_OPERATION

/* store_read(s, op, queue, records) is s->state->read(...). `s` must have no side effects. */
#define store_read(s, ...)             ((s)->state->read((s), __VA_ARGS__))
#define store_apply(s, ...)            ((s)->state->apply((s), __VA_ARGS__))
#define store_replay(s, change)        ((s)->state->replay((s), (change)))
#define store_replay_marks(s, marks)   ((s)->state->replay_marks((s), (marks)))
#define store_replay_end(s, now_ms)    ((s)->state->replay_end((s), (now_ms)))
#define store_used_marks(s, out)       ((s)->state->marks((s), (out)))
#define store_live(s, messages, bytes) ((s)->state->live((s), (messages), (bytes)))
#define store_checkpoint_begin(s)      ((s)->state->checkpoint_begin(s))
#define store_checkpoint(s, done)      ((s)->state->checkpoint((s), (done)))

#endif
