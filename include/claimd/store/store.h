/*
 * store: the interface between the API and a store of messages.
 *
 * Operations on queues, messages, claims and subscriptions take plain values and return
 * batches of read-only views (store/types.h, store/subscription.h). Every implementation
 * passes the same suite (tests/store).
 *
 *   Time       an operation takes place at `op->now_ms`. Everything that is due by then
 *              has happened before it reads the queue (promise "on time", docs/engine.md)
 *   Log        a response must wait until `op->lsn` is durable
 *   Failure    an operation that does not return ST_OK has changed nothing
 *   Threads    any operation from any thread; a batch belongs to one thread
 *   Blocking   if `blocks` is set, operations may wait for a disk or a network; otherwise
 *              they never do. In a fiber they park instead (base/fiber.h)
 *   Ownership  texts are borrowed for the call; a batch owns its views until
 *              store_batch_release()
 *   Statuses   besides those named: ST_NO_MEMORY and ST_UNAVAILABLE from any operation,
 *              ST_OVER_BUDGET from those that add data (queue_create, queue_update, post)
 *   Work       bounded: if an operation would have to process more than a slice
 *              (expiries, dead letters in front of a claim, messages that a listing
 *              skips), it processes a slice and returns ST_AGAIN. No client can see a
 *              difference then. The caller lets other requests of its thread run, and
 *              repeats the call, which continues. Of the operations on queues only stats
 *              and totals do so
 *
 * The caller checks names and projects. A store accepts any bytes.
 */
#ifndef CLAIMD_STORE_STORE_H
#define CLAIMD_STORE_STORE_H

#include "claimd/store/key.h"
#include "claimd/store/metrics.h"
#include "claimd/store/record.h"
#include "claimd/store/state.h"
#include "claimd/store/subscription.h"
#include "claimd/store/types.h"
#include "claimd/store/waiter.h"

/* The client behind an operation. A store only passes it on to its log (store/log.h). */
struct store_actor {
    struct bytes client; /* the Client-ID; absent: none */
    struct bytes claim;  /* ids of the named claims, joined by commas; absent: none */
    const char *action;  /* the action, as policies name it; a literal */
};

/* The context of one call of an operation, borrowed for the call. */
struct store_op {
    int64_t now_ms;                  /* in: the store's time, real or simulated */
    const struct store_actor *actor; /* in: borrowed for the call; NULL: unknown */
    struct bytes client; /* in: for claims, at most STORE_CLIENT_MAX; absent: not known */
    struct store_waiter *waiter; /* in: claim_create, pop: waits if no message is there */
    /* In: post, claim_create, pop, finish: store/key.h; NULL: none. */
    const struct store_key *key;
    bool flush_later;   /* in: the caller calls store_log_flush() before it sleeps */
    bool waits;         /* out: the waiter is in the wait queue */
    bool loads;         /* out, with ST_AGAIN: messages are being read from the disk */
    bool repeated;      /* out: the result is that of an earlier call with this key */
    bool paused;        /* out: claim_create, pop: claims of the queue are paused */
    bool existing;      /* out: post: a message with the key existed, see there */
    uint64_t lsn;       /* out: the response must wait until it is durable */
    size_t log_most;    /* out, for ST_BEYOND_LOG: bytes that the log takes */
    int64_t key_end_ms; /* out, for ST_KEYS_FULL: when the oldest key of the store ends */
};

/* An operation at this time that does not wait. It lives until the end of the block. */
#define STORE_AT(ms) (&(struct store_op){.now_ms = (ms)})

/* ------------------------------------------------------------------ queues */

/* Makes a queue. *created: it is new; an existing one does not change. */
typedef enum status
store_queue_create_fn(STORE_OF_QUEUE, const struct store_metadata *metadata,
                      bool *created);

/* One view with metadata. ST_NOT_FOUND. */
typedef enum status store_queue_get_fn(STORE_OF_QUEUE, struct store_queues *out);

/*
 * Replaces the metadata of a queue if its version is still `version`.
 * ST_NOT_FOUND; ST_CHANGED: read it again.
 */
typedef enum status store_queue_update_fn(STORE_OF_QUEUE, uint64_t version,
                                          const struct store_metadata *metadata);

/* Deletes the queue and its contents, in O(1). ST_OK also if there is none. */
typedef enum status store_queue_delete_fn(STORE_OF_QUEUE);

/* A page of the queues of a project. */
typedef enum status
store_queue_list_fn(struct store *s, struct store_op *op, const struct store_page *page,
                    struct store_queues *out);

/* A page of the projects that have queues of page->kind, by name. page->project is
 * ignored. */
typedef enum status
store_project_list_fn(struct store *s, struct store_op *op, const struct store_page *page,
                      struct store_queues *out);

/* ST_NOT_FOUND for an unknown queue, with zeros in *out, which API v2 shows. */
typedef enum status store_queue_stats_fn(STORE_OF_QUEUE, struct store_stats *out);

/* Removes all messages, also claimed and delayed ones, or all subscriptions, or both, in
 * O(1). ST_OK also if there is no queue. */
enum store_purge {
    STORE_PURGE_MESSAGES = 1,
    STORE_PURGE_SUBSCRIPTIONS,
    STORE_PURGE_BOTH
};
typedef enum status store_queue_purge_fn(STORE_OF_QUEUE, enum store_purge what);

/* ------------------------------------------------------------------ messages */

/*
 * Stores all messages or none, in order, and sets ids[count]. ST_TOO_LARGE: request_bytes
 * exceeds the queue's limit. ST_BEYOND_LOG: the log does not take so much at once
 * (op->log_most). ST_NOT_FOUND: see create_queue. ST_PAUSED: posts to the queue are
 * paused. ST_NOT_SEALED: the queue's settings have `encrypt`, and a body is not sealed.
 *
 * With post->unique at most one message of the queue holds this key. If one does, the
 * post stores nothing, ids[0] is the id of that message, and op->existing is set. A
 * message holds its key while it is in the queue, ready, delayed or claimed. The key
 * becomes free when the message is deleted, expires, is purged or dead-lettered, and with
 * until_claimed also when it is claimed for the first time. A refusal of the request has
 * priority, but a limit of messages or bytes does not. A post with a key has no op->key.
 *
 * With post->replaces, the id of the message that holds the key, the new message takes
 * its place: the old one is deleted in the same step, and the new one gets its reason
 * with the client and the time. ST_CHANGED: another message holds the key, or none does.
 */
typedef enum status store_message_post_fn(STORE_OF_QUEUE, const struct store_post *post,
                                          struct store_id *ids);

/*
 * A page of messages, oldest first; empty for an unknown queue. It reads a slice of
 * messages at most. If the page has messages then, it ends early with `next`. If it has
 * none, the status is ST_AGAIN, and out->resume (two words, private to the store; zeros
 * at first) holds the place to continue.
 */
typedef enum status
store_message_list_fn(STORE_OF_QUEUE, const struct store_filter *filter,
                      struct store_batch *out);

/* The live messages with these ids, in the order of the ids; others are left out. */
typedef enum status store_message_get_fn(STORE_OF_QUEUE, const struct bytes *ids,
                                         size_t count, struct store_batch *out);

/* The live message that holds a key (see store_message_post()); empty: none. */
typedef enum status
store_message_find_fn(STORE_OF_QUEUE, struct bytes key, struct store_batch *out);

/* Which messages a delete accepts. If it refuses one, it deletes none. docs/api.md 8.6 */
enum store_delete_rule {
    STORE_DELETE_ANY,   /* claimed or not */
    STORE_DELETE_READY, /* ST_CLAIMED: a claim holds a message */
    STORE_DELETE_HELD /* ST_CLAIMED: an unnamed claim holds a message. ST_NOT_CLAIMED: no
                       * claim holds it, or no named claim is live */
};

struct store_delete {
    enum store_delete_rule rule;
    const struct bytes *ids;
    size_t count;
    const struct bytes *claim_ids; /* HELD: ids of the named claims */
    size_t claim_count;
};

/* Deletes the messages that exist. O(messages + claims). */
typedef enum status
store_message_delete_fn(STORE_OF_QUEUE, const struct store_delete *which);

/* Removes and returns up to `limit` ready messages. With op->waiter: see store/waiter.h.
 * ST_OVER_CAPACITY, ST_SEALED: see struct store_batch. */
typedef enum status
store_message_pop_fn(STORE_OF_QUEUE, size_t limit, struct store_batch *out);

/* ------------------------------------------------------------------ claims */

/*
 * Claims up to `limit` messages, oldest first. An empty batch without claim_id: there was
 * no ready message, and no claim was made. With op->waiter: see store/waiter.h.
 * ST_OVER_CAPACITY, ST_SEALED: see struct store_batch.
 *
 * out->claim_number is the fencing token (docs/worker.md): larger than that of any
 * earlier claim in a queue of this name, even if the queue was deleted and made again.
 */
typedef enum status store_claim_create_fn(STORE_OF_QUEUE, const struct store_terms *terms,
                                          size_t limit, struct store_batch *out);

/* The claim and the messages that it still holds, oldest first. ST_NOT_FOUND. */
typedef enum status
store_claim_get_fn(STORE_OF_QUEUE, struct bytes claim_id, struct store_batch *out);

/* Restarts the claim with these terms. *number is its fencing token. ST_NOT_FOUND. */
typedef enum status
store_claim_renew_fn(STORE_OF_QUEUE, struct bytes claim_id,
                     const struct store_terms *terms, uint64_t *number);

/* The live claims of a queue, oldest first. ST_NOT_FOUND: there is no such queue. */
typedef enum status store_claim_list_fn(STORE_OF_QUEUE, struct store_claim_page *page);

/* Why a claim ends early. */
enum store_release {
    STORE_RELEASED, /* its worker releases it */
    STORE_NOT_SENT, /* its response was not sent completely */
    STORE_NOT_SEEN  /* no byte of its response was sent: its deliveries do not count
                    * towards the queue's max_claim_count */
};

static inline enum store_counter
store_release_counter(enum store_release why)
{
    return why == STORE_RELEASED ? STORE_COUNT_BACK_RELEASED : STORE_COUNT_BACK_GONE;
}

/* Ends the claim. The messages that it still holds become ready at their old places.
 * ST_OK also if there is no such claim. */
typedef enum status
store_claim_release_fn(STORE_OF_QUEUE, struct bytes claim_id, enum store_release why);

/* An action of finish on a message. */
enum store_finish_action {
    STORE_FINISH_DELETE,
    STORE_FINISH_RELEASE,
    STORE_FINISH_DEAD_LETTER
};

struct store_finish_item {
    enum store_finish_action action;
    struct bytes id; /* no two items have the same */
    /* RELEASE, DEAD_LETTER: at most STORE_REASON_MAX bytes; empty: none. */
    struct bytes reason;
    int64_t delay_s;  /* RELEASE */
    int64_t ready_ms; /* RELEASE: end of the delay; 0: delay_s from now */
    bool uncounted;   /* RELEASE: the delivery does not count towards max_claim_count */
    bool held;        /* out: the claim held the message, and the action is done */
    bool exhausted;   /* out: RELEASE: this was its last attempt. It was dead-lettered */
};

/* A post to a queue of the project, no two to the same. */
struct store_finish_post {
    struct bytes queue;
    struct store_post post;
    struct store_id *ids; /* out: post.count */
    bool pending;         /* out: the messages are stored, and the queue gets them soon */
    bool existing;        /* out: as op->existing; false if it is pending */
};

enum { STORE_FINISH_POSTS = 10, STORE_FINISH_DEAD_LETTERS = 64 };

struct store_finish {
    struct bytes claim_id;
    struct bytes client; /* kept with a reason, at most STORE_CLIENT_MAX; absent: none */
    struct store_finish_item *items;
    size_t count;
    struct store_finish_post *posts;
    size_t post_count;
    const struct store_terms *renew; /* NULL: do not renew */
    bool atomic;        /* all or nothing; false: leaves out items that are not held */
    uint64_t number;    /* out: fencing token of the renewed claim; 0: not renewed */
    size_t failed_post; /* out: the post that was refused; post_count: none */
};

/*
 * Ends the work on messages of a claim, and posts messages, in one step, which a crash
 * undoes as a whole or not at all. A released message is delayed, then ready at its old
 * place. If it has been claimed max_claim_count times, it is dead-lettered instead, if
 * that is possible now. The rest of its life does not run during the delay. Messages that
 * are not named stay claimed. A claim that holds no message afterwards is over, and is
 * not renewed. A message that is deleted or dead-lettered by this frees its key for a
 * post.
 *
 * ST_NOT_CLAIMED: an item is not held, if `atomic`; see `held`. ST_NOT_FOUND: there is no
 * such claim, and the former does not apply. ST_CONFLICT: the queue has no dead-letter
 * queue. Of a post: as store_message_post(), with failed_post.
 */
typedef enum status store_claim_finish_fn(STORE_OF_QUEUE, struct store_finish *finish);

/* Which dead letters go back, and where. */
struct store_redrive {
    struct bytes to;  /* absent: to the queues from which they came */
    size_t limit;     /* at least 1 */
    bool dry_run;     /* only count */
    bool keeps_count; /* the messages keep their delivery counts */
    /* NULL: the oldest; else these, if they are ready dead letters. */
    const struct bytes *ids;
    size_t id_count;
    uint64_t resume; /* in, out: where to continue; 0 at first */
};

struct store_redriven {
    struct bytes target; /* of the messages that moved; valid until the next call */
    char target_text[256];
    size_t moved;
    size_t unknown_origin; /* dead letters that stay, because they have no origin, */
    size_t key_held;       /* or because a message of the target holds their key */
    uint64_t remaining;    /* dead letters in the queue afterwards */
    bool more;             /* call again with `resume` */
};

/*
 * Puts back ready dead letters of the queue, a slice for one target, which is made if it
 * does not exist. A message keeps its id, gets a new place at the end of the target, and
 * lives at least as long as a new one. ST_CONFLICT: the target is the queue itself.
 * ST_NOT_FOUND: there is no queue. ST_PROJECT_QUEUES.
 */
typedef enum status
store_redrive_fn(STORE_OF_QUEUE, struct store_redrive *which, struct store_redriven *out);

/* ------------------------------------------------------------------ subscriptions */

/*
 * Makes a subscription, and the queue if it does not exist. An existing subscription of
 * the subscriber does not change. If it needs a confirmation and has none, the store asks
 * for it again.
 */
typedef enum status
store_subscription_create_fn(STORE_OF_QUEUE, const struct store_subscription_draft *draft,
                             struct store_subscribed *out);

/* One view. ST_NOT_FOUND. */
typedef enum status store_subscription_get_fn(STORE_OF_QUEUE, struct bytes id,
                                              struct store_subscriptions *out);

/* A page in the order of creation, behind a marker of the store or the id of an existing
 * subscription; empty for an unknown queue. */
typedef enum status
store_subscription_list_fn(STORE_OF_QUEUE, struct bytes marker, size_t limit,
                           struct store_subscriptions *out);

/* Changes the fields that the draft sets. ST_NOT_FOUND; ST_CONFLICT: the new subscriber
 * has a subscription. */
typedef enum status
store_subscription_update_fn(STORE_OF_QUEUE, struct bytes id,
                             const struct store_subscription_draft *draft);

/* Deletes a subscription. ST_OK also if there is none. */
typedef enum status store_subscription_delete_fn(STORE_OF_QUEUE, struct bytes id);

/* Confirms a subscription, or revokes the confirmation and notifies the subscriber.
 * ST_NOT_FOUND. */
typedef enum status
store_subscription_confirm_fn(STORE_OF_QUEUE, struct bytes id, bool confirmed);

/*
 * Leases the delivery that has been due for the longest time, queue by queue in turns.
 * ST_NOT_FOUND: none is due; the listener is notified when one is. ST_AGAIN: a slice of
 * expired messages was skipped.
 */
typedef enum status
store_delivery_next_fn(struct store *s, struct store_op *op, struct store_delivery *out);

/* Ends the lease of a delivery. again_ms: time of the next try. */
typedef void store_delivery_done_fn(struct store *s, struct store_op *op,
                                    struct store_delivery *delivery,
                                    enum store_outcome outcome, int64_t again_ms);

/* Sets the only listener, which is notified (STORE_READY) when a delivery becomes due
 * after there was none; NULL: none. */
typedef void store_delivery_watch_fn(struct store *s, struct store_listener *listener);

/* ------------------------------------------------------------------ waiting */

/* Removes a waiter from its wait queue, if it is in one. Its listener is not notified any
 * more. */
typedef void store_waiter_leave_fn(struct store *s, struct store_waiter *waiter);

/* ------------------------------------------------------------------ life */

/* ST_OK if the store can be used at all. */
typedef enum status store_ping_fn(struct store *s, struct store_op *op);

/* Counts over all queues, in O(1) for each shard; the counts are not of one moment. */
typedef enum status
store_totals_fn(struct store *s, struct store_op *op, struct store_totals *out);

/* Counters and contents of the store, in O(1) for each shard. Nothing expires for this:
 * out->lag_ms is the age of the oldest expiry that is due. */
typedef enum status
store_metrics_fn(struct store *s, struct store_op *op, struct store_metrics *out);

/* The metrics of the next queue with metrics of its own, from place *at on (0 at first),
 * which moves behind it. ST_NOT_FOUND: there are no more. */
typedef enum status store_queue_metrics_fn(struct store *s, struct store_op *op,
                                           size_t *at, struct store_queue_metrics *out);

/* A slice of a walk through all queues, with their contents. O(survey->limit). The
 * numbers need not be durable, so op->lsn does not change. */
typedef enum status
store_queue_survey_fn(struct store *s, struct store_op *op, struct store_survey *survey);

/*
 * Runs a slice of housekeeping: expiries, notifying waiters, freeing memory. *next_ms is
 * the time of the next slice: at once (<= now_ms) if work is left, INT64_MAX if nothing
 * will be due until an operation changes something.
 */
typedef void store_housekeep_fn(struct store *s, int64_t now_ms, int64_t *next_ms);

/* When housekeeping is next useful. O(1), for event loops about to sleep. */
typedef int64_t store_next_ms_fn(struct store *s);

/* True if every invariant holds. O(everything): for tests and debug builds. */
typedef bool store_audit_fn(struct store *s);

/* Frees the store. No batch and no waiter may be left. */
typedef void store_close_fn(struct store *s);

/* Releases the views of a batch or a list; not called for empty ones. */
typedef void store_batch_release_fn(const struct store *s, struct store_batch *batch);
typedef void store_queues_release_fn(const struct store *s, struct store_queues *queues);
typedef void store_subscriptions_release_fn(const struct store *s,
                                            struct store_subscriptions *subscriptions);

/* ------------------------------------------------------------------ calling */

/* One function for each operation, of the type store_NAME_fn; an implementation embeds
 * `struct store` first. */
#define STORE_OPERATIONS(X)                                                              \
    X(queue_create)                                                                      \
    X(queue_get)                                                                         \
    X(queue_update)                                                                      \
    X(queue_delete)                                                                      \
    X(queue_list)                                                                        \
    X(project_list)                                                                      \
    X(queue_stats)                                                                       \
    X(queue_purge)                                                                       \
    X(message_post)                                                                      \
    X(message_list)                                                                      \
    X(message_get)                                                                       \
    X(message_find)                                                                      \
    X(message_delete)                                                                    \
    X(message_pop)                                                                       \
    X(claim_create)                                                                      \
    X(claim_get)                                                                         \
    X(claim_list)                                                                        \
    X(claim_renew)                                                                       \
    X(claim_release)                                                                     \
    X(claim_finish)                                                                      \
    X(redrive)                                                                           \
    X(subscription_create)                                                               \
    X(subscription_get)                                                                  \
    X(subscription_list)                                                                 \
    X(subscription_update)                                                               \
    X(subscription_delete)                                                               \
    X(subscription_confirm)                                                              \
    X(delivery_next)                                                                     \
    X(delivery_done)                                                                     \
    X(delivery_watch)                                                                    \
    X(waiter_leave)                                                                      \
    X(ping)                                                                              \
    X(totals)                                                                            \
    X(metrics)                                                                           \
    X(queue_metrics)                                                                     \
    X(queue_survey)                                                                      \
    X(housekeep)                                                                         \
    X(next_ms)                                                                           \
    X(audit)                                                                             \
    X(close)                                                                             \
    X(batch_release)                                                                     \
    X(queues_release)                                                                    \
    X(subscriptions_release)

#define STORE_OPERATION(name) store_##name##_fn *name;

struct store_vtable {
    STORE_OPERATIONS(STORE_OPERATION)
};

#undef STORE_OPERATION

struct store {
    const struct store_vtable *vtable;
    const struct store_state_vtable *state;
    bool blocks; /* operations may wait for more than a lock; see Blocking */
};

/* Calls an operation: store_ping(s, op) is s->vtable->ping(s, visit). `s` must have no
 * side effects. */
#define store_queue_create(s, ...)   ((s)->vtable->queue_create((s), __VA_ARGS__))
#define store_queue_get(s, ...)      ((s)->vtable->queue_get((s), __VA_ARGS__))
#define store_queue_update(s, ...)   ((s)->vtable->queue_update((s), __VA_ARGS__))
#define store_queue_delete(s, ...)   ((s)->vtable->queue_delete((s), __VA_ARGS__))
#define store_queue_list(s, ...)     ((s)->vtable->queue_list((s), __VA_ARGS__))
#define store_project_list(s, ...)   ((s)->vtable->project_list((s), __VA_ARGS__))
#define store_queue_stats(s, ...)    ((s)->vtable->queue_stats((s), __VA_ARGS__))
#define store_queue_purge(s, ...)    ((s)->vtable->queue_purge((s), __VA_ARGS__))
#define store_message_post(s, ...)   ((s)->vtable->message_post((s), __VA_ARGS__))
#define store_message_list(s, ...)   ((s)->vtable->message_list((s), __VA_ARGS__))
#define store_message_get(s, ...)    ((s)->vtable->message_get((s), __VA_ARGS__))
#define store_message_find(s, ...)   ((s)->vtable->message_find((s), __VA_ARGS__))
#define store_message_delete(s, ...) ((s)->vtable->message_delete((s), __VA_ARGS__))
#define store_message_pop(s, ...)    ((s)->vtable->message_pop((s), __VA_ARGS__))
#define store_claim_create(s, ...)   ((s)->vtable->claim_create((s), __VA_ARGS__))
#define store_claim_get(s, ...)      ((s)->vtable->claim_get((s), __VA_ARGS__))
#define store_claim_list(s, ...)     ((s)->vtable->claim_list((s), __VA_ARGS__))
#define store_claim_renew(s, ...)    ((s)->vtable->claim_renew((s), __VA_ARGS__))
#define store_claim_release(s, ...)  ((s)->vtable->claim_release((s), __VA_ARGS__))
#define store_claim_finish(s, ...)   ((s)->vtable->claim_finish((s), __VA_ARGS__))
#define store_redrive(s, ...)        ((s)->vtable->redrive((s), __VA_ARGS__))
#define store_subscription_create(s, ...)                                                \
    ((s)->vtable->subscription_create((s), __VA_ARGS__))
#define store_subscription_get(s, ...)  ((s)->vtable->subscription_get((s), __VA_ARGS__))
#define store_subscription_list(s, ...) ((s)->vtable->subscription_list((s), __VA_ARGS__))
#define store_subscription_update(s, ...)                                                \
    ((s)->vtable->subscription_update((s), __VA_ARGS__))
#define store_subscription_delete(s, ...)                                                \
    ((s)->vtable->subscription_delete((s), __VA_ARGS__))
#define store_subscription_confirm(s, ...)                                               \
    ((s)->vtable->subscription_confirm((s), __VA_ARGS__))
#define store_delivery_next(s, ...)  ((s)->vtable->delivery_next((s), __VA_ARGS__))
#define store_delivery_done(s, ...)  ((s)->vtable->delivery_done((s), __VA_ARGS__))
#define store_delivery_watch(s, ...) ((s)->vtable->delivery_watch((s), __VA_ARGS__))
#define store_waiter_leave(s, ...)   ((s)->vtable->waiter_leave((s), __VA_ARGS__))
#define store_ping(s, ...)           ((s)->vtable->ping((s), __VA_ARGS__))
#define store_totals(s, ...)         ((s)->vtable->totals((s), __VA_ARGS__))
#define store_metrics(s, ...)        ((s)->vtable->metrics((s), __VA_ARGS__))
#define store_queue_metrics(s, ...)  ((s)->vtable->queue_metrics((s), __VA_ARGS__))
#define store_queue_survey(s, ...)   ((s)->vtable->queue_survey((s), __VA_ARGS__))
#define store_housekeep(s, ...)      ((s)->vtable->housekeep((s), __VA_ARGS__))
#define store_next_ms(s)             ((s)->vtable->next_ms(s))
#define store_audit(s)               ((s)->vtable->audit(s))
store_close_fn store_close; /* NULL has no effect */

/* Release the views, and set the list empty. No effect on an empty one. */
void store_batch_release(struct store_batch *batch);
void store_queues_release(struct store_queues *queues);
void store_subscriptions_release(struct store_subscriptions *subscriptions);

#endif
