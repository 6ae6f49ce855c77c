/*
 * store/state: reads the contents of a store as records, and applies records.
 *
 * read() and apply() work on one queue of any store, for dumps and for replacing a state.
 * read() returns slices: the queue first, then its messages in order, then its
 * subscriptions. apply() takes such slices, or records from elsewhere, and gives the
 * messages new numbers behind the existing ones.
 *
 *   Moment    a slice shows the queue at op->now_ms. Other clients may change the queue
 *             between two slices
 *   Ids       messages, claims and subscriptions keep them. A claim gets a new, larger
 *             fencing token
 *   Times     stay as they were. If a caller applies a slice at another time, it shifts
 *             them
 *   Not read  messages that subscribers have still to receive: an applied subscription
 *   starts behind all messages
 *
 * The other operations are for the log of an in-memory store (store/log.h). After a
 * restart the log passes its records to replay(), in order, in a new store:
 *
 *     replay() ... replay() replay_end()   and then the operations of the store
 *
 * A checkpoint appends records of the whole contents, slice by slice, while the store is
 * in use:
 *
 *     checkpoint_begin() checkpoint() checkpoint() ... until *done
 *
 * A replay of all records since the beginning of a checkpoint restores the whole store.
 * The checkpoint has the contents, and the log has the changes since.
 */
#ifndef CLAIMD_STORE_STATE_H
#define CLAIMD_STORE_STATE_H

#include "claimd/store/record.h"

struct store;
struct store_op;

/* The first parameters of each operation on a queue. */
#define STORE_OF_QUEUE                                                                   \
    struct store *s, struct store_op *op, const struct store_queue *queue

/* Limits of apply(): number of messages; latest time, in the year 5138. */
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

/* A slice. It owns the records until store_records_release(). */
struct store_records {
    const struct store *store; /* that releases it; NULL: nothing to release */
    struct store_record *all;
    size_t count;
    void *pin; /* private to the store */
    bool more; /* there may be another slice: release, and read again */
    uint64_t resume
        [3]; /* private to the store; zeros at first; kept by the release, like `more` */
};

#define STORE_RECORDS_INIT ((struct store_records){.store = NULL})

/* Releases the records. `more` and `resume` stay. No effect on an empty slice. */
void store_records_release(struct store_records *records);

/* The error in records that apply() refuses. */
struct store_flaw {
    size_t index;
    const char *member; /* "ttl", "claim.id" */
    const char *what;   /* a sentence that begins with "it" */
};

/* Checks that records can be applied: ids have the form of store_id_good(), no two are
 * equal, times are in range. ST_BAD_VALUE, with the flaw; ST_NO_MEMORY. O(n log n). */
enum status store_records_check(struct mem *mem, const struct store_record *records,
                                size_t count, struct store_flaw *flaw);

/* Reads the next slice of a queue. ST_NOT_FOUND for the first one. A queue that was
 * deleted meanwhile has no more slices. */
typedef enum status store_read_fn(STORE_OF_QUEUE, struct store_records *records);
typedef void
store_records_release_fn(const struct store *s, struct store_records *records);

/*
 * Applies records, all or nothing. A QUEUE must be first, and makes the queue. Messages
 * with the same claim pointer, or equal claim ids, share a claim. A claim with the id of
 * an existing one continues it.
 *
 * ST_CONFLICT: the queue, a message, claim or subscription exists; or messages come into
 * a queue with subscriptions. ST_NOT_FOUND: the queue does not exist, and there is no
 * QUEUE. ST_BAD_VALUE: see store_records_check(). ST_TOO_LARGE: too many for this store.
 * ST_NOT_SEALED: a body must be encrypted. Limits as for a post.
 */
typedef enum status
store_apply_fn(STORE_OF_QUEUE, const struct store_record *records, size_t count);

/*
 * Replays a record of the log. EXPIRED, DELAY_OVER and CLAIM_OVER are not needed: they
 * follow from deadlines. ST_NO_MEMORY; ST_BAD_VALUE: it contradicts earlier records. From
 * one thread, before any other operation; after a failure only store_close().
 */
typedef enum status store_replay_fn(struct store *s, struct store_change *change);

/* Raises the numbers that must never be used again. */
typedef void store_replay_marks_fn(struct store *s, const struct store_marks *marks);

/*
 * Ends the replay at now_ms, and expires what is due. Transient queues continue behind
 * their reserved numbers, and log a new reservation. ST_BAD_VALUE: a queue has no name,
 * or two have the same. Statuses of the log's reserve().
 */
typedef enum status store_replay_end_fn(struct store *s, int64_t now_ms);

/* The numbers that must never be used again. */
typedef void store_marks_fn(struct store *s, struct store_marks *out);

/* The contents of a checkpoint. */
struct store_live {
    uint64_t messages, bytes; /* whole ones, and queues; and the bytes of their bodies */
    uint64_t unloaded;        /* messages that it only names (claimd/store/runs.h), */
    uint64_t unloaded_bytes;  /* and of their bodies, which it does not have */
};

/* O(shards). */
typedef void store_live_fn(struct store *s, struct store_live *out);

/* Begins a checkpoint, and abandons one that is under way. */
typedef void store_checkpoint_begin_fn(struct store *s);

/*
 * Appends a slice of the checkpoint to the log: at most 256 messages, and not much more
 * than 64 KiB. *done: the checkpoint is complete. Takes one lock of the store, for as
 * long as an operation would. From one thread at a time. Statuses of the log's reserve():
 * it has appended less.
 */
typedef enum status store_checkpoint_fn(struct store *s, bool *done);

/* One function for each operation, of the type store_NAME_fn. A store without a log has
 * the first three. */
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

/* store_read(s, op, queue, records) is s->state->read(...). `s` must have no side
 * effects. */
#define store_read(s, ...)           ((s)->state->read((s), __VA_ARGS__))
#define store_apply(s, ...)          ((s)->state->apply((s), __VA_ARGS__))
#define store_replay(s, change)      ((s)->state->replay((s), (change)))
#define store_replay_marks(s, marks) ((s)->state->replay_marks((s), (marks)))
#define store_replay_end(s, now_ms)  ((s)->state->replay_end((s), (now_ms)))
#define store_used_marks(s, out)     ((s)->state->marks((s), (out)))
#define store_live(s, out)           ((s)->state->live((s), (out)))
#define store_checkpoint_begin(s)    ((s)->state->checkpoint_begin(s))
#define store_checkpoint(s, done)    ((s)->state->checkpoint((s), (done)))

#endif
