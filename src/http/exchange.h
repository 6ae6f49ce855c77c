/*
 * exchange: everything one request needs, from its target to its sent answer.
 *
 * Exchanges are taken from a worker's pool when a request's target is known and given
 * back when libmicrohttpd has sent the answer (or given up), so an idle connection holds
 * none. The answer's body stays in `response.body` until then: libmicrohttpd sends it
 * from there, without a copy.
 *
 *   Memory   a pool keeps up to EXCHANGE_SPARE unused exchanges, each with at most
 *            EXCHANGE_KEEP bytes for a body and as much for an answer
 *   Threads  none: pool and exchanges belong to one worker
 */
#ifndef HTTP_EXCHANGE_H
#define HTTP_EXCHANGE_H

#include "claimd/api/api.h"
#include "claimd/base/fiber.h"
#include "claimd/ds/wheel.h"
#include "http/conn.h"
#include "http/head.h"
#include "http/request_id.h"

struct worker_shared;

enum { EXCHANGE_SPARE = 64, EXCHANGE_KEEP = 16384, EXCHANGE_METHOD_CAP = 16 };

/*
 *     HEAD --> BODY, SWALLOW --> asked --> ANSWERED
 *                                 |  ^         ^
 *                                 v  |         |
 *      SLICES, WAITING, REMOTE, IDENTITY, COMMIT, DELAYED ----> READY
 */
enum exchange_state {
    EXCHANGE_HEAD,     /* the headers are not known yet */
    EXCHANGE_BODY,     /* collecting */
    EXCHANGE_SWALLOW,  /* too large, or no memory: reading on without keeping */
    EXCHANGE_SLICES,   /* being answered a slice at a time, or no fiber is free */
    EXCHANGE_WAITING,  /* for a message, until it is told or its time is over */
    EXCHANGE_REMOTE,   /* a fiber has called the API and waits for the store, */
    EXCHANGE_IDENTITY, /* or for Keystone */
    EXCHANGE_COMMIT,   /* the answer is there, what it tells of is not durable yet */
    EXCHANGE_DELAYED,  /* the answer is there, and held back for a test (fault.h) */
    EXCHANGE_READY,    /* the answer is there and has to be queued */
    EXCHANGE_ANSWERED,
    EXCHANGE_STATES
};

/* Of an answer that comes in pieces (fault.h): the next one is due, was given, or has to wait. */
enum piece { PIECE_DUE, PIECE_GIVEN, PIECE_RESTS };

struct exchange {
    struct exchange *next; /* in the pool */
    struct conn *conn;     /* borrowed while in use */
    enum exchange_state state;
    struct head head;
    struct arena arena;
    struct request request;
    struct response response;
    struct waiting waiting; /* lent to the request */
    struct deadline due;    /* WAITING, DELAYED, PIECE_RESTS: in the worker's wheel */
    int64_t until_ms;       /* when its waiting is over; 0: never has waited */
    unsigned news;          /* came while it was REMOTE */
    struct list commit;     /* COMMIT: among the worker's, by position */
    struct fiber *fiber;    /* REMOTE: it has the exchange */
    const struct worker_shared *shared; /* REMOTE, borrowed */
    enum api_next next_step;            /* REMOTE, when it is done: what the API said */
    struct buf body;                    /* of the request */
    uint64_t received;                  /* bytes of body seen, kept or not */
    uint64_t handed;         /* TCP: bytes given to the kernel before it was parked */
    struct bytes raw_target; /* in libmicrohttpd's memory, until it decodes */
    struct bytes their_id,
        traceparent;                  /* for the log, of the arena; or absent: trace.h */
    char method[EXCHANGE_METHOD_CAP]; /* for the log; may be cut */
    char id[REQUEST_ID_CAP];
    int64_t started_ns; /* of clock_stopwatch_ns(): when it could be read */
    int code;           /* of the answer; 0: none was given here */
    enum piece piece;   /* ANSWERED */
    size_t sent;        /* bytes of the answer's body */
    bool no_memory;     /* answer 503 */
    bool closing;       /* the answer is the connection's last */
    bool counted;       /* among those who wait, of whom there is a limit */
};

struct exchange_pool {
    struct mem *mem; /* borrowed */
    struct exchange *spare;
    size_t spare_count;
};

void exchange_pool_init(struct exchange_pool *pool, struct mem *mem);
void exchange_pool_fini(struct exchange_pool *pool);

/*
 * Takes an exchange and begins it with a target, which is copied: libmicrohttpd changes it
 * in place. NULL without memory.
 */
struct exchange *
exchange_begin(struct exchange_pool *pool, struct conn *conn, const char *target);

/* Notes the request's method, for the API and, perhaps cut, for the log. */
void exchange_name_method(struct exchange *ex, struct bytes name);

/* Gives it back. */
void exchange_end(struct exchange_pool *pool, struct exchange *ex);

/*
 * Keeps a piece of body, up to `limit` bytes in all; beyond that, without memory, or when a
 * large body does not fit into the budget, forgets what was kept and remembers why.
 */
void exchange_take_body(struct exchange *ex, const char *data, size_t len, size_t limit);

/* The body is known to be longer than allowed. */
void exchange_refuse_body(struct exchange *ex);

#endif
