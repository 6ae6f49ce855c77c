/*
 * store: the narrow seam between the API and whatever keeps the messages.
 *
 * Seventeen operations on queues, messages and claims: plain values in, a batch of
 * read-only views out. Ids and markers are opaque texts; nothing above this seam knows
 * how they are built. Every implementation passes the same suite (tests/store).
 *
 *   Time       every operation takes `now_ms`; whatever is due by then has happened
 *              before the operation looks (promise "on time", docs/engine.md)
 *   Refusal    an operation that does not return ST_OK has changed nothing
 *   Threads    any operation from any thread; batches belong to the thread that asked
 *   Ownership  texts going in are borrowed for the call; a batch owns what it shows until
 *              store_batch_release()
 *   Statuses   besides those named: ST_NO_MEMORY and ST_UNAVAILABLE from any operation,
 *              ST_OVER_BUDGET from those that add data (queue_create, queue_update, post)
 *   Work       bounded: an operation that would have to look at more than a slice (what has
 *              fallen due meanwhile, dead letters in the way of a claim, messages that a
 *              listing leaves out) does a slice and returns ST_AGAIN. Nothing has happened
 *              then that anybody could see, and asking again goes on from there; others
 *              come first who wait for the same thread. Operations on queues never do so,
 *              but for stats and totals
 *
 * Names and projects are checked by the caller: the store takes any bytes.
 */
#ifndef CLAIMD_STORE_STORE_H
#define CLAIMD_STORE_STORE_H

#include "claimd/base/bytes.h"
#include "claimd/base/status.h"

struct store;

/* ------------------------------------------------------------------ plain values */

/* A queue's address. The empty project is the nameless one of API v1. */
struct store_queue {
    struct bytes project;
    struct bytes name;
};

/* A text id or marker of the store's making. Empty: none. */
#define STORE_ID_CAP 32
struct store_id {
    char text[STORE_ID_CAP]; /* NUL-terminated */
};

static inline struct bytes
store_id_bytes(const struct store_id *id)
{
    return bytes_str(id->text);
}

/* A value that a client or an operator left out. */
#define STORE_UNSET ((int64_t)-1)

/* What the store itself must know of a queue's metadata. STORE_UNSET / absent: not set.
 */
struct store_settings {
    int64_t max_post_bytes;    /* _max_messages_post_size */
    int64_t message_ttl_s;     /* _default_message_ttl */
    int64_t message_delay_s;   /* _default_message_delay */
    int64_t max_claim_count;   /* _max_claim_count, >= 1 */
    int64_t dead_letter_ttl_s; /* _dead_letter_queue_messages_ttl */
    struct bytes dead_letter;  /* _dead_letter_queue, absent if none */
};

#define STORE_SETTINGS_INIT                                                              \
    {                                                                                    \
        STORE_UNSET, STORE_UNSET, STORE_UNSET, STORE_UNSET, STORE_UNSET,                 \
        {                                                                                \
            NULL, 0                                                                      \
        }                                                                                \
    }

/* A queue's metadata: a document the store keeps as it is, and its meaning. */
struct store_metadata {
    struct bytes json; /* empty or absent: no metadata */
    struct store_settings settings;
};

/* A message to be posted. */
struct store_draft {
    struct bytes body; /* JSON text, kept verbatim */
    int64_t ttl_s;     /* STORE_UNSET: the queue's default, else the server's */
    int64_t delay_s;   /* likewise */
};

/* What clients compare a body with. The store keeps it beside the body, and knows no more. */
struct store_checksum {
    uint8_t digest[16];
};

/* One post. */
struct store_post {
    const struct store_draft *drafts;
    size_t count;         /* at least 1 */
    uint64_t client;      /* whose messages these are, for `echo` */
    size_t request_bytes; /* compared with the queue's max_post_bytes; 0: not compared */
    bool create_queue;    /* make the queue if it does not exist; false: ST_NOT_FOUND */
    const struct store_checksum *checksums; /* one a draft; NULL: none */
};

/* The terms of a claim: how long, and how long the messages live behind it. */
struct store_terms {
    int64_t ttl_s;
    int64_t grace_s;
};

/* Which messages a listing shows. */
struct store_filter {
    struct bytes marker; /* go on behind it; absent or not of our making: from the head */
    size_t limit;        /* at least 1 */
    bool include_claimed;
    bool include_delayed;
    bool hide_client; /* leave out messages posted by `client` */
    uint64_t client;
};

/* ------------------------------------------------------------------ views */

/* A message as it was at `now_ms`. */
struct store_message {
    struct store_id id;
    struct store_id claim_id; /* of the live claim that holds it; empty: free */
    struct bytes body;        /* valid until the batch is released */
    const struct store_checksum *checksum; /* likewise; NULL: posted without */
    int64_t ttl_s;                         /* whole lifetime counted from posting */
    int64_t age_s;
    uint32_t claim_count; /* how often it was claimed */
    void *pin;            /* private to the store */
};

/* Messages, and what came with them. */
struct store_batch {
    const struct store *store; /* who must release it; NULL: nothing to release */
    struct store_message *messages;
    size_t count;
    struct store_id claim_id; /* of the claim made or asked for; empty: none */
    int64_t claim_ttl_s;      /* claim_get: terms and age of the claim */
    int64_t claim_age_s;
    struct store_id next; /* list: marker to go on behind; empty: none shown */
    size_t room;          /* claim_create, pop: see below */
    uint64_t resume[2];   /* list: see there */
};

/*
 * An operation that takes messages must not take what its caller then cannot pass on. So
 * the caller says in `room` for how many bytes of bodies it has memory (0: any number).
 * If the messages have more, the operation takes nothing, returns ST_NO_ROOM, and leaves
 * in `room` how much it would have needed. (Dead letters in its way may have moved.)
 */
#define STORE_BATCH_INIT                                                                 \
    {                                                                                    \
        NULL, NULL, 0, {""}, 0, 0, {""}, 0,                                              \
        {                                                                                \
            0, 0                                                                         \
        }                                                                                \
    }

/* One queue of a listing, or the one asked for. */
struct store_queue_view {
    struct bytes name;              /* owned with the views, see store_queues_release */
    struct store_metadata metadata; /* json only if asked for in a listing */
    uint64_t version;               /* changes with every change of metadata */
    void *pin;                      /* private to the store */
};

struct store_queues {
    const struct store *store; /* who must release it; NULL: nothing to release */
    struct store_queue_view *queues;
    size_t count;
    uint64_t total; /* queue_list: all queues of the project */
    bool more;      /* queue_list: there may be more behind the last one */
};

#define STORE_QUEUES_INIT                                                                \
    {                                                                                    \
        NULL, NULL, 0, 0, false                                                          \
    }

struct store_end {
    struct store_id id;
    int64_t age_s;
    int64_t created_ms;
};

struct store_stats {
    uint64_t claimed;                /* live messages in a live claim */
    uint64_t total;                  /* live messages */
    struct store_end oldest, newest; /* defined when total > 0 */
};

/* What there is over all projects. */
struct store_totals {
    uint64_t queues;
    uint64_t messages; /* live ones */
    uint64_t claimed;  /* those of them in a live claim */
};

/* ------------------------------------------------------------------ operations */

/* Makes a queue; *created tells whether it is new (an existing one is left alone). */
enum status
store_queue_create(struct store *s, int64_t now_ms, const struct store_queue *queue,
                   const struct store_metadata *metadata, bool *created);

/* One view with metadata. ST_NOT_FOUND. */
enum status store_queue_get(struct store *s, int64_t now_ms,
                            const struct store_queue *queue, struct store_queues *out);

/*
 * Replaces the metadata of a queue if its version is still `version`.
 * ST_NOT_FOUND; ST_CHANGED: read it again.
 */
enum status
store_queue_update(struct store *s, int64_t now_ms, const struct store_queue *queue,
                   uint64_t version, const struct store_metadata *metadata);

/* Removes the queue with all it has, in O(1); fine if there is none. */
enum status
store_queue_delete(struct store *s, int64_t now_ms, const struct store_queue *queue);

/*
 * Up to limit queues of a project in byte order of their names, behind marker (absent:
 * from the first). limit 0 only counts.
 */
enum status store_queue_list(struct store *s, int64_t now_ms, struct bytes project,
                             struct bytes marker, size_t limit, bool with_metadata,
                             struct store_queues *out);

/* ST_NOT_FOUND for an unknown queue, with zeros in *out: API v2 shows them. */
enum status store_queue_stats(struct store *s, int64_t now_ms,
                              const struct store_queue *queue, struct store_stats *out);

/* Removes all messages, claimed and delayed ones too, in O(1). Fine without the queue. */
enum status
store_queue_purge(struct store *s, int64_t now_ms, const struct store_queue *queue);

/*
 * Stores all messages or none, in order; ids[count] are filled in.
 * ST_TOO_LARGE: request_bytes above the queue's limit. ST_NOT_FOUND: see create_queue.
 */
enum status
store_message_post(struct store *s, int64_t now_ms, const struct store_queue *queue,
                   const struct store_post *post, struct store_id *ids);

/*
 * A page of messages, oldest first; an unknown queue gives an empty one. It looks at a
 * slice of messages at most. A page with something to show then ends early, and `next`
 * leads on; while there is nothing to show it is ST_AGAIN, and leaves in out->resume (two
 * words, private to the store; zeros at first) where to go on when asked again.
 */
enum status
store_message_list(struct store *s, int64_t now_ms, const struct store_queue *queue,
                   const struct store_filter *filter, struct store_batch *out);

/* The live messages among ids, in the order asked; others are left out. */
enum status
store_message_get(struct store *s, int64_t now_ms, const struct store_queue *queue,
                  const struct bytes *ids, size_t count, struct store_batch *out);

/*
 * Deletes one message, with a claim id (present) or without: docs/api.md 8.6.
 * ST_OK also if there is none; ST_CLAIMED: held by another live claim, or claim_id
 * absent; ST_NOT_CLAIMED: claim_id given but it does not hold this message.
 */
enum status
store_message_delete(struct store *s, int64_t now_ms, const struct store_queue *queue,
                     struct bytes id, struct bytes claim_id);

/*
 * Deletes those of the messages that exist, claimed or not. With claim_ids != NULL every
 * live message named must be held by one of these claims, else ST_CLAIMED.
 */
enum status store_message_delete_many(struct store *s, int64_t now_ms,
                                      const struct store_queue *queue,
                                      const struct bytes *ids, size_t count,
                                      const struct bytes *claim_ids, size_t claim_count);

/*
 * Removes and returns up to limit messages that are neither claimed nor delayed.
 * ST_NO_ROOM: see struct store_batch.
 */
enum status
store_message_pop(struct store *s, int64_t now_ms, const struct store_queue *queue,
                  size_t limit, struct store_batch *out);

/*
 * Claims up to limit messages, oldest first. An empty batch without claim_id: there was
 * nothing to claim, and no claim was made. ST_NO_ROOM: see struct store_batch.
 */
enum status
store_claim_create(struct store *s, int64_t now_ms, const struct store_queue *queue,
                   const struct store_terms *terms, size_t limit,
                   struct store_batch *out);

/* The claim and the messages it still holds, oldest first. ST_NOT_FOUND. */
enum status
store_claim_get(struct store *s, int64_t now_ms, const struct store_queue *queue,
                struct bytes claim_id, struct store_batch *out);

/* Starts the claim anew with these terms. ST_NOT_FOUND. */
enum status
store_claim_renew(struct store *s, int64_t now_ms, const struct store_queue *queue,
                  struct bytes claim_id, const struct store_terms *terms);

/* Ends the claim; what it still holds is free at its old place. Fine if there is none. */
enum status store_claim_release(struct store *s, int64_t now_ms,
                                const struct store_queue *queue, struct bytes claim_id);

/* ------------------------------------------------------------------ life */

/* ST_OK if the store can be used at all. */
enum status store_ping(struct store *s, int64_t now_ms);

/* Counts everything, in O(1) for each part of the store; not the picture of one instant. */
enum status store_totals(struct store *s, int64_t now_ms, struct store_totals *out);

/*
 * Does a slice of housekeeping (expiry, giving memory back) and tells when the next is
 * useful: *next_ms is a time, at once (<= now_ms) when work is left, or INT64_MAX when
 * there will be none until somebody changes something.
 */
void store_housekeep(struct store *s, int64_t now_ms, int64_t *next_ms);

/* When housekeeping is next useful; O(1), for event loops about to sleep. */
int64_t store_next_ms(struct store *s);

/* True if every invariant holds. O(everything): for tests and debug builds. */
bool store_audit(struct store *s);

/* Frees the store. No batch may be left. */
void store_close(struct store *s);

/* Gives back what a batch or a list of queues shows; sets it empty. Fine when empty. */
void store_batch_release(struct store_batch *batch);
void store_queues_release(struct store_queues *queues);

/* ------------------------------------------------------------------ implementations */

/* One function for each operation above; an implementation embeds `struct store` first.
 */
struct store_ops {
    enum status (*queue_create)(struct store *, int64_t, const struct store_queue *,
                                const struct store_metadata *, bool *);
    enum status (*queue_get)(struct store *, int64_t, const struct store_queue *,
                             struct store_queues *);
    enum status (*queue_update)(struct store *, int64_t, const struct store_queue *,
                                uint64_t, const struct store_metadata *);
    enum status (*queue_delete)(struct store *, int64_t, const struct store_queue *);
    enum status (*queue_list)(struct store *, int64_t, struct bytes, struct bytes, size_t,
                              bool, struct store_queues *);
    enum status (*queue_stats)(struct store *, int64_t, const struct store_queue *,
                               struct store_stats *);
    enum status (*queue_purge)(struct store *, int64_t, const struct store_queue *);
    enum status (*message_post)(struct store *, int64_t, const struct store_queue *,
                                const struct store_post *, struct store_id *);
    enum status (*message_list)(struct store *, int64_t, const struct store_queue *,
                                const struct store_filter *, struct store_batch *);
    enum status (*message_get)(struct store *, int64_t, const struct store_queue *,
                               const struct bytes *, size_t, struct store_batch *);
    enum status (*message_delete)(struct store *, int64_t, const struct store_queue *,
                                  struct bytes, struct bytes);
    enum status (*message_delete_many)(struct store *, int64_t,
                                       const struct store_queue *, const struct bytes *,
                                       size_t, const struct bytes *, size_t);
    enum status (*message_pop)(struct store *, int64_t, const struct store_queue *,
                               size_t, struct store_batch *);
    enum status (*claim_create)(struct store *, int64_t, const struct store_queue *,
                                const struct store_terms *, size_t, struct store_batch *);
    enum status (*claim_get)(struct store *, int64_t, const struct store_queue *,
                             struct bytes, struct store_batch *);
    enum status (*claim_renew)(struct store *, int64_t, const struct store_queue *,
                               struct bytes, const struct store_terms *);
    enum status (*claim_release)(struct store *, int64_t, const struct store_queue *,
                                 struct bytes);
    enum status (*ping)(struct store *, int64_t);
    enum status (*totals)(struct store *, int64_t, struct store_totals *);
    void (*housekeep)(struct store *, int64_t, int64_t *);
    int64_t (*next_ms)(struct store *);
    bool (*audit)(struct store *);
    void (*close)(struct store *);
    void (*batch_release)(const struct store *, struct store_batch *);
    void (*queues_release)(const struct store *, struct store_queues *);
};

struct store {
    const struct store_ops *ops;
};

#endif
