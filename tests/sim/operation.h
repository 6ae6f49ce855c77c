/*
 * operation: a request as its maker means it; written out for the server, and read by the
 * checker, which never has to parse a request.
 */
#ifndef TESTS_SIM_OPERATION_H
#define TESTS_SIM_OPERATION_H

#include "claimd/api/api.h"
#include "sim/ledger.h"

/* X(name): an operation that a client can request. */
#define OPERATION_LIST(X)                                                                \
    X(QUEUE_PUT)                                                                         \
    X(QUEUE_SHOW)                                                                        \
    X(QUEUE_PATCH)                                                                       \
    X(QUEUE_DELETE)                                                                      \
    X(QUEUE_PURGE)                                                                       \
    X(QUEUE_PAUSE)                                                                       \
    X(QUEUE_STATS)                                                                       \
    X(QUEUE_LIST)                                                                        \
    X(POST)                                                                              \
    X(LIST)                                                                              \
    X(GET_ONE)                                                                           \
    X(GET_MANY)                                                                          \
    X(DELETE_ONE)                                                                        \
    X(DELETE_MANY)                                                                       \
    X(POP)                                                                               \
    X(CLAIM)                                                                             \
    X(CLAIM_SHOW)                                                                        \
    X(CLAIM_RENEW)                                                                       \
    X(CLAIM_RELEASE)                                                                     \
    X(FINISH)                                                                            \
    X(REDRIVE)                                                                           \
    X(SUBSCRIBE)                                                                         \
    X(SUBSCRIPTION_LIST)                                                                 \
    X(SUBSCRIPTION_PATCH)                                                                \
    X(SUBSCRIPTION_CONFIRM)                                                              \
    X(SUBSCRIPTION_DELETE)                                                               \
    X(PROGRESS_LIST)                                                                     \
    X(SCHEDULE_SET)                                                                      \
    X(SCHEDULE_SHOW)                                                                     \
    X(SCHEDULE_PAUSE)                                                                    \
    X(SCHEDULE_DELETE)                                                                   \
    X(SCHEDULE_LIST)

enum op_kind {
#define OPERATION_ENUM(name) OP_##name,
    OPERATION_LIST(OPERATION_ENUM)
#undef OPERATION_ENUM
        OP_COUNT
};

enum { IDS_MAX = 20, DRAFTS_MAX = 100, CLIENTS = 16, POSTS_MAX = 2 };

/* The action of a finish on a message. */
struct finish_item {
    enum store_finish_action action;
    int64_t delay_s; /* of a release */
    bool reason;     /* one is given */
};

/* A message to be posted: its body follows from number and length. */
struct draft {
    uint64_t number;
    size_t len;             /* bytes of the body, at least */
    int64_t ttl_s, delay_s; /* STORE_UNSET: left out */
};

/* Where a listing goes on. */
struct position {
    struct store_id marker;
    uint64_t incarnation; /* of the queue it was listed in; 0: from the head */
    uint64_t order;       /* of the last message seen */
};

struct operation {
    enum op_kind kind;
    int place;
    int client;
    int limit;                  /* of a page, a claim or a pop; 0: left out */
    int64_t ttl_s, grace_s;     /* of a claim; STORE_UNSET: left out */
    uint64_t key;               /* number of its Idempotency-Key; 0: it has none */
    struct known_unique unique; /* POST: of its message */
    struct store_id id;         /* of the message or claim in the path */
    struct store_id claim;      /* claim_id of DELETE_ONE, claim_ids of DELETE_MANY */
    struct store_id ids[IDS_MAX];
    size_t id_count;
    int any[NAMES];       /* CLAIM: of the first of these places that has a message */
    size_t any_count;     /* 0: only of `place` */
    int wait_s;           /* CLAIM, POP: rather wait than get nothing; 0: no wish */
    struct position from; /* LIST */
    bool echo, include_claimed, include_delayed;
    struct draft drafts[DRAFTS_MAX]; /* POST */
    size_t draft_count;
    enum setting setting; /* QUEUE_PATCH */
    int64_t value;        /* STORE_UNSET: remove it */
    bool transient;       /* QUEUE_PUT: not to be in the journal */
    enum store_purge purge;
    unsigned pauses, resumes; /* QUEUE_PAUSE: of enum store_pause; 0: only look */
    int subscriber;           /* SUBSCRIBE, SUBSCRIPTION_PATCH; NONE: left out */
    int64_t options;          /* likewise: a number in them; STORE_UNSET: left out */
    bool confirmed;           /* SUBSCRIPTION_CONFIRM */

    /* FINISH of the claim `id`, of the messages `ids`, ordered by their actions. Its
     * posts take the drafts one behind the other. */
    struct finish_item items[IDS_MAX];
    struct {
        int place;
        size_t count;
        struct known_unique unique; /* of its message */
    } posts[POSTS_MAX];
    size_t post_count;
    bool renews, atomic;

    /* REDRIVE of `limit` dead letters. */
    int to; /* the place; NOWHERE: where they came from */
    bool dry_run, keeps_count;

    int schedule;                /* number of the schedule of SCHEDULE_... */
    struct schedule_terms terms; /* SCHEDULE_SET; SCHEDULE_PAUSE: only `paused` */
};

/* Schedules have a project of their own, and post to one queue there, which the ledger
 * does not know. */
#define SCHEDULE_PROJECT "green"
#define SCHEDULE_QUEUE   "runs"

enum { RUN_TTL_S = 600 }; /* of those messages */

/* Such as "CLAIM_RENEW". */
const char *operation_name(enum op_kind kind);

/* True if the operation adds data, so that a used up budget may refuse it. */
bool operation_adds(const struct operation *op);

/* True if the request may have an Idempotency-Key. */
bool operation_takes_key(const struct operation *op);

/* Is it a request about schedules? */
static inline bool
operation_schedules(const struct operation *op)
{
    return op->kind >= OP_SCHEDULE_SET;
}

const char *operation_project(const struct operation *op);

/* The i-th place that the operation is about; NOWHERE: there are no more. */
int operation_place(const struct operation *op, size_t i);

/* The header Claimd-Unique for this key. */
void unique_header(struct known_unique unique, char *out, size_t cap);

/* The body of a draft, appended. */
void draft_body(struct buf *out, uint64_t number, size_t len);

/* The request: method, and target and body appended. */
const char *
operation_write(const struct operation *op, struct buf *target, struct buf *body);

/* The i-th post of a finish, as it is written in the request; `first` of its drafts. */
void
operation_write_post(const struct operation *op, size_t i, size_t first, struct buf *out);

/* The URI that a subscriber is known by, the document of its options. */
const char *subscriber_uri(int subscriber);
void options_body(struct buf *out, int64_t options);

/* The client's UUID. */
const char *client_uuid(int client);

#endif
