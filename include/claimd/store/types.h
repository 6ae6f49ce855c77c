/*
 * store/types: the parameters and results of a store's operations.
 *
 * Ids and markers are opaque texts for callers. Texts that go in are borrowed for the
 * call. A batch owns its views until store_batch_release().
 */
#ifndef CLAIMD_STORE_TYPES_H
#define CLAIMD_STORE_TYPES_H

#include "claimd/base/bytes.h"
#include "claimd/base/status.h"

struct store;

/*
 * The kind of a queue. Queues of different kinds may have the same name, and have no
 * relation. A queue of schedules is claimd's own: its messages are the schedules of a
 * project. Totals and metrics leave it out, and a finish of its claims posts to queues of
 * the kind STORE_QUEUE.
 */
enum store_kind { STORE_QUEUE, STORE_TOPIC, STORE_SCHEDULES, STORE_KINDS };

/* The kind of the queues to which a finish on a queue of this kind posts. */
static inline enum store_kind
store_post_kind(enum store_kind kind)
{
    return kind == STORE_SCHEDULES ? STORE_QUEUE : kind;
}

/* A queue's address. The empty project is the nameless one of API v1. */
struct store_queue {
    struct bytes project;
    struct bytes name;
    enum store_kind kind;
};

static inline bool
store_queue_equal(const struct store_queue *a, const struct store_queue *b)
{
    return a->kind == b->kind && bytes_equal(a->name, b->name) &&
           bytes_equal(a->project, b->project);
}

/* An id or marker that the store made. Empty: none. */
#define STORE_ID_CAP 32
struct store_id {
    char text[STORE_ID_CAP]; /* NUL-terminated */
};

static inline struct bytes
store_id_bytes(const struct store_id *id)
{
    return bytes_str(id->text);
}

/*
 * The form of ids: 24 hexadecimal digits in lower case, of which the first is a letter.
 * The last twelve of a claim's or a subscription's id are its number in its queue.
 */
bool store_id_good(struct bytes text);
uint64_t store_id_number(const struct store_id *id);

/* A value that a client or an operator left out. */
#define STORE_UNSET ((int64_t)-1)

/* The metadata of a queue that a store uses. STORE_UNSET / absent: not set. */
struct store_settings {
    int64_t max_post_bytes;    /* _max_messages_post_size */
    int64_t message_ttl_s;     /* _default_message_ttl */
    int64_t message_delay_s;   /* _default_message_delay */
    int64_t max_claim_count;   /* _max_claim_count, >= 1 */
    int64_t dead_letter_ttl_s; /* _dead_letter_queue_messages_ttl */
    int64_t claim_ttl_s;       /* _default_claim_ttl */
    int64_t claim_grace_s;     /* _default_claim_grace */
    struct bytes dead_letter;  /* _dead_letter_queue, absent if none */
    bool transient;            /* _persistence is "memory" */
    bool encrypt;              /* _enable_encrypt_messages: bodies must be sealed */
    unsigned paused;           /* of enum store_pause; not in the metadata's document */
    struct bytes paused_by;    /* the last pause, a text of the caller. Absent: it is
                                * not paused, or an older version paused it */
};

/* Requests that an operator has paused for a queue. */
enum store_pause {
    STORE_PAUSE_CLAIMS = 1, /* claims and pops find no message */
    STORE_PAUSE_POSTS = 2   /* posts are refused */
};

#define STORE_SETTINGS_INIT                                                              \
    {                                                                                    \
        STORE_UNSET, STORE_UNSET, STORE_UNSET, STORE_UNSET, STORE_UNSET, STORE_UNSET,    \
            STORE_UNSET, {NULL, 0}, false, false, 0,                                     \
        {                                                                                \
            NULL, 0                                                                      \
        }                                                                                \
    }

/* The first byte of an encrypted body, with which no JSON text begins. A store knows
 * nothing else about encryption. */
enum { STORE_SEALED_MARK = 1 };

static inline bool
store_is_sealed(struct bytes body)
{
    return body.len > 0 && body.data[0] == STORE_SEALED_MARK;
}

/* A queue's metadata: a document that the store keeps verbatim, and the settings in
 * it. */
struct store_metadata {
    struct bytes json; /* empty or absent: no metadata */
    struct store_settings settings;
};

/* A message to be posted. */
struct store_draft {
    struct bytes body; /* JSON text, or sealed; kept verbatim */
    int64_t ttl_s;     /* STORE_UNSET: the queue's default, else the server's */
    int64_t delay_s;   /* likewise */
};

/* How long a message lives, and how much of that it is delayed. */
struct store_lifetime {
    int64_t ttl_s, delay_s;
};

/* The lifetime of a draft: its own, else that of the queue, else that of the server. */
static inline struct store_lifetime
store_draft_lifetime(const struct store_draft *draft, const struct store_settings *set,
                     struct store_lifetime server)
{
    struct store_lifetime out = server;

    if (draft->ttl_s != STORE_UNSET)
        out.ttl_s = draft->ttl_s;
    else if (set->message_ttl_s != STORE_UNSET)
        out.ttl_s = set->message_ttl_s;
    if (draft->delay_s != STORE_UNSET)
        out.delay_s = draft->delay_s;
    else if (set->message_delay_s != STORE_UNSET)
        out.delay_s = set->message_delay_s;
    return out;
}

/* False: the message would expire before any worker could get it. */
static inline bool
store_lifetime_is_useful(struct store_lifetime lifetime)
{
    return lifetime.delay_s < lifetime.ttl_s;
}

/* The checksum of a body, for clients. The store keeps it without looking at it. */
struct store_checksum {
    uint8_t digest[16];
};

/* The key of a unique message: see store_message_post(). */
struct store_unique {
    struct bytes key;   /* 1 to STORE_UNIQUE_MAX bytes */
    bool until_claimed; /* the first claim frees the key; false: the end of the message */
    int64_t due_ms; /* the due time of the schedule that posted the message; 0: none */
};

enum { STORE_UNIQUE_MAX = 128 };

/* One post. */
struct store_post {
    const struct store_draft *drafts;
    size_t count;         /* at least 1; with `unique`: 1 */
    uint64_t client;      /* id of the client, for `echo` */
    size_t request_bytes; /* compared with the queue's max_post_bytes; 0: not compared */
    bool create_queue;    /* make the queue if it does not exist; false: ST_NOT_FOUND */
    const struct store_checksum *checksums; /* one a draft; NULL: none */
    const struct store_unique *unique;      /* NULL: the messages need not be unique */
    struct bytes replaces; /* with `unique`: see store_message_post(); absent: none */
    int64_t ready_ms;      /* with `unique`: end of the delay; 0: see the draft */
};

/* The terms of a claim: its length, and the grace by which its messages outlive it. */
struct store_terms {
    int64_t ttl_s;   /* STORE_UNSET: the queue's default, else the server's */
    int64_t grace_s; /* likewise */
};

/* The terms of a claim: its own, else those of the queue, else those of the server. */
static inline struct store_terms
store_claim_terms(const struct store_terms *own, const struct store_settings *set,
                  struct store_terms server)
{
    struct store_terms out = server;

    if (own->ttl_s != STORE_UNSET)
        out.ttl_s = own->ttl_s;
    else if (set->claim_ttl_s != STORE_UNSET)
        out.ttl_s = set->claim_ttl_s;
    if (own->grace_s != STORE_UNSET)
        out.grace_s = own->grace_s;
    else if (set->claim_grace_s != STORE_UNSET)
        out.grace_s = set->claim_grace_s;
    return out;
}

/* Which messages a listing shows. */
struct store_filter {
    struct bytes marker; /* continue behind it; absent or foreign: from the head */
    size_t limit;        /* at least 1 */
    bool include_claimed;
    bool include_delayed;
    bool hide_client; /* leave out messages posted by `client` */
    uint64_t client;
};

/* A message as it was at `now_ms`. */
struct store_message {
    struct store_id id;
    struct store_id claim_id; /* of the live claim that holds it; empty: none */
    struct bytes body;        /* valid until the batch is released */
    const struct store_checksum *checksum; /* likewise; NULL: none */
    int64_t ttl_s;                         /* whole lifetime counted from posting */
    int64_t age_s;
    int64_t posted_ms, expires_ms;
    int64_t delayed_until_ms;            /* 0: not delayed */
    const struct store_details *details; /* valid as the body is; NULL: none */
    uint32_t claim_count;                /* delivery count */
    void *pin;                           /* private to the store */
};

/* Why a message became a dead letter. The journal and Redis store these numbers. */
enum store_cause {
    STORE_CAUSE_UNKNOWN,  /* it is none, or an older version did not note the cause */
    STORE_CAUSE_WORKER,   /* a worker said so in a finish */
    STORE_CAUSE_ATTEMPTS, /* it was ready after as many deliveries as its queue allows */
    STORE_CAUSE_EXPIRED,  /* the claim of the last allowed delivery expired */
    STORE_CAUSES
};

/* The details of a message that a worker released with a reason, that is a dead letter,
 * or that is unique. Texts are absent and numbers are 0 where they do not apply. */
struct store_details {
    struct bytes reason;        /* of the last one that was given; UTF-8 */
    struct bytes client;        /* the worker that gave it. Of a dead letter without a
                               * reason: the last holder */
    int64_t released_ms;        /* when it did */
    struct bytes origin;        /* name of the queue from which the dead letter came */
    int64_t dead_lettered_ms;   /* when it came */
    enum store_cause cause;     /* of a dead letter */
    uint32_t attempts;          /* its delivery count before; 0 with an unknown cause */
    struct store_unique unique; /* its key is absent once the first claim has freed it */
};

/* Bytes of the texts of details. */
static inline size_t
store_details_bytes(const struct store_details *d)
{
    return d->reason.len + d->client.len + d->origin.len + d->unique.key.len;
}

/* True if a message of a queue with these details holds their key, so that no other
 * message of the queue may have it. A dead letter keeps its key, and does not hold it. */
static inline bool
store_holds_key(const struct store_details *d)
{
    return d->unique.key.len > 0 && d->dead_lettered_ms == 0;
}

/* Bytes. A client is a text of the caller: the store keeps it as it is. */
enum { STORE_REASON_MAX = 1024, STORE_CLIENT_MAX = 123, STORE_PAUSED_BY_MAX = 144 };

/* Messages, and the claim that they were read by. */
struct store_batch {
    const struct store *store; /* that releases it; NULL: nothing to release */
    struct store_message *messages;
    size_t count;
    struct store_id claim_id; /* of the claim that was made or read; empty: none */
    int64_t claim_ttl_s;      /* claim_get: terms and age of the claim */
    int64_t claim_age_s;
    uint64_t claim_number; /* of that claim, see store_claim_create() */
    struct store_id next;  /* list: marker of the next page; empty: the page is empty */
    size_t capacity;       /* claim_create, pop: see below */
    uint64_t resume[2];    /* list: see there */
    /* claim_create, pop: see below; borrowed. */
    const struct store_batch *opened;
};

/*
 * The caller sets `capacity` to the bytes of bodies that it can pass on (0: any number).
 * If the messages have more, the operation takes none, returns ST_OVER_CAPACITY, and sets
 * `capacity` to their size. (Dead letters in front of them may have moved.)
 *
 * The caller can pass on an encrypted body only after it has decrypted it, which may
 * fail. So it sets `opened` to the messages that it has decrypted (NULL: it takes bodies
 * as they are). If other messages are encrypted, the operation takes none, returns
 * ST_SEALED, and returns views of the messages that it would have taken. The caller
 * decrypts those, and repeats the call.
 */
#define STORE_BATCH_INIT ((struct store_batch){.store = NULL})

/* A live claim as others see it. */
struct store_claim_info {
    struct store_id id;
    char client[STORE_CLIENT_MAX]; /* that created or last renewed it */
    size_t client_len;             /* 0: not known */
    uint64_t number;               /* the fencing token */
    int64_t age_ms;                /* since its creation, renewed or not */
    int64_t left_ms;               /* until it ends */
    uint64_t messages;             /* that it holds */
};

/* Which claims of a queue a listing shows, oldest first. */
struct store_claim_page {
    struct bytes id;                 /* only this claim; absent: all */
    struct bytes marker;             /* behind it; absent or foreign: from the oldest */
    struct store_claim_info *claims; /* borrowed, space for `limit`, at least 1 */
    size_t limit;
    size_t count;         /* out */
    struct store_id next; /* out: marker of the next page; empty: this is the last one */
};

/* A queue. */
struct store_queue_view {
    struct bytes name;              /* owned with the views, see store_queues_release */
    struct store_metadata metadata; /* json only if asked for in a listing */
    uint64_t version;               /* changes with every change of metadata */
    void *pin;                      /* private to the store */
};

/* Which queues a listing shows, in byte order of their names; marker absent: from the
 * first. */
struct store_page {
    struct bytes project;
    enum store_kind kind;
    struct bytes marker;
    size_t limit; /* 0: only count */
    bool with_metadata;
};

struct store_queues {
    const struct store *store; /* that releases it; NULL: nothing to release */
    struct store_queue_view *queues;
    size_t count;
    uint64_t total; /* all queues of the project; project_list: all projects */
    bool more;      /* queue_list: there may be more behind the last one */
};

#define STORE_QUEUES_INIT ((struct store_queues){.store = NULL})

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

/* Counts over all projects. */
struct store_totals {
    uint64_t queues;
    uint64_t messages; /* live messages */
    uint64_t claimed;  /* live messages in a live claim */
};

#endif
